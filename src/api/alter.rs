//! Changing a collection that has documents.

use super::{call, options_of, required};
use crate::collection::create::{check_model, warn_of_foreign};
use crate::collection::name::{candidates, missing};
use crate::collection::rights::own_collection;
use crate::error::Result;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, elevation};
use crate::storage::{Id, collection, graph_job, job, model_change};
use crate::workers;
use pgrx::prelude::*;
use rag_core::collection::{CollectionOptions, altered};
use rag_core::graph::Extraction;

#[pg_extern(sql = false)]
fn rag_alter_collection(
    collection: Option<&str>,
    model: Option<&str>,
    options: Option<GivenJsonb>,
) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let name = required(collection, "collection")?;
        let visible = candidates(name)?;
        let chosen = own_collection(&visible, name)?;
        if let Some(model) = model {
            check_model(Some(model))?;
            warn_of_foreign(Some(model), &chosen.language);
            elevation::elevated(|| match model == chosen.model {
                true => model_change::withdraw(chosen.id),
                false => model_change::request(chosen.id, model),
            })?;
        }
        if options.is_some() {
            let given = options_of(options)?;
            elevation::elevated(|| -> Result<()> {
                // As they are now, or one of two sessions would take back what the other has set.
                let former = collection::lock_options(chosen.id)?.ok_or_else(|| missing(name))?;
                let (options, cuts) = altered(&former, &given);
                let wanted = CollectionOptions::from_json(&options)?;
                collection::set_options(chosen.id, &options)?;
                match wanted.graph {
                    Extraction::Rules => graph_job::forget_collection(chosen.id)?,
                    Extraction::Chat => graph_job::retry_collection(chosen.id).map(drop)?,
                }
                if cuts { cut_anew(chosen.id) } else { Ok(()) }
            })?;
        }
        workers::wake_at_commit();
        Ok(())
    })
}

/// Has all documents of a collection cut by its new options. Most of them while others write on, for who holds a document may
/// wait for its collection; then, with all who write waiting, those that others have written by the former options meanwhile.
fn cut_anew(collection: Id) -> Result<()> {
    job::process_anew(collection)?;
    collection::lock_against_writers(collection)?;
    job::process_anew(collection)
}
