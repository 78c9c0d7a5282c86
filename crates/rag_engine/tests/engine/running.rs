//! A running engine and a client's connection to it.

use rag_wire::{
    Call, Chat, ChatEndpoint, ChatMessage, ChatModels, Embeddings, EngineCounters, EngineStatus, Failure,
    FrameError, Hello, Lane, ModelInfo, PROTOCOL_VERSION, ParseLimits, Reply, Request, Settings, TextRole,
    Welcome, read_frame, write_frame,
};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const EMBEDDING: &str = "bge-small-en-v1.5";
pub(crate) const MEAN_POOLED: &str = "all-MiniLM-L6-v2";
pub(crate) const RERANKER: &str = "ms-marco-MiniLM-L-12-v2";

/// How long anything may take on a loaded machine before a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// The value of a variable that `make test` sets.
pub(crate) fn set_by_make_test(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run these tests with `make test`"))
}

pub(crate) fn settings() -> Settings {
    Settings {
        socket: "engine.sock".into(),
        model_folders: vec![set_by_make_test("RAG_TEST_MODELS")],
        onnxruntime: set_by_make_test("RAG_TEST_ONNXRUNTIME"),
        embedding_model: EMBEDDING.into(),
        rerank_model: RERANKER.into(),
        device: "auto".into(),
        threads: 0,
        bulk_threads: 0,
        memory_limit_mb: 0,
        queue_limit: 100,
        cache_mb: 16,
        cache_ttl_s: 600,
        parse: ParseLimits {
            max_document_bytes: 16 << 20,
            memory_mb: 1024,
            cpu_seconds: 20,
            sandbox: "auto".into(),
            ocr: None,
        },
        llm_program: set_by_make_test("RAG_TEST_LLM"),
        chat: None,
        allow_remote: false,
    }
}

/// The models of an endpoint.
pub(crate) fn chat_models(model: &str, fallbacks: &[&str], endpoint: ChatEndpoint) -> ChatModels {
    ChatModels {
        model: model.into(),
        simple_model: None,
        fallback_models: fallbacks.iter().map(|name| (*name).to_owned()).collect(),
        endpoint: Some(endpoint),
    }
}

/// An engine in a temporary folder; ended when dropped.
pub(crate) struct Engine {
    pub(crate) folder: TempDir,
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Engine {
    pub(crate) fn start() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), settings)
    }

    pub(crate) fn in_folder(folder: TempDir, settings: Settings) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rag-engine"))
            .arg("serve")
            .current_dir(folder.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        write_frame(&mut stdin, &settings).unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let sink = log.clone();
        std::thread::spawn(move || lines.for_each(|line| sink.lock().unwrap().push(line.unwrap())));
        Self { folder, child, stdin: Some(stdin), log }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// A stream that has not greeted yet.
    pub(crate) fn stream(&self) -> UnixStream {
        let stream = patiently("the socket", || UnixStream::connect(self.socket()).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn connect(&self) -> Client {
        Client {
            stream: greeted(self.stream()),
            socket: self.socket(),
            lane: Lane::Interactive,
            principal: "role:tester".into(),
            deadline_ms: None,
            local_only: false,
        }
    }

    pub(crate) fn change(&mut self, settings: &Settings) {
        write_frame(self.stdin.as_mut().unwrap(), settings).unwrap();
        self.logs("settings changed");
    }

    /// Waits until it has logged this: what it writes is read by a thread.
    #[track_caller]
    pub(crate) fn logs(&self, part: &str) {
        patiently(part, || self.log.lock().unwrap().iter().any(|line| line.contains(part)).then_some(()));
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        patiently("the engine's end", || self.child.try_wait().unwrap())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the engine:\n{}", self.log());
        }
    }
}

/// Polls until there is a result.
pub(crate) fn patiently<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < end, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn greeted(mut stream: UnixStream) -> UnixStream {
    write_frame(&mut stream, &Hello { protocol: PROTOCOL_VERSION }).unwrap();
    let welcome: Welcome = read_frame(&mut stream).unwrap();
    assert_eq!(welcome.protocol, PROTOCOL_VERSION);
    stream
}

/// A greeted connection.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    socket: PathBuf,
    pub(crate) lane: Lane,
    pub(crate) principal: String,
    pub(crate) deadline_ms: Option<u32>,
    pub(crate) local_only: bool,
}

impl Client {
    pub(crate) fn bulk(mut self) -> Self {
        self.lane = Lane::Bulk;
        self
    }

    pub(crate) fn named(mut self, principal: &str) -> Self {
        self.principal = principal.into();
        self
    }

    pub(crate) fn send(&mut self, call: Call) {
        self.try_send(call).unwrap();
    }

    fn try_send(&mut self, call: Call) -> Result<(), FrameError> {
        let principals = vec![self.principal.clone()];
        let (deadline_ms, local_only) = (self.deadline_ms, self.local_only);
        let request = Request { lane: self.lane, principals, deadline_ms, local_only, call };
        write_frame(&mut self.stream, &request)
    }

    pub(crate) fn receive(&mut self) -> Reply {
        read_frame(&mut self.stream).unwrap()
    }

    /// As a session does: a connection that was closed because it was idle is made anew.
    pub(crate) fn ask(&mut self, call: Call) -> Result<Reply, Failure> {
        let first = self.try_send(call.clone()).and_then(|()| read_frame(&mut self.stream));
        let reply = first.unwrap_or_else(|_| {
            let stream = UnixStream::connect(&self.socket).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            self.stream = greeted(stream);
            self.send(call);
            self.receive()
        });
        match reply {
            Reply::Failed(failure) => Err(failure),
            reply => Ok(reply),
        }
    }

    pub(crate) fn embed(
        &mut self,
        model: Option<&str>,
        role: TextRole,
        texts: &[&str],
    ) -> Result<Embeddings, Failure> {
        let texts = texts.iter().map(|text| text.to_string()).collect();
        match self.ask(Call::Embed { model: model.map(str::to_owned), role, texts })? {
            Reply::Embeddings(embeddings) => Ok(embeddings),
            other => panic!("{other:?}"),
        }
    }

    /// The vector of one text by the default model.
    pub(crate) fn vector(&mut self, role: TextRole, text: &str) -> Vec<f32> {
        self.embed(None, role, &[text]).unwrap().values
    }

    pub(crate) fn rerank(&mut self, query: &str, passages: &[&str]) -> Result<Vec<f32>, Failure> {
        self.rerank_by(None, query, passages, false)
    }

    pub(crate) fn rerank_by(
        &mut self,
        model: Option<&str>,
        query: &str,
        passages: &[&str],
        within_budget: bool,
    ) -> Result<Vec<f32>, Failure> {
        let passages = passages.iter().map(|text| text.to_string()).collect();
        let model = model.map(str::to_owned);
        match self.ask(Call::Rerank { model, query: query.into(), passages, within_budget })? {
            Reply::Scores { scores, .. } => Ok(scores),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn status(&mut self) -> EngineStatus {
        match self.ask(Call::Status).unwrap() {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn counters(&mut self) -> EngineCounters {
        self.status().counters
    }

    pub(crate) fn models(&mut self) -> Vec<ModelInfo> {
        match self.ask(Call::Models).unwrap() {
            Reply::Models(models) => models,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn chat(&mut self, question: &str) -> Result<Reply, Failure> {
        self.ask(chat(question))
    }
}

pub(crate) fn chat(question: &str) -> Call {
    let message = ChatMessage { role: "user".into(), content: question.into() };
    Call::Chat(Chat { messages: vec![message], max_tokens: 64, ..Chat::default() })
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
