//! Acronyms of a query, as the scope's collections and documents define them.
//!
//! Only what the caller sees counts: a mined acronym is seen with its document. Where an administrator's policies may hide
//! parts of documents, mined acronyms are left out, for the definition may stand in a hidden part.

use super::{PLAIN, Step, told};
use crate::error::Result;
use crate::rights;
use crate::search::diagnostics::Stages;
use crate::search::scope::Scope;
use crate::storage::{Id, acronym, is_attached};
use rag_core::acronym::{Acronym, Lookup, expand};

/// Most domains in which long forms are looked up: there are many of them in a query.
const MAX_DOMAINS: usize = 64;

/// Acronyms that the query names in one of their forms. Where none of its words may be one, that is told by a few looks at
/// indexes, and not by a statement; but for attached tables: of these somebody may see a part, and that others have some there
/// must not show.
pub(super) fn known(scope: &Scope, query: &str, step: Step, stages: &mut Stages) -> Result<Vec<Acronym>> {
    if step == Step::Off {
        return Ok(Vec::new());
    }
    let Some((watch, found)) = stages.attempt("acronyms", PLAIN, |_| look_up(scope, query, step))? else {
        return Ok(Vec::new());
    };
    let Some((looked_up, known)) = found else { return Ok(Vec::new()) };
    match expand(query, &known) {
        Some(expanded) => {
            let pairs: Vec<String> =
                expanded.added.iter().map(|(from, to)| format!("{from} = {to}")).collect();
            stages.done_as(watch, looked_up, pairs.len(), told("", pairs.iter().map(String::as_str)));
        }
        None => stages.done(watch, looked_up, 0),
    }
    Ok(known)
}

/// How many forms were looked up, and what is known of them. None where the scope has none of them.
fn look_up(scope: &Scope, query: &str, step: Step) -> Result<Option<(usize, Vec<Acronym>)>> {
    let collections = rights::with_acronyms(&scope.collections())?;
    let domains = if scope.may_hide_rows() { Vec::new() } else { scope.ids() };
    let (attached, whole): (Vec<Id>, Vec<Id>) = domains.iter().partition(|id| is_attached(**id));
    if collections.is_empty() && domains.is_empty() {
        return Ok(None);
    }
    let mut lookup = Lookup::of(query);
    if step == Step::Auto || domains.len() > MAX_DOMAINS {
        lookup.long_keys.clear();
    }
    let looked_up = lookup.short_keys.len() + lookup.long_keys.len();
    let mined = acronym::mined(&whole, &lookup);
    let is_none = mined.short_keys.is_empty() && mined.long_keys.is_empty();
    let known = match (is_none, collections.is_empty() && attached.is_empty()) {
        (true, true) => return Ok(None),
        (false, true) => acronym::look_up(&[], &whole, &mined)?,
        (true, false) => acronym::look_up(&collections, &attached, &lookup)?,
        (false, false) => acronym::look_up(&collections, &domains, &lookup)?,
    };
    Ok(Some((looked_up, known)))
}
