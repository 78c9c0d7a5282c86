//! L3: hybrid search. Scope, retrievers, fusion, rerank; every stage leaves a row of diagnostics.
//!
//! Everything is read under one snapshot and the caller's policies. A retriever that fails is reported, never
//! hidden; the result then comes from what is left.

pub(crate) mod advice;
mod allowed;
mod blob_cache;
mod bundle;
mod coded;
pub(crate) mod context;
pub(crate) mod diagnostics;
pub(crate) mod evaluate;
pub(crate) mod explain;
mod feedback;
mod fusion;
pub(crate) mod graph;
mod hop;
pub(crate) mod keyword;
pub(crate) mod log;
pub(crate) mod options;
pub(crate) mod preprocess;
pub(crate) mod related;
pub(crate) mod rerank;
mod retriever;
pub(crate) mod scope;
mod shared_file;
mod show;
mod time_budget;
pub(crate) mod trail;
mod vector;
pub(crate) mod verify;
mod visible_segments;

pub(crate) use blob_cache::open_latest;
pub(crate) use shared_file::{remove_files_of_dropped_databases, remove_stale_files};

use crate::error::{Error, Result};
use crate::storage::Id;
use crate::storage::chunk::{self, ShownChunk};
use allowed::{Allowed, Look};
use diagnostics::{Stages, Watch};
use keyword::KeywordRetriever;
use options::{Mode, SearchOptions};
use preprocess::{Queries, RunQuery};
use rag_core::filter::Filter;
use rag_core::fuse::Ranked;
use retriever::{Retriever, retrieve};
use scope::Scope;
use serde_json::json;
use show::{Sieve, show};
use std::collections::HashMap;
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
    /// What the keyword retriever looked for, where that is more than the query says.
    pub(crate) words: Option<String>,
}

/// Why a query of stop words finds nothing, and what to do about it.
const NO_CONTENT: &str =
    "no word of the query tells what is looked for, only stop words of the documents' language";
const NO_CONTENT_HINT: &str = "A word in double quotes is looked for whatever it is.";

/// Searches the scope. A query without content finds nothing in any mode: its vector is near to everything.
pub(crate) fn search(scope: &Scope, request: &SearchRequest<'_>) -> Result<SearchOutcome> {
    search_noting(scope, request, Stages::default())
}

/// As [`search`], with notes in `stages`, which may keep what becomes of each candidate.
fn search_noting(scope: &Scope, request: &SearchRequest<'_>, mut stages: Stages) -> Result<SearchOutcome> {
    let languages = scope.languages();
    if !languages.is_empty() && !has_content(request.query, languages.iter().copied(), &mut stages) {
        return Ok(SearchOutcome { hits: Vec::new(), stages, words: None });
    }
    let allowed = match request.filter {
        None => None,
        Some(filter) => {
            let watch = stages.start("filter");
            let sizes = visible_segments::count_by_domain(scope)?;
            let allowed = Allowed::open(scope, filter, &sizes, wanted_at_first(request))?;
            match allowed.listed() {
                Some(listed) if listed.documents.is_empty() => {
                    advice::filter_found_nothing(scope, filter, &mut stages, watch)?;
                }
                Some(listed) => stages.done(watch, listed.documents.len(), listed.chunks.len()),
                None => stages.done_as(watch, 0, 0, "candidates"),
            }
            Some(allowed)
        }
    };
    if allowed.as_ref().and_then(Allowed::listed).is_some_and(|listed| listed.documents.is_empty()) {
        advice::nothing_to_search(scope, &mut stages)?;
        return Ok(SearchOutcome { hits: Vec::new(), stages, words: None });
    }
    let queries = preprocess::queries(scope, request, &mut stages)?;
    let options = request.options;
    // Its candidates are its hits.
    let is_short = request.mode == Mode::Keyword
        && queries.is_one()
        && !options.rerank
        && options.min_score.is_none()
        && options.source_boost == 0.0
        && !feedback::is_wanted(scope, request)
        && options.hops == 1
        && !graph::is_wanted(request)
        && !stages.has_trail();
    let mut outcome = if is_short {
        keyword_only(scope, request, &queries.whole, allowed.as_ref(), stages)?
    } else {
        let hits = candidates(scope, request, &queries, allowed.as_ref(), &mut stages)?;
        finish(request, hits, stages)?
    };
    outcome.words = queries.whole.words();
    if outcome.hits.is_empty() {
        if let (Some(filter), Some(allowed)) = (request.filter, &allowed)
            && allowed.is_nothing()?
        {
            let watch = outcome.stages.start("filter");
            advice::filter_found_nothing(scope, filter, &mut outcome.stages, watch)?;
        }
        advice::nothing_to_search(scope, &mut outcome.stages)?;
    }
    Ok(outcome)
}

/// Hits that each retriever is asked for at first, and how many retrievers are asked.
fn wanted_at_first(request: &SearchRequest<'_>) -> (usize, usize) {
    match request.mode {
        Mode::Keyword if !request.options.rerank => (request.k, 1),
        mode => (request.options.candidates.max(request.k), if mode == Mode::Hybrid { 2 } else { 1 }),
    }
}

/// What may become one of the `k`, best first: more is taken from the retrievers where near-duplicates leave too few.
fn candidates(
    scope: &Scope,
    request: &SearchRequest<'_>,
    queries: &Queries,
    allowed: Option<&Allowed<'_>>,
    stages: &mut Stages,
) -> Result<Vec<SearchHit>> {
    let mut wanted = request.options.candidates.max(request.k);
    loop {
        let mut round = stages.round();
        let rank = |query: &RunQuery, stages: &mut Stages| {
            self::rank(scope, request, query, wanted, allowed, stages)
        };
        let mut ranked = queries.ranked(request.options, &mut round, rank)?;
        let is_enough =
            |hit: &Ranked| request.options.min_score.is_none_or(|least| f64::from(hit.score) >= least);
        let below: Vec<Id> = ranked.order.extract_if(.., |hit| !is_enough(hit)).map(|hit| hit.id).collect();
        round.dropped(below, |_| "below min_score".to_owned());
        if request.options.hops > 1 {
            hop::extend(scope, request, wanted, allowed, &mut ranked.order, &mut round)?;
        }
        if graph::is_wanted(request) {
            graph::extend(scope, request, allowed, &mut ranked.order, &mut round)?;
        }
        if feedback::is_wanted(scope, request) {
            feedback::boost(scope, request, &mut ranked.order, &mut round)?;
        }
        let is_all = ranked.keyword.len() < wanted && ranked.vector.len() < wanted;
        let sieve = show(scope, request, ranked, &mut round)?;
        if is_all || wanted >= MOST_CANDIDATES || !sieve.is_short(request.k) {
            let hits = sieve.finish(request.k, &mut round);
            stages.extend(round);
            return Ok(hits);
        }
        wanted = (wanted * REFILL).min(MOST_CANDIDATES);
    }
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

/// How many times as many hits are taken from a retriever, again and again, to make up for near-duplicates.
const REFILL: usize = 4;

/// Most hits that are taken from a retriever.
pub(crate) const MOST_CANDIDATES: usize = 10_000;

/// The short way: the retriever's own order is the result, and showing the hits is also the check that they live.
fn keyword_only(
    scope: &Scope,
    request: &SearchRequest<'_>,
    query: &RunQuery,
    allowed: Option<&Allowed<'_>>,
    mut stages: Stages,
) -> Result<SearchOutcome> {
    let watch = stages.start(KeywordRetriever::NAME);
    let words = query.keyword.as_deref().unwrap_or(request.query);
    let mut retriever = KeywordRetriever::open(scope, words, allowed)?.with(&query.more, &query.corrections);
    let (mut sieve, mut found) = first_keyword_hits(scope, request, allowed, &mut retriever, request.k)?;
    let mut wanted = request.k;
    while found == wanted && wanted < MOST_CANDIDATES && sieve.is_short(request.k) {
        wanted = (request.options.candidates.max(wanted) * REFILL).min(MOST_CANDIDATES);
        (sieve, found) = first_keyword_hits(scope, request, allowed, &mut retriever, wanted)?;
    }
    retrieved(&mut stages, watch, &retriever, found);
    let mut hits = sieve.finish(request.k, &mut stages);
    hits.truncate(request.k);
    Ok(SearchOutcome { hits, stages, words: None })
}

/// The first hits of the keyword retriever that the caller sees, sifted, and how many there are.
fn first_keyword_hits(
    scope: &Scope,
    request: &SearchRequest<'_>,
    allowed: Option<&Allowed<'_>>,
    retriever: &mut KeywordRetriever<'_>,
    wanted: usize,
) -> Result<(Sieve, usize)> {
    let mut shown = HashMap::new();
    let hits = retrieve(retriever, wanted, allowed, |unknown| {
        let passing = allowed.map(|allowed| allowed.chunks(unknown)).transpose()?;
        let passing = passing.map(|passing| passing.into_iter().collect::<Vec<Id>>());
        let found = chunk::show(&scope.ids(), passing.as_deref().unwrap_or(unknown))?;
        let ids = found.keys().copied().collect();
        shown.extend(found);
        Ok(ids)
    })?;
    let mut sieve = Sieve::new(request.options);
    for (i, hit) in hits.iter().enumerate() {
        let score = f64::from(hit.score);
        if let Some(chunk) = shown.remove(&hit.id) {
            sieve.push(SearchHit { chunk, score, keyword: Some((i + 1, score)), vector: None, rerank: None });
        }
    }
    Ok((sieve, hits.len()))
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
    (wanted, look): (usize, &Look<'_>),
    substitute: Option<Substitute>,
    stages: &mut Stages,
) -> Result<Option<(R, Vec<Ranked>)>> {
    let watch = stages.start(R::NAME);
    let found = open().and_then(|mut retriever| {
        let hits = retrieve(&mut retriever, wanted, look.allowed(), |ids| look.at(ids))?;
        Ok((retriever, hits))
    });
    match (found, substitute) {
        (Ok((retriever, hits)), _) => {
            stages.ranked(R::NAME, scored(&hits));
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

fn scored(hits: &[Ranked]) -> impl Iterator<Item = (Id, f64)> {
    hits.iter().map(|hit| (hit.id, f64::from(hit.score)))
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
    query: &RunQuery,
    wanted: usize,
    allowed: Option<&Allowed<'_>>,
    stages: &mut Stages,
) -> Result<RankedHits> {
    let is_hybrid = request.mode == Mode::Hybrid;
    let look = Look::new(scope, allowed);

    // None: not asked, or the other one has to do.
    let (mut keyword, mut visible) = (None, allowed.map(Allowed::size));
    if request.mode != Mode::Vector
        && let Some(words) = &query.keyword
    {
        let open =
            || Ok(KeywordRetriever::open(scope, words, allowed)?.with(&query.more, &query.corrections));
        let substitute =
            is_hybrid.then_some(Substitute { makes_up_for: Error::is_damage, name: VectorRetriever::NAME });
        let found = ask(open, (wanted, &look), substitute, stages)?;
        visible = Some(found.as_ref().map_or(0, |(retriever, _)| retriever.ranked()));
        keyword = found.map(|(_, hits)| hits);
    }
    let (mut vector, mut is_query_foreign) = (None, false);
    if request.mode != Mode::Keyword && !(is_hybrid && stages.has_failed(VectorRetriever::NAME)) {
        let open = || VectorRetriever::open(scope, (&query.vector, query.role), &look, visible);
        let substitute = is_hybrid.then_some(Substitute {
            makes_up_for: diagnostics::is_engine_trouble,
            name: KeywordRetriever::NAME,
        });
        vector = ask(open, (wanted, &look), substitute, stages)?.map(|(_, hits)| hits);
        if let (Some(hits), Some(least)) = (&mut vector, request.options.min_similarity) {
            let is_below = |hit: &mut Ranked| f64::from(hit.score) < least;
            let below: Vec<Id> = hits.extract_if(.., is_below).map(|hit| hit.id).collect();
            stages.detail(json!({ "below_min_similarity": below.len() }));
            stages.dropped(below, |_| "below min_similarity".to_owned());
        }
        if vector.is_some()
            && let Some(unknown) = advice::unknown_language(scope, request.query)
        {
            is_query_foreign = unknown.is_of_all;
            stages.warn(unknown.warning);
        }
    }
    let order = match (&keyword, &vector) {
        (Some(keyword), Some(vector)) => {
            fusion::fuse(scope, is_query_foreign, request.options, keyword, vector, stages)
        }
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => Vec::new(),
    };
    Ok(RankedHits { order, keyword: keyword.unwrap_or_default(), vector: vector.unwrap_or_default() })
}

fn finish(
    request: &SearchRequest<'_>,
    mut hits: Vec<SearchHit>,
    mut stages: Stages,
) -> Result<SearchOutcome> {
    if request.options.rerank && !hits.is_empty() {
        let watch = stages.start("rerank");
        match rerank::rerank_hits(request.query, &mut hits, request.options) {
            Ok((pairs, model)) => {
                stages.ranked("rerank", hits.iter().take(pairs).map(|hit| (hit.chunk.id, hit.score)));
                if let Some(least) = request.options.min_rerank_score {
                    let is_below = |hit: &mut SearchHit| hit.rerank.is_none_or(|score| score < least);
                    let below: Vec<SearchHit> = hits.extract_if(.., is_below).collect();
                    stages.dropped(below.iter().map(|hit| hit.chunk.id), |_| {
                        "below min_rerank_score".to_owned()
                    });
                }
                if let Some(most) = request.options.rerank_top_n {
                    stages.dropped(hits.iter().skip(most).map(|hit| hit.chunk.id), |_| {
                        "beyond rerank_top_n".to_owned()
                    });
                    hits.truncate(most);
                }
                stages.done_as(watch, pairs, hits.len().min(request.k), model);
            }
            Err(error) if diagnostics::is_engine_trouble(&error) => {
                stages.fell_back(watch, "fused order", &error)
            }
            Err(error) => return Err(error),
        }
    }
    stages.dropped(hits.iter().skip(request.k).map(|hit| hit.chunk.id), |_| "beyond k".to_owned());
    hits.truncate(request.k);
    Ok(SearchOutcome { hits, stages, words: None })
}
