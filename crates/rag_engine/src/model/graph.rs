//! What a graph wants and gives, as far as we must know it before it runs.

use super::folder::ModelFolder;
use super::pooled;
use super::scoring::Scoring;
use memchr::memmem::Finder;
use ort::value::{TensorElementType, ValueType};
use rag_wire::ModelKind;
use std::io::Read;
use std::path::Path;

/// Operators that quantize activations by the values of the whole batch, so that its rows depend on each other.
const COUPLING_OPERATORS: [&[u8]; 2] = [b"DynamicQuantize", b"MatMulInteger"];

/// Inputs that a graph may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Ids,
    Mask,
    Types,
    Positions,
    /// What is added to a graph that pools: see [`super::pooled`].
    Weights,
}

/// Where the result is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    /// Token vectors: `[rows, tokens, width]`.
    Tokens(String),
    /// Finished vectors or logits: `[rows, width]`.
    Rows(String),
    /// Vectors that are pooled, and not yet normalised: `[rows, 1, width]`.
    Pooled,
}

impl Output {
    /// Its name in the graph.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Tokens(name) | Self::Rows(name) => name,
            Self::Pooled => pooled::VECTORS,
        }
    }
}

pub(super) fn input(name: &str, value: &ValueType) -> Result<(String, Input, TensorElementType), String> {
    let input = match name {
        "input_ids" => Input::Ids,
        "attention_mask" => Input::Mask,
        "token_type_ids" => Input::Types,
        "position_ids" => Input::Positions,
        pooled::WEIGHTS => return Ok((name.to_owned(), Input::Weights, TensorElementType::Float32)),
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
pub(super) fn output(folder: &ModelFolder, outputs: &[(String, ValueType)]) -> Result<Output, String> {
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

/// Bytes of the graph and of the weight files beside it.
pub(super) fn weight_bytes(graph: &Path) -> u64 {
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
pub(super) fn couples_rows(graph: &Path) -> std::io::Result<bool> {
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
}
