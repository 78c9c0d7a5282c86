//! What the caller has said of chunks moves these up or down, for the same query and for similar ones.
//!
//! Only the caller's own word counts, also in collections of others: nobody's order tells what others have said.

use super::diagnostics::Stages;
use super::scope::Scope;
use super::{SearchRequest, scored};
use crate::error::Result;
use crate::storage::{Id, feedback};
use rag_core::feedback::{Said, pushed, pushes};
use rag_core::fuse::Ranked;
use std::collections::HashMap;

/// Whether feedback counts for anything in this search.
pub(super) fn is_wanted(scope: &Scope, request: &SearchRequest<'_>) -> bool {
    !scope.feedback_boosts(request.options.feedback_boost).is_empty()
}

/// Puts the hits in the order that the caller's feedback makes of theirs, as a stage: scores are scaled to at most 1, and
/// what was said of a chunk, between -1 and 1, is added as far as it counts in its collection. Where it cannot be read,
/// the hits stay as they are.
pub(super) fn boost(
    scope: &Scope,
    request: &SearchRequest<'_>,
    order: &mut Vec<Ranked>,
    stages: &mut Stages,
) -> Result<()> {
    let boosts = scope.feedback_boosts(request.options.feedback_boost);
    let domains: Vec<Id> = boosts.keys().copied().collect();
    let chunks: Vec<Id> = order.iter().map(|hit| hit.id).collect();
    let look = |_| feedback::said_of(&domains, &chunks, request.query);
    let Some((watch, said)) = stages.attempt("feedback_boost", "order without feedback", look)? else {
        return Ok(());
    };
    let (domain_of, said): (HashMap<Id, Id>, Vec<Said>) =
        said.into_iter().map(|(domain, said)| ((said.chunk, domain), said)).unzip();
    let pushes = pushes(request.query, &said);
    let boost_of = |chunk: Id| domain_of.get(&chunk).and_then(|domain| boosts.get(domain));
    let push = |chunk: Id| match (pushes.get(&chunk), boost_of(chunk)) {
        (Some(push), Some(boost)) => push * *boost as f32,
        _ => 0.0,
    };
    *order = pushed(order, push);
    stages.done(watch, order.len(), pushes.len());
    stages.ranked("feedback_boost", scored(order));
    Ok(())
}
