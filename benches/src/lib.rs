//! What the benches share: test collections, kept vectors, a model run directly, a filled database, an engine
//! of its own, rows that are copied in, what a way of searching came to, and how times, tables and pictures are shown.
//!
//! | bench | asks |
//! |---|---|
//! | `quality` | does it find what people judged relevant, and what does each stage add? Fails where a figure is below its target |
//! | `answers` | are answers right, and questions without one refused? Fails where a quote or a number is not true |
//! | `filters` | does a filtered search return k rows, the nearest ones? Fails where it does not |
//! | `chunking` | which method of chunking shows answers soonest? Prints |
//! | `cost` | what does it cost beside the bare parts it is made of? Prints, asserts no time |
//! | `scale` | what does it cost with ten times as many chunks, a small owner beside a large one, and others the same rows? Prints, asserts no time |
//! | `against` | is it slower than another version of itself? Prints, asserts no time |
//! | `parse` | is all in the text that another parser found in the file? Fails where a format is below its goal |
//! | `crates` | is one of the pure crates slower than last time? Criterion |
//!
//! A machine is never quiet, so a figure here is a ratio of two times taken in turn in one run.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod bulk;
mod corpus;
mod direction;
mod engine;
mod library;
mod memory;
mod metric;
mod model;
mod outcome;
mod processor;
mod stand_in;
mod stopwatch;
mod svg;
mod table;
mod texts;
mod times;
mod vectors;

pub use bulk::{BulkDocument, BulkRows, Place, copy, escaped, parsed_uuid, uuid, without_triggers};
pub use corpus::{Corpus, Document, Query, eval_data};
pub use direction::direction;
pub use engine::{Client, Engine};
pub use library::{Ingested, Library};
pub use memory::{own_mib, peak_anonymous_mib};
pub use metric::{ndcg_at_10, recall};
pub use model::{Model, as_query, embed_all, model_digest};
pub use outcome::{Difference, Half, Outcome};
pub use processor::processor_time;
pub use stand_in::StandIn;
pub use stopwatch::best_times;
pub use svg::{AXIS, Anchor, COLOURS, Drawing, GRID};
pub use table::Table;
pub use texts::{Texts, Words};
pub use times::{Times, timed};
pub use vectors::{KeptVectors, Key, digest, kept_folder};

/// The embedding model that is measured: the default one.
pub const MODEL: &str = "bge-small-en-v1.5";

/// The value of a variable that `make bench` sets.
pub fn set_by_make(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this with `make bench`"))
}
