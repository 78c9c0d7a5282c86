//! Parsers on real files: how much of what another parser found in them is found, and how much else is.
//!
//! `RAG_EVAL_DATA/docling-samples` holds a folder per format and, in `groundtruth/<format>__<file>.md`, the Markdown
//! that docling made of most files. Its PDFs come without; their words are compared with those of poppler's
//! `pdftotext`, and a PDF in which that finds none is a scan. No server is needed: this calls `rag_parse` as the parse
//! child does. Bytes decide what a file is; only for those without a signature of their own (Markdown, CSV) is the
//! media type that goes with the file's name passed along, as every loader does.
//!
//! Each figure is an F1 over multisets, summed over the files of a format: of words, of headings with their level,
//! and of the table cells that hold a word. A file that is refused counts as one in which nothing was found. What is
//! made equal before the comparison, on both sides, stands in `reading.rs`.
//!
//! `-v` adds a row for each file; other arguments are parts of paths, as in `bench.sh parse -v docx xlsx_0`. Ends with 1
//! where a format is below its goal.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod reading;
mod sample;
mod score;

use rag_benches::{Table, set_by_make};
use rag_parse::DocumentContent;
use reading::Reading;
use sample::Sample;
use score::{Score, shared};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Least F1 of words in office and web formats, and in PDFs that have a text.
const LEAST_WORDS: f64 = 0.95;
const LEAST_WORDS_OF_PDF: f64 = 0.90;
/// Least F1 of headings and of table cells.
const LEAST_STRUCTURE: f64 = 0.85;

/// Formats that a goal is set for. Others are read as plain text and shown for what they are.
const JUDGED: [&str; 8] = ["csv", "docx", "epub", "html", "md", "pdf", "pptx", "xlsx"];

/// What came of one file, or of all files of a format.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    files: usize,
    parsed: usize,
    scans: usize,
    words: Score,
    headings: Score,
    cells: Score,
    milliseconds: f64,
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.parsed += other.parsed;
        self.scans += other.scans;
        self.words.add(&other.words);
        self.headings.add(&other.headings);
        self.cells.add(&other.cells);
        self.milliseconds += other.milliseconds;
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let is_verbose = arguments.iter().any(|argument| argument == "-v");
    let wanted: Vec<&String> = arguments.iter().filter(|argument| *argument != "-v").collect();
    let samples: Vec<Sample> = sample::all(&Path::new(&set_by_make("RAG_EVAL_DATA")).join("docling-samples"))
        .into_iter()
        .filter(|sample| wanted.is_empty() || wanted.iter().any(|part| sample.name().contains(&***part)))
        .collect();
    assert!(!samples.is_empty(), "no sample's path contains any of {wanted:?}");
    // A parser that panics is a refusal here as in the child.
    std::panic::set_hook(Box::new(|_| {}));
    let mut formats: BTreeMap<&str, Outcome> = BTreeMap::new();
    let mut files = Table::new(&["file", "read as", "words", "headings", "any level", "cells", "ms", ""]);
    for sample in &samples {
        let (outcome, row) = measure(sample);
        files.row(row);
        formats.entry(&sample.format).or_default().add(&outcome);
    }
    if is_verbose {
        files.print();
    }
    print(&formats);
    if judge(&formats) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(sample: &Sample) -> (Outcome, [String; 8]) {
    let bytes = std::fs::read(&sample.path).unwrap();
    let began = Instant::now();
    let parsed = std::panic::catch_unwind(|| {
        rag_parse::parse(DocumentContent::Bytes(&bytes), sample.media_type_of_name())
    });
    let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
    let (found, read_as, remark) = match parsed {
        Ok(Ok(parsed)) => (Some(Reading::of_parsed(&parsed)), parsed.media_type, String::new()),
        Ok(Err(error)) => (None, "–".to_owned(), error.message),
        Err(_) => (None, "–".to_owned(), "the parser panicked".to_owned()),
    };
    let mut outcome =
        Outcome { files: 1, parsed: usize::from(found.is_some()), milliseconds, ..Outcome::default() };
    let found = found.unwrap_or_default();
    let mut any_level = Score::default();
    match sample.reference() {
        Some(reference) if reference.words.is_empty() && sample.is_pdf() => outcome.scans = 1,
        Some(reference) => {
            outcome.words = shared(&found.words, &reference.words);
            if !sample.is_pdf() {
                outcome.headings = shared(&found.headings, &reference.headings);
                any_level = shared(&found.titles(), &reference.titles());
                outcome.cells = shared(&found.cells, &reference.cells);
            }
        }
        None => {}
    }
    let remark = match (outcome.scans, remark.is_empty()) {
        (1, true) => "a scan without text".to_owned(),
        (1, false) => format!("a scan without text: {remark}"),
        _ => remark,
    };
    let row = [
        sample.name(),
        read_as.rsplit('/').next().unwrap().chars().rev().take(24).collect::<Vec<_>>().iter().rev().collect(),
        outcome.words.to_string(),
        outcome.headings.to_string(),
        any_level.to_string(),
        outcome.cells.to_string(),
        format!("{milliseconds:.1}"),
        remark,
    ];
    (outcome, row)
}

fn print(formats: &BTreeMap<&str, Outcome>) {
    let mut table = Table::new(&["format", "parsed", "words F1", "headings F1", "cells F1", "ms"]);
    for (format, outcome) in formats {
        let scans =
            if outcome.scans > 0 { format!(" ({} without text)", outcome.scans) } else { String::new() };
        table.row([
            (*format).to_owned(),
            format!("{}/{}{scans}", outcome.parsed, outcome.files),
            outcome.words.to_string(),
            outcome.headings.to_string(),
            outcome.cells.to_string(),
            format!("{:.0}", outcome.milliseconds),
        ]);
    }
    println!();
    table.print();
}

/// Compares each format with its goals; true if all are reached.
fn judge(formats: &BTreeMap<&str, Outcome>) -> bool {
    let mut checks = Vec::new();
    for format in JUDGED {
        let Some(outcome) = formats.get(format) else { continue };
        let least_words = if format == "pdf" { LEAST_WORDS_OF_PDF } else { LEAST_WORDS };
        let figures = [
            ("words", &outcome.words, least_words),
            ("headings", &outcome.headings, LEAST_STRUCTURE),
            ("cells", &outcome.cells, LEAST_STRUCTURE),
        ];
        for (what, score, least) in figures {
            if let Some(found) = score.f1() {
                checks.push((format!("{format}, {what}: {found:.3}, at least {least}"), found >= least));
            }
        }
        let refused = outcome.files - outcome.parsed;
        if refused > outcome.scans {
            checks.push((format!("{format}: {refused} of {} files were refused", outcome.files), false));
        }
    }
    for (text, holds) in &checks {
        println!("{} {text}", if *holds { "ok  " } else { "MISS" });
    }
    checks.iter().all(|(_, holds)| *holds)
}
