//! Writing what is processed, as far as nothing has changed and nobody is in the way.

use crate::error::Result;
use crate::ingest::process::{self, ProcessedDocument};
use crate::pg::worker;
use crate::storage::collection::Collection;
use crate::storage::job::{self, Claim};
use crate::storage::{Id, model_change};

/// Documents that were not written.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// They changed meanwhile, or their claim is gone.
    pub(super) stale: Vec<Id>,
    /// Somebody else holds them, their job or their collection.
    pub(super) busy: Vec<Id>,
}

/// Writes documents of one domain, as far as nothing has changed and nobody is in the way.
pub(super) fn write(collection: &Collection, batch: &[(Claim, ProcessedDocument)]) -> Result<Left> {
    let Some(domain) = batch.first().map(|(claim, _)| claim.domain) else { return Ok(Left::default()) };
    let documents: Vec<Id> = batch.iter().map(|(claim, _)| claim.document).collect();
    worker::transaction(|| {
        let mut left = Left::default();
        let held = job::hold(domain, &documents)?;
        for (claim, _) in batch.iter().filter(|(claim, _)| !held.contains(&claim.document)) {
            let is_wanted = job::is_held(claim)?;
            if is_wanted { &mut left.busy } else { &mut left.stale }.push(claim.document);
        }
        if !model_change::try_lock_model(collection.id)? {
            left.busy.extend(held);
            return Ok(left);
        }
        let processed: Vec<&ProcessedDocument> =
            batch.iter().filter(|(claim, _)| held.contains(&claim.document)).map(|(_, p)| p).collect();
        let written = process::write(domain, collection, &processed)?;
        left.stale.extend(written.stale);
        left.busy.extend(written.busy);
        Ok(left)
    })
}
