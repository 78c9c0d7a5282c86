//! An embeddings endpoint whose vectors cost nothing: what is measured with it is everything but the model.

use crate::MODEL;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tempfile::TempDir;

/// Different vectors that it has.
const VECTORS: usize = 256;

/// A running endpoint in this process. It speaks as much HTTP/1.1 as a client that keeps its connections needs.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
}

impl StandIn {
    /// Listens on a free port of 127.0.0.1; the vectors have this dimension.
    pub fn start(dimension: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let vectors: Arc<Vec<String>> = Arc::new((0..VECTORS).map(|n| vector(n, dimension)).collect());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let vectors = Arc::clone(&vectors);
                std::thread::spawn(move || serve(stream, &vectors));
            }
        });
        Self { address }
    }

    /// Makes a folder of models with one of this name that is behind it, and has the tokenizer of the default model.
    pub fn models(&self, name: &str, dimension: usize) -> TempDir {
        // Where the user that Postgres runs as may read.
        let root = tempfile::Builder::new().prefix("rag_models_").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let model = serde_json::json!({
            "endpoint": {"url": format!("http://{}/v1", self.address), "model": name},
            "dimension": dimension, "max_tokens": 512, "tokenizer": MODEL,
        });
        std::fs::write(folder.join("rag_model.json"), model.to_string()).unwrap();
        root
    }
}

/// A vector as JSON, of numbers as long as real ones.
fn vector(n: usize, dimension: usize) -> String {
    let value = |at: usize| (((n + 1) * 7919 + at * 104_729) % 20_011) as f64 / 1e5 - 0.1;
    let values: Vec<String> = (0..dimension).map(|at| format!("{:.8}", value(at) + 1.234e-6)).collect();
    format!("[{}]", values.join(","))
}

fn serve(stream: TcpStream, vectors: &[String]) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut asked = 0;
    while let Some(texts) = inputs(&mut reader) {
        let mut body = String::from(r#"{"model":"stand-in","data":["#);
        for index in 0..texts {
            let comma = if index > 0 { "," } else { "" };
            let vector = &vectors[(asked + index) % vectors.len()];
            write!(body, r#"{comma}{{"index":{index},"embedding":{vector}}}"#).unwrap();
        }
        asked += texts;
        body.push_str("]}");
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

/// How many texts the next request has; `None` once the client is gone.
fn inputs(reader: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
    Some(body["input"].as_array()?.len())
}
