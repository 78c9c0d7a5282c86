//! Metadata: the rules that find it, what they found, and what passes a filter.

mod matching;

pub(crate) use matching::{
    few_matching_documents, matching_documents, matching_of_chunks, matching_of_documents, missing_keys, time,
};

use super::{Id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use pgrx::JsonB;
use rag_core::metadata::rule::RuleDefinition;
use serde_json::{Map, Value};
use std::rc::Rc;

/// Most rules that are applied to one document.
const MAX_RULES: i64 = 500;

const RULES: &str = "SELECT name, key, kind, source, pattern, value, words, minimum, type, multiple
     FROM (SELECT DISTINCT ON (r.name) r.*
           FROM rag.metadata_rule r
           WHERE (r.owner = 'public' AND r.owner_role = 0)
              OR (r.owner = $1 AND r.owner_role = $2::oid::regrole AND (r.collection IS NULL OR r.collection = $3))
           ORDER BY r.name, r.builtin, r.owner = 'public', r.collection IS NULL, r.id) rules
     WHERE enabled ORDER BY ordinal, name LIMIT $4";

/// The rules for documents of a domain, in their order: those of the collection's owner, and everybody's.
/// Elevated.
pub(crate) fn rules_of_domain(domain: Id) -> Result<Rc<[RuleDefinition]>> {
    let collection = spi::read_latest_one(
        "SELECT c.owner, c.owner_role::oid::int8, c.name FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE d.id = $1",
        vec![uuid(domain).into()],
        |row| Ok((row.require::<String>(1)?, row.require::<i64>(2)?, row.require::<String>(3)?)),
    )?;
    let Some((owner, role, name)) = collection else { return Ok(Rc::default()) };
    let args = vec![owner.into(), role.into(), name.into(), MAX_RULES.into()];
    spi::read_latest(RULES, args, rule_of_row).map(Rc::from)
}

/// The rules for documents of a collection, as far as the caller sees them.
pub(crate) fn visible_rules(collection_owner: &str, collection: &str) -> Result<Rc<[RuleDefinition]>> {
    let role = crate::pg::principal::existing_role(collection_owner)?;
    let args =
        vec![collection_owner.into(), i64::from(role.to_u32()).into(), collection.into(), MAX_RULES.into()];
    spi::read_snapshot(RULES, args, rule_of_row).map(Rc::from)
}

fn rule_of_row(row: &spi::Row) -> Result<RuleDefinition> {
    Ok(RuleDefinition {
        name: row.require(1)?,
        key: row.require(2)?,
        kind: row.require(3)?,
        source: row.require(4)?,
        pattern: row.get(5),
        value: row.get(6),
        words: row.require(7)?,
        minimum: row.require(8)?,
        value_type: row.require(9)?,
        multiple: row.require(10)?,
    })
}

/// Replaces what was extracted from a document; its trigger writes the rows. Elevated.
pub(crate) fn store(domain: Id, document: Id, extracted: Map<String, Value>) -> Result<()> {
    spi::run(
        "UPDATE rag.document
         SET extracted = jsonb_strip_nulls(jsonb_build_object('uploaded_at', extracted -> 'uploaded_at',
                 'extracted_at', date_trunc('second', clock_timestamp()) AT TIME ZONE 'UTC')) || $3
         WHERE domain_id = $1 AND id = $2",
        vec![uuid(domain).into(), uuid(document).into(), JsonB(Value::Object(extracted)).into()],
    )
}

/// A processed document, to extract its metadata anew.
pub(crate) struct Extractable {
    pub(crate) text: String,
    pub(crate) title: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) file: Value,
}

/// The document of a claimed job, if only extraction is asked for: `Some(None)` if somebody is changing it right
/// now. Locks it. Elevated.
pub(crate) fn lock_for_extraction(
    domain: Id,
    document: Id,
    version: i64,
) -> Result<Option<Option<Extractable>>> {
    let args = || vec![uuid(domain).into(), uuid(document).into(), version.into()];
    let asked = spi::read_latest_one(
        "SELECT true FROM rag.job j JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
         WHERE j.domain_id = $1 AND j.document_id = $2 AND j.version = $3 AND j.kind = 'extract'
           AND d.version = $3 AND d.status = 'done' AND d.text IS NOT NULL",
        args(),
        |row| row.require::<bool>(1),
    )?;
    if asked.is_none() {
        return Ok(None);
    }
    spi::read_latest_one(
        "SELECT text, title, uri, file_metadata FROM rag.document
         WHERE domain_id = $1 AND id = $2 AND version = $3 FOR NO KEY UPDATE SKIP LOCKED",
        args(),
        |row| {
            Ok(Extractable {
                text: row.require(1)?,
                title: row.get(2),
                uri: row.get(3),
                file: row.require::<JsonB>(4)?.0,
            })
        },
    )
    .map(Some)
}

/// Marks the job of an extraction as done. Elevated.
pub(crate) fn finish_extraction(domain: Id, document: Id, version: i64) -> Result<()> {
    spi::run(
        "UPDATE rag.job SET state = 'done', finished_at = clock_timestamp(), embedded = 0,
                sqlstate = NULL, error = NULL, worker_pid = NULL, worker_start = NULL
         WHERE domain_id = $1 AND document_id = $2 AND version = $3 AND state = 'running' AND kind = 'extract'",
        vec![uuid(domain).into(), uuid(document).into(), version.into()],
    )
}

/// Queues the extraction of metadata for the processed documents of these domains, or for some of them, and returns how many.
/// Elevated.
pub(crate) fn queue_extraction(domains: &[Id], some: Option<&[Id]>) -> Result<i64> {
    let queued = spi::execute(
        "UPDATE rag.job j
         SET state = 'queued', kind = 'extract', tries = 0, due_at = clock_timestamp(),
             queued_at = clock_timestamp(), started_at = NULL, finished_at = NULL
         FROM rag.document d
         WHERE j.domain_id = ANY ($1) AND j.state = 'done'
           AND d.domain_id = j.domain_id AND d.id = j.document_id AND d.version = j.version
           AND d.status = 'done' AND d.text IS NOT NULL AND ($2::uuid[] IS NULL OR d.id = ANY ($2))
         RETURNING 1",
        vec![uuids(domains.iter().copied()).into(), some.map(|ids| uuids(ids.iter().copied())).into()],
        |_| Ok(()),
    )?;
    Ok(queued.len() as i64)
}
