//! Scores of the cross-encoder.

use crate::running::Engine;
use rag_wire::{Call, FailureCode, Reply};

const QUERY: &str = "How many people live in Berlin?";
const ANSWER: &str =
    "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.";
const OTHER: &str = "New York City is famous for the Metropolitan Museum of Art.";

#[test]
fn scores_are_the_published_ones() {
    // The example of the ms-marco cross-encoders' cards: 8.6 to 9.2 for the answer, −4.3 and less for the other
    // passage, depending on the member of the family and on quantization.
    let scores = Engine::start().connect().rerank(QUERY, &[ANSWER, OTHER]).unwrap();
    assert!((8.5..9.5).contains(&scores[0]), "{scores:?}");
    assert!((-12.0..-4.0).contains(&scores[1]), "{scores:?}");
}

#[test]
fn a_score_does_not_depend_on_the_passages_beside_it() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let together = client.rerank(QUERY, &[OTHER, ANSWER, ANSWER, &OTHER.repeat(10)]).unwrap();
    // Another caller, so that nothing comes from the cache.
    let alone = engine.connect().named("role:other").rerank(QUERY, &[ANSWER]).unwrap();
    assert_eq!([together[1], together[2]], [alone[0]; 2]);
}

#[test]
fn many_passages_have_their_own_scores_whether_cached_or_repeated() {
    let engine = Engine::start();
    let passages: Vec<String> = (0..20).map(|n| format!("{ANSWER} {OTHER} {}", n % 17)).collect();
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    let mut client = engine.connect();
    client.rerank(QUERY, &passages[3..5]).unwrap();
    let together = client.rerank(QUERY, &passages).unwrap();
    assert_eq!(client.counters().pairs_scored, 17);
    let alone = |passage: &&str| engine.connect().named("role:other").rerank(QUERY, &[passage]).unwrap()[0];
    assert_eq!(together, passages.iter().map(alone).collect::<Vec<_>>());
}

#[test]
fn a_passage_beyond_the_models_limit_is_cut_at_its_end() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let filler = " The weather was fine that day.".repeat(200);
    let at_start = client.rerank(QUERY, &[&format!("{ANSWER}{filler}")]).unwrap()[0];
    let at_end = client.rerank(QUERY, &[&format!("{filler}{ANSWER}")]).unwrap()[0];
    assert!(at_start > at_end + 3.0, "{at_start} against {at_end}");
    let huge = client.rerank(QUERY, &[&"word ".repeat(2_000_000)]).unwrap();
    assert!(huge[0].is_finite());
}

#[test]
fn repeated_pairs_come_from_the_cache() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let first = client.rerank(QUERY, &[ANSWER, OTHER]).unwrap();
    let again = client.rerank(QUERY, &[OTHER, ANSWER]).unwrap();
    assert_eq!(again, [first[1], first[0]]);
    let counters = client.counters();
    assert_eq!((counters.pairs_scored, counters.cache_hits), (2, 2));
}

#[test]
fn no_passages_give_no_scores() {
    assert!(Engine::start().connect().rerank(QUERY, &[]).unwrap().is_empty());
}

#[test]
fn without_a_reranker_the_failure_says_what_to_do() {
    let mut settings = crate::running::settings();
    settings.rerank_model = String::new();
    let failure = Engine::with(settings).connect().rerank(QUERY, &[ANSWER]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.hint.is_some());

    let mut settings = crate::running::settings();
    settings.rerank_model = "not-installed".into();
    let failure = Engine::with(settings).connect().rerank(QUERY, &[ANSWER]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.message.contains("not-installed") && failure.hint.is_some());
}

#[test]
fn the_model_that_scored_is_named() {
    let engine = Engine::start();
    let call = Call::Rerank {
        model: None,
        query: QUERY.into(),
        passages: vec![ANSWER.into()],
        within_budget: false,
    };
    match engine.connect().ask(call).unwrap() {
        Reply::Scores { model, .. } => assert_eq!(model, crate::running::RERANKER),
        other => panic!("{other:?}"),
    }
}
