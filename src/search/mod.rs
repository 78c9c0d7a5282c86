//! L3: hybrid search. Scope, retrievers, fusion, rerank; every stage leaves a row of diagnostics.
//!
//! Everything is read under one snapshot and the caller's policies. A retriever that fails is reported, never
//! hidden; the result then comes from what is left.

mod advice;
pub(crate) mod diagnostics;
pub(crate) mod graph;
mod hop;
pub(crate) mod keyword;
pub(crate) mod options;
pub(crate) mod related;
pub(crate) mod rerank;
mod retriever;
pub(crate) mod scope;
mod segment_cache;
mod vector;
pub(crate) mod verify;
mod visible_segments;

pub(crate) use segment_cache::{remove_files_of_dropped_databases, remove_stale_files};

use crate::error::{Error, Result};
use crate::storage::chunk::{self, ShownChunk};
use crate::storage::{Id, document, metadata};
use diagnostics::{Stages, Watch};
use keyword::KeywordRetriever;
use options::{Fusion, Mode, SearchOptions};
use rag_core::filter::Filter;
use rag_core::fuse::{self, Ranked};
use rag_core::option::Choice;
use retriever::{Allowed, Retriever, retrieve};
use scope::Scope;
use std::collections::{HashMap, HashSet};
use vector::VectorRetriever;

/// What to search for, and where.
pub(crate) struct SearchRequest<'a> {
    pub(crate) query: &'a str,
    pub(crate) k: usize,
    pub(crate) mode: Mode,
    pub(crate) filter: Option<&'a Filter>,
    pub(crate) options: &'a SearchOptions,
}

/// A chunk that was found.
#[derive(Debug, Clone)]
pub(crate) struct SearchHit {
    pub(crate) chunk: ShownChunk,
    /// The fused score, or the rerank score where the hits were reranked.
    pub(crate) score: f64,
    /// Rank from 1 and BM25 score of the keyword retriever.
    pub(crate) keyword: Option<(usize, f64)>,
    /// Rank from 1 and cosine of the vector retriever.
    pub(crate) vector: Option<(usize, f64)>,
    /// From 0 to 1.
    pub(crate) rerank: Option<f64>,
}

/// What a search came to.
pub(crate) struct SearchOutcome {
    pub(crate) hits: Vec<SearchHit>,
    pub(crate) stages: Stages,
}

/// Why a query of stop words finds nothing, and what to do about it.
const NO_CONTENT: &str =
    "no word of the query tells what is looked for, only stop words of the documents' language";
const NO_CONTENT_HINT: &str = "A word in double quotes is looked for whatever it is.";

/// Searches the scope. A query without content finds nothing in any mode: its vector is near to everything.
pub(crate) fn search(scope: &Scope, request: &SearchRequest<'_>) -> Result<SearchOutcome> {
    let mut stages = Stages::default();
    let languages = scope.languages();
    if !languages.is_empty()
        && !has_content(request.query, languages.values().map(String::as_str), &mut stages)
    {
        return Ok(SearchOutcome { hits: Vec::new(), stages });
    }
    let allowed = match request.filter {
        None => None,
        Some(filter) => {
            let watch = stages.start("filter");
            let mut documents = metadata::matching_documents(&scope.ids(), filter)?;
            if scope.may_hide_rows() {
                documents = document::visible(&scope.ids(), &documents)?;
            }
            let chunks: HashSet<Id> =
                chunk::ids_of_documents(&scope.ids(), &documents)?.into_iter().collect();
            if documents.is_empty() {
                advice::filter_found_nothing(scope, filter, &mut stages, watch)?;
            } else {
                stages.done(watch, documents.len(), chunks.len());
            }
            Some(Allowed { documents, chunks })
        }
    };
    let uses_graph = graph::is_wanted(request);
    let is_short = request.mode == Mode::Keyword
        && !request.options.rerank
        && request.options.min_score.is_none()
        && !uses_graph
        && request.options.hops == 1;
    let mut outcome = if is_short {
        keyword_only(scope, request, allowed.as_ref(), stages)?
    } else {
        let mut ranked = rank(scope, request, allowed.as_ref(), &mut stages)?;
        if request.options.hops > 1 {
            hop::extend(scope, request, allowed.as_ref(), &mut ranked.order, &mut stages)?;
        }
        if uses_graph {
            graph::extend(scope, request, allowed.as_ref(), &mut ranked.order, &mut stages)?;
        }
        let hits = shown(scope, request, ranked)?;
        finish(request, hits, stages)?
    };
    if outcome.hits.is_empty() {
        advice::nothing_to_search(scope, &mut outcome.stages)?;
    }
    Ok(outcome)
}

/// Whether a query has content in one of these languages; if not, a stage says so, and a notice.
pub(crate) fn has_content<'a>(
    query: &str,
    languages: impl IntoIterator<Item = &'a str>,
    stages: &mut Stages,
) -> bool {
    let watch = stages.start("query");
    let has_content = keyword::has_content(query, languages);
    if !has_content {
        stages.stopped(watch, NO_CONTENT, NO_CONTENT_HINT);
    }
    has_content
}

/// The short way: the retriever's own order is the result, and showing the hits is also the check that they live.
fn keyword_only(
    scope: &Scope,
    request: &SearchRequest<'_>,
    allowed: Option<&Allowed>,
    mut stages: Stages,
) -> Result<SearchOutcome> {
    let watch = stages.start(KeywordRetriever::NAME);
    let mut retriever = KeywordRetriever::open(scope, request.query, allowed)?;
    let mut shown = HashMap::new();
    let hits = retrieve(&mut retriever, request.k, |unknown| {
        let found = chunk::show(&scope.ids(), unknown)?;
        let ids = found.keys().copied().collect();
        shown.extend(found);
        Ok(ids)
    })?;
    let hits: Vec<SearchHit> = hits
        .into_iter()
        .enumerate()
        .filter_map(|(i, hit)| {
            let chunk = shown.remove(&hit.id)?;
            let score = f64::from(hit.score);
            Some(SearchHit { chunk, score, keyword: Some((i + 1, score)), vector: None, rerank: None })
        })
        .collect();
    retrieved(&mut stages, watch, &retriever, hits.len());
    Ok(SearchOutcome { hits, stages })
}

/// Ends the stage of a retriever.
fn retrieved<R: Retriever>(stages: &mut Stages, watch: Watch, retriever: &R, found: usize) {
    match (retriever.damage(), retriever.method()) {
        (Some(damage), _) => stages.done_in_part(watch, retriever.ranked(), found, damage),
        (None, Some(method)) => stages.done_as(watch, retriever.ranked(), found, method),
        (None, None) => stages.done(watch, retriever.ranked(), found),
    }
}

/// Which errors of a retriever another one makes up for.
struct Substitute {
    makes_up_for: fn(&Error) -> bool,
    name: &'static str,
}

/// Has a retriever find the best `wanted`, as a stage. None where it failed in a way that another one makes up for.
fn ask<R: Retriever>(
    open: impl FnOnce() -> Result<R>,
    wanted: usize,
    visible: impl FnMut(&[Id]) -> Result<HashSet<Id>>,
    substitute: Option<Substitute>,
    stages: &mut Stages,
) -> Result<Option<(R, Vec<Ranked>)>> {
    let watch = stages.start(R::NAME);
    let found = open().and_then(|mut retriever| {
        let hits = retrieve(&mut retriever, wanted, visible)?;
        Ok((retriever, hits))
    });
    match (found, substitute) {
        (Ok((retriever, hits)), _) => {
            retrieved(stages, watch, &retriever, hits.len());
            Ok(Some((retriever, hits)))
        }
        (Err(error), Some(substitute)) if (substitute.makes_up_for)(&error) => {
            stages.fell_back(watch, substitute.name, &error);
            Ok(None)
        }
        (Err(error), _) => Err(error),
    }
}

/// Ranked ids of the retrievers, fused.
struct RankedHits {
    order: Vec<Ranked>,
    keyword: Vec<Ranked>,
    vector: Vec<Ranked>,
}

fn rank(
    scope: &Scope,
    request: &SearchRequest<'_>,
    allowed: Option<&Allowed>,
    stages: &mut Stages,
) -> Result<RankedHits> {
    let options = request.options;
    let wanted = options.candidates.max(request.k);
    let is_hybrid = request.mode == Mode::Hybrid;

    // None: not asked, or the other one has to do.
    let (mut keyword, mut visible) = (None, None);
    if request.mode != Mode::Vector {
        let open = || KeywordRetriever::open(scope, request.query, allowed);
        let substitute =
            is_hybrid.then_some(Substitute { makes_up_for: Error::is_damage, name: VectorRetriever::NAME });
        let found = ask(open, wanted, |unknown| scope.visible(unknown), substitute, stages)?;
        visible = Some(found.as_ref().map_or(0, |(retriever, _)| retriever.ranked()));
        keyword = found.map(|(_, hits)| hits);
    }
    let mut vector = None;
    if request.mode != Mode::Keyword {
        let mut seen: HashSet<Id> = keyword.iter().flatten().map(|hit: &Ranked| hit.id).collect();
        let look = |unknown: &[Id]| {
            let others: Vec<Id> = unknown.iter().copied().filter(|id| !seen.contains(id)).collect();
            if !others.is_empty() {
                seen.extend(scope.visible(&others)?);
            }
            Ok(unknown.iter().copied().filter(|id| seen.contains(id)).collect())
        };
        let open = || VectorRetriever::open(scope, request.query, allowed, visible);
        let substitute = is_hybrid.then_some(Substitute {
            makes_up_for: diagnostics::is_engine_trouble,
            name: KeywordRetriever::NAME,
        });
        vector = ask(open, wanted, look, substitute, stages)?.map(|(_, hits)| hits);
        if vector.is_some()
            && let Some(warning) = advice::unknown_language(scope, request.query)
        {
            stages.warn(warning);
        }
    }
    let order = match (&keyword, &vector) {
        (Some(keyword), Some(vector)) => {
            let watch = stages.start("fusion");
            let weight = options.keyword_weight as f32;
            let lists = [(keyword.as_slice(), weight), (vector.as_slice(), 1.0 - weight)];
            let fused = match options.fusion {
                Fusion::Weighted => fuse::weighted_min_max(&lists),
                Fusion::Rrf => fuse::rrf(&lists, options.rrf_k as f32),
            };
            stages.done_as(watch, keyword.len() + vector.len(), fused.len(), options.fusion.name());
            fused
        }
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => Vec::new(),
    };
    Ok(RankedHits { order, keyword: keyword.unwrap_or_default(), vector: vector.unwrap_or_default() })
}

/// The fused hits with what is shown of them, best first: those that may still become one of the `k`.
fn shown(scope: &Scope, request: &SearchRequest<'_>, ranked: RankedHits) -> Result<Vec<SearchHit>> {
    let needed = if request.options.rerank { request.options.rerank_limit.max(request.k) } else { request.k };
    let best: Vec<Ranked> = ranked
        .order
        .into_iter()
        .filter(|hit| request.options.min_score.is_none_or(|least| f64::from(hit.score) >= least))
        .take(needed)
        .collect();
    let ids: Vec<Id> = best.iter().map(|hit| hit.id).collect();
    let mut shown = chunk::show(&scope.ids(), &ids)?;
    let places = |list: &[Ranked]| -> HashMap<Id, (usize, f64)> {
        list.iter().enumerate().map(|(i, hit)| (hit.id, (i + 1, f64::from(hit.score)))).collect()
    };
    let (keyword, vector) = (places(&ranked.keyword), places(&ranked.vector));
    Ok(best
        .into_iter()
        .filter_map(|hit| {
            let chunk = shown.remove(&hit.id)?;
            Some(SearchHit {
                chunk,
                score: f64::from(hit.score),
                keyword: keyword.get(&hit.id).copied(),
                vector: vector.get(&hit.id).copied(),
                rerank: None,
            })
        })
        .collect())
}

fn finish(
    request: &SearchRequest<'_>,
    mut hits: Vec<SearchHit>,
    mut stages: Stages,
) -> Result<SearchOutcome> {
    if request.options.rerank && !hits.is_empty() {
        let watch = stages.start("rerank");
        match rerank::rerank_hits(request.query, &mut hits, request.options.rerank_limit) {
            Ok(pairs) => stages.done(watch, pairs, hits.len().min(request.k)),
            Err(error) if diagnostics::is_engine_trouble(&error) => {
                stages.fell_back(watch, "fused order", &error)
            }
            Err(error) => return Err(error),
        }
    }
    hits.truncate(request.k);
    Ok(SearchOutcome { hits, stages })
}
