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
use serde_json::Value;
use std::ffi::CStr;

/// How long a change of options waits for each of those who write to the collection.
const LOCK_TIMEOUT: &CStr = c"5s";

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
            let set = || set_options(chosen.id, name, &given);
            elevation::elevated(|| elevation::with_settings(&[(c"lock_timeout", LOCK_TIMEOUT)], set)).map_err(
                |error| match error.is_about_a_lock() {
                    true => error.hint(
                        "Somebody writes to the collection in a transaction that is still open: try again when it has ended.",
                    ),
                    false => error,
                },
            )?;
        }
        workers::wake_at_commit();
        Ok(())
    })
}

/// Changes options, with the documents that this is about, and waits for nobody longer than `lock_timeout`. Who writes a document at
/// once holds its job, and then waits for the collection.
fn set_options(collection: Id, name: &str, given: &Value) -> Result<()> {
    // As they are now, or one of two sessions would take back what the other has set.
    let former = collection::lock_options(collection)?.ok_or_else(|| missing(name))?;
    let (options, cuts) = altered(&former, given);
    let wanted = CollectionOptions::from_json(&options)?;
    collection::set_options(collection, &options)?;
    match wanted.graph {
        Extraction::Rules => graph_job::forget_collection(collection)?,
        Extraction::Chat => graph_job::retry_collection(collection).map(drop)?,
    }
    if cuts { job::process_anew(collection) } else { Ok(()) }
}
