//! L3: from a document row to sections, chunks, embeddings and a keyword segment that become visible together.

pub(crate) mod extract;
pub(crate) mod process;
