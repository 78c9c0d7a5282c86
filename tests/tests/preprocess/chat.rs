//! Steps of a chat model: used when it answers well, done without when it does not.

use super::{found, stage};
use rag_tests::{ChatReply, ChatStub, Cluster, Session, wait_until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn point_to(cluster: &Cluster, url: &str) {
    let mut admin = cluster.connect("postgres", "postgres");
    admin.run(&format!("ALTER SYSTEM SET rag_ext.llm_url = '{url}'"));
    admin.run("ALTER SYSTEM SET rag_ext.llm_retries = 0");
    cluster.reload();
}

fn told(session: &mut Session, query: &str, step: &str, setting: &str) -> Value {
    let options = json!({step: setting}).to_string();
    stage(session, query, "hybrid", &options, step).unwrap()
}

#[test]
fn a_chat_model_prepares_queries_and_its_failures_are_survived() {
    let stub = ChatStub::start(ChatReply::Message(json!({"query": "sourdough bread"}).to_string()));
    let cluster = Cluster::builder("prepare").setting("rag_ext.cache_size", "0").start();
    let database = cluster.database("prepare");
    let mut ann = database.user("ann");
    ann.ingest("Sourdough bread rises with wild yeast and lactic acid bacteria.", "bread");
    ann.ingest("A glacier moves downhill under its own weight.", "glacier");
    ann.ingest("Espresso is brewed by forcing hot water through coffee.", "espresso");

    // Without a model: on says so, auto does not.
    for step in ["rewrite", "hyde"] {
        let missing = told(&mut ann, "How does it work?", step, "on");
        assert_eq!(missing["fallback"], "plain query", "{missing}");
        assert_eq!(missing["reason"], "no chat model is configured", "{missing}");
        assert_eq!(
            told(&mut ann, "How does it work?", step, "auto")["method"],
            "no chat model is configured"
        );
    }
    assert_eq!(told(&mut ann, "How does it work?", "decompose", "on")["method"], "rules: one question");
    assert!(stub.requests().is_empty());

    point_to(&cluster, &stub.url());
    wait_until("the endpoint is asked", Duration::from_secs(60), || {
        told(&mut ann, "How does it work?", "rewrite", "on");
        !stub.requests().is_empty()
    });

    // Rewriting: what it writes is searched for beside the query.
    let rewrite = r#"{"rewrite": "on"}"#;
    assert_eq!(told(&mut ann, "loaf", "rewrite", "on")["method"], "chat: sourdough bread");
    assert!(found(&mut ann, "loaf", "keyword", "{}").is_empty());
    assert_eq!(found(&mut ann, "loaf", "keyword", rewrite), ["bread"]);
    let request = stub.requests().pop().unwrap();
    assert_eq!(request["messages"][1]["content"], "<query>\nloaf\n</query>", "{request:#}");
    assert!(request.to_string().contains("json_schema"), "{request:#}");
    // The gate of auto: vague or long.
    let asked = stub.requests().len();
    assert_eq!(told(&mut ann, "error 42P01 of the bakery", "rewrite", "auto")["out"], 0);
    assert_eq!(stub.requests().len(), asked);
    assert_eq!(told(&mut ann, "loaf", "rewrite", "auto")["method"], "chat: sourdough bread");

    // Decomposition, where no rule knows the question.
    stub.reply(ChatReply::Message(
        json!({"questions": ["how bread rises", "how espresso is brewed"]}).to_string(),
    ));
    let parts = told(&mut ann, "tell me of loaf, cup", "decompose", "on");
    assert_eq!(parts["method"], "chat: how bread rises; how espresso is brewed");
    assert_eq!(found(&mut ann, "tell me of loaf, cup", "keyword", r#"{"decompose": "on"}"#).len(), 2);
    stub.reply(ChatReply::Message(json!({"questions": []}).to_string()));
    assert_eq!(told(&mut ann, "tell me of loaf", "decompose", "on")["method"], "chat: one question");
    let asked = stub.requests().len();
    assert_eq!(
        told(&mut ann, "Compare bread with espresso", "decompose", "on")["method"],
        "rules: bread; espresso"
    );
    assert_eq!(stub.requests().len(), asked);

    // HyDE: for the vectors alone.
    stub.reply(ChatReply::Message(json!({"passage": "Ice flows down the valley as a glacier."}).to_string()));
    assert_eq!(told(&mut ann, "what moves", "hyde", "on")["out"], 1);
    assert_eq!(told(&mut ann, "what moves", "hyde", "auto")["out"], 1);
    assert_eq!(told(&mut ann, "error 42P01", "hyde", "auto")["out"], 0);
    assert_eq!(found(&mut ann, "why thing", "vector", r#"{"hyde": "on"}"#).len(), 3);
    assert_eq!(stage(&mut ann, "glacier", "keyword", r#"{"hyde": "on"}"#, "hyde"), None);

    // Whatever goes wrong, the plain query is searched for, and the diagnostics say why.
    let plain = found(&mut ann, "glacier weight", "hybrid", "{}");
    let all = r#"{"rewrite": "on", "decompose": "on", "hyde": "on"}"#;
    for reply in [
        ChatReply::Status(500, "{}".into()),
        ChatReply::Message("I would rather not.".into()),
        ChatReply::Message(r#"{"query": 3, "questions": "x", "passage": []}"#.into()),
        ChatReply::Message(json!({"query": "", "questions": [], "passage": "the"}).to_string()),
        ChatReply::Message(
            json!({"query": "word ".repeat(1000), "passage": "word ".repeat(1000)}).to_string(),
        ),
    ] {
        stub.reply(reply.clone());
        assert_eq!(found(&mut ann, "glacier weight", "hybrid", all), plain, "{reply:?}");
        for step in ["rewrite", "hyde"] {
            let failed = told(&mut ann, "glacier weight", step, "on");
            assert_eq!(failed["fallback"], "plain query", "{reply:?}: {failed}");
            assert!(!failed["reason"].as_str().unwrap().is_empty(), "{failed}");
        }
    }

    // One deadline for all of them.
    stub.reply(ChatReply::Hang);
    ann.run("SET rag_ext.query_deadline = '1s'");
    let since = Instant::now();
    assert_eq!(found(&mut ann, "glacier weight", "hybrid", all), plain);
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    assert_eq!(told(&mut ann, "glacier weight", "hyde", "on")["fallback"], "plain query");
}
