//! The log of answers: what workers write of the notes that answers leave; what is cited in it,
//! and whether that is still as it was.

use super::{Id, id, uuids};
use crate::error::Result;
use crate::pg::{Oid, spi};
use pgrx::Uuid;
use std::collections::HashMap;

/// Writes notes, each a JSON object as text. By workers.
pub(crate) fn write(notes: &[String]) -> Result<()> {
    spi::run(
        "INSERT INTO rag.answer_log (owner, owner_role, answered_at, question, collection, answer, found, reason, method, confidence,
                                     citations, models, prompt_tokens, completion_tokens, milliseconds, stages, shortened)
         SELECT n->>'owner', (n->>'owner_role')::oid::regrole,
                timestamptz '2000-01-01 00:00:00+00' + (n->>'at')::bigint * interval '1 microsecond',
                n->>'question', n->>'collection', n->>'answer', (n->>'found')::boolean, n->>'reason', n->>'method',
                (n->>'confidence')::double precision, n->'citations', n->'models', (n->>'prompt_tokens')::integer,
                (n->>'completion_tokens')::integer, (n->>'milliseconds')::double precision, n->'stages',
                ARRAY(SELECT s.part FROM jsonb_array_elements_text(n->'shortened') WITH ORDINALITY s (part, place) ORDER BY s.place)
         FROM unnest($1::text[]) t (note), LATERAL (SELECT t.note::jsonb) j (n)",
        vec![spi::Arg::texts(notes)],
    )
}

/// A document that an answer cites.
pub(crate) struct CitedDocument {
    pub(crate) domain: Id,
    /// In hexadecimal; `None` where what was cited may be an earlier form of it: until a change is processed, that is what
    /// answers are made of.
    pub(crate) sha256: Option<String>,
}

/// Those of the documents that the caller sees, by id.
pub(crate) fn cited_documents(
    domains: &[Id],
    documents: impl IntoIterator<Item = Id>,
) -> Result<HashMap<Id, CitedDocument>> {
    let rows = spi::read_snapshot(
        "SELECT d.id, d.domain_id, CASE WHEN d.status = 'done' THEN encode(d.sha256, 'hex') END
         FROM rag.document d WHERE d.domain_id = ANY ($1) AND d.id = ANY ($2)",
        vec![uuids(domains.iter().copied()).into(), uuids(documents).into()],
        |row| {
            let document = CitedDocument { domain: id(row.require(2)?), sha256: row.get(3) };
            Ok((id(row.require::<Uuid>(1)?), document))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// All owners that the log has rows of, each once. Elevated.
pub(crate) fn owners() -> Result<Vec<String>> {
    // From one owner to the next by index: the log may have many rows of each.
    spi::read_snapshot(
        "WITH RECURSIVE o (owner) AS (
             (SELECT l.owner FROM rag.answer_log l ORDER BY l.owner LIMIT 1)
             UNION ALL
             SELECT (SELECT l.owner FROM rag.answer_log l WHERE l.owner > o.owner ORDER BY l.owner LIMIT 1)
             FROM o WHERE o.owner IS NOT NULL)
         SELECT o.owner FROM o WHERE o.owner IS NOT NULL",
        vec![],
        |row| row.require(1),
    )
}

/// Which citation of which answer.
pub(crate) struct CitationKey<'a> {
    pub(crate) owner: &'a str,
    pub(crate) owner_role: Oid,
    pub(crate) answer: Uuid,
    pub(crate) n: i32,
}

/// Whether the cited document has changed, or is gone; `None` where that is not known, or there is no such citation. As the
/// caller, or elevated with `sees_all`.
///
/// A caller does not learn of what they do not see any more: a document that is not there is gone only if it would have
/// to be seen, because all of its domain is, or because the domain was their own.
pub(crate) fn is_stale(key: &CitationKey<'_>, sees_all: bool) -> Result<Option<bool>> {
    let found = spi::read_snapshot_one(
        "SELECT CASE WHEN d.id IS NOT NULL THEN d.sha256 <> decode(c.citation->>'sha256', 'hex')
                     WHEN k.domain_id IS NULL THEN NULL
                     WHEN $5 THEN true
                     WHEN k.domain_id < 'ffffffff-ffff-8000-8000-000000000000' AND rag.sees_whole(k.domain_id) THEN true
                     WHEN (c.citation->>'own')::boolean AND NOT EXISTS (SELECT FROM rag.domain m WHERE m.id = k.domain_id) THEN true
                END
         FROM rag.answer_log l
         CROSS JOIN LATERAL jsonb_array_elements(l.citations) c (citation)
         CROSS JOIN LATERAL (SELECT (c.citation->>'domain_id')::uuid, (c.citation->>'document_id')::uuid) k (domain_id, document_id)
         LEFT JOIN rag.document d ON d.domain_id = k.domain_id AND d.id = k.document_id
         WHERE l.owner = $1 AND l.owner_role = $2::oid::regrole AND l.id = $3 AND (c.citation->>'n')::integer = $4",
        vec![
            key.owner.to_owned().into(),
            key.owner_role.into(),
            key.answer.into(),
            key.n.into(),
            sees_all.into(),
        ],
        |row| Ok(row.get::<bool>(1)),
    )?;
    Ok(found.flatten())
}
