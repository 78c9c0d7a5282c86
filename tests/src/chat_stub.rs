//! An OpenAI-compatible endpoint, of a chat model unless a test says otherwise, whose replies the test decides.
//!
//! It knows just enough HTTP/1.1 for one request per connection, and keeps what it was sent.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
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
    /// Answers with the status and body that this makes of the request's body.
    StatusBy(fn(&Value) -> (u16, String)),
    /// Sends the client elsewhere.
    Redirect(String),
    /// Takes the request and says nothing until the test ends.
    Hang,
    /// Sends these bytes and closes the connection.
    Raw(String),
    /// Sends what the test says, when it says so.
    Stream(ChatScript),
    /// Each of these in turn, and the last one from then on.
    Turns(Vec<ChatReply>),
    /// The first whose words the conversation has; of none, status 404.
    ByWords(Vec<(&'static str, ChatReply)>),
    /// That of the model that is asked for; of none, status 404.
    ByModel(Vec<(&'static str, ChatReply)>),
}

/// A streamed reply under a test's control.
#[derive(Debug, Clone)]
pub struct ChatScript {
    said: Arc<Mutex<Receiver<String>>>,
    gone: Arc<AtomicBool>,
}

/// The test's end of a [`ChatScript`]. Dropping it ends the stream as a model does.
#[derive(Debug)]
pub struct ChatVoice {
    say: Sender<String>,
    gone: Arc<AtomicBool>,
}

impl ChatScript {
    /// For one request.
    pub fn new() -> (Self, ChatVoice) {
        let (say, said) = channel();
        let gone = Arc::new(AtomicBool::new(false));
        (Self { said: Arc::new(Mutex::new(said)), gone: Arc::clone(&gone) }, ChatVoice { say, gone })
    }
}

impl ChatVoice {
    /// Sends a part of the answer.
    pub fn say(&self, text: &str) {
        let event = json!({"model": "stub", "choices": [{"index": 0, "delta": {"content": text}}]});
        self.say_raw(&format!("data: {event}\n\n"));
    }

    /// Sends these bytes.
    pub fn say_raw(&self, bytes: &str) {
        self.say.send(bytes.to_owned()).unwrap();
    }

    /// Whether whoever asked has closed the connection.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

/// A running endpoint.
#[derive(Debug)]
pub struct ChatStub {
    address: SocketAddr,
    reply: Arc<Mutex<ChatReply>>,
    requests: Arc<Mutex<Vec<Value>>>,
    connections: Arc<AtomicUsize>,
}

impl ChatStub {
    /// Listens on a free port of 127.0.0.1.
    pub fn start(reply: ChatReply) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), reply)
    }

    /// Listens on a free port of an address of this machine.
    pub fn start_at(address: IpAddr, reply: ChatReply) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let reply = Arc::new(Mutex::new(reply));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (replies, seen) = (Arc::clone(&reply), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                accepted.fetch_add(1, Ordering::AcqRel);
                let (replies, seen) = (Arc::clone(&replies), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &replies, &seen));
            }
        });
        Self { address, reply, requests, connections }
    }

    /// Base URL, as `rag_ext.llm_url` wants it.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Replies so from now on.
    pub fn reply(&self, reply: ChatReply) {
        *self.reply.lock().unwrap() = reply;
    }

    /// How many connections there were so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// Bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, reply: &Mutex<ChatReply>, requests: &Mutex<Vec<Value>>) {
    let Some(body) = read_body(&stream) else { return };
    let request: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let reply = match chosen(&mut reply.lock().unwrap(), &request) {
        ChatReply::By(made) => ChatReply::Message(made(&request)),
        ChatReply::StatusBy(made) => {
            let (status, body) = made(&request);
            ChatReply::Status(status, body)
        }
        other => other,
    };
    requests.lock().unwrap().push(request);
    match reply {
        ChatReply::Message(text) => respond(stream, 200, "", &completion(&text).to_string()),
        ChatReply::Status(status, body) => respond(stream, status, "", &body),
        ChatReply::Redirect(to) => respond(stream, 307, &format!("Location: {to}\r\n"), ""),
        ChatReply::Hang => std::thread::sleep(Duration::from_secs(600)),
        ChatReply::Raw(bytes) => {
            let _ = (&stream).write_all(bytes.as_bytes());
        }
        ChatReply::Stream(script) => speak(&stream, &script),
        ChatReply::Turns(_)
        | ChatReply::ByWords(_)
        | ChatReply::ByModel(_)
        | ChatReply::By(_)
        | ChatReply::StatusBy(_) => panic!("a turn cannot have turns"),
    }
}

/// The reply whose turn it is.
fn chosen(reply: &mut ChatReply, request: &Value) -> ChatReply {
    match reply {
        ChatReply::ByWords(cases) => {
            let conversation = request["messages"].to_string();
            let case = cases.iter_mut().find(|(words, _)| conversation.contains(words));
            case.map_or(ChatReply::Status(404, "{}".into()), |(_, reply)| chosen(reply, request))
        }
        ChatReply::ByModel(cases) => {
            let case = cases.iter_mut().find(|(model, _)| request["model"] == *model);
            case.map_or(ChatReply::Status(404, "{}".into()), |(_, reply)| chosen(reply, request))
        }
        ChatReply::Turns(turns) if turns.len() > 1 => turns.remove(0),
        ChatReply::Turns(turns) => turns[0].clone(),
        other => other.clone(),
    }
}

/// Sends what is said as server-sent events, and watches whether anybody listens.
fn speak(stream: &TcpStream, script: &ChatScript) {
    let mut listener = stream.try_clone().unwrap();
    let gone = Arc::clone(&script.gone);
    std::thread::spawn(move || {
        while matches!(listener.read(&mut [0; 64]), Ok(read) if read > 0) {}
        gone.store(true, Ordering::Release);
    });
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let mut send = |text: &str| stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_ok();
    if !send(head) {
        return;
    }
    for text in script.said.lock().unwrap().iter() {
        if !send(&text) {
            return;
        }
    }
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    send(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
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
