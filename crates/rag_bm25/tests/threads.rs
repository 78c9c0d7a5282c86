//! No call starts a thread. A binary of its own, because the test harness runs others beside it.
#![allow(clippy::unwrap_used, missing_docs)]

use rag_bm25::{Entry, Language, Query, Segment, build, merge, merge_while, search};

#[test]
fn no_call_starts_a_thread() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let texts: Vec<String> = (0..3000).map(|n| format!("entry {n} of many, {}", n % 7)).collect();
    let parts: Vec<Segment> = (texts.chunks(1000))
        .map(|part| {
            build(Language::English, part.iter().zip(0..).map(|(body, id)| Entry { id, title: "", body }))
        })
        .map(|blob| Segment::open(blob.unwrap()).unwrap())
        .collect();
    assert_eq!(threads(), before);
    let merged = Segment::open(merge(&parts, &|id| id % 2 == 0).unwrap().unwrap()).unwrap();
    assert_eq!(threads(), before);
    let hits = search(&[merged], &Query::parse("entry +many", Language::English), 10, None).unwrap();
    assert_eq!(hits.len(), 10);
    assert_eq!(threads(), before);
    // Nor one that has ended when the call returns: whoever is asked is asked by this one.
    fn goes_on() -> bool {
        assert_eq!(std::thread::current().name(), Some("no_call_starts_a_thread"));
        true
    }
    assert!(merge_while(&parts, &|_| true, goes_on).unwrap().is_some());
}
