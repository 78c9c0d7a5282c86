//! What the models behind endpoints have in common: batches, keys, limits, and what a folder says of the endpoint.
//!
//! The folder of such a model holds no graph but a `rag_model.json` with an `endpoint`, and a tokenizer: texts are
//! cut and counted here, so that the other side has nothing to cut off.

use super::{Conditions, Input, Limits, refuse_too_long};
use crate::endpoint::{self, EndpointResponse, Purpose, Spacing, Target, Terms};
use crate::failure::failure;
use crate::model::ModelFolder;
use crate::model::endpoint::Endpoint;
use rag_wire::{Failure, FailureCode, read_api_key};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How an endpoint is asked, and what its answer means.
pub(super) trait Protocol {
    /// What there is one of per input.
    type Result;

    /// What it is for.
    fn purpose(&self) -> &'static Purpose;

    /// The path below the base address.
    fn path(&self) -> Vec<&str>;

    /// The body for inputs that all have the same query, if they have one. `required_only` leaves out the fields that
    /// not every server knows.
    fn body(&self, inputs: &[&Input], required_only: bool) -> Value;

    /// Whether some fields may be left out.
    fn has_optional_fields(&self) -> bool;

    /// Most bytes of an answer.
    fn max_answer_bytes(&self, inputs: &[&Input]) -> u64;

    /// One result per input, in the order of the inputs; or the failure of an answer that does not fit.
    fn read(&self, target: &Target, bytes: &[u8], inputs: usize) -> Result<Vec<Self::Result>, Failure>;
}

/// A model behind an endpoint.
pub(super) struct Remote {
    name: String,
    max_tokens: usize,
    endpoint: Endpoint,
    /// Whether the endpoint has understood a request only without its optional fields.
    required_only: AtomicBool,
}

impl Remote {
    pub(super) fn new(folder: &ModelFolder, endpoint: &Endpoint) -> Self {
        Self {
            name: folder.name.clone(),
            max_tokens: folder.max_tokens,
            endpoint: endpoint.clone(),
            required_only: AtomicBool::new(false),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits::new(None, self.max_tokens)
    }

    /// Whether the endpoint may be asked. Asks no name server.
    pub(super) fn health(&self, purpose: &'static Purpose, allow_remote: bool) -> Result<(), String> {
        let target = Target::read(purpose, &self.endpoint.url).map_err(|failure| failure.message)?;
        target.expect_allowed(allow_remote).map_err(|failure| failure.message)
    }

    /// Asks in batches. One that is refused as too large (413) is halved until single inputs are sent; one that is
    /// refused as not understood (400, 422) is sent once more with the required fields alone, and so are
    /// the requests of later calls where that helped.
    pub(super) fn ask<P: Protocol>(
        &self,
        protocol: &P,
        inputs: &[&Input],
        conditions: &Conditions<'_>,
    ) -> Result<Vec<P::Result>, Failure> {
        refuse_too_long(&self.name, self.max_tokens, inputs)?;
        let target = Target::read(protocol.purpose(), &self.endpoint.url)?;
        let key_file = self.endpoint.api_key_file.as_deref();
        let api_key = key_file.map(|path| read_key(path, &self.name)).transpose()?;
        let mut batch = self.endpoint.batch.max(1);
        let mut required_only = !protocol.has_optional_fields() || self.required_only.load(Ordering::Relaxed);
        let mut results = Vec::with_capacity(inputs.len());
        let mut rest = inputs;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(batch_of_one_query(rest, batch));
            let terms = Terms {
                api_key: api_key.as_deref(),
                timeout: Duration::from_millis(self.endpoint.timeout_ms.max(1)),
                retries: self.endpoint.retries,
                spacing: Spacing::Doubling,
                max_answer_bytes: protocol.max_answer_bytes(now),
                conditions,
            };
            let body = protocol.body(now, required_only);
            match endpoint::post(&target, &protocol.path(), &terms, &body)? {
                EndpointResponse::Body(bytes) => {
                    results.extend(protocol.read(&target, &bytes, now.len())?);
                    rest = later;
                    self.required_only.fetch_or(required_only, Ordering::Relaxed);
                }
                EndpointResponse::Refused(413) if now.len() > 1 => batch = now.len() / 2,
                EndpointResponse::Refused(400 | 422) if !required_only => required_only = true,
                EndpointResponse::Refused(status) => return Err(endpoint::status_failure(&target, status)),
            }
        }
        Ok(results)
    }
}

/// How many inputs from the start go into one request: at most `batch`, of one query.
fn batch_of_one_query(inputs: &[&Input], batch: usize) -> usize {
    let query = inputs.first().and_then(|input| input.query.as_ref());
    inputs.iter().take(batch).take_while(|input| input.query.as_ref() == query).count()
}

/// The key, one line. Its file is read at each call, so a new key needs no restart.
fn read_key(path: &Path, model: &str) -> Result<String, Failure> {
    let problem = |reason: String| {
        failure(FailureCode::NotLoaded, format!("the key file of model \"{model}\" {reason}"))
    };
    let file = std::fs::File::open(path).map_err(|e| problem(format!("cannot be read: {}", e.kind())))?;
    read_api_key(file).map_err(problem)
}
