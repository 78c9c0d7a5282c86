//! Sizes of the stages, by option and by setting, as the diagnostics show them.

use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session};
use serde_json::{Value, json};

/// Sizes that must be in reach.
const SIZES: [usize; 3] = [50, 25, 5];

/// Sixty notes of a harbour, none near to another.
fn notes(database: &Database<'_>) -> Session {
    let mut ann = database.user("ann");
    ann.run(
        "INSERT INTO rag.document (uri, content)
         SELECT 'note' || n, 'The harbour note ' || n || ' tells of berth ' || n * 7 || ' and of crane ' || n * 11 || '.'
         FROM generate_series(1, 60) n",
    );
    ann.settle();
    ann
}

/// Input and output of a stage of a search.
fn stage(session: &mut Session, name: &str, options: &Value) -> (usize, usize) {
    let rows = session.rows(&format!(
        "SELECT input, output FROM rag_explain('the harbour note', k => 50, options => '{options}') WHERE stage = '{name}'"
    ));
    let number = |column: usize| rows[0][column].as_ref().unwrap().parse().unwrap();
    (number(0), number(1))
}

/// The options of a call, where the size of a stage is not a setting.
fn sized(session: &mut Session, name: &str, size: usize, by_setting: bool, mut options: Value) -> Value {
    session.run("RESET ALL");
    if by_setting {
        session.run(&format!("SET rag_ext.{name} = {size}"));
    } else {
        options[name] = json!(size);
    }
    options
}

#[test]
fn stages_are_as_large_as_options_and_settings_say() {
    let database = Database::new("sizes");
    let mut ann = notes(&database);
    for size in SIZES {
        for by_setting in [false, true] {
            let options = sized(&mut ann, "candidates", size, by_setting, json!({}));
            for name in ["keyword", "vector"] {
                let sql = format!(
                    "SELECT output FROM rag_explain('the harbour note', k => 5, options => '{options}') WHERE stage = '{name}'"
                );
                assert_eq!(ann.value(&sql), size.to_string(), "{name}, by setting: {by_setting}");
            }
            let options = sized(&mut ann, "rerank_limit", size, by_setting, json!({ "rerank": true }));
            assert_eq!(stage(&mut ann, "rerank", &options), (size, 50), "by setting: {by_setting}");
            let few = json!({ "rerank": true, "rerank_limit": 12 });
            let options = sized(&mut ann, "rerank_top_n", size, by_setting, few);
            assert_eq!(stage(&mut ann, "rerank", &options), (12, size), "by setting: {by_setting}");
            let rows = format!(
                "SELECT count(*) FROM rag_search('the harbour note', k => 50, options => '{options}')"
            );
            assert_eq!(ann.count(&rows), size as i64);
        }
        let answer = ann.json(&format!(
            "SELECT rag_answer('What does the harbour note tell of?', options => '{{\"k\": 50, \"context_limit\": {size}}}')"
        ));
        let context =
            answer["diagnostics"].as_array().unwrap().iter().find(|stage| stage["stage"] == "context");
        let context = context.unwrap();
        assert_eq!((&context["in"], &context["out"]), (&json!(50), &json!(size)), "{context}");
    }
    // Less is returned where less is left, and why is told; where reranking fails it leaves all.
    let failed = json!({ "rerank_model": "none-such", "rerank_top_n": 5 });
    let rows = format!("SELECT count(*) FROM rag_search('the harbour note', k => 20, options => '{failed}')");
    assert_eq!(ann.count(&rows), 20);
    let dropped = "SELECT count(*) FROM rag_explain('the harbour note', k => 20, options => '{\"rerank\": true, \"rerank_top_n\": 5, \"per_candidate\": true}')
                   WHERE dropped = 'beyond rerank_top_n'";
    assert!(ann.count(dropped) > 0);
}

#[test]
fn a_chat_model_reads_as_many_chunks_as_options_and_settings_say() {
    let reply = || {
        ChatReply::Message(json!({ "found": true, "answer": "The note tells of berth 7. [1]" }).to_string())
    };
    let stub = ChatStub::start(reply());
    let cluster = Cluster::builder("sizes")
        .setting("rag_ext.llm_url", &stub.url())
        .setting("rag_ext.llm_model", "stub")
        .setting("rag_ext.cache_size", "0")
        .start();
    let database = cluster.database("sizes");
    let mut ann = notes(&database);
    let mut passages = |options: Value| {
        let answer = ann
            .json(&format!("SELECT rag_answer('What does harbour note 1 tell of?', options => '{options}')"));
        let stages = answer["diagnostics"].as_array().unwrap().clone();
        let told =
            stages.iter().find(|stage| stage["stage"] == "generate").unwrap_or_else(|| panic!("{answer:#}"));
        let requests = stub.requests();
        let prompt = requests.last().unwrap().to_string();
        (prompt.matches("<passage n=").count(), told["in"].as_u64().unwrap() as usize)
    };
    let free = |more: Value| {
        let mut options = json!({ "policy": "free", "k": 50 });
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        options
    };
    assert_eq!(passages(free(json!({}))), (10, 10));
    for size in SIZES {
        assert_eq!(passages(free(json!({ "context_limit": size }))), (size, size));
    }
    let mut set = database.admin();
    set.run(&format!("ALTER ROLE {} SET rag_ext.context_limit = 25", database.role_name("ann")));
    let mut ann = database.connect(&database.role_name("ann"));
    ann.json(&format!(
        "SELECT rag_answer('What does harbour note 2 tell of?', options => '{}')",
        free(json!({}))
    ));
    assert_eq!(stub.requests().last().unwrap().to_string().matches("<passage n=").count(), 25);
}
