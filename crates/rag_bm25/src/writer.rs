//! Entries to a blob, in the calling thread.

use tantivy::directory::RamDirectory;
use tantivy::{Index, TantivyDocument};

use crate::analyser::ANALYSER_VERSION;
use crate::bundle::{Contents, Pieces};
use crate::index::{self, TEXT, TermCounts};
use crate::{Error, Language};

/// What tantivy sizes its first hash table by. It grows as needed, so this is the least that tantivy takes:
/// filling a larger one costs a tiny segment more than all its entries.
const FIRST_TABLE_BYTES: usize = 60_000;

/// How often a title is indexed, so that its words weigh more. Title and body have one length together: an entry that
/// is hardly more than its title is then weighed like others, where fields that are scored apart would give it half.
///
/// Source: Robertson, Zaragoza and Taylor, "Simple BM25 Extension to Multiple Weighted Fields", CIKM 2004.
const TITLE_WEIGHT: usize = 3;

/// One thing to be found: a chunk of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What [`crate::search`] answers with. Distinct entries should have distinct ids.
    pub id: u128,
    /// Indexed as if it stood before the body three times. May be empty.
    pub title: &'a str,
    /// The text. May be empty.
    pub body: &'a str,
}

/// Builds one immutable segment. No entries give a segment that matches nothing.
///
/// # Errors
/// [`Error::Tantivy`] for more entries than a segment can hold (2³¹).
pub fn build<'a>(language: Language, entries: impl IntoIterator<Item = Entry<'a>>) -> Result<Vec<u8>, Error> {
    let directory = RamDirectory::create();
    let counts = TermCounts::default();
    let mut writer = Index::builder()
        .schema(index::schema())
        .settings(index::settings())
        .tokenizers(index::tokenizers(language, &counts))
        .single_segment_index_writer::<TantivyDocument>(directory.clone(), FIRST_TABLE_BYTES)?;
    let mut contents =
        Contents { analyser_version: ANALYSER_VERSION, language, ids: Vec::new(), lengths: Vec::new() };
    for entry in entries {
        let mut document = TantivyDocument::default();
        for text in [entry.title; TITLE_WEIGHT].into_iter().chain([entry.body]) {
            if !text.is_empty() {
                document.add_text(index::field(TEXT), text);
            }
        }
        writer.add_document(document)?;
        contents.ids.push(entry.id);
        contents.lengths.push(counts.take());
    }
    let index = writer.finalize()?;
    let files = index::files_of(&index, &directory)?;
    Pieces::new(&contents, &files, || true)?.to_bytes()
}
