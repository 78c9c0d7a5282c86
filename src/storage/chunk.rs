//! Chunks with their sections: what the keyword index has of them, which a caller sees, and showing hits. Writing them is left to
//! [`super::replacement`].

use super::among::Among;
use super::{ByDomain, Id, IdMap, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use crate::pg::stored_jsonb::StoredJsonb;
use pgrx::Uuid;
use rag_core::chunk::{indexed_title, table_header};
use rag_core::document::PreparedDocument;
use rag_core::hash::sha256;
use std::collections::HashMap;

/// SHA-256 of what is embedded for each chunk.
pub(crate) fn hashes(prepared: &PreparedDocument) -> Vec<[u8; 32]> {
    prepared.chunks.iter().map(|c| sha256(prepared.embedded_text(c).as_bytes())).collect()
}

/// Those of the ids that a domain has as chunks. For merges.
pub(crate) fn alive(domain: Id, ids: &[Id]) -> Result<Vec<Id>> {
    spi::look_up_latest(
        "SELECT c.id FROM unnest($2::uuid[]) h (id) JOIN rag.chunk c ON c.domain_id = $1 AND c.id = h.id",
        vec![uuid(domain).into(), uuids(ids.iter().copied()).into()],
        |row| row.require::<Uuid>(1).map(id),
    )
}

/// Ids of the chunks of domains that the caller sees.
pub(crate) fn ids_of_domains(domains: &[Id]) -> Result<Vec<Id>> {
    spi::read_snapshot(
        "SELECT id FROM rag.chunk WHERE domain_id = ANY ($1)",
        vec![uuids(domains.iter().copied()).into()],
        |row| row.require::<Uuid>(1).map(id),
    )
}

/// Chunks of documents, each with its domain.
pub(crate) fn of_documents(documents: &ByDomain) -> Result<IdMap<Id>> {
    let chunks = documents.rows("chunk", "document_id")?;
    Ok(chunks.into_iter().map(|(domain, chunk)| (chunk, domain)).collect())
}

/// Of each of some domains the first chunks, by id, from a place on; not more than so many.
pub(crate) fn some_of_domains(places: &[(Id, Id)], at_most: usize) -> Result<Vec<Id>> {
    spi::look_up(
        "SELECT c.id FROM unnest($1::uuid[], $2::uuid[]) p (domain_id, place)
         CROSS JOIN LATERAL (SELECT c.id FROM rag.chunk c WHERE c.domain_id = p.domain_id AND c.id >= p.place
                             ORDER BY c.id LIMIT $3) c",
        vec![
            uuids(places.iter().map(|(domain, _)| *domain)).into(),
            uuids(places.iter().map(|(_, place)| *place)).into(),
            (at_most as i64).into(),
        ],
        |row| row.require::<Uuid>(1).map(id),
    )
}

const INDEXED: &str = "SELECT c.id, d.title, s.header_path, c.content, c.context
     FROM rag.chunk c
     JOIN rag.section s ON s.domain_id = c.domain_id AND s.id = c.section_id
     JOIN rag.document d ON d.domain_id = c.domain_id AND d.id = c.document_id
     WHERE c.domain_id = $1";

/// Id, title with headings, and text of those of the chunks that a domain has, as the keyword index has them, with what was
/// committed last.
pub(crate) fn indexed_texts(domain: Id, chunks: &[Id]) -> Result<Vec<(Id, String, String)>> {
    spi::look_up_latest(
        &format!("{INDEXED} AND c.id = ANY ($2) ORDER BY c.document_id, c.ordinal"),
        vec![uuid(domain).into(), uuids(chunks.iter().copied()).into()],
        indexed_of_row,
    )
}

/// [`indexed_texts`] of all chunks of a domain, under the active snapshot. Elevated.
pub(crate) fn indexed_texts_of_snapshot(domain: Id) -> Result<Vec<(Id, String, String)>> {
    let statement = format!("{INDEXED} ORDER BY c.document_id, c.ordinal");
    spi::read_snapshot(&statement, vec![uuid(domain).into()], indexed_of_row)
}

fn indexed_of_row(row: &spi::Row) -> Result<(Id, String, String)> {
    let title: Option<String> = row.get(2);
    let headings: Vec<String> = row.require(3)?;
    Ok((
        id(row.require(1)?),
        indexed_title(title.as_deref().unwrap_or_default(), &headings, &row.require::<String>(5)?),
        row.require(4)?,
    ))
}

/// Those of the ids that are chunks of the domains.
pub(crate) fn existing(domains: &[Id], ids: &[Id]) -> Result<Vec<Id>> {
    found(domains, ids, "")
}

/// Those of the ids that are chunks of the domains, and visible with their section and document. Policies that an
/// administrator adds may hide one of these and not the others.
pub(crate) fn showable(domains: &[Id], ids: &[Id]) -> Result<Vec<Id>> {
    let parts = "JOIN rag.section s ON s.domain_id = c.domain_id AND s.id = c.section_id
                 JOIN rag.document d ON d.domain_id = c.domain_id AND d.id = c.document_id";
    found(domains, ids, parts)
}

/// Those of the ids that are chunks of the domains, with what is joined to these.
fn found(domains: &[Id], ids: &[Id], joined: &str) -> Result<Vec<Id>> {
    let among = Among::looked_up(domains);
    among.look_up(
        &format!(
            "SELECT c.domain_id, c.id FROM unnest($2::uuid[]) h (id) JOIN rag.chunk c ON c.id = h.id {joined} WHERE {}",
            among.condition("c.domain_id")
        ),
        [uuids(ids.iter().copied()).into()],
        |row| row.require::<Uuid>(2).map(id),
    )
}

/// Where the chunks of domains are that [`showable`] lets through.
const SHOWABLE: &str = "FROM rag.chunk c
     JOIN rag.section s ON s.domain_id = c.domain_id AND s.id = c.section_id
     JOIN rag.document d ON d.domain_id = c.domain_id AND d.id = c.document_id
     WHERE c.domain_id = ANY ($1)";

/// [`showable`] of all chunks of domains.
pub(crate) fn showable_of_domains(domains: &[Id]) -> Result<Vec<Id>> {
    spi::read_snapshot(
        &format!("SELECT c.id {SHOWABLE}"),
        vec![uuids(domains.iter().copied()).into()],
        |row| row.require::<Uuid>(1).map(id),
    )
}

/// How many [`showable_of_domains`] has of each domain; none of those that have none.
pub(crate) fn count_showable(domains: &[Id]) -> Result<Vec<(Id, usize)>> {
    spi::read_snapshot(
        &format!("SELECT c.domain_id, count(*) {SHOWABLE} GROUP BY c.domain_id"),
        vec![uuids(domains.iter().copied()).into()],
        |row| Ok((id(row.require(1)?), row.require::<i64>(2)? as usize)),
    )
}

/// A chunk as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct ShownChunk {
    pub(crate) domain: Id,
    pub(crate) id: Id,
    pub(crate) document: Id,
    pub(crate) section: Id,
    pub(crate) content: String,
    /// Header row and delimiter row of the table within which the content begins.
    pub(crate) table_header: Option<String>,
    pub(crate) char_from: i32,
    pub(crate) char_to: i32,
    pub(crate) page_from: Option<i32>,
    pub(crate) page_to: Option<i32>,
    pub(crate) header_path: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) metadata: StoredJsonb,
}

/// Those of the chunks that the caller may see, by id.
pub(crate) fn show(domains: &[Id], ids: &[Id]) -> Result<HashMap<Id, ShownChunk>> {
    let among = Among::looked_up(domains);
    let chunks = among.look_up(
        &format!(
            "SELECT c.domain_id, c.id, c.document_id, c.section_id, c.content, c.char_from, c.char_to, c.page_from,
                    c.page_to, s.header_path, d.title, d.uri, d.metadata, c.context
             FROM unnest($2::uuid[]) h (id)
             JOIN rag.chunk c ON c.id = h.id
             JOIN rag.section s ON s.domain_id = c.domain_id AND s.id = c.section_id
             JOIN rag.document d ON d.domain_id = c.domain_id AND d.id = c.document_id
             WHERE {}",
            among.condition("c.domain_id")
        ),
        [uuids(ids.iter().copied()).into()],
        |row| {
            Ok(ShownChunk {
                domain: id(row.require(1)?),
                id: id(row.require(2)?),
                document: id(row.require(3)?),
                section: id(row.require(4)?),
                content: row.require(5)?,
                table_header: table_header(&row.require::<String>(14)?).map(str::to_owned),
                char_from: row.require(6)?,
                char_to: row.require(7)?,
                page_from: row.get(8),
                page_to: row.get(9),
                header_path: row.require(10)?,
                title: row.get(11),
                uri: row.get(12),
                metadata: row.require(13)?,
            })
        },
    )?;
    Ok(chunks.into_iter().map(|chunk| (chunk.id, chunk)).collect())
}

/// What of a document is taken around a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Around {
    /// Its section.
    Section,
    /// So many chunks before and after it.
    Neighbours(i32),
}

/// A chunk with what stands around it.
pub(crate) struct Surroundings {
    pub(crate) content: String,
    /// Characters of the document's text before it, and before its end.
    pub(crate) chars: (i32, i32),
    /// First and last page.
    pub(crate) pages: (Option<i32>, Option<i32>),
    /// As many for each character as the chunk has.
    pub(crate) tokens: i64,
}

/// What stands around those of the chunks that the caller may see, by their ids.
pub(crate) fn surroundings(domains: &[Id], ids: &[Id], around: Around) -> Result<HashMap<Id, Surroundings>> {
    let (span, neighbours) = match around {
        Around::Section => (
            "SELECT s.char_from, s.char_to, s.page_from, s.page_to FROM rag.section s
             WHERE s.domain_id = c.domain_id AND s.id = c.section_id",
            0,
        ),
        Around::Neighbours(count) => (
            "SELECT min(n.char_from) AS char_from, max(n.char_to) AS char_to, min(n.page_from) AS page_from,
                    max(n.page_to) AS page_to
             FROM rag.chunk n
             WHERE n.domain_id = c.domain_id AND n.document_id = c.document_id
               AND n.ordinal BETWEEN c.ordinal - $3 AND c.ordinal + $3",
            count,
        ),
    };
    let among = Among::looked_up(domains);
    let rows = among.look_up(
        &format!(
            "SELECT c.domain_id, c.id, substr(d.text, w.char_from + 1, w.char_to - w.char_from), w.char_from, w.char_to, w.page_from,
                    w.page_to, c.tokens::bigint * (w.char_to - w.char_from) / greatest(c.char_to - c.char_from, 1)
             FROM unnest($2::uuid[]) h (id)
             JOIN rag.chunk c ON c.id = h.id
             JOIN rag.document d ON d.domain_id = c.domain_id AND d.id = c.document_id, LATERAL ({span}) w
             WHERE {} AND $3 IS NOT NULL",
            among.condition("c.domain_id")
        ),
        [uuids(ids.iter().copied()).into(), neighbours.into()],
        |row| {
            Ok((
                id(row.require(2)?),
                Surroundings {
                    content: row.require(3)?,
                    chars: (row.require(4)?, row.require(5)?),
                    pages: (row.get(6), row.get(7)),
                    tokens: row.require(8)?,
                },
            ))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// The text of a section, at most `max_chars` characters around a chunk of it, and the characters of the
/// document's text before it.
pub(crate) fn section_text(chunk: &ShownChunk, max_chars: i32) -> Result<Option<(String, i32)>> {
    let slack = (max_chars - (chunk.char_to - chunk.char_from)).max(0) / 2;
    spi::read_snapshot_one(
        "SELECT substr(d.text, w.char_from + 1, w.char_to - w.char_from), w.char_from
         FROM rag.section s
         JOIN rag.document d ON d.domain_id = s.domain_id AND d.id = s.document_id,
         LATERAL (SELECT greatest(s.char_from, $3 - $5) AS char_from, least(s.char_to, $4 + $5) AS char_to) w
         WHERE s.domain_id = $1 AND s.id = $2",
        vec![
            uuid(chunk.domain).into(),
            uuid(chunk.section).into(),
            chunk.char_from.into(),
            chunk.char_to.into(),
            slack.into(),
        ],
        |row| Ok((row.require(1)?, row.require(2)?)),
    )
}

/// Where a chunk stands in its document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkPlace {
    pub(crate) chunk: Id,
    pub(crate) char_from: i32,
    pub(crate) char_to: i32,
    pub(crate) page_from: Option<i32>,
    pub(crate) page_to: Option<i32>,
}

/// Most chunks before and after another in which a text around it may stand.
const PLACES: i32 = 128;

/// Where the chunks stand, in their order, that have a part of the document's text between two characters around one of them.
pub(crate) fn places_around(chunk: &ShownChunk, char_from: i32, char_to: i32) -> Result<Vec<ChunkPlace>> {
    spi::read_snapshot(
        "SELECT n.id, n.char_from, n.char_to, n.page_from, n.page_to
         FROM rag.chunk c
         JOIN rag.chunk n ON n.domain_id = c.domain_id AND n.document_id = c.document_id
                         AND n.ordinal BETWEEN c.ordinal - $3 AND c.ordinal + $3
         WHERE c.domain_id = $1 AND c.id = $2 AND n.char_from < $5 AND $4 < n.char_to ORDER BY n.ordinal",
        vec![
            uuid(chunk.domain).into(),
            uuid(chunk.id).into(),
            PLACES.into(),
            char_from.into(),
            char_to.into(),
        ],
        |row| {
            Ok(ChunkPlace {
                chunk: id(row.require(1)?),
                char_from: row.require(2)?,
                char_to: row.require(3)?,
                page_from: row.get(4),
                page_to: row.get(5),
            })
        },
    )
}
