//! What the socket, the queues and the policy cost, beside ONNX Runtime called directly in this process.
//!
//! `RAG_TEST_MODELS=… RAG_TEST_ONNXRUNTIME=… cargo run --release -p rag_engine --example figures`
//!
//! Prints medians and ratios of one run; the two sides take turns, so load from elsewhere falls on both.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use ndarray::Array2;
use ort::environment::Environment;
use ort::session::Session;
use ort::value::Tensor;
use rag_core::chunking::ChunkOptions;
use rag_wire::{
    Call, Content, Hello, Lane, PROTOCOL_VERSION, ParseLimits, Prepare, Reply, Request, Settings, TextRole,
    Welcome, read_frame, write_frame,
};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokenizers::Tokenizer;

const MODEL: &str = "bge-small-en-v1.5";
const ROUNDS: usize = 200;

struct Direct {
    session: Session,
    tokenizer: Tokenizer,
}

impl Direct {
    fn open(environment: &Environment, models: &str, threads: usize, spinning: bool) -> Self {
        let folder = Path::new(models).join(MODEL);
        let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        tokenizer.with_padding(None);
        let builder = Session::builder(environment).unwrap();
        let builder = builder.with_intra_threads(threads).ok().unwrap().with_intra_op_spinning(spinning);
        let session = builder.ok().unwrap().commit_from_file(folder.join("model.onnx")).unwrap();
        Self { session, tokenizer }
    }

    fn embed(&mut self, text: &str) -> f32 {
        let encoding = self.tokenizer.encode_fast(text, true).unwrap();
        let row = |numbers: &[u32]| {
            let numbers = numbers.iter().map(|n| i64::from(*n)).collect();
            Tensor::from_array(Array2::from_shape_vec((1, encoding.len()), numbers).unwrap()).unwrap()
        };
        let mask = row(&vec![1; encoding.len()]);
        let inputs = ort::inputs![
            "input_ids" => row(encoding.get_ids()),
            "attention_mask" => mask,
            "token_type_ids" => row(encoding.get_type_ids()),
        ];
        let outputs = self.session.run(inputs).unwrap();
        let (_, values) = outputs[0].try_extract_tensor::<f32>().unwrap();
        values[0]
    }
}

struct Client(UnixStream, Lane);

impl Client {
    fn connect(socket: &Path, lane: Lane) -> Self {
        let mut stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        write_frame(&mut stream, &Hello { protocol: PROTOCOL_VERSION }).unwrap();
        let _: Welcome = read_frame(&mut stream).unwrap();
        Self(stream, lane)
    }

    fn embed(&mut self, role: TextRole, texts: Vec<String>) -> usize {
        match self.ask(Call::Embed { model: None, role, texts }) {
            Reply::Embeddings(found) => found.values.len(),
            other => panic!("{other:?}"),
        }
    }

    fn prepare(&mut self, content: Content, media_type: Option<&str>) -> usize {
        let (media_type, chunking) = (media_type.map(str::to_owned), ChunkOptions::default());
        let order = Prepare { content, media_type, title: None, model: None, language: None, chunking };
        match self.ask(Call::Prepare(order)) {
            Reply::Prepared(document) => document.chunks.len(),
            other => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, call: Call) -> Reply {
        let request = Request {
            lane: self.1,
            principals: vec!["role:figures".into()],
            deadline_ms: None,
            local_only: false,
            call,
        };
        write_frame(&mut self.0, &request).unwrap();
        read_frame(&mut self.0).unwrap()
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn timed<T>(run: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    let _ = run();
    started.elapsed()
}

fn query(n: usize) -> String {
    format!("how do I restore backup number {n} into another cluster")
}

fn passage(n: usize) -> String {
    format!(
        "{n} {}",
        "The server writes each change to its log before it touches the pages of a table. ".repeat(12)
    )
}

fn main() {
    let models = std::env::var("RAG_TEST_MODELS").unwrap();
    let library = std::env::var("RAG_TEST_ONNXRUNTIME").unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    let folder = tempfile::tempdir().unwrap();
    let (mut engine, stdin) = start(folder.path(), &models, &library, cores as u32);
    let socket = folder.path().join("engine.sock");
    let environment = ort::init_from(&library).unwrap().build().unwrap();

    println!("{cores} cores");
    latency(&environment, &models, &socket, cores);
    sessions(&socket);
    bulk(&environment, &models, &socket, cores);
    documents(&socket);
    drop(stdin);
    println!("engine ended with {}", engine.wait().unwrap());
}

fn start(folder: &Path, models: &str, library: &str, bulk_threads: u32) -> (Child, std::process::ChildStdin) {
    let binary = std::env::current_exe().unwrap().parent().unwrap().join("../rag-engine");
    let mut engine =
        Command::new(binary).arg("serve").current_dir(folder).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = engine.stdin.take().unwrap();
    let settings = Settings {
        socket: "engine.sock".into(),
        model_folders: vec![models.into()],
        onnxruntime: library.into(),
        embedding_model: MODEL.into(),
        rerank_model: String::new(),
        device: "cpu".into(),
        threads: 0,
        bulk_threads,
        memory_limit_mb: 0,
        queue_limit: 1000,
        cache_mb: 0,
        cache_ttl_s: 0,
        parse: ParseLimits {
            max_document_bytes: 1 << 20,
            memory_mb: 512,
            cpu_seconds: 10,
            sandbox: "auto".into(),
            ocr: None,
        },
        llm_program: String::new(),
        chat: None,
        allow_remote: false,
    };
    write_frame(&mut stdin, &settings).unwrap();
    (engine, stdin)
}

/// One short query at a time.
fn latency(environment: &Environment, models: &str, socket: &Path, cores: usize) {
    let mut client = Client::connect(socket, Lane::Interactive);
    client.embed(TextRole::Query, vec!["loaded".into()]);
    let mut directs: Vec<(String, Direct)> = [(1, false), (cores, false), (cores, true)]
        .map(|(threads, spinning)| {
            let name = format!("direct, {threads} threads{}", if spinning { ", spinning" } else { "" });
            (name, Direct::open(environment, models, threads, spinning))
        })
        .into();
    let mut times = vec![Vec::new(); directs.len() + 1];
    let prefix = "Represent this sentence for searching relevant passages: ";
    for n in 0..ROUNDS {
        times[0].push(timed(|| client.embed(TextRole::Query, vec![query(n)])));
        for (at, (_, direct)) in directs.iter_mut().enumerate() {
            times[at + 1].push(timed(|| direct.embed(&format!("{prefix}{}", query(n)))));
        }
    }
    let socket_ms = median(std::mem::take(&mut times[0]));
    println!("one query through the socket: {socket_ms:.2} ms");
    for ((name, _), times) in directs.iter().zip(times.into_iter().skip(1)) {
        let direct = median(times);
        println!("  {name}: {direct:.2} ms, ratio {:.2}", socket_ms / direct);
    }
}

/// Queries per second of one session and of eight.
fn sessions(socket: &Path) {
    let rate = |sessions: usize| {
        let started = Instant::now();
        std::thread::scope(|scope| {
            for session in 0..sessions {
                scope.spawn(move || {
                    let mut client = Client::connect(socket, Lane::Interactive);
                    for n in 0..ROUNDS {
                        client.embed(TextRole::Query, vec![query(session * ROUNDS + n)]);
                    }
                });
            }
        });
        (sessions * ROUNDS) as f64 / started.elapsed().as_secs_f64()
    };
    let (mut one, mut eight) = (0.0f64, 0.0f64);
    for _ in 0..3 {
        (one, eight) = (one.max(rate(1)), eight.max(rate(8)));
    }
    println!("queries per second: 1 session {one:.0}, 8 sessions {eight:.0}, ratio {:.2}", eight / one);
}

/// Passages per second, on all cores.
fn bulk(environment: &Environment, models: &str, socket: &Path, cores: usize) {
    const TEXTS: usize = 96;
    let mut best = [f64::MAX; 2];
    for round in 0..3 {
        let texts: Vec<String> = (0..TEXTS).map(|n| passage(round * TEXTS + n)).collect();
        let sent = texts.clone();
        let ours = timed(|| {
            Client::connect(socket, Lane::Bulk).embed(TextRole::Passage, sent);
        });
        let mut directs: Vec<_> = (0..cores).map(|_| Direct::open(environment, models, 1, false)).collect();
        let direct = timed(|| {
            std::thread::scope(|scope| {
                for (number, direct) in directs.iter_mut().enumerate() {
                    let texts = &texts;
                    scope.spawn(move || {
                        texts.iter().skip(number).step_by(cores).for_each(|text| {
                            direct.embed(text);
                        });
                    });
                }
            });
        });
        best = [best[0].min(ours.as_secs_f64()), best[1].min(direct.as_secs_f64())];
    }
    let rate = best.map(|seconds| TEXTS as f64 / seconds);
    println!(
        "passages per second on {cores} cores: engine {:.1}, direct {:.1}, ratio {:.2}",
        rate[0],
        rate[1],
        rate[0] / rate[1]
    );
}

/// One document at a time, parsed in the engine and in a child.
fn documents(socket: &Path) {
    let mut client = Client::connect(socket, Lane::Bulk);
    let page = |size: usize| format!("<h1>Title</h1><p>{}</p>", passage(0).repeat(size));
    for (name, content, media_type) in [
        ("1 kB of plain text, no child", Content::Text(passage(0)), Some("text/plain")),
        ("1 kB of HTML", Content::Bytes(page(1).into_bytes()), None),
        ("100 kB of HTML", Content::Bytes(page(100).into_bytes()), None),
    ] {
        let times = (0..20).map(|_| timed(|| client.prepare(content.clone(), media_type))).collect();
        println!("preparing {name}: {:.2} ms", median(times));
    }
}
