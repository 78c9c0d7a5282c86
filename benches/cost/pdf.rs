//! Some hundred pages of PDF from the client's commit to the last chunk's, and what each step has of it, beside the
//! embedding of the same chunks: parsing, chunking and writing are to cost little beside that.
//!
//! Equal files under other names are parsed, chunked and written, and embedded no more. What that takes is all but
//! the embedding, waits of the workers included.

use crate::ingest::{CONNECTIONS, embed};
use crate::report::{Line, Report};
use postgres::Transaction;
use rag_benches::{Client, Engine, Library, set_by_make, timed};
use rag_core::chunking::ChunkOptions;
use rag_parse::{DocumentContent, parse};
use rag_tests::Cluster;
use rag_wire::{Call, Content, Prepare, Reply};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// At least so many pages, of whole files.
const PAGES: usize = 500;
/// What is not embedding, beside the embedding.
const MOST: f64 = 0.25;

struct File {
    name: String,
    bytes: Vec<u8>,
    pages: usize,
}

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let files = choose();
    let pages: usize = files.iter().map(|file| file.pages).sum();
    let library = Library::new(cluster, "pdf");
    eprintln!("ingesting {pages} pages of {} files", files.len());
    let whole = library.ingest_by(files.len(), |transaction| insert(transaction, &files, ""));
    library.settle();
    let again = library.ingest_by(files.len(), |transaction| insert(transaction, &files, "copy of "));
    assert_eq!((again.chunks, again.embedded), (whole.chunks, 0), "equal files are embedded once");

    let engine = Engine::start();
    let parsing = on_all_connections(&engine, &files, |bytes| Call::Parse {
        content: Content::Bytes(bytes),
        media_type: None,
    });
    let preparing = on_all_connections(&engine, &files, |bytes| {
        Call::Prepare(Prepare {
            content: Content::Bytes(bytes),
            media_type: None,
            title: None,
            model: None,
            language: Some("english".into()),
            chunking: ChunkOptions::default(),
        })
    });
    let texts = library.admin().column(
        "SELECT DISTINCT c.context || CASE WHEN c.context = '' THEN '' ELSE E'\\n' END || c.content FROM rag.chunk c",
    );
    assert!(texts.len() as i64 <= whole.embedded, "these are the texts that were embedded");
    let embedding = embed(&engine, texts);

    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let ratio = again.time.as_secs_f64() / embedding.as_secs_f64();
    report.note(
        format!("{pages} pages of PDF in {} files, {} chunks, end to end", files.len(), whole.chunks),
        seconds(whole.time),
        format!(
            "parse {}, chunk {}, embed {}, write {}",
            seconds(parsing),
            seconds(preparing.saturating_sub(parsing)),
            seconds(embedding),
            seconds(again.time.saturating_sub(preparing))
        ),
    );
    report.add(Line {
        what: "of these all but embedding: parse, chunk, write".into(),
        found: seconds(again.time),
        beside: format!("engine alone, bulk lane {}", seconds(embedding)),
        ratio: format!("{ratio:.2} ×"),
        target: format!("≤ {MOST:.2} ×"),
        reached: Some(ratio <= MOST),
    });
}

/// PDFs, smallest first, until there are enough pages.
fn choose() -> Vec<File> {
    let mut paths = Vec::new();
    collect(Path::new(&set_by_make("RAG_BENCH_PDFS")), &mut paths);
    paths.sort_by_key(|path| (path.metadata().unwrap().len(), path.clone()));
    let mut files = Vec::new();
    let mut pages = 0;
    for path in paths {
        if pages >= PAGES {
            break;
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = parse(DocumentContent::Bytes(&bytes), None).unwrap().pages.len();
        pages += found;
        files.push(File {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            bytes,
            pages: found,
        });
    }
    assert!(pages >= PAGES, "{pages} pages are too few");
    files
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The packages have links from one folder into another.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pdf") {
            found.push(path);
        }
    }
}

fn insert(transaction: &mut Transaction<'_>, files: &[File], prefix: &str) {
    let statement = transaction.prepare("INSERT INTO rag.document (uri, file) VALUES ($1, $2)").unwrap();
    for file in files {
        transaction.execute(&statement, &[&format!("{prefix}{}", file.name), &file.bytes]).unwrap();
    }
}

/// The time that an engine takes for a call on each file, with as many at a time as there are workers.
fn on_all_connections(engine: &Engine, files: &[File], call: impl Fn(Vec<u8>) -> Call + Sync) -> Duration {
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| engine.connect()).collect();
    let waiting = Mutex::new(files.iter());
    let (time, ()) = timed(|| {
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    loop {
                        let Some(file) = waiting.lock().unwrap().next() else { return };
                        match client.call(call(file.bytes.clone())) {
                            Reply::Parsed(_) | Reply::Prepared(_) => {}
                            other => panic!("{}: {other:?}", file.name),
                        }
                    }
                });
            }
        });
    });
    time
}
