//! Prompts of collections, which nobody but superusers reads: no answer tells them.

use super::{Id, uuid};
use crate::error::{Error, Result};
use crate::pg::spi;
use pgrx::JsonB;
use rag_core::answer::prompt::PromptTemplate;

/// What the prompts of a collection say, or None: of those that have none of their own. Elevated.
pub(crate) fn set(collection: Option<Id>, template: &PromptTemplate) -> Result<()> {
    let template = serde_json::to_value(template).map_err(|e| Error::internal(e.to_string()))?;
    spi::run(
        "INSERT INTO rag.prompt AS p (collection_id, template) VALUES ($1, $2)
         ON CONFLICT (collection_id) DO UPDATE SET template = excluded.template",
        vec![collection.map(uuid).into(), JsonB(template).into()],
    )
}

/// Takes it back. Elevated.
pub(crate) fn remove(collection: Option<Id>) -> Result<()> {
    spi::run(
        "DELETE FROM rag.prompt WHERE collection_id IS NOT DISTINCT FROM $1",
        vec![collection.map(uuid).into()],
    )
}

/// What the prompts say for questions about a collection, or None: about several. Elevated.
pub(crate) fn of(collection: Option<Id>) -> Result<PromptTemplate> {
    let stored = spi::read_snapshot_one(
        "SELECT p.template FROM rag.prompt p WHERE p.collection_id = $1 OR p.collection_id IS NULL
         ORDER BY p.collection_id IS NULL LIMIT 1",
        vec![collection.map(uuid).into()],
        |row| row.require::<JsonB>(1),
    )?;
    let Some(JsonB(stored)) = stored else { return Ok(PromptTemplate::default()) };
    serde_json::from_value(stored)
        .map_err(|e| Error::damaged(format!("a row of rag.prompt is no template: {e}")))
}
