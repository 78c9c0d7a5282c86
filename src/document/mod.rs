//! L3: what a document is: where it goes, how it is stored and changed, and when it is done.

pub(crate) mod change;
pub(crate) mod store;
pub(crate) mod target;
pub(crate) mod wait;
