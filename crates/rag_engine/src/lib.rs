//! The engine: models, batching, chat endpoints and the parse child, served over a unix socket.
//!
//! It is a plain program. It knows nothing of Postgres: whoever starts it sends [`rag_wire::Settings`] on its
//! standard input and talks [`rag_wire::Request`] and [`rag_wire::Reply`] over the socket.
//!
//! One thread per connection reads requests, tokenizes and waits; a fixed set of workers runs the models, in the
//! order that [`batch`] decides. Nothing is asynchronous but a
//! request to an endpoint, which has a thread of its own; no state outlives the process.

#![deny(unsafe_code)]

pub mod backend;
pub mod batch;
pub mod batch_limits;
pub mod cache;
mod calls;
mod completion;
pub mod device;
mod dispatch;
mod endpoint;
mod engine;
mod failure;
mod llm;
pub mod log;
mod measure;
pub mod model;
mod parse;
mod principal;
mod process;
mod pull;
mod scheduler;
mod server;
mod ticket;

pub use measure::{MeasureArguments, measure};
pub use parse::{OcrArguments, ocr, parse};
pub use pull::{PullArguments, pull};
pub use server::serve;
