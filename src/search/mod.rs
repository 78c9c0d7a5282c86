//! L3: hybrid search. Scope, keyword arm, vector arm, fusion, rerank; every stage leaves a row of diagnostics.
//!
//! Everything is read under one snapshot and the caller's policies. An arm that fails is reported, never
//! hidden; the result then comes from what is left.

mod advice;
mod by_row;
pub(crate) mod diagnostics;
pub(crate) mod keyword;
pub(crate) mod options;
pub(crate) mod rerank;
pub(crate) mod scope;
mod segment_cache;
mod vector;
pub(crate) mod verify;

pub(crate) use segment_cache::{remove_files_of_dropped_databases, remove_stale_files};

use crate::error::Result;
use crate::storage::chunk::{self, ShownChunk};
use crate::storage::{Id, document, metadata};
use diagnostics::{Stages, Watch};
use keyword::OpenSegments;
use options::{Fusion, Mode, SearchOptions};
use rag_core::filter::Filter;
use rag_core::fuse::{self, Ranked};
use rag_core::option::Choice;
use scope::Scope;
use std::collections::{HashMap, HashSet};

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
    /// Rank from 1 and BM25 score in the keyword arm.
    pub(crate) keyword: Option<(usize, f64)>,
    /// Rank from 1 and cosine in the vector arm.
    pub(crate) vector: Option<(usize, f64)>,
    /// From 0 to 1.
    pub(crate) rerank: Option<f64>,
}

/// What a search came to.
pub(crate) struct SearchOutcome {
    pub(crate) hits: Vec<SearchHit>,
    pub(crate) stages: Stages,
}

/// Documents that a filter lets through, with their chunks.
struct Allowed {
    documents: Vec<Id>,
    chunks: HashSet<Id>,
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
    let is_short =
        request.mode == Mode::Keyword && !request.options.rerank && request.options.min_score.is_none();
    let mut outcome = if is_short {
        keyword_only(scope, request, allowed.as_ref(), stages)?
    } else {
        let ranked = arms(scope, request, allowed.as_ref(), &mut stages)?;
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

/// The short way: the arm's own order is the result, and showing the hits is also the check that they live.
fn keyword_only(
    scope: &Scope,
    request: &SearchRequest<'_>,
    allowed: Option<&Allowed>,
    mut stages: Stages,
) -> Result<SearchOutcome> {
    let watch = stages.start("keyword");
    let segments = keyword::segments(scope)?;
    let mut limit = request.k;
    let mut shown = HashMap::new();
    let hits = loop {
        let hits = keyword::search(&segments, request.query, limit, allowed.map(|a| &a.chunks))?;
        let unknown: Vec<Id> = hits.iter().map(|h| h.id).filter(|id| !shown.contains_key(id)).collect();
        shown.extend(chunk::show(&scope.ids(), &unknown)?);
        let exhausted = hits.len() < limit;
        let live: Vec<Ranked> =
            hits.into_iter().filter(|h| shown.contains_key(&h.id)).take(request.k).collect();
        if live.len() >= request.k || exhausted {
            break live;
        }
        limit *= 2;
    };
    let hits: Vec<SearchHit> = hits
        .into_iter()
        .enumerate()
        .filter_map(|(i, hit)| {
            let chunk = shown.remove(&hit.id)?;
            let score = f64::from(hit.score);
            Some(SearchHit { chunk, score, keyword: Some((i + 1, score)), vector: None, rerank: None })
        })
        .collect();
    keyword_done(&mut stages, watch, &segments, hits.len());
    Ok(SearchOutcome { hits, stages })
}

fn keyword_done(stages: &mut Stages, watch: Watch, segments: &OpenSegments, found: usize) {
    match segments.damage() {
        None => stages.done(watch, segments.entries(), found),
        Some(damage) => stages.done_in_part(watch, segments.entries(), found, damage),
    }
}

/// Ranked ids of both arms, fused.
struct RankedHits {
    order: Vec<Ranked>,
    keyword: Vec<Ranked>,
    vector: Vec<Ranked>,
}

fn arms(
    scope: &Scope,
    request: &SearchRequest<'_>,
    allowed: Option<&Allowed>,
    stages: &mut Stages,
) -> Result<RankedHits> {
    let options = request.options;
    let wanted = options.candidates.max(request.k);

    let mut keyword = Vec::new();
    let (mut visible, mut keyword_failed) = (0, false);
    if request.mode != Mode::Vector {
        let watch = stages.start("keyword");
        let found = keyword::segments(scope).and_then(|segments| {
            let chunks = allowed.map(|a| &a.chunks);
            Ok((keyword::search_live(scope, &segments, request.query, wanted, chunks)?, segments))
        });
        match found {
            Ok((hits, segments)) => {
                visible = segments.entries();
                keyword_done(stages, watch, &segments, hits.len());
                keyword = hits;
            }
            Err(error) if request.mode == Mode::Hybrid && error.is_damage() => {
                stages.fell_back(watch, "vector", &error);
                keyword_failed = true;
            }
            Err(error) => return Err(error),
        }
    }
    let mut vector = Vec::new();
    let mut vector_failed = false;
    if request.mode != Mode::Keyword {
        let watch = stages.start("vector");
        if request.mode == Mode::Vector {
            visible = match keyword::entries(scope) {
                // The count only chooses the way.
                Err(error) if error.is_damage() => 0,
                counted => counted?,
            };
        }
        let documents = allowed.map(|a| a.documents.as_slice());
        match vector_live(scope, request.query, wanted, visible, documents, &keyword) {
            Ok(found) => {
                stages.done_as(watch, visible, found.hits.len(), found.method);
                if let Some(warning) = advice::unknown_language(scope, request.query) {
                    stages.warn(warning);
                }
                vector = found.hits;
            }
            Err(error) if request.mode == Mode::Hybrid && diagnostics::is_engine_trouble(&error) => {
                stages.fell_back(watch, "keyword", &error);
                vector_failed = true;
            }
            Err(error) => return Err(error),
        }
    }
    let order = match request.mode {
        Mode::Keyword => keyword.clone(),
        Mode::Vector => vector.clone(),
        Mode::Hybrid if vector_failed => keyword.clone(),
        Mode::Hybrid if keyword_failed => vector.clone(),
        Mode::Hybrid => {
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
    };
    Ok(RankedHits { order, keyword, vector })
}

/// The nearest chunks that the caller sees. A vector may outlive its chunk, as one that was computed while the chunk was
/// deleted; of an attached table a row may be gone or changed, and hidden, whose embedding is still there; and policies
/// that an administrator adds may hide a document and not its embeddings. `seen` are known to be seen.
fn vector_live(
    scope: &Scope,
    query: &str,
    limit: usize,
    visible: usize,
    documents: Option<&[Id]>,
    seen: &[Ranked],
) -> Result<vector::Found> {
    let mut seen: HashSet<Id> = seen.iter().map(|hit| hit.id).collect();
    let mut asked = limit;
    loop {
        let mut found = vector::search(scope, query, asked, visible, documents)?;
        let exhausted = found.hits.len() < asked;
        let unknown: Vec<Id> = found.hits.iter().map(|hit| hit.id).filter(|id| !seen.contains(id)).collect();
        if !unknown.is_empty() {
            seen.extend(scope.visible(&unknown)?);
        }
        found.hits.retain(|hit| seen.contains(&hit.id));
        if found.hits.len() >= limit || exhausted {
            found.hits.truncate(limit);
            return Ok(found);
        }
        asked *= 2;
    }
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
