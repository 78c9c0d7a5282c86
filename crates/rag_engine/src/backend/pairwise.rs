//! Rerankers on this machine whose graph gives numbers per token: a score is made of them pair by pair.
//!
//! A pair runs alone. The logits of a decoder are as many as its vocabulary for each token, so a batch of them would take
//! more memory than it saves time; and what is padding then matters to none.

use super::onnx::{failed, open_sessions};
use super::{Backend, Conditions, Input, Limits, refuse_too_long};
use crate::device::Device;
use crate::model::runtime;
use crate::model::scoring::{LateInteraction, YesNo, single_tokens, token, vocabulary};
use crate::model::session::{RunStyle, Sessions};
use crate::model::{ModelFolder, Row, not_loaded, pooling};
use rag_wire::Failure;
use std::collections::HashSet;

/// Means nearer to −1 or 1 than this count as this near, so that their logits are finite.
const NEAREST: f64 = 1e-7;

/// How a pair's score is made of what the graph gives.
pub(super) trait PairScorer: Send + Sync {
    /// Most tokens of a row.
    fn max_tokens(&self) -> usize;

    /// The logit of a pair.
    fn score(&self, sessions: &Sessions, pair: &Row) -> Result<f32, String>;
}

/// A model that scores pairs one by one.
pub(super) struct PairwiseBackend<S> {
    name: String,
    sessions: Sessions,
    scorer: S,
}

impl<S: PairScorer> PairwiseBackend<S> {
    /// Opens the first session. `scorer` looks at the folder; what it says of it in words is why it does not load.
    pub(super) fn open(
        folder: &ModelFolder,
        device: Device,
        threads: usize,
        scorer: Result<S, String>,
    ) -> Result<Self, Failure> {
        let scorer = scorer.map_err(|problem| not_loaded(&folder.name, &problem))?;
        let sessions = open_sessions(folder, device, RunStyle::of(device), threads)?;
        Ok(Self { name: folder.name.clone(), sessions, scorer })
    }
}

impl<S: PairScorer> Backend for PairwiseBackend<S> {
    fn limits(&self) -> Limits {
        let limits = Limits::new(Some(self.sessions.device()), self.scorer.max_tokens());
        Limits { places: self.sessions.places(), one_by_one: true, ..limits }
    }

    fn health(&self, _allow_remote: bool) -> Result<(), String> {
        runtime::version().map(drop)
    }

    fn warm_up(&self, calls: usize) -> Result<(), Failure> {
        self.sessions.warm_up(calls).map_err(|reason| failed(&self.name, &reason))
    }

    fn score(&self, pairs: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<f32>, Failure> {
        refuse_too_long(&self.name, self.scorer.max_tokens(), pairs)?;
        let score = |pair: &&Input| {
            conditions.check()?;
            let score = self.scorer.score(&self.sessions, &pair.row);
            let score = score.map_err(|reason| failed(&self.name, &reason))?;
            if score.is_finite() { Ok(score) } else { Err(failed(&self.name, "a score is no finite number")) }
        };
        pairs.iter().map(score).collect()
    }
}

/// A decoder's answers: the logit of "yes" less that of "no" behind the last token, whose sigmoid is the probability of
/// "yes" among the two.
pub(super) struct YesNoScorer {
    yes: usize,
    no: usize,
    max_tokens: usize,
}

impl YesNoScorer {
    pub(super) fn new(folder: &ModelFolder, yes_no: &YesNo) -> Result<Self, String> {
        let tokenizer = vocabulary(folder)?;
        let id = |text: &str| Ok::<_, String>(token(&tokenizer, text)? as usize);
        Ok(Self { yes: id(&yes_no.yes)?, no: id(&yes_no.no)?, max_tokens: folder.max_tokens })
    }
}

impl PairScorer for YesNoScorer {
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn score(&self, sessions: &Sessions, pair: &Row) -> Result<f32, String> {
        sessions.read_tokens(pair, None, |logits, vocabulary| {
            let last = logits.chunks_exact(vocabulary).next_back().ok_or("the graph gave no logits")?;
            match (last.get(self.yes), last.get(self.no)) {
                (Some(yes), Some(no)) => Ok(yes - no),
                _ => Err(format!("the graph's vocabulary of {vocabulary} lacks the tokens of the answers")),
            }
        })
    }
}

/// ColBERT's MaxSim: for each token of the query the largest cosine with a token of the passage.
///
/// It leaves as the logit of (1 + m) / 2, where m is the mean over the query's tokens: so its sigmoid grows with m, from 0 to
/// 1, and a score does not depend on how many tokens a query has.
pub(super) struct LateScorer {
    late: LateInteraction,
    mask: Option<u32>,
    skip: HashSet<u32>,
    max_tokens: usize,
}

impl LateScorer {
    pub(super) fn new(folder: &ModelFolder, late: &LateInteraction) -> Result<Self, String> {
        let tokenizer = vocabulary(folder)?;
        Ok(Self {
            mask: late.mask.as_ref().map(|mask| token(&tokenizer, mask)).transpose()?,
            skip: single_tokens(&tokenizer, &late.skip)?.into_iter().collect(),
            max_tokens: late.query_length + folder.max_tokens,
            late: late.clone(),
        })
    }

    /// The vectors of a query's tokens, and of the mask that fills it up.
    fn query(&self, sessions: &Sessions, ids: &[u32]) -> Result<Vec<Vec<f32>>, String> {
        let mut row = row_of(ids);
        let Some(mask) = self.mask else { return sessions.read_tokens(&row, None, vectors) };
        if self.late.attend_to_mask {
            let length = self.late.query_length.max(ids.len());
            row.ids.resize(length, mask);
            row.types.resize(length, 0);
        }
        sessions.read_tokens(&row, Some((self.late.query_length, mask)), vectors)
    }
}

impl PairScorer for LateScorer {
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn score(&self, sessions: &Sessions, pair: &Row) -> Result<f32, String> {
        let middle = pair.types.iter().position(|side| *side == 1).unwrap_or(pair.ids.len());
        let (query, passage) = pair.ids.split_at(middle);
        let query = self.query(sessions, query)?;
        let found = match passage {
            [] => Vec::new(),
            _ => sessions.read_tokens(&row_of(passage), None, vectors)?,
        };
        let counted = passage.iter().zip(found).filter(|(id, _)| !self.skip.contains(id));
        let passage: Vec<Vec<f32>> = counted.map(|(_, vector)| vector).collect();
        Ok(logit_of_mean(mean_of_best(&query, &passage)))
    }
}

fn row_of(ids: &[u32]) -> Row {
    Row { ids: ids.to_vec(), types: vec![0; ids.len()] }
}

/// Token vectors of length 1. One without a direction, as some graphs give for what does not count, stays zero.
fn vectors(values: &[f32], width: usize) -> Result<Vec<Vec<f32>>, String> {
    let of_length_1 = |values: &[f32]| {
        let mut vector = values.to_vec();
        let usable = pooling::normalise(&mut vector) || vector.iter().all(|number| *number == 0.0);
        usable.then_some(vector).ok_or_else(|| "the graph gave a number that is not finite".to_owned())
    };
    values.chunks_exact(width.max(1)).map(of_length_1).collect()
}

/// The mean over the query's tokens of the best cosine; −1, the least that it can be, where there is nothing to compare.
fn mean_of_best(query: &[Vec<f32>], passage: &[Vec<f32>]) -> f64 {
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let best = |token: &Vec<f32>| passage.iter().map(|other| cosine(token, other)).fold(-1.0, f64::max);
    query.iter().map(best).sum::<f64>() / query.len().max(1) as f64
}

fn logit_of_mean(mean: f64) -> f32 {
    let mean = mean.clamp(NEAREST - 1.0, 1.0 - NEAREST);
    ((1.0 + mean) / (1.0 - mean)).ln() as f32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_best_cosine_of_each_query_token_counts() {
        let query = vec![vec![1.0, 0.0], vec![0.0, 1.0]];
        let check = |passage: &[[f32; 2]], expected: f64| {
            let passage: Vec<Vec<f32>> = passage.iter().map(|vector| vector.to_vec()).collect();
            let found = mean_of_best(&query, &passage);
            assert!((found - expected).abs() < 1e-6, "{passage:?}: {found}");
        };
        check(&[[1.0, 0.0], [0.0, 1.0]], 1.0);
        check(&[[1.0, 0.0]], 0.5);
        check(&[[0.6, 0.8], [0.8, 0.6]], 0.8);
        check(&[[-1.0, 0.0]], -0.5);
        check(&[], -1.0);
    }

    #[test]
    fn a_mean_becomes_a_finite_logit_whose_sigmoid_grows_with_it() {
        let sigmoid = |logit: f32| 1.0 / (1.0 + (-f64::from(logit)).exp());
        for mean in [-0.9, -0.5, 0.0, 0.25, 0.8, 0.99] {
            assert!((sigmoid(logit_of_mean(mean)) - (1.0 + mean) / 2.0).abs() < 1e-6, "{mean}");
        }
        assert!(logit_of_mean(-1.0).is_finite() && logit_of_mean(1.0 + 1e-9).is_finite());
    }

    #[test]
    fn vectors_have_length_1_and_zero_stays_zero() {
        assert_eq!(vectors(&[3.0, 4.0, 0.0, 0.0], 2).unwrap(), [vec![0.6, 0.8], vec![0.0, 0.0]]);
        assert!(vectors(&[f32::NAN, 1.0], 2).is_err());
    }
}
