//! Searches and merges end when they are told to, at any moment.
#![allow(clippy::unwrap_used)]

use rag_bm25::{Entry, Error, Hit, Language, Query, Segment, build, merge_in, merge_while, search_while};
use std::cell::Cell;
use std::fs;
use std::io::Read;
use std::path::Path;

thread_local! {
    /// How often the answer is still yes, and how often was asked.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

fn goes_on() -> bool {
    ASKED.set(ASKED.get() + 1);
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(1));
    left > 0
}

/// Runs `work` to its end, and then anew for each of its questions, answered with no.
#[track_caller]
fn check<T: PartialEq + std::fmt::Debug>(at_least: u32, work: impl Fn() -> Result<T, Error>) {
    LEFT.set(u32::MAX);
    ASKED.set(0);
    let whole = work().unwrap();
    let asked = ASKED.get();
    assert!(asked >= at_least, "asked {asked} times only");
    for left in 0..asked {
        LEFT.set(left);
        assert!(matches!(work(), Err(Error::Interrupted)), "{left} of {asked}");
    }
    LEFT.set(asked);
    assert_eq!(work().unwrap(), whole, "work that was interrupted leaves nothing behind");
}

fn segment(entries: u128) -> Segment {
    let texts: Vec<(u128, String)> =
        (0..entries).map(|id| (id, format!("needle in the haystack {}", id % 977))).collect();
    let entries = texts.iter().map(|(id, text)| Entry { id: *id, title: "", body: text });
    Segment::open(build(Language::English, entries).unwrap()).unwrap()
}

#[test]
fn a_search_is_asked_for_each_segment_and_each_window() {
    let segments = vec![segment(20_000), segment(10), segment(10)];
    for query in ["needle haystack", "+needle haystack", "\"needle in the haystack\"", "-needle haystack"] {
        let query = Query::parse(query, Language::English);
        let ids = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>();
        check(5, || search_while(&segments, &query, 10, None, goes_on).map(ids));
    }
}

#[test]
fn a_merge_is_asked_while_it_reads_and_while_it_writes() {
    let segments = [segment(20_000), segment(10)];
    check(20, || merge_while(&segments, &|id| id % 3 == 0, goes_on));
}

#[test]
fn a_merge_in_a_folder_is_that_in_memory_and_is_asked_as_often() {
    let segments = [segment(20_000), segment(10)];
    let alive = |id: u128| id.is_multiple_of(3);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("merge_in.{}", std::process::id()));
    let in_folder = || {
        fs::create_dir(&folder).unwrap();
        let merged = merge_in(&folder, &segments, &alive, goes_on);
        // Whose files are open is not in need of their names.
        fs::remove_dir_all(&folder).unwrap();
        let merged = merged?.unwrap();
        let mut bytes = Vec::new();
        merged.reader().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), merged.size());
        assert!(Segment::open(bytes.clone()).unwrap().ids().eq(merged.ids().iter().copied()));
        Ok(bytes)
    };
    check(20, in_folder);
    LEFT.set(u32::MAX);
    assert_eq!(in_folder().unwrap(), merge_while(&segments, &alive, goes_on).unwrap().unwrap());
}

#[test]
fn a_folder_that_is_not_there_is_an_error_and_no_damage() {
    LEFT.set(u32::MAX);
    let missing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("there_is_none");
    let outcome = merge_in(&missing, &[segment(10)], &|_| true, goes_on);
    assert!(matches!(outcome, Err(Error::File(_))));
}
