//! However entries are spread over segments, merged or filtered, the answers are the same to the bit.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use rag_bm25::{Entry, Hit, Language, Query, Segment, build, merge, search, statistics};

/// Words whose frequencies differ by orders of magnitude, so that lists of every length meet.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..4u32).prop_map(|n| format!("common{n}")),
        4 => (0..30u32).prop_map(|n| format!("some{n}")),
        2 => (0..1000u32).prop_map(|n| format!("rare{n}")),
        1 => Just("pg_dump".to_owned()),
        1 => Just("FC-001-234".to_owned()),
        1 => Just("the".to_owned()),
    ]
}

fn text(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 0..most).prop_map(|words| words.join(" "))
}

#[derive(Clone, Debug)]
struct Document {
    title: String,
    body: String,
    /// Which segment it goes to.
    part: usize,
    is_alive: bool,
}

/// Bodies come in short and long, so that segments differ in their average length.
fn document() -> impl Strategy<Value = Document> {
    let body = prop_oneof![3 => text(8), 1 => text(60)];
    (text(5), body, 0..7usize, prop::bool::weighted(0.7)).prop_map(|(title, body, part, is_alive)| Document {
        title,
        body,
        part,
        is_alive,
    })
}

fn query() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => word(),
        1 => word().prop_map(|word| format!("+{word}")),
        1 => word().prop_map(|word| format!("-{word}")),
        1 => (word(), word()).prop_map(|(a, b)| format!("\"{a} {b}\"")),
        1 => (word(), word()).prop_map(|(a, b)| format!("+\"{a} {b}\"")),
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.join(" "))
}

fn id(at: usize) -> u128 {
    // Neither in the order of entries nor small.
    (at as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn segment<'a>(documents: impl IntoIterator<Item = (usize, &'a Document)>) -> Segment {
    let entries = documents.into_iter().map(|(at, d)| Entry { id: id(at), title: &d.title, body: &d.body });
    Segment::open(build(Language::English, entries).unwrap()).unwrap()
}

fn bits(hits: &[Hit]) -> Vec<(u128, u32)> {
    hits.iter().map(|hit| (hit.id, hit.score.to_bits())).collect()
}

fn check(documents: &[Document], queries: &[String], limit: usize) {
    let numbered = || documents.iter().enumerate();
    let whole = [segment(numbered())];
    let parts: Vec<Segment> = (0..7)
        // Short documents gather in one part, which sets averages apart.
        .map(|part| segment(numbered().filter(|(_, d)| if d.body.len() < 20 { 0 } else { d.part } == part)))
        .collect();
    let merged = [Segment::open(merge(&parts, &|_| true).unwrap().unwrap()).unwrap()];
    let alive = numbered().filter(|(_, d)| d.is_alive).map(|(at, _)| id(at));
    let alive_ids: std::collections::HashSet<u128> = alive.collect();
    let filtered = merge(&parts, &|id| alive_ids.contains(&id)).unwrap();
    let filtered: Vec<Segment> = filtered.into_iter().map(|blob| Segment::open(blob).unwrap()).collect();
    let rebuilt = [segment(numbered().filter(|(_, d)| d.is_alive))];
    assert_eq!(statistics(&whole), statistics(&parts));
    assert_eq!(statistics(&whole), statistics(&merged));
    assert_eq!(statistics(&filtered), statistics(&rebuilt));
    for text in queries {
        let query = Query::parse(text, Language::English);
        let run = |segments: &[Segment]| search(segments, &query, limit, None).unwrap();
        let expected = run(&whole);
        assert_eq!(bits(&expected), bits(&run(&parts)), "split, {text}");
        assert_eq!(bits(&expected), bits(&run(&merged)), "merged, {text}");
        assert_eq!(bits(&run(&rebuilt)), bits(&run(&filtered)), "filtered, {text}");
        // A short list is the beginning of the long one: skipping changes nothing.
        let all = search(&parts, &query, usize::MAX, None).unwrap();
        assert_eq!(bits(&expected), bits(&all)[..expected.len()], "prefix, {text}");
        assert!(all.len() <= limit || expected.len() == limit);
        assert!(all.is_sorted_by(|a, b| (b.score, a.id) <= (a.score, b.id)));
        let accepted = |segments: &[Segment], limit: usize| {
            search(segments, &query, limit, Some(&|id| alive_ids.contains(&id))).unwrap()
        };
        let by_hand: Vec<_> = all.iter().filter(|hit| alive_ids.contains(&hit.id)).copied().collect();
        let all_accepted = accepted(&parts, usize::MAX);
        assert_eq!(bits(&accepted(&whole, usize::MAX)), bits(&all_accepted), "accepted, split, {text}");
        assert_eq!(
            bits(&accepted(&parts, limit)),
            bits(&all_accepted)[..all_accepted.len().min(limit)],
            "accepted, prefix, {text}"
        );
        let ids = |hits: &[Hit]| hits.iter().map(|hit| hit.id).collect::<BTreeSet<_>>();
        assert_eq!(ids(&all_accepted), ids(&by_hand), "accepted, {text}");
        // How rare a pair of words is, is told by the best ones that are accepted.
        if text.split_whitespace().count() == 1 && !text.contains(['_', '-']) {
            assert_eq!(bits(&all_accepted), bits(&by_hand), "accepted, {text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn scores_do_not_depend_on_the_split(
        documents in prop::collection::vec(document(), 1..80),
        queries in prop::collection::vec(query(), 1..20),
        limit in 1..12usize,
    ) {
        check(&documents, &queries, limit);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// Long enough for full blocks of postings, so that blocks are skipped by bounds written for another
    /// average length.
    #[test]
    fn scores_do_not_depend_on_the_split_where_blocks_are_skipped(
        documents in prop::collection::vec(document(), 1500..4000),
        queries in prop::collection::vec(query(), 10..20),
        limit in 1..12usize,
    ) {
        check(&documents, &queries, limit);
    }
}

/// Short entries rank higher beside long ones than among themselves: the bounds of their blocks, written when they
/// were among themselves, must not hide them.
#[test]
fn blocks_of_short_entries_are_not_skipped_beside_long_ones() {
    let short = |at: usize| format!("fox {}", "red ".repeat(90 + at % 20));
    let long = |at: usize| format!("fox fox {}", "blue ".repeat(1900 + at % 200));
    let document = |body: String| Document { title: String::new(), body, part: 0, is_alive: true };
    let documents: Vec<Document> = (0..300).map(long).chain((0..300).map(short)).map(document).collect();
    let numbered = || documents.iter().enumerate();
    let parts = [segment(numbered().take(300)), segment(numbered().skip(300))];
    let whole = [segment(numbered())];
    let query = Query::parse("fox", Language::English);
    for limit in [1, 10, 280] {
        let expected = search(&whole, &query, limit, None).unwrap();
        let first = expected[0].id;
        assert!((300..600).any(|at| id(at) == first), "short entries come first");
        assert_eq!(bits(&search(&parts, &query, limit, None).unwrap()), bits(&expected));
    }
}
