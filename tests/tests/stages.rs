//! Each stage that a search can do without fails, and hangs: the search answers with what it finds otherwise, within its
//! deadline, and its diagnostics say so; the transaction goes on, and a cancel of the caller's still ends the call.

#![allow(clippy::unwrap_used)]

#[path = "stages/ending.rs"]
mod ending;
#[path = "stages/holding.rs"]
mod holding;

use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session, literal, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// With a name that the documents relate to others, and an acronym that they define.
const QUERY: &str = "What does the setting rope_length of the harbour require by the SLA?";

const DOCUMENTS: [(&str, &str); 4] = [
    (
        "ropes.md",
        "# Ropes of the harbour\n\nBy FC-001-234 the setting rope_length of the harbour requires rope_width. See anchor_chain in [chains](chains.md).",
    ),
    (
        "chains.md",
        "# Chains\n\nThe Service Level Agreement (SLA) of anchor_chain holds by FC-001-234 for rope_width.",
    ),
    (
        "weather.md",
        "# Weather\n\nThe weather in the harbour was fine, and somebody bought a rope by FC-001-234.",
    ),
    ("bread.md", "# Bread\n\nSourdough bread rises with wild yeast and needs a warm place."),
];

/// What a stage hangs on, or fails by.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Somebody holds this table.
    Held(&'static str),
    /// A policy on this table runs somebody's code, in this one of so many evaluations, counted from the last backwards.
    Policy { table: &'static str, from_last: i64 },
    /// The chat model.
    Chat,
}

/// A stage, the options that ask for it, and what is to take its place.
struct Case {
    stage: &'static str,
    mode: &'static str,
    options: Value,
    fallback: &'static str,
    trouble: Trouble,
}

/// One row per stage and kind of trouble. A stage that is added has its row here: with the table that it alone reads
/// as `Held`, and otherwise with a policy.
fn cases() -> Vec<Case> {
    let case = |stage, mode, options, fallback, trouble| Case { stage, mode, options, fallback, trouble };
    let (plain, chat) = ("plain query", Trouble::Chat);
    let graph = json!({"graph": "on"});
    let hops = json!({"hops": 2});
    vec![
        case("acronyms", "hybrid", json!({}), plain, Trouble::Held("acronym")),
        case("acronyms", "keyword", json!({}), plain, Trouble::Held("mined_acronym")),
        case(
            "acronyms",
            "vector",
            json!({}),
            plain,
            Trouble::Policy { table: "mined_acronym", from_last: 0 },
        ),
        case(
            "spelling",
            "hybrid",
            json!({"spelling": "on"}),
            plain,
            Trouble::Policy { table: "segment", from_last: 1 },
        ),
        case("rewrite", "hybrid", json!({"rewrite": "on"}), plain, chat),
        case("decompose", "hybrid", json!({"decompose": "on"}), plain, chat),
        case("hyde", "hybrid", json!({"hyde": "on"}), plain, chat),
        case("next_question", "hybrid", json!({"hops": 2, "next_hop": "chat"}), "entities", chat),
        case("hop", "hybrid", hops.clone(), "hits of the first search", Trouble::Held("entity_mention")),
        case(
            "hop",
            "keyword",
            hops,
            "hits of the first search",
            Trouble::Policy { table: "entity_mention", from_last: 0 },
        ),
        case("graph", "hybrid", graph.clone(), "hits without the graph", Trouble::Held("entity_mention")),
        case("graph", "keyword", graph.clone(), "hits without the graph", Trouble::Held("entity_relation")),
        case("graph", "vector", graph.clone(), "hits without the graph", Trouble::Held("document_link")),
        case(
            "graph",
            "hybrid",
            graph,
            "hits without the graph",
            Trouble::Policy { table: "document_link", from_last: 0 },
        ),
        case(
            "feedback_boost",
            "hybrid",
            json!({"feedback_boost": 0.5}),
            "order without feedback",
            Trouble::Held("feedback"),
        ),
        case(
            "context",
            "hybrid",
            json!({"context": "section"}),
            "chunks as they are",
            Trouble::Policy { table: "chunk", from_last: 0 },
        ),
        case(
            "context",
            "keyword",
            json!({"context": "window"}),
            "chunks as they are",
            Trouble::Policy { table: "chunk", from_last: 0 },
        ),
    ]
}

/// A server with documents of one user's, and a chat model that a test decides on.
struct Place<'a> {
    database: Database<'a>,
    role: String,
}

fn cluster(name: &str, stub: &ChatStub) -> Cluster {
    Cluster::builder(name)
        .setting("rag_ext.cache_size", "0")
        .setting("rag_ext.llm_retries", "0")
        .setting("rag_ext.llm_url", &stub.url())
        .start()
}

impl<'a> Place<'a> {
    fn of(cluster: &'a Cluster, name: &str) -> Self {
        let database = cluster.database(name);
        let role = database.role("ann");
        let mut ann = database.connect(&role);
        for (uri, text) in DOCUMENTS {
            ann.ingest(text, uri);
        }
        ann.run("SELECT rag_set_acronym('default', 'RLX', 'rope length extension')");
        database.admin().run(
            "CREATE SCHEMA trouble;
             GRANT USAGE ON SCHEMA trouble TO public;
             CREATE SEQUENCE trouble.evaluations;
             CREATE FUNCTION trouble.lets(kind text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
             DECLARE
                 evaluation constant bigint := nextval('trouble.evaluations');
             BEGIN
                 IF evaluation = nullif(current_setting('trouble.at', true), '')::bigint THEN
                     IF current_setting('trouble.kind') = 'hang' THEN
                         PERFORM pg_sleep(600);
                     END IF;
                     RAISE EXCEPTION 'lost on the way' USING ERRCODE = 'internal_error';
                 END IF;
                 RETURN true;
             END $$",
        );
        Self { database, role }
    }

    /// A session that has searched before and waits for nobody longer than a minute.
    fn session(&self) -> Session {
        let mut session = self.database.connect(&self.role);
        session.run("SET statement_timeout = '60s'");
        session
    }

    fn evaluations(&self) -> i64 {
        self.database.admin().count("SELECT last_value - 1 + is_called::int FROM trouble.evaluations")
    }

    fn count_from_one(&self) {
        self.database.admin().run("SELECT setval('trouble.evaluations', 1, false)");
    }
}

/// Addresses of the hits, and the stages.
fn search(session: &mut Session, mode: &str, options: &Value) -> (Vec<String>, Vec<Value>) {
    let rows = session.rows(&call(mode, options));
    let found = rows.iter().map(|row| row[0].clone().unwrap()).collect();
    let details: Value = serde_json::from_str(rows[0][1].as_deref().unwrap()).unwrap();
    (found, details["stages"].as_array().unwrap().clone())
}

fn call(mode: &str, options: &Value) -> String {
    format!(
        "SELECT uri, details FROM rag_search({}, k => 3, mode => '{mode}', options => {}) ORDER BY rank",
        literal(QUERY),
        literal(&options.to_string())
    )
}

#[track_caller]
fn row<'v>(stages: &'v [Value], name: &str) -> &'v Value {
    stages.iter().find(|stage| stage["stage"] == name).unwrap_or_else(|| panic!("no {name}: {stages:?}"))
}

/// Searches in a transaction that goes on, and compares with what was found without the stage.
#[track_caller]
fn falls_back(session: &mut Session, case: &Case, plain: &[String], reason: &str) {
    session.run("BEGIN");
    let (found, stages) = search(session, case.mode, &case.options);
    let lost = row(&stages, case.stage);
    assert_eq!(lost["fallback"], case.fallback, "{}: {stages:?}", case.stage);
    assert!(lost["reason"].as_str().unwrap().contains(reason), "{}: {lost}", case.stage);
    assert_eq!(found, plain, "{}: {stages:?}", case.stage);
    session.run("SELECT 1; COMMIT");
}

/// The same search without what is asked for, and one in which nothing is amiss.
#[track_caller]
fn plain(session: &mut Session, case: &Case) -> Vec<String> {
    let off = if case.stage == "acronyms" { json!({"acronyms": "off"}) } else { json!({}) };
    let (found, stages) = search(session, case.mode, &off);
    assert!(
        stages.iter().all(|stage| stage["stage"] != case.stage && stage["fallback"].is_null()),
        "{stages:?}"
    );
    found
}

#[test]
fn stages_that_hang_or_fail_are_done_without() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("stages", &stub);
    let place = Place::of(&cluster, "stages");
    for case in cases() {
        eprintln!("{} by {:?}", case.stage, case.trouble);
        let mut session = place.session();
        match case.trouble {
            Trouble::Held(table) => {
                let plain = plain(&mut session, &case);
                let mut holder = place.database.admin();
                holder.run(&format!("BEGIN; LOCK TABLE rag.{table} IN ACCESS EXCLUSIVE MODE"));
                session.run("SET rag_ext.query_deadline = '500ms'");
                falls_back(&mut session, &case, &plain, "rag_ext.query_deadline, 500 ms");
                // A time-out of the caller's for locks is an error of the stage alone.
                session.run("SET rag_ext.query_deadline = '10min'; SET lock_timeout = '100ms'");
                falls_back(&mut session, &case, &plain, "lock timeout");
                session.run("RESET lock_timeout");
                holder.run("ROLLBACK");
            }
            Trouble::Policy { table, from_last } => {
                place.database.admin().run(&format!(
                    "SELECT rag_add_policy('rag.{table}', 'trouble', $$trouble.lets('{table}')$$, command => 'select')"
                ));
                let plain = plain(&mut session, &case);
                place.count_from_one();
                search(&mut session, case.mode, &case.options);
                let at = if from_last == 0 { place.evaluations() } else { 1 };
                for (kind, reason) in
                    [("hang", "rag_ext.query_deadline, 500 ms"), ("fail", "lost on the way")]
                {
                    place.count_from_one();
                    session.run(&format!(
                        "SET trouble.at = '{at}'; SET trouble.kind = '{kind}'; SET rag_ext.query_deadline = '{}'",
                        if kind == "hang" { "500ms" } else { "10min" }
                    ));
                    falls_back(&mut session, &case, &plain, reason);
                }
                place.database.admin().run(&format!("SELECT rag_drop_policy('rag.{table}', 'trouble')"));
            }
            Trouble::Chat => {
                let without = Case { options: entities_alone(&case.options), ..case };
                let plain = search(&mut session, case.mode, &without.options).0;
                for (reply, reason, deadline) in [
                    (ChatReply::Hang, "", "500ms"),
                    (ChatReply::Status(500, "{}".into()), "", "10min"),
                    (ChatReply::Message("I would rather not.".into()), "not of the form", "10min"),
                ] {
                    stub.reply(reply);
                    session.run(&format!("SET rag_ext.query_deadline = '{deadline}'"));
                    let case = Case { options: case.options.clone(), ..case };
                    falls_back(&mut session, &case, &plain, reason);
                }
            }
        }
        assert!(session.lives());
        let (_, stages) = search(&mut place.session(), case.mode, &json!({}));
        assert!(stages.iter().all(|stage| stage["fallback"].is_null()), "after {}: {stages:?}", case.stage);
    }
}

/// What is left of the options where the chat model says nothing.
fn entities_alone(options: &Value) -> Value {
    if options["hops"].is_null() { json!({}) } else { json!({"hops": 2}) }
}

#[test]
fn all_stages_together_have_one_time() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("together", &stub);
    let place = Place::of(&cluster, "together");
    let mut session = place.session();
    let plain = search(&mut session, "hybrid", &json!({})).0;
    session.run("SET rag_ext.query_deadline = '500ms'");
    let all = json!({
        "rewrite": "on", "decompose": "on", "hyde": "on", "spelling": "on", "graph": "on", "hops": 2, "next_hop": "chat",
        "context": "section"
    });
    let (found, stages) = search(&mut session, "hybrid", &all);
    assert_eq!(found, plain);
    let asked = stub.requests().len();
    assert_eq!(asked, 1, "whoever comes behind the first has no time left: {stages:?}");
    for name in ["rewrite", "decompose", "hyde", "spelling", "next_question", "hop", "graph", "context"] {
        assert!(row(&stages, name)["fallback"].is_string(), "{name}: {stages:?}");
    }
    // The next search has time again, and so has an answer's.
    assert!(row(&search(&mut session, "hybrid", &json!({"graph": "on"})).1, "graph")["fallback"].is_null());
    let answer = session.json(
        "SELECT rag_answer('What does rope_length require?', options => '{\"rewrite\": \"on\", \"generate\": false}')",
    );
    assert!(answer["warnings"].to_string().contains("rewrite stage unavailable"), "{answer:#}");
    assert!(answer["answer"].as_str().unwrap().contains("rope_width"), "{answer:#}");
    // rag_explain has a row for each.
    let rows = session.rows(&format!(
        "SELECT stage, reason FROM rag_explain({}, options => '{{\"rewrite\": \"on\"}}') WHERE fallback = 'plain query'",
        literal(QUERY)
    ));
    assert_eq!(rows[0][0].as_deref(), Some("rewrite"), "{rows:?}");
}

#[test]
fn what_the_chat_model_asks_next_is_searched_for() {
    let stub = ChatStub::start(ChatReply::Message(json!({"query": "sourdough bread"}).to_string()));
    let cluster = cluster("next", &stub);
    let place = Place::of(&cluster, "next");
    let mut session = place.session();
    let options = json!({"hops": 2, "next_hop": "chat"});
    let (found, stages) = search(&mut session, "keyword", &options);
    assert_eq!(found[..2], ["ropes.md", "bread.md"], "{stages:?}");
    assert_eq!(row(&stages, "next_question")["method"], "chat: sourdough bread");
    assert_eq!(row(&stages, "hop")["method"], "chat");
    let request = stub.requests().pop().unwrap();
    let shown = request["messages"][1]["content"].as_str().unwrap();
    assert!(shown.contains("<passage n=\"1\">") && shown.contains("requires rope_width"), "{shown}");
    assert!(shown.ends_with(&format!("<query>\n{QUERY}\n</query>")), "{shown}");
    assert!(request.to_string().contains("json_schema"), "{request:#}");
    // By itself the option does nothing.
    let asked = stub.requests().len();
    search(&mut session, "keyword", &json!({"next_hop": "chat"}));
    search(&mut session, "keyword", &json!({"next_hop": "entities", "hops": 2}));
    assert_eq!(stub.requests().len(), asked);
    session.refuses("22023", "SELECT rag_search('x', options => '{\"next_hop\": \"elsewhere\"}')");
    // Another's documents are not shown to it.
    let mut bob = place.database.user("bob");
    bob.ingest("The harbour of Bob requires nothing.", "bob.md");
    assert_eq!(search(&mut bob, "keyword", &options).0, ["bob.md"]);
    let shown = stub.requests().pop().unwrap().to_string();
    assert!(shown.contains("Bob requires nothing") && !shown.contains("rope_width"), "{shown}");
}

#[test]
fn retrievers_and_reranking_make_up_for_each_other() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("retrievers", &stub);
    let place = Place::of(&cluster, "retrievers");
    let mut session = place.session();
    let fused = search(&mut session, "hybrid", &json!({})).0;
    let words = search(&mut session, "keyword", &json!({})).0;

    let rerank = json!({"rerank_model": "chat"});
    session.run("SET rag_ext.rerank_timeout = '500ms'");
    for reply in [ChatReply::Hang, ChatReply::Status(500, "{}".into())] {
        stub.reply(reply);
        let (found, stages) = search(&mut session, "hybrid", &rerank);
        assert_eq!(row(&stages, "rerank")["fallback"], "fused order", "{stages:?}");
        assert_eq!(found, fused);
    }

    let engine = cluster.running_engine();
    session.run("SET rag_ext.engine_timeout = '2s'");
    engine.signal(Signal::STOP);
    let (found, stages) = search(&mut session, "hybrid", &json!({"graph": "on"}));
    engine.signal(Signal::CONT);
    session.run("RESET rag_ext.engine_timeout");
    assert_eq!(row(&stages, "vector")["fallback"], "keyword", "{stages:?}");
    assert_eq!(found[0], words[0]);
    wait_until("the engine answers", Duration::from_secs(60), || {
        session.try_rows("SELECT rag_embed('ready?')").is_ok()
    });

    place.database.leave_damaged();
    place.database.admin().run(
        "UPDATE rag.segment SET data = set_byte(data, length(data) / 2, 255 - get_byte(data, length(data) / 2))",
    );
    let (found, stages) = search(&mut place.session(), "hybrid", &json!({}));
    assert_eq!(row(&stages, "keyword")["fallback"], "what is sound", "{stages:?}");
    assert_eq!(found.len(), 3);
}
