//! A folder with a GGUF file: a chat model that llama.cpp runs in a process of its own.

use super::folder::{BackendConfig, ModelFolder, Pooling, RagModel, graph};
use super::scoring::Scoring;
use rag_llm::MAX_CONTEXT;
use rag_wire::ModelKind;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What each file begins with.
const MAGIC: &[u8; 4] = b"GGUF";

/// The folder's model, if it has such a file or says that it is a chat model.
pub(super) fn read(path: &Path, name: &str, ours: &RagModel) -> Option<Result<ModelFolder, String>> {
    let says_so = ours.kind.as_deref() == Some("chat");
    if !says_so && (ours.kind.is_some() || ours.endpoint.is_some() || graph(path).is_some()) {
        return None;
    }
    match find(path) {
        Ok(Some(file)) => Some(check(&file).map(|()| folder(name, file, ours))),
        Ok(None) => says_so.then(|| Err("the folder has no GGUF file".to_owned())),
        Err(problem) => Some(Err(problem)),
    }
}

/// The folder's one GGUF file.
fn find(path: &Path) -> Result<Option<PathBuf>, String> {
    let entries = std::fs::read_dir(path).map_err(|e| e.to_string())?;
    let mut files = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|extension| extension == "gguf") && file.is_file());
    let first = files.next();
    match files.next() {
        Some(_) => Err("the folder has several GGUF files: one is expected, with the whole model".to_owned()),
        None => Ok(first),
    }
}

fn check(file: &Path) -> Result<(), String> {
    let mut magic = [0_u8; MAGIC.len()];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match read {
        Ok(()) if magic == *MAGIC => Ok(()),
        Ok(()) => Err(format!("{name}: it is no GGUF file")),
        Err(e) => Err(format!("{name}: {e}")),
    }
}

fn folder(name: &str, file: PathBuf, ours: &RagModel) -> ModelFolder {
    ModelFolder {
        name: name.to_owned(),
        backend: BackendConfig::Gguf { file },
        tokenizer: PathBuf::new(),
        kind: ModelKind::Chat,
        pooling: Pooling::Mean,
        scoring: Scoring::CrossEncoder,
        max_tokens: ours.max_tokens.unwrap_or(usize::MAX).min(MAX_CONTEXT as usize),
        dimension: Some(0),
        query_prefix: String::new(),
        passage_prefix: String::new(),
        pad_id: 0,
        license: ours.license.clone(),
        languages: ours.languages.clone(),
        answer_threshold: None,
        answer_weights: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read_folder(files: &[(&str, &str)]) -> Option<Result<ModelFolder, String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let ours =
            files.iter().find(|(name, _)| *name == "rag_model.json").map_or("{}", |(_, content)| content);
        read(folder.path(), "tiny", &serde_json::from_str(ours).unwrap())
    }

    #[test]
    fn a_gguf_file_makes_a_chat_model() {
        let found = read_folder(&[("tiny.gguf", "GGUF…"), ("README.md", "")]).unwrap().unwrap();
        assert_eq!((found.kind, found.max_tokens), (ModelKind::Chat, 8192));
        let ours = r#"{"kind": "chat", "max_tokens": 2048, "license": "Apache-2.0"}"#;
        let found = read_folder(&[("tiny.gguf", "GGUF…"), ("rag_model.json", ours)]).unwrap().unwrap();
        assert_eq!((found.max_tokens, found.license.as_deref()), (2048, Some("Apache-2.0")));
    }

    #[test]
    fn other_folders_are_left_alone_and_broken_ones_say_why() {
        assert!(read_folder(&[("model.onnx", "x")]).is_none());
        assert!(read_folder(&[("model.onnx", "x"), ("spare.gguf", "GGUF")]).is_none());
        assert!(
            read_folder(&[("rag_model.json", r#"{"kind": "reranker"}"#), ("spare.gguf", "GGUF")]).is_none()
        );
        let chat = ("rag_model.json", r#"{"kind": "chat"}"#);
        for (files, problem) in [
            (vec![chat], "no GGUF file"),
            (vec![chat, ("a.gguf", "GGUF"), ("b.gguf", "GGUF")], "several"),
            (vec![("a.gguf", "PK\u{3}\u{4}")], "a.gguf: it is no GGUF file"),
            (vec![("a.gguf", "GG")], "a.gguf"),
        ] {
            let found = read_folder(&files).unwrap().unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }
}
