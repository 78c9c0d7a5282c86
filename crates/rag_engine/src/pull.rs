//! `rag-engine pull`: fetches a model's folder from a hub that speaks Hugging Face's protocol.
//!
//! A model is written beside its place and renamed when all of it is there and agrees with the sums that the hub
//! names, so a folder of models never holds half a model.

use crate::model::ModelFolder;
use reqwest::Url;
use reqwest::blocking::{Client, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The hub, unless `--hub` or `HF_ENDPOINT` names another.
const DEFAULT_HUB: &str = "https://huggingface.co";

/// Files besides graph and weights that say how a model is used.
const CONFIGURATION: [&str; 9] = [
    "tokenizer.json",
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "LICENSE",
];

/// Most bytes of the list of a repository's files.
const MAX_LIST_BYTES: u64 = 16 << 20;

/// Longest wait for a connection and between two pieces of an answer.
const SILENCE: Duration = Duration::from_secs(60);

/// What is to be fetched, and where it goes.
#[derive(Debug, clap::Args)]
pub struct PullArguments {
    /// Such as BAAI/bge-small-en-v1.5; it must hold a tokenizer.json and an ONNX graph
    repository: String,
    /// Folder of models, such as $(pg_config --sharedir)/rag_ext/models
    #[arg(long, value_name = "FOLDER")]
    into: PathBuf,
    /// Name of the model there; by default the repository's last part
    #[arg(long = "as", value_name = "NAME", value_parser = model_name)]
    name: Option<String>,
    /// Branch, tag or commit
    #[arg(long, value_name = "NAME", default_value = "main")]
    revision: String,
    /// Which ONNX file to take, such as onnx/model_quantized.onnx; by default onnx/model.onnx
    #[arg(long, value_name = "FILE")]
    graph: Option<String>,
    /// What the model does, where the repository does not tell
    #[arg(long, value_name = "KIND", value_parser = ["embedding", "reranker"])]
    kind: Option<String>,
    /// The hub; by default $HF_ENDPOINT, else the Hugging Face hub. $HF_TOKEN is sent to it
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Replace a model of that name
    #[arg(long)]
    force: bool,
}

/// Runs the subcommand. Progress and problems go to standard error; the model's folder to standard output.
pub fn pull(arguments: PullArguments) -> ExitCode {
    match Pull::new(arguments).and_then(|pull| pull.carry_out()) {
        Ok(folder) => {
            let _ = writeln!(std::io::stdout(), "{}", folder.display());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("rag-engine pull: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn model_name(name: &str) -> Result<String, String> {
    if crate::model::folder::is_plain_name(name) {
        return Ok(name.to_owned());
    }
    Err("it cannot be the name of a model: letters, digits, . _ - + only".into())
}

/// The arguments with their defaults filled in.
struct Pull {
    repository: String,
    hub: String,
    revision: String,
    into: PathBuf,
    name: String,
    graph: Option<String>,
    kind: Option<String>,
    force: bool,
}

impl Pull {
    fn new(arguments: PullArguments) -> Result<Self, String> {
        let PullArguments { repository, into, name, revision, graph, kind, hub, force } = arguments;
        let from_environment = || std::env::var("HF_ENDPOINT").unwrap_or_else(|_| DEFAULT_HUB.to_owned());
        let hub = hub.unwrap_or_else(from_environment);
        let last_part = || repository.rsplit('/').next().unwrap_or_default();
        let name = match name {
            Some(name) => name,
            None => {
                model_name(last_part()).map_err(|e| format!("{:?}: {e}; --as gives another", last_part()))?
            }
        };
        Ok(Self { repository, hub, revision, into, name, graph, kind, force })
    }

    fn carry_out(&self) -> Result<PathBuf, String> {
        let place = self.into.join(&self.name);
        if place.exists() && !self.force {
            return Err(format!("{} exists already; --force replaces it", place.display()));
        }
        let hub = Hub::new(&self.hub)?;
        let listing = hub.list(&self.repository, &self.revision)?;
        let files = self.choose(&listing)?;
        fs::create_dir_all(&self.into).map_err(|e| format!("{}: {e}", self.into.display()))?;
        let aside = tempfile::Builder::new()
            .prefix(&format!(".{}.", self.name))
            .tempdir_in(&self.into)
            .map_err(|e| format!("{}: {e}", self.into.display()))?;
        let mut sums = Map::new();
        for (file, target) in files {
            let sum = hub.fetch(&self.repository, &self.revision, file, &aside.path().join(&target))?;
            sums.insert(target, Value::String(sum));
        }
        self.describe(aside.path(), &listing, sums)?;
        // What cannot be used is not put into place.
        let found = ModelFolder::read(aside.path(), &self.name, &[])?;
        let info = found.info();
        eprintln!("{}: {:?}, {} numbers, {} tokens", self.name, info.kind, info.dimension, info.max_tokens);
        put_into_place(&aside.keep(), &place)?;
        Ok(place)
    }

    /// Files to fetch, and where each goes in the folder.
    fn choose<'l>(&self, listing: &'l Listing) -> Result<Vec<(&'l Sibling, String)>, String> {
        let find = |name: &str| listing.siblings.iter().find(|file| file.rfilename == name);
        let graph = match &self.graph {
            Some(name) => find(name).ok_or(format!("{} has no file {name}", self.repository))?,
            None => ["onnx/model.onnx", "model.onnx"]
                .iter()
                .find_map(|name| find(name))
                .ok_or_else(|| no_graph(&self.repository, listing))?,
        };
        let tokenizer = find("tokenizer.json").ok_or(format!("{} has no tokenizer.json", self.repository))?;
        let mut files = vec![(tokenizer, "tokenizer.json".to_owned())];
        let others = CONFIGURATION.iter().skip(1).filter_map(|name| find(name));
        files.extend(others.map(|file| (file, file.rfilename.clone())));
        files.push((graph, "model.onnx".to_owned()));
        // Weights outside of the graph's file keep their names, for the graph refers to them.
        let (folder, base) = graph.rfilename.rsplit_once('/').unwrap_or(("", &graph.rfilename));
        for file in &listing.siblings {
            let (its_folder, its_name) = file.rfilename.rsplit_once('/').unwrap_or(("", &file.rfilename));
            let is_weights = its_name.starts_with(base) && its_name.len() > base.len();
            if its_folder == folder && is_weights && is_plain_file(its_name) {
                files.push((file, its_name.to_owned()));
            }
        }
        Ok(files)
    }

    /// Writes `rag_model.json`: where the model came from, its licence, languages and sums.
    fn describe(&self, folder: &Path, listing: &Listing, sums: Map<String, Value>) -> Result<(), String> {
        let card = &listing.card_data;
        let languages = match &card.language {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(several)) => {
                several.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        let mut model = json!({
            "source": format!("{} at {}", self.repository, listing.sha.as_deref().unwrap_or(&self.revision)),
            "languages": languages,
            "sha256": sums,
        });
        if let Some(license) = card.license.as_ref().and_then(Value::as_str) {
            model["license"] = json!(license);
        }
        if let Some(kind) = &self.kind {
            model["kind"] = json!(kind);
        }
        let text = serde_json::to_string_pretty(&model).map_err(|e| e.to_string())?;
        fs::write(folder.join("rag_model.json"), text + "\n").map_err(|e| format!("rag_model.json: {e}"))
    }
}

fn no_graph(repository: &str, listing: &Listing) -> String {
    let graphs: Vec<&str> = listing
        .siblings
        .iter()
        .map(|file| file.rfilename.as_str())
        .filter(|name| name.ends_with(".onnx"))
        .take(10)
        .collect();
    if graphs.is_empty() {
        return format!("{repository} has no ONNX graph; export one, or look for a repository that has");
    }
    format!("{repository} has no onnx/model.onnx; choose with --graph: {}", graphs.join(", "))
}

/// Puts a folder where another may stand.
fn put_into_place(folder: &Path, place: &Path) -> Result<(), String> {
    let problem = |e: std::io::Error| format!("{}: {e}", place.display());
    // Models are read by the server's user, who is another one.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(problem)?;
    if place.exists() {
        let old = folder.with_extension("old");
        fs::rename(place, &old).map_err(problem)?;
        fs::rename(folder, place).map_err(problem)?;
        return fs::remove_dir_all(&old).map_err(problem);
    }
    fs::rename(folder, place).map_err(problem)
}

/// Whether a name can only mean a file right inside a folder.
fn is_plain_file(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    sha: Option<String>,
    siblings: Vec<Sibling>,
    #[serde(default, rename = "cardData")]
    card_data: Card,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Card {
    license: Option<Value>,
    language: Option<Value>,
}

/// A hub and how it is asked.
struct Hub {
    base: Url,
    client: Client,
    token: Option<String>,
}

impl Hub {
    fn new(base: &str) -> Result<Self, String> {
        let base = Url::parse(base).map_err(|e| format!("the hub's address {base:?} cannot be read: {e}"))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err("the hub's address must be http or https".into());
        }
        let client = Client::builder()
            .connect_timeout(SILENCE)
            .timeout(None)
            .user_agent(concat!("rag-engine/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self { base, client, token: std::env::var("HF_TOKEN").ok().filter(|token| !token.is_empty()) })
    }

    fn get(&self, path: &str, query: &str) -> Result<Response, String> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        url.set_query((!query.is_empty()).then_some(query));
        let mut request = self.client.get(url.clone());
        if let Some(token) = &self.token {
            // Taken off by the client where a redirect leads to another host.
            request = request.bearer_auth(token);
        }
        let response = request.send().map_err(|e| format!("{url}: {}", e.without_url()))?;
        match response.status().as_u16() {
            200..=299 => Ok(response),
            401 | 403 => {
                Err(format!("{url}: the hub refuses (status {}); is HF_TOKEN needed?", response.status()))
            }
            404 => Err(format!("{url}: not found")),
            status => Err(format!("{url}: the hub answered with status {status}")),
        }
    }

    fn list(&self, repository: &str, revision: &str) -> Result<Listing, String> {
        let response = self.get(&format!("api/models/{repository}/revision/{revision}"), "blobs=true")?;
        let mut bytes = Vec::new();
        response.take(MAX_LIST_BYTES).read_to_end(&mut bytes).map_err(|e| format!("{repository}: {e}"))?;
        serde_json::from_slice(&bytes)
            .map_err(|e| format!("{repository}: the hub's list of files cannot be read: {e}"))
    }

    /// Fetches one file and returns its SHA-256, which agrees with the hub's where it names one.
    fn fetch(&self, repository: &str, revision: &str, file: &Sibling, to: &Path) -> Result<String, String> {
        let name = &file.rfilename;
        let mut response = self.get(&format!("{repository}/resolve/{revision}/{name}"), "")?;
        let expected = file.size.or(response.content_length());
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let mut out = File::create(to).map_err(|e| format!("{}: {e}", to.display()))?;
        let mut sum = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        let (mut bytes, mut shown) = (0u64, Instant::now());
        loop {
            let read = response
                .read(&mut buffer)
                .map_err(|e| format!("{name}: broken off after {bytes} bytes: {e}"))?;
            if read == 0 {
                break;
            }
            sum.update(&buffer[..read]);
            out.write_all(&buffer[..read]).map_err(|e| format!("{}: {e}", to.display()))?;
            bytes += read as u64;
            if shown.elapsed() > Duration::from_secs(2) {
                shown = Instant::now();
                let of = expected.map(|size| format!(" of {}", size >> 20)).unwrap_or_default();
                eprintln!("{name}: {}{of} MiB", bytes >> 20);
            }
        }
        out.sync_all().map_err(|e| format!("{}: {e}", to.display()))?;
        let sum = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        if expected.is_some_and(|size| size != bytes) {
            return Err(format!("{name}: {bytes} bytes came, not {}", expected.unwrap_or_default()));
        }
        if let Some(lfs) = &file.lfs
            && !lfs.sha256.eq_ignore_ascii_case(&sum)
        {
            return Err(format!("{name}: SHA-256 is {sum}, the hub says {}", lfs.sha256));
        }
        eprintln!("{name}: {bytes} bytes, SHA-256 {sum}");
        Ok(sum)
    }
}
