//! An OpenAI-compatible chat endpoint on loopback whose replies a test decides.
//!
//! It knows just enough HTTP/1.1 for one request per connection, and keeps what it was sent.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the endpoint does with a request.
#[derive(Debug, Clone)]
pub enum ChatReply {
    /// Answers with this text as the assistant's message.
    Message(String),
    /// Answers with the text that this makes of the request's body.
    By(fn(&Value) -> String),
    /// Answers with this status and body.
    Status(u16, String),
    /// Sends the client elsewhere.
    Redirect(String),
    /// Takes the request and says nothing until the test ends.
    Hang,
    /// Each of these in turn, and the last one from then on.
    Turns(Vec<ChatReply>),
    /// The first whose words the conversation has; of none, status 404.
    ByWords(Vec<(&'static str, ChatReply)>),
}

/// A running endpoint.
#[derive(Debug)]
pub struct ChatStub {
    port: u16,
    reply: Arc<Mutex<ChatReply>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl ChatStub {
    /// Listens on a free port of 127.0.0.1.
    pub fn start(reply: ChatReply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let reply = Arc::new(Mutex::new(reply));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (replies, seen) = (Arc::clone(&reply), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (replies, seen) = (Arc::clone(&replies), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &replies, &seen));
            }
        });
        Self { port, reply, requests }
    }

    /// Base URL, as `rag_ext.llm_url` wants it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Replies so from now on.
    pub fn reply(&self, reply: ChatReply) {
        *self.reply.lock().unwrap() = reply;
    }

    /// Bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, reply: &Mutex<ChatReply>, requests: &Mutex<Vec<Value>>) {
    let Some(body) = read_body(&stream) else { return };
    let request: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let reply = match chosen(&mut reply.lock().unwrap(), &request["messages"].to_string()) {
        ChatReply::By(made) => ChatReply::Message(made(&request)),
        other => other,
    };
    requests.lock().unwrap().push(request);
    match reply {
        ChatReply::Message(text) => respond(stream, 200, "", &completion(&text).to_string()),
        ChatReply::Status(status, body) => respond(stream, status, "", &body),
        ChatReply::Redirect(to) => respond(stream, 307, &format!("Location: {to}\r\n"), ""),
        ChatReply::Hang => std::thread::sleep(Duration::from_secs(600)),
        ChatReply::Turns(_) | ChatReply::ByWords(_) | ChatReply::By(_) => panic!("a turn cannot have turns"),
    }
}

/// The reply whose turn it is.
fn chosen(reply: &mut ChatReply, conversation: &str) -> ChatReply {
    match reply {
        ChatReply::ByWords(cases) => {
            let case = cases.iter_mut().find(|(words, _)| conversation.contains(words));
            case.map_or(ChatReply::Status(404, "{}".into()), |(_, reply)| chosen(reply, conversation))
        }
        ChatReply::Turns(turns) if turns.len() > 1 => turns.remove(0),
        ChatReply::Turns(turns) => turns[0].clone(),
        other => other.clone(),
    }
}

fn read_body(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn completion(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "stub",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    })
}

fn respond(mut stream: TcpStream, status: u16, headers: &str, body: &str) {
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    );
}
