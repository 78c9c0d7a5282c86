//! The socket: accepting, checking and greeting clients, and one thread per connection.

use crate::calls;
use crate::engine::Engine;
use crate::failure::failure;
use crate::{log, process};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Uid;
use rag_wire::{
    FailureCode, FrameError, Hello, Lane, PROTOCOL_VERSION, Reply, Request, Settings, Welcome, read_frame,
    write_frame,
};
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Most connections served at once: one thread each, which sleeps most of the time.
const MAX_CONNECTIONS: usize = 1000;

/// Of these, kept for background work: sessions that ask all at once keep no document waiting.
const KEPT_FOR_BULK: usize = 50;

/// A connection on which nothing is asked for so long is closed: a session that asks again makes another one.
const IDLE: Duration = Duration::from_secs(10);

/// Connections beyond that which are told so in words; further ones are closed.
const REFUSALS: usize = 64;

/// Longest path that fits a socket address, without the closing zero.
const MAX_SOCKET_PATH: usize = 107;

/// A client that does not greet, stops within a frame or does not read its reply is given up after this long.
const STALLED: Duration = Duration::from_secs(30);

/// The subcommand `serve`: runs until its standard input ends or a signal comes, then ends with status 0.
pub fn serve() -> ExitCode {
    process::detach();
    let mut input = BufReader::new(io::stdin());
    let settings: Settings = match read_frame(&mut input) {
        Ok(settings) => settings,
        Err(FrameError::Closed) => return ExitCode::SUCCESS,
        Err(e) => {
            log::error(format_args!("cannot read the settings: {e}"));
            return ExitCode::from(2);
        }
    };
    let socket = settings.socket.clone();
    // The socket comes first: clients may connect and wait while models load.
    let started = listen(&socket).and_then(|listener| Ok((listener, Engine::start(settings)?)));
    let (listener, engine) = match started {
        Ok(started) => started,
        Err(e) => {
            log::error(format_args!("cannot serve on {socket}: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let threads = [
        spawn("rag-settings", {
            let engine = engine.clone();
            move || follow_settings(&engine, input)
        }),
        spawn("rag-house", {
            let engine = engine.clone();
            move || {
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                    engine.keep_house();
                }
            }
        }),
    ];
    if let Some(e) = threads.into_iter().find_map(Result::err) {
        log::error(format_args!("cannot start a thread: {e}"));
        return ExitCode::FAILURE;
    }
    accept(&engine, &listener)
}

/// Takes over each later frame of settings; ends the process when the supervisor closes the pipe.
fn follow_settings(engine: &Engine, mut input: impl Read) {
    loop {
        match read_frame::<Settings>(&mut input) {
            Ok(settings) => {
                engine.change_settings(settings);
                log::info("settings changed");
            }
            Err(FrameError::Closed) => process::exit_now(0),
            Err(e) => {
                log::error(format_args!("cannot read the settings: {e}"));
                process::exit_now(1);
            }
        }
    }
}

/// Binds the socket, readable by this user only; a socket left over from an earlier start is removed.
fn listen(path: &str) -> io::Result<UnixListener> {
    if path.len() > MAX_SOCKET_PATH {
        let message = format!("the socket's path has {} bytes, the limit is {MAX_SOCKET_PATH}", path.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    // Made with mode 0600 by the umask; said again, for a reader of this function.
    let listener = UnixListener::bind(Path::new(path))?;
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

fn accept(engine: &Arc<Engine>, listener: &UnixListener) -> ExitCode {
    let open = Arc::new(AtomicUsize::new(0));
    let refused = match start_refusing() {
        Ok(refused) => refused,
        Err(e) => {
            log::error(format_args!("cannot start a thread: {e}"));
            return ExitCode::FAILURE;
        }
    };
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => {
                // Out of descriptors or memory: wait for a connection to end.
                log::warning(format_args!("cannot accept a connection: {e}"));
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if !is_same_user(&stream) {
            log::warning("a connection by another user was refused");
            continue;
        }
        let others = open.fetch_add(1, Ordering::AcqRel);
        if others >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::AcqRel);
            let _ = refused.try_send(stream);
            continue;
        }
        let place = Connection { open: open.clone() };
        let engine = engine.clone();
        let is_for_bulk = others >= MAX_CONNECTIONS - KEPT_FOR_BULK;
        let serve = move || {
            let _place = place;
            converse(&engine, &stream, is_for_bulk);
        };
        if let Err(e) = spawn("rag-connection", serve) {
            log::warning(format_args!("cannot start a thread for a connection: {e}"));
        }
    }
}

/// One of the places in [`MAX_CONNECTIONS`].
struct Connection {
    open: Arc<AtomicUsize>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

fn is_same_user(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| Uid::from_raw(peer.uid()) == Uid::effective())
}

/// Greets a client and answers its requests, until it hangs up, is idle or says something that is no message.
fn converse(engine: &Arc<Engine>, stream: &UnixStream, is_for_bulk: bool) {
    let ended = greet(stream)
        .and_then(|agreed| if agreed { answer_requests(engine, stream, is_for_bulk) } else { Ok(()) });
    match ended {
        Err(error @ (FrameError::TooLong(_) | FrameError::Malformed(_))) => {
            log::warning(format_args!("a connection was closed: {error}"));
        }
        // Clients come and go.
        Ok(()) | Err(FrameError::Closed | FrameError::Io(_)) => {}
    }
}

/// Exchanges versions; `false` if they differ.
fn greet(mut stream: &UnixStream) -> Result<bool, FrameError> {
    stream.set_read_timeout(Some(STALLED))?;
    stream.set_write_timeout(Some(STALLED))?;
    let hello: Hello = read_frame(&mut stream)?;
    let welcome = Welcome { protocol: PROTOCOL_VERSION, version: env!("CARGO_PKG_VERSION").to_owned() };
    write_frame(&mut stream, &welcome)?;
    Ok(hello.protocol == PROTOCOL_VERSION)
}

fn answer_requests(
    engine: &Arc<Engine>,
    mut stream: &UnixStream,
    is_for_bulk: bool,
) -> Result<(), FrameError> {
    loop {
        let request: Request = read_request(stream)?;
        if is_for_bulk && request.lane != Lane::Bulk {
            return write_frame(&mut stream, &full());
        }
        let mut deliver = |reply| write_frame(&mut &*stream, &reply).is_ok();
        let Some(reply) = calls::answer(engine, request, stream.as_fd(), &mut deliver) else { return Ok(()) };
        match write_frame(&mut stream, &reply) {
            Err(FrameError::TooLong(bytes)) => {
                let message =
                    format!("the reply would have {bytes} bytes, the limit is {}", rag_wire::MAX_FRAME_BYTES);
                write_frame(&mut stream, &Reply::Failed(failure(FailureCode::LimitExceeded, message)))?;
            }
            other => other?,
        }
    }
}

/// Waits for a request to begin until the connection counts as idle, which reads as its end, and not long for it to end.
fn read_request(stream: &UnixStream) -> Result<Request, FrameError> {
    let mut first = [0u8; 1];
    stream.set_read_timeout(Some(IDLE))?;
    let mut reader = stream;
    loop {
        match reader.read(&mut first) {
            Ok(0) => return Err(FrameError::Closed),
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(FrameError::Closed);
            }
            Err(e) => return Err(e.into()),
        }
    }
    stream.set_read_timeout(Some(STALLED))?;
    read_frame(&mut first.as_slice().chain(stream))
}

/// A thread that tells clients beyond the limit why they are not served.
fn start_refusing() -> io::Result<SyncSender<UnixStream>> {
    let (send, receive): (_, Receiver<UnixStream>) = sync_channel(REFUSALS);
    spawn("rag-refusals", move || {
        receive.into_iter().for_each(|stream| refuse(&stream).unwrap_or_default())
    })?;
    Ok(send)
}

fn refuse(mut stream: &UnixStream) -> Result<(), FrameError> {
    let soon = Some(Duration::from_millis(200));
    if greet(stream)? {
        stream.set_read_timeout(soon)?;
        let _: Request = read_frame(&mut stream)?;
        write_frame(&mut stream, &full())?;
    }
    Ok(())
}

fn full() -> Reply {
    let message = format!("the engine serves {MAX_CONNECTIONS} connections already");
    Reply::Failed(failure(FailureCode::QueueFull, message))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
