//! BM25 over immutable tantivy segments: bytes in, ranked ids out.
//!
//! [`build`] turns entries (an id, a title, a body) into one blob, [`Segment::open`] reads it, [`search`]
//! ranks the entries of any number of segments, and [`merge`] makes one blob of several. The scores of
//! many segments are bit-identical to the scores of one segment with the same entries in it, because the
//! statistics are summed over exactly the segments passed in and scores are added in fixed point.
//!
//! The crate starts no thread, opens no file but those of [`merge_in`] and knows no database: where the blobs are kept,
//! who may see them and which entries are dead is the caller's business.
//!
//! | file | what it is for |
//! |---|---|
//! | `language`, `analyser`, `normal_form` | text to terms |
//! | `query` | what a user typed to terms, phrases and conditions |
//! | `bundle` | the layout of a blob and its checks |
//! | `index` | everything that tantivy wants: schema, tokenizer, directory |
//! | `writer`, `merge`, `folder`, `segment` | build, merge and open blobs |
//! | `statistics`, `weight`, `plan` | what a query's terms weigh over the segments given |
//! | `disjunction`, `conditions`, `phrase`, `top` | finding the best entries |
//! | `proximity` | a closer look at these: words of the query that stand together |
//! | `spelling` | words that no segment has, and what they may have been meant to be |
//! | `interrupt` | ending work that takes long |

mod language;

mod analyser;
mod normal_form;

mod query;

mod bundle;
mod directory;
mod error;
mod folder;
mod index;
mod interrupt;

mod merge;
mod segment;
mod writer;

mod plan;
mod statistics;
mod weight;

mod conditions;
mod disjunction;
mod phrase;
mod proximity;
mod search;
mod spelling;
mod top;

pub use analyser::ANALYSER_VERSION;
pub use bundle::FORMAT_VERSION;
pub use error::Error;
pub use interrupt::GoesOn;
pub use language::Language;
pub use merge::{Merged, merge, merge_in, merge_while};
pub use query::{MAX_TERMS, Marker, Query};
pub use search::{Hit, search, search_while};
pub use segment::Segment;
pub use spelling::{Correction, correction, is_known};
pub use statistics::{Statistics, statistics};
pub use tantivy::directory::OwnedBytes;
pub use writer::{Entry, build};
