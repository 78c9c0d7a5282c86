//! The cross-encoder: scores between 0 and 1, the same for the same input whatever else goes on.

use super::{TOPICS, corpus};
use rag_tests::Database;
use std::sync::atomic::{AtomicBool, Ordering};

const CALL: &str = "SELECT index || ' ' || score FROM rag_rerank('how does a glacier move?', ARRAY[
    'A glacier moves downhill under its own weight.', 'Espresso is brewed with hot water.', 'Ice.', '', 'A glacier is a body of dense ice.'])";

#[test]
fn scores_lie_between_0_and_1_in_falling_order() {
    let database = Database::new("rerank");
    let mut ann = database.user("ann");
    let rows = ann.rows("SELECT index, score FROM rag_rerank('how does a glacier move?', ARRAY['coffee', 'A glacier moves downhill.', 'bread'])");
    let scores: Vec<f64> = rows.iter().map(|row| row[1].as_ref().unwrap().parse().unwrap()).collect();
    assert_eq!(rows[0][0].as_deref(), Some("2"));
    assert!(
        scores.windows(2).all(|pair| pair[0] >= pair[1]) && scores.iter().all(|s| (0.0..=1.0).contains(s)),
        "{scores:?}"
    );
    assert!(scores[0] > 0.5 && scores[2] < 0.1, "{scores:?}");
    let raw = ann.rows("SELECT index, score FROM rag_rerank('how does a glacier move?', ARRAY['coffee', 'A glacier moves downhill.', 'bread'], '{\"raw\": true}')");
    for (row, score) in raw.iter().zip(&scores) {
        let logit: f64 = row[1].as_ref().unwrap().parse().unwrap();
        assert!((1.0 / (1.0 + (-logit).exp()) - score).abs() < 1e-6, "sigmoid of {logit} is not {score}");
    }
    assert_eq!(ann.count("SELECT count(*) FROM rag_rerank('x', ARRAY['a', 'b', 'c'], '{\"k\": 2}')"), 2);
    assert_eq!(ann.count("SELECT count(*) FROM rag_rerank('x', '{}')"), 0);
    ann.rows("SELECT * FROM rag_rerank('x', ARRAY[repeat('far too long a text ', 2000)])");
    ann.refuses("42704", "SELECT * FROM rag_rerank('x', ARRAY['a'], '{\"model\": \"none-such\"}')");
}

#[test]
fn the_same_input_has_the_same_scores_under_load() {
    let database = Database::new("rerank_load");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let (scores, vector) = (ann.column(CALL), ann.value("SELECT rag_embed('how does a glacier move?')"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (database, role, stop) = (&database, &role, &stop);
            scope.spawn(move || {
                let mut session = database.connect(role);
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    round += 1;
                    session.rows(&format!("SELECT rag_embed('load {n} {round} of words of another length'), count(*) FROM rag_rerank('load {n} {round}', ARRAY['a b c', 'glacier', 'a much longer passage than the others in this batch'])"));
                    session.ingest(&format!("Bulk text {n} {round}."), &format!("bulk{n}"));
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // Another question each time keeps the caches from answering.
            for round in 0..15 {
                let role = database.role(&format!("fresh{round}"));
                let mut fresh = database.connect(&role);
                assert_eq!(fresh.column(CALL), scores, "round {round}");
                assert_eq!(
                    fresh.value("SELECT rag_embed('how does a glacier move?')"),
                    vector,
                    "round {round}"
                );
            }
        }));
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn chunks_are_reranked_by_id_and_what_is_hidden_is_left_out_like_what_is_missing() {
    let database = Database::new("rerank_chunks");
    let (mut ann, mut bob) = (corpus(&database, "ann"), database.user("bob"));
    bob.ingest("A glacier of bob's own.", "own");
    let ids = ann.column("SELECT id FROM rag.chunk ORDER BY id");
    let hidden = bob.value("SELECT id FROM rag.chunk");
    let list = format!(
        "ARRAY['{}', '{hidden}', '00000000-0000-7000-8000-000000000000', '{}']::uuid[]",
        ids.join("', '"),
        ids[0]
    );
    let rows = ann.rows(&format!("SELECT chunk_id, score FROM rag_rerank_chunks('glacier', {list})"));
    let mut found: Vec<String> = rows.iter().map(|row| row[0].clone().unwrap()).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, ids);
    assert_eq!(bob.count(&format!("SELECT count(*) FROM rag_rerank_chunks('glacier', {list})")), 1);
    ann.rows("SELECT * FROM rag_rerank_chunks('glacier', '{}')");
}

#[test]
fn a_search_can_be_reranked_within_a_budget_of_pairs() {
    let database = Database::new("rerank_search");
    let mut ann = corpus(&database, "ann");
    let rows = ann.rows("SELECT uri, score, rerank_score FROM rag_search('how does ice move down a mountain?', k => 8, options => '{\"rerank\": true}')");
    assert_eq!(rows.len(), TOPICS.len());
    assert_eq!(rows[0][0].as_deref(), Some("glacier"));
    for row in &rows {
        let score: f64 = row[2].as_ref().unwrap_or_else(|| panic!("{row:?}")).parse().unwrap();
        assert!((0.0..=1.0).contains(&score), "{row:?}");
    }
    assert_eq!(rows[0][1], rows[0][2], "the score is the rerank score");
    let limited = ann.count("SELECT count(rerank_score) FROM rag_search('how does ice move?', k => 8, options => '{\"rerank\": true, \"rerank_limit\": 3}')");
    assert_eq!(limited, 3);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('how does ice move?', k => 8, options => '{\"rerank\": true, \"rerank_limit\": 3}')"), 8);
}
