//! Codes of vectors: bytes in, the nearest candidates out.
//!
//! [`Encoder`] turns the vectors of a set into one blob with a bit per dimension and, apart from these, four bits per
//! dimension; [`Codes::open`] reads it. [`nearest`] estimates the cosine of a query with every vector of any number of blobs
//! by one bit, that of the best ones by four, and gives the best. The caller compares some of these exactly, and [`reach`]
//! tells by them how many are worth it.
//!
//! What is gone over for every search has 8 + dimension / 8 bytes, for 384 dimensions 56 where a vector of single precision
//! has 1,536, and that is quick (`examples/codes.rs`); so there is no graph to build, no part of a shared index that belongs
//! to others, and a condition on the entries costs no recall. The four bits, 196 bytes more, are read of a few hundred
//! entries, each in a fraction of the time in which a row of a table is found.
//!
//! The code is RaBitQ's (Gao and Long, SIGMOD 2024, <https://doi.org/10.1145/3654970>) without its rotation: the signs of
//! what is left of a vector once the set's centre is taken off, and two numbers that make the estimate unbiased. The
//! rotation guards against vectors whose weight is in a few dimensions; those of text models are spread enough, and the
//! centre takes what they have in common. The four bits are plain steps between the largest value and its negative.
//!
//! The crate starts no thread, opens no file and knows no database.
//!
//! | file | what it is for |
//! |---|---|
//! | `layout` | the bytes of a blob and its checks |
//! | `encoder`, `codes` | make and open blobs |
//! | `query` | a query cut into planes of bits |
//! | `scan` | the estimates of a block of entries |
//! | `fine` | a second, better estimate of one entry |
//! | `nearest` | the best of several blobs |
//! | `reach` | how many of these are worth comparing |

mod codes;
mod encoder;
mod error;
mod fine;
mod layout;
mod nearest;
mod query;
mod reach;
mod scan;

pub use codes::{Bytes, Codes};
pub use encoder::{Encoder, centre};
pub use error::Error;
pub use layout::FORMAT_VERSION;
pub use nearest::{Candidate, GoesOn, Nearest, nearest};
pub use reach::reach;
