//! A small HTTP server of our own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// How many came before it.
    pub(crate) number: usize,
    /// First line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The path with its query.
    pub(crate) fn path(&self) -> &str {
        self.head.split_whitespace().nth(1).unwrap_or_default()
    }
}

/// A server on a port of its own, as long as the test runs.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers with what `answer` makes of a request, raw; `silence` is never ended, and the body behind [`TRICKLE`] comes a byte at a time.
    pub(crate) fn start(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let (kept, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || serve(stream.unwrap(), number, &kept, answer.as_ref()));
            }
        });
        Self { url, seen }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    number: usize,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> Vec<u8> + Send + Sync),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let request = Request { number, head, body };
    seen.lock().unwrap().push(request.clone());
    let answer = answer(&request);
    if answer == b"silence" {
        std::thread::sleep(Duration::from_secs(600));
    }
    if let Some(answer) = answer.strip_prefix(TRICKLE) {
        let body = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        stream.write_all(&answer[..body]).unwrap();
        for byte in &answer[body..] {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        return;
    }
    let _ = stream.write_all(&answer);
}

/// Before an answer that is to come slowly.
pub(crate) const TRICKLE: &[u8] = b"trickle:";

/// What an endpoint says that is busy for two requests, and then finds those of more than one input too large; `inputs` says
/// how many a request has.
pub(crate) fn busy_then_too_large(
    inputs: impl Fn(&Request) -> usize + Send + Sync,
    answer: impl Fn(&Request) -> Vec<u8> + Send + Sync,
) -> impl Fn(&Request) -> Vec<u8> + Send + Sync {
    move |request| {
        let refused = match request.number {
            0 => "429 Too Many Requests",
            1 => "503 Service Unavailable",
            _ if inputs(request) > 1 => "413 Content Too Large",
            _ => return answer(request),
        };
        http(refused, "retry-after: 0\r\n", "").into_bytes()
    }
}

/// A raw answer.
pub(crate) fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}
