//! Questions asked by the dozen, and asked again.

use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session, wait_until};
use serde_json::json;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn many_questions_have_a_row_each_in_their_order() {
    let database = Database::new("answer_many");
    let mut ann = database.user("ann");
    ann.ingest("The ferry leaves at nine.", "ferry.md");
    ann.ingest("The bus stops at the harbour.", "bus.md");
    let questions = "ARRAY['When does the ferry leave?', '', 'Who owns the moon?', NULL, repeat('x', 100000), 'Where does the bus stop?']";
    let call = format!("rag_answer_many({questions}, options => '{{\"min_support\": 0.5}}')");
    let rows = ann.rows(&format!(
        "SELECT n, found, reason, method, confidence > 0.5, citations, sqlstate, error IS NOT NULL, answer = result->>'answer'
         FROM {call}"
    ));
    let row = |values: [&str; 9]| values.map(|value| (!value.is_empty()).then(|| value.to_owned()));
    assert_eq!(
        rows,
        [
            row(["1", "t", "", "extractive", "t", "1", "", "f", "t"]),
            row(["2", "", "", "", "", "", "22023", "t", ""]),
            row(["3", "f", "below_threshold", "extractive", "f", "0", "", "f", "t"]),
            row(["4", "", "", "", "", "", "22004", "t", ""]),
            row(["5", "", "", "", "", "", "54000", "t", ""]),
            row(["6", "t", "", "extractive", "t", "1", "", "f", "t"]),
        ]
    );
    // Each is what rag_answer says.
    let one = ann.json("SELECT rag_answer('Where does the bus stop?', options => '{\"min_support\": 0.5}')");
    let many = ann.json(&format!("SELECT result FROM {call} WHERE n = 6"));
    for key in ["answer", "found", "confidence", "citations"] {
        assert_eq!(one[key], many[key], "{key}");
    }
    ann.run("BEGIN READ ONLY");
    assert_eq!(ann.count(&format!("SELECT count(*) FROM {call}")), 6);
    ann.run("COMMIT");
    assert_eq!(ann.count("SELECT count(*) FROM rag_answer_many('{}')"), 0);

    // What is wrong with the call is its error, and what cancels it is nobody's row.
    for (code, call) in [
        ("22004", "rag_answer_many(NULL)"),
        ("22004", "rag_answer_many('{x}', options => NULL)"),
        ("22023", "rag_answer_many('{x}', options => '{\"no\": 1}')"),
        ("42704", "rag_answer_many('{x}', 'nowhere')"),
        ("54000", "rag_answer_many(array_fill('x'::text, ARRAY[1001]))"),
    ] {
        ann.refuses(code, &format!("SELECT * FROM {call}"));
    }
    let endless =
        "rag_answer_many(ARRAY(SELECT 'When does ferry ' || n || ' leave?' FROM generate_series(1, 1000) n))";
    ann.run("SET statement_timeout = '300ms'");
    ann.refuses("57014", &format!("SELECT * FROM {endless}"));
    ann.run("RESET statement_timeout");

    let mut bob = database.user("bob");
    assert_eq!(bob.column(&format!("SELECT DISTINCT reason FROM {call} WHERE NOT found")), ["no_documents"]);
}

/// Requests that the engine has computed, and pairs that it has scored.
fn computed(admin: &mut Session) -> (i64, i64) {
    (
        admin.count("SELECT pairs_scored FROM rag.engine_status"),
        admin.count("SELECT texts_embedded FROM rag.engine_status"),
    )
}

#[test]
fn a_repeated_question_asks_no_model_again_unless_somebody_else_asks() {
    const CITED: &str = "The ferry leaves at nine [1].";
    let stub = ChatStub::start(ChatReply::Message(json!({"answer": CITED, "citations": [1]}).to_string()));
    let cluster = Cluster::builder("answer_caches")
        .setting("rag_ext.llm_retries", "0")
        .setting("rag_ext.answer_log", "on")
        .start();
    let database = cluster.database("caches");
    let [ann, bob] = ["ann", "bob"].map(|name| database.role(name));
    let (mut ann, mut bob) = (database.connect(&ann), database.connect(&bob));
    for session in [&mut ann, &mut bob] {
        session.ingest("The ferry leaves at nine.", "ferry.md");
    }
    let mut admin = database.admin();
    let extractive =
        "SELECT rag_answer('When does the ferry leave?', options => '{\"generate\": false}')->>'answer'";
    let answer = ann.value(extractive);
    let before = computed(&mut admin);
    assert_eq!(ann.value(extractive), answer);
    assert_eq!(computed(&mut admin), before, "the same question of the same caller");
    assert_eq!(bob.value(extractive), answer);
    let (pairs, texts) = computed(&mut admin);
    assert!(pairs > before.0 && texts > before.1, "two callers share nothing: {before:?}");

    admin.run(&format!("ALTER SYSTEM SET rag_ext.llm_url = '{}'", stub.url()));
    admin.run("ALTER SYSTEM SET rag_ext.llm_model = 'stub'");
    cluster.reload();
    let chat = "SELECT rag_answer('When does the ferry leave?')";
    wait_until("the endpoint is asked", LIMIT, || ann.json(chat)["method"] == "chat");
    let asked = stub.requests().len();
    let before = computed(&mut admin);
    let answer = ann.json(chat);
    assert_eq!(answer["method"], "chat");
    assert_eq!((stub.requests().len(), computed(&mut admin)), (asked, before));
    assert_eq!(bob.json(chat)["answer"], answer["answer"]);
    assert_eq!(stub.requests().len(), asked + 1, "two callers share no completion");
    wait_until("the answers are logged", LIMIT, || {
        bob.column("SELECT DISTINCT method || ' ' || coalesce(models->>'chat', 'none') FROM rag.answer_log ORDER BY 1")
            == ["chat stub", "extractive none"]
    });
}
