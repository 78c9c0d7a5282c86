//! Vectors: their meaning, their length, and that nothing beside them changes them.

use crate::running::{Client, EMBEDDING, Engine, MEAN_POOLED, RERANKER, cosine};
use rag_wire::{FailureCode, TextRole};

const SENTENCE: &str = "The server keeps a write-ahead log so that no committed change is lost.";
const PARAPHRASE: &str = "Committed transactions survive a crash because they are first written to a log.";
const UNRELATED: &str = "Bake the cake for forty minutes and let it cool before adding the icing.";

#[test]
fn paraphrases_are_closer_than_unrelated_sentences_in_both_models() {
    let engine = Engine::start();
    let mut client = engine.connect();
    for model in [EMBEDDING, MEAN_POOLED] {
        let found = client.embed(Some(model), TextRole::Passage, &[SENTENCE, PARAPHRASE, UNRELATED]).unwrap();
        assert_eq!((found.model.as_str(), found.dimension, found.values.len()), (model, 384, 3 * 384));
        let vectors: Vec<&[f32]> = found.values.chunks(384).collect();
        vectors.iter().for_each(|v| assert!((cosine(v, v) - 1.0).abs() < 1e-5));
        let (near, far) = (cosine(vectors[0], vectors[1]), cosine(vectors[0], vectors[2]));
        assert!(near > far + 0.2, "{model}: {near} against {far}");
    }
}

#[test]
fn cosines_of_the_mean_pooled_model_are_the_published_ones() {
    // The example of the model's page, computed in fp32; int8 stays near.
    let engine = Engine::start();
    let texts = [
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
    ];
    let found = engine.connect().embed(Some(MEAN_POOLED), TextRole::Passage, &texts).unwrap();
    let vectors: Vec<&[f32]> = found.values.chunks(384).collect();
    for (other, published) in [(1, 0.695), (2, 0.943), (3, 0.257)] {
        let found = cosine(vectors[0], vectors[other]);
        assert!((found - published).abs() < 0.04, "{}: {found}, published {published}", texts[other]);
    }
}

#[test]
fn a_query_gets_the_models_prefix_and_a_passage_does_not() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let prefixed = format!("Represent this sentence for searching relevant passages: {SENTENCE}");
    let query = client.vector(TextRole::Query, SENTENCE);
    assert_eq!(query, client.vector(TextRole::Passage, &prefixed));
    assert_ne!(query, client.vector(TextRole::Passage, SENTENCE));
}

#[test]
fn a_vector_does_not_depend_on_the_texts_beside_it() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let alone = client.vector(TextRole::Passage, SENTENCE);
    let long = UNRELATED.repeat(20);
    let together = client.embed(None, TextRole::Passage, &[&long, "x", SENTENCE, PARAPHRASE]).unwrap();
    assert_eq!(&together.values[2 * 384..3 * 384], alone);
}

#[test]
fn equal_texts_in_one_request_get_equal_vectors_and_run_once() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let found = client.embed(None, TextRole::Passage, &[SENTENCE, UNRELATED, SENTENCE]).unwrap();
    assert_eq!(found.values[..384], found.values[2 * 384..]);
    assert_eq!(client.counters().texts_embedded, 2);
}

#[test]
fn no_texts_give_no_vectors() {
    let found = Engine::start().connect().embed(None, TextRole::Passage, &[]).unwrap();
    assert_eq!((found.dimension, found.values.len()), (384, 0));
}

#[test]
fn an_empty_text_has_a_vector() {
    let vector = Engine::start().connect().vector(TextRole::Passage, "");
    assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-5);
}

#[test]
fn a_text_up_to_the_models_limit_is_embedded_and_one_token_more_is_refused_with_both_numbers() {
    let engine = Engine::start();
    let mut client = engine.connect();
    // "word" is one token; two special tokens surround the text.
    let words = |count: usize| vec!["word"; count].join(" ");
    assert!(client.embed(None, TextRole::Passage, &[&words(510)]).is_ok());
    let failure = client.embed(None, TextRole::Passage, &["short", &words(511)]).unwrap_err();
    assert_eq!(failure.code, FailureCode::LimitExceeded);
    for part in ["text 2", "513", "512", EMBEDDING] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert!(client.embed(None, TextRole::Query, &[&words(510)]).is_err(), "the prefix counts");
    assert!(client.embed(Some(MEAN_POOLED), TextRole::Passage, &[&words(254)]).is_ok());
    assert!(client.embed(Some(MEAN_POOLED), TextRole::Passage, &[&words(255)]).is_err());
}

#[test]
fn a_huge_text_is_refused_without_being_tokenized() {
    let engine = Engine::start();
    let failure = engine.connect().embed(None, TextRole::Passage, &[&"a".repeat(20 << 20)]).unwrap_err();
    assert_eq!(failure.code, FailureCode::LimitExceeded);
}

#[test]
fn a_repeated_query_comes_from_the_cache_and_only_for_the_same_caller() {
    let engine = Engine::start();
    let count = |client: &mut Client| {
        let counters = client.counters();
        (counters.texts_embedded, counters.cache_hits)
    };
    let mut one = engine.connect().named("role:one");
    let first = one.vector(TextRole::Query, "which port");
    assert_eq!(count(&mut one), (1, 0));
    assert_eq!(one.vector(TextRole::Query, "which port"), first);
    assert_eq!(count(&mut one), (1, 1));
    let mut two = engine.connect().named("role:two");
    assert_eq!(two.vector(TextRole::Query, "which port"), first);
    assert_eq!(count(&mut two), (2, 1));
    assert!(two.counters().cache_bytes > 384 * 4);
}

#[test]
fn names_that_are_no_embedding_model_are_refused_by_kind() {
    let engine = Engine::start();
    let mut client = engine.connect();
    let mut code = |name: &str| client.embed(Some(name), TextRole::Passage, &["x"]).unwrap_err().code;
    assert_eq!(code("missing"), FailureCode::UnknownModel);
    assert_eq!(code(RERANKER), FailureCode::InvalidArgument);
    assert_eq!(code("../bge-small-en-v1.5"), FailureCode::NotLoaded);
}
