//! Answers that are read while they are written. The model's stand-in says its next words only once the client has seen the
//! last ones, so what is seen is seen in time, however fast the machine is.

use super::LIMIT;
use super::chat::assert_quotes;
use postgres::fallible_iterator::FallibleIterator;
use rag_tests::{ChatReply, ChatScript, ChatStub, ChatVoice, Cluster, Database, Session, wait_until};
use serde_json::{Value, json};
use std::time::Instant;

const CALL: &str = "rag_answer_stream('How tall is the lighthouse of Kap Arkona?')";

fn cluster_with(stub: &ChatStub, name: &str) -> Cluster {
    Cluster::builder(name)
        .setting("rag_ext.cache_size", "0")
        .setting("rag_ext.llm_url", &stub.url())
        .setting("rag_ext.llm_model", "stub")
        .setting("rag_ext.llm_fallback_models", "spare")
        .start()
}

fn corpus(database: &Database<'_>) -> Session {
    let mut session = database.user("ann");
    session.ingest("The lighthouse of Kap Arkona is 35 metres tall. It was built in 1901.", "arkona");
    session
}

/// The next request gets a new script.
fn scripted(stub: &ChatStub) -> ChatVoice {
    let (script, voice) = ChatScript::new();
    stub.reply(ChatReply::Stream(script));
    voice
}

/// The parts of an answer as a model writes it, each with what is shown of it.
const PARTS: [(&str, &str); 3] = [
    ("{\"found\": true, \"answer\": \"The lighthouse ", "The lighthouse"),
    ("of Kap Arkona is 35 metres ", " of Kap Arkona is 35 metres"),
    ("tall [1]. See https://evil.example/x ", " tall. See …"),
];

#[test]
fn words_are_seen_while_the_model_writes() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster_with(&stub, "streaming");
    let database = cluster.database("streaming");
    let mut ann = corpus(&database);

    // By a cursor, in a transaction that may not write.
    let voice = scripted(&stub);
    voice.say(PARTS[0].0);
    ann.run(&format!("BEGIN READ ONLY; DECLARE parts NO SCROLL CURSOR FOR SELECT {CALL}"));
    for (index, (_, shown)) in PARTS.iter().enumerate() {
        assert_eq!(ann.json("FETCH 1 FROM parts"), json!({ "delta": shown }));
        match PARTS.get(index + 1) {
            Some((said, _)) => voice.say(said),
            None => voice.say("\"}"),
        }
    }
    drop(voice);
    let done = ann.json("FETCH 1 FROM parts");
    assert_checked(&mut ann, &done);
    assert!(ann.rows("FETCH 1 FROM parts").is_empty());
    ann.run("COMMIT");
    assert_eq!(stub.requests().pop().unwrap()["stream"], true);

    // As rows come, of one statement, wherever the call stands.
    for sql in [format!("SELECT {CALL}::text"), format!("SELECT part::text FROM {CALL} AS part")] {
        let voice = scripted(&stub);
        voice.say(PARTS[0].0);
        let done = {
            let mut rows = ann.client().query_raw(&sql, Vec::<String>::new()).unwrap();
            let mut next = || {
                let row = rows.next().unwrap()?;
                Some(serde_json::from_str::<Value>(row.get(0)).unwrap())
            };
            for (index, (_, shown)) in PARTS.iter().enumerate() {
                assert_eq!(next(), Some(json!({ "delta": shown })), "{sql}");
                voice.say(PARTS.get(index + 1).map_or("\"}", |(said, _)| said));
            }
            drop(voice);
            let done = next().unwrap();
            assert_eq!(next(), None);
            done
        };
        assert_checked(&mut ann, &done);
    }
    assert!(ann.lives());
}

fn assert_checked(session: &mut Session, done: &Value) {
    assert_eq!((&done["done"], &done["method"]), (&true.into(), &"chat".into()), "{done:#}");
    let text = done["answer"].as_str().unwrap();
    assert!(text.contains("35 metres tall") && text.contains("[1]") && !text.contains("evil"), "{done:#}");
    assert_quotes(session, done);
    let stages = done["diagnostics"].as_array().unwrap();
    let generate = stages.iter().find(|stage| stage["stage"] == "generate").unwrap();
    assert_eq!(generate["details"]["completion_tokens"], 5, "{done:#}");
}

#[test]
fn whoever_stops_reading_stops_the_model() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster_with(&stub, "stopping");
    let database = cluster.database("stopping");
    let mut ann = corpus(&database);
    let ended = |what: &str, voice: &ChatVoice| {
        let start = Instant::now();
        wait_until(&format!("{what}: the request to the model ends"), LIMIT, || voice.is_gone());
        eprintln!("{what}: the model's connection ended within {:?}", start.elapsed());
    };

    for call in [CALL.to_owned(), format!("part FROM {CALL} AS part")] {
        let voice = scripted(&stub);
        voice.say("The lighthouse of ");
        assert_eq!(ann.rows(&format!("SELECT {call} LIMIT 1")).len(), 1);
        ended("LIMIT", &voice);
    }

    let voice = scripted(&stub);
    voice.say("The lighthouse of ");
    ann.run(&format!("BEGIN; DECLARE parts CURSOR FOR SELECT {CALL}"));
    assert_eq!(ann.rows("FETCH 1 FROM parts").len(), 1);
    assert!(!voice.is_gone());
    ann.run("CLOSE parts");
    ended("CLOSE", &voice);
    ann.run("COMMIT");

    let voice = scripted(&stub);
    voice.say("The lighthouse of ");
    ann.run(&format!("BEGIN; DECLARE parts CURSOR FOR SELECT {CALL}"));
    assert_eq!(ann.rows("FETCH 1 FROM parts").len(), 1);
    ann.run("ROLLBACK");
    ended("ROLLBACK", &voice);

    // The second row never comes.
    let voice = scripted(&stub);
    voice.say("The lighthouse of ");
    let cancel = ann.client().cancel_token();
    let sql = format!("SELECT {CALL}::text");
    {
        let mut rows = ann.client().query_raw(&sql, Vec::<String>::new()).unwrap();
        assert!(rows.next().unwrap().is_some());
        cancel.cancel_query(postgres::NoTls).unwrap();
        let error = rows.next().err().unwrap();
        assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error}");
    }
    ended("cancel", &voice);

    let voice = scripted(&stub);
    voice.say("The lighthouse of ");
    ann.run(&format!("BEGIN; DECLARE parts CURSOR FOR SELECT {CALL}"));
    assert_eq!(ann.rows("FETCH 1 FROM parts").len(), 1);
    ann.run("SET LOCAL statement_timeout = '100ms'");
    ann.refuses("57014", "FETCH 1 FROM parts");
    ann.run("ROLLBACK");
    ended("statement_timeout", &voice);
    assert!(ann.lives());
}

#[test]
fn without_a_model_an_answer_comes_in_sentences() {
    let stub = ChatStub::start(ChatReply::Status(404, "{}".into()));
    let cluster = cluster_with(&stub, "sentences");
    let database = cluster.database("sentences");
    let mut ann = corpus(&database);
    let parts = |session: &mut Session, call: &str| -> (String, Value) {
        let mut rows: Vec<Value> = session
            .column(&format!("SELECT {call}"))
            .iter()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        let done = rows.pop().unwrap();
        assert_eq!(done["done"], true, "{done:#}");
        (rows.iter().map(|row| row["delta"].as_str().unwrap()).collect(), done)
    };
    // No model answers: told in the warnings, and extracted.
    let (text, done) = parts(&mut ann, CALL);
    assert_eq!((&done["answer"], &done["method"]), (&text.as_str().into(), &"extractive".into()), "{done:#}");
    assert!(done["warnings"].to_string().contains("404"), "{done:#}");
    ann.refuses(
        "58000",
        &format!("SELECT {}", CALL.replace("?'", "?', options => '{\"on_failure\": \"error\"}'")),
    );
    // None is asked.
    let plain = CALL.replace("?'", "?', options => '{\"generate\": false}'");
    let (text, done) = parts(&mut ann, &plain);
    assert_eq!((&done["answer"], &done["warnings"]), (&text.as_str().into(), &json!([])), "{done:#}");
    // Nothing is found.
    let (text, done) = parts(&mut ann, "rag_answer_stream('What is the capital of Mongolia?')");
    assert_eq!((&done["answer"], &done["found"]), (&text.as_str().into(), &false.into()), "{done:#}");

    // It breaks off half-way: what was shown is not the answer, and no other model begins anew.
    let (script, voice) = ChatScript::new();
    stub.reply(ChatReply::ByModel(vec![("stub", ChatReply::Stream(script))]));
    voice.say("The lighthouse is made of cheese and ");
    voice.say_raw("data: {broken\n\n");
    let before = stub.requests().len();
    let (text, done) = parts(&mut ann, CALL);
    assert!(text.starts_with("The lighthouse is made of cheese"), "{text}");
    assert_eq!(done["method"], "extractive", "{done:#}");
    assert!(!done["answer"].as_str().unwrap().contains("cheese"), "{done:#}");
    assert_eq!(stub.requests().len(), before + 1);
    ann.refuses("22004", "SELECT rag_answer_stream(NULL)");
}
