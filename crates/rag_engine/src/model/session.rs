//! A model's ONNX sessions: rows of tokens in, one vector or one score per row out.
//!
//! ONNX Runtime's `Run` is not safe to call twice at once on one session, so each worker that needs one takes a
//! session of its own out of a pool; the pool opens another when all are taken, up to a limit. Large models and
//! models on a GPU have one session, which uses all threads itself.

use super::folder::ModelFolder;
use super::scoring::Scoring;
use super::{pooling, runtime};
use crate::device::Device;
use memchr::memmem::Finder;
use ndarray::Array2;
use ort::session::{Session, SessionInputValue, SessionOutputs};
use ort::value::{DynValue, Tensor, TensorElementType, ValueType};
use rag_wire::ModelKind;
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

/// Weights beyond which a model has one session with all threads: more copies would cost more memory than they
/// gain in throughput.
const SMALL_MODEL_BYTES: u64 = 256 << 20;

/// Operators that quantize activations by the values of the whole batch, so that its rows depend on each other.
const COUPLING_OPERATORS: [&[u8]; 2] = [b"DynamicQuantize", b"MatMulInteger"];

/// One input: token ids and segment ids, special tokens included, without padding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Segment ids, as many.
    pub types: Vec<u32>,
}

impl Row {
    /// Number of tokens.
    pub fn tokens(&self) -> u32 {
        self.ids.len() as u32
    }
}

/// Inputs that a graph may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Ids,
    Mask,
    Types,
    Positions,
}

/// Where the result is found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Output {
    /// Token vectors: `[rows, tokens, width]`.
    Tokens(String),
    /// Finished vectors or logits: `[rows, width]`.
    Rows(String),
}

/// The sessions of one model.
pub struct Sessions {
    folder: ModelFolder,
    graph: PathBuf,
    device: Device,
    threads_each: usize,
    most: usize,
    inputs: Vec<(String, Input, TensorElementType)>,
    output: Output,
    couples_rows: bool,
    idle: Mutex<Idle>,
    returned: Condvar,
}

#[derive(Default)]
struct Idle {
    sessions: Vec<Session>,
    open: usize,
}

impl Sessions {
    /// Opens the first session and learns the graph's inputs and outputs from it. `threads` is the most runs at once, but
    /// for one in the scheduler's spare place.
    pub fn open(folder: &ModelFolder, device: Device, threads: usize) -> Result<Self, String> {
        let graph = folder.graph_on(device).ok_or("the model is behind an endpoint")?;
        let small = weight_bytes(&graph) <= SMALL_MODEL_BYTES && device == Device::Cpu;
        let (most, threads_each) = if small { (threads.max(1) + 1, 1) } else { (1, threads.max(1)) };
        let first = runtime::open(&graph, device, threads_each)?;
        let inputs =
            first.inputs().iter().map(|i| input(i.name(), i.dtype())).collect::<Result<Vec<_>, _>>()?;
        if !inputs.iter().any(|(_, input, _)| *input == Input::Ids) {
            return Err("the graph has no input named input_ids".into());
        }
        let outputs: Vec<_> =
            first.outputs().iter().map(|o| (o.name().to_owned(), o.dtype().clone())).collect();
        let output = output(folder, &outputs)?;
        let couples_rows = couples_rows(&graph).map_err(|e| format!("{}: {e}", graph.display()))?;
        Ok(Self {
            folder: folder.clone(),
            graph,
            device,
            threads_each,
            most,
            inputs,
            output,
            couples_rows,
            idle: Mutex::new(Idle { sessions: vec![first], open: 1 }),
            returned: Condvar::new(),
        })
    }

    /// Whether a row's result depends on the other rows of its batch.
    pub fn couples_rows(&self) -> bool {
        self.couples_rows
    }

    /// Opens sessions until `count` are open or the pool is full, so that the first requests need not wait.
    pub fn warm_up(&self, count: usize) -> Result<(), String> {
        loop {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.open >= count.min(self.most) {
                return Ok(());
            }
            idle.open += 1;
            drop(idle);
            self.put_back(self.open_counted()?);
        }
    }

    /// Runs rows in one batch: a normalised vector per row, or a vector of one logit.
    pub fn run(&self, rows: &[&Row]) -> Result<Vec<Vec<f32>>, String> {
        let longest = rows.iter().map(|row| row.ids.len()).max().unwrap_or(0);
        self.with_outputs(rows, longest, self.folder.pad_id, |outputs| self.results(outputs, rows))
    }

    /// Runs one row and reads what the graph gives for its tokens, so many numbers for each. A row may be filled up to a
    /// length with a token that none attends to, and that has numbers like the others.
    pub fn read_tokens<T>(
        &self,
        row: &Row,
        filled: Option<(usize, u32)>,
        read: impl FnOnce(&[f32], usize) -> Result<T, String>,
    ) -> Result<T, String> {
        let (length, fill) = filled.unwrap_or((0, self.folder.pad_id));
        self.with_outputs(&[row], length.max(row.ids.len()), fill, |outputs| {
            let Output::Tokens(name) = &self.output else {
                return Err("the graph has no output of tokens".into());
            };
            let value =
                outputs.get(name.as_str()).ok_or_else(|| format!("the model gave no output {name}"))?;
            let (shape, values) = floats(value)?;
            match shape[..] {
                [1, tokens, width] if width > 0 && values.len() == tokens * width => read(&values, width),
                _ => Err(format!("output {name} has the unexpected shape {shape:?} for 1 row")),
            }
        })
    }

    /// Runs rows, each filled up to `length` with the token `fill`, and reads what comes out.
    fn with_outputs<T>(
        &self,
        rows: &[&Row],
        length: usize,
        fill: u32,
        read: impl FnOnce(&SessionOutputs<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut session = self.take()?;
        // A session that panicked is dropped with its thread's unwinding, and another may be opened for it.
        let guard = OpenGuard { sessions: self };
        let inputs = self.inputs.iter().map(|(name, input, element)| {
            let value = tensor(*input, *element, rows, length, fill)?;
            Ok((Cow::Borrowed(name.as_str()), SessionInputValue::from(value)))
        });
        let inputs: Result<Vec<_>, String> = inputs.collect();
        let outputs = inputs.and_then(|inputs| session.run(inputs).map_err(|e| e.message().to_owned()));
        let found = outputs.and_then(|outputs| read(&outputs));
        std::mem::forget(guard);
        self.put_back(session);
        found
    }

    fn results(&self, outputs: &SessionOutputs<'_>, rows: &[&Row]) -> Result<Vec<Vec<f32>>, String> {
        let (name, dimensions) = match &self.output {
            Output::Tokens(name) => (name, 3),
            Output::Rows(name) => (name, 2),
        };
        let value = outputs.get(name.as_str()).ok_or_else(|| format!("the model gave no output {name}"))?;
        let (shape, values) = floats(value)?;
        let expected: usize = shape.iter().product();
        if shape.len() != dimensions || shape.first() != Some(&rows.len()) || values.len() != expected {
            return Err(format!("output {name} has the unexpected shape {shape:?} for {} rows", rows.len()));
        }
        let width = shape[dimensions - 1];
        let per_row = values.len() / rows.len().max(1);
        let vectors = values.chunks_exact(per_row.max(1)).zip(rows).map(|(values, row)| match &self.output {
            Output::Tokens(_) => {
                let real = (row.ids.len() * width).min(values.len());
                pooling::pool(&values[..real], width, self.folder.pooling)
            }
            Output::Rows(_) => values.to_vec(),
        });
        let mut vectors: Vec<Vec<f32>> = vectors.collect();
        let usable = match self.folder.kind {
            ModelKind::Embedding => vectors.iter_mut().all(|vector| pooling::normalise(vector)),
            ModelKind::Reranker | ModelKind::Chat => {
                vectors.iter().all(|logits| logits.len() == 1 && logits[0].is_finite())
            }
        };
        if usable { Ok(vectors) } else { Err("the model gave a result that is not a finite number".into()) }
    }

    fn take(&self) -> Result<Session, String> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(session) = idle.sessions.pop() {
                return Ok(session);
            }
            if idle.open < self.most {
                break;
            }
            idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
        idle.open += 1;
        drop(idle);
        self.open_counted()
    }

    /// Opens a session that is counted as open already.
    fn open_counted(&self) -> Result<Session, String> {
        let guard = OpenGuard { sessions: self };
        let session = runtime::open(&self.graph, self.device, self.threads_each)?;
        std::mem::forget(guard);
        Ok(session)
    }

    fn put_back(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).sessions.push(session);
        self.returned.notify_one();
    }
}

/// Counts a session as open until it is dropped: forgotten where the session goes back to the pool.
struct OpenGuard<'a> {
    sessions: &'a Sessions,
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.sessions.idle.lock().unwrap_or_else(PoisonError::into_inner).open -= 1;
        self.sessions.returned.notify_one();
    }
}

fn input(name: &str, value: &ValueType) -> Result<(String, Input, TensorElementType), String> {
    let input = match name {
        "input_ids" => Input::Ids,
        "attention_mask" => Input::Mask,
        "token_type_ids" => Input::Types,
        "position_ids" => Input::Positions,
        other => return Err(format!("the graph wants an input named {other}, which is not known")),
    };
    match value.tensor_type() {
        Some(element @ (TensorElementType::Int64 | TensorElementType::Int32)) => {
            Ok((name.to_owned(), input, element))
        }
        other => Err(format!("input {name} has the element type {other:?}; int64 and int32 are supported")),
    }
}

/// Chooses among a graph's outputs: a finished sentence vector, then token vectors by their usual names.
fn output(folder: &ModelFolder, outputs: &[(String, ValueType)]) -> Result<Output, String> {
    let with_rank = |rank: usize, names: &[&str]| {
        let fits = |value: &ValueType| value.tensor_shape().is_some_and(|shape| shape.len() == rank);
        let named = names.iter().find_map(|name| outputs.iter().find(|(n, v)| n == name && fits(v)));
        named.map(|(name, _)| name.clone())
    };
    let any = |rank: usize| {
        outputs
            .iter()
            .find(|(_, v)| v.tensor_shape().is_some_and(|s| s.len() == rank))
            .map(|(name, _)| name.clone())
    };
    let found = match (folder.kind, &folder.scoring) {
        (ModelKind::Reranker, Scoring::CrossEncoder) => {
            with_rank(2, &["logits"]).or_else(|| any(2)).map(Output::Rows)
        }
        (ModelKind::Reranker, Scoring::YesNo(_)) => {
            with_rank(3, &["logits"]).or_else(|| any(3)).map(Output::Tokens)
        }
        (ModelKind::Reranker, Scoring::LateInteraction(_)) => {
            with_rank(3, &["token_embeddings", "last_hidden_state"]).or_else(|| any(3)).map(Output::Tokens)
        }
        (ModelKind::Embedding, _) => with_rank(2, &["sentence_embedding"])
            .map(Output::Rows)
            .or_else(|| with_rank(3, &["last_hidden_state", "token_embeddings"]).map(Output::Tokens))
            .or_else(|| any(3).map(Output::Tokens))
            .or_else(|| any(2).map(Output::Rows)),
        (ModelKind::Chat, _) => None,
    };
    found.ok_or_else(|| "the graph has no output of token vectors, sentence vectors or logits".into())
}

fn tensor(
    input: Input,
    element: TensorElementType,
    rows: &[&Row],
    longest: usize,
    pad_id: u32,
) -> Result<DynValue, String> {
    let number = |row: usize, at: usize| number(input, rows[row], at, pad_id);
    let shape = (rows.len(), longest);
    let value = match element {
        TensorElementType::Int32 => {
            Tensor::from_array(Array2::from_shape_fn(shape, |(row, at)| number(row, at) as i32))
                .map(|t| t.into_dyn())
        }
        _ => Tensor::from_array(Array2::from_shape_fn(shape, |(row, at)| number(row, at)))
            .map(|t| t.into_dyn()),
    };
    value.map_err(|e| e.to_string())
}

/// What an input holds for one token of a row; behind the row's end, padding.
fn number(input: Input, row: &Row, at: usize, pad_id: u32) -> i64 {
    match input {
        Input::Ids => i64::from(row.ids.get(at).copied().unwrap_or(pad_id)),
        Input::Mask => i64::from(at < row.ids.len()),
        Input::Types => i64::from(row.types.get(at).copied().unwrap_or(0)),
        Input::Positions => at as i64,
    }
}

/// A tensor's shape and numbers, from float32 or float16.
fn floats(value: &DynValue) -> Result<(Vec<usize>, Cow<'_, [f32]>), String> {
    let sizes = |shape: &[i64]| shape.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect::<Vec<_>>();
    if let Ok((shape, values)) = value.try_extract_tensor::<f32>() {
        return Ok((sizes(shape), Cow::Borrowed(values)));
    }
    let (shape, values) = value.try_extract_tensor::<half::f16>().map_err(|e| e.to_string())?;
    Ok((sizes(shape), values.iter().map(|v| v.to_f32()).collect()))
}

/// Bytes of the graph and of the weight files beside it.
fn weight_bytes(graph: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map(|m| m.len()).unwrap_or(0);
    let beside = graph.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let names = beside.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let weights = names.filter(|path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        name.ends_with(".onnx_data") || name.ends_with(".onnx.data") || name.ends_with(".data")
    });
    size(graph) + weights.map(|path| size(&path)).sum::<u64>()
}

/// Whether the graph contains an operator that couples the rows of a batch. Operators are named in plain bytes.
fn couples_rows(graph: &Path) -> std::io::Result<bool> {
    const OVERLAP: usize = 32;
    let finders = COUPLING_OPERATORS.map(Finder::new);
    let mut file = std::fs::File::open(graph)?;
    let mut window = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        let read = file.read(&mut window[kept..])?;
        let filled = kept + read;
        if finders.iter().any(|finder| finder.find(&window[..filled]).is_some()) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        kept = filled.min(OVERLAP);
        window.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_operator_is_found_wherever_it_stands_in_the_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("model.onnx");
        for at in [0, 5, (1 << 20) - 7, (1 << 20) + 1, 3_000_000] {
            let mut bytes = vec![b'x'; 3_500_000];
            std::fs::write(&path, &bytes).unwrap();
            assert!(!couples_rows(&path).unwrap());
            bytes[at..at + 21].copy_from_slice(b"DynamicQuantizeLinear");
            std::fs::write(&path, &bytes).unwrap();
            assert!(couples_rows(&path).unwrap(), "at {at}");
        }
    }

    #[test]
    fn weights_beside_the_graph_count() {
        let root = tempfile::tempdir().unwrap();
        let graph = root.path().join("model.onnx");
        std::fs::write(&graph, [0; 10]).unwrap();
        std::fs::write(root.path().join("model.onnx_data"), [0; 1000]).unwrap();
        std::fs::write(root.path().join("tokenizer.json"), [0; 5000]).unwrap();
        assert_eq!(weight_bytes(&graph), 1010);
    }

    #[test]
    fn padding_is_masked_and_filled_with_the_padding_token() {
        let row = Row { ids: vec![7, 8], types: vec![0, 1] };
        let of = |input| [0, 1, 2].map(|at| number(input, &row, at, 99));
        assert_eq!(of(Input::Ids), [7, 8, 99]);
        assert_eq!(of(Input::Mask), [1, 1, 0]);
        assert_eq!(of(Input::Types), [0, 1, 0]);
        assert_eq!(of(Input::Positions), [0, 1, 2]);
    }
}
