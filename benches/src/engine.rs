//! An engine of the bench's own, with the server's default settings, and connections to it: what embedding
//! costs without a database.

use crate::{MODEL, set_by_make};
use rag_tests::{Installation, eventually};
use rag_wire::{
    Call, ChatModels, Hello, Lane, PROTOCOL_VERSION, ParseLimits, Reply, Request, Settings, TextRole,
    Welcome, read_frame, write_frame,
};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long a cold engine may take to load its models on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// An engine; ended when dropped.
pub struct Engine {
    folder: TempDir,
    child: Child,
    _stdin: ChildStdin,
}

impl Engine {
    /// Starts the installed engine and waits until it has embedded something.
    pub fn start() -> Self {
        Self::with(&settings())
    }

    /// The same with a chat model of this machine, `local/NAME`, and the folder that has NAME.
    pub fn with_chat(folder: &str, model: &str) -> Self {
        let mut settings = settings();
        settings.model_folders.push(folder.to_owned());
        settings.llm_program = program("rag-llm").to_str().unwrap().to_owned();
        settings.chat = Some(ChatModels {
            model: model.to_owned(),
            simple_model: None,
            fallback_models: Vec::new(),
            endpoint: None,
        });
        Self::with(&settings)
    }

    fn with(settings: &Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = program("rag-engine");
        let mut child = Command::new(&program)
            .arg("serve")
            .current_dir(folder.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let mut stdin = child.stdin.take().unwrap();
        write_frame(&mut stdin, settings).unwrap();
        let engine = Self { folder, child, _stdin: stdin };
        engine.connect().embed(Lane::Interactive, TextRole::Query, vec!["ready?".into()]);
        engine
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        let path = self.folder.path().join("engine.sock");
        let mut stream = eventually("the engine listens", PATIENCE, || UnixStream::connect(&path).ok());
        write_frame(&mut stream, &Hello { protocol: PROTOCOL_VERSION }).unwrap();
        let welcome: Welcome = read_frame(&mut stream).unwrap();
        assert_eq!(
            welcome.protocol, PROTOCOL_VERSION,
            "the installed engine is of another version: make install"
        );
        Client { stream }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection on which one request at a time is answered.
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Vectors of texts, in their order.
    pub fn embed(&mut self, lane: Lane, role: TextRole, texts: Vec<String>) -> Vec<Vec<f32>> {
        let count = texts.len();
        match self.ask(lane, Call::Embed { model: Some(MODEL.to_owned()), role, texts }) {
            Reply::Embeddings(found) => {
                let vectors: Vec<Vec<f32>> =
                    found.values.chunks_exact(found.dimension as usize).map(<[f32]>::to_vec).collect();
                assert_eq!(vectors.len(), count);
                vectors
            }
            other => panic!("no vectors but {other:?}"),
        }
    }

    /// What the engine answers to a call of the background.
    pub fn call(&mut self, call: Call) -> Reply {
        self.ask(Lane::Bulk, call)
    }

    fn ask(&mut self, lane: Lane, call: Call) -> Reply {
        let request = Request {
            lane,
            principals: vec!["role:bench".into()],
            deadline_ms: None,
            local_only: false,
            call,
        };
        write_frame(&mut self.stream, &request).unwrap();
        read_frame(&mut self.stream).unwrap()
    }
}

/// An installed program of the extension.
fn program(name: &str) -> PathBuf {
    Installation::from_env().path("--pkglibdir").join(name)
}

/// The defaults of the server's settings.
fn settings() -> Settings {
    Settings {
        socket: "engine.sock".into(),
        model_folders: vec![set_by_make("RAG_TEST_MODELS")],
        onnxruntime: set_by_make("RAG_TEST_ONNXRUNTIME"),
        embedding_model: MODEL.into(),
        rerank_model: String::new(),
        device: "cpu".into(),
        threads: 0,
        bulk_threads: 0,
        memory_limit_mb: 0,
        queue_limit: 1024,
        cache_mb: 64,
        cache_ttl_s: 600,
        parse: ParseLimits {
            max_document_bytes: 50 << 20,
            memory_mb: 1024,
            cpu_seconds: 120,
            sandbox: "auto".into(),
            ocr: None,
        },
        llm_program: String::new(),
        chat: None,
        allow_remote: false,
    }
}
