//! Untrusted documents: each is parsed in a short-lived, confined child of its own, then cut into chunks here.

mod child;
mod child_lock;
mod child_message;
mod ocr;
mod permits;
mod prepare;
mod sandbox;
mod semantic;

pub use child::parse;
pub(crate) use child_lock::ChildLock;
pub use ocr::{OcrArguments, ocr};
pub(crate) use permits::{Permit, Permits};
pub(crate) use prepare::{Waiter, parse_document, prepare};
pub(crate) use sandbox::self_test;
pub(crate) use semantic::unless_background;
