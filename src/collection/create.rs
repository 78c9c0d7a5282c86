//! Making a collection.

use super::name::{DEFAULT_COLLECTION, checked_name};
use crate::config;
use crate::engine;
use crate::error::{Error, Result, excerpt};
use crate::pg::{ErrorReport, elevation, principal, random};
use crate::storage::Id;
use crate::storage::collection::{self, Collection};
use pgrx::{PgLogLevel, PgSqlErrorCode};
use rag_core::collection::CollectionOptions;
use rag_wire::ModelKind;

/// Makes a collection of the caller's, with the domain of its owner, and returns its id.
///
/// 42710: it exists. 42704: no such model. 22023: bad name, language or option.
pub(crate) fn create(
    name: &str,
    model: Option<&str>,
    language: &str,
    shared: bool,
    options: serde_json::Value,
) -> Result<Id> {
    let name = checked_name(name)?;
    check_language(language)?;
    CollectionOptions::from_json(&options)?;
    check_model(model)?;
    warn_of_foreign(model, language);
    let owner = principal::current_owner()?;
    let new = new_collection(name, &owner, model, language, shared, options)?;
    let collection_id = (name != DEFAULT_COLLECTION).then(|| new.id.to_be_bytes());
    let domain = Id::from_be_bytes(principal::derived_domain(collection_id, &owner));
    elevation::elevated(|| match collection::create(&new)? {
        Some(created) => {
            collection::ensure_domain(domain, created, &owner)?;
            Ok(created)
        }
        None => Err(Error::new(
            PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
            format!("collection \"{}\" already exists", excerpt(name)),
        )),
    })
}

/// A collection that is not stored yet.
pub(crate) fn new_collection(
    name: &str,
    owner: &str,
    model: Option<&str>,
    language: &str,
    shared: bool,
    options: serde_json::Value,
) -> Result<Collection> {
    Ok(Collection {
        id: Id::from_be_bytes(random::new_id()?),
        name: name.to_owned(),
        owner: owner.to_owned(),
        model: model.map_or_else(config::embedding_model, str::to_owned),
        language: language.to_owned(),
        shared,
        options,
        is_own: true,
        is_accepted: false,
        is_writable: true,
        next_model: None,
    })
}

/// 22023 for a language that the keyword analyser does not have.
pub(crate) fn check_language(language: &str) -> Result<()> {
    if rag_bm25::Language::from_name(language).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = rag_bm25::Language::all().iter().map(|l| l.name()).collect();
    Err(Error::invalid(format!("unknown language \"{}\"", excerpt(language))).hint(format!(
        "Known languages: {}. simple takes words of any language as they are written.",
        known.join(", ")
    )))
}

/// Says so where a model was not made for a language: as far as the model says what it was made for.
pub(crate) fn warn_of_foreign(model: Option<&str>, language: &str) {
    let model = model.map_or_else(config::embedding_model, str::to_owned);
    if engine::is_foreign(&model, language) {
        let warning = Error::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!(
                "rag_ext: model \"{}\" does not know the collection's language, {}",
                excerpt(&model),
                excerpt(language)
            ),
        )
        .detail("Its vectors say little, so hybrid searches rely on words.")
        .hint("The column languages of rag.model tells which model knows it.");
        ErrorReport::from(warning).report(PgLogLevel::WARNING);
    }
}

/// 42704 for a model that the engine does not have. While the engine is down any name is taken: documents then
/// wait for it.
pub(crate) fn check_model(model: Option<&str>) -> Result<()> {
    let wanted = model.map_or_else(config::embedding_model, str::to_owned);
    let Ok(models) = engine::models() else { return Ok(()) };
    let hint = "SELECT name FROM rag.model WHERE kind = 'embedding' lists the models.";
    match models.iter().find(|m| m.name == wanted) {
        Some(found) if found.kind == ModelKind::Embedding => Ok(()),
        Some(_) => {
            Err(Error::invalid(format!("model \"{}\" is not an embedding model", excerpt(&wanted)))
                .hint(hint))
        }
        None => Err(Error::missing(format!("model \"{}\" does not exist", excerpt(&wanted))).hint(hint)),
    }
}
