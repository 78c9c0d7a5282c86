//! One connection to the engine: handshake, and frames over a socket that never blocks.

use crate::error::Error;
use crate::pg::interrupts::{self, Readiness};
use crate::pg::socket;
use pgrx::PgSqlErrorCode;
use rag_wire::{Hello, PROTOCOL_VERSION, Welcome};
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Read at once; a longer reply grows as it comes, so a lying length costs no memory.
const PIECE: usize = 64 * 1024;
/// Longest wait for the engine's greeting.
const GREETING: Duration = Duration::from_secs(5);

/// A connection on which the handshake is done and no reply is outstanding.
pub(super) struct Connection {
    stream: UnixStream,
}

/// Why there is no reply.
pub(super) enum Lost {
    /// The engine is not there or went away, with the reason: another try may succeed.
    Closed(String),
    /// Another try would not help.
    Failed(Error),
}

impl Connection {
    /// Connects and shakes hands.
    pub(super) fn open(path: &str, deadline: Instant) -> Result<Self, Lost> {
        let stream = match socket::connect(Path::new(path)) {
            Ok(stream) => stream,
            Err(error) => return Err(Lost::Closed(format!("connecting to \"{path}\": {error}"))),
        };
        let peer = socket::peer_user(&stream).map_err(closed)?;
        if peer != socket::own_user() {
            return Err(Lost::Failed(Error::engine_down(format!(
                "socket \"{path}\" belongs to user {peer}, not to the server's"
            ))));
        }
        let mut connection = Self { stream };
        let hello = rag_wire::encode(&Hello { protocol: PROTOCOL_VERSION })
            .map_err(|error| Lost::Failed(Error::internal(error.to_string())))?;
        let patience = Instant::now() + GREETING;
        let greeted = connection.exchange(&hello, deadline.min(patience));
        let welcome: Welcome =
            greeted.map_err(|lost| if is_over(patience, deadline) { silent() } else { lost })?;
        if welcome.protocol == PROTOCOL_VERSION {
            return Ok(connection);
        }
        Err(Lost::Failed(
            Error::not_ready(format!(
                "the engine speaks protocol {}, the library protocol {PROTOCOL_VERSION}",
                welcome.protocol
            ))
            .detail(format!(
                "The engine is version {}, the library {}.",
                welcome.version,
                env!("CARGO_PKG_VERSION")
            ))
            .hint("Install library and engine of one version, then restart the server."),
        ))
    }

    /// Sends a frame and reads the frame that answers it. After an error the connection must be dropped.
    pub(super) fn exchange<T: DeserializeOwned>(
        &mut self,
        frame: &[u8],
        deadline: Instant,
    ) -> Result<T, Lost> {
        self.write(frame, deadline)?;
        self.receive(deadline)
    }

    /// Sends a frame that several frames answer: see [`Self::receive`].
    pub(super) fn send(&mut self, frame: &[u8], deadline: Instant) -> Result<(), Lost> {
        self.write(frame, deadline)
    }

    /// Reads one frame. After an error the connection must be dropped.
    pub(super) fn receive<T: DeserializeOwned>(&mut self, deadline: Instant) -> Result<T, Lost> {
        let mut header = Vec::with_capacity(4);
        self.read(&mut header, 4, deadline)?;
        let header: [u8; 4] = header.try_into().map_err(|_| malformed("a short header"))?;
        let length = rag_wire::frame_length(header).map_err(malformed)?;
        let mut payload = Vec::with_capacity(length.min(PIECE));
        self.read(&mut payload, length, deadline)?;
        rag_wire::decode(&payload).map_err(malformed)
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), Lost> {
        while !bytes.is_empty() {
            interrupts::check();
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(Readiness::Writable, deadline)?
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(closed(error)),
            }
        }
        Ok(())
    }

    /// Appends until `to` holds `length` bytes.
    fn read(&mut self, to: &mut Vec<u8>, length: usize, deadline: Instant) -> Result<(), Lost> {
        while to.len() < length {
            interrupts::check();
            let filled = to.len();
            to.resize(length.min(filled + PIECE), 0);
            let result = self.stream.read(&mut to[filled..]);
            to.truncate(filled + *result.as_ref().unwrap_or(&0));
            match result {
                Ok(0) => return Err(closed(ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(Readiness::Readable, deadline)?
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(closed(error)),
            }
        }
        Ok(())
    }

    fn wait(&self, readiness: Readiness, deadline: Instant) -> Result<(), Lost> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Lost::Failed(
                Error::new(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, "the engine did not answer in time")
                    .hint("Raise rag_ext.engine_timeout, or see rag.engine_status for the engine's load."),
            ));
        }
        interrupts::wait_for_socket(self.stream.as_fd(), readiness, left);
        interrupts::check_wanted().map_err(Lost::Failed)
    }
}

/// Whether the wait for the greeting is over, and not that for the whole request.
fn is_over(patience: Instant, deadline: Instant) -> bool {
    let now = Instant::now();
    now >= patience && now < deadline
}

fn silent() -> Lost {
    let message = format!("the engine has said nothing for {} s", GREETING.as_secs());
    Lost::Failed(
        Error::engine_down(message)
            .detail("Its process is there and takes connections, but does not run.")
            .hint("See whether it is stopped (SIGSTOP) or the machine overloaded; if its process is killed, another one starts."),
    )
}

fn closed(error: io::Error) -> Lost {
    Lost::Closed(match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            "The engine closed the connection.".to_owned()
        }
        _ => error.to_string(),
    })
}

fn malformed(reason: impl std::fmt::Display) -> Lost {
    Lost::Failed(
        Error::engine_down(format!("the engine's reply cannot be read: {reason}"))
            .hint("Install library and engine of one version, then restart the server."),
    )
}
