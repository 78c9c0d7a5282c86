//! Writing sections and chunks of documents in place of those that they had.

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use pgrx::Uuid;
use rag_core::chunk::identities;
use rag_core::document::{Chunk, PreparedDocument, Section};
use std::collections::HashSet;

/// Separates the headings of a path on their way into SQL; not a character of text.
const PATH_SEPARATOR: &str = "\u{1f}";

/// A document whose chunks are replaced.
#[derive(Clone, Copy)]
pub(crate) struct Replacement<'a> {
    pub(crate) document: Id,
    /// The document's title as it will be shown.
    pub(crate) title: &'a str,
    pub(crate) prepared: &'a PreparedDocument,
    /// What [`super::chunk::hashes`] gives of it.
    pub(crate) hashes: &'a [[u8; 32]],
}

/// What replacing a document's chunks came to.
pub(crate) struct Replaced {
    /// Ids of all its chunks, in order.
    pub(crate) ids: Vec<Id>,
    /// Which of them, by position, were not there before.
    pub(crate) inserted: Vec<usize>,
}

/// Makes sections and chunks of documents of a domain what was prepared, and says of each what that came to. Chunks whose id
/// stays keep their rows, vectors and entries of keyword segments; only where they stand is brought up to date. Elevated.
///
/// No document is there twice. Of all of them there is one statement of each kind, so that short ones cost no more than a
/// long one that has as many chunks.
pub(crate) fn replace(domain: Id, replacements: &[Replacement<'_>]) -> Result<Vec<Replaced>> {
    let identified: Vec<Identified<'_>> =
        replacements.iter().map(|replacement| Identified::of(domain, *replacement)).collect();
    let documents: Vec<Id> = replacements.iter().map(|replacement| replacement.document).collect();
    let ids: Vec<Id> = identified.iter().flat_map(|document| &document.ids).copied().collect();
    replace_sections(domain, &documents, &identified)?;
    delete_others(domain, &documents, &ids)?;
    let kept: HashSet<Id> = spi::look_up_latest(
        "SELECT id FROM rag.chunk WHERE domain_id = $1 AND document_id = ANY ($2)",
        vec![uuid(domain).into(), uuids(documents).into()],
        |row| row.require::<Uuid>(1).map(id),
    )?
    .into_iter()
    .collect();
    let (known, inserted): (Vec<Place<'_>>, Vec<Place<'_>>) =
        identified.iter().flat_map(Identified::places).partition(|place| kept.contains(&place.id()));
    if !inserted.is_empty() {
        insert(domain, &inserted)?;
    }
    if !known.is_empty() {
        update(domain, &known)?;
    }
    let replaced = identified.into_iter().map(|Identified { ids, .. }| {
        let inserted = (0..ids.len()).filter(|index| !kept.contains(&ids[*index])).collect();
        Replaced { ids, inserted }
    });
    Ok(replaced.collect())
}

/// Takes away the chunks of documents that are not among these, with their embeddings. EXCEPT, because a plan that is kept might
/// compare each of many chunks with each. Elevated.
pub(super) fn delete_others(domain: Id, documents: &[Id], kept: &[Id]) -> Result<()> {
    let gone = spi::execute(
        "DELETE FROM rag.chunk c
         WHERE c.domain_id = $1 AND c.id = ANY (ARRAY(
             SELECT k.id FROM rag.chunk k WHERE k.domain_id = $1 AND k.document_id = ANY ($2)
             EXCEPT SELECT unnest($3::uuid[])))
         RETURNING id",
        vec![
            uuid(domain).into(),
            uuids(documents.iter().copied()).into(),
            uuids(kept.iter().copied()).into(),
        ],
        |row| row.require::<Uuid>(1),
    )?;
    if gone.is_empty() {
        return Ok(());
    }
    // A statement of its own, which sees vectors that were committed while the chunks were waited for.
    spi::run(
        "WITH embeddings AS (
             DELETE FROM rag.embedding e WHERE e.domain_id = $1 AND e.chunk_id = ANY ($2)
         )
         INSERT INTO rag.deletion_count (domain_id, chunks) VALUES ($1, cardinality($2))",
        vec![uuid(domain).into(), gone.into()],
    )
}

fn replace_sections(domain: Id, documents: &[Id], identified: &[Identified<'_>]) -> Result<()> {
    let ids = || uuids(identified.iter().flat_map(|document| &document.section_ids).copied());
    spi::run(
        "DELETE FROM rag.section s
         WHERE s.domain_id = $1 AND s.id = ANY (ARRAY(
             SELECT k.id FROM rag.section k WHERE k.domain_id = $1 AND k.document_id = ANY ($2)
             EXCEPT SELECT unnest($3::uuid[])))",
        vec![uuid(domain).into(), uuids(documents.iter().copied()).into(), ids().into()],
    )?;
    let sections = || identified.iter().flat_map(Identified::sections);
    let paths: Vec<String> = sections().map(|(_, _, s)| path_text(&s.header_path)).collect();
    spi::run(
        "INSERT INTO rag.section AS k (domain_id, id, document_id, ordinal, header_path, char_from, char_to, page_from, page_to)
         SELECT $1, s.id, s.document_id, s.ordinal, string_to_array(s.path, $10), s.char_from, s.char_to, s.page_from, s.page_to
         FROM unnest($2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[])
              AS s (id, document_id, ordinal, path, char_from, char_to, page_from, page_to)
         ON CONFLICT (domain_id, id) DO UPDATE
             SET ordinal = excluded.ordinal, header_path = excluded.header_path, char_from = excluded.char_from,
                 char_to = excluded.char_to, page_from = excluded.page_from, page_to = excluded.page_to
             WHERE (k.ordinal, k.header_path, k.char_from, k.char_to, k.page_from, k.page_to) IS DISTINCT FROM
                   (excluded.ordinal, excluded.header_path, excluded.char_from, excluded.char_to, excluded.page_from,
                    excluded.page_to)",
        vec![
            uuid(domain).into(),
            ids().into(),
            uuids(sections().map(|(document, ..)| document)).into(),
            sections().map(|(_, ordinal, _)| ordinal as i32).collect::<Vec<_>>().into(),
            spi::Arg::texts(&paths),
            sections().map(|(_, _, s)| s.chars.from as i32).collect::<Vec<_>>().into(),
            sections().map(|(_, _, s)| s.chars.to as i32).collect::<Vec<_>>().into(),
            sections().map(|(_, _, s)| first_page(s.pages)).collect::<Vec<Option<i32>>>().into(),
            sections().map(|(_, _, s)| last_page(s.pages)).collect::<Vec<Option<i32>>>().into(),
            PATH_SEPARATOR.into(),
        ],
    )
}

fn path_text(path: &[String]) -> String {
    path.iter().map(|heading| heading.replace(PATH_SEPARATOR, " ")).collect::<Vec<_>>().join(PATH_SEPARATOR)
}

fn first_page(pages: Option<(u32, u32)>) -> Option<i32> {
    pages.map(|(first, _)| first as i32)
}

fn last_page(pages: Option<(u32, u32)>) -> Option<i32> {
    pages.map(|(_, last)| last as i32)
}

/// A document with the ids of its sections and chunks.
struct Identified<'a> {
    of: Replacement<'a>,
    section_ids: Vec<Id>,
    ids: Vec<Id>,
}

impl<'a> Identified<'a> {
    fn of(domain: Id, of: Replacement<'a>) -> Self {
        let identities = identities(domain.to_be_bytes(), of.document.to_be_bytes(), of.title, of.prepared);
        Self {
            of,
            section_ids: identities.sections.into_iter().map(Id::from_be_bytes).collect(),
            ids: identities.chunks.into_iter().map(Id::from_be_bytes).collect(),
        }
    }

    /// Its sections, each with the document and its position.
    fn sections(&self) -> impl Iterator<Item = (Id, usize, &'a Section)> {
        let Replacement { document, prepared, .. } = self.of;
        prepared.sections.iter().enumerate().map(move |(ordinal, section)| (document, ordinal, section))
    }

    /// Its chunks.
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        (0..self.ids.len()).map(|ordinal| Place { of: self, ordinal })
    }
}

/// A chunk on its way into the table: which document's, and its position there.
#[derive(Clone, Copy)]
struct Place<'a> {
    of: &'a Identified<'a>,
    ordinal: usize,
}

impl<'a> Place<'a> {
    fn id(self) -> Id {
        self.of.ids[self.ordinal]
    }

    fn chunk(self) -> &'a Chunk {
        &self.of.of.prepared.chunks[self.ordinal]
    }

    fn section_id(self) -> Id {
        self.of.section_ids[self.chunk().section]
    }

    fn text(self) -> &'a str {
        self.of.of.prepared.chunk_text(self.chunk())
    }
}

fn insert(domain: Id, places: &[Place<'_>]) -> Result<()> {
    let mut args = standing(domain, places);
    args.extend([
        spi::Arg::texts(&places.iter().map(|p| p.text()).collect::<Vec<_>>()),
        spi::Arg::texts(&places.iter().map(|p| &p.chunk().context).collect::<Vec<_>>()),
        places.iter().map(|p| p.of.of.hashes[p.ordinal].to_vec()).collect::<Vec<_>>().into(),
        uuids(places.iter().map(|p| p.of.of.document)).into(),
    ]);
    spi::run(
        "INSERT INTO rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens,
                                char_from, char_to, page_from, page_to, sha256)
         SELECT $1, c.id, c.document, c.section, c.ordinal, c.content, c.context, c.tokens,
                c.char_from, c.char_to, c.page_from, c.page_to, c.sha256
         FROM unnest($2::uuid[], $3::uuid[], $4::int[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[],
                     $10::text[], $11::text[], $12::bytea[], $13::uuid[])
              AS c (id, section, ordinal, tokens, char_from, char_to, page_from, page_to, content, context, sha256, document)",
        args,
    )
}

fn update(domain: Id, places: &[Place<'_>]) -> Result<()> {
    spi::run(
        "UPDATE rag.chunk k
         SET section_id = c.section, ordinal = c.ordinal, tokens = c.tokens, char_from = c.char_from,
             char_to = c.char_to, page_from = c.page_from, page_to = c.page_to
         FROM unnest($2::uuid[], $3::uuid[], $4::int[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[])
              AS c (id, section, ordinal, tokens, char_from, char_to, page_from, page_to)
         WHERE k.domain_id = $1 AND k.id = c.id
           AND (k.section_id, k.ordinal, k.tokens, k.char_from, k.char_to, k.page_from, k.page_to)
               IS DISTINCT FROM (c.section, c.ordinal, c.tokens, c.char_from, c.char_to, c.page_from, c.page_to)",
        standing(domain, places),
    )
}

/// The arguments $1 to $9 of both: ids, and where each chunk stands.
fn standing(domain: Id, places: &[Place<'_>]) -> Vec<spi::Arg> {
    let chunks = || places.iter().map(|p| p.chunk());
    vec![
        uuid(domain).into(),
        uuids(places.iter().map(|p| p.id())).into(),
        uuids(places.iter().map(|p| p.section_id())).into(),
        places.iter().map(|p| p.ordinal as i32).collect::<Vec<_>>().into(),
        chunks().map(|c| c.tokens as i32).collect::<Vec<_>>().into(),
        chunks().map(|c| c.chars.from as i32).collect::<Vec<_>>().into(),
        chunks().map(|c| c.chars.to as i32).collect::<Vec<_>>().into(),
        chunks().map(|c| first_page(c.pages)).collect::<Vec<Option<i32>>>().into(),
        chunks().map(|c| last_page(c.pages)).collect::<Vec<Option<i32>>>().into(),
    ]
}
