//! Entries to a blob, in the calling thread.

use tantivy::directory::RamDirectory;
use tantivy::{Index, TantivyDocument};

use crate::analyser::ANALYSER_VERSION;
use crate::bundle::{self, Contents};
use crate::index::{self, BODY, TITLE, TermCounts};
use crate::{Error, Language};

/// What tantivy sizes its first hash table by. It grows as needed, so this is the least that tantivy takes:
/// filling a larger one costs a tiny segment more than all its entries.
const FIRST_TABLE_BYTES: usize = 60_000;

/// One thing to be found: a chunk of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What [`crate::search`] answers with. Distinct entries should have distinct ids.
    pub id: u128,
    /// Counts half as much as the body. May be empty.
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
        for (field, text) in [(BODY, entry.body), (TITLE, entry.title)] {
            if !text.is_empty() {
                document.add_text(index::field(field), text);
            }
        }
        writer.add_document(document)?;
        contents.ids.push(entry.id);
        contents.lengths.push(counts.take());
    }
    let index = writer.finalize()?;
    let files = index::files_of(&index, &directory)?;
    Ok(bundle::write(&contents, &files))
}
