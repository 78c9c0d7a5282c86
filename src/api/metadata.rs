//! Metadata: checking rules, trying them out, applying changed ones.

use super::{call, call_even_unloaded, options_of, required};
use crate::collection::name;
use crate::document::store::check_size;
use crate::error::{Error, Result};
use crate::ingest::extract;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, elevation, interrupts, principal};
use crate::rights;
use crate::search::scope::Scope;
use crate::storage::{collection, document, metadata};
use crate::workers;
use pgrx::JsonB;
use pgrx::prelude::*;
use rag_core::metadata::extract::Subject;
use rag_core::metadata::rule::{Rule, RuleDefinition};
use rag_core::option::OptionReader;
use serde_json::Value;
use std::rc::Rc;

/// Most rules that can be tried out in one call.
const MAX_TRIED_RULES: usize = 200;

#[pg_extern(sql = false)]
fn check_metadata_rule(rule: GivenJsonb) -> std::result::Result<(), ErrorReport> {
    call_even_unloaded(|| {
        Rule::compile(&definition(rule.0)?)?;
        Ok(())
    })
}

#[pg_extern(sql = false)]
fn rag_extract_metadata(
    content: Option<&str>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    options: Option<GivenJsonb>,
) -> std::result::Result<JsonB, ErrorReport> {
    call(|| {
        let text = required(content, "content")?;
        check_size(text.len())?;
        let collection = required(collection, "collection")?;
        let options = options_of(options)?;
        let mut reader = OptionReader::new(&options, "rag_extract_metadata")?;
        let rules = match reader.value("rules") {
            Some(rules) => tried_rules(rules)?,
            None => rules_of(collection)?,
        };
        reader.finish()?;
        interrupts::check();
        let found = extract::extract(&rules, &Subject { text, title, uri, file_metadata: None });
        Ok(JsonB(Value::Object(found)))
    })
}

/// Rules that are given in the call; each must make sense.
fn tried_rules(rules: &Value) -> Result<Rc<[RuleDefinition]>> {
    let Value::Array(rules) = rules else {
        return Err(Error::invalid("option \"rules\" of rag_extract_metadata must be an array of objects")
            .hint("For example [{\"key\": \"order\", \"pattern\": \"Order (\\\\d+)\"}]."));
    };
    if rules.len() > MAX_TRIED_RULES {
        return Err(Error::limit(format!("{} rules, more than {MAX_TRIED_RULES}", rules.len())));
    }
    let rules = rules.iter().cloned().map(definition).collect::<Result<Rc<[_]>>>()?;
    rules.iter().try_for_each(|rule| Rule::compile(rule).map(drop))?;
    Ok(rules)
}

fn definition(mut rule: Value) -> Result<RuleDefinition> {
    // jsonb_build_object writes what is not given as null.
    if let Value::Object(fields) = &mut rule {
        fields.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(rule).map_err(|error| {
        Error::invalid("a metadata rule is not of the form that is wanted").detail(error.to_string()).hint(
            "Its fields are name, key, kind, source, pattern, value, words, minimum, type and multiple, as in rag.metadata_rule.",
        )
    })
}

fn rules_of(collection: &str) -> Result<Rc<[RuleDefinition]>> {
    let (owner, bare) = name::split_name(collection)?;
    let candidates = collection::named(bare, owner)?;
    match name::choose(&candidates, owner, collection)? {
        Some(found) => metadata::visible_rules(&found.owner, &found.name),
        None if bare == name::DEFAULT_COLLECTION && owner.is_none() => {
            metadata::visible_rules(&principal::current_owner()?, bare)
        }
        None => Err(name::missing_among(&candidates, collection)),
    }
}

#[pg_extern(sql = false)]
fn rag_reextract(collection: Option<&str>) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let scope = Scope::resolve(collection)?;
        let writable = rights::writable(&scope.ids())?;
        // Where policies were added, of the documents that they show.
        let shown =
            || writable.iter().map(|domain| document::visible_of_domain(*domain)).collect::<Result<Vec<_>>>();
        let some = rights::may_hide_rows().then(shown).transpose()?.map(|of_each| of_each.concat());
        let queued = elevation::elevated(|| metadata::queue_extraction(&writable, some.as_deref()))?;
        if queued > 0 {
            workers::wake_at_commit();
        }
        Ok(queued)
    })
}
