//! Messages and frames between a Postgres backend and the engine.
//!
//! A connection starts with [`Hello`] and is answered by [`Welcome`]; then the backend sends one
//! [`Request`] at a time and reads one [`Reply`], before which there may be [`Reply::Delta`]s. Closing the connection withdraws what is in flight.

#![forbid(unsafe_code)]

mod frame;
mod message;
mod settings;

pub use frame::{FrameError, MAX_FRAME_BYTES, decode, encode, frame_length, read_frame, write_frame};
pub use message::*;
pub use settings::*;

/// Version of the messages; both sides must agree on it before anything else is said.
pub const PROTOCOL_VERSION: u32 = 8;

/// Most pairs that a model's budget for a search may be, whatever the device.
pub const MAX_PAIR_BUDGET: usize = 50;
