//! The settings: one table that defines each once and feeds Postgres, whose `pg_settings` feeds the documentation.
//!
//! Whatever the engine is told is a SIGHUP setting, read by the supervisor. Paths, addresses and keys are
//! visible to superusers only. What the engine itself makes of a value stands in `rag_wire::Settings`.

use crate::pg::server::{self, expanded};
use crate::setting::{Context, Integer, Kind, Real, Setting, Switch, Text, Unit, Visibility, c_string};
use std::path::PathBuf;
use std::time::Duration;

macro_rules! settings {
    ($($variable:ident $name:literal $kind:ident($($bounds:expr),*) $context:ident $visibility:ident
       $short:literal $long:literal;)*) => {
        $(settings!(@static $variable $kind($($bounds),*));)*

        static SETTINGS: &[Setting] = &[$(Setting {
            name: const { c_string(concat!("rag_ext.", $name, "\0")) },
            kind: settings!(@kind $variable $kind($($bounds),*)),
            context: Context::$context,
            visibility: Visibility::$visibility,
            short: const { c_string(concat!($short, "\0")) },
            long: const { c_string(concat!($long, "\0")) },
        }),*];
    };
    (@static $variable:ident switch($default:expr)) => { static $variable: Switch = Switch::new($default); };
    (@static $variable:ident text($default:expr)) => { static $variable: Text = Text::new(Some($default)); };
    (@static $variable:ident integer($default:expr, $range:expr, $unit:expr)) => {
        static $variable: Integer = Integer::new($default);
    };
    (@static $variable:ident real($default:expr, $range:expr)) => { static $variable: Real = Real::new($default); };
    (@kind $variable:ident switch($default:expr)) => { Kind::Switch { value: &$variable } };
    (@kind $variable:ident text($default:expr)) => { Kind::Text { value: &$variable } };
    (@kind $variable:ident real($default:expr, $range:expr)) => {
        Kind::Real { value: &$variable, min: *$range.start(), max: *$range.end() }
    };
    (@kind $variable:ident integer($default:expr, $range:expr, $unit:expr)) => {
        Kind::Integer { value: &$variable, min: *$range.start(), max: *$range.end(), unit: $unit }
    };
}

settings! {
    USER_ID "user_id" text(c"") User Identity
        "Application user for whom a registered gateway speaks."
        "A role that is no registered gateway is refused while it is set. Empty sees nothing and cannot write. Use SET LOCAL behind connection poolers.";
    ALL_DOMAINS "all_domains" switch(false) Superuser Everyone
        "Lets searches see every owner's documents."
        "Without it even superusers search only what their own principals may see.";
    EXACT_SEARCH_LIMIT "exact_search_limit" integer(2_000, 0..=i32::MAX, Unit::Count) User Everyone
        "Most visible chunks that vector search compares one by one."
        "Above it codes of the vectors tell which are compared.";
    FILTER_LIST_LIMIT "filter_list_limit" integer(5_000, 0..=i32::MAX, Unit::Count) User Everyone
        "Most chunks of a scope of which all that a filter lets through is listed before a search."
        "In a larger one it is listed where that is likely to be quicker than asking about what is found; with 0 never.";
    CANDIDATES "candidates" integer(100, 1..=1000, Unit::Count) User Everyone
        "Chunks that a search takes from each retriever by default."
        "The option \"candidates\" of a call overrides it.";
    ENGINE_TIMEOUT "engine_timeout" integer(60_000, 1..=3_600_000, Unit::Milliseconds) User Everyone
        "Longest wait for one interactive request to the engine."
        "Generated answers have rag_ext.llm_deadline instead, the reranking of a search rag_ext.rerank_timeout. An engine that says nothing at all for 5 s, as one that is stopped, counts as down.";
    RERANK_LIMIT "rerank_limit" integer(0, 0..=1000, Unit::Count) User Everyone
        "Most pairs of query and chunk that a search reranks."
        "The option rerank_limit of a search goes before it. 0: 10 where the reranker runs on the CPU, 50 where it runs on a GPU or behind an endpoint.";
    RERANK_TIMEOUT "rerank_timeout" integer(30_000, 1..=3_600_000, Unit::Milliseconds) User Everyone
        "Longest time that a search spends on reranking."
        "Beyond it the search keeps the order that it had. What was scored until then is not used.";
    RERANK_TOP_N "rerank_top_n" integer(0, 0..=1000, Unit::Count) User Everyone
        "Most rows that a search leaves after reranking."
        "The option rerank_top_n of a search goes before it. 0: as many as are asked for.";
    CONTEXT_LIMIT "context_limit" integer(10, 1..=100, Unit::Count) User Everyone
        "Most chunks, with their sections, that a chat model reads for an answer."
        "The option context_limit of a call goes before it. They share rag_ext.context_budget.";
    MIN_SUPPORT "min_support" real(-1.0, -1.0..=1.0) User Everyone
        "Least support of an answer's citations, from 0 to 1."
        "The option min_support of a call goes before it. Below 0: the answer_threshold of the reranker, or 0.5 where it has none.";
    UNSUPPORTED "unsupported" text(c"drop") User Everyone
        "What becomes of a chat model's sentences that nothing in their sources supports: drop, flag or keep."
        "flag marks them, keep leaves them as they are; both list them as unsupported. The option policy of a call goes before it.";
    QUERY_LOG "query_log" switch(false) Superuser Everyone
        "Writes calls of rag_search and rag_answer to rag.query_log."
        "Workers do so, a moment later. On a standby, in read-only transactions, and where more come than they can write, calls are left out and counted: see rag_status().";
    QUERY_LOG_RETENTION "query_log_retention" integer(30, 1..=36_500, Unit::Count) Reload Everyone
        "Days after which rows of rag.query_log are deleted."
        "Workers do so when they come by.";
    ANSWER_LOG "answer_log" switch(false) Superuser Everyone
        "Writes answers with their citations to rag.answer_log."
        "Workers do so, a moment later. On a standby, in read-only transactions, and where more come than they can write, answers are left out and counted: see rag_status().";
    ANSWER_LOG_RETENTION "answer_log_retention" integer(30, 1..=36_500, Unit::Count) Reload Everyone
        "Days after which rows of rag.answer_log are deleted."
        "Workers do so when they come by.";
    SYNC "sync" switch(false) User Everyone
        "Processes documents in the transaction that writes them."
        "Each INSERT, UPDATE or COPY waits for the engine, and what it wrote is found at once. Off: background workers process what is committed.";
    INGEST_WORKERS "ingest_workers" integer(2, 0..=16, Unit::Count) Reload Everyone
        "Most background workers that ingest one owner's documents, per database."
        "One more is there for an owner whom none of them serves. 0 stops ingestion. All databases together use at most half of max_worker_processes.";
    MAX_TRIES "max_tries" integer(5, 1..=100, Unit::Count) Reload Everyone
        "Tries after which a job is listed as failed."
        "Tries are spaced by a growing delay. A document that does not parse is not tried again.";
    ATTACHED_TIMEOUT "attached_timeout" integer(120_000, 100..=3_600_000, Unit::Milliseconds) Reload Everyone
        "Longest time that background work lets one statement on an attached table take."
        "Its policies and expressions are its owner's. Where they cannot be cancelled, the worker ends some seconds later, and the table is followed no more.";
    GRAPH "graph" switch(true) Reload Everyone
        "Finds entities, relations and links in documents when they are processed."
        "Off: documents that are processed from then on have none, and option graph of a search finds nothing of theirs.";
    MERGE_ENABLED "merge_enabled" switch(true) Reload Everyone
        "Merges the segments of the keyword index in the background."
        "A logical subscriber, which receives the publisher's segments, merges none.";
    MAX_SEGMENT_SIZE "max_segment_size" integer(256, 1..=1024, Unit::Megabytes) Reload Everyone
        "Largest segment of the keyword index that merging makes."
        "A merge takes as much of the disk meanwhile, and some bytes of memory for each chunk.";
    LAUNCHER_NAPTIME "launcher_naptime" integer(60, 1..=86_400, Unit::Seconds) Reload Everyone
        "Time between two looks for work that no commit announced."
        "Such as that of prepared transactions. Databases without the extension are looked at every ten minutes.";
    EMBEDDING_MODEL "embedding_model" text(c"bge-small-en-v1.5") Reload Everyone
        "Embedding model of new collections."
        "The name of a folder under rag_ext.model_path. A change restarts the engine.";
    RERANK_MODEL "rerank_model" text(c"ms-marco-MiniLM-L-12-v2") Reload Everyone
        "Cross-encoder that reranks."
        "The name of a folder under rag_ext.model_path; empty for none. A change restarts the engine.";
    DEVICE "device" text(c"auto") Reload Everyone
        "Where models run: auto, cpu, cuda or cuda:N."
        "auto takes a CUDA device if ONNX Runtime and the driver have one. A change restarts the engine.";
    ENGINE_PATH "engine_path" text(c"$libdir/rag-engine") Reload Superusers
        "Path of the engine program."
        "$libdir stands for the server's library folder. A change restarts the engine.";
    MODEL_PATH "model_path" text(c"$sharedir/rag_ext/models") Reload Superusers
        "Folders that hold model folders, separated by colons."
        "The first that has a model wins; $sharedir stands for the server's share folder. A change restarts the engine.";
    ONNXRUNTIME_PATH "onnxruntime_path" text(c"$libdir/rag_ext/libonnxruntime.so") Reload Superusers
        "Path of the ONNX Runtime library."
        "$libdir stands for the server's library folder. A change restarts the engine.";
    THREADS "threads" integer(0, 0..=1024, Unit::Count) Reload Everyone
        "Threads of the engine for interactive work."
        "0 takes all cores. A change restarts the engine.";
    BULK_THREADS "bulk_threads" integer(0, 0..=1024, Unit::Count) Reload Everyone
        "Threads of the engine for ingestion."
        "0 takes half of the cores, at least one. A change restarts the engine.";
    ENGINE_MEMORY_LIMIT "engine_memory_limit" integer(-1, -1..=16_777_216, Unit::Megabytes) Reload Everyone
        "Most memory that the engine may hold."
        "-1 is half of what the machine or container has, at least 1 GB; 0 sets no limit. Near it the engine refuses bulk work, beyond it it ends and starts anew. A change restarts the engine.";
    ENGINE_QUEUE_LIMIT "engine_queue_limit" integer(1024, 1..=1_000_000, Unit::Count) Reload Everyone
        "Most requests that may wait in the engine, in each of its two queues."
        "A request beyond it fails at once with SQLSTATE 53000, unless it is its caller's only one.";
    CACHE_SIZE "cache_size" integer(64, 0..=65_536, Unit::Megabytes) Reload Everyone
        "Memory of the engine's caches of query vectors, scores and completions."
        "0 turns them off.";
    CACHE_LIFETIME "cache_lifetime" integer(600, 0..=86_400, Unit::Seconds) Reload Everyone
        "Time after which a cached value is forgotten."
        "0 turns the caches off.";
    ALLOW_REMOTE "allow_remote" switch(false) Reload Everyone
        "Lets the engine call anything beyond this machine."
        "While it is off, nothing leaves the machine: endpoints must be loopback addresses.";
    LLM_URL "llm_url" text(c"") Reload Superusers
        "Base URL of an OpenAI-compatible chat endpoint, such as http://127.0.0.1:8080/v1."
        "Empty: no chat model is asked but one of this machine, see rag_ext.llm_model.";
    LLM_MODEL "llm_model" text(c"") Reload Superusers
        "Chat model: its name at the endpoint, or local/FOLDER for a GGUF file of this machine."
        "FOLDER is one in rag_ext.model_path. Without endpoint and local model, answers are extracted from the documents.";
    LLM_SIMPLE_MODEL "llm_simple_model" text(c"") Reload Superusers
        "Chat model for answers to simple questions, named as in rag_ext.llm_model."
        "Empty: rag_ext.llm_model answers them as well. The diagnostics of an answer say whether its question is simple, and which model was asked.";
    LLM_FALLBACK_MODELS "llm_fallback_models" text(c"") Reload Superusers
        "Chat models, separated by commas, that are asked where the first one fails, named as in rag_ext.llm_model."
        "At most 8, one after the other. A model's tries together take no more than its share of the time that is left, so that the next one has time too.";
    LLM_API_KEY_FILE "llm_api_key_file" text(c"") Reload Superusers
        "File that holds the chat endpoint's API key."
        "Read by the server's user, relative to the data directory; reloading the configuration reads it again.";
    CONTEXT_BUDGET "context_budget" integer(0, 0..=1_000_000, Unit::Count) User Everyone
        "Most tokens of passages and conversation that a chat model reads for an answer, instructions and question beside them."
        "The option context_budget of a call goes before it. A model of this machine counts them itself; else four letters, or two digits or marks, are one. 0: 4,000, or 1,000 for a model of this machine.";
    LLM_TIMEOUT "llm_timeout" integer(30_000, 100..=3_600_000, Unit::Milliseconds) Reload Superusers
        "Longest wait for one try at the chat endpoint."
        "If all tries fail, the answer is extracted from the documents. A slow model, as on a CPU, needs more; rag_ext.llm_deadline bounds all tries.";
    LLM_DEADLINE "llm_deadline" integer(60_000, 100..=3_600_000, Unit::Milliseconds) Reload Superusers
        "Longest time for a generated answer: all tries at the chat endpoint and the check of what it wrote."
        "Beyond it the answer is extracted from the documents. Models that are asked one after the other share it.";
    LLM_RETRIES "llm_retries" integer(2, 0..=2, Unit::Count) Reload Superusers
        "Tries at the chat endpoint after the first, for each model."
        "After 1 s, then after 3 s, or when the endpoint says. Time-outs and the statuses 429 and 5xx are tried again, nothing else.";

    QUERY_DEADLINE "query_deadline" integer(5_000, 100..=600_000, Unit::Milliseconds) User Everyone
        "Longest time that the stages of a search take which it can do without: all of them together."
        "What is not done by then is left out, and the diagnostics say so. Retrievers and reranking have times of their own.";

    PARSE_SANDBOX "parse_sandbox" text(c"auto") Reload Everyone
        "Confinement of the process that parses a document: auto, require or off."
        "auto uses what the kernel offers, require refuses documents unless landlock and seccomp are in force.";
    PARSE_MEMORY_LIMIT "parse_memory_limit" integer(1024, 64..=1_048_576, Unit::Megabytes) Reload Everyone
        "Most memory for parsing one document."
        "A document that needs more fails.";
    PARSE_CPU_LIMIT "parse_cpu_limit" integer(120, 1..=86_400, Unit::Seconds) Reload Everyone
        "Most CPU time for parsing one document."
        "A document that needs more fails.";
    OCR_PROGRAM "ocr_program" text(c"") Reload Superusers
        "Path of a program that reads scanned PDF files."
        "It gets the PDF on standard input and writes plain text with form feeds between pages; empty for none. It is not confined like a parser.";
    OCR_TIMEOUT "ocr_timeout" integer(600, 1..=86_400, Unit::Seconds) Reload Everyone
        "Longest time that rag_ext.ocr_program may take for one document."
        "Its memory is limited by rag_ext.parse_memory_limit.";
    MAX_DOCUMENT_SIZE "max_document_size" integer(50, 1..=100, Unit::Megabytes) Reload Everyone
        "Largest document that is taken in."
        "A larger one is refused with SQLSTATE 54000.";
}

/// Defines all settings in this process. Call once, from `_PG_init`.
pub(crate) fn register() {
    for setting in SETTINGS {
        setting.register();
    }
    server::reserve_setting_prefix(c"rag_ext");
}

fn text(setting: &Text) -> String {
    setting.get().map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
}

fn count(setting: &Integer) -> u32 {
    u32::try_from(setting.get()).unwrap_or(0)
}

/// The application user a gateway speaks for; `None` if unset or empty.
pub(crate) fn user_id() -> Option<String> {
    Some(text(&USER_ID)).filter(|id| !id.is_empty())
}

/// Whether searches see every domain.
pub(crate) fn all_domains() -> bool {
    ALL_DOMAINS.get()
}

/// Most visible chunks for exact vector search.
pub(crate) fn exact_search_limit() -> i64 {
    i64::from(EXACT_SEARCH_LIMIT.get())
}

/// Most chunks of a scope of which a filter lists all beforehand.
pub(crate) fn filter_list_limit() -> usize {
    count(&FILTER_LIST_LIMIT) as usize
}

/// Hits of each retriever.
pub(crate) fn candidates() -> usize {
    count(&CANDIDATES) as usize
}

/// Deadline of an interactive request.
pub(crate) fn engine_timeout() -> Duration {
    Duration::from_millis(count(&ENGINE_TIMEOUT).into())
}

/// Most pairs that a search reranks; `None` leaves it to the engine.
pub(crate) fn rerank_limit() -> Option<usize> {
    usize::try_from(RERANK_LIMIT.get()).ok().filter(|limit| *limit > 0)
}

/// Longest time of the reranking of a search.
pub(crate) fn rerank_timeout() -> Duration {
    Duration::from_millis(count(&RERANK_TIMEOUT).into())
}

/// Most rows after reranking; `None`: as many as are asked for.
pub(crate) fn rerank_top_n() -> Option<usize> {
    usize::try_from(RERANK_TOP_N.get()).ok().filter(|most| *most > 0)
}

/// Most chunks of a chat model's prompt.
pub(crate) fn context_limit() -> usize {
    count(&CONTEXT_LIMIT) as usize
}

/// Least support of citations; `None` leaves it to the model.
pub(crate) fn min_support() -> Option<f64> {
    Some(MIN_SUPPORT.get()).filter(|least| *least >= 0.0)
}

/// Most ingest workers per database; 0 is none.
pub(crate) fn ingest_workers() -> usize {
    usize::try_from(INGEST_WORKERS.get()).unwrap_or(0)
}

/// Tries of a job.
pub(crate) fn max_tries() -> i32 {
    MAX_TRIES.get()
}

/// Longest time of one statement on an attached table.
pub(crate) fn attached_timeout() -> Duration {
    Duration::from_millis(count(&ATTACHED_TIMEOUT).into())
}

/// Whether documents that are processed get their part of the graph.
pub(crate) fn graph() -> bool {
    GRAPH.get()
}

/// Whether workers merge segments.
pub(crate) fn merge_enabled() -> bool {
    MERGE_ENABLED.get()
}

/// Most bytes of a segment that merging makes.
pub(crate) fn max_segment_bytes() -> u64 {
    u64::from(count(&MAX_SEGMENT_SIZE)) << 20
}

/// What becomes of a chat model's unsupported sentences: `drop`, `flag` or `keep`.
pub(crate) fn unsupported() -> String {
    text(&UNSUPPORTED)
}

/// Whether searches are noted for the log.
pub(crate) fn query_log() -> bool {
    QUERY_LOG.get()
}

/// Days that the log of searches is kept.
pub(crate) fn query_log_retention() -> i32 {
    QUERY_LOG_RETENTION.get()
}

/// Whether answers are noted for their log.
pub(crate) fn answer_log() -> bool {
    ANSWER_LOG.get()
}

/// Days that the log of answers is kept.
pub(crate) fn answer_log_retention() -> i32 {
    ANSWER_LOG_RETENTION.get()
}

/// Time between two looks at every database.
pub(crate) fn launcher_naptime() -> Duration {
    Duration::from_secs(count(&LAUNCHER_NAPTIME).into())
}

/// Default embedding model.
pub(crate) fn embedding_model() -> String {
    text(&EMBEDDING_MODEL)
}

/// Default reranking model; empty for none.
pub(crate) fn rerank_model() -> String {
    text(&RERANK_MODEL)
}

/// Device asked for.
pub(crate) fn device() -> String {
    text(&DEVICE)
}

/// The engine program.
pub(crate) fn engine_path() -> PathBuf {
    PathBuf::from(expanded(&text(&ENGINE_PATH)))
}

/// The program that runs chat models of this machine: it is installed beside the engine.
pub(crate) fn llm_program() -> String {
    engine_path().with_file_name("rag-llm").to_string_lossy().into_owned()
}

/// Folders of model folders, in the order of search.
pub(crate) fn model_folders() -> Vec<String> {
    text(&MODEL_PATH).split(':').map(str::trim).filter(|folder| !folder.is_empty()).map(expanded).collect()
}

/// The ONNX Runtime library.
pub(crate) fn onnxruntime_path() -> String {
    expanded(&text(&ONNXRUNTIME_PATH))
}

/// Threads for interactive work; 0 is all cores.
pub(crate) fn threads() -> u32 {
    count(&THREADS)
}

/// Threads for bulk work; 0 is half of the cores.
pub(crate) fn bulk_threads() -> u32 {
    count(&BULK_THREADS)
}

/// Memory limit of the engine, in MiB: 0 is none, `None` a part of the machine's.
pub(crate) fn engine_memory_limit() -> Option<u32> {
    u32::try_from(ENGINE_MEMORY_LIMIT.get()).ok()
}

/// Most waiting requests per lane.
pub(crate) fn engine_queue_limit() -> u32 {
    count(&ENGINE_QUEUE_LIMIT)
}

/// Size of the engine's caches, in MiB.
pub(crate) fn cache_size() -> u32 {
    count(&CACHE_SIZE)
}

/// Lifetime of a cached value, in seconds.
pub(crate) fn cache_lifetime() -> u32 {
    count(&CACHE_LIFETIME)
}

/// Whether anything beyond loopback may be called.
pub(crate) fn allow_remote() -> bool {
    ALLOW_REMOTE.get()
}

/// Base URL of the chat endpoint; `None` if there is none.
pub(crate) fn llm_url() -> Option<String> {
    Some(text(&LLM_URL)).filter(|url| !url.is_empty())
}

/// Whether a chat model may be asked: at the endpoint, or one of this machine.
pub(crate) fn has_chat_model() -> bool {
    let is_local = |model: &String| rag_wire::local_model(model).is_some();
    llm_url().is_some()
        || is_local(&llm_model())
        || llm_simple_model().iter().any(is_local)
        || llm_fallback_models().iter().any(is_local)
}

/// Name of the chat model that is asked first.
pub(crate) fn llm_model() -> String {
    text(&LLM_MODEL).trim().to_owned()
}

/// Name of the chat model for simple questions, if there is one of their own.
pub(crate) fn llm_simple_model() -> Option<String> {
    Some(text(&LLM_SIMPLE_MODEL).trim().to_owned()).filter(|model| !model.is_empty())
}

/// Most models that are asked after the first.
const MAX_FALLBACK_MODELS: usize = 8;

/// Names of the chat models that are asked where the first one fails.
pub(crate) fn llm_fallback_models() -> Vec<String> {
    let names = text(&LLM_FALLBACK_MODELS);
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.take(MAX_FALLBACK_MODELS).map(str::to_owned).collect()
}

/// File with the chat endpoint's key; `None` if it needs none.
pub(crate) fn llm_api_key_file() -> Option<PathBuf> {
    Some(text(&LLM_API_KEY_FILE)).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Most tokens of passages and conversation in a prompt for an answer; `None` leaves it to the model.
pub(crate) fn context_budget() -> Option<usize> {
    usize::try_from(CONTEXT_BUDGET.get()).ok().filter(|most| *most > 0)
}

/// Time-out of one try at the chat endpoint.
pub(crate) fn llm_timeout() -> Duration {
    Duration::from_millis(count(&LLM_TIMEOUT).into())
}

/// Time of a generated answer with all tries and its check.
pub(crate) fn llm_deadline() -> Duration {
    Duration::from_millis(count(&LLM_DEADLINE).into())
}

/// Time of all stages that one search can do without.
pub(crate) fn query_deadline() -> Duration {
    Duration::from_millis(count(&QUERY_DEADLINE).into())
}

/// Tries at the chat endpoint after the first.
pub(crate) fn llm_retries() -> u32 {
    count(&LLM_RETRIES)
}

/// `auto`, `require` or `off`.
pub(crate) fn parse_sandbox() -> String {
    text(&PARSE_SANDBOX)
}

/// Memory of the parse child, in MiB.
pub(crate) fn parse_memory_limit() -> u32 {
    count(&PARSE_MEMORY_LIMIT)
}

/// CPU seconds of the parse child.
pub(crate) fn parse_cpu_limit() -> u32 {
    count(&PARSE_CPU_LIMIT)
}

/// Path of the program that reads scans, if there is one.
pub(crate) fn ocr_program() -> Option<String> {
    Some(text(&OCR_PROGRAM)).filter(|path| !path.is_empty())
}

/// Seconds that it may take.
pub(crate) fn ocr_timeout() -> u32 {
    count(&OCR_TIMEOUT)
}

/// Most bytes of a document.
pub(crate) fn max_document_bytes() -> u64 {
    u64::from(count(&MAX_DOCUMENT_SIZE)) << 20
}
