//! Sending the files: several connections, one file at a time on each, nothing sent that is there already.

use crate::address::Address;
use crate::arguments::Arguments;
use crate::connection::{Failure, Known, Sent, Session};
use crate::files::Found;
use crate::report::Report;
use crate::{LoadError, interrupt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rag_core::file_name::media_type_hint;
use rag_core::hash::sha256;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Addresses that the server is asked about at a time.
const ASKED_AT_ONCE: usize = 1_000;

/// Tries to connect again, before a lost connection ends the run.
const RECONNECTS: u32 = 5;

/// A document that the server has, and the file it is of.
pub(crate) struct Waiting {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    /// Whether it was sent in this run.
    pub(crate) is_new: bool,
}

/// Sends what is new or changed; the documents whose processing can be waited for.
pub(crate) fn upload(
    arguments: &Arguments,
    address: &Address,
    session: &mut Session,
    found: Vec<Found>,
    limit: u64,
    report: &mut Report,
) -> Result<Vec<Waiting>, LoadError> {
    let mut known = HashMap::new();
    for part in found.chunks(ASKED_AT_ONCE) {
        let uris: Vec<&str> = part.iter().map(|found| found.uri.as_str()).collect();
        match session.known(&arguments.collection, &uris) {
            Ok(some) => known.extend(some),
            Err(Failure::File(text) | Failure::All(text) | Failure::Connection(text)) => {
                return Err(LoadError::new(text));
            }
        }
    }
    let bar = bar(arguments, found.len(), "loading");
    let metadata = arguments.metadata.to_string();
    let shared = Shared {
        skips_unsupported: arguments.skip_unsupported,
        collection: &arguments.collection,
        metadata: &metadata,
        limit,
        found: &found,
        known: &known,
        next: AtomicUsize::new(0),
        bar: &bar,
        outcome: Mutex::new(RunOutcome { report: std::mem::take(report), waiting: Vec::new(), error: None }),
    };
    std::thread::scope(|scope| {
        for _ in 0..usize::from(arguments.jobs).min(found.len()) {
            scope.spawn(|| shared.work(address));
        }
    });
    bar.finish_and_clear();
    let left_out = found.len().saturating_sub(shared.next.load(Ordering::SeqCst));
    let outcome = shared.outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    *report = outcome.report;
    report.left_out = left_out;
    match outcome.error {
        Some(text) => Err(LoadError::new(text)),
        None => Ok(outcome.waiting),
    }
}

/// A bar of so many files; none where it is not wanted or there is no terminal.
pub(crate) fn bar(arguments: &Arguments, length: usize, what: &'static str) -> ProgressBar {
    let target = if arguments.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(length as u64), target).with_prefix(what);
    let form = "{prefix:>10} [{bar:40}] {pos}/{len} files  {elapsed_precise} · {eta} left  {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

struct RunOutcome {
    report: Report,
    waiting: Vec<Waiting>,
    error: Option<String>,
}

struct Shared<'a> {
    skips_unsupported: bool,
    collection: &'a str,
    metadata: &'a str,
    limit: u64,
    found: &'a [Found],
    known: &'a HashMap<String, Known>,
    next: AtomicUsize,
    bar: &'a ProgressBar,
    outcome: Mutex<RunOutcome>,
}

/// What became of one file.
enum FileOutcome {
    Loaded {
        id: String,
        bytes: u64,
    },
    Unchanged {
        id: String,
    },
    Empty,
    /// No parser reads files of this media type.
    Unsupported(&'static str),
    Failed(String),
}

impl Shared<'_> {
    fn note(&self, change: impl FnOnce(&mut RunOutcome)) {
        change(&mut self.outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    /// One worker: a connection of its own, file after file, until there are none, somebody interrupts, or it makes
    /// no sense to go on.
    fn work(&self, address: &Address) {
        let mut session = None;
        loop {
            let mut is_over = interrupt::came();
            self.note(|outcome| is_over |= outcome.error.is_some());
            if is_over {
                return;
            }
            let index = self.next.fetch_add(1, Ordering::SeqCst);
            let Some(found) = self.found.get(index) else {
                self.next.fetch_sub(1, Ordering::SeqCst);
                return;
            };
            self.bar.set_message(found.path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            match self.handle(found, &mut session, address) {
                Ok(of_file) => self.settle(found, of_file),
                Err(text) => self.note(|outcome| {
                    outcome.report.fail(&found.path, &*text);
                    outcome.error = Some(text);
                }),
            }
            self.bar.inc(1);
        }
    }

    fn settle(&self, found: &Found, of_file: FileOutcome) {
        self.note(|outcome| {
            let path = found.path.clone();
            match of_file {
                FileOutcome::Loaded { id, bytes } => {
                    outcome.report.loaded += 1;
                    outcome.report.loaded_bytes += bytes;
                    outcome.waiting.push(Waiting { id, path, is_new: true });
                }
                FileOutcome::Unchanged { id } => {
                    outcome.report.unchanged += 1;
                    outcome.waiting.push(Waiting { id, path, is_new: false });
                }
                FileOutcome::Empty => outcome.report.empty += 1,
                FileOutcome::Unsupported(_) if self.skips_unsupported => outcome.report.unsupported += 1,
                FileOutcome::Unsupported(media_type) => {
                    let reason =
                        format!("{media_type} cannot be read; --skip-unsupported leaves such files out");
                    outcome.report.fail(&path, reason);
                }
                FileOutcome::Failed(reason) => outcome.report.fail(&path, reason),
            }
        });
    }

    /// One file; an error is a reason for all workers to stop.
    fn handle(
        &self,
        found: &Found,
        session: &mut Option<Session>,
        address: &Address,
    ) -> Result<FileOutcome, String> {
        let content = match read(&found.path, self.limit) {
            Ok(content) if content.is_empty() => return Ok(FileOutcome::Empty),
            Ok(content) => content,
            Err(reason) => return Ok(FileOutcome::Failed(reason)),
        };
        // Stored, it would be a failure for ever.
        if let Some(media_type) = rag_parse::unsupported(&content) {
            return Ok(FileOutcome::Unsupported(media_type));
        }
        if let Some(known) = self.known.get(&found.uri)
            && known.sha256 == sha256(&content)
        {
            return Ok(FileOutcome::Unchanged { id: known.id.clone() });
        }
        let name = found.path.file_name().unwrap_or_default().to_string_lossy();
        let sent = Sent {
            content: &content,
            uri: &found.uri,
            collection: self.collection,
            metadata: self.metadata,
            media_type: media_type_hint(&name, &content),
        };
        let mut lost = 0;
        loop {
            let open = match session.take() {
                Some(open) => Ok(open),
                None => address.connect().map_err(|error| Failure::Connection(error.to_string())),
            };
            let ingested = open.and_then(|mut open| {
                let ingested = open.ingest(&sent);
                if !matches!(ingested, Err(Failure::Connection(_))) {
                    *session = Some(open);
                }
                ingested
            });
            match ingested {
                Ok(id) => return Ok(FileOutcome::Loaded { id, bytes: content.len() as u64 }),
                Err(Failure::File(reason)) => return Ok(FileOutcome::Failed(reason)),
                Err(Failure::All(reason)) => return Err(reason),
                // The same file again does no harm: its address and hash are known then.
                Err(Failure::Connection(reason)) => {
                    lost += 1;
                    if lost > RECONNECTS || interrupt::came() {
                        return Err(reason);
                    }
                    std::thread::sleep(Duration::from_millis(200 << lost));
                }
            }
        }
    }
}

/// A file's bytes, at most `limit`, which is known before they are read.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let too_large = |size: u64| {
        Err(format!("has {}, more than {}", indicatif::BinaryBytes(size), indicatif::BinaryBytes(limit)))
    };
    if size > limit {
        return too_large(size);
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(limit + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > limit {
        return too_large(content.len() as u64);
    }
    Ok(content)
}
