//! A model's ONNX sessions: rows of tokens in, one vector or one score per row out.
//!
//! ONNX Runtime's `Run` is not safe to call twice at once on one session, so each worker that needs one takes a
//! session of its own out of a pool; the pool opens another when all are taken, up to a limit. Large models have one
//! session, which uses all threads itself. On a GPU a second session's tensors are made and copied while the first one's are
//! computed.

use super::folder::Pooling;
use super::graph::{self, Input, Output};
use super::{ModelFolder, pooled, pooling, runtime};
use crate::batch_limits::FixedShape;
use crate::device::Device;
use ort::memory::Allocator;
use ort::session::{Session, SessionOutputs};
use ort::value::{DynValue, PrimitiveTensorElementType, Tensor, TensorElementType};
use rag_wire::ModelKind;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};

/// Weights beyond which a model has one session with all threads: more copies would cost more memory than they
/// gain in throughput.
const SMALL_MODEL_BYTES: u64 = 256 << 20;

/// Batches of one model that are on a GPU at once: one that is computed, one that is copied meanwhile, and one more, so that a
/// question need not wait for them. More would be small ones, for each takes what waits.
const GPU_SESSIONS: usize = 3;

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

/// How rows are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStyle {
    /// As a processor likes it: what must be reproducible runs alone.
    Cpu,
    /// As a GPU likes it: the graph pools, so that little is copied, and what must be reproducible runs with others in batches
    /// of fixed shapes ([`crate::batch_limits::FixedShape`]).
    Gpu,
}

impl RunStyle {
    /// What suits a device.
    pub fn of(device: Device) -> Self {
        if device == Device::Cpu { Self::Cpu } else { Self::Gpu }
    }
}

/// In which company rows run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Any that have come together.
    Batch,
    /// One alone.
    Alone,
    /// Those of one fixed shape, filled up to it.
    Shaped(FixedShape),
}

/// Rows that run together, each filled up to `length` with the token `fill`.
struct Batch<'a> {
    rows: &'a [&'a Row],
    length: usize,
    fill: u32,
    /// Whether nobody needs its results to be reproducible.
    is_bulk: bool,
}

/// The sessions of one model.
pub struct Sessions {
    folder: ModelFolder,
    graph: PathBuf,
    /// What stands behind the graph's file: nothing, or what makes it pool.
    addition: Vec<u8>,
    device: Device,
    style: RunStyle,
    threads_each: usize,
    most: usize,
    inputs: Vec<(String, Input, TensorElementType)>,
    output: Output,
    couples_rows: bool,
    /// On a GPU, held by whoever computes what must be reproducible, and by whoever computes anything else. Two batches at once
    /// take as long as one after the other, and now and then many times as long.
    computing: [Mutex<()>; 2],
    idle: Mutex<Idle>,
    returned: Condvar,
}

#[derive(Default)]
struct Idle {
    sessions: Vec<OpenSession>,
    open: usize,
}

/// A session, and the memory that its inputs are written to. The memory goes first.
struct OpenSession {
    inputs: Allocator,
    session: Session,
}

impl OpenSession {
    fn new(session: Session, device: Device) -> Result<Self, String> {
        let inputs = runtime::host_memory(device).and_then(|memory| Allocator::new(&session, memory));
        Ok(Self { inputs: inputs.map_err(|e| e.message().to_owned())?, session })
    }
}

impl Sessions {
    /// Opens the first session and learns the graph's inputs and outputs from it. `threads` is the most runs at once, but
    /// for one in the scheduler's spare place.
    pub fn open(
        folder: &ModelFolder,
        device: Device,
        style: RunStyle,
        threads: usize,
    ) -> Result<Self, String> {
        let graph_on = |device| {
            let graph = folder.graph_on(device).ok_or("the model is behind an endpoint")?;
            let couples_rows =
                graph::couples_rows(&graph).map_err(|e| format!("{}: {e}", graph.display()))?;
            Ok::<_, String>((graph, couples_rows))
        };
        let (mut graph, mut couples_rows) = graph_on(device)?;
        let (mut device, mut style) = (device, style);
        if couples_rows && device != Device::Cpu {
            // Made for processors: a GPU would run each row alone, and leave half of the operators to the processor.
            (device, style) = (Device::Cpu, RunStyle::Cpu);
            (graph, couples_rows) = graph_on(device)?;
        }
        let is_small = graph::weight_bytes(&graph) <= SMALL_MODEL_BYTES;
        let (most, threads_each) = match (is_small, style) {
            (true, RunStyle::Cpu) => (threads.max(1) + 1, 1),
            (true, RunStyle::Gpu) => (GPU_SESSIONS, 1),
            (false, _) => (1, threads.max(1)),
        };
        let mut first = runtime::open(&graph, &[], device, threads_each)?;
        let outputs: Vec<_> =
            first.outputs().iter().map(|o| (o.name().to_owned(), o.dtype().clone())).collect();
        let mut output = graph::output(folder, &outputs)?;
        let mut addition = Vec::new();
        if let (RunStyle::Gpu, ModelKind::Embedding, Output::Tokens(tokens)) = (style, folder.kind, &output)
            && folder.pooling != Pooling::Max
        {
            addition = pooled::addition(tokens);
            drop(first);
            first = runtime::open(&graph, &addition, device, threads_each)?;
            output = Output::Pooled;
        }
        let inputs = first.inputs().iter().map(|i| graph::input(i.name(), i.dtype()));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        if !inputs.iter().any(|(_, input, _)| *input == Input::Ids) {
            return Err("the graph has no input named input_ids".into());
        }
        Ok(Self {
            folder: folder.clone(),
            graph,
            addition,
            device,
            style,
            threads_each,
            most,
            inputs,
            output,
            couples_rows,
            computing: Default::default(),
            idle: Mutex::new(Idle { sessions: vec![OpenSession::new(first, device)?], open: 1 }),
            returned: Condvar::new(),
        })
    }

    /// Where they run: a model made for processors is not run on a GPU.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Most batches at once.
    pub fn places(&self) -> usize {
        self.most
    }

    /// How they run rows.
    pub fn style(&self) -> RunStyle {
        self.style
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

    /// Runs rows: a normalised vector per row, or a vector of one logit.
    pub fn run(&self, rows: &[&Row], company: Rows) -> Result<Vec<Vec<f32>>, String> {
        let longest = rows.iter().map(|row| row.ids.len()).max().unwrap_or(0);
        let (count, length) = match company {
            Rows::Batch | Rows::Alone => (rows.len(), longest),
            Rows::Shaped(shape) => (rows.len().max(shape.rows as usize), longest.max(shape.tokens as usize)),
        };
        let missing = count - rows.len();
        let fill = rows.first().copied().into_iter().cycle().take(missing);
        let filled: Vec<&Row> = rows.iter().copied().chain(fill).collect();
        let is_bulk = company == Rows::Batch;
        let batch = Batch { rows: &filled, length, fill: self.folder.pad_id, is_bulk };
        let mut results = self.with_outputs(&batch, |outputs| self.results(outputs, &filled))?;
        results.truncate(rows.len());
        Ok(results)
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
        let batch = Batch { rows: &[row], length: length.max(row.ids.len()), fill, is_bulk: false };
        self.with_outputs(&batch, |outputs| {
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

    /// Runs a batch, and reads what comes out.
    fn with_outputs<T>(
        &self,
        batch: &Batch<'_>,
        read: impl FnOnce(&SessionOutputs<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut open = self.take()?;
        // A session that panicked is dropped with its thread's unwinding, and another may be opened for it.
        let guard = OpenGuard { sessions: self };
        let found = self.run_on(&mut open, batch, read);
        std::mem::forget(guard);
        self.put_back(open);
        found
    }

    fn run_on<T>(
        &self,
        open: &mut OpenSession,
        batch: &Batch<'_>,
        read: impl FnOnce(&SessionOutputs<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let in_words = |e: ort::Error| e.message().to_owned();
        let mut binding = open.session.create_binding().map_err(in_words)?;
        for (name, input, element) in &self.inputs {
            let value = self.tensor(&open.inputs, *input, *element, batch).map_err(in_words)?;
            binding.bind_input(name.as_str(), &value).map_err(in_words)?;
        }
        let memory = runtime::host_memory(self.device).map_err(in_words)?;
        binding.bind_output_to_device(self.output.name(), &memory).map_err(in_words)?;
        let computing = &self.computing[usize::from(batch.is_bulk)];
        let turn =
            (self.style == RunStyle::Gpu).then(|| computing.lock().unwrap_or_else(PoisonError::into_inner));
        let outputs = open.session.run_binding(&binding).map_err(in_words)?;
        drop(turn);
        read(&outputs)
    }

    fn tensor(
        &self,
        memory: &Allocator,
        input: Input,
        element: TensorElementType,
        batch: &Batch<'_>,
    ) -> ort::Result<DynValue> {
        let Batch { rows, length, fill, .. } = *batch;
        let shape = [rows.len(), length];
        match (input, element) {
            (Input::Weights, _) => filled(memory, &[rows.len(), 1, length], |row, at| {
                pooled::weight(self.folder.pooling, at, rows[row].ids.len()).unwrap_or(0.0)
            }),
            (_, TensorElementType::Int32) => {
                filled(memory, &shape, |row, at| number(input, rows[row], at, fill) as i32)
            }
            _ => filled(memory, &shape, |row, at| number(input, rows[row], at, fill)),
        }
    }

    fn results(&self, outputs: &SessionOutputs<'_>, rows: &[&Row]) -> Result<Vec<Vec<f32>>, String> {
        let name = self.output.name();
        let value = outputs.get(name).ok_or_else(|| format!("the model gave no output {name}"))?;
        let (shape, values) = floats(value)?;
        let width = shape.last().copied().unwrap_or(0);
        let is_expected = match (&self.output, &shape[..]) {
            (Output::Tokens(_), [count, tokens, width]) => {
                *count == rows.len() && values.len() == count * tokens * width
            }
            (Output::Rows(_), [count, width]) | (Output::Pooled, [count, 1, width]) => {
                *count == rows.len() && values.len() == count * width
            }
            _ => false,
        };
        if !is_expected || values.is_empty() {
            return Err(format!("output {name} has the unexpected shape {shape:?} for {} rows", rows.len()));
        }
        let per_row = values.len() / rows.len();
        let vectors = values.chunks_exact(per_row).zip(rows).map(|(values, row)| match &self.output {
            Output::Tokens(_) => {
                let real = (row.ids.len() * width).min(values.len());
                pooling::pool(&values[..real], width, self.folder.pooling)
            }
            Output::Rows(_) | Output::Pooled => values.to_vec(),
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

    fn take(&self) -> Result<OpenSession, String> {
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
    fn open_counted(&self) -> Result<OpenSession, String> {
        let guard = OpenGuard { sessions: self };
        let session = runtime::open(&self.graph, &self.addition, self.device, self.threads_each)?;
        let open = OpenSession::new(session, self.device)?;
        std::mem::forget(guard);
        Ok(open)
    }

    fn put_back(&self, open: OpenSession) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).sessions.push(open);
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

/// A tensor whose first dimension is rows and whose last one is tokens.
fn filled<T: PrimitiveTensorElementType + std::fmt::Debug>(
    memory: &Allocator,
    shape: &[usize],
    number: impl Fn(usize, usize) -> T,
) -> ort::Result<DynValue> {
    let mut tensor = Tensor::<T>::new(memory, shape)?;
    let length = shape.last().copied().unwrap_or(0);
    let (_, values) = tensor.extract_tensor_mut();
    for (row, values) in values.chunks_exact_mut(length.max(1)).enumerate() {
        values.iter_mut().enumerate().for_each(|(at, value)| *value = number(row, at));
    }
    Ok(tensor.into_dyn())
}

/// What an input holds for one token of a row; behind the row's end, padding.
fn number(input: Input, row: &Row, at: usize, pad_id: u32) -> i64 {
    match input {
        Input::Ids => i64::from(row.ids.get(at).copied().unwrap_or(pad_id)),
        Input::Mask => i64::from(at < row.ids.len()),
        Input::Types => i64::from(row.types.get(at).copied().unwrap_or(0)),
        Input::Positions => at as i64,
        Input::Weights => 0,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
