//! Segments as a caller uses them: what is found, in which order, and what damage does.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::HashMap;

use rag_bm25::{
    ANALYSER_VERSION, Entry, Error, FORMAT_VERSION, Language, Query, Segment, build, merge, search,
    statistics,
};

const TEXTS: [(&str, &str); 6] = [
    ("Backups", "Use pg_dump to write a database to a file; pg_restore reads it."),
    ("Error codes", "The pump reports FC-001-234 when the inlet is blocked."),
    ("Another pump", "The pump reports FC-001-235 and 234 pulses, see 001 and FC."),
    ("", "state of the art databases are backed up with care"),
    ("東京", "東京都の水道"),
    ("Empty", ""),
];

fn segment(language: Language, texts: &[(&str, &str)], first: u128) -> Segment {
    let entries = texts.iter().zip(0..).map(|((title, body), at)| Entry { id: first + at, title, body });
    Segment::open(build(language, entries).unwrap()).unwrap()
}

fn found(segments: &[Segment], query: &str) -> Vec<u128> {
    let query = Query::parse(query, Language::English);
    search(segments, &query, 10, None).unwrap().into_iter().map(|hit| hit.id).collect()
}

#[test]
fn words_codes_phrases_and_conditions_find_their_entries() {
    let segments = [segment(Language::English, &TEXTS, 0)];
    let check = |query: &str, expected: &[u128]| assert_eq!(found(&segments, query), expected, "{query}");
    check("backup", &[0]);
    check("databases", &[3, 0]);
    check("FC-001-234", &[1, 2]);
    check("fc 001 234", &[2, 1]);
    check("pg_dump", &[0]);
    check("dump", &[0]);
    check("\"FC-001-234\"", &[1]);
    check("\"reports FC-001-234 when\"", &[1]);
    check("\"blocked FC-001-234\"", &[]);
    check("\"state of the art\"", &[3]);
    check("\"state art\"", &[]);
    check("pump -inlet", &[2]);
    check("+pump +pulses", &[2]);
    check("pump +missing", &[]);
    check("+\"fc 001 235\" pump", &[2]);
    check("pump -\"fc 001 235\"", &[1]);
    check("-pump", &[]);
    check("the of", &[]);
    check("", &[]);
    check("水", &[4]);
    check("京都", &[4]);
    check("\"東京都\"", &[4]);
    check("empty", &[5]);
}

#[test]
fn scores_are_bm25_of_the_title_three_times_and_the_body() {
    let texts =
        [("red fox", "red red blue"), ("", "blue green green grey"), ("red", "grey"), ("fox", "red fox den")];
    let segments = [segment(Language::Simple, &texts, 0)];
    let tokens = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let documents: Vec<Vec<String>> =
        texts.iter().map(|(title, body)| tokens(&format!("{title} {title} {title} {body}"))).collect();
    let average = documents.iter().map(Vec::len).sum::<usize>() as f64 / 4.0;
    for query in ["red", "red blue", "fox den green", "red red"] {
        let mut expected: HashMap<u128, f64> = HashMap::new();
        for word in &tokens(query) {
            let has = documents.iter().filter(|d| d.contains(word)).count() as f64;
            let rarity = (1.0 + (4.0 - has + 0.5) / (has + 0.5)).ln();
            for (document, id) in documents.iter().zip(0..) {
                let tf = document.iter().filter(|token| *token == word).count() as f64;
                let norm = 1.6 * (0.25 + 0.75 * document.len() as f64 / average);
                if tf > 0.0 {
                    *expected.entry(id).or_default() += rarity * 2.6 * tf / (tf + norm);
                }
            }
        }
        reward_pairs(&texts, &tokens(query), average, &mut expected);
        let hits = search(&segments, &Query::parse(query, Language::Simple), 10, None).unwrap();
        assert_eq!(hits.len(), expected.len());
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        for hit in hits {
            assert!((f64::from(hit.score) - expected[&hit.id]).abs() < 1e-5, "{query}: {hit:?} {expected:?}");
        }
    }
}

/// Adds what entries gain by pairs of words, where all that match are among the best.
fn reward_pairs(texts: &[(&str, &str)], query: &[String], average: f64, scores: &mut HashMap<u128, f64>) {
    let all = scores.len() as f64;
    for pair in query.windows(2).filter(|pair| pair[0] != pair[1]) {
        let together = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.windows(2).filter(|words| *words == pair).count()
        };
        let counts = texts.iter().map(|(title, body)| (3 * together(title) + together(body)) as f64);
        let counts: Vec<f64> = counts.collect();
        let having = counts.iter().filter(|count| **count > 0.0).count() as f64;
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        for (id, count) in (0..).zip(&counts).filter(|(_, count)| **count > 0.0) {
            let (title, body) = texts[id as usize];
            let length = 3 * title.split_whitespace().count() + body.split_whitespace().count();
            let norm = 1.6 * (0.25 + 0.75 * length as f64 / average);
            *scores.entry(id).or_default() += 0.5 * rarity * 2.6 * count / (count + norm);
        }
    }
}

#[test]
fn words_together_as_in_the_query_come_first() {
    let texts = [
        ("", "a valve that is stuck near the relief pipe"),
        ("", "a stuck pipe near the relief that is a valve"),
        ("", "that is a pipe near the relief valve stuck"),
        ("", "nothing of it"),
    ];
    let segments = [segment(Language::English, &texts, 0)];
    assert_eq!(found(&segments, "relief valve")[0], 2);
    assert_eq!(found(&segments, "stuck pipe")[0], 1);
    // Stop words keep their places.
    assert_eq!(found(&segments, "valve that is stuck")[0], 0);
    // What is quoted or excluded makes no pair with what stands beside it.
    let scores = |query: &str| -> Vec<u32> {
        let hits = search(&segments, &Query::parse(query, Language::English), 10, None).unwrap();
        hits.iter().map(|hit| hit.score.to_bits()).collect()
    };
    assert_eq!(scores("stuck \"relief\" pipe"), scores("pipe \"relief\" stuck"));
    assert_eq!(scores("stuck -nothing pipe"), scores("pipe -nothing stuck"));
}

/// Version 1 of the analyser kept titles apart.
#[test]
fn segments_of_the_first_analyser_are_found_in() {
    let old = Segment::open(include_bytes!("data/analyser-1.segment").as_slice()).unwrap();
    assert_eq!(old.analyser_version(), 1);
    for segments in [vec![old.clone()], vec![segment(Language::English, &TEXTS, 10), old]] {
        let old_ones = |query: &str| -> Vec<u128> {
            let mut ids: Vec<u128> = found(&segments, query).into_iter().filter(|id| *id < 10).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(old_ones("backup"), [0, 2]);
        assert_eq!(old_ones("pumps +blocked"), [1]);
        assert_eq!(old_ones("+backup -database"), [2]);
    }
}

#[test]
fn an_id_in_two_segments_is_answered_once_with_its_better_score() {
    let (weak, strong) = ([("", "fox and much more text")], [("", "fox fox")]);
    let pair = [segment(Language::English, &weak, 7), segment(Language::English, &strong, 7)];
    let others: Vec<Segment> = (0..5).map(|n| segment(Language::English, &[("", "fox den")], n)).collect();
    let all: Vec<Segment> = pair.into_iter().chain(others).collect();
    let hits = search(&all, &Query::parse("fox", Language::English), 3, None).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [7, 0, 1]);
    let hits = search(&all, &Query::parse("fox", Language::English), 6, None).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [7, 0, 1, 2, 3, 4]);
}

#[test]
fn a_segment_tells_what_it_holds() {
    let segment = segment(Language::German, &[("Haus", "ein Haus"), ("", "")], u128::MAX - 1);
    assert_eq!(segment.len(), 2);
    assert_eq!(segment.language(), Language::German);
    assert_eq!(segment.analyser_version(), ANALYSER_VERSION);
    assert_eq!(segment.ids().collect::<Vec<_>>(), [u128::MAX - 1, u128::MAX]);
    let statistics = statistics(&[segment.clone(), segment]);
    assert_eq!((statistics.documents, statistics.title_tokens, statistics.text_tokens), (4, 0, 8));
}

#[test]
fn segments_without_entries_or_text_match_nothing() {
    let none = segment(Language::English, &[], 0);
    assert!(none.is_empty());
    let blank = segment(Language::English, &[("", ""), ("", "")], 0);
    assert_eq!(found(&[none.clone(), blank.clone()], "fox \"a b\" -c"), [] as [u128; 0]);
    assert!(merge(std::slice::from_ref(&none), &|_| true).unwrap().is_none());
    assert!(merge(&[], &|_| true).unwrap().is_none());
    let fox = segment(Language::English, &[("", "fox")], 5);
    assert!(merge(std::slice::from_ref(&fox), &|_| false).unwrap().is_none());
    let merged = Segment::open(merge(&[none, blank, fox], &|_| true).unwrap().unwrap()).unwrap();
    assert_eq!(found(&[merged], "fox"), [5]);
}

#[test]
fn languages_are_not_mixed() {
    let (english, german) =
        (segment(Language::English, &[("", "house")], 0), segment(Language::German, &[("", "Haus")], 1));
    let query = Query::parse("house", Language::English);
    let error = search(std::slice::from_ref(&german), &query, 5, None).unwrap_err();
    assert!(matches!(
        error,
        Error::LanguageMismatch { found: Language::German, expected: Language::English }
    ));
    let error = merge(&[english, german], &|_| true).unwrap_err();
    assert!(matches!(
        error,
        Error::LanguageMismatch { found: Language::German, expected: Language::English }
    ));
}

#[test]
fn the_same_entries_give_the_same_answers_after_merging_merged_segments() {
    let parts: Vec<Segment> = (0..6).map(|n| segment(Language::English, &TEXTS[n..=n], n as u128)).collect();
    let pairs: Vec<Segment> = parts
        .chunks(2)
        .map(|pair| Segment::open(merge(pair, &|_| true).unwrap().unwrap()).unwrap())
        .collect();
    let all = Segment::open(merge(&pairs, &|id| id != 2).unwrap().unwrap()).unwrap();
    assert_eq!(all.ids().collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
    assert_eq!(found(&[all], "FC-001-234"), [1]);
}

#[test]
fn changed_or_cut_bytes_do_not_open() {
    let blob = build(Language::English, [Entry { id: 1, title: "fox", body: "a quick brown fox" }]).unwrap();
    Segment::open(blob.clone()).unwrap().verify().unwrap();
    for length in 0..blob.len() {
        assert!(Segment::open(blob[..length].to_vec()).is_err(), "cut to {length}");
        assert!(Segment::open_trusted(blob[..length].to_vec()).is_err(), "cut to {length}");
    }
    for at in 0..blob.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut changed = blob.clone();
            changed[at] ^= flip;
            assert!(Segment::open(changed).is_err(), "byte {at} ^ {flip}");
        }
    }
    let mut longer = blob.clone();
    longer.push(0);
    assert!(Segment::open(longer).is_err());
    assert!(Segment::open(Vec::new()).is_err());
}

#[test]
fn another_format_version_is_named() {
    let mut blob = build(Language::English, []).unwrap();
    blob[8..12].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
    let error = Segment::open(blob).unwrap_err();
    assert!(matches!(error, Error::FormatVersion { found, expected } if found == expected + 1));
}

#[test]
fn segments_are_shared_between_threads() {
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Segment>();
}

#[test]
fn an_id_that_came_back_counts_once_after_merging() {
    let texts = &TEXTS[..2];
    let once =
        Segment::open(merge(&[segment(Language::English, texts, 0)], &|_| true).unwrap().unwrap()).unwrap();
    let twice = [segment(Language::English, texts, 0), segment(Language::English, texts, 0)];
    assert_eq!(statistics(&twice).documents, 4);
    let merged = Segment::open(merge(&twice, &|_| true).unwrap().unwrap()).unwrap();
    assert_eq!(statistics(std::slice::from_ref(&merged)), statistics(std::slice::from_ref(&once)));
    let scores = |segment: &Segment| {
        let query = Query::parse("pump backup", Language::English);
        search(std::slice::from_ref(segment), &query, 10, None).unwrap()
    };
    assert_eq!(scores(&merged), scores(&once));
}
