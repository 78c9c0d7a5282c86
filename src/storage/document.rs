//! Documents: what callers write, and what the workers read and complete.

use super::{ByDomain, Id, id, id_of_text, uuid, uuids};
use crate::error::{Error, Result};
use crate::pg::{Oid, principal, spi};
use pgrx::{JsonB, Uuid};
use rag_core::metadata::rule::RuleDefinition;
use rag_wire::Content;
use std::collections::HashMap;
use std::rc::Rc;

/// A document as a caller hands it in.
pub(crate) struct NewDocument<'a> {
    pub(crate) content: Option<&'a str>,
    pub(crate) file: Option<&'a [u8]>,
    pub(crate) title: Option<&'a str>,
    pub(crate) uri: Option<&'a str>,
    pub(crate) collection: &'a str,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) metadata: serde_json::Value,
}

/// Inserts a document, or updates the one of the same collection, owner and uri if anything differs; `None` if
/// nothing does. As the caller: the table's trigger and policies decide.
pub(crate) fn upsert(new: &NewDocument<'_>) -> Result<Option<Id>> {
    let args = vec![
        new.content.map(str::to_owned).into(),
        new.file.map(<[u8]>::to_vec).into(),
        new.title.map(str::to_owned).into(),
        new.uri.map(str::to_owned).into(),
        new.collection.into(),
        new.media_type.map(str::to_owned).into(),
        JsonB(new.metadata.clone()).into(),
    ];
    let changed = spi::execute_one(
        "INSERT INTO rag.document AS d (content, file, title, uri, collection, media_type, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (collection, owner, uri) DO UPDATE
             SET content = excluded.content, file = excluded.file, title = coalesce(excluded.title, d.title),
                 media_type = coalesce(excluded.media_type, d.media_type), metadata = excluded.metadata
             WHERE d.sha256 <> excluded.sha256 OR d.metadata <> excluded.metadata
                OR coalesce(excluded.media_type, d.media_type) IS DISTINCT FROM d.media_type
                OR coalesce(excluded.title, d.title) IS DISTINCT FROM d.title
         RETURNING id",
        args,
        |row| row.require::<Uuid>(1),
    )?;
    Ok(changed.map(id))
}

/// Those of the documents that the caller sees, each with its domain.
pub(crate) fn visible(documents: &ByDomain) -> Result<ByDomain> {
    Ok(documents.rows("document", "id")?.into_iter().collect())
}

/// How many chunks the documents have that the caller sees.
pub(crate) fn count_chunks(documents: &ByDomain) -> Result<usize> {
    let sum =
        documents.read("coalesce(sum(t.chunks), 0)::int8", "document", "id", |row| row.require::<i64>(1))?;
    Ok(sum.first().map_or(0, |sum| *sum as usize))
}

/// Whether the caller sees a document.
pub(crate) fn is_visible(domain: Id, document: Id) -> Result<bool> {
    let found = spi::look_up(
        "SELECT FROM rag.document WHERE domain_id = $1 AND id = $2",
        vec![uuid(domain).into(), uuid(document).into()],
        |_| Ok(()),
    )?;
    Ok(!found.is_empty())
}

/// The documents of a domain that the caller sees.
pub(crate) fn visible_of_domain(domain: Id) -> Result<Vec<Id>> {
    spi::read_snapshot("SELECT id FROM rag.document WHERE domain_id = $1", vec![uuid(domain).into()], |row| {
        row.require::<Uuid>(1).map(id)
    })
}

/// How many of these names documents have that the caller sees: a uri, or the id of one without.
pub(crate) fn count_named(domains: &[Id], names: &[&str]) -> Result<usize> {
    let ids = names.iter().filter_map(|name| id_of_text(name));
    let found = spi::read_snapshot_one(
        "SELECT (SELECT count(DISTINCT uri) FROM rag.document WHERE domain_id = ANY ($1) AND uri = ANY ($2))
              + (SELECT count(*) FROM rag.document WHERE domain_id = ANY ($1) AND id = ANY ($3) AND uri IS NULL)",
        vec![uuids(domains.iter().copied()).into(), names.to_vec().into(), uuids(ids).into()],
        |row| row.require::<i64>(1),
    )?;
    Ok(found.unwrap_or(0) as usize)
}

/// What stands at a place of a document.
pub(crate) struct Place {
    /// The document's.
    pub(crate) uri: Option<String>,
    /// The characters between the two; `None` before the document has a text.
    pub(crate) text: Option<String>,
}

/// What stands between two characters of a document's text, as the caller sees it. `None` where the document is not kept, or not
/// seen.
pub(crate) fn place(document: Id, char_from: i32, char_to: i32) -> Result<Option<Place>> {
    spi::read_snapshot_one(
        "SELECT d.uri, substr(d.text, $2 + 1, $3 - $2) FROM rag.document d WHERE d.id = $1",
        vec![uuid(document).into(), char_from.into(), char_to.into()],
        |row| Ok(Place { uri: row.get(1), text: row.get(2) }),
    )
}

/// The document of this key, if the caller sees one.
pub(crate) fn find_by_uri(collection: &str, owner: &str, uri: &str) -> Result<Option<Id>> {
    let found = spi::read_latest_one(
        "SELECT id FROM rag.document WHERE collection = $1 AND owner = $2 AND uri = $3",
        vec![collection.into(), owner.into(), uri.into()],
        |row| row.require::<Uuid>(1),
    )?;
    Ok(found.map(id))
}

/// A document without uri and with this content, if the domain has one. By its hash: the planner knows nothing of either
/// column, and might go over all documents without uri.
pub(crate) fn find_by_hash(domain: Id, sha256: &[u8]) -> Result<Option<Id>> {
    let found = spi::read_latest_one(
        "SELECT d.id FROM (SELECT id, uri FROM rag.document WHERE domain_id = $1 AND sha256 = $2 OFFSET 0) d
         WHERE d.uri IS NULL ORDER BY d.id LIMIT 1",
        vec![uuid(domain).into(), sha256.to_vec().into()],
        |row| row.require::<Uuid>(1),
    )?;
    Ok(found.map(id))
}

/// A document as a worker needs it.
pub(crate) struct StoredDocument {
    pub(crate) domain: Id,
    pub(crate) id: Id,
    pub(crate) version: i64,
    pub(crate) content: Content,
    pub(crate) title: Option<String>,
    pub(crate) media_type: Option<String>,
    pub(crate) owner: String,
    pub(crate) uri: Option<String>,
    /// When this form of it came, in ISO 8601.
    pub(crate) uploaded_at: String,
    /// The rules by which metadata is found in it.
    pub(crate) rules: Rc<[RuleDefinition]>,
}

/// Longest content, in bytes, of a document that is read before its turn.
const SHORT: i64 = 16 * 1024;

/// Reads a document to process it, and with it those of the others, of the same domain, that are short: what all of them need
/// is read once. For workers, and elevated for `sync`.
pub(crate) fn load(domain: Id, document: Id, others: &[Id]) -> Result<Vec<StoredDocument>> {
    let rules = super::metadata::rules_of_domain(domain)?;
    let documents = uuids(others.iter().copied().chain([document]));
    let args = vec![uuid(domain).into(), documents.into(), uuid(document).into(), SHORT.into()];
    let load = |row: &spi::Row| {
        let content = match row.get::<String>(2) {
            Some(text) => Content::Text(text),
            None => Content::Bytes(row.get::<Vec<u8>>(3).unwrap_or_default()),
        };
        Ok(StoredDocument {
            domain,
            id: id(row.require(9)?),
            version: row.require(1)?,
            content,
            title: row.get(4),
            media_type: row.get(5),
            owner: row.require(6)?,
            uri: row.get(7),
            uploaded_at: row.require(8)?,
            rules: Rc::clone(&rules),
        })
    };
    spi::look_up_latest(
        "SELECT version, content, CASE WHEN content IS NULL THEN file END, title, media_type, owner, uri,
                to_jsonb(date_trunc('second', updated_at) AT TIME ZONE 'UTC') #>> '{}', id
         FROM rag.document
         WHERE domain_id = $1 AND id = ANY ($2)
           AND (id = $3 OR coalesce(octet_length(content), octet_length(file), 0) <= $4)",
        args,
        load,
    )
}

/// Domain, version and status of a document that the caller sees.
pub(crate) fn locate(document: Id) -> Result<Option<(Id, i64, String)>> {
    spi::read_latest_one(
        "SELECT d.domain_id, d.version, d.status FROM rag.document d JOIN rag.domain dm ON dm.id = d.domain_id
         WHERE d.id = $1 AND dm.collection_id IS NOT NULL",
        vec![uuid(document).into()],
        |row| Ok((id(row.require(1)?), row.require(2)?, row.require(3)?)),
    )
}

/// What came of an attempt to lock a document in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionLock {
    Held,
    /// Somebody else holds it, or is changing it right now.
    Busy,
    /// It has another version, or is gone.
    Changed,
}

/// Locks a document against changes until the transaction ends, if it still has this version. Waits for nobody; whoever
/// refers to the document by a foreign key goes on.
pub(crate) fn lock_version(domain: Id, document: Id, version: i64) -> Result<VersionLock> {
    let locked = lock_versions(domain, &[(document, version)])?;
    Ok(locked.into_iter().next().unwrap_or(VersionLock::Changed))
}

/// [`lock_version`] of documents of a domain, each with its version, in their order.
pub(crate) fn lock_versions(domain: Id, documents: &[(Id, i64)]) -> Result<Vec<VersionLock>> {
    let find = |documents: Vec<Id>, lock: &str| {
        let sql =
            format!("SELECT id, version FROM rag.document WHERE domain_id = $1 AND id = ANY ($2) {lock}");
        let args = vec![uuid(domain).into(), uuids(documents).into()];
        let found = spi::look_up_latest(&sql, args, |row| Ok((id(row.require(1)?), row.require::<i64>(2)?)))?;
        Ok::<HashMap<Id, i64>, Error>(found.into_iter().collect())
    };
    let held = find(documents.iter().map(|(id, _)| *id).collect(), "FOR NO KEY UPDATE SKIP LOCKED")?;
    let others: Vec<Id> = documents.iter().map(|(id, _)| *id).filter(|id| !held.contains_key(id)).collect();
    let others = if others.is_empty() { HashMap::new() } else { find(others, "")? };
    let lock = |(document, version): &(Id, i64)| match held.get(document) {
        Some(found) if found == version => VersionLock::Held,
        Some(_) => VersionLock::Changed,
        None if others.get(document) == Some(version) => VersionLock::Busy,
        None => VersionLock::Changed,
    };
    Ok(documents.iter().map(lock).collect())
}

/// Takes a document out of the way of a new one with the same key that nobody sees who writes the new one: one of a deleted
/// collection is gone, one of another role of the owner's name, such as one that was dropped, is set apart. Elevated.
pub(crate) fn make_way(collection: &str, owner: &str, uri: &str) -> Result<()> {
    let key = || vec![collection.into(), owner.into(), uri.into()];
    let there = spi::read_latest_one(
        "SELECT dm.collection_id IS NULL, dm.owner_role::oid FROM rag.document d JOIN rag.domain dm ON dm.id = d.domain_id
         WHERE d.collection = $1 AND d.owner = $2 AND d.uri = $3",
        key(),
        |row| Ok((row.require::<bool>(1)?, row.require::<Oid>(2)?)),
    )?;
    match there {
        Some((true, _)) => spi::run(
            "DELETE FROM rag.document d USING rag.domain dm
             WHERE d.collection = $1 AND d.owner = $2 AND d.uri = $3 AND dm.id = d.domain_id AND dm.collection_id IS NULL",
            key(),
        ),
        Some((false, role)) if principal::existing_role(owner)? != role => {
            spi::run("SELECT rag.set_apart($1, $2, $3)", key())
        }
        _ => Ok(()),
    }
}

/// What completing a document sets.
pub(crate) struct Completed<'a> {
    pub(crate) document: Id,
    pub(crate) text: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) media_type: &'a str,
    pub(crate) chunks: usize,
    pub(crate) file_metadata: &'a serde_json::Value,
    pub(crate) extracted: &'a serde_json::Map<String, serde_json::Value>,
    pub(crate) uploaded_at: &'a str,
}

/// Marks documents of a domain as done: in one statement, for each goes through the triggers.
pub(crate) fn complete(domain: Id, completed: &[Completed<'_>]) -> Result<()> {
    let json: Vec<(String, String)> = completed
        .iter()
        .map(|c| (c.file_metadata.to_string(), serde_json::to_string(c.extracted).unwrap_or_default()))
        .collect();
    let args = vec![
        uuid(domain).into(),
        uuids(completed.iter().map(|c| c.document)).into(),
        spi::Arg::texts(&completed.iter().map(|c| c.text).collect::<Vec<&str>>()),
        completed.iter().map(|c| c.title.map(str::to_owned)).collect::<Vec<Option<String>>>().into(),
        spi::Arg::texts(&completed.iter().map(|c| c.media_type).collect::<Vec<&str>>()),
        completed.iter().map(|c| c.chunks as i32).collect::<Vec<i32>>().into(),
        spi::Arg::texts(&json.iter().map(|(file, _)| file).collect::<Vec<&String>>()),
        spi::Arg::texts(&json.iter().map(|(_, extracted)| extracted).collect::<Vec<&String>>()),
        spi::Arg::texts(&completed.iter().map(|c| c.uploaded_at).collect::<Vec<&str>>()),
    ];
    spi::run_by_index(
        "UPDATE rag.document d
         SET status = 'done', error = NULL, text = c.text, title = coalesce(d.title, c.title), parsed_title = c.title,
             media_type = coalesce(d.media_type, c.media_type), detected_type = c.media_type, chunks = c.chunks,
             file_metadata = c.file_metadata::jsonb,
             extracted = jsonb_build_object('uploaded_at', c.uploaded_at,
                 'extracted_at', date_trunc('second', clock_timestamp()) AT TIME ZONE 'UTC') || c.extracted::jsonb
         FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[], $8::text[], $9::text[])
              c (id, text, title, media_type, chunks, file_metadata, extracted, uploaded_at)
         WHERE d.domain_id = $1 AND d.id = c.id",
        args,
    )
}

/// Marks a document as failed, if it still has this version.
pub(crate) fn fail(domain: Id, document: Id, version: i64, error: &str) -> Result<()> {
    spi::run(
        "UPDATE rag.document SET status = 'failed', error = $4 WHERE domain_id = $1 AND id = $2 AND version = $3",
        vec![uuid(domain).into(), uuid(document).into(), version.into(), error.into()],
    )
}

/// Whether these domains have documents, and how many are pending: what it costs grows with those alone.
pub(crate) fn pending(domains: &[Id]) -> Result<(bool, i64)> {
    let found = spi::look_up(
        "SELECT EXISTS (SELECT FROM rag.document d WHERE d.domain_id = ANY ($1)),
                (SELECT count(*) FROM rag.document d WHERE d.domain_id = ANY ($1) AND d.status = 'pending')",
        vec![super::uuids(domains.iter().copied()).into()],
        |row| Ok((row.require(1)?, row.require(2)?)),
    )?;
    Ok(found.into_iter().next().unwrap_or((false, 0)))
}

/// How many documents of these domains are in each state: (all, pending).
pub(crate) fn counts(domains: &[Id]) -> Result<(i64, i64)> {
    let found = spi::read_snapshot_one(
        "SELECT count(*), count(*) FILTER (WHERE status = 'pending') FROM rag.document WHERE domain_id = ANY ($1)",
        vec![super::uuids(domains.iter().copied()).into()],
        |row| Ok((row.require(1)?, row.require(2)?)),
    )?;
    Ok(found.unwrap_or((0, 0)))
}
