//! Attachments: which table is which collection, which row is which document, and what has changed.
//!
//! Elevated, or for workers, unless said otherwise: who may know of an attachment is decided by `attach/`.

pub(crate) use super::definition::{Column, Definition};
use super::relation;
use super::{FIRST_ATTACHED, Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::{Oid, random, spi, transaction};
use pgrx::Uuid;

/// Where a pass over the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Reading the table in the order of its key.
    Scan,
    /// Looking for documents whose row is gone.
    Sweep,
}

/// An attached table.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    /// `None` once the table was dropped.
    pub(crate) source: Option<Oid>,
    pub(crate) origin: String,
    pub(crate) definition: Definition,
    pub(crate) pass: Option<Pass>,
    pub(crate) position: Option<String>,
}

const COLUMNS: &str = "a.source::oid, a.origin, a.definition, a.pass, a.position";

fn of_row(row: &spi::Row) -> Result<Attachment> {
    let pass: Option<String> = row.get(4);
    Ok(Attachment {
        source: row.get(1),
        origin: row.require(2)?,
        definition: Definition::from_json(row.require(3)?)?,
        pass: match pass.as_deref() {
            Some("scan") => Some(Pass::Scan),
            Some(_) => Some(Pass::Sweep),
            None => None,
        },
        position: row.get(5),
    })
}

/// An id for an attached collection or its domain: above all others.
pub(crate) fn new_attached_id() -> Result<Id> {
    // The mark, version 8 and variant 1 of RFC 9562, and random bits below.
    let random = Id::from_be_bytes(random::new_id()?) & ((1 << 62) - 1);
    let more = Id::from_be_bytes(random::new_id()?) & 0xfff;
    Ok(FIRST_ATTACHED | more << 64 | random)
}

/// Notes an attachment, or changes it and has the table read anew.
pub(crate) fn store(
    collection: Id,
    source: Oid,
    source_name: &str,
    origin: &str,
    definition: &Definition,
) -> Result<()> {
    spi::run(
        "INSERT INTO rag.attachment (collection_id, source, source_name, origin, definition)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (collection_id) DO UPDATE
             SET definition = excluded.definition, origin = excluded.origin, state = 'filling', pass = 'scan',
                 position = NULL, rows_read = 0, tries = 0, lost = 0, due_at = excluded.due_at, sqlstate = NULL,
                 error = NULL",
        vec![
            uuid(collection).into(),
            source.into(),
            source_name.into(),
            origin.into(),
            definition.to_json()?.into(),
        ],
    )
}

/// Forgets what was made of the rows of a collection, so that all of them are read and written anew.
pub(crate) fn forget_rows(collection: Id) -> Result<()> {
    spi::run(
        "UPDATE rag.attached_row SET sha256 = '', row_version = '' WHERE collection_id = $1",
        vec![uuid(collection).into()],
    )
}

/// Puts the triggers of an attached table on it. Whoever has changed it before they were there, or before there was what they
/// would have told, is waited for: what they commit is among the rows that are read first.
pub(crate) fn watch(source: Oid) -> Result<()> {
    spi::execute(
        // Tables before their partitions, as writers lock them.
        "SELECT t.relid::oid
         FROM (SELECT $1::oid::regclass AS relid, -1 AS level UNION ALL
               SELECT p.relid, p.level FROM pg_partition_tree($1::oid::regclass) p) t
         JOIN pg_class c ON c.oid = t.relid WHERE c.relkind IN ('r', 'p') ORDER BY t.level, t.relid",
        vec![source.into()],
        |row| row.require::<Oid>(1),
    )?
    .into_iter()
    .for_each(relation::lock_out_writers);
    spi::run("SELECT rag.watch_source($1::oid::regclass)", vec![source.into()])
}

/// Takes the triggers away, if nothing is attached to the table any more.
pub(crate) fn unwatch_if_free(source: Oid) -> Result<()> {
    spi::run(
        "SELECT rag.unwatch_source($1::oid::regclass)
         WHERE NOT EXISTS (SELECT FROM rag.attachment a WHERE a.source = $1::oid::regclass)",
        vec![source.into()],
    )
}

/// The attachment of a collection.
pub(crate) fn of_collection(collection: Id) -> Result<Option<Attachment>> {
    spi::read_snapshot_one(
        &format!("SELECT {COLUMNS} FROM rag.attachment a WHERE a.collection_id = $1"),
        vec![uuid(collection).into()],
        of_row,
    )
}

/// Collections that a table is attached to, by id and name.
pub(crate) fn of_source(source: Oid) -> Result<Vec<(Id, String, String)>> {
    spi::read_latest(
        "SELECT c.id, c.name, c.owner FROM rag.attachment a JOIN rag.collection c ON c.id = a.collection_id
         WHERE a.source = $1::oid::regclass ORDER BY c.owner, c.name",
        vec![source.into()],
        |row| Ok((id(row.require(1)?), row.require(2)?, row.require(3)?)),
    )
}

/// Deletes collections with all that is in them.
pub(crate) fn delete_collections(collections: &[Id]) -> Result<()> {
    spi::run(
        "DELETE FROM rag.collection WHERE id = ANY ($1)",
        vec![uuids(collections.iter().copied()).into()],
    )?;
    spi::run(
        "DELETE FROM rag.attached_change WHERE collection_id = ANY ($1)",
        vec![uuids(collections.iter().copied()).into()],
    )
}

/// An attachment as a trigger needs it.
pub(crate) struct Watched {
    pub(crate) collection: Id,
    /// The attached table: the trigger's own, or one that this is a partition of.
    pub(crate) source: Oid,
    pub(crate) origin: String,
    pub(crate) definition: Definition,
    pub(crate) is_stopped: bool,
}

/// What is attached to a table, or to one that it is a partition of: by now, whatever the transaction sees of the rest. What was
/// attached since its snapshot is told of its change as well.
pub(crate) fn watching(table: Oid) -> Result<Vec<Watched>> {
    transaction::with_catalog_snapshot(|| watching_in_snapshot(table))
}

fn watching_in_snapshot(table: Oid) -> Result<Vec<Watched>> {
    spi::read_snapshot(
        "SELECT a.collection_id, a.source::oid, a.origin, a.definition, a.state = 'stopped' FROM rag.attachment a
         WHERE a.source = $1::oid::regclass OR a.source IN (SELECT p.relid FROM pg_partition_ancestors($1::oid::regclass) p)",
        vec![table.into()],
        |row| {
            Ok(Watched {
                collection: id(row.require(1)?),
                source: row.require(2)?,
                origin: row.require(3)?,
                definition: Definition::from_json(row.require(4)?)?,
                is_stopped: row.require(5)?,
            })
        },
    )
}

/// What has changed in an attached table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Rows with these keys, as text.
    Keys(Vec<String>),
    /// Inserted rows whose key is a whole number within these, both included; others may be among them.
    Range(i64, i64),
    /// Anything.
    All,
}

/// Notes a change.
pub(crate) fn note_change(collection: Id, change: Change) -> Result<()> {
    let (size, keys, range) = match &change {
        Change::Keys(keys) => (keys.len() as i32, spi::Arg::texts(keys), None),
        Change::Range(from, to) => (1, spi::Arg::no_texts(), Some((*from, *to))),
        Change::All => (1, spi::Arg::no_texts(), None),
    };
    spi::run(
        "INSERT INTO rag.attached_change (collection_id, size, keys, from_key, to_key) VALUES ($1, $2, $3, $4, $5)",
        vec![
            uuid(collection).into(),
            size.into(),
            keys,
            range.map(|(from, _)| from).into(),
            range.map(|(_, to)| to).into(),
        ],
    )
}

/// The oldest changes of a collection, by id, up to so many keys.
pub(crate) fn changes(collection: Id, keys: i64) -> Result<Vec<(Id, Change)>> {
    spi::read_latest(
        "SELECT id, keys, from_key, to_key
         FROM (SELECT c.*, sum(c.size) OVER (ORDER BY c.id) - c.size AS before
               FROM (SELECT * FROM rag.attached_change WHERE collection_id = $1 ORDER BY id LIMIT $2) c) c
         WHERE before < $2 ORDER BY id",
        vec![uuid(collection).into(), keys.into()],
        |row| {
            let change = match (row.get::<Vec<String>>(2), row.get(3), row.get(4)) {
                (Some(keys), _, _) => Change::Keys(keys),
                (None, Some(from), Some(to)) => Change::Range(from, to),
                _ => Change::All,
            };
            Ok((id(row.require(1)?), change))
        },
    )
}

/// Forgets changes that were looked at.
pub(crate) fn forget_changes(collection: Id, changes: &[Id]) -> Result<()> {
    spi::run(
        "DELETE FROM rag.attached_change WHERE collection_id = $1 AND id = ANY ($2)",
        vec![uuid(collection).into(), uuids(changes.iter().copied()).into()],
    )
}

/// Forgets all changes that were noted.
pub(crate) fn forget_all_changes(collection: Id) -> Result<()> {
    spi::run("DELETE FROM rag.attached_change WHERE collection_id = $1", vec![uuid(collection).into()])
}

/// Sets where a range begins that was looked at in part.
pub(crate) fn shorten_range(collection: Id, change: Id, from: i64) -> Result<()> {
    spi::run(
        "UPDATE rag.attached_change SET from_key = $3 WHERE collection_id = $1 AND id = $2",
        vec![uuid(collection).into(), uuid(change).into(), from.into()],
    )
}

/// The attachment that this worker is at, locked until the transaction ends; `None` if somebody holds it, or has deleted
/// it.
pub(crate) fn lock_running(collection: Id) -> Result<Option<Attachment>> {
    spi::read_latest_one(
        &format!(
            "SELECT {COLUMNS} FROM rag.attachment a
             WHERE a.collection_id = $1 AND a.running_since IS NOT NULL AND a.worker_pid = pg_backend_pid()
             FOR NO KEY UPDATE SKIP LOCKED"
        ),
        vec![uuid(collection).into()],
        of_row,
    )
}

/// Seconds until an attachment with work that no worker is at is due; `None` if there is none.
pub(crate) fn seconds_until_due() -> Result<Option<f64>> {
    let due = spi::read_latest_one(
        "SELECT extract(epoch FROM min(a.due_at) - clock_timestamp())::float8 FROM rag.attachment a
         WHERE a.running_since IS NULL
           AND (a.state = 'detached' OR a.pass IS NOT NULL AND a.state <> 'stopped'
                OR EXISTS (SELECT FROM rag.attached_change c WHERE c.collection_id = a.collection_id))",
        vec![],
        |row| Ok(row.get::<f64>(1)),
    )?;
    Ok(due.flatten())
}

/// Where an attachment's work has come to.
pub(crate) struct Progress<'a> {
    pub(crate) origin: &'a str,
    pub(crate) source_name: &'a str,
    pub(crate) definition: &'a Definition,
    pub(crate) pass: Option<Pass>,
    pub(crate) position: Option<String>,
    pub(crate) rows_read: i64,
    /// Whether a scan began anew, so that rows are counted from 0.
    pub(crate) restarted: bool,
}

/// Notes progress: no failure stands, and the table is current once there is no pass.
pub(crate) fn progress(collection: Id, progress: &Progress<'_>) -> Result<()> {
    let pass = progress.pass.map(|pass| match pass {
        Pass::Scan => "scan",
        Pass::Sweep => "sweep",
    });
    spi::run(
        "UPDATE rag.attachment
         SET origin = $2, source_name = $3, definition = $4, pass = $5, position = $6,
             rows_read = $7 + CASE WHEN $8 THEN 0 ELSE rows_read END,
             state = CASE WHEN $5 IS NULL THEN 'current' WHEN state = 'stopped' THEN 'filling' ELSE state END,
             filled_at = CASE WHEN $5 IS NULL THEN coalesce(filled_at, clock_timestamp()) ELSE filled_at END,
             tries = 0, sqlstate = NULL, error = NULL, running_since = NULL, lost = 0
         WHERE collection_id = $1",
        vec![
            uuid(collection).into(),
            progress.origin.into(),
            progress.source_name.into(),
            progress.definition.to_json()?.into(),
            pass.map(str::to_owned).into(),
            progress.position.clone().into(),
            progress.rows_read.into(),
            progress.restarted.into(),
        ],
    )
}

/// Notes a failure, and has it tried again later.
pub(crate) fn fail(collection: Id, sqlstate: &str, error: &str, delay_s: f64) -> Result<()> {
    spi::run(
        "UPDATE rag.attachment
         SET sqlstate = $2, error = $3, tries = tries + 1, due_at = clock_timestamp() + $4 * interval '1 second',
             running_since = NULL, lost = 0
         WHERE collection_id = $1",
        vec![uuid(collection).into(), sqlstate.into(), error.into(), delay_s.into()],
    )
}

/// Ends following for a reason that only a change of the table or of the attachment can remove: the next one to be
/// noted has it looked at again, not before the delay is over.
pub(crate) fn stop(collection: Id, sqlstate: &str, error: &str, delay_s: f64) -> Result<()> {
    spi::run(
        "WITH seen AS (DELETE FROM rag.attached_change WHERE collection_id = $1)
         UPDATE rag.attachment
         SET state = 'stopped', pass = 'scan', position = NULL, sqlstate = $2, error = $3, running_since = NULL,
             lost = 0, due_at = clock_timestamp() + $4 * interval '1 second'
         WHERE collection_id = $1",
        vec![uuid(collection).into(), sqlstate.into(), error.into(), delay_s.into()],
    )
}

/// What is left to do for attached tables before their documents are jobs.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Whether there are rows that were not looked at.
    pub(crate) is_following: bool,
    /// Transactions that noted changes.
    pub(crate) changed_by: Vec<u32>,
    /// Domains of the collections, as they are now.
    pub(crate) domains: Vec<Id>,
}

/// What is left to do for the tables behind these collections; nothing for one that has stopped.
pub(crate) fn unfinished(collections: &[Id]) -> Result<Unfinished> {
    let args = || vec![uuids(collections.iter().copied()).into()];
    let is_filling = spi::read_latest_one(
        "SELECT EXISTS (SELECT FROM rag.attachment WHERE collection_id = ANY ($1) AND pass IS NOT NULL AND state <> 'stopped')",
        args(),
        |row| row.require::<bool>(1),
    )?;
    let changed_by = spi::read_latest(
        "SELECT DISTINCT c.xmin::text FROM rag.attached_change c JOIN rag.attachment a ON a.collection_id = c.collection_id
         WHERE c.collection_id = ANY ($1) AND a.state <> 'stopped'",
        args(),
        |row| Ok(row.require::<String>(1)?.parse().unwrap_or(0)),
    )?;
    let domains =
        spi::read_latest("SELECT id FROM rag.domain WHERE collection_id = ANY ($1)", args(), |row| {
            row.require::<Uuid>(1).map(id)
        })?;
    let is_following = is_filling.unwrap_or(false) || !changed_by.is_empty();
    Ok(Unfinished { is_following, changed_by, domains })
}

/// Forgets changes of collections that are gone, notes that tables are gone, and tells which still have triggers though
/// nothing is attached to them.
pub(crate) fn clean_up() -> Result<Vec<Oid>> {
    spi::run(
        "DELETE FROM rag.attached_change c
         WHERE NOT EXISTS (SELECT FROM rag.attachment a WHERE a.collection_id = c.collection_id)",
        vec![],
    )?;
    // Whoever dropped them did not wait until they could be let go.
    spi::run(
        "INSERT INTO rag.attached_change (collection_id)
         SELECT a.collection_id FROM rag.attachment a
         WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = a.source)
           AND NOT EXISTS (SELECT FROM rag.attached_change c WHERE c.collection_id = a.collection_id)",
        vec![],
    )?;
    spi::read_latest(
        "SELECT DISTINCT t.tgrelid FROM pg_trigger t
         WHERE t.tgfoid = 'rag.attached_change()'::regprocedure
           AND NOT EXISTS (SELECT FROM rag.attachment a WHERE a.source = t.tgrelid
                              OR a.source IN (SELECT p.relid FROM pg_partition_ancestors(t.tgrelid) p))",
        vec![],
        |row| row.require::<Oid>(1),
    )
}

/// What is needed to say whether a caller may see rows of an attached collection.
pub(crate) struct Guarded {
    pub(crate) attachment: Attachment,
    /// Whether the caller acts as the collection's owner.
    pub(crate) is_own: bool,
    /// Whether the caller acts as the domain's owner.
    pub(crate) is_own_domain: bool,
    /// Whether the caller has taken the domain into their searches.
    pub(crate) is_accepted: bool,
}

/// The attachment behind a domain, and what these principals are to it.
pub(crate) fn of_domain(domain: Id, principals: &[String]) -> Result<Option<Guarded>> {
    spi::read_snapshot_one(
        &format!(
            "SELECT {COLUMNS}, c.owner = ANY ($2) AND rag.is_current(c.owner, c.owner_role),
                    d.owner = ANY ($2) AND rag.is_current(d.owner, d.owner_role),
                    EXISTS (SELECT FROM rag.accepted_collection x WHERE x.domain_id = d.id
                              AND x.principal = ANY ($2) AND rag.is_current(x.principal, x.principal_role))
             FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
             JOIN rag.attachment a ON a.collection_id = c.id WHERE d.id = $1"
        ),
        vec![uuid(domain).into(), principals.to_vec().into()],
        |row| {
            Ok(Guarded {
                attachment: of_row(row)?,
                is_own: row.require(6)?,
                is_own_domain: row.require(7)?,
                is_accepted: row.require(8)?,
            })
        },
    )
}

/// Whether these principals own a collection.
pub(crate) fn owns(collection: Id, principals: &[String]) -> Result<bool> {
    let found = spi::read_snapshot_one(
        "SELECT c.owner = ANY ($2) AND rag.is_current(c.owner, c.owner_role) FROM rag.collection c WHERE c.id = $1",
        vec![uuid(collection).into(), principals.to_vec().into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Failures in a row of an attachment; `None` if there is no such attachment.
pub(crate) fn tries(collection: Id) -> Result<Option<i32>> {
    spi::read_latest_one(
        "SELECT tries FROM rag.attachment WHERE collection_id = $1",
        vec![uuid(collection).into()],
        |row| row.require::<i32>(1),
    )
}

/// Whether the owner of a collection has the rights of a role.
pub(crate) fn may_act_for(collection: Id, role: Oid) -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT pg_has_role(owner_role::oid, $2, 'USAGE') FROM rag.collection WHERE id = $1",
        vec![uuid(collection).into(), role.into()],
        |row| Ok(row.get::<bool>(1).unwrap_or(false)),
    )?;
    Ok(found.unwrap_or(false))
}

/// Name and owner of a collection.
pub(crate) fn name_and_owner(collection: Id) -> Result<Option<(String, String)>> {
    spi::read_latest_one(
        "SELECT name, owner FROM rag.collection WHERE id = $1",
        vec![uuid(collection).into()],
        |row| Ok((row.require(1)?, row.require(2)?)),
    )
}

/// Domains of a collection with their owners.
pub(crate) fn domains(collection: Id) -> Result<Vec<(Id, String)>> {
    spi::read_latest(
        "SELECT id, owner FROM rag.domain WHERE collection_id = $1",
        vec![uuid(collection).into()],
        |row| Ok((id(row.require::<Uuid>(1)?), row.require(2)?)),
    )
}
