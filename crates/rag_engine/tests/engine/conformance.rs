//! What every backend promises (`rag_engine::backend::Backend`), checked in one way for all: ONNX Runtime, endpoints of
//! each kind, and the fake.

use crate::chat::GOOD;
use crate::fake::{DIMENSION, FakeBackend};
use crate::http::{Server, http};
use crate::running::{EMBEDDING, RERANKER, set_by_make_test};
use crate::{remote, remote_rerank, synthetic, token_rerankers};
use rag_engine::backend::{self, Backend, ChatBackend, Conditions, Input};
use rag_engine::device::Device;
use rag_engine::model::tokenizer::Tokenizer;
use rag_engine::model::{ModelFolder, runtime};
use rag_wire::{Chat, ChatEndpoint, ChatMessage, Failure, FailureCode};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TEXTS: [&str; 7] = [
    "The server keeps a log.",
    "x",
    "Bake the cake for forty minutes and let it cool before adding the icing on top of it.",
    "Which port does it listen on?",
    "Committed changes survive a crash.",
    "The ferry leaves at noon.",
    "A river runs past the old mill, and past the new one.",
];

/// A backend, and what must be known to check it.
struct Subject {
    name: &'static str,
    backend: Box<dyn Backend>,
    tokenizer: Tokenizer,
    /// Numbers of a vector, for an embedding model.
    dimension: usize,
    /// How far results may differ between batches, in parts of their size or of 1.
    tolerance: f32,
    /// How much has been computed or asked for so far, where that can be counted.
    work: Option<Box<dyn Fn() -> usize>>,
    /// Whether the texts above are more than it takes in one piece, so that it can stop in between.
    takes_pieces: bool,
}

impl Subject {
    fn inputs(&self, texts: &[&str]) -> Vec<Input> {
        let row = |text: &&str| self.tokenizer.encode(text).unwrap();
        texts.iter().map(|text| Input { query: None, text: text.to_string(), row: row(text) }).collect()
    }

    fn pairs(&self, passages: &[&str]) -> Vec<Input> {
        let query: Arc<str> = "Where is the old mill?".into();
        let pair = |passage: &&str| {
            let row = self.tokenizer.encode_pair(&query, passage).unwrap();
            Input { query: Some(query.clone()), text: passage.to_string(), row }
        };
        passages.iter().map(pair).collect()
    }

    fn work(&self) -> Option<usize> {
        self.work.as_ref().map(|work| work())
    }
}

/// One of a backend's methods; a score is a vector of one number.
type Compute<'a> = &'a dyn Fn(&[&Input], &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure>;

fn embeds_as_promised(subject: &Subject) {
    let embed: Compute = &|inputs, conditions| subject.backend.embed(inputs, conditions);
    let vectors = computes_as_promised(subject, &subject.inputs(&TEXTS), embed);
    for vector in &vectors {
        assert_eq!(vector.len(), subject.dimension, "{}: dimension", subject.name);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-4, "{}: a vector's length is {length}", subject.name);
    }
    let inputs = subject.inputs(&["x"]);
    let refused = subject.backend.score(&[&inputs[0]], &Conditions::unlimited());
    fails_with(subject.name, refused, FailureCode::Unsupported);
    generates_nothing(subject);
}

fn scores_as_promised(subject: &Subject) {
    let score: Compute = &|inputs, conditions| {
        let scores = subject.backend.score(inputs, conditions)?;
        Ok(scores.into_iter().map(|score| vec![score]).collect())
    };
    let scores = computes_as_promised(subject, &subject.pairs(&TEXTS), score);
    assert!(scores.iter().flatten().all(|score| score.is_finite()), "{}: {scores:?}", subject.name);
    let inputs = subject.inputs(&["x"]);
    let refused = subject.backend.embed(&[&inputs[0]], &Conditions::unlimited());
    fails_with(subject.name, refused, FailureCode::Unsupported);
    generates_nothing(subject);
}

/// What holds for vectors and scores alike. Returns the results of the inputs, which all differ.
fn computes_as_promised(subject: &Subject, inputs: &[Input], compute: Compute<'_>) -> Vec<Vec<f32>> {
    let name = subject.name;
    let all: Vec<&Input> = inputs.iter().collect();
    let run = |inputs: &[&Input]| compute(inputs, &Conditions::unlimited()).unwrap();
    assert_eq!(subject.backend.health(false), Ok(()), "{name}");

    let before = subject.work();
    assert!(run(&[]).is_empty(), "{name}: no inputs give no results");
    assert_eq!(subject.work(), before, "{name}: no inputs cost nothing");

    let results = run(&all);
    assert_eq!(results.len(), all.len(), "{name}: one result per input");
    let close = |a: &[f32], b: &[f32]| {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= subject.tolerance * b.abs().max(1.0))
    };
    for (index, result) in results.iter().enumerate() {
        let others = results.iter().enumerate().filter(|(other, _)| *other != index);
        for (other, different) in others {
            assert!(!close(result, different), "{name}: results {index} and {other} cannot be told apart");
        }
        let alone = run(&all[index..=index]);
        assert!(close(&alone[0], result), "{name}: result {index} depends on the inputs beside it");
    }
    let reversed: Vec<&Input> = all.iter().rev().copied().collect();
    for (found, expected) in run(&reversed).iter().rev().zip(&results) {
        assert!(close(found, expected), "{name}: results do not come in the order of the inputs");
    }
    let twice = run(&[all[3], all[0], all[3]]);
    assert!(close(&twice[0], &results[3]) && close(&twice[2], &results[3]), "{name}: one input twice");

    refuses_what_is_too_long(subject, &all, compute);
    stops_when_nobody_waits(subject, &all, compute);
    results
}

fn refuses_what_is_too_long(subject: &Subject, inputs: &[&Input], compute: Compute<'_>) {
    let most = subject.backend.limits().max_tokens;
    let of_length = |tokens: usize| {
        let mut input = inputs[0].clone();
        input.row.ids = inputs[0].row.ids.iter().copied().cycle().take(tokens).collect();
        input.row.types = vec![0; tokens];
        input
    };
    let before = subject.work();
    let refused = compute(&[inputs[1], &of_length(most + 1)], &Conditions::unlimited());
    let failure = fails_with(subject.name, refused, FailureCode::LimitExceeded);
    for part in ["text 2", &most.to_string(), &(most + 1).to_string()] {
        assert!(failure.message.contains(part), "{}: {failure}", subject.name);
    }
    assert_eq!(subject.work(), before, "{}: what is refused is not worked on", subject.name);
    let longest = compute(&[&of_length(most)], &Conditions::unlimited());
    assert!(longest.is_ok_and(|results| results.len() == 1), "{}: the longest input", subject.name);
}

fn stops_when_nobody_waits(subject: &Subject, inputs: &[&Input], compute: Compute<'_>) {
    let name = subject.name;
    let before = subject.work();
    let past = Instant::now().checked_sub(Duration::from_millis(1));
    let late = Conditions { deadline: past, ..Conditions::unlimited() };
    fails_with(name, compute(inputs, &late), FailureCode::Deadline);
    let withdrawn = Conditions { is_withdrawn: &|| true, ..Conditions::unlimited() };
    fails_with(name, compute(inputs, &withdrawn), FailureCode::Deadline);
    assert_eq!(subject.work(), before, "{name}: nothing is begun that nobody waits for");

    // Withdrawn after the first piece of work: nothing or all of it, never a part.
    let looks = Cell::new(0);
    let soon = || looks.replace(looks.get() + 1) >= 1;
    let conditions = Conditions { is_withdrawn: &soon, ..Conditions::unlimited() };
    match compute(inputs, &conditions) {
        Ok(results) => {
            assert!(!subject.takes_pieces, "{name}: went on though nobody waited");
            assert_eq!(results.len(), inputs.len(), "{name}");
        }
        outcome => drop(fails_with(name, outcome, FailureCode::Deadline)),
    }
    if let (Some(before), Some(after)) = (before, subject.work()) {
        assert!(after <= before + 1 || !subject.takes_pieces, "{name}: {} pieces", after - before);
    }
}

fn generates_nothing(subject: &Subject) {
    if subject.name != "fake" {
        let refused = subject.backend.generate(&question(), &Conditions::unlimited());
        fails_with(subject.name, refused, FailureCode::Unsupported);
    }
}

fn generates_as_promised(name: &str, backend: &dyn Backend, work: &dyn Fn() -> usize) {
    let asked = question();
    let completion = backend.generate(&asked, &Conditions::unlimited()).unwrap();
    assert!(!completion.text.is_empty() && !completion.model.is_empty(), "{name}: {completion:?}");
    let before = work();
    assert!(before > 0, "{name}");
    let past = Instant::now().checked_sub(Duration::from_millis(1));
    let late = Conditions { deadline: past, ..Conditions::unlimited() };
    fails_with(name, backend.generate(&asked, &late), FailureCode::Deadline);
    let withdrawn = Conditions { is_withdrawn: &|| true, ..Conditions::unlimited() };
    fails_with(name, backend.generate(&asked, &withdrawn), FailureCode::Deadline);
    assert_eq!(work(), before, "{name}: nothing is begun that nobody waits for");
}

#[track_caller]
fn fails_with<T>(name: &str, outcome: Result<T, Failure>, code: FailureCode) -> Failure {
    let Err(failure) = outcome else { panic!("{name}: no failure, but {code:?} is expected") };
    assert_eq!(failure.code, code, "{name}: {failure:?}");
    failure
}

fn question() -> Chat {
    let message = ChatMessage { role: "user".into(), content: "What is six times seven?".into() };
    Chat { messages: vec![message], max_tokens: 64, ..Chat::default() }
}

/// The tokenizer of a model, for inputs of at most so many tokens.
fn tokenizer(model: &str, max_tokens: usize) -> Tokenizer {
    let file = Path::new(&set_by_make_test("RAG_TEST_MODELS")).join(model).join("tokenizer.json");
    Tokenizer::open(&file, max_tokens).unwrap()
}

fn onnx(name: &'static str, folder: &ModelFolder) -> Subject {
    runtime::load(&set_by_make_test("RAG_TEST_ONNXRUNTIME")).unwrap();
    let backend = backend::open(folder, Device::Cpu, 2).unwrap();
    assert!(backend.limits().is_local(), "{name}");
    let takes_pieces = backend.limits().one_by_one;
    let tokenizer = Tokenizer::open(&folder.tokenizer, folder.max_tokens).unwrap();
    let dimension = folder.dimension.unwrap() as usize;
    Subject { name, backend, tokenizer, dimension, tolerance: 1e-6, work: None, takes_pieces }
}

fn installed(model: &str) -> ModelFolder {
    ModelFolder::find(&[set_by_make_test("RAG_TEST_MODELS")], model).unwrap().unwrap()
}

/// The model "remote" in these folders; each batch that the server is asked for is a piece of work.
fn elsewhere(name: &'static str, folders: &[String], server: Server, tokenizer: Tokenizer) -> Subject {
    let folder = ModelFolder::find(folders, "remote").unwrap().unwrap();
    let backend = backend::open(&folder, Device::Cpu, 2).unwrap();
    assert!(!backend.limits().is_local(), "{name}");
    let dimension = folder.dimension.unwrap() as usize;
    let work: Option<Box<dyn Fn() -> usize>> = Some(Box::new(move || server.requests().len()));
    Subject { name, backend, tokenizer, dimension, tolerance: 1e-4, work, takes_pieces: true }
}

fn fake() -> (Subject, Arc<AtomicUsize>) {
    let computed = Arc::<AtomicUsize>::default();
    let backend = Box::new(FakeBackend { max_tokens: 40, computed: computed.clone() });
    let counted = computed.clone();
    let work: Option<Box<dyn Fn() -> usize>> = Some(Box::new(move || counted.load(Ordering::SeqCst)));
    let tokenizer = tokenizer(EMBEDDING, 40);
    let subject = Subject {
        name: "fake",
        backend,
        tokenizer,
        dimension: DIMENSION,
        tolerance: 0.0,
        work,
        takes_pieces: true,
    };
    (subject, computed)
}

#[test]
fn onnx_runtime_embeds_as_promised_where_rows_depend_on_each_other() {
    let subject = onnx("onnx, quantized", &installed(EMBEDDING));
    assert!(subject.takes_pieces, "this model quantizes by the whole batch");
    embeds_as_promised(&subject);
}

#[test]
fn onnx_runtime_embeds_as_promised_where_rows_share_a_batch() {
    let models = synthetic::models(&synthetic::XLM_R, synthetic::CONFIG);
    let folders = [models.path().to_str().unwrap().to_owned()];
    let subject = onnx("onnx, batching", &ModelFolder::find(&folders, "tiny").unwrap().unwrap());
    assert!(!subject.takes_pieces, "all rows run together");
    embeds_as_promised(&subject);
}

#[test]
fn onnx_runtime_scores_as_promised() {
    scores_as_promised(&onnx("onnx, reranker", &installed(RERANKER)));
}

#[test]
fn rerankers_of_tokens_score_as_promised() {
    for (name, models) in [("decoder", token_rerankers::decoder()), ("late", token_rerankers::late("{}"))] {
        let folders = [models.path().to_str().unwrap().to_owned()];
        scores_as_promised(&onnx(name, &ModelFolder::find(&folders, "tiny").unwrap().unwrap()));
    }
}

#[test]
fn an_endpoint_embeds_as_promised() {
    let server = Server::start(remote::embeddings);
    let folder = tempfile::tempdir().unwrap();
    let settings = remote::behind(&server, &folder, serde_json::json!({}));
    let tokenizer = tokenizer(EMBEDDING, 64);
    embeds_as_promised(&elsewhere("openai", &settings.model_folders, server, tokenizer));
}

#[test]
fn endpoints_score_as_promised() {
    for api in remote_rerank::APIS {
        let server = Server::start(move |request| remote_rerank::answer(api, request));
        let folder = tempfile::tempdir().unwrap();
        let settings = remote_rerank::behind(&server.url, &folder, serde_json::json!({ "api": api }));
        let tokenizer = tokenizer(RERANKER, 64);
        scores_as_promised(&elsewhere(api, &settings.model_folders, server, tokenizer));
    }
}

#[test]
fn an_endpoint_generates_as_promised() {
    let server = Server::start(|_| http("200 OK", "", GOOD).into_bytes());
    let url = format!("{}/v1", server.url);
    let endpoint = ChatEndpoint { url, api_key: None, timeout_ms: 5000, retries: 0 };
    let backend = ChatBackend::new(endpoint, "tiny".into());
    generates_as_promised("chat", &backend, &|| server.requests().len());
    let input = Input::default();
    fails_with("chat", backend.embed(&[&input], &Conditions::unlimited()), FailureCode::Unsupported);
    fails_with("chat", backend.score(&[&input], &Conditions::unlimited()), FailureCode::Unsupported);
}

#[test]
fn the_fake_keeps_all_promises_but_that_it_does_one_thing_alone() {
    let (subject, computed) = fake();
    let embed: Compute = &|inputs, conditions| subject.backend.embed(inputs, conditions);
    let vectors = computes_as_promised(&subject, &subject.inputs(&TEXTS), embed);
    assert!(vectors.iter().all(|vector| (vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5));
    let score: Compute = &|inputs, conditions| {
        Ok(subject.backend.score(inputs, conditions)?.into_iter().map(|score| vec![score]).collect())
    };
    computes_as_promised(&subject, &subject.pairs(&TEXTS), score);
    generates_as_promised("fake", subject.backend.as_ref(), &|| computed.load(Ordering::SeqCst));
}

#[test]
fn a_model_that_breaks_fails_as_internal_and_goes_on() {
    let (fake, _) = fake();
    for subject in [onnx("onnx", &installed(EMBEDDING)), fake] {
        let good = &subject.inputs(&["x"])[0];
        let mut broken = good.clone();
        broken.row.ids[1] = u32::MAX;
        let failed = subject.backend.embed(&[&broken], &Conditions::unlimited());
        let failure = fails_with(subject.name, failed, FailureCode::Internal);
        assert!(failure.message.starts_with("model \"") && failure.message.ends_with("failed"), "{failure}");
        assert!(subject.backend.embed(&[good], &Conditions::unlimited()).is_ok(), "{}", subject.name);
    }
}

#[test]
fn endpoints_fail_by_kind() {
    let json = serde_json::json!({ "retries": 0 });
    let broken = || Server::start(|_| http("500 Internal Server Error", "", "").into_bytes());
    let text = Input { text: "x".into(), ..Input::default() };
    let check = |folders: &[String], allow_remote: bool, code: FailureCode| {
        let folder = ModelFolder::find(folders, "remote").unwrap().unwrap();
        let backend = backend::open(&folder, Device::Cpu, 1).unwrap();
        let conditions = Conditions { allow_remote, ..Conditions::unlimited() };
        let outcome = match folder.kind {
            rag_wire::ModelKind::Embedding => backend.embed(&[&text], &conditions).map(drop),
            rag_wire::ModelKind::Reranker => backend.score(&[&text], &conditions).map(drop),
            rag_wire::ModelKind::Chat => unreachable!("no chat model"),
        };
        fails_with("endpoint", outcome, code);
        assert_eq!(backend.health(allow_remote).is_err(), code == FailureCode::NotAllowed);
    };
    let root = tempfile::tempdir().unwrap();
    let server = broken();
    check(&remote::behind(&server, &root, json.clone()).model_folders, false, FailureCode::Provider);
    let far = serde_json::json!({ "url": "http://192.0.2.1/v1" });
    check(&remote::behind(&server, &root, far).model_folders, false, FailureCode::NotAllowed);
    let keyless = serde_json::json!({ "api_key_file": "no-such-key" });
    check(&remote::behind(&server, &root, keyless).model_folders, false, FailureCode::NotLoaded);
    let root = tempfile::tempdir().unwrap();
    for api in remote_rerank::APIS {
        let more = serde_json::json!({ "api": api, "retries": 0 });
        let folders = |url: &str| remote_rerank::behind(url, &root, more.clone()).model_folders;
        check(&folders(&server.url), false, FailureCode::Provider);
        check(&folders("http://192.0.2.1"), false, FailureCode::NotAllowed);
    }
}
