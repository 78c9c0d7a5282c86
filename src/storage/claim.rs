//! Claiming jobs: by priority, then oldest first.

use super::{Id, id, uuid};
use crate::error::Result;
use crate::pg::spi;
use pgrx::Uuid;
use pgrx::datum::TimestampWithTimeZone;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// A claimed job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) domain: Id,
    pub(crate) document: Id,
    pub(crate) version: i64,
    pub(crate) tries: i32,
    /// Whether only metadata may be asked for.
    pub(crate) may_be_extraction: bool,
}

/// Between two looks from the beginning: for jobs that were queued by a transaction that took long, and those of a worker
/// that has died.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// As many times as long as a look took there is none after it.
const LOOKS_SHARE: u32 = 20;

/// How far a worker has claimed the jobs of the domain that it claimed last. What is claimed keeps its entry in the index
/// while somebody has an old snapshot, and whoever begins at the beginning goes over the entries of all that was done since.
#[derive(Debug, Default)]
pub(crate) struct ClaimedUpTo(Option<Place>);

#[derive(Debug, Clone, Copy)]
struct Place {
    domain: Id,
    priority: i32,
    due_at: TimestampWithTimeZone,
    document: Id,
    /// When there may be a look from the beginning.
    next_look: Instant,
}

impl Place {
    /// Jobs are claimed in the order of this.
    fn order(&self) -> (Reverse<i32>, TimestampWithTimeZone, Id) {
        (Reverse(self.priority), self.due_at, self.document)
    }
}

/// Claims up to `limit` due jobs of a domain: by priority, then oldest first, as far as the worker has not just claimed what
/// comes later.
pub(crate) fn claim(domain: Id, limit: usize, up_to: &mut ClaimedUpTo) -> Result<Vec<Claim>> {
    let known = up_to.0.filter(|place| place.domain == domain && Instant::now() < place.next_look);
    let mut claimed = Vec::new();
    if let Some(Place { priority, due_at, document, .. }) = known {
        claimed = claim_where("j.priority > $3", limit, domain, vec![priority.into()])?;
        if claimed.len() < limit {
            let after = vec![priority.into(), due_at.into(), uuid(document).into()];
            let condition = "j.priority = $3 AND (j.due_at, j.document_id) > ($4, $5)";
            claimed.extend(claim_where(condition, limit - claimed.len(), domain, after)?);
        }
    }
    let mut next_look = known.map(|place| place.next_look);
    if claimed.len() < limit {
        let began = Instant::now();
        claimed.extend(claim_where("true", limit - claimed.len(), domain, Vec::new())?);
        next_look = Some(Instant::now() + BETWEEN_LOOKS.max(began.elapsed() * LOOKS_SHARE));
    }
    let last = claimed.iter().map(|(_, place)| *place).max_by_key(Place::order);
    up_to.0 = last.or(known).zip(next_look).map(|(last, next_look)| Place { next_look, ..last });
    Ok(claimed.into_iter().map(|(claim, _)| claim).collect())
}

/// Claims those that a condition holds for, on `j` and arguments from $3 on.
fn claim_where(
    condition: &str,
    limit: usize,
    domain: Id,
    more: Vec<spi::Arg>,
) -> Result<Vec<(Claim, Place)>> {
    let sql = format!(
        "UPDATE rag.job o
         SET state = 'running', started_at = clock_timestamp(), worker_pid = pg_backend_pid(),
             worker_start = (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid()))
         FROM (SELECT j.domain_id, j.document_id FROM rag.job j
               WHERE j.domain_id = $1 AND j.state = 'queued' AND j.due_at <= clock_timestamp() AND {condition}
               ORDER BY j.priority DESC, j.due_at, j.document_id LIMIT $2 FOR UPDATE SKIP LOCKED) q
         WHERE o.domain_id = q.domain_id AND o.document_id = q.document_id
         RETURNING o.domain_id, o.document_id, o.version, o.tries, o.priority, o.due_at, o.kind = 'extract'"
    );
    let mut args = vec![uuid(domain).into(), (limit as i64).into()];
    args.extend(more);
    // Without it a join would go over all jobs that there are.
    spi::execute_by_index(&sql, args, |row| {
        let domain = id(row.require(1)?);
        let document = id(row.require::<Uuid>(2)?);
        let place = Place {
            domain,
            document,
            priority: row.require(5)?,
            due_at: row.require(6)?,
            next_look: Instant::now(),
        };
        let claim = Claim {
            domain,
            document,
            version: row.require(3)?,
            tries: row.require(4)?,
            may_be_extraction: row.require(7)?,
        };
        Ok((claim, place))
    })
}
