//! Rows of attached tables as documents. Elevated, or for workers.

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;

/// A document that was made of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownRow {
    pub(crate) domain: Id,
    pub(crate) document: Id,
    pub(crate) key: String,
    pub(crate) sha256: Vec<u8>,
    pub(crate) version: String,
}

const COLUMNS: &str = "r.domain_id, r.document_id, r.key, r.sha256, r.row_version";

fn of_row(row: &spi::Row) -> Result<KnownRow> {
    Ok(KnownRow {
        domain: id(row.require(1)?),
        document: id(row.require(2)?),
        key: row.require(3)?,
        sha256: row.require(4)?,
        version: row.require(5)?,
    })
}

/// The documents of these keys. One whose document is missing counts as none: it is made anew.
pub(crate) fn of_keys(collection: Id, keys: &[String]) -> Result<Vec<KnownRow>> {
    spi::look_up_latest(
        &format!(
            "SELECT {COLUMNS} FROM unnest($2::text[]) k (key)
             JOIN rag.attached_row r ON r.collection_id = $1 AND rag.key_hash(r.key) = rag.key_hash(k.key)
             JOIN rag.document d ON d.domain_id = r.domain_id AND d.id = r.document_id"
        ),
        vec![uuid(collection).into(), keys.to_vec().into()],
        of_row,
    )
}

/// The next keys after a position, in the order of their hashes.
pub(crate) fn keys_after(collection: Id, position: Option<&str>, limit: i64) -> Result<Vec<String>> {
    spi::read_latest(
        "SELECT key FROM rag.attached_row
         WHERE collection_id = $1 AND rag.key_hash(key) > coalesce(rag.key_hash($2), '')
         ORDER BY rag.key_hash(key) LIMIT $3",
        vec![uuid(collection).into(), position.map(str::to_owned).into(), limit.into()],
        |row| row.require::<String>(1),
    )
}

/// All keys of a collection.
pub(crate) fn all_keys(collection: Id) -> Result<Vec<String>> {
    spi::read_latest(
        "SELECT key FROM rag.attached_row WHERE collection_id = $1",
        vec![uuid(collection).into()],
        |row| row.require::<String>(1),
    )
}

/// Notes that rows have new versions with the same content: (domain, document, version).
pub(crate) fn set_versions(rows: &[(Id, Id, String)]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    spi::run_by_index(
        "UPDATE rag.attached_row r SET row_version = n.version
         FROM unnest($1::uuid[], $2::uuid[], $3::text[]) n (domain_id, document_id, version)
         WHERE r.domain_id = n.domain_id AND r.document_id = n.document_id",
        vec![
            uuids(rows.iter().map(|r| r.0)).into(),
            uuids(rows.iter().map(|r| r.1)).into(),
            rows.iter().map(|r| r.2.clone()).collect::<Vec<_>>().into(),
        ],
    )
}

/// A row to be stored as a document.
pub(crate) struct NewRow {
    pub(crate) domain: Id,
    pub(crate) document: Id,
    pub(crate) owner: String,
    pub(crate) key: String,
    pub(crate) key_columns: serde_json::Value,
    pub(crate) sha256: Vec<u8>,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) uri: String,
    pub(crate) media_type: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) file: Option<Vec<u8>>,
    pub(crate) content_sha256: Vec<u8>,
    pub(crate) metadata: serde_json::Value,
    /// Why it cannot become a document.
    pub(crate) refusal: Option<Refusal>,
}

/// Why a row is no document.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) sqlstate: String,
    pub(crate) error: String,
}

fn column<T>(rows: &[NewRow], value: impl Fn(&NewRow) -> T) -> spi::Arg
where
    Vec<T>: Into<spi::Arg>,
{
    rows.iter().map(value).collect::<Vec<T>>().into()
}

fn note(collection: Id, rows: &[NewRow]) -> Result<()> {
    spi::run(
        "INSERT INTO rag.attached_row AS r (domain_id, document_id, collection_id, key, key_columns, sha256, row_version)
         SELECT n.domain_id, n.document_id, $1, n.key, n.key_columns::jsonb, n.sha256, n.version
         FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::text[])
              n (domain_id, document_id, key, key_columns, sha256, version)
         ON CONFLICT (collection_id, rag.key_hash(key)) DO UPDATE
             SET domain_id = excluded.domain_id, document_id = excluded.document_id, key_columns = excluded.key_columns,
                 sha256 = excluded.sha256, row_version = excluded.row_version",
        vec![
            uuid(collection).into(),
            column(rows, |r| uuid(r.domain)),
            column(rows, |r| uuid(r.document)),
            column(rows, |r| r.key.clone()),
            column(rows, |r| r.key_columns.to_string()),
            column(rows, |r| r.sha256.clone()),
            column(rows, |r| r.version.clone()),
        ],
    )
}

/// Stores rows as new documents of a collection, in the name by which owners write it.
pub(crate) fn insert(collection: Id, collection_owner: &str, name: &str, rows: &[NewRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    spi::run(
        "INSERT INTO rag.document (domain_id, id, collection, owner, title, uri, media_type, content, file, metadata, sha256,
                                   status, error, chunks)
         SELECT n.domain_id, n.id, n.collection, n.owner, n.title, n.uri, n.media_type, n.content, n.file,
                n.metadata::jsonb, n.sha256, CASE WHEN n.refusal IS NULL THEN 'pending' ELSE 'failed' END, n.refusal,
                CASE WHEN n.refusal IS NOT NULL THEN 0 END
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                     $9::bytea[], $10::text[], $11::bytea[], $12::text[])
              n (domain_id, id, collection, owner, title, uri, media_type, content, file, metadata, sha256, refusal)",
        vec![
            column(rows, |r| uuid(r.domain)),
            column(rows, |r| uuid(r.document)),
            column(rows, |r| name_for(&r.owner, collection_owner, name)),
            column(rows, |r| r.owner.clone()),
            column(rows, |r| r.title.clone()),
            column(rows, |r| Some(r.uri.clone())),
            column(rows, |r| r.media_type.clone()),
            column(rows, |r| r.content.clone()),
            column(rows, |r| r.file.clone()),
            column(rows, |r| r.metadata.to_string()),
            column(rows, |r| r.content_sha256.clone()),
            column(rows, |r| r.refusal.as_ref().map(|refusal| refusal.error.clone())),
        ],
    )?;
    spi::run_by_index(
        "INSERT INTO rag.job (domain_id, document_id, version, state, tries, finished_at, chunks, sqlstate, error)
         SELECT d.domain_id, d.id, d.version, 'failed', 1, clock_timestamp(), 0, n.sqlstate, d.error
         FROM unnest($1::uuid[], $2::uuid[], $3::text[]) n (domain_id, id, sqlstate)
         JOIN rag.document d ON d.domain_id = n.domain_id AND d.id = n.id
         WHERE d.status = 'failed'",
        vec![
            column(rows, |r| uuid(r.domain)),
            column(rows, |r| uuid(r.document)),
            column(rows, |r| r.refusal.as_ref().map(|refusal| refusal.sqlstate.clone())),
        ],
    )?;
    note(collection, rows)
}

/// Writes changed rows into their documents.
pub(crate) fn update(collection: Id, rows: &[NewRow], has_title: bool) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    // URIs are unique: two rows may have exchanged theirs.
    spi::run_by_index(
        "UPDATE rag.document d SET uri = NULL
         FROM unnest($1::uuid[], $2::uuid[], $3::text[]) n (domain_id, id, uri)
         WHERE d.domain_id = n.domain_id AND d.id = n.id AND d.uri <> n.uri",
        vec![
            column(rows, |r| uuid(r.domain)),
            column(rows, |r| uuid(r.document)),
            column(rows, |r| Some(r.uri.clone())),
        ],
    )?;
    spi::run_by_index(
        "UPDATE rag.document d
         SET title = CASE WHEN $8 THEN n.title ELSE d.title END, uri = n.uri,
             media_type = coalesce(n.media_type, d.media_type), content = n.content, file = n.file,
             metadata = n.metadata::jsonb
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $9::text[])
              n (domain_id, id, title, uri, media_type, content, file, metadata)
         WHERE d.domain_id = n.domain_id AND d.id = n.id",
        vec![
            column(rows, |r| uuid(r.domain)),
            column(rows, |r| uuid(r.document)),
            column(rows, |r| r.title.clone()),
            column(rows, |r| Some(r.uri.clone())),
            column(rows, |r| r.media_type.clone()),
            column(rows, |r| r.content.clone()),
            column(rows, |r| r.file.clone()),
            has_title.into(),
            column(rows, |r| r.metadata.to_string()),
        ],
    )?;
    note(collection, rows)
}

/// Deletes documents whose row is gone, with all that was made of them.
pub(crate) fn delete(rows: &[(Id, Id)]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let args = || vec![uuids(rows.iter().map(|r| r.0)).into(), uuids(rows.iter().map(|r| r.1)).into()];
    spi::run_by_index(
        "DELETE FROM rag.document d USING unnest($1::uuid[], $2::uuid[]) g (domain_id, id)
         WHERE d.domain_id = g.domain_id AND d.id = g.id",
        args(),
    )?;
    spi::run_by_index(
        "DELETE FROM rag.attached_row r USING unnest($1::uuid[], $2::uuid[]) g (domain_id, id)
         WHERE r.domain_id = g.domain_id AND r.document_id = g.id",
        args(),
    )
}

/// Deletes documents by the keys of their rows, also where one of the two is missing.
pub(crate) fn delete_keys(collection: Id, keys: &[String]) -> Result<()> {
    spi::run_by_index(
        "WITH gone AS (
             DELETE FROM rag.attached_row r USING (SELECT DISTINCT key FROM unnest($2::text[]) k (key)) k
             WHERE r.collection_id = $1 AND rag.key_hash(r.key) = rag.key_hash(k.key)
             RETURNING r.domain_id, r.document_id)
         DELETE FROM rag.document d USING gone WHERE d.domain_id = gone.domain_id AND d.id = gone.document_id",
        vec![uuid(collection).into(), keys.to_vec().into()],
    )
}

/// Takes the URIs of these rows from other documents of the collection: no other row has one of them now, so what
/// has it is of a row that was changed, and is to be written anew even if that is changed back.
pub(crate) fn release_uris(collection_owner: &str, name: &str, rows: &[NewRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    spi::run_by_index(
        "WITH released AS (
             UPDATE rag.document d SET uri = NULL
             FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) n (collection, owner, uri, id)
             WHERE d.collection = n.collection AND d.owner = n.owner AND d.uri = n.uri AND d.id <> n.id
             RETURNING d.domain_id, d.id)
         UPDATE rag.attached_row r SET sha256 = '', row_version = '' FROM released
         WHERE r.domain_id = released.domain_id AND r.document_id = released.id",
        vec![
            column(rows, |r| name_for(&r.owner, collection_owner, name)),
            column(rows, |r| r.owner.clone()),
            column(rows, |r| Some(r.uri.clone())),
            column(rows, |r| uuid(r.document)),
        ],
    )
}

/// A collection's name as the owner of a row writes it.
pub(crate) fn name_for(owner: &str, collection_owner: &str, name: &str) -> String {
    if owner == collection_owner { name.to_owned() } else { format!("{collection_owner}/{name}") }
}

/// The row behind a document, under the active snapshot.
pub(crate) fn of_document(domain: Id, document: Id) -> Result<Option<KnownRow>> {
    spi::read_snapshot_one(
        &format!("SELECT {COLUMNS} FROM rag.attached_row r WHERE r.domain_id = $1 AND r.document_id = $2"),
        vec![uuid(domain).into(), uuid(document).into()],
        of_row,
    )
}

/// Whether a domain has at most so many rows, under the active snapshot.
pub(crate) fn at_most(domain: Id, rows: i64) -> Result<bool> {
    let found = spi::read_snapshot_one(
        "SELECT count(*) <= $2 FROM (SELECT FROM rag.attached_row WHERE domain_id = $1 LIMIT $2 + 1) r",
        vec![uuid(domain).into(), rows.into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(true))
}

/// All rows of a domain, under the active snapshot.
pub(crate) fn of_domain(domain: Id) -> Result<Vec<KnownRow>> {
    spi::read_snapshot(
        &format!("SELECT {COLUMNS} FROM rag.attached_row r WHERE r.domain_id = $1"),
        vec![uuid(domain).into()],
        of_row,
    )
}
