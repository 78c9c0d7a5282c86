//! L3: existing tables as collections. Attaching, noting changes, following them in the background, and who sees
//! which row.
//!
//! A trigger notes the keys of changed rows; a worker reads these rows as the table's owner and writes documents,
//! which the ordinary workers parse and embed. Whether a caller sees a document is asked of the table itself.

mod candidates;
mod capture;
mod define;
mod follow;
mod refuse;
mod turn;
mod visible;

pub(crate) use capture::note_statement;
pub(crate) use define::{AttachRequest, attach, detach};
pub(crate) use turn::{clean_up, fail, step, take_lost};
pub(crate) use visible::{
    Access, Named, SeenRows, Visibility, access, candidates, is_domain_readable, is_source_readable,
    readable_source,
};

use crate::pg::Oid;
use crate::pg::{principal, transaction};

/// The table that column numbers and row versions are of: another cluster's or database's differ.
fn origin(source: Oid) -> String {
    format!("{}/{}/{}", principal::system_identifier(), transaction::database(), source.to_u32())
}
