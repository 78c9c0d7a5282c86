//! Which chunks come, in which order, with which scores.

use super::{TOPICS, corpus};
use rag_tests::{Database, literal};
use std::collections::BTreeSet;

#[test]
fn each_mode_finds_by_its_own_means() {
    let database = Database::new("modes");
    let mut ann = corpus(&database, "ann");
    for (uri, text) in TOPICS {
        for mode in ["keyword", "vector", "hybrid"] {
            let sql = format!("SELECT uri FROM rag_search({}, k => 1, mode => '{mode}')", literal(text));
            assert_eq!(ann.value(&sql), uri, "{mode}");
        }
    }
    let paraphrase = "SELECT uri FROM rag_search('insects informing their colony about blossoms', k => 1, mode => 'vector')";
    assert_eq!(ann.value(paraphrase), "beehive");
    let row = ann.rows(
        "SELECT keyword_rank, keyword_score > 0, vector_rank, vector_score, rerank_score, rank
         FROM rag_search('violin strings', k => 1, mode => 'keyword')",
    );
    let ones = |value: &Option<String>| value.as_deref() == Some("1");
    assert!(ones(&row[0][0]) && row[0][1].as_deref() == Some("t") && ones(&row[0][5]), "{row:?}");
    assert_eq!(row[0][2..5], [None, None, None]);
    let row = ann.rows("SELECT keyword_rank, keyword_score, vector_rank, vector_score FROM rag_search('violin', k => 1, mode => 'vector')");
    assert_eq!((&row[0][0], &row[0][1], ones(&row[0][2])), (&None, &None, true));
    let cosine: f64 = row[0][3].as_ref().unwrap().parse().unwrap();
    assert!((0.3..=1.0).contains(&cosine), "{cosine}");
    let exact = ann.float("SELECT vector_score FROM rag_search('violin', k => 1, mode => 'vector')");
    let by_hand = ann.float("SELECT max(1 - (vector::halfvec <=> rag_embed('violin')::halfvec)) FROM rag_vectors(ARRAY(SELECT id FROM rag.chunk))");
    assert!((exact - by_hand).abs() < 1e-3, "{exact} {by_hand}");
}

#[test]
fn columns_say_what_they_promise() {
    let database = Database::new("columns");
    let mut ann = database.user("ann");
    ann.run(
        "SELECT rag_ingest(E'# Gear\\n\\n## Ropes\\n\\nA dynamic rope stretches when it holds a fall.\\n', title => 'Climbing', uri => 'gear',
                           metadata => '{\"lang\": \"en\"}', options => '{\"sync\": true}')",
    );
    let rows = ann.rows(
        "SELECT s.rank, s.collection, s.title, s.uri, s.header_path, s.page_from, s.metadata, s.content = c.content,
                s.content = substr(d.text, s.char_from + 1, s.char_to - s.char_from), s.section_id = c.section_id,
                length(s.snippet) > 0, jsonb_typeof(s.details), s.document_id = d.id, s.score > 0
         FROM rag_search('dynamic rope', k => 1) s JOIN rag.chunk c ON c.id = s.chunk_id JOIN rag.document d ON d.id = s.document_id",
    );
    let row: Vec<_> = rows[0].iter().map(Option::as_deref).collect();
    assert_eq!(row[..4], [Some("1"), Some("default"), Some("Climbing"), Some("gear")]);
    assert!(row[4].unwrap().contains("Gear") && row[4].unwrap().contains("Ropes"), "{row:?}");
    assert_eq!(row[5], None);
    assert_eq!(row[6], Some("{\"lang\": \"en\"}"));
    assert_eq!(row[7..11], [Some("t"); 4]);
    assert!(matches!(row[11], Some("array" | "object")), "{row:?}");
    assert_eq!(row[12..], [Some("t"), Some("t")]);
    let short =
        ann.value("SELECT snippet FROM rag_search('dynamic', k => 1, options => '{\"snippet_length\": 20}')");
    assert!((1..=24).contains(&short.chars().count()), "{short:?}");
}

#[test]
fn exactly_the_eligible_rows_come_and_never_more_than_k() {
    let database = Database::new("counts");
    let mut ann = corpus(&database, "ann");
    for mode in ["vector", "hybrid"] {
        for (k, expected) in [(1, 1), (3, 3), (8, 8), (9, 8), (1000, 8)] {
            let sql = format!("SELECT count(*) FROM rag_search('water', k => {k}, mode => '{mode}')");
            assert_eq!(ann.count(&sql), expected, "{mode} {k}");
        }
    }
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('water', k => 1000, mode => 'keyword')"), 2);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('water', k => 1, mode => 'keyword')"), 1);
    let ranks = ann.column("SELECT rank FROM rag_search('rock', k => 1000)");
    assert_eq!(ranks, (1..=8).map(|n| n.to_string()).collect::<Vec<_>>());
    let ids: BTreeSet<String> =
        ann.column("SELECT chunk_id FROM rag_search('rock', k => 1000)").into_iter().collect();
    assert_eq!(ids.len(), 8);
    assert!(ann.holds("SELECT bool_and(score <= before) FROM (SELECT score, lag(score) OVER (ORDER BY rank) AS before FROM rag_search('rock of the sea', k => 1000)) x WHERE before IS NOT NULL"));
}

#[test]
fn the_same_call_gives_the_same_rows_and_ties_go_by_id() {
    let database = Database::new("ties");
    let mut ann = database.user("ann");
    for n in 0..12 {
        ann.ingest("The identical sentence about cormorants.", &format!("same{n}"));
    }
    let ids = ann.column("SELECT id FROM rag.chunk ORDER BY id");
    for mode in ["keyword", "vector", "hybrid"] {
        for k in [5, 12] {
            let sql = format!("SELECT chunk_id FROM rag_search('cormorants', k => {k}, mode => '{mode}')");
            let found = ann.column(&sql);
            assert_eq!(found, ids[..k], "{mode}");
            assert_eq!(ann.column(&sql), found);
        }
    }
    let scores = ann
        .column("SELECT DISTINCT (keyword_score, vector_score)::text FROM rag_search('cormorants', k => 12)");
    assert_eq!(scores.len(), 1, "{scores:?}");
}

#[test]
fn fusion_can_be_chosen_and_weighted() {
    let database = Database::new("fusion");
    let mut ann = corpus(&database, "ann");
    let order = |ann: &mut rag_tests::Session, options: &str| {
        ann.column(&format!(
            "SELECT uri FROM rag_search('hot water through rock', k => 8, options => '{options}')"
        ))
    };
    let keyword =
        ann.column("SELECT uri FROM rag_search('hot water through rock', k => 8, mode => 'keyword')");
    let vector = ann.column("SELECT uri FROM rag_search('hot water through rock', k => 8, mode => 'vector')");
    let all_keyword = order(&mut ann, r#"{"keyword_weight": 1}"#);
    assert_eq!(
        all_keyword[..keyword.len() - 1],
        keyword[..keyword.len() - 1],
        "the worst keyword hit scales to 0"
    );
    assert_eq!(order(&mut ann, r#"{"keyword_weight": 0}"#)[..7], vector[..7]);
    assert_eq!(order(&mut ann, r#"{"fusion": "weighted"}"#), order(&mut ann, "{}"));

    let rows = ann.rows(
        r#"SELECT score, keyword_rank, vector_rank FROM rag_search('hot water through rock', k => 8, options => '{"fusion": "rrf", "rrf_k": 10}')"#,
    );
    for row in rows {
        let number = |at: usize| row[at].as_ref().map(|text| text.parse::<f64>().unwrap());
        let term = |rank: Option<f64>| rank.map_or(0.0, |rank| 1.0 / (10.0 + rank));
        let ratio = number(0).unwrap() / (term(number(1)) + term(number(2)));
        assert!(
            (ratio - 1.0).abs() < 1e-6 || (ratio - 0.5).abs() < 1e-6,
            "score is not the sum of reciprocal ranks: {row:?}"
        );
    }
    for options in [r#"{"rrf_k": -1}"#, r#"{"candidates": 0}"#, r#"{"min_score": 1.5}"#, r#"{"rerank": 1}"#] {
        ann.refuses("22023", &format!("SELECT * FROM rag_search('x', options => '{options}')"));
    }
    // What jsonb holds and a double, or a reader of JSON, does not.
    ann.refuses("22023", r#"SELECT * FROM rag_search('x', options => '{"keyword_weight": 1e400}')"#);
    ann.refuses(
        "54000",
        "SELECT * FROM rag_search('x', options => (repeat('[', 200) || repeat(']', 200))::jsonb)",
    );
    let beyond =
        ann.refuses("22023", "INSERT INTO rag.document (content, metadata) VALUES ('x', '{\"n\": 1e400}')");
    assert!(beyond.message.contains("beyond double precision"), "{beyond}");
    let all = ann.column("SELECT score FROM rag_search('hot water', k => 8)");
    let some =
        ann.column(r#"SELECT score FROM rag_search('hot water', k => 8, options => '{"min_score": 0.5}')"#);
    let expected: Vec<String> =
        all.into_iter().filter(|score| score.parse::<f64>().unwrap() >= 0.5).collect();
    assert_eq!(some, expected);
    assert!(!some.is_empty());
}

#[test]
fn keyword_scores_do_not_depend_on_how_the_documents_came_in() {
    let database = Database::new("segments");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    for (uri, text) in TOPICS {
        ann.ingest(text, uri);
    }
    let rows: Vec<String> =
        TOPICS.iter().map(|(uri, text)| format!("({}, {})", literal(uri), literal(text))).collect();
    bob.run(&format!("INSERT INTO rag.document (uri, content) VALUES {}", rows.join(", ")));
    bob.settle();
    for query in ["water", "rock and water of the sea", "\"molten rock\"", "+water -sea", "tuned strings"] {
        let sql = format!(
            "SELECT uri || ' ' || keyword_score FROM rag_search({}, k => 8, mode => 'keyword') ORDER BY 1",
            literal(query)
        );
        assert_eq!(ann.column(&sql), bob.column(&sql), "{query}");
    }
}

#[test]
fn query_syntax_does_what_it_says() {
    let database = Database::new("syntax");
    let mut ann = database.user("ann");
    for (uri, text) in [
        ("a", "The red fox jumps over the sleeping dog. Part FC-001-234 fits."),
        ("b", "The dog jumps; the fox is red. Register 0x1234 holds snake_case values."),
        ("c", "A sleeping cat. Part FC-001-235 does not fit."),
    ] {
        ann.ingest(text, uri);
    }
    for (query, expected) in [
        ("\"red fox\"", "a"),
        ("fox -sleeping", "b"),
        ("+sleeping +cat", "c"),
        ("FC-001-234", "a"),
        ("0x1234", "b"),
        ("snake_case", "b"),
        ("jumping", "a,b"),
        ("FOX", "a,b"),
    ] {
        let sql = format!(
            "SELECT string_agg(uri, ',' ORDER BY uri) FROM (SELECT uri FROM rag_search({}, mode => 'keyword')) x",
            literal(query)
        );
        if query == "FC-001-234" {
            let first = ann.column(&format!(
                "SELECT uri FROM rag_search({}, k => 1, mode => 'keyword')",
                literal(query)
            ));
            assert_eq!(first, ["a"]);
        } else {
            assert_eq!(ann.value(&sql), expected, "{query}");
        }
    }
}
