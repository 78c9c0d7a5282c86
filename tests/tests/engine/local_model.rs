//! A chat model of this machine: it needs no endpoint, and answers from collections whose text may not leave the machine.

use super::LIMIT;
use super::chat::assert_quotes;
use rag_tests::{Cluster, wait_until};

const MODEL: &str = "local/SmolLM2-135M-Instruct";
const QUESTION: &str = "How tall is the lighthouse of Kap Arkona?";

#[test]
fn a_local_model_answers_without_an_endpoint() {
    let cluster = Cluster::builder("local_model")
        .setting("rag_ext.llm_model", MODEL)
        .setting("rag_ext.llm_fallback_models", "nobody")
        .setting("rag_ext.llm_deadline", "10min")
        .setting("rag_ext.threads", "1")
        .start();
    let database = cluster.database("local_model");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('secret', options => '{\"remote\": false}')");
    ann.value(
        "SELECT rag_ingest('The lighthouse of Kap Arkona is 35 metres tall. It was built in 1901.', collection => 'secret')",
    );
    ann.settle();

    // What so small a model says may be wrong, and is checked like what any other says.
    let answer = ann.json(&format!("SELECT rag_answer('{QUESTION}', options => '{{\"max_tokens\": 100}}')"));
    assert_quotes(&mut ann, &answer);
    assert!(answer["found"].is_boolean() && answer["answer"].is_string(), "{answer:#}");
    let stages = answer["diagnostics"].as_array().unwrap();
    let stage = stages.iter().find(|stage| stage["stage"] == "generate").unwrap();
    let details = &stage["details"];
    assert_eq!(details["model"], MODEL, "{answer:#}");
    assert!(details["prompt_tokens"].as_u64().unwrap() > 100, "{answer:#}");
    assert!((1..=100).contains(&details["completion_tokens"].as_u64().unwrap()), "{answer:#}");

    // Its own tokenizer counts what it reads: to that one a digit is a token, to the estimate half of one.
    assert_eq!(details["tokens_counted_by"], "model", "{answer:#}");
    let log: String = (10..60)
        .map(|n| format!("On day {n} lamp {}{n} burnt {}45{n} seconds. ", n * 31, n * 7919))
        .collect();
    ann.run("SELECT rag_create_collection('log')");
    ann.value(&format!("SELECT rag_ingest('The lamps of Kap Arkona. {log}', collection => 'log')"));
    ann.settle();
    let mut prompt_tokens = |budget: u32| {
        let options = format!("{{\"max_tokens\": 1, \"context_budget\": {budget}, \"context_limit\": 1}}");
        let answer = ann.json(&format!(
            "SELECT rag_answer('How long did the lamps of Kap Arkona burn?', collection => 'log', options => '{options}')"
        ));
        let stages = answer["diagnostics"].as_array().unwrap();
        let stage = stages.iter().find(|stage| stage["stage"] == "generate").unwrap();
        stage["details"]["prompt_tokens"].as_u64().unwrap_or_else(|| panic!("{answer:#}"))
    };
    let more = prompt_tokens(400) - prompt_tokens(200);
    assert!((140..=230).contains(&more), "{more}");

    let mut admin = database.admin();
    assert!(admin.value("SELECT rag_status()").contains(&format!("answers: by {MODEL} on this machine")));
    assert_eq!(
        admin.value("SELECT concat_ws(' ', kind, is_default, loaded, max_tokens, problem) FROM rag.model WHERE 'local/' || name = current_setting('rag_ext.llm_model')"),
        "chat t t 2048"
    );

    // One that is not there is told of, and the documents answer.
    cluster.connect("postgres", "postgres").run("ALTER SYSTEM SET rag_ext.llm_model = 'local/missing'");
    cluster.connect("postgres", "postgres").run("ALTER SYSTEM SET rag_ext.llm_fallback_models = ''");
    cluster.reload();
    wait_until("the other model is asked", LIMIT, || {
        let answer = ann.json(&format!("SELECT rag_answer('{QUESTION}')"));
        answer["method"] == "extractive" && answer.to_string().contains("no such folder")
    });
    assert!(admin.value("SELECT rag_status()").contains("local/missing"));
}
