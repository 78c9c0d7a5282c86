//! Rerankers behind an endpoint: three ways of asking for the scores of passages, and what is made of the answers.
//!
//! Scores leave here as logits, like those of a model on this machine, so whoever asked need not know where they come
//! from. A probability becomes the logit that the logistic function maps to it.

use super::remote::{Protocol, Remote};
use super::{Backend, Conditions, Input, Limits};
use crate::endpoint::{self, Purpose, RERANK, Target};
use crate::model::ModelFolder;
use crate::model::endpoint::{Api, Endpoint, ScoreScale};
use rag_wire::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

/// Most bytes of an answer per passage, beside the passage itself, which some servers repeat.
const MAX_BYTES_PER_PASSAGE: u64 = 1024;

/// What the answer is not, if it is of no use.
const WHAT: &str = "no list of scores";

/// How far beyond 0 and 1 a probability may lie: servers compute in half precision and print few digits.
const TOLERANCE: f64 = 1e-3;

/// Probabilities nearer to 0 or 1 than this count as this near, so that their logits are finite: about ±16.
const NEAREST: f64 = 1e-7;

/// A reranker at an endpoint.
pub(super) struct RerankBackend {
    remote: Remote,
    protocol: RerankProtocol,
}

impl RerankBackend {
    pub(super) fn new(folder: &ModelFolder, endpoint: &Endpoint) -> Self {
        let api = match endpoint.api {
            Some(Api::Tei) => RerankApi::Tei,
            Some(Api::DeepInfra) => RerankApi::DeepInfra,
            // A folder that names OpenAI's way for a reranker is refused when it is read.
            Some(Api::Cohere | Api::Jina | Api::OpenAi) | None => RerankApi::Cohere,
        };
        let scale = endpoint.scores.unwrap_or(match api {
            RerankApi::Tei => ScoreScale::Logit,
            RerankApi::Cohere | RerankApi::DeepInfra => ScoreScale::Probability,
        });
        let protocol = RerankProtocol { model: endpoint.model.clone(), api, scale };
        Self { remote: Remote::new(folder, endpoint), protocol }
    }
}

impl Backend for RerankBackend {
    fn limits(&self) -> Limits {
        self.remote.limits()
    }

    fn health(&self, allow_remote: bool) -> Result<(), String> {
        self.remote.health(&RERANK, allow_remote)
    }

    fn score(&self, pairs: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<f32>, Failure> {
        self.remote.ask(&self.protocol, pairs, conditions)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RerankApi {
    Cohere,
    Tei,
    DeepInfra,
}

struct RerankProtocol {
    model: String,
    api: RerankApi,
    scale: ScoreScale,
}

/// An answer of Cohere's kind.
#[derive(Deserialize)]
struct Results {
    results: Vec<Relevance>,
}

#[derive(Deserialize)]
struct Relevance {
    index: usize,
    relevance_score: f64,
}

/// One item of an answer of text-embeddings-inference.
#[derive(Deserialize)]
struct Rank {
    index: usize,
    score: f64,
}

/// An answer of DeepInfra's kind: in the order of the passages.
#[derive(Deserialize)]
struct Scores {
    scores: Vec<f64>,
}

impl Protocol for RerankProtocol {
    type Result = f32;

    fn purpose(&self) -> &'static Purpose {
        &RERANK
    }

    fn path(&self) -> Vec<&str> {
        match self.api {
            RerankApi::Cohere | RerankApi::Tei => vec!["rerank"],
            // The name of the model is a path of its own, such as Qwen/Qwen3-Reranker-8B.
            RerankApi::DeepInfra => self.model.split('/').collect(),
        }
    }

    fn body(&self, inputs: &[&Input], required_only: bool) -> Value {
        let query = inputs.first().and_then(|input| input.query.as_deref()).unwrap_or_default();
        let passages: Vec<&str> = inputs.iter().map(|input| input.text.as_str()).collect();
        match self.api {
            RerankApi::Cohere => {
                let top = passages.len();
                let mut body =
                    json!({ "model": self.model, "query": query, "documents": passages, "top_n": top });
                if !required_only {
                    body["return_documents"] = json!(false);
                }
                body
            }
            RerankApi::Tei => {
                let raw = self.scale == ScoreScale::Logit;
                json!({ "query": query, "texts": passages, "raw_scores": raw, "truncate": true })
            }
            // One query stands for all passages.
            RerankApi::DeepInfra => json!({ "queries": [query], "documents": passages }),
        }
    }

    /// Some servers send the passages back unless they are told not to; Cohere's second version refuses to be told.
    fn has_optional_fields(&self) -> bool {
        self.api == RerankApi::Cohere
    }

    fn max_answer_bytes(&self, inputs: &[&Input]) -> u64 {
        let passages: usize = inputs.iter().map(|input| input.text.len()).sum();
        // A character may take six bytes in JSON.
        (1 << 20) + MAX_BYTES_PER_PASSAGE * inputs.len() as u64 + 6 * passages as u64
    }

    fn read(&self, target: &Target, bytes: &[u8], inputs: usize) -> Result<Vec<f32>, Failure> {
        let indexed: Vec<(usize, f64)> = match self.api {
            RerankApi::Cohere => {
                let found: Results = endpoint::json(target, WHAT, bytes)?;
                found.results.into_iter().map(|item| (item.index, item.relevance_score)).collect()
            }
            RerankApi::Tei => {
                let found: Vec<Rank> = endpoint::json(target, WHAT, bytes)?;
                found.into_iter().map(|item| (item.index, item.score)).collect()
            }
            RerankApi::DeepInfra => {
                let found: Scores = endpoint::json(target, WHAT, bytes)?;
                found.scores.into_iter().enumerate().collect()
            }
        };
        let scores = in_order(&indexed, inputs).map_err(|why| endpoint::unusable(target, WHAT, &why))?;
        let logits = scores.into_iter().map(|score| self.logit(score)).collect::<Result<_, _>>();
        logits.map_err(|why| {
            let problem = endpoint::unusable(target, "out of range", &why);
            Failure { hint: Some(SCALE_HINT.into()), ..problem }
        })
    }
}

const SCALE_HINT: &str =
    "Set endpoint.scores to \"logit\" in the model's rag_model.json if its scores are not from 0 to 1.";

impl RerankProtocol {
    fn logit(&self, score: f64) -> Result<f32, String> {
        match self.scale {
            ScoreScale::Logit => Ok(score as f32),
            ScoreScale::Probability if (-TOLERANCE..=1.0 + TOLERANCE).contains(&score) => {
                let probability = score.clamp(NEAREST, 1.0 - NEAREST);
                Ok((probability / (1.0 - probability)).ln() as f32)
            }
            ScoreScale::Probability => Err(format!("A score is {score}, not from 0 to 1.")),
        }
    }
}

/// Scores by index; in words what is wrong if there is not exactly one finite score for each.
fn in_order(indexed: &[(usize, f64)], inputs: usize) -> Result<Vec<f64>, String> {
    let mut scores = vec![None; inputs];
    for (index, score) in indexed {
        let place = scores
            .get_mut(*index)
            .ok_or_else(|| format!("It has a score for passage {} of {inputs}.", index.saturating_add(1)))?;
        // Beyond what a single float holds would become infinite.
        if !(*score as f32).is_finite() {
            return Err("A score is not a finite number.".into());
        }
        if place.replace(*score).is_some() {
            return Err(format!("It has two scores for passage {}.", index + 1));
        }
    }
    let missing = scores.iter().position(Option::is_none);
    match missing {
        Some(index) => Err(format!("It has no score for passage {} of {inputs}.", index + 1)),
        None => Ok(scores.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_passage_has_exactly_one_finite_score() {
        let check = |indexed: &[(usize, f64)], expected: Result<&[f64], &str>| match expected {
            Ok(scores) => assert_eq!(in_order(indexed, 2).unwrap(), scores),
            Err(part) => assert!(in_order(indexed, 2).unwrap_err().contains(part), "{indexed:?}"),
        };
        check(&[(1, 0.5), (0, 0.25)], Ok(&[0.25, 0.5]));
        check(&[(1, 0.5)], Err("no score for passage 1 of 2"));
        check(&[], Err("no score for passage 1 of 2"));
        check(&[(0, 0.5), (1, 0.5), (1, 0.5)], Err("two scores for passage 2"));
        check(&[(0, 0.5), (1, 0.5), (2, 0.5)], Err("for passage 3 of 2"));
        check(&[(0, 0.5), (usize::MAX, 0.5)], Err("for passage"));
        check(&[(0, f64::NAN), (1, 0.5)], Err("finite"));
        check(&[(0, 1e300), (1, 0.5)], Err("finite"));
    }

    #[test]
    fn a_probability_becomes_its_logit_and_stays_finite() {
        let of = |scale, score| {
            RerankProtocol { model: String::new(), api: RerankApi::Cohere, scale }.logit(score)
        };
        let sigmoid = |logit: f32| 1.0 / (1.0 + (-f64::from(logit)).exp());
        for probability in [0.001, 0.25, 0.5, 0.9, 0.999] {
            let logit = of(ScoreScale::Probability, probability).unwrap();
            assert!((sigmoid(logit) - probability).abs() < 1e-6, "{probability}");
        }
        let ends = [0.0, 1.0, -1e-5, 1.0 + 1e-5].map(|end| of(ScoreScale::Probability, end).unwrap());
        assert!(ends.iter().all(|logit| (15.0..17.0).contains(&logit.abs())), "{ends:?}");
        assert!(of(ScoreScale::Probability, -2.5).unwrap_err().contains("-2.5"));
        assert!(of(ScoreScale::Probability, 1.5).is_err());
        assert_eq!(of(ScoreScale::Logit, -8.5), Ok(-8.5));
    }
}
