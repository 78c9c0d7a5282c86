//! The second hop: a further search from what the first one found, for answers that stand where the question's own words
//! do not.

use super::diagnostics::Stages;
use super::graph::{is_the_callers, merged, next_entity};
use super::preprocess::RunQuery;
use super::retriever::Allowed;
use super::scope::Scope;
use super::{SearchRequest, rank, scored};
use crate::error::Result;
use crate::pg::transaction;
use rag_core::fuse::Ranked;

/// Searches again for the query with the entity that the best hits are most about and that it does not name, and merges
/// what is found into the order of the hits. One stage, before it those of the further search.
pub(super) fn extend(
    scope: &Scope,
    request: &SearchRequest<'_>,
    wanted: usize,
    allowed: Option<&Allowed>,
    order: &mut Vec<Ranked>,
    stages: &mut Stages,
) -> Result<()> {
    let watch = stages.start("hop");
    let searched = transaction::attempt(|| {
        let Some(entity) = next_entity(scope, request.query, order)? else { return Ok(None) };
        let query = format!("{} {entity}", request.query);
        let mut further = stages.round();
        let (request, query) = (&SearchRequest { query: &query, ..*request }, RunQuery::plain(&query));
        let found = rank(scope, request, &query, wanted, allowed, &mut further)?;
        Ok(Some((found.order, further)))
    });
    match searched {
        Ok(Some((found, further))) => {
            stages.extend(further);
            let given = order.len();
            *order = merged(order, &found);
            stages.done_as(watch, given, order.len(), "entity");
            stages.ranked("hop", scored(order));
        }
        Ok(None) => stages.done_as(watch, order.len(), order.len(), "none"),
        Err(error) if is_the_callers(&error) => return Err(error),
        Err(error) => stages.fell_back(watch, "hits of the first search", &error),
    }
    Ok(())
}
