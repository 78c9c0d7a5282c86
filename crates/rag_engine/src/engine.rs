//! The engine's parts put together, and its state: settings, models, queues, caches, counters.

use crate::backend::chat_summary;
use crate::cache::{Cache, Key, Value};
use crate::device::{self, Choice};
use crate::llm::{Launch, LocalModels};
use crate::log;
use crate::model::{Registry, runtime};
use crate::parse::{self, ChildLock, Permits};
use crate::principal::StartKey;
use crate::process;
use crate::scheduler::Scheduler;
use rag_wire::{ChatModels, EngineCounters, EngineStatus, LOCAL_MODEL, ModelInfo, ModelKind, Settings};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// What has been done since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) served: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) texts_embedded: AtomicU64,
    pub(crate) tokens_embedded: AtomicU64,
    pub(crate) pairs_scored: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) cache_misses: AtomicU64,
}

/// The engine of one process.
pub(crate) struct Engine {
    settings: RwLock<Arc<Settings>>,
    started: Instant,
    pub(crate) device: Choice,
    pub(crate) key: StartKey,
    pub(crate) models: Arc<Registry>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) interactive_documents: Permits,
    pub(crate) bulk_documents: Permits,
    /// One large document of each lane at a time, and one large text: together they would take much memory.
    pub(crate) large_interactive_documents: Permits,
    pub(crate) large_bulk_documents: Permits,
    pub(crate) large_texts: Permits,
    /// Which parse children run beside which.
    pub(crate) child_lock: ChildLock,
    /// Chat models of this machine.
    pub(crate) local_models: Arc<LocalModels>,
    /// Requests to chat models and endpoints under way.
    pub(crate) endpoint_requests: AtomicUsize,
    cache: Mutex<Cache>,
    sandbox: Mutex<String>,
    short_of_memory: AtomicBool,
}

impl Engine {
    /// Loads ONNX Runtime, chooses the device, starts the workers and begins to load the default models. What is
    /// missing is logged once and stands in the status; the engine runs without it.
    pub(crate) fn start(settings: Settings) -> std::io::Result<Arc<Self>> {
        if let Err(reason) = runtime::load(&settings.onnxruntime) {
            log::warning(format_args!("ONNX Runtime did not load: {reason}"));
        }
        let device = device::choose(&settings.device);
        if let Some(note) = &device.note {
            log::warning(note);
        }
        let (threads, bulk) = worker_counts(&settings);
        let counters = Arc::<Counters>::default();
        let models = Registry::new(
            settings.model_folders.clone(),
            &settings.embedding_model,
            &settings.rerank_model,
            device.device,
            threads,
        );
        let scheduler =
            Scheduler::start(threads, bulk, device.batch_limits, settings.queue_limit, counters.clone())?;
        let cache = Cache::new(cache_bytes(&settings), Duration::from_secs(settings.cache_ttl_s.into()));
        let launch = Launch { program: settings.llm_program.clone().into(), threads: threads as u32 };
        let local_models = Arc::new(LocalModels::new(settings.model_folders.clone(), launch));
        let engine = Arc::new(Self {
            settings: RwLock::new(Arc::new(settings)),
            started: Instant::now(),
            device,
            key: StartKey::draw().map_err(std::io::Error::other)?,
            models,
            scheduler,
            counters,
            interactive_documents: Permits::with_spare(threads),
            bulk_documents: Permits::with_spare(bulk),
            large_interactive_documents: Permits::new(1),
            large_bulk_documents: Permits::new(1),
            large_texts: Permits::new(1),
            child_lock: ChildLock::default(),
            local_models,
            endpoint_requests: AtomicUsize::new(0),
            cache: Mutex::new(cache),
            sandbox: Mutex::new("not tested yet".into()),
            short_of_memory: AtomicBool::new(false),
        });
        if runtime::version().is_ok() {
            engine.models.preload();
        }
        let tested = engine.clone();
        std::thread::Builder::new().name("rag-self-test".into()).spawn(move || tested.test_sandbox())?;
        Ok(engine)
    }

    /// Has a parse child try what is forbidden to it, and keeps the outcome for the status.
    fn test_sandbox(&self) {
        let found = match parse::self_test(&self.settings().parse) {
            Ok(found) => found,
            Err(failure) => {
                let detail = failure.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
                format!("not usable: {}{detail}", failure.message)
            }
        };
        if !found.ends_with("seccomp") {
            log::warning(format_args!("parse sandbox: {found}"));
        }
        *self.sandbox.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The settings of this moment.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over the settings that can change while the engine runs: chat, limits, caches, remote access. The
    /// others keep the values of the start; whoever changes them starts a new engine.
    pub(crate) fn change_settings(&self, new: Settings) {
        let other_sandbox = new.parse.sandbox != self.settings().parse.sandbox;
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        self.scheduler.set_queue_limit(new.queue_limit);
        self.cache().set_bounds(cache_bytes(&new), Duration::from_secs(new.cache_ttl_s.into()));
        let old = settings.as_ref().clone();
        *settings = Arc::new(Settings {
            memory_limit_mb: new.memory_limit_mb,
            queue_limit: new.queue_limit,
            cache_mb: new.cache_mb,
            cache_ttl_s: new.cache_ttl_s,
            parse: new.parse,
            chat: new.chat,
            allow_remote: new.allow_remote,
            ..old
        });
        let named = settings.chat.clone();
        drop(settings);
        self.local_models.keep_only(named.iter().flat_map(ChatModels::local_models));
        if other_sandbox {
            self.test_sandbox();
        }
    }

    /// A cached value; counts the look-up.
    pub(crate) fn cached(&self, key: &Key) -> Option<Value> {
        let found = self.cache().get(key, Instant::now());
        let counter = if found.is_some() { &self.counters.cache_hits } else { &self.counters.cache_misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps a value.
    pub(crate) fn keep(&self, key: Key, value: Value) {
        self.cache().put(key, value, Instant::now());
    }

    /// Whether memory is so short that bulk work is refused.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.short_of_memory.load(Ordering::Relaxed)
    }

    /// Looks after memory, caches and chat models of this machine, once a second or so.
    ///
    /// From 90 % of the limit on the caches are emptied and bulk work is refused. Above the limit the process ends
    /// with [`rag_wire::OVER_MEMORY_LIMIT`], to be started anew: ONNX Runtime's arenas give nothing back.
    pub(crate) fn keep_house(&self) {
        self.cache().expire(Instant::now());
        self.local_models.end_idle();
        let limit = u64::from(self.settings().memory_limit_mb) << 20;
        let resident = process::resident_bytes();
        let short = limit > 0 && resident > limit / 10 * 9;
        let was_short = self.short_of_memory.swap(short, Ordering::Relaxed);
        if short {
            self.cache().clear();
        }
        if short && !was_short {
            log::warning(format_args!(
                "{} of {} MiB in use: bulk work is refused",
                resident >> 20,
                limit >> 20
            ));
        }
        if limit > 0 && resident > limit {
            log::error(format_args!(
                "{} MiB in use, the limit is {} MiB: ending",
                resident >> 20,
                limit >> 20
            ));
            process::exit_now(rag_wire::OVER_MEMORY_LIMIT);
        }
    }

    /// Health, load and counters.
    pub(crate) fn status(&self) -> EngineStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EngineStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            onnxruntime: runtime::version(),
            device: self.device.device.to_string(),
            device_note: self.device.note.clone(),
            parse_sandbox: self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            chat: chat_summary(&self.settings(), |name| {
                self.local_models.check(name).map_err(|failure| failure.message)
            }),
            counters: EngineCounters {
                queued: self.queued() as u32,
                served: count(&self.counters.served),
                failed: count(&self.counters.failed),
                texts_embedded: count(&self.counters.texts_embedded),
                tokens_embedded: count(&self.counters.tokens_embedded),
                pairs_scored: count(&self.counters.pairs_scored),
                cache_hits: count(&self.counters.cache_hits),
                cache_misses: count(&self.counters.cache_misses),
                cache_bytes: self.cache().bytes() as u64,
                resident_bytes: process::resident_bytes(),
            },
        }
    }

    /// What is known of each model folder, by name.
    pub(crate) fn list_models(&self) -> Vec<ModelInfo> {
        let settings = self.settings();
        let mut models = self.models.list(settings.allow_remote);
        for info in models.iter_mut().filter(|info| info.kind == ModelKind::Chat) {
            info.loaded = self.local_models.is_running(&info.name);
            let default = settings.chat.as_ref().and_then(|chat| chat.model.strip_prefix(LOCAL_MODEL));
            info.is_default = default == Some(info.name.as_str());
            info.problem = info.problem.take().or_else(|| self.local_models.problem(&info.name));
        }
        models
    }

    fn queued(&self) -> usize {
        let permits = [
            &self.interactive_documents,
            &self.bulk_documents,
            &self.large_interactive_documents,
            &self.large_bulk_documents,
            &self.large_texts,
        ];
        self.scheduler.queued() + permits.map(Permits::waiting).iter().sum::<usize>()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cache_bytes(settings: &Settings) -> usize {
    (settings.cache_mb as usize) << 20
}

/// Threads in all, and those that bulk work may use: by default all cores, and half of them.
fn worker_counts(settings: &Settings) -> (usize, usize) {
    let cores = std::thread::available_parallelism().map(usize::from).unwrap_or(1);
    let or = |setting: u32, default: usize| if setting == 0 { default } else { setting as usize };
    let threads = or(settings.threads, cores).clamp(1, 1024);
    let bulk = or(settings.bulk_threads, cores / 2).clamp(1, 1024);
    (threads.max(bulk), bulk)
}
