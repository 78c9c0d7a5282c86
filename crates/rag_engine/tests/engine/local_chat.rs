//! Chat models of this machine: a real one, small and none too clever, in its child.

use crate::running::{Client, Engine, chat, chat_models, patiently, set_by_make_test, settings};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rag_wire::{
    Call, Chat, ChatEndpoint, ChatMessage, ChatModels, Completion, Failure, FailureCode, ModelKind, Reply,
    Settings,
};
use std::path::Path;
use tempfile::TempDir;

const SMALL: &str = "local/SmolLM2-135M-Instruct";

fn local(model: &str, fallbacks: &[&str]) -> Settings {
    let mut settings = settings();
    // Tests run side by side.
    settings.threads = 1;
    settings.chat = Some(ChatModels {
        model: model.into(),
        simple_model: None,
        fallback_models: fallbacks.iter().map(|name| (*name).to_owned()).collect(),
        endpoint: None,
    });
    settings
}

/// A folder of models with one whose file is no model.
fn with_broken_model(settings: &mut Settings) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("broken")).unwrap();
    let noise: Vec<u8> =
        b"GGUF\x03\0\0\0".iter().copied().chain((0..4000_u32).map(|n| (n * 7) as u8)).collect();
    std::fs::write(folder.path().join("broken/broken.gguf"), noise).unwrap();
    settings.model_folders.push(folder.path().to_str().unwrap().to_owned());
    folder
}

fn question(text: &str) -> Chat {
    let Call::Chat(chat) = chat(text) else { panic!("no chat") };
    Chat { max_tokens: 16, ..chat }
}

/// One whose answer is a certain text of some hundred tokens, whatever the model would rather say.
fn lengthy() -> Chat {
    let names: Vec<String> = (0..40).map(|n| format!("property{n}")).collect();
    let values: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), serde_json::json!({"enum": [7]}))).collect();
    let schema = serde_json::json!({"type": "object", "properties": values, "required": names});
    Chat { max_tokens: 1500, json_schema: Some(schema.to_string()), ..question("Count.") }
}

fn completion(reply: Result<Reply, Failure>) -> Completion {
    match reply.unwrap() {
        Reply::Completion(completion) => completion,
        other => panic!("{other:?}"),
    }
}

/// Asks for parts, and waits for the first.
fn begin(client: &mut Client, request: Chat) {
    client.send(Call::ChatStream(request));
    assert!(matches!(client.receive(), Reply::Delta(_)));
}

/// Children of the engine that run a model.
fn children(engine: &Engine) -> Vec<Pid> {
    let program = set_by_make_test("RAG_TEST_LLM");
    let is_ours = |folder: &Path| {
        let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let parent =
            stat.rsplit(')').next().and_then(|rest| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        let name = Path::new(&program).file_name().unwrap().to_str().unwrap();
        parent == Some(engine.child.id()) && stat.contains(&format!("({name})"))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| is_ours(folder))
        .filter_map(|folder| folder.file_name()?.to_str()?.parse().ok().map(Pid::from_raw))
        .collect()
}

/// What a process has computed so far, in ticks of processor time: as much on a busy machine as on an idle one.
fn ticks(process: Pid) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // utime and stime, the 14th and the 15th of all.
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_model_answers_and_counts_its_tokens() {
    let engine = Engine::with(local(SMALL, &[]));
    let mut client = engine.connect();
    assert_eq!(client.status().chat.unwrap(), format!("{SMALL} on this machine"));
    assert!(children(&engine).is_empty(), "started when it is first asked");
    let found = completion(client.ask(Call::Chat(question("What is the capital of France?"))));
    assert!(!found.text.trim().is_empty());
    assert_eq!((found.model.as_str(), found.asked_model.as_str()), (SMALL, SMALL));
    assert!(found.prompt_tokens.unwrap() > 8, "{found:?}");
    assert!((1..=16).contains(&found.completion_tokens.unwrap()), "{found:?}");
    let models = client.models();
    let model = models.iter().find(|model| format!("local/{}", model.name) == SMALL).unwrap();
    assert_eq!((model.kind, model.max_tokens, model.is_default), (ModelKind::Chat, 2048, true));
    assert!(model.loaded && model.problem.is_none(), "{model:?}");
    engine.logs("confined by rlimits");

    // The same question at temperature 0 has the same answer, which is not from the cache for somebody else.
    let again = completion(
        engine.connect().named("role:other").ask(Call::Chat(question("What is the capital of France?"))),
    );
    assert_eq!(again.text, found.text);
}

#[test]
fn a_child_ends_with_its_engine() {
    let mut engine = Engine::with(local(SMALL, &[]));
    let mut client = engine.connect();
    begin(&mut client, lengthy());
    let child = children(&engine)[0];
    engine.child.kill().unwrap();
    engine.child.wait().unwrap();
    patiently("the end of the child", || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        // One that nobody collects is a zombie.
        (state.is_empty() || state.starts_with('Z')).then_some(())
    });
}

#[test]
fn an_answer_follows_the_schema_and_comes_in_parts() {
    let engine = Engine::with(local(SMALL, &[]));
    let mut client = engine.connect();
    client.send(Call::ChatStream(lengthy()));
    let mut deltas = Vec::new();
    let whole = loop {
        match client.receive() {
            Reply::Delta(delta) => deltas.push(delta),
            reply => break completion(Ok(reply)),
        }
    };
    assert!(deltas.len() > 100 && deltas.concat() == whole.text, "{} deltas, {whole:?}", deltas.len());
    let value: serde_json::Value = serde_json::from_str(&whole.text).unwrap();
    assert_eq!((&value["property0"], &value["property39"]), (&7.into(), &7.into()));
}

#[test]
fn an_answer_that_nobody_waits_for_stops_and_the_model_stays() {
    let engine = Engine::with(local(SMALL, &[]));
    completion(engine.connect().ask(Call::Chat(question("Hello!"))));
    let model = children(&engine);
    let loaded = ticks(model[0]);
    completion(engine.connect().ask(Call::Chat(lengthy())));
    let whole = ticks(model[0]) - loaded;

    let mut client = engine.connect().named("role:impatient");
    begin(&mut client, lengthy());
    drop(client);
    let begun = ticks(model[0]);
    completion(engine.connect().ask(Call::Chat(question("Hello!"))));
    let spent = ticks(model[0]) - begun;
    assert!(spent < whole, "{spent} of {whole} ticks of the processor");

    // While it is read, too: nothing is written of this one by then.
    let mut client = engine.connect();
    client.deadline_ms = Some(1);
    let long = "All work and no play makes Jack a dull boy. ".repeat(100);
    assert_eq!(client.ask(Call::Chat(question(&long))).unwrap_err().code, FailureCode::Deadline);
    client.deadline_ms = None;
    completion(client.ask(Call::Chat(question("Who are you?"))));
    assert_eq!(children(&engine), model, "one child all the time");
}

#[test]
fn a_file_that_is_no_model_fails_and_the_next_one_answers() {
    let mut settings = local("local/broken", &[SMALL]);
    let _folder = with_broken_model(&mut settings);
    let mut engine = Engine::with(settings.clone());
    let mut client = engine.connect();
    let found = completion(client.ask(Call::Chat(question("Hello!"))));
    assert_eq!((found.asked_model.as_str(), found.failed_models.len()), (SMALL, 1));
    let failed = &found.failed_models[0];
    assert_eq!(failed.model, "local/broken");
    assert!(failed.reason.contains("could not be loaded"), "{}", failed.reason);
    let models = client.models();
    let problem = |name: &str| models.iter().find(|model| model.name == name).unwrap().problem.clone();
    assert!(problem("broken").is_some(), "{models:?}");

    for (model, words) in [("local/broken", "could not be loaded"), ("local/missing", "no such folder")] {
        settings.chat.as_mut().unwrap().model = model.into();
        settings.chat.as_mut().unwrap().fallback_models.clear();
        engine.change(&settings);
        patiently("the settings", || {
            let failure = engine.connect().ask(Call::Chat(question("Hello!"))).unwrap_err();
            assert_eq!(failure.code, FailureCode::NotLoaded);
            (failure.message.contains(words) && failure.message.contains(model)).then_some(())
        });
    }
    assert!(engine.connect().status().chat.unwrap_err().contains("no such folder"));
}

#[test]
fn a_child_that_is_killed_fails_its_answer_and_is_replaced() {
    let mut engine = Engine::with(local(SMALL, &[]));
    let mut client = engine.connect();
    begin(&mut client, lengthy());
    let killed = children(&engine);
    kill(killed[0], Signal::SIGKILL).unwrap();
    let failure = loop {
        match client.receive() {
            Reply::Delta(_) => {}
            Reply::Failed(failure) => break failure,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(failure.code, FailureCode::Provider);
    assert!(failure.message.contains("signal 9"), "{failure:?}");
    completion(client.ask(Call::Chat(question("Hello!"))));
    let replaced = children(&engine);
    assert!(replaced.len() == 1 && replaced != killed, "{replaced:?} after {killed:?}");

    // One that is named no more is ended.
    let mut without = settings();
    without.chat = None;
    engine.change(&without);
    patiently("the end of the child", || children(&engine).is_empty().then_some(()));
}

#[test]
fn models_at_an_endpoint_give_way_to_one_of_this_machine() {
    let endpoint =
        ChatEndpoint { url: "http://203.0.113.7/v1".into(), api_key: None, timeout_ms: 1000, retries: 0 };
    let mut settings = settings();
    settings.allow_remote = true;
    settings.chat = Some(chat_models("elsewhere", &[SMALL], endpoint));
    let engine = Engine::with(settings);
    let mut client = engine.connect();
    client.local_only = true;
    let found = completion(client.ask(Call::Chat(question("Hello!"))));
    assert_eq!((found.asked_model.as_str(), found.failed_models[0].model.as_str()), (SMALL, "elsewhere"));
    assert!(found.failed_models[0].reason.contains("lets nothing leave it"), "{found:?}");
}

#[test]
fn tokens_are_counted_also_while_the_model_writes_and_before_it_was_asked_anything() {
    let engine = Engine::with(local(SMALL, &[]));
    let count = |model: &str, texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let reply = engine.connect().ask(Call::CountTokens { model: model.into(), texts })?;
        let Reply::TokenCounts(counts) = reply else { panic!("{reply:?}") };
        Ok::<_, Failure>(counts)
    };
    let texts = ["", "lighthouse keeper", "12345", "<|im_end|>"];
    let counts = count(SMALL, &texts).unwrap();
    assert!(counts[0] == 0 && (2..=5).contains(&counts[1]) && counts[3] > 1, "{counts:?}");
    assert_eq!(counts[2], 5, "a digit is a token to this model");

    let mut writing = engine.connect();
    begin(&mut writing, lengthy());
    assert_eq!(count(SMALL, &texts).unwrap(), counts);
    let mut parts = 0;
    while let Reply::Delta(_) = writing.receive() {
        parts += 1;
    }
    assert!(parts > 0, "it was still writing");

    // The next child counts as well.
    children(&engine).into_iter().for_each(|child| kill(child, Signal::SIGKILL).unwrap());
    patiently("another child to count", || {
        count(SMALL, &texts).is_ok_and(|again| again == counts).then_some(())
    });
    for other in ["local/missing", "gpt", "local/SmolLM2-135M-Instruct/.."] {
        assert_eq!(count(other, &texts).unwrap_err().code, FailureCode::UnknownModel, "{other}");
    }
}

#[test]
fn a_conversation_is_read_as_text_and_no_longer_than_the_model_takes() {
    let engine = Engine::with(local(SMALL, &[]));
    let mut client = engine.connect();
    let mut tokens = |text: &str| {
        completion(client.ask(Call::Chat(Chat { max_tokens: 1, ..question(text) }))).prompt_tokens.unwrap()
    };
    let empty = tokens("");
    assert!(tokens(&"<|im_end|>".repeat(10)) >= empty + 30, "what ends a message is no single token in one");

    let message = ChatMessage { role: "user".into(), content: "word ".repeat(5000) };
    let failure = client.ask(Call::Chat(Chat { messages: vec![message], ..question("") })).unwrap_err();
    assert_eq!(failure.code, FailureCode::Provider);
    assert!(failure.message.contains("the model takes 2048"), "{failure:?}");
}
