//! Feedback: what callers say of chunks that they see.

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::{principal, spi};
use rag_core::feedback::Said;
use rag_core::hash::sha256;

/// Most that is read for one search: what was said for the same query first, then the latest.
const MOST_SAID: i64 = 10_000;

/// Most characters of a query that are compared with another one.
const MAX_COMPARED_CHARS: i32 = 1_000;

/// A chunk, and the query that it was shown for.
pub(crate) struct Shown<'a> {
    pub(crate) domain: Id,
    pub(crate) document: Id,
    pub(crate) chunk: Id,
    pub(crate) query: &'a str,
}

/// Notes what an owner says, in place of what they said before; nothing where the document is gone meanwhile. Elevated.
pub(crate) fn put(shown: &Shown<'_>, owner: &str, verdict: i32) -> Result<()> {
    let mut args = key(shown, owner)?;
    args.extend([shown.query.into(), verdict.into()]);
    // Nobody who deletes the document is held up: what is said meanwhile stays without one, and no view shows it.
    spi::run(
        "INSERT INTO rag.feedback AS f (domain_id, document_id, chunk_id, owner, owner_role, query_sha256, query, verdict)
         SELECT d.domain_id, d.id, $3, $4, $5::oid::regrole, $6, $7, $8
         FROM rag.document d WHERE d.domain_id = $1 AND d.id = $2
         ON CONFLICT ON CONSTRAINT feedback_pkey DO UPDATE SET verdict = excluded.verdict, created_at = now()",
        args,
    )
}

/// Forgets what an owner said. Elevated.
pub(crate) fn take_back(shown: &Shown<'_>, owner: &str) -> Result<()> {
    spi::run(
        "DELETE FROM rag.feedback
         WHERE domain_id = $1 AND document_id = $2 AND chunk_id = $3 AND owner = $4 AND owner_role = $5::oid::regrole
           AND query_sha256 = $6",
        key(shown, owner)?,
    )
}

/// What the caller's own principals have said of chunks in domains, with the domain; by index of what is theirs.
pub(crate) fn said_of(domains: &[Id], chunks: &[Id], query: &str) -> Result<Vec<(Id, Said)>> {
    spi::read_snapshot(
        "SELECT f.domain_id, f.chunk_id, pg_catalog.left(f.query, $6), f.query_sha256 = $4, f.verdict
         FROM rag.feedback f
         WHERE f.owner = ANY ($1) AND rag.is_current(f.owner, f.owner_role)
           AND f.chunk_id = ANY ($3) AND f.domain_id = ANY ($2)
         ORDER BY f.query_sha256 = $4 DESC, f.created_at DESC, f.chunk_id, f.query_sha256 LIMIT $5",
        vec![
            principal::current_principals()?.into(),
            uuids(domains.iter().copied()).into(),
            uuids(chunks.iter().copied()).into(),
            sha256(query.as_bytes()).to_vec().into(),
            MOST_SAID.into(),
            MAX_COMPARED_CHARS.into(),
        ],
        |row| {
            let said = Said {
                chunk: id(row.require(2)?),
                query: row.require(3)?,
                is_same_query: row.require(4)?,
                verdict: row.require(5)?,
            };
            Ok((id(row.require(1)?), said))
        },
    )
}

/// The arguments $1 to $6.
fn key(shown: &Shown<'_>, owner: &str) -> Result<Vec<spi::Arg>> {
    let role = principal::existing_role(owner)?;
    Ok(vec![
        uuid(shown.domain).into(),
        uuid(shown.document).into(),
        uuid(shown.chunk).into(),
        owner.into(),
        i64::from(role.to_u32()).into(),
        sha256(shown.query.as_bytes()).to_vec().into(),
    ])
}
