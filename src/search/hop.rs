//! The second hop: a further search from what the first one found, for answers that stand where the question's own words
//! do not.

use super::allowed::Allowed;
use super::diagnostics::Stages;
use super::graph::{merged, next_entity};
use super::options::NextHop;
use super::preprocess::{RunQuery, next_question};
use super::scope::Scope;
use super::{SearchRequest, rank, scored};
use crate::error::Result;
use rag_core::fuse::Ranked;

/// Searches again, and merges what is found into the order of the hits: for what the chat model asks next, or for the query
/// with the entity that the best hits are most about and that it does not name. One stage, before it those of the further
/// search.
pub(super) fn extend(
    scope: &Scope,
    request: &SearchRequest<'_>,
    wanted: usize,
    allowed: Option<&Allowed<'_>>,
    order: &mut Vec<Ranked>,
    stages: &mut Stages,
) -> Result<()> {
    let question = match request.options.next_hop {
        NextHop::Entities => None,
        NextHop::Chat => next_question(scope, request, order, stages)?,
    };
    let method = if question.is_some() { "chat" } else { "entity" };
    let mut further = stages.aside();
    let search = |_| {
        let query = match question {
            Some(question) => question,
            None => match next_entity(scope, request.query, order)? {
                Some(entity) => format!("{} {entity}", request.query),
                None => return Ok(None),
            },
        };
        let (request, query) = (&SearchRequest { query: &query, ..*request }, RunQuery::plain(&query));
        let found = rank(scope, request, &query, wanted, allowed, &mut further)?;
        Ok(Some((found.order, further)))
    };
    let Some((watch, searched)) = stages.attempt("hop", "hits of the first search", search)? else {
        return Ok(());
    };
    let given = order.len();
    match searched {
        Some((found, further)) => {
            stages.extend(further);
            *order = merged(order, &found);
            stages.done_as(watch, given, order.len(), method);
            stages.ranked("hop", scored(order));
        }
        None => stages.done_as(watch, given, given, "none"),
    }
    Ok(())
}
