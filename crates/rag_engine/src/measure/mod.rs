//! `rag-engine measure`: how fast the models of a folder are on a device, and whether their vectors are those of another
//! run. `scripts/gpu.sh` calls it for the CPU and for a GPU.
//!
//! Rows go through the registry, the scheduler and its batches, as those of a server do; there is neither socket nor cache.
//! Standard output has a key, a tab and a value per line.

mod load;
mod texts;
mod vectors;

use crate::device;
use crate::model::{Model, Registry, runtime};
use crate::process;
use load::{Load, TEXTS_PER_REQUEST, in_words};
use rag_wire::ModelKind;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use vectors::SampleVectors;

/// Texts whose vectors are kept and compared.
const SAMPLE: usize = 64;

/// What is measured.
#[derive(Debug, clap::Args)]
pub struct MeasureArguments {
    /// Folder of models
    #[arg(long, value_name = "FOLDER")]
    models: PathBuf,
    /// libonnxruntime.so; for a GPU a build with libonnxruntime_providers_cuda.so beside it
    #[arg(long, value_name = "FILE")]
    onnxruntime: PathBuf,
    /// auto, cpu, cuda or cuda:N. A device that is named and cannot be used is an error
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// The model that embeds
    #[arg(long, value_name = "NAME", default_value = "bge-small-en-v1.5")]
    embedding: String,
    /// The model that scores pairs
    #[arg(long, value_name = "NAME", default_value = "ms-marco-MiniLM-L-12-v2")]
    reranker: String,
    /// Different texts, of about 120 words each
    #[arg(long, value_name = "NUMBER", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    texts: u32,
    /// How long to embed, and how long to score pairs
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=3600))]
    seconds: u64,
    /// Threads that compute; 0: all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    threads: u16,
    /// Write the vectors of the first texts to a file
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Compare them with those that another run has kept
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

/// Runs the subcommand. Call it while the process has one thread.
pub fn measure(arguments: &MeasureArguments) -> ExitCode {
    process::forbid_telemetry();
    let status = match report(arguments) {
        Ok(lines) => {
            let mut out = std::io::stdout().lock();
            let lines = lines.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect::<String>();
            i32::from(out.write_all(lines.as_bytes()).and_then(|()| out.flush()).is_err())
        }
        Err(problem) => {
            eprintln!("rag-engine measure: {problem}");
            1
        }
    };
    process::exit_now(status)
}

fn report(arguments: &MeasureArguments) -> Result<Vec<(&'static str, String)>, String> {
    let library = text_of(&arguments.onnxruntime)?;
    runtime::load(library).map_err(|e| format!("ONNX Runtime did not load: {e}"))?;
    let choice = device::choose(&arguments.device);
    if let Some(note) = choice.note {
        // There is no other device here: figures of the CPU would pass for those of a GPU.
        return Err(note.trim_end_matches(": using the CPU").to_owned());
    }
    let threads = match usize::from(arguments.threads) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let folders = vec![text_of(&arguments.models)?.to_owned()];
    let registry = Registry::new(folders, &arguments.embedding, &arguments.reranker, choice.device, threads);
    let embedding = open(&registry, &arguments.embedding, ModelKind::Embedding, threads)?;
    let reranker = open(&registry, &arguments.reranker, ModelKind::Reranker, threads)?;
    let load = Load::start(threads, choice.batch_limits)?;

    let texts = texts::texts(arguments.texts as usize);
    // Before anything is timed: the first runs on a GPU take its memory and choose its kernels.
    let sample = sample(&load, &embedding, &texts)?;
    let least_cosine = match &arguments.compare {
        Some(file) => Some(sample.least_cosine(&SampleVectors::read(file)?)?),
        None => None,
    };
    if let Some(file) = &arguments.keep {
        sample.write(file)?;
    }
    let time = Duration::from_secs(arguments.seconds);
    let embedded = load.embed(&embedding, &texts, time)?;
    let pairs = device::pair_budget(reranker.backend.limits().device);
    let scored = load.score(&reranker, &texts, pairs, time)?;
    let query = load.query(&embedding, &texts)?;
    let query_beside_bulk = load.query_beside_bulk(&embedding, &texts)?;
    let search = load.search(&reranker, &texts, pairs)?;
    let changed = load.changed_in_company(&embedding, &reranker, &texts)?;

    let longest = (embedded.tokens / embedded.rows.max(1)) as u32;
    let runs = |model: &Model, is_reproducible: bool| {
        let limits = model.backend.limits();
        match (limits.one_by_one, is_reproducible) {
            (false, false) => format!("up to {} rows at a time", choice.batch_limits.rows_of(longest)),
            (false, true) if limits.has_fixed_shapes => "in fixed shapes".to_owned(),
            _ => "one row at a time".to_owned(),
        }
    };
    let mut lines = vec![
        ("device", choice.device.to_string()),
        ("onnxruntime", runtime::version()?),
        ("threads", threads.to_string()),
        ("embedding_graph", graph(&embedding)),
        ("embedding_runs", runs(&embedding, false)),
        ("chunks_per_second", embedded.per_second(embedded.rows)),
        ("tokens_per_second", embedded.per_second(embedded.tokens)),
        ("chunks", embedded.rows.to_string()),
        ("chunk_seconds", format!("{:.2}", embedded.time.as_secs_f64())),
        ("reranker_graph", graph(&reranker)),
        ("reranker_runs", runs(&reranker, load::SCORES_ARE_REPRODUCIBLE)),
        ("pairs_per_second", scored.per_second(scored.rows)),
        ("pairs", scored.rows.to_string()),
        ("pair_seconds", format!("{:.2}", scored.time.as_secs_f64())),
        ("query_ms", in_milliseconds(query)),
        ("query_beside_bulk_ms", in_milliseconds(query_beside_bulk)),
        ("search_pairs", pairs.to_string()),
        ("search_pairs_ms", in_milliseconds(search)),
        ("changed_in_company", changed.to_string()),
    ];
    lines.extend(least_cosine.map(|cosine| ("least_cosine", format!("{cosine:.6}"))));
    Ok(lines)
}

/// Opens a model of this machine and what it needs for so many threads.
fn open(registry: &Arc<Registry>, name: &str, kind: ModelKind, threads: usize) -> Result<Arc<Model>, String> {
    let model = registry.model(Some(name), kind, None).map_err(in_words)?;
    if !model.backend.limits().is_local() {
        return Err(format!("model \"{name}\" is not computed on this machine"));
    }
    model.backend.warm_up(threads).map_err(in_words)?;
    Ok(model)
}

fn sample(load: &Load, model: &Arc<Model>, texts: &[String]) -> Result<SampleVectors, String> {
    let mut vectors = Vec::new();
    for texts in texts[..texts.len().min(SAMPLE)].chunks(TEXTS_PER_REQUEST) {
        vectors.extend(load.vectors(model, texts)?);
    }
    Ok(SampleVectors { model: model.folder.name.clone(), vectors })
}

fn in_milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}

/// The model's name and the file that is run of it.
fn graph(model: &Model) -> String {
    let file = model.backend.limits().device.and_then(|device| model.folder.graph_on(device));
    let name = file.as_deref().and_then(Path::file_name).unwrap_or_default();
    format!("{}/{}", model.folder.name, name.to_string_lossy())
}

fn text_of(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{}: a path must be UTF-8", path.display()))
}
