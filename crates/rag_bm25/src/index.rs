//! What tantivy wants: a schema, a tokenizer and a directory.
//!
//! Opening a tantivy index reads and parses a good deal that is the same for each of our segments. So there
//! is one index in the process, made in memory, and its directory finds the files of whichever segments are
//! being opened or merged in a table ([`Mounted`]). Tantivy's reader, with its threads and watchers, is not
//! used.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tantivy::directory::{Directory, FileSlice, OwnedBytes};
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{Index, IndexSettings};

use crate::analyser::Analyser;
use crate::bundle::{Header, Section};
use crate::directory::{Files, WorkDirectory};
use crate::{Error, Language};

/// The fields of a segment, in the order in which scores and lengths are kept.
pub(crate) const FIELDS: usize = 2;
/// An entry's title and body, as one text of one length.
pub(crate) const TEXT: usize = 0;
/// Titles apart, as version 1 of the analyser left them: such segments are found in until they are built again. Empty
/// in others.
pub(crate) const TITLE: usize = 1;

const FIELD_NAMES: [&str; FIELDS] = ["text", "title"];

/// Tantivy's files in a blob.
pub(crate) const FILES: [(Section, SegmentComponent); 6] = [
    (Section::Terms, SegmentComponent::Terms),
    (Section::Postings, SegmentComponent::Postings),
    (Section::Positions, SegmentComponent::Positions),
    (Section::FieldNorms, SegmentComponent::FieldNorms),
    (Section::FastFields, SegmentComponent::FastFields),
    (Section::Store, SegmentComponent::Store),
];

pub(crate) fn field(field: usize) -> Field {
    Field::from_field_id(field as u32)
}

/// Postings with frequencies, positions and lengths of both fields; nothing is stored.
pub(crate) fn schema() -> Schema {
    let mut builder = Schema::builder();
    for name in FIELD_NAMES {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(name)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        builder.add_text_field(name, TextOptions::default().set_indexing_options(indexing));
    }
    builder.build()
}

/// Nothing is stored, and what compresses it must not start a thread for that: a process of Postgres has one.
pub(crate) fn settings() -> IndexSettings {
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}

/// How many terms each field of an entry has got so far.
#[derive(Clone, Default)]
pub(crate) struct TermCounts([Arc<AtomicU32>; FIELDS]);

impl TermCounts {
    /// Gives the counts and sets them to 0, which is what a field without text leaves.
    pub(crate) fn take(&self) -> [u32; FIELDS] {
        [TEXT, TITLE].map(|field| self.0[field].swap(0, Ordering::Relaxed))
    }
}

/// Tokenizers of both fields, which also count.
pub(crate) fn tokenizers(language: Language, counts: &TermCounts) -> TokenizerManager {
    let manager = TokenizerManager::new();
    for (name, count) in FIELD_NAMES.iter().zip(&counts.0) {
        manager.register(
            name,
            CountingTokenizer {
                analyser: Analyser::of(language),
                tokens: Vec::new(),
                count: Arc::clone(count),
            },
        );
    }
    manager
}

#[derive(Clone)]
struct CountingTokenizer {
    analyser: &'static Analyser,
    /// Kept from text to text, so that its strings are allocated once.
    tokens: Vec<Token>,
    count: Arc<AtomicU32>,
}

impl Tokenizer for CountingTokenizer {
    type TokenStream<'a> = Replay<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Replay<'a> {
        let mut length = 0;
        self.analyser.analyse(text, |term| {
            if length == self.tokens.len() {
                self.tokens.push(Token::default());
            }
            let token = &mut self.tokens[length];
            token.text.clear();
            token.text.push_str(term.text);
            token.position = term.position as usize;
            length += 1;
        });
        self.count.fetch_add(length as u32, Ordering::Relaxed);
        Replay { tokens: &mut self.tokens[..length], next: 0 }
    }
}

struct Replay<'a> {
    tokens: &'a mut [Token],
    next: usize,
}

impl TokenStream for Replay<'_> {
    fn advance(&mut self) -> bool {
        self.next += 1;
        self.next <= self.tokens.len()
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next - 1]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.next - 1]
    }
}

/// The process's one index, over whatever is mounted.
struct Shared {
    index: Index,
    files: Arc<Mutex<Files>>,
}

impl Shared {
    fn get() -> Result<&'static Shared, Error> {
        static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let files = Arc::new(Mutex::new(Files::new()));
            let directory = WorkDirectory::of_mounted(Arc::clone(&files));
            match Index::create(directory, schema(), settings()) {
                Ok(index) => Ok(Shared { index, files }),
                Err(error) => Err(error.to_string()),
            }
        });
        shared.as_ref().map_err(|reason| Error::Corrupt(reason.clone()))
    }
}

/// The files of one blob, visible to tantivy for as long as this value lives. Readers opened from it keep
/// their bytes afterwards.
pub(crate) struct Mounted {
    segment: tantivy::Segment,
    shared: &'static Shared,
}

impl Mounted {
    /// Makes the files of a blob visible, without copying them.
    pub(crate) fn new(blob: &OwnedBytes, header: &Header) -> Result<Mounted, Error> {
        let shared = Shared::get()?;
        let meta = shared.index.new_segment_meta(SegmentId::generate_random(), header.entries);
        let segment = shared.index.segment(meta);
        let mut files = shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (section, component) in FILES {
            files.insert(segment.relative_path(component), blob.slice(header.section(section)));
        }
        drop(files);
        Ok(Mounted { segment, shared })
    }

    pub(crate) fn segment(&self) -> &tantivy::Segment {
        &self.segment
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let mut files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, component) in FILES {
            files.remove(&self.segment.relative_path(component));
        }
    }
}

/// Tantivy's files of the one segment of `index` in `directory`, footers included.
pub(crate) fn files_of(index: &Index, directory: &dyn Directory) -> Result<Vec<(Section, FileSlice)>, Error> {
    let metas = index.searchable_segment_metas()?;
    let [meta] = metas.as_slice() else {
        return Err(Error::Corrupt(format!("tantivy wrote {} segments instead of one", metas.len())));
    };
    let mut files = Vec::with_capacity(FILES.len());
    for (section, component) in FILES {
        let path = meta.relative_path(component);
        files.push((section, directory.open_read(&path).map_err(tantivy::TantivyError::from)?));
    }
    Ok(files)
}
