//! Embedding models behind an endpoint: what is asked of `POST /embeddings`, and what is made of the answer.
//!
//! The folder of such a model holds no graph but a `rag_model.json` with an `endpoint`, and a tokenizer: texts are
//! cut and counted here, so that the other side has nothing to cut off.

use crate::endpoint::{self, EMBEDDINGS, Said, Target, Terms};
use crate::failure::{Explain, failure};
use crate::model::folder::{Endpoint, ModelFolder};
use rag_wire::{Failure, FailureCode, read_api_key};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes of an answer per number that is expected, JSON and white space included.
const MAX_BYTES_PER_NUMBER: u64 = 64;

/// Whether the endpoint may be asked, in words. Asks no name server.
pub(crate) fn check(endpoint: &Endpoint, allow_remote: bool) -> Result<(), String> {
    let target = Target::read(&EMBEDDINGS, &endpoint.url).map_err(|failure| failure.message)?;
    target.expect_allowed(allow_remote).map_err(|failure| failure.message)
}

/// L2-normalised vectors of texts, in their order. `withdrawn` says that nobody waits any more.
///
/// A batch that is refused as too large (413) is halved until single texts are sent.
pub(crate) fn embed(
    folder: &ModelFolder,
    endpoint: &Endpoint,
    texts: &[String],
    allow_remote: bool,
    deadline: Option<Instant>,
    withdrawn: &dyn Fn() -> bool,
) -> Result<Vec<Vec<f32>>, Failure> {
    let target = Target::read(&EMBEDDINGS, &endpoint.url)?;
    let api_key = endpoint.api_key_file.as_deref().map(|path| read_key(path, &folder.name)).transpose()?;
    let dimension = folder.dimension.unwrap_or(0);
    let mut batch = endpoint.batch.max(1);
    let mut vectors = Vec::with_capacity(texts.len());
    let mut rest = texts;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(batch.min(rest.len()));
        let terms = Terms {
            api_key: api_key.as_deref(),
            timeout: Duration::from_millis(endpoint.timeout_ms.max(1)),
            retries: endpoint.retries,
            max_answer_bytes: (1 << 20) + MAX_BYTES_PER_NUMBER * u64::from(dimension) * now.len() as u64,
            allow_remote,
            deadline,
            withdrawn,
        };
        match endpoint::post(&target, &terms, &body(folder, endpoint, now))? {
            Said::Body(bytes) => {
                vectors.extend(read(&target, &bytes, now.len(), dimension as usize)?);
                rest = later;
            }
            Said::Refused(413) if now.len() > 1 => batch = now.len() / 2,
            Said::Refused(status) => return Err(endpoint::status_failure(&target, status)),
        }
    }
    Ok(vectors)
}

fn body(folder: &ModelFolder, endpoint: &Endpoint, texts: &[String]) -> Value {
    let mut body = json!({ "model": endpoint.model, "input": texts, "encoding_format": "float" });
    if endpoint.send_dimensions {
        body["dimensions"] = json!(folder.dimension);
    }
    body
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

fn read(target: &Target, bytes: &[u8], texts: usize, dimension: usize) -> Result<Vec<Vec<f32>>, Failure> {
    const WHAT: &str = "no list of embeddings";
    let answer: Answer = endpoint::json(target, WHAT, bytes)?;
    let mut vectors = vec![Vec::new(); texts];
    for item in answer.data {
        if item.embedding.len() != dimension {
            let message = format!(
                "the embeddings endpoint gives {} numbers per text, not {dimension}",
                item.embedding.len()
            );
            return Err(
                failure(FailureCode::NotLoaded, message).detail(format!("It is at {}.", target.shown()))
            );
        }
        let length = item.embedding.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if !(length.is_finite() && length > 0.0) {
            return Err(endpoint::unusable(target, WHAT, "An embedding is zero or not finite."));
        }
        let place = vectors.get_mut(item.index);
        let place = place.ok_or_else(|| endpoint::unusable(target, WHAT, "An index is out of range."))?;
        *place = item.embedding.iter().map(|x| (f64::from(*x) / length) as f32).collect();
    }
    match vectors.iter().position(Vec::is_empty) {
        Some(missing) => Err(endpoint::unusable(
            target,
            WHAT,
            &format!("There is none for text {} of {texts}.", missing + 1),
        )),
        None => Ok(vectors),
    }
}

/// The key, one line. Its file is read at each call, so a new key needs no restart.
fn read_key(path: &Path, model: &str) -> Result<String, Failure> {
    let problem = |reason: String| {
        failure(FailureCode::NotLoaded, format!("the key file of model \"{model}\" {reason}"))
    };
    let file = std::fs::File::open(path).map_err(|e| problem(format!("cannot be read: {}", e.kind())))?;
    read_api_key(file).map_err(problem)
}
