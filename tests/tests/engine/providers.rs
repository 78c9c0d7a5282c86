//! Which chat model answers, what takes its place where it fails, and where its requests may go.

use super::LIMIT;
use super::chat::assert_quotes;
use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session, literal, wait_until};
use serde_json::{Value, json};
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

const TALL: &str = "How tall is the lighthouse of Kap Arkona?";
const WHY: &str = "Why is the lighthouse of Kap Arkona 35 metres tall?";
const GOOD: &str = "The lighthouse of Kap Arkona is 35 metres tall [1].";

fn corpus(database: &Database<'_>) -> Session {
    let mut session = database.user("ann");
    session.ingest("The lighthouse of Kap Arkona is 35 metres tall. It was built in 1901.", "arkona");
    session
}

fn cluster_with(stub: &ChatStub, name: &str, settings: &[(&str, &str)]) -> Cluster {
    let mut builder = Cluster::builder(name)
        .setting("rag_ext.cache_size", "0")
        .setting("rag_ext.llm_url", &stub.url())
        .setting("rag_ext.llm_model", "main");
    for (name, value) in settings {
        builder = builder.setting(name, value);
    }
    builder.start()
}

fn ask(session: &mut Session, question: &str, options: &Value) -> Value {
    session.json(&format!("SELECT rag_answer({}, options => '{options}')", literal(question)))
}

/// What the diagnostics say of the model.
fn generate(answer: &Value) -> &Value {
    let stages = answer["diagnostics"].as_array().unwrap();
    stages.iter().find(|stage| stage["stage"] == "generate").unwrap_or(&Value::Null)
}

#[test]
fn the_question_and_the_options_say_which_model_is_asked_and_how() {
    let stub = ChatStub::start(ChatReply::Message(GOOD.into()));
    let cluster = cluster_with(&stub, "routes", &[("rag_ext.llm_simple_model", "small")]);
    let database = cluster.database("routes");
    let mut ann = corpus(&database);
    let sampling = json!({"temperature": 0.5, "top_p": 0.25, "max_tokens": 99});
    for (question, options, complexity, model, max_tokens) in [
        (TALL, json!({}), "simple", "small", 512),
        (WHY, json!({}), "complex", "main", 1024),
        (TALL, sampling, "simple", "small", 99),
    ] {
        let answer = ask(&mut ann, question, &options);
        assert_eq!(answer["method"], "chat", "{answer:#}");
        let request = stub.requests().pop().unwrap();
        assert_eq!((&request["model"], &request["max_tokens"]), (&model.into(), &max_tokens.into()));
        assert_eq!(request["temperature"].as_f64(), Some(options["temperature"].as_f64().unwrap_or(0.0)));
        assert_eq!(request["top_p"].as_f64(), options["top_p"].as_f64());
        let details = &generate(&answer)["details"];
        assert_eq!((&details["question"], &details["model"]), (&complexity.into(), &model.into()));
        assert_eq!((&details["max_tokens"], &details["completion_tokens"]), (&max_tokens.into(), &5.into()));
    }
    for options in [json!({"temperature": 3}), json!({"top_p": -1}), json!({"max_tokens": 0})] {
        ann.refuses("22023", &format!("SELECT rag_answer('{TALL}', options => '{options}')"));
    }
}

#[test]
fn whatever_an_endpoint_does_the_answer_is_sound_and_in_time() {
    let stub = ChatStub::start(ChatReply::Message(GOOD.into()));
    let settings = [
        ("rag_ext.llm_fallback_models", "spare"),
        ("rag_ext.llm_timeout", "1s"),
        ("rag_ext.llm_deadline", "20s"),
    ];
    let cluster = cluster_with(&stub, "provider_faults", &settings);
    let database = cluster.database("provider_faults");
    let mut ann = corpus(&database);
    let raw = |status: &str, headers: &str, body: &str| {
        ChatReply::Raw(format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n{body}"))
    };
    let busy = || raw("429 Too Many Requests", "Retry-After: 1\r\nContent-Length: 0\r\n", "");
    let content = |text: &str| json!({"choices": [{"message": {"content": text}}]}).to_string();
    let good = || ChatReply::Message(GOOD.into());
    let failing = [
        ("500s", ChatReply::Status(500, "{}".into())),
        ("429 with a long Retry-After", raw("429 No", "Retry-After: 3600\r\nContent-Length: 0\r\n", "")),
        ("hang", ChatReply::Hang),
        ("half a reply", raw("200 OK", "Content-Length: 500\r\n", "{\"choices\": [{\"mess")),
        ("invalid JSON", ChatReply::Status(200, "{\"choices\": [".into())),
        ("wrong model name", ChatReply::Status(404, "{}".into())),
        ("10 MB", ChatReply::Status(200, content(&"word ".repeat(2 << 20)))),
        ("no reply at all", raw("", "", "")),
    ];
    for (what, reply) in failing {
        // The spare model answers, and it is told why.
        stub.reply(ChatReply::ByModel(vec![("main", reply.clone()), ("spare", good())]));
        let start = Instant::now();
        let answer = ask(&mut ann, TALL, &json!({}));
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:?}", start.elapsed());
        let details = &generate(&answer)["details"];
        assert_eq!(
            (&answer["method"], &details["model"]),
            (&"chat".into(), &"spare".into()),
            "{what}: {answer:#}"
        );
        assert_eq!(details["failed_models"][0]["model"], "main", "{what}: {answer:#}");
        assert!(!details["failed_models"][0]["reason"].as_str().unwrap().is_empty(), "{what}: {answer:#}");
        assert_quotes(&mut ann, &answer);

        // No model answers: the documents do, and it is told why.
        stub.reply(reply);
        let start = Instant::now();
        let answer = ask(&mut ann, TALL, &json!({}));
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:?}", start.elapsed());
        let stage = generate(&answer);
        assert_eq!(
            (&answer["method"], &answer["found"]),
            (&"extractive".into(), &true.into()),
            "{what}: {answer:#}"
        );
        assert!(answer["answer"].as_str().unwrap().contains("35 metres"), "{what}: {answer:#}");
        assert_eq!(stage["fallback"], "extractive answer", "{what}: {answer:#}");
        let reason = stage["reason"].as_str().unwrap();
        assert!(reason.contains("main") && reason.contains("spare"), "{what}: {reason}");
        assert_quotes(&mut ann, &answer);
    }

    // What passes is asked for again.
    stub.reply(ChatReply::Turns(vec![busy(), good()]));
    let answer = ask(&mut ann, TALL, &json!({}));
    let details = &generate(&answer)["details"];
    assert_eq!((&answer["method"], &details["model"]), (&"chat".into(), &"main".into()), "{answer:#}");
    assert!(details["failed_models"].is_null(), "{answer:#}");

    // A schema that is not known is left out, and plain text is read.
    stub.reply(ChatReply::Turns(vec![ChatReply::Status(400, "{}".into()), good()]));
    let answer = ask(&mut ann, TALL, &json!({}));
    assert_eq!(answer["method"], "chat", "{answer:#}");
    assert!(stub.requests().pop().unwrap()["response_format"].is_null());

    // Callers who want to know are told.
    stub.reply(ChatReply::Status(404, "{}".into()));
    let failure =
        ann.error(&format!("SELECT rag_answer('{TALL}', options => '{{\"on_failure\": \"error\"}}')"));
    assert_eq!(failure.code, "58000", "{failure:?}");
    assert!(failure.message.contains("404"), "{failure:?}");
}

#[test]
fn what_a_model_makes_up_is_in_no_answer() {
    let stub = ChatStub::start(ChatReply::Message(GOOD.into()));
    let cluster = cluster_with(&stub, "made_up", &[]);
    let database = cluster.database("made_up");
    let mut ann = corpus(&database);
    for reply in [
        "The lighthouse of Kap Arkona is 35 metres tall [99].",
        "The lighthouse of Kap Arkona is 35 metres tall [1]. See [more](https://evil.example/?q=1) [1].",
        "The lighthouse of Kap Arkona is 35 metres tall [1]. ![x](https://evil.example/p.png)",
    ] {
        stub.reply(ChatReply::Message(reply.into()));
        let answer = ask(&mut ann, TALL, &json!({}));
        let text = answer["answer"].as_str().unwrap();
        assert!(text.contains("35 metres") && !text.contains("99") && !text.contains("evil"), "{answer:#}");
        assert_quotes(&mut ann, &answer);
    }
}

/// An address of this machine that is not its loopback.
fn outer_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Sends nothing: it only asks which address a packet would leave by.
    socket.connect("198.51.100.1:9").expect("this machine has a route to the outside");
    let address = socket.local_addr().unwrap().ip();
    assert!(!address.is_loopback(), "{address} is not what the test is about");
    address
}

#[test]
fn no_connection_leaves_the_machine_unless_settings_and_collections_allow_it() {
    let stub = ChatStub::start_at(outer_address(), ChatReply::Message(GOOD.into()));
    let cluster = cluster_with(&stub, "no_connection", &[]);
    let database = cluster.database("no_connection");
    let mut ann = corpus(&database);
    let answer = ask(&mut ann, TALL, &json!({}));
    assert_eq!((&answer["method"], stub.connections()), (&"extractive".into(), 0), "{answer:#}");
    assert!(generate(&answer)["reason"].as_str().unwrap().contains("beyond this machine"), "{answer:#}");

    cluster.connect("postgres", "postgres").run("ALTER SYSTEM SET rag_ext.allow_remote = on");
    cluster.reload();
    wait_until("the endpoint is asked", LIMIT, || ask(&mut ann, TALL, &json!({}))["method"] == "chat");

    // One collection of the scope is enough, whatever was found; it holds for reranking by the chat model as well.
    ann.run("SELECT rag_create_collection('secret', options => '{\"remote\": false}')");
    ann.value("SELECT rag_ingest('The safe is behind the picture.', collection => 'secret')");
    ann.settle();
    let before = stub.connections();
    for options in [json!({}), json!({"rerank_model": "chat"})] {
        let answer = ask(&mut ann, TALL, &options);
        assert_eq!((&answer["method"], stub.connections()), (&"extractive".into(), before), "{answer:#}");
        assert!(generate(&answer)["reason"].as_str().unwrap().contains("collection"), "{answer:#}");
    }
    let named = ann.json(&format!("SELECT rag_answer('{TALL}', collection => 'default')"));
    assert_eq!((&named["method"], stub.connections()), (&"chat".into(), before + 1), "{named:#}");

    // Taken back, without cutting the documents anew.
    ann.run("SELECT rag_alter_collection('secret', options => '{\"remote\": true}')");
    assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE status = 'pending'"), 0);
    assert_eq!(ask(&mut ann, TALL, &json!({}))["method"], "chat");
    ann.refuses("22023", "SELECT rag_alter_collection('secret', options => '{\"remote\": 1}')");
}
