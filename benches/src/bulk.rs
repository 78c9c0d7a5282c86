//! Documents with their chunks, embeddings and keyword segments as ingestion would leave them, made here and copied in:
//! a collection that would take a day to ingest stands within minutes.
//!
//! Rows are gathered in memory and written by COPY, with triggers off. Metadata and the rows of collections are left to
//! the caller.

use crate::digest;
use postgres::Transaction;
use rag_bm25::{Entry, Language};
use std::fmt::Write as _;
use std::io::Write as _;

/// Most bytes of one row of a segment, as in the extension.
const PART_BYTES: usize = 4 * 1024 * 1024;

/// What stands between two chunks of a document's text.
const BREAK: &str = "\n\n";

/// Whose the documents are.
#[derive(Debug, Clone)]
pub struct Place {
    /// Id of the domain.
    pub domain: u128,
    /// Name of the collection, as documents have it.
    pub collection: String,
    /// The owner as a principal.
    pub owner: String,
}

/// A document of one section.
#[derive(Debug, Clone)]
pub struct BulkDocument {
    /// Its id, which is its section's as well.
    pub id: u128,
    /// Its title, and the context of its chunks.
    pub title: String,
    /// Its key within the owner's collection.
    pub uri: String,
    /// A JSON object.
    pub metadata: String,
    /// In order, each with its id.
    pub chunks: Vec<(u128, String)>,
}

/// Rows to be copied: of embeddings in the binary format, of all else in the text format.
#[derive(Debug, Clone, Default)]
pub struct BulkRows {
    documents: String,
    sections: String,
    chunks: String,
    segments: String,
    embeddings: Vec<u8>,
}

impl BulkRows {
    /// Adds a document with its chunks, not yet indexed in any way.
    pub fn add_document(&mut self, place: &Place, document: &BulkDocument) {
        let (domain, id) = (uuid(place.domain), uuid(document.id));
        let title = escaped(&document.title);
        let mut from = 0;
        let mut text = String::new();
        for (ordinal, (chunk, content)) in document.chunks.iter().enumerate() {
            if ordinal > 0 {
                text.push_str(BREAK);
                from += BREAK.len();
            }
            text.push_str(content);
            let to = from + content.chars().count();
            let hash = hex(&digest(format!("{}\n{content}", document.title).as_bytes()));
            let (chunk, tokens) = (uuid(*chunk), content.split_whitespace().count());
            let content = escaped(content);
            writeln!(
                self.chunks,
                "{domain}\t{chunk}\t{id}\t{id}\t{ordinal}\t{content}\t{title}\t{tokens}\t{from}\t{to}\t{hash}"
            )
            .unwrap();
            from = to;
        }
        let Place { collection, owner, .. } = place;
        let BulkDocument { uri, metadata, chunks, .. } = document;
        let (text, metadata, count) = (escaped(&text), escaped(metadata), chunks.len());
        writeln!(
            self.documents,
            "{domain}\t{id}\t{collection}\t{owner}\t{title}\t{uri}\t{metadata}\t{text}\t{text}\tdone\t{count}"
        )
        .unwrap();
        writeln!(self.sections, "{domain}\t{id}\t{id}\t0\t{{}}\t0\t{from}").unwrap();
    }

    /// Adds a keyword segment of all chunks of these documents, in their order.
    pub fn add_segment(&mut self, place: &Place, segment: u128, documents: &[BulkDocument]) {
        let entries = || {
            documents.iter().flat_map(|document| {
                document.chunks.iter().map(|(id, body)| Entry { id: *id, title: &document.title, body })
            })
        };
        let (domain, segment, count) = (uuid(place.domain), uuid(segment), entries().count());
        let blob = rag_bm25::build(Language::English, entries()).unwrap();
        let hash = hex(&digest(&blob));
        let parts: Vec<&[u8]> = blob.chunks(PART_BYTES).collect();
        for (part, data) in parts.iter().enumerate() {
            writeln!(
                self.segments,
                "{domain}\t{segment}\t{part}\t{}\tenglish\t{}\t{count}\t{}\t{hash}\t{}",
                parts.len(),
                rag_bm25::ANALYSER_VERSION,
                blob.len(),
                hex(data),
            )
            .unwrap();
        }
    }

    /// Adds the embedding of a chunk, which is to have the length 1.
    pub fn add_embedding(&mut self, place: &Place, space: u128, chunk: u128, vector: &[f32]) {
        let rows = &mut self.embeddings;
        rows.extend(4u16.to_be_bytes());
        for id in [space, place.domain, chunk] {
            rows.extend(16u32.to_be_bytes());
            rows.extend(id.to_be_bytes());
        }
        // pgvector's halfvec: the dimension, two bytes that are not used, the values.
        rows.extend((4 + 2 * vector.len() as u32).to_be_bytes());
        rows.extend((vector.len() as u16).to_be_bytes());
        rows.extend([0; 2]);
        rows.extend(vector.iter().flat_map(|value| half::f16::from_f32(*value).to_be_bytes()));
    }

    /// Writes the rows in a transaction with [`without_triggers`], and is empty afterwards.
    pub fn copy(&mut self, transaction: &mut Transaction<'_>) {
        let Self { documents, sections, chunks, segments, embeddings } = std::mem::take(self);
        for (table, rows) in [
            (
                "rag.document (domain_id, id, collection, owner, title, uri, metadata, content, text, status, chunks)",
                &documents,
            ),
            ("rag.section (domain_id, id, document_id, ordinal, header_path, char_from, char_to)", &sections),
            (
                "rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens, char_from, char_to, sha256)",
                &chunks,
            ),
            (
                "rag.segment (domain_id, id, part, parts, language, analyser_version, entries, bytes, sha256, data)",
                &segments,
            ),
        ] {
            copy(transaction, table, rows);
        }
        if !embeddings.is_empty() {
            // Signature, no flags, no extension of the header; and at the end no further row.
            let binary = [b"PGCOPY\n\xff\r\n\0".as_slice(), &[0; 8], &embeddings, &[0xff; 2]];
            copy_parts(
                transaction,
                "COPY rag.embedding (vector_space_id, domain_id, chunk_id, vector) FROM STDIN (FORMAT binary)",
                &binary,
            );
        }
    }
}

/// Lets nothing be queued or resolved in this transaction: the rows are as ingestion leaves them.
pub fn without_triggers(transaction: &mut Transaction<'_>) {
    transaction.batch_execute("SET LOCAL session_replication_role = replica").unwrap();
}

/// Copies rows in the text format into a table, named with its columns.
pub fn copy(transaction: &mut Transaction<'_>, table: &str, rows: &str) {
    copy_parts(transaction, &format!("COPY {table} FROM STDIN"), &[rows.as_bytes()]);
}

fn copy_parts(transaction: &mut Transaction<'_>, statement: &str, parts: &[&[u8]]) {
    let mut writer = transaction.copy_in(statement).unwrap();
    for part in parts {
        writer.write_all(part).unwrap();
    }
    writer.finish().unwrap();
}

/// An id as Postgres writes it.
pub fn uuid(id: u128) -> String {
    let digits = format!("{id:032x}");
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

/// An id that Postgres wrote.
pub fn parsed_uuid(text: &str) -> u128 {
    u128::from_str_radix(&text.replace('-', ""), 16).unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// A text as COPY reads it.
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

/// Bytes as COPY reads them.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2 + 3);
    text.push_str("\\\\x");
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bytes_survive_copy() {
        assert_eq!(escaped("a\\b\n\tc"), "a\\\\b\\n\\tc");
        assert_eq!(hex(&[0, 0xaf]), "\\\\x00af");
    }

    #[test]
    fn ids_read_back() {
        assert_eq!(uuid(0x0123_4567_89ab), "00000000-0000-0000-0000-0123456789ab");
        assert_eq!(parsed_uuid(&uuid(u128::MAX - 5)), u128::MAX - 5);
    }
}
