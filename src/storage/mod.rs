//! L1: the only folder of `src/` with SQL text; one file per noun.
//!
//! Reading functions run with the caller's rights under the active snapshot. Writing functions are called
//! within `pg::elevation::elevated`, or by a background worker, and name the domains that they touch.

pub(crate) mod acronym;
pub(crate) mod added_policy;
mod among;
pub(crate) mod answer_log;
pub(crate) mod attached_row;
pub(crate) mod attached_run;
pub(crate) mod attachment;
pub(crate) mod blob;
mod by_domain;
pub(crate) mod chunk;
mod claim;
pub(crate) mod collection;
mod definition;
pub(crate) mod document;
pub(crate) mod dropped;
pub(crate) mod embedding;
pub(crate) mod feedback;
pub(crate) mod gateway;
pub(crate) mod graph;
pub(crate) mod graph_job;
pub(crate) mod growth;
mod id_map;
pub(crate) mod installed;
pub(crate) mod job;
pub(crate) mod judgement;
pub(crate) mod metadata;
pub(crate) mod model_change;
pub(crate) mod note;
pub(crate) mod prompt_template;
pub(crate) mod query_log;
pub(crate) mod relation;
pub(crate) mod replacement;
pub(crate) mod restore;
pub(crate) mod segment;
pub(crate) mod source;
pub(crate) mod steering;
pub(crate) mod vector_codes;
pub(crate) mod verify;

pub(crate) use by_domain::ByDomain;
pub(crate) use id_map::IdMap;

use crate::pg::UuidArray;
use pgrx::Uuid;

/// An id as a number, for sets and sorting: the order is that of Postgres' `uuid`.
pub(crate) type Id = u128;

/// The smallest id of attached collections and their domains, as the policies in `sql/` have it.
pub(crate) const FIRST_ATTACHED: Id = 0xffff_ffff_ffff_8000_8000_0000_0000_0000;

/// Whether a collection or domain stands for an attached table.
pub(crate) fn is_attached(id: Id) -> bool {
    id >= FIRST_ATTACHED
}

/// An id for SQL.
pub(crate) fn uuid(id: Id) -> Uuid {
    Uuid::from_bytes(id.to_be_bytes())
}

/// Ids for SQL.
pub(crate) fn uuids(ids: impl IntoIterator<Item = Id>) -> UuidArray {
    ids.into_iter().map(Id::to_be_bytes).collect()
}

/// An id from SQL.
pub(crate) fn id(uuid: Uuid) -> Id {
    Id::from_be_bytes(*uuid.as_bytes())
}

/// An id as Postgres writes it.
pub(crate) fn text_of_id(id: Id) -> String {
    uuid(id).to_string()
}

/// An id that was written by [`text_of_id`].
pub(crate) fn id_of_text(text: &str) -> Option<Id> {
    let id = Id::from_str_radix(&text.replace('-', ""), 16).ok()?;
    (text_of_id(id) == text).then_some(id)
}

/// Whether a subscription writes the extension's tables: then jobs and what comes of them are another server's, and
/// whoever worked on them here would be in the way of what comes from there.
pub(crate) fn is_replicated() -> crate::error::Result<bool> {
    let found = crate::pg::spi::read_snapshot_one(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_subscription_rel r JOIN pg_catalog.pg_class c ON c.oid = r.srrelid
                        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                        WHERE n.nspname = 'rag')",
        vec![],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}
