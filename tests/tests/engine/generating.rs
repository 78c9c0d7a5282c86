//! What becomes of what a chat model writes: right answers in other words stay, inventions go as the policy says.

use super::LIMIT;
use super::chat::{assert_quotes, point_to};
use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session, literal, wait_until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TALL: &str = "How tall is the lighthouse of Kap Arkona?";

/// Text, and the endpoint in use: it has answered once.
fn ready(cluster: &Cluster, database: &Database<'_>, stub: &ChatStub, timeout: &str) -> Session {
    let mut session = database.user("ann");
    session.ingest("The lighthouse of Kap Arkona is 35 metres tall. It was built in 1901.", "arkona");
    session.ingest("The yearly fee of the rowing club is 60 euros.", "fee");
    session.ingest("A locker in the rowing club costs 15 euros a year.", "locker");
    session.ingest("Der Leuchtturm von Hiddensee ist 28 Meter hoch.", "hiddensee");
    point_to(cluster, &stub.url(), timeout);
    wait_until("the endpoint is asked", LIMIT, || {
        ask(&mut session, TALL, "{}");
        !stub.requests().is_empty()
    });
    session
}

fn ask(session: &mut Session, question: &str, options: &str) -> Value {
    session.json(&format!("SELECT rag_answer({}, options => '{options}')", literal(question)))
}

#[test]
fn right_answers_need_not_be_verbatim_and_inventions_are_left_out() {
    let stub = ChatStub::start(ChatReply::Message("It is 35 metres tall [1].".into()));
    let cluster = Cluster::builder("claims").setting("rag_ext.cache_size", "0").start();
    let database = cluster.database("claims");
    let mut ann = ready(&cluster, &database, &stub, "20s");
    let together = "What do the yearly fee and a locker of the rowing club cost together?";
    let taller = "Is the lighthouse of Kap Arkona taller than 30 metres?";
    let hoch = "Wie hoch ist der Leuchtturm von Hiddensee?";
    let mut wrong = Vec::new();
    for (question, reply, is_kept) in [
        (TALL, "Its height is 35 metres. [1]", true),
        (TALL, "Der Turm misst 35 Meter. [1]", true),
        (hoch, "Er misst 28 Meter. [1]", true),
        (taller, "Yes. [1]", true),
        (taller, "Yes, the lighthouse is taller than 30 metres. [1]", true),
        (together, "Together they cost 75 euros. [1][2]", true),
        (together, "Zusammen sind es 75 Euro. [1][2]", true),
        (together, "Together they cost 85 euros. [1][2]", false),
        (TALL, "The tower is made of cheese. [1]", false),
        (TALL, "The tower weighs 35 tonnes. [1]", false),
        (TALL, "The lighthouse of Kap Arkona was sold to pirates. [1]", false),
        (TALL, "The lighthouse of Kap Arkona is pink. [1]", false),
        (TALL, "The lighthouse of Kap Arkona has a height of 35 metres. [1]", true),
        (TALL, "The keeper of it lives in Berlin. [1]", false),
        (taller, "Yes, and it is 812 metres tall. [1]", false),
    ] {
        stub.reply(ChatReply::Message(reply.into()));
        let answer = ask(&mut ann, question, "{}");
        assert_quotes(&mut ann, &answer);
        let text = answer["answer"].as_str().unwrap();
        let words = reply.split(" [").next().unwrap();
        let holds = if is_kept {
            answer["method"] == "chat"
                && text.starts_with(words)
                && answer["confidence"].as_f64() >= Some(0.5)
        } else {
            answer["method"] == "extractive"
                && !text.contains(words)
                && answer["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty())
        };
        if !holds {
            wrong.push(format!("{reply}: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // What is said again is said once.
    stub.reply(ChatReply::Message(
        "It is 35 metres tall [1]. It is 35 metres tall. [1] It is 35 metres tall [1].".into(),
    ));
    assert_eq!(ask(&mut ann, TALL, "{}")["answer"], "It is 35 metres tall. [1]");

    // A number that stands elsewhere in the place than the rest is cited as well.
    ann.ingest(
        "The mill of Ahrenshoop has 4 floors. Nobody lives there. The mill of Ahrenshoop burned in 1897.",
        "mill",
    );
    stub.reply(ChatReply::Message("The mill of Ahrenshoop has 4 floors and burned in 1897. [1]".into()));
    let both = ask(&mut ann, "What of the mill of Ahrenshoop?", "{}");
    assert_quotes(&mut ann, &both);
    let quotes: Vec<&str> =
        both["citations"].as_array().unwrap().iter().map(|c| c["quote"].as_str().unwrap()).collect();
    assert_eq!(both["method"], "chat", "{both:#}");
    assert_eq!(quotes.len(), 2, "{both:#}");
    for number in ["4 floors", "1897"] {
        assert_eq!(quotes.iter().filter(|quote| quote.contains(number)).count(), 1, "{both:#}");
    }

    // A sum cites its parts.
    stub.reply(ChatReply::Message("Together they cost 75 euros. [1][2]".into()));
    let sum = ask(&mut ann, together, "{}");
    let uris: Vec<&str> =
        sum["citations"].as_array().unwrap().iter().map(|c| c["uri"].as_str().unwrap()).collect();
    assert!(uris.contains(&"fee") && uris.contains(&"locker") && uris.len() == 2, "{sum:#}");
}

#[test]
fn the_policy_says_what_becomes_of_unsupported_sentences() {
    let stub = ChatStub::start(ChatReply::Message(
        json!({"found": true, "answer": "It is 35 metres tall [1]. The keeper of it lives in Berlin [1]. Nice."})
            .to_string(),
    ));
    let cluster = Cluster::builder("policies").setting("rag_ext.cache_size", "0").start();
    let database = cluster.database("policies");
    let mut ann = ready(&cluster, &database, &stub, "20s");
    // Each sentence has a statement that is nearest to it by far: scores that are nearly equal have another order on another
    // processor.
    ann.ingest(
        "The lighthouse of Kap Arkona is 35 metres tall. Its keeper came from Hamburg and left in 1905, when ships began to be \
         guided by radio.",
        "arkona",
    );
    let texts = [
        ("{}", "It is 35 metres tall. [1]"),
        (r#"{"policy": "strict"}"#, "It is 35 metres tall. [1]"),
        (
            r#"{"policy": "cited"}"#,
            "It is 35 metres tall. [1] The keeper of it lives in Berlin. [unsupported] Nice. [unsupported]",
        ),
        (r#"{"policy": "kept"}"#, "It is 35 metres tall. [1] The keeper of it lives in Berlin. [2] Nice."),
        (r#"{"policy": "free"}"#, "It is 35 metres tall. [1] The keeper of it lives in Berlin. [2] Nice."),
    ];
    for (options, text) in texts {
        let answer = ask(&mut ann, TALL, options);
        assert_quotes(&mut ann, &answer);
        assert_eq!((&answer["answer"], &answer["method"]), (&text.into(), &"chat".into()), "{answer:#}");
        let unsupported = answer["unsupported"].as_array().unwrap();
        assert_eq!(unsupported[0]["sentence"], "The keeper of it lives in Berlin.", "{answer:#}");
        assert!(unsupported[0]["support"].as_f64() < Some(0.5), "{answer:#}");
        assert_eq!(unsupported[1], json!({"sentence": "Nice.", "support": null}), "{answer:#}");
        assert_eq!(unsupported.len(), 2, "{answer:#}");
        assert!(answer["confidence"].as_f64() > Some(0.5), "{answer:#}");
        assert!(answer["warnings"][0].as_str().unwrap().contains("2"), "{answer:#}");
    }
    ann.refuses("22023", &format!("SELECT rag_answer('{TALL}', options => '{{\"policy\": \"loose\"}}')"));
    for (word, text) in [("drop", texts[0].1), ("flag", texts[2].1), ("keep", texts[3].1)] {
        ann.run(&format!("SET rag_ext.unsupported = '{word}'"));
        assert_eq!(ask(&mut ann, TALL, "{}")["answer"], text, "{word}");
        assert_eq!(ask(&mut ann, TALL, r#"{"policy": "strict"}"#)["answer"], texts[0].1, "{word}");
    }
    ann.run("SET rag_ext.unsupported = 'burn'");
    ann.refuses("22023", &format!("SELECT rag_answer('{TALL}')"));
    ann.run("RESET rag_ext.unsupported");

    stub.reply(ChatReply::Message("The keeper lives in Berlin.".into()));
    let free = ask(&mut ann, TALL, r#"{"policy": "free"}"#);
    assert_eq!((&free["answer"], &free["citations"]), (&"The keeper lives in Berlin.".into(), &json!([])));
    assert!(free["confidence"].is_null(), "{free:#}");

    // Without a reranker nothing is measured: strict answers from the documents, the others say so.
    cluster.connect("postgres", "postgres").run("ALTER SYSTEM SET rag_ext.rerank_model = ''");
    cluster.reload();
    stub.reply(ChatReply::Message("It is 35 metres tall [1].".into()));
    wait_until("no reranker is left", LIMIT, || ask(&mut ann, TALL, "{}")["method"] == "degraded");
    for (policy, text) in
        [("cited", "It is 35 metres tall. [unsupported]"), ("free", "It is 35 metres tall. [1]")]
    {
        let answer = ask(&mut ann, TALL, &format!(r#"{{"policy": "{policy}"}}"#));
        assert_eq!((&answer["answer"], &answer["method"]), (&text.into(), &"chat".into()), "{answer:#}");
        assert!(answer["confidence"].is_null() && !answer["warnings"][0].is_null(), "{answer:#}");
    }
}

#[test]
fn a_sentence_without_a_marker_is_matched_and_silence_is_no_claim() {
    let reply = |answer: &str| ChatReply::Message(json!({"found": true, "answer": answer}).to_string());
    let stub = ChatStub::start(reply("It is 35 metres tall [1]."));
    let cluster = Cluster::builder("matching").setting("rag_ext.cache_size", "0").start();
    let database = cluster.database("matching");
    let mut ann = ready(&cluster, &database, &stub, "20s");
    let question = "How tall is the lighthouse of Kap Arkona, when was it built, and who paid for it?";
    stub.reply(reply(
        "The lighthouse of Kap Arkona is 35 metres tall. It was built in 1911. The passages do not say who paid for it.",
    ));
    let answer = ask(&mut ann, question, r#"{"min_support": 0.3}"#);
    assert_quotes(&mut ann, &answer);
    assert_eq!(
        answer["answer"],
        "The lighthouse of Kap Arkona is 35 metres tall. [1] The passages do not say who paid for it.",
        "{answer:#}"
    );
    assert_eq!(answer["citations"][0]["uri"], "arkona", "{answer:#}");
    let unsupported = answer["unsupported"].as_array().unwrap();
    assert!(unsupported.len() == 1 && unsupported[0]["sentence"] == "It was built in 1911.", "{answer:#}");
    let stages = answer["diagnostics"].as_array().unwrap();
    let check = stages.iter().find(|stage| stage["stage"] == "check").unwrap();
    assert_eq!(check["details"]["matched"], 1, "{check:#}");

    // Nothing but silence is a refusal.
    stub.reply(reply("The passages do not say how tall it is."));
    let silent = ask(&mut ann, TALL, "{}");
    assert_eq!((&silent["found"], &silent["method"]), (&false.into(), &"chat".into()), "{silent:#}");
}

#[test]
fn code_and_tables_stay_whole_and_code_is_quoted_as_it_stands() {
    let reply = |answer: &str| ChatReply::Message(json!({"found": true, "answer": answer}).to_string());
    let stub = ChatStub::start(reply("It is 35 metres tall [1]."));
    let cluster = Cluster::builder("code").setting("rag_ext.cache_size", "0").start();
    let database = cluster.database("code");
    let mut ann = ready(&cluster, &database, &stub, "20s");
    ann.ingest(
        "# Backups\n\nTo back up a running server, begin and end the backup with these functions:\n\n```\nSELECT pg_backup_start('label');\n\nSELECT pg_backup_stop();\n```\n",
        "backup.md",
    );
    let question = "How do I back up a running server?";
    let begun = "Begin and end the backup with these functions: [1]";
    let code = "```sql\nSELECT pg_backup_start('label');\nSELECT pg_backup_stop();\n```";
    stub.reply(reply(&format!("{begun}\n\n{code}")));
    let answer = ask(&mut ann, question, "{}");
    assert_quotes(&mut ann, &answer);
    assert_eq!(answer["answer"], format!("{begun}\n\n{code}\n\n[2]"), "{answer:#}");
    let quote = answer["citations"][1]["quote"].as_str().unwrap();
    assert_eq!(quote, "SELECT pg_backup_start('label');\n\nSELECT pg_backup_stop();");

    // A line that the documents do not have takes the block with it.
    stub.reply(reply(&format!(
        "{begun}\n\n{}",
        code.replace("SELECT pg_backup_stop", "DROP DATABASE shop;\nSELECT pg_backup_stop")
    )));
    let answer = ask(&mut ann, question, "{}");
    assert_quotes(&mut ann, &answer);
    assert!(!answer["answer"].as_str().unwrap().contains("DROP"), "{answer:#}");
}

#[test]
fn all_tries_together_have_one_deadline() {
    let stub = ChatStub::start(ChatReply::Message("It is 35 metres tall [1].".into()));
    let cluster = Cluster::builder("deadline")
        .setting("rag_ext.cache_size", "0")
        .setting("rag_ext.llm_deadline", "3s")
        .start();
    let database = cluster.database("deadline");
    // One try alone would take a minute.
    let mut ann = ready(&cluster, &database, &stub, "60s");
    stub.reply(ChatReply::Hang);
    let before = stub.requests().len();
    let start = Instant::now();
    let answer = ask(&mut ann, TALL, "{}");
    assert!(start.elapsed() < Duration::from_secs(45), "{:?}", start.elapsed());
    assert_eq!(stub.requests().len(), before + 1);
    assert_eq!((&answer["found"], &answer["method"]), (&true.into(), &"extractive".into()), "{answer:#}");
    assert!(answer["warnings"].to_string().contains("generate"), "{answer:#}");
}

/// The model is shown the section around what was found: what it takes from there stands in another chunk, and on another page.
#[test]
fn a_quote_is_cited_by_the_chunk_and_the_page_that_it_stands_on() {
    let stub = ChatStub::start(ChatReply::Message("It is 35 metres tall [1].".into()));
    let cluster = Cluster::builder("pages").setting("rag_ext.cache_size", "0").start();
    let database = cluster.database("pages");
    let mut ann = ready(&cluster, &database, &stub, "20s");
    ann.run(
        "SELECT rag_create_collection('book', options => '{\"chunking\": {\"size\": 24, \"overlap\": 0}}')",
    );
    let sentences = [
        "The harbour of Vitte was dug by forty men in the year 1905.",
        "The ferry to Stralsund leaves the pier at half past six.",
        "The keeper of the lighthouse collects barometers of brass.",
        "Horses pull the carts of the island, for cars are forbidden.",
    ];
    ann.run(&format!(
        "INSERT INTO rag.document (collection, uri, content) VALUES ('book', 'book', {})",
        literal(&sentences.join(" "))
    ));
    ann.settle();
    let chunks = ann.count(
        "SELECT count(*) FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri = 'book'",
    );
    assert!(chunks >= 3, "{chunks} chunks");
    // As if each stood on a page of its own.
    database.admin().run(
        "UPDATE rag.chunk c SET page_from = ordinal + 7, page_to = ordinal + 7
         FROM rag.document d WHERE d.id = c.document_id AND d.uri = 'book'",
    );
    let mut elsewhere = 0;
    for sentence in sentences {
        stub.reply(ChatReply::Message(format!("{sentence} [1]")));
        let answer = ann.json(
            "SELECT rag_answer('When does the ferry to Stralsund leave?', 'book', options => '{\"k\": 1}')",
        );
        assert_quotes(&mut ann, &answer);
        let pages = answer["citations"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|citation| citation["page_from"].as_i64());
        elsewhere += pages.filter(|page| *page != 8).count();
    }
    assert!(elsewhere > 0, "all was cited from one page");
}
