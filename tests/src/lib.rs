//! Throw-away clusters for tests against a real server.
//!
//! [`Cluster`] is a Postgres of its own: a folder and a socket, run by an unprivileged user, gone
//! when the test process is gone. [`Database`] is one test's place in it, [`Session`] one connection,
//! [`Witness`] the proof that the server did not restart meanwhile. What is tested, and against what
//! expectation, stands in `tests/`.
//!
//! `RAG_TEST_PG_CONFIG` names the `pg_config` of a Postgres into which rag_ext has been installed;
//! `make test` sets it.

#![allow(clippy::unwrap_used, reason = "a harness that fails must say where")]

pub mod catalog;
mod chat_stub;
mod cluster;
mod database;
mod guardian;
mod installation;
mod model_folder;
mod poll;
mod process;
mod session;
mod soundness;
mod source;
mod witness;

pub use chat_stub::{ChatReply, ChatScript, ChatStub, ChatVoice};
pub use cluster::{Builder, Cluster, Shutdown};
pub use database::{Database, shared};
pub use installation::Installation;
pub use model_folder::model_folder;
pub use poll::{eventually, wait_until};
pub use process::{Process, processes_below};
pub use rag_test_files::Random;
pub use session::{Failure, Session, literal};
pub use source::{RustSource, StringLiteral, project_files, repository};
pub use witness::Witness;
