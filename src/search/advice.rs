//! What a caller who finds less than they expect may want to know. It is about what they see, and for superusers about what
//! they would see.

use super::diagnostics::{Stages, Watch};
use super::scope::Scope;
use crate::config;
use crate::engine;
use crate::error::Result;
use crate::pg::server;
use crate::storage::{collection, metadata};
use rag_core::filter::Filter;
use rag_core::metadata::language::foreign_language;

const KEYS_HINT: &str = "The column key of rag.metadata_value has the keys that there are.";
const OTHERS_HINT: &str =
    "Superusers search their own documents, too. SET rag_ext.all_domains = on searches everybody's.";

/// Ends the stage of a filter that let nothing through.
pub(super) fn filter_found_nothing(
    scope: &Scope,
    filter: &Filter,
    stages: &mut Stages,
    watch: Watch,
) -> Result<()> {
    let keys = filter.keys().into_iter().map(str::to_owned).collect();
    let missing = metadata::missing_keys(&scope.ids(), keys)?;
    if missing.is_empty() {
        stages.done(watch, 0, 0);
    } else {
        let keys: Vec<String> = missing.iter().map(|key| format!("\"{key}\"")).collect();
        stages.stopped(watch, &format!("no document has a value of {}", keys.join(", ")), KEYS_HINT);
    }
    Ok(())
}

/// Tells a superuser who has nothing to search that others have.
pub(super) fn nothing_to_search(scope: &Scope, stages: &mut Stages) -> Result<()> {
    let is_held_back = server::user_is_superuser() && !config::all_domains();
    if is_held_back && collection::any_domain_but(&scope.ids())? {
        let watch = stages.start("scope");
        stages.stopped(watch, "nothing that was found is yours, and others have documents here", OTHERS_HINT);
    }
    Ok(())
}

/// A query in a language that models of the scope were not made for.
pub(super) struct UnknownLanguage {
    /// What to say of it.
    pub(super) warning: String,
    /// Whether none of the models was made for it.
    pub(super) is_of_all: bool,
}

/// Whether a query is in such a language, as far as that can be told.
pub(super) fn unknown_language(scope: &Scope, query: &str) -> Option<UnknownLanguage> {
    let models = scope.by_model();
    let foreign: Vec<(&str, &str)> = models
        .iter()
        .filter_map(|(model, _)| Some((*model, foreign_language(query, &engine::languages_of(model))?)))
        .collect();
    let (model, language) = foreign.first()?;
    let warning = format!(
        "the query seems to be in a language ({language}) that the model \"{model}\" does not know: its vectors say little"
    );
    Some(UnknownLanguage { warning, is_of_all: foreign.len() == models.len() })
}

/// Whether no collection of the scope is in a language that its model was made for.
pub(super) fn are_collections_foreign(scope: &Scope) -> bool {
    scope.languages_by_model().all(|(model, language)| engine::is_foreign(model, language))
}
