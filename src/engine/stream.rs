//! A completion that is read while it is written. When it is dropped before its end, its connection is closed: then the
//! engine ends the request, and closes its own connection to the endpoint.

use super::connection::{Connection, Lost};
use super::{IDLE, chat_request, connect, deadline_of, encoded, unexpected};
use crate::error::{Error, Result};
use crate::pg::shared;
use rag_wire::{Call, Chat, Completion, Lane, Reply};
use std::time::{Duration, Instant};

/// A request that is being answered.
pub(crate) struct ChatStream {
    connection: Connection,
    deadline: Instant,
}

/// What was written next.
pub(crate) enum ChatPart {
    /// More of the text; the stream goes on.
    Delta(String, ChatStream),
    /// The end, with the whole text.
    End(Completion),
}

impl ChatStream {
    /// Asks the configured chat endpoint, all tries together within a time.
    pub(crate) fn open(chat: Chat, within: Duration, principals: &[String]) -> Result<Self> {
        shared::require()?;
        let request = chat_request(Lane::Interactive, Call::ChatStream(chat), within, principals);
        let frame = encoded(&request)?;
        let deadline = deadline_of(&request);
        // Not the idle connection, which may have been closed: nothing is asked twice here.
        let mut connection = connect(deadline)?;
        connection.send(&frame, deadline).map_err(broken)?;
        Ok(Self { connection, deadline })
    }

    /// Waits for what is written next. After an error nothing comes any more.
    pub(crate) fn next(mut self) -> Result<ChatPart> {
        match self.connection.receive(self.deadline).map_err(broken)? {
            Reply::Delta(delta) => Ok(ChatPart::Delta(delta, self)),
            Reply::Completion(completion) => {
                IDLE.set(Some(self.connection));
                Ok(ChatPart::End(completion))
            }
            Reply::Failed(failure) => Err(failure.into()),
            other => Err(unexpected(&other)),
        }
    }
}

fn broken(lost: Lost) -> Error {
    match lost {
        Lost::Failed(error) => error,
        Lost::Closed(reason) => Error::engine_down("the engine ended while it worked on a request")
            .detail(reason)
            .hint("The server's log tells why. The engine is started again by itself."),
    }
}
