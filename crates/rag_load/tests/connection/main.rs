//! How `rag-load` finds and reaches a server: one that does the handshakes and then says in an error how it was
//! reached, as whom, and with what.

#![allow(clippy::unwrap_used)]

mod password;
mod server;
mod tls;
