//! What a chat model is told and shown: the template of the collection, passages with their places, a budget, topics, and a
//! follow-up that stands alone.

use super::LIMIT;
use super::chat::{assert_quotes, point_to};
use rag_tests::{ChatReply, ChatStub, Cluster, Session, literal, wait_until};
use serde_json::{Value, json};

const TALL: &str = "How tall is the lighthouse of Kap Arkona?";

fn ask(session: &mut Session, question: &str, collection: &str, options: &Value) -> Value {
    session.json(&format!(
        "SELECT rag_answer({}, {collection}, options => {})",
        literal(question),
        literal(&options.to_string())
    ))
}

/// The messages of the latest request with their roles.
fn messages(stub: &ChatStub) -> Vec<(String, String)> {
    let request = stub.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap().iter();
    messages.map(|m| (m["role"].as_str().unwrap().into(), m["content"].as_str().unwrap().into())).collect()
}

fn started(name: &str, stub: &ChatStub) -> Cluster {
    let cluster = Cluster::builder(name).setting("rag_ext.cache_size", "0").start();
    point_to(&cluster, &stub.url(), "20s");
    cluster
}

/// Once the engine knows of the endpoint.
fn until_asked(session: &mut Session, stub: &ChatStub) {
    wait_until("the endpoint is asked", LIMIT, || {
        ask(session, TALL, "NULL", &json!({}));
        !stub.requests().is_empty()
    });
}

#[test]
fn a_collection_has_its_own_prompt_which_no_answer_tells() {
    let stub = ChatStub::start(ChatReply::Message("It is 35 metres tall [1].".into()));
    let cluster = started("prompts", &stub);
    let database = cluster.database("prompts");
    let (mut ann, mut admin) = (database.user("ann"), database.admin());
    let owner = ann.value("SELECT rag.current_owner()");
    ann.run("SELECT rag_create_collection('towers'), rag_create_collection('other')");
    for collection in ["towers", "other"] {
        ann.run(&format!(
            "INSERT INTO rag.document (collection, uri, content)
             VALUES ('{collection}', 'https://example.org/a/arkona.md', 'The lighthouse of Kap Arkona is 35 metres tall.')"
        ));
    }
    ann.settle();
    until_asked(&mut ann, &stub);

    let secret = "You are the keeper of the northern lights and speak to sailors of every nation.";
    let template = json!({
        "system": secret, "tone": "One sentence.", "language": "Danish",
        "examples": [{"passages": ["A pier is long."], "question": "Is a pier long?", "answer": "Ja. [1]"}],
    });
    let set = |collection: &str, template: &Value| {
        format!("SELECT rag_set_prompt({collection}, {})", literal(&template.to_string()))
    };
    let towers = format!("'{owner}/towers'");
    admin.run(&set(&towers, &template));
    admin.run(&set("NULL", &json!({"tone": "In the manner of all."})));

    ask(&mut ann, TALL, "'towers'", &json!({}));
    let told = messages(&stub);
    let system = &told[0].1;
    assert!(system.starts_with(secret) && system.contains("Answer in Danish. One sentence."), "{system}");
    assert!(system.contains("Use only what the passages say"), "{system}");
    assert!(told[1].1.contains("A pier is long.") && told[2].1.contains("Ja. [1]"), "{told:?}");
    assert!(told[3].1.contains("[1: arkona.md]\n"), "{told:?}");
    for collection in ["'other'", "NULL"] {
        ask(&mut ann, TALL, collection, &json!({}));
        assert!(messages(&stub)[0].1.contains("In the manner of all."), "{collection}");
    }

    // Neither an answer nor a stream repeats it.
    stub.reply(ChatReply::Message(format!("It is 35 metres tall [1]. {secret}")));
    let answer = ask(&mut ann, TALL, "'towers'", &json!({"policy": "free"}));
    assert_eq!(answer["method"], "extractive", "{answer:#}");
    assert!(!answer.to_string().contains("northern lights"), "{answer:#}");
    let streamed = ann.column(&format!(
        "SELECT rag_answer_stream('{TALL}', 'towers', options => '{{\"policy\": \"free\"}}')::text"
    ));
    assert!(!streamed.concat().contains("sailors of every nation"), "{streamed:?}");

    // It is a superuser's to say and to read.
    assert_eq!(admin.count("SELECT count(*) FROM rag.prompt"), 2);
    ann.refuses("42501", "SELECT * FROM rag.prompt");
    ann.refuses("42501", &set("'towers'", &template));
    for (code, collection, template) in [
        ("42704", "'no such thing'", json!({})),
        ("22023", "NULL", json!([])),
        ("22023", "NULL", json!({"sentence": "x"})),
        ("54000", "NULL", json!({"tone": "x".repeat(2_001)})),
        ("22023", "NULL", json!({"examples": {}})),
        ("22023", "NULL", json!({"examples": [{"answer": "x"}]})),
        ("22023", "NULL", json!({"examples": [{"question": "x", "passages": [1]}]})),
    ] {
        admin.refuses(code, &set(collection, &template));
    }
    admin.refuses("22004", "SELECT rag_set_prompt(NULL, NULL)");

    admin.run(&set("NULL", &json!({})));
    ann.run("SELECT rag_drop_collection('towers')");
    assert_eq!(admin.count("SELECT count(*) FROM rag.prompt"), 0);
}

#[test]
fn passages_share_a_budget_and_several_documents_make_topics() {
    let stub = ChatStub::start(ChatReply::Message("It is 35 metres tall [1].".into()));
    let cluster = started("budget", &stub);
    let database = cluster.database("budget");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('small', options => '{\"chunking\": {\"unit\": \"tokens\", \"size\": 48, \"overlap\": 0}}')");
    let long = |tower: &str| {
        let about = |part: usize| {
            format!(
                "Part {part} of the lighthouse of {tower} is {part}5 metres tall and has {part} windows of thick old glass on the side of the sea."
            )
        };
        (1..=12).map(about).collect::<Vec<_>>().join("\n\n")
    };
    for (uri, tower) in [("a.md", "Kap Arkona"), ("b.md", "Hiddensee")] {
        ann.run(&format!(
            "INSERT INTO rag.document (collection, uri, content) VALUES ('small', '{uri}', {})",
            literal(&long(tower))
        ));
    }
    ann.settle();
    let question = "How tall are the parts of the lighthouse, and how many windows of glass do they have?";
    let content = |session: &mut Session, options: Value| {
        ask(session, question, "'small'", &options);
        let told = messages(&stub);
        (told[0].1.clone(), told.last().unwrap().1.clone())
    };
    until_asked_about(&mut ann, &stub, question);
    let (system, whole) = content(&mut ann, json!({"k": 20, "context_limit": 20, "near_duplicates": "keep"}));
    assert!(system.contains("topic"), "{system}");
    let (_, short) = content(
        &mut ann,
        json!({"k": 20, "context_limit": 20, "near_duplicates": "keep", "context_budget": 100}),
    );
    assert!(
        short.len() < whole.len() / 2 && short.contains("<passage n=\"1\">"),
        "{}\n{}",
        short,
        whole.len()
    );

    let (system, _) = content(&mut ann, json!({"k": 1}));
    assert!(!system.contains("topic"), "{system}");
}

fn until_asked_about(session: &mut Session, stub: &ChatStub, question: &str) {
    wait_until("the endpoint is asked", LIMIT, || {
        ask(session, question, "'small'", &json!({}));
        !stub.requests().is_empty()
    });
}

#[test]
fn a_follow_up_is_searched_for_as_it_stands_alone() {
    let stub = ChatStub::start(ChatReply::Message("It is 35 metres tall [1].".into()));
    let cluster = started("follow_up", &stub);
    let database = cluster.database("follow_up");
    let mut ann = database.user("ann");
    ann.ingest("The lighthouse of Kap Arkona is 35 metres tall.", "arkona");
    ann.ingest("The lighthouse of Hiddensee is 28 metres tall.", "hiddensee");
    until_asked(&mut ann, &stub);
    let history = json!([
        {"role": "user", "content": TALL}, {"role": "assistant", "content": "It is 35 metres tall. [1]"},
    ]);
    let follow_up = |session: &mut Session| {
        session.json(&format!(
            "SELECT rag_answer('And that of Hiddensee?', history => {})",
            literal(&history.to_string())
        ))
    };
    let stage = |answer: &Value| {
        let stages = answer["diagnostics"].as_array().unwrap();
        stages.iter().find(|stage| stage["stage"] == "follow_up").cloned().unwrap()
    };
    stub.reply(ChatReply::ByWords(vec![
        (
            "prepare queries",
            ChatReply::Message(json!({"query": "How tall is the lighthouse of Hiddensee?"}).to_string()),
        ),
        ("Passages:", ChatReply::Message("It is 28 metres tall [1].".into())),
    ]));
    let before = stub.requests().len();
    let answer = follow_up(&mut ann);
    assert_quotes(&mut ann, &answer);
    assert_eq!(
        (&answer["method"], &answer["citations"][0]["uri"]),
        (&"chat".into(), &"hiddensee".into()),
        "{answer:#}"
    );
    assert!(stage(&answer)["method"].as_str().unwrap().contains("lighthouse of Hiddensee"), "{answer:#}");
    let asked = &stub.requests()[before..];
    assert_eq!(asked.len(), 2);
    let shown = asked[0]["messages"][1]["content"].as_str().unwrap();
    assert!(shown.contains("(user) How tall is") && shown.contains("And that of Hiddensee?"), "{shown}");

    // Without the model's help it is searched for with what was asked before.
    stub.reply(ChatReply::ByWords(vec![
        ("prepare queries", ChatReply::Message("I would rather not.".into())),
        ("Passages:", ChatReply::Message("It is 28 metres tall [1].".into())),
    ]));
    let answer = follow_up(&mut ann);
    assert_eq!(answer["found"], true, "{answer:#}");
    assert_eq!(stage(&answer)["fallback"], "previous question", "{answer:#}");
    let alone = ann.json(&format!(
        "SELECT rag_answer('And that of Hiddensee?', history => {}, options => '{{\"generate\": false}}')",
        literal(&history.to_string())
    ));
    assert!(!alone["diagnostics"].to_string().contains("follow_up"), "{alone:#}");
}
