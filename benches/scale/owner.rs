//! Owners, and the documents that they get.

use crate::made::{Maker, Source};
use rag_benches::{BulkDocument, BulkRows, Library, Place, digest, parsed_uuid, uuid, without_triggers};
use rag_tests::{Session, literal};

/// Chunks of a document.
const CHUNKS: usize = 10;

/// Chunks of the largest segment: merging leaves those alone that have as many.
pub(crate) const SEGMENT_CHUNKS: usize = 50_000;

/// Documents of it.
const LARGEST_SEGMENT: usize = SEGMENT_CHUNKS / CHUNKS;

/// Documents of the smallest segment but the last.
const SMALLEST_SEGMENT: usize = 10;

/// Documents whose metadata has each number of `part`: one in so many.
pub(crate) const PARTS: usize = 100;

/// A role with documents in a domain of its own.
pub(crate) struct Owner {
    /// What figures call it.
    pub(crate) name: &'static str,
    /// Where its documents are.
    pub(crate) place: Place,
    /// The vector space of its chunks.
    pub(crate) space: u128,
    /// A session of the role.
    pub(crate) session: Session,
    /// Tells those of one name apart.
    number: usize,
}

impl Owner {
    /// An owner of one ingested document, which makes the domain and the vector space.
    pub(crate) fn new(library: &Library<'_>, role: &str, name: &'static str) -> Self {
        let mut session = library.database().connect(role);
        session.ingest("The first of many notes.", "first");
        let owner = format!("role:{role}");
        let found = library.admin().rows(&format!(
            "SELECT s.id, d.id FROM rag.vector_space s, rag.domain d WHERE d.owner = {}",
            literal(&owner)
        ));
        let [Some(space), Some(domain)] = &found[0][..] else { panic!("no domain of {owner}") };
        let place = Place { domain: parsed_uuid(domain), collection: "default".into(), owner };
        Self { name, place, space: parsed_uuid(space), session, number: 0 }
    }

    /// One of several of its name, with chunks of its own.
    pub(crate) fn numbered(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// Gives it so many chunks, always the same ones for its name and number, in segments as merges leave them.
    pub(crate) fn fill(&mut self, library: &Library<'_>, source: &Source, chunks: usize) {
        self.fill_in(library, source, chunks, &segment_sizes(chunks / CHUNKS));
    }

    /// As [`Self::fill`], in so many segments of one size.
    pub(crate) fn fill_evenly(
        &mut self,
        library: &Library<'_>,
        source: &Source,
        chunks: usize,
        segments: usize,
    ) {
        self.fill_in(library, source, chunks, &vec![chunks / CHUNKS / segments; segments]);
    }

    /// Segments have so many documents each.
    fn fill_in(&mut self, library: &Library<'_>, source: &Source, chunks: usize, sizes: &[usize]) {
        eprintln!("{chunks} chunks for {}", self.name);
        let mut maker = Maker::seeded(source, u64::from(self.name.as_bytes()[0]) + 256 * self.number as u64);
        let mut admin = library.admin();
        let mut made = 0;
        for documents in sizes.iter().copied() {
            let documents: Vec<BulkDocument> =
                (made..made + documents).map(|n| self.document(&mut maker, n)).collect();
            let mut rows = BulkRows::default();
            for document in &documents {
                rows.add_document(&self.place, document);
                for (chunk, _) in &document.chunks {
                    rows.add_embedding(&self.place, self.space, *chunk, &maker.vector());
                }
            }
            rows.add_segment(&self.place, self.id("segment", made), &documents);
            let mut transaction = admin.client().transaction().unwrap();
            without_triggers(&mut transaction);
            rows.copy(&mut transaction);
            transaction.commit().unwrap();
            made += documents.len();
        }
        // As triggers do it.
        admin.run(&format!(
            "INSERT INTO rag.metadata_value (domain_id, document_id, key, ordinal, text_value, number_value, boolean_value, time_value)
             SELECT d.domain_id, d.id, m.* FROM rag.document d, rag.metadata_rows(d.metadata, d.extracted,
                 rag.document_fields(d.title, d.uri, d.media_type, d.collection, d.created_at)) m
             WHERE d.domain_id = '{}' AND d.uri <> 'first'",
            uuid(self.place.domain)
        ));
        for table in ["document", "section", "chunk", "embedding", "segment", "metadata_value"] {
            admin.run(&format!("VACUUM ANALYZE rag.{table}"));
        }
    }

    fn document(&self, maker: &mut Maker<'_>, n: usize) -> BulkDocument {
        let chunk = |at| (self.id("chunk", n * CHUNKS + at), maker.text());
        let chunks = (0..CHUNKS).map(chunk).collect();
        BulkDocument {
            id: self.id("document", n),
            title: maker.title(),
            uri: format!("made {n}"),
            metadata: format!(r#"{{"part": {}}}"#, n % PARTS),
            chunks,
        }
    }

    /// An id in no order, as chunks have them.
    fn id(&self, kind: &str, n: usize) -> u128 {
        let digest = digest(format!("{} {} {kind} {n}", self.name, self.number).as_bytes());
        u128::from_be_bytes(digest[..16].try_into().unwrap())
    }
}

/// Documents of each segment: full ones, and for the rest ever smaller ones.
fn segment_sizes(mut documents: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    while documents > 0 {
        let size = match documents {
            many if many > LARGEST_SEGMENT => LARGEST_SEGMENT,
            some if some > SMALLEST_SEGMENT => some.div_ceil(4) * 3,
            few => few,
        }
        .min(documents);
        sizes.push(size);
        documents -= size;
    }
    sizes
}
