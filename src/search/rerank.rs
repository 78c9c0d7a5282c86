//! Reranking by the cross-encoder: scores of pairs, as logits or from 0 to 1.

use super::SearchHit;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::principal;
use crate::storage::chunk::ShownChunk;

/// Most pairs of one call.
pub(crate) const MAX_PAIRS: usize = 1000;

/// Logits of passages, in their order.
pub(crate) fn logits(model: Option<&str>, query: &str, passages: Vec<String>) -> Result<Vec<f64>> {
    if passages.len() > MAX_PAIRS {
        return Err(Error::limit(format!(
            "{} texts to rerank, but the limit is {MAX_PAIRS}",
            passages.len()
        )));
    }
    if passages.is_empty() {
        return Ok(Vec::new());
    }
    let count = passages.len();
    let scores = engine::rerank(model, query, passages, &principal::current_principals()?)?;
    if scores.len() != count {
        return Err(Error::internal(format!("{} scores came for {count} passages", scores.len())));
    }
    Ok(scores.into_iter().map(f64::from).collect())
}

/// A logit as a number from 0 to 1.
pub(crate) fn sigmoid(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Puts the first `limit` hits in the order of the cross-encoder, ties by id; the others stay behind them.
/// Returns the number of pairs.
pub(crate) fn rerank_hits(query: &str, hits: &mut [SearchHit], limit: usize) -> Result<usize> {
    let pairs = hits.len().min(limit);
    let head = &mut hits[..pairs];
    let passages = head.iter().map(|hit| passage(&hit.chunk)).collect();
    let scores = logits(None, query, passages)?;
    for (hit, logit) in head.iter_mut().zip(scores) {
        let score = sigmoid(logit);
        hit.rerank = Some(score);
        hit.score = score;
    }
    head.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.id.cmp(&b.chunk.id)));
    Ok(pairs)
}

/// What the cross-encoder reads: title and headings, a table's header, then the text.
pub(crate) fn passage(chunk: &ShownChunk) -> String {
    let headings = &chunk.header_path;
    let mut parts: Vec<&str> = Vec::new();
    parts.extend(chunk.title.as_deref().filter(|t| headings.first().map(String::as_str) != Some(*t)));
    parts.extend(headings.iter().map(String::as_str));
    let above = [Some(parts.join(" > ")).filter(|path| !path.is_empty()), chunk.table_header.clone()];
    above.into_iter().flatten().chain([chunk.content.clone()]).collect::<Vec<_>>().join("\n")
}
