//! Chat models of this machine: GGUF files, each run by a `rag-llm` of its own, which is started when it is first asked and
//! kept for a while.
//!
//! What links llama.cpp is that program alone: a file or a library that fails takes no more with it than its answer.

mod child;
mod seat;
mod turns;

use crate::backend::Conditions;
use crate::failure::{Explain, failure};
use crate::model::ModelFolder;
use crate::model::folder::BackendConfig;
use rag_wire::{Chat, Completion, Failure, FailureCode, LOCAL_MODEL};
use seat::Seat;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A model that nobody has asked for so long is ended.
const IDLE: Duration = Duration::from_secs(600);

/// What all models are run with.
pub(crate) struct Launch {
    /// Path of `rag-llm`.
    pub(crate) program: PathBuf,
    /// Threads of each model.
    pub(crate) threads: u32,
}

/// What a folder says of its model.
pub(crate) struct LocalModel {
    /// The folder's name.
    name: String,
    file: PathBuf,
    /// Most tokens of a conversation and its answer together.
    max_context: u32,
}

/// The models that have been asked, by the names of their folders.
pub(crate) struct LocalModels {
    folders: Vec<String>,
    launch: Launch,
    seats: Mutex<HashMap<String, Arc<Seat>>>,
}

impl LocalModels {
    /// Models of these folders. Nothing is started yet.
    pub(crate) fn new(folders: Vec<String>, launch: Launch) -> Self {
        Self { folders, launch, seats: Mutex::default() }
    }

    /// What keeps a model from being asked, as far as its folder shows.
    pub(crate) fn check(&self, name: &str) -> Result<(), Failure> {
        self.model(name).map(drop)
    }

    /// The next message of a conversation; what is written goes to `deliver` as it is written.
    pub(crate) fn generate(
        &self,
        name: &str,
        request: &Chat,
        conditions: &Conditions<'_>,
        deliver: &mut dyn FnMut(&str),
    ) -> Result<Completion, Failure> {
        let model = self.model(name)?;
        let seat = self.seats().entry(name.to_owned()).or_default().clone();
        seat.generate(&self.launch, &model, request, conditions, deliver)
    }

    /// How many tokens each of the texts has for a model, which is loaded for that.
    pub(crate) fn count_tokens(
        &self,
        name: &str,
        texts: &[String],
        conditions: &Conditions<'_>,
    ) -> Result<Vec<u32>, Failure> {
        let model = self.model(name)?;
        let seat = self.seats().entry(name.to_owned()).or_default().clone();
        seat.count_tokens(&self.launch, &model, texts, conditions)
    }

    /// Whether a model is in memory, or being loaded.
    pub(crate) fn is_running(&self, name: &str) -> bool {
        let seat = self.seats().get(name).cloned();
        seat.is_some_and(|seat| seat.is_running())
    }

    /// Why a model was last not loaded, if nothing has changed since.
    pub(crate) fn problem(&self, name: &str) -> Option<String> {
        let seat = self.seats().get(name).cloned();
        seat.and_then(|seat| seat.problem())
    }

    /// Ends the models that are named no more, once their answers have ended.
    pub(crate) fn keep_only<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let names: Vec<&str> = names.collect();
        self.seats().retain(|name, _| names.contains(&name.as_str()));
    }

    /// Ends models that nobody asks.
    pub(crate) fn end_idle(&self) {
        let now = Instant::now();
        let seats: Vec<Arc<Seat>> = self.seats().values().cloned().collect();
        seats.iter().for_each(|seat| seat.end_if_idle(now, IDLE));
    }

    fn model(&self, name: &str) -> Result<LocalModel, Failure> {
        let shown: String = name.chars().take(64).collect();
        let unusable = |problem: String| {
            failure(
                FailureCode::NotLoaded,
                format!("the chat model \"{LOCAL_MODEL}{shown}\" cannot be used: {problem}"),
            )
        };
        match ModelFolder::find(&self.folders, name) {
            Ok(Some(ModelFolder { name, backend: BackendConfig::Gguf { file }, max_tokens, .. })) => {
                let file = std::path::absolute(file).map_err(|e| unusable(e.to_string()))?;
                Ok(LocalModel { name, file, max_context: u32::try_from(max_tokens).unwrap_or(u32::MAX) })
            }
            Ok(Some(_)) => Err(unusable("the folder holds no chat model".to_owned())),
            Ok(None) => Err(unusable("there is no such folder".to_owned())
                .detail(format!("Looked in {}.", self.folders.join(", ")))
                .hint("Put its GGUF file into a folder of that name in one of these folders.")),
            Err(problem) => Err(unusable(problem)),
        }
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<String, Arc<Seat>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
