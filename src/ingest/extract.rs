//! Metadata of a document: by the rules of its collection, when it is processed and when rules have changed.

use crate::error::Result;
use crate::pg::interrupts;
use crate::storage::document::StoredDocument;
use crate::storage::{Id, acronym, metadata};
use rag_core::acronym::{Acronym, mine};
use rag_core::document::ParsedDocument;
use rag_core::metadata::extract::{RuleSet, Subject, file_metadata};
use rag_core::metadata::rule::RuleDefinition;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long the rules may take for one document: others wait behind it.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// The rules last used: a worker's documents mostly come from one collection after another.
    static COMPILED: RefCell<(Rc<[RuleDefinition]>, Rc<RuleSet>)> = RefCell::default();
}

/// What is known about a document without anybody saying so. Ends with the error of an interrupt.
pub(crate) fn extract(rules: &Rc<[RuleDefinition]>, subject: &Subject<'_>) -> Map<String, Value> {
    let until = Instant::now() + PATIENCE;
    compiled(rules).extract(subject, &mut || {
        interrupts::check();
        Instant::now() < until
    })
}

fn compiled(rules: &Rc<[RuleDefinition]>) -> Rc<RuleSet> {
    COMPILED.with_borrow_mut(|(known, set)| {
        if known != rules {
            // A rule that was refused cannot be stored, so what does not compile here is of an older version.
            *set = Rc::new(RuleSet::compile(rules).0);
            *known = Rc::clone(rules);
        }
        Rc::clone(set)
    })
}

/// What a file says about itself, and what was found out.
pub(crate) struct FoundMetadata {
    pub(crate) file: Value,
    pub(crate) extracted: Map<String, Value>,
    pub(crate) acronyms: Vec<Acronym>,
}

impl FoundMetadata {
    /// That of a parsed document.
    pub(crate) fn of(document: &StoredDocument, parsed: &ParsedDocument) -> Self {
        let file = file_metadata(&parsed.metadata_json);
        let subject = Subject {
            text: &parsed.text,
            title: document.title.as_deref().or(parsed.title.as_deref()),
            uri: document.uri.as_deref(),
            file_metadata: Some(&file),
        };
        let extracted = extract(&document.rules, &subject);
        Self { file, extracted, acronyms: mine(&parsed.text) }
    }
}

/// What became of a claimed job that may ask for extraction alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extraction {
    /// The job asks for more than that.
    NotAsked,
    /// The document has its metadata, and the job is done.
    Done,
    /// Somebody is changing the document right now.
    Locked,
}

/// Extracts the metadata of a processed document anew, if its job asks for no more. Elevated.
pub(crate) fn extract_again(domain: Id, document: Id, version: i64) -> Result<Extraction> {
    let Some(found) = metadata::lock_for_extraction(domain, document, version)? else {
        return Ok(Extraction::NotAsked);
    };
    let Some(found) = found else { return Ok(Extraction::Locked) };
    let rules = metadata::rules_of_domain(domain)?;
    let subject = Subject {
        text: &found.text,
        title: found.title.as_deref(),
        uri: found.uri.as_deref(),
        file_metadata: Some(&found.file),
    };
    metadata::store(domain, document, extract(&rules, &subject))?;
    acronym::replace(domain, &[(document, &mine(&found.text))])?;
    metadata::finish_extraction(domain, document, version)?;
    Ok(Extraction::Done)
}
