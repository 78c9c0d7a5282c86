//! Which models are open. Each is opened once, on first use, by a thread of its own; whoever needs it meanwhile
//! waits, up to their deadline.

use super::folder::ModelFolder;
use super::pair::PairEncoder;
use super::session::Row;
use super::tokenizer::Tokenizer;
use crate::backend::{self, Backend, Conditions, Input};
use crate::device::Device;
use crate::failure::{Explain, deadline_passed, failure};
use crate::log;
use rag_wire::{Failure, FailureCode, ModelInfo, ModelKind};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A model that failed to load is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// An open model.
pub struct Model {
    /// What its folder says.
    pub folder: ModelFolder,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Makes rows of pairs, for a reranker.
    pub pairs: PairEncoder,
    /// What computes it.
    pub backend: Box<dyn Backend>,
}

impl Model {
    /// What the model is for: a vector per text, or a vector of one logit per pair.
    pub(crate) fn compute(
        &self,
        inputs: &[&Input],
        conditions: &Conditions<'_>,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        match self.folder.kind {
            ModelKind::Embedding => self.backend.embed(inputs, conditions),
            ModelKind::Reranker => {
                let scores = self.backend.score(inputs, conditions)?;
                Ok(scores.into_iter().map(|score| vec![score]).collect())
            }
            ModelKind::Chat => Err(not_loaded(&self.folder.name, "it is a chat model")),
        }
    }
}

enum Slot<T> {
    Loading,
    Ready(Arc<T>),
    Failed(Failure, Instant),
}

type Slots<T> = HashMap<String, Slot<T>>;

#[derive(Default)]
struct Loaded {
    models: Slots<Model>,
    tokenizers: Slots<(ModelFolder, Arc<Tokenizer>)>,
}

/// All models, loaded or not.
pub struct Registry {
    folders: Vec<String>,
    embedding_model: String,
    rerank_model: String,
    device: Device,
    threads: usize,
    loaded: Mutex<Loaded>,
    changed: Condvar,
}

impl Registry {
    /// A registry over folders of model folders. `threads` is the most runs at once of one model.
    pub fn new(
        folders: Vec<String>,
        embedding: &str,
        reranker: &str,
        device: Device,
        threads: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            folders,
            embedding_model: embedding.to_owned(),
            rerank_model: reranker.to_owned(),
            device,
            threads,
            loaded: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// The model of that name, or the default of its kind; loads it if it must. The folder of an open model is not read again.
    pub fn model(
        self: &Arc<Self>,
        name: Option<&str>,
        kind: ModelKind,
        deadline: Option<Instant>,
    ) -> Result<Arc<Model>, Failure> {
        let open = ready(&self.lock().models, name.unwrap_or(self.default_of(kind)));
        if let Some(model) = open.filter(|model| model.folder.kind == kind) {
            return Ok(model);
        }
        let folder = self.folder(name, kind)?;
        let registry = self.clone();
        let key = folder.name.clone();
        self.slot(|loaded| &mut loaded.models, key, deadline, move || registry.load(folder))
    }

    /// The tokenizer of an embedding model, with what its folder says; does not need ONNX Runtime.
    pub fn tokenizer(
        self: &Arc<Self>,
        name: Option<&str>,
        deadline: Option<Instant>,
    ) -> Result<Arc<(ModelFolder, Arc<Tokenizer>)>, Failure> {
        let kind = ModelKind::Embedding;
        let open = ready(&self.lock().tokenizers, name.unwrap_or(self.default_of(kind)));
        if let Some(open) = open.filter(|open| open.0.kind == kind) {
            return Ok(open);
        }
        self.tokenizer_of(self.folder(name, kind)?, deadline)
    }

    fn tokenizer_of(
        self: &Arc<Self>,
        folder: ModelFolder,
        deadline: Option<Instant>,
    ) -> Result<Arc<(ModelFolder, Arc<Tokenizer>)>, Failure> {
        let key = folder.name.clone();
        self.slot(
            |loaded| &mut loaded.tokenizers,
            key,
            deadline,
            move || {
                let tokenizer = Tokenizer::open(&folder.tokenizer, folder.max_tokens)
                    .map_err(|e| not_loaded(&folder.name, &e))?;
                Ok((folder, Arc::new(tokenizer)))
            },
        )
    }

    /// What is known of each model folder, by name.
    pub(crate) fn list(&self, allow_remote: bool) -> Vec<ModelInfo> {
        let found = ModelFolder::list(&self.folders);
        let loaded = self.lock();
        let describe = |(name, folder): (String, Result<ModelFolder, String>)| {
            let (mut info, problem) = match folder {
                Ok(folder) => (folder.info(), backend::check_unopened(&folder, allow_remote).err()),
                Err(problem) => (unreadable(&name), Some(problem)),
            };
            info.is_default = match info.kind {
                ModelKind::Embedding => name == self.embedding_model,
                ModelKind::Reranker => name == self.rerank_model,
                ModelKind::Chat => false,
            };
            info.problem = problem;
            match loaded.models.get(&name) {
                Some(Slot::Ready(model)) => {
                    info.loaded = model.backend.limits().is_local();
                    info.dimension = model.folder.dimension.unwrap_or(info.dimension);
                }
                Some(Slot::Failed(failure, _)) => {
                    info.problem = Some(failure.detail.clone().unwrap_or_else(|| failure.message.clone()));
                }
                _ => {}
            }
            info
        };
        found.into_iter().map(describe).collect()
    }

    /// Loads the default models in the background. What fails is logged and stands in [`Registry::list`].
    pub fn preload(self: &Arc<Self>) {
        for (name, kind) in
            [(&self.embedding_model, ModelKind::Embedding), (&self.rerank_model, ModelKind::Reranker)]
        {
            if name.is_empty() {
                continue;
            }
            let (registry, name) = (self.clone(), name.clone());
            if registry.folder(Some(&name), kind).is_ok_and(|folder| folder.graph().is_none()) {
                continue;
            }
            let load = move || match registry.model(Some(&name), kind, None) {
                Ok(model) => {
                    if let Err(failure) = model.backend.warm_up(registry.threads) {
                        log::failure(&failure);
                    }
                }
                Err(failure) => log::failure(&failure),
            };
            if let Err(e) = std::thread::Builder::new().name("rag-preload".into()).spawn(load) {
                log::warning(format_args!("cannot preload models: {e}"));
            }
        }
    }

    /// Name of the default model of a kind; empty where there is none.
    fn default_of(&self, kind: ModelKind) -> &str {
        match kind {
            ModelKind::Embedding => &self.embedding_model,
            ModelKind::Reranker => &self.rerank_model,
            ModelKind::Chat => "",
        }
    }

    /// What the folder of that name says, or that of the default model of its kind.
    pub(crate) fn folder(&self, name: Option<&str>, kind: ModelKind) -> Result<ModelFolder, Failure> {
        let what = match kind {
            ModelKind::Embedding => "embedding model",
            ModelKind::Reranker => "reranking model",
            ModelKind::Chat => "chat model",
        };
        let asked = name.unwrap_or(self.default_of(kind));
        if asked.is_empty() {
            return Err(failure(FailureCode::NotLoaded, format!("no {what} is configured"))
                .hint("Name one in the server's configuration, or in the call."));
        }
        let shown: String = asked.chars().take(64).collect();
        let folder = match ModelFolder::find(&self.folders, asked) {
            Ok(Some(folder)) => folder,
            Ok(None) if name.is_none() => {
                return Err(failure(
                    FailureCode::NotLoaded,
                    format!("the {what} \"{shown}\" is not installed"),
                )
                .detail(format!("Looked in {}.", self.folders.join(", ")))
                .hint("Install it as a folder of that name in one of these folders."));
            }
            Ok(None) => {
                return Err(failure(FailureCode::UnknownModel, format!("model \"{shown}\" does not exist"))
                    .hint("See rag.model for the models that are installed."));
            }
            Err(problem) => return Err(not_loaded(&shown, &problem)),
        };
        if folder.kind == kind {
            return Ok(folder);
        }
        Err(failure(FailureCode::InvalidArgument, format!("model \"{shown}\" is no {what}")))
    }

    fn load(self: &Arc<Self>, mut folder: ModelFolder) -> Result<Model, Failure> {
        let started = Instant::now();
        let tokenizer = self.tokenizer_of(folder.clone(), None)?.1.clone();
        let unreadable = |e: String| not_loaded(&folder.name, &e);
        let pairs = PairEncoder::open(&folder, &tokenizer).map_err(unreadable)?;
        let backend = backend::open(&folder, self.device, self.threads)?;
        let limits = backend.limits();
        if let Some(device) = limits.device {
            // A first run shows that the model works, and how wide its vectors are.
            let row = match folder.kind {
                ModelKind::Embedding => tokenizer.encode("ready"),
                ModelKind::Reranker | ModelKind::Chat => pairs.encode("ready", "ready"),
            };
            let row = row.map_err(unreadable)?;
            folder.dimension = try_out(backend.as_ref(), &folder, row)?.or(folder.dimension);
            let how = if limits.one_by_one { "one row at a time" } else { "in batches" };
            log::info(format_args!(
                "model {} loaded on {device} in {} ms, runs {how}",
                folder.name,
                started.elapsed().as_millis()
            ));
        }
        Ok(Model { folder, tokenizer, pairs, backend })
    }

    fn slot<T: Send + Sync + 'static>(
        self: &Arc<Self>,
        slots: impl Fn(&mut Loaded) -> &mut Slots<T> + Copy + Send + 'static,
        key: String,
        deadline: Option<Instant>,
        load: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<Arc<T>, Failure> {
        let mut load = Some(load);
        let mut loaded = self.lock();
        loop {
            match slots(&mut loaded).get(&key) {
                Some(Slot::Ready(value)) => return Ok(value.clone()),
                Some(Slot::Failed(failure, since)) if load.is_none() || since.elapsed() < RETRY_AFTER => {
                    return Err(failure.clone());
                }
                Some(Slot::Loading) => {}
                Some(Slot::Failed(..)) | None => {
                    if let Some(load) = load.take() {
                        slots(&mut loaded).insert(key.clone(), Slot::Loading);
                        let (registry, loading) = (self.clone(), key.clone());
                        let run = move || registry.finish(slots, loading, load);
                        if let Err(e) = std::thread::Builder::new().name("rag-load".into()).spawn(run) {
                            slots(&mut loaded).remove(&key);
                            return Err(failure(
                                FailureCode::Internal,
                                format!("cannot start a thread: {e}"),
                            ));
                        }
                        continue;
                    }
                }
            }
            load = None;
            loaded = match deadline.map(|d| d.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Err(deadline_passed()),
                Some(left) => {
                    self.changed.wait_timeout(loaded, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(loaded).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn finish<T>(
        &self,
        slots: impl Fn(&mut Loaded) -> &mut Slots<T>,
        key: String,
        load: impl FnOnce() -> Result<T, Failure>,
    ) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load))
            .unwrap_or_else(|_| Err(not_loaded(&key, "loading it failed with a panic")));
        let slot = match outcome {
            Ok(value) => Slot::Ready(Arc::new(value)),
            Err(failure) => Slot::Failed(failure, Instant::now()),
        };
        slots(&mut self.lock()).insert(key, slot);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is open under a name.
fn ready<T>(slots: &Slots<T>, name: &str) -> Option<Arc<T>> {
    match slots.get(name) {
        Some(Slot::Ready(value)) => Some(value.clone()),
        _ => None,
    }
}

/// Has a model compute one row; returns the dimension of an embedding model's vector.
fn try_out(backend: &dyn Backend, folder: &ModelFolder, row: Row) -> Result<Option<u32>, Failure> {
    let input = Input { row, ..Input::default() };
    let conditions = Conditions::unlimited();
    let found = match folder.kind {
        ModelKind::Embedding => backend
            .embed(&[&input], &conditions)
            .map(|vectors| vectors.first().map(|vector| vector.len() as u32)),
        ModelKind::Reranker | ModelKind::Chat => backend.score(&[&input], &conditions).map(|_| None),
    };
    found.map_err(|failure| not_loaded(&folder.name, &failure.detail.unwrap_or(failure.message)))
}

pub(crate) fn not_loaded(name: &str, problem: &str) -> Failure {
    failure(FailureCode::NotLoaded, format!("model \"{name}\" could not be loaded")).detail(problem)
}

fn unreadable(name: &str) -> ModelInfo {
    ModelInfo {
        name: name.to_owned(),
        kind: ModelKind::Embedding,
        dimension: 0,
        max_tokens: 0,
        pooling: String::new(),
        query_prefix: String::new(),
        passage_prefix: String::new(),
        loaded: false,
        is_default: false,
        problem: None,
        license: None,
        languages: Vec::new(),
        endpoint: None,
        answer_threshold: None,
        answer_weights: None,
    }
}
