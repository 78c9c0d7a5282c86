//! Folders in the shapes that published models have.

#![allow(clippy::unwrap_used)]

use super::super::endpoint::ScoreScale;
use super::*;
use std::fs;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = Self(root);
        folder.put("model.onnx", "").put("tokenizer.json", "{}");
        for (file, content) in files {
            folder.put(file, content);
        }
        folder
    }

    fn put(&self, file: &str, content: &str) -> &Self {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn read(&self, name: &str) -> Result<ModelFolder, String> {
        ModelFolder::read(self.0.path(), name, &[])
    }
}

const BERT: &str = r#"{"architectures":["BertModel"],"model_type":"bert","hidden_size":384,"max_position_embeddings":512,"pad_token_id":0}"#;
const XLM_R: &str = r#"{"architectures":["XLMRobertaModel"],"model_type":"xlm-roberta","hidden_size":1024,"max_position_embeddings":8194,"pad_token_id":1}"#;

#[test]
fn bge_small_is_cls_pooled_with_a_query_prefix() {
    let folder = Folder::new(&[
        ("config.json", BERT),
        (
            "1_Pooling/config.json",
            r#"{"word_embedding_dimension":384,"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}"#,
        ),
        ("sentence_bert_config.json", r#"{"max_seq_length":512,"do_lower_case":true}"#),
        (
            "config_sentence_transformers.json",
            r#"{"prompts":{"query":"Q: ","passage":""},"default_prompt_name":null}"#,
        ),
        ("rag_model.json", r#"{"kind":"embedding","license":"MIT","source":"x","sha256":{}}"#),
    ]);
    let model = folder.read("bge-small-en-v1.5").unwrap();
    assert_eq!((model.pooling, model.max_tokens, model.dimension), (Pooling::Cls, 512, Some(384)));
    assert_eq!((model.query_prefix.as_str(), model.passage_prefix.as_str()), ("Q: ", ""));
    assert_eq!(model.license.as_deref(), Some("MIT"));
}

#[test]
fn bge_without_prompts_gets_the_published_query_prefix_and_others_get_none() {
    let folder = Folder::new(&[("config.json", BERT)]);
    let prefix = |name| folder.read(name).unwrap().query_prefix;
    assert_eq!(prefix("bge-large-en-v1.5"), "Represent this sentence for searching relevant passages: ");
    assert_eq!(prefix("bge-m3"), "");
    assert_eq!(prefix("all-MiniLM-L6-v2"), "");
}

#[test]
fn xlm_r_takes_two_tokens_less_than_it_has_positions() {
    let folder = Folder::new(&[("config.json", XLM_R), ("onnx/model.onnx", "")]);
    let model = folder.read("bge-m3").unwrap();
    assert_eq!((model.max_tokens, model.dimension, model.pad_id), (8192, Some(1024), 1));
    folder.put("sentence_bert_config.json", r#"{"max_seq_length":8194}"#);
    assert_eq!(folder.read("bge-m3").unwrap().max_tokens, 8192);
    folder.put("sentence_bert_config.json", r#"{"max_seq_length":1024}"#);
    assert_eq!(folder.read("bge-m3").unwrap().max_tokens, 1024);
}

#[test]
fn a_graph_in_half_precision_is_for_a_gpu_alone() {
    let file = |folder: &Folder, device| {
        let graph = folder.read("m").unwrap().graph_on(device).unwrap();
        graph.strip_prefix(folder.0.path()).unwrap().to_str().unwrap().to_owned()
    };
    let folder = Folder::new(&[]);
    assert_eq!(file(&folder, Device::Cuda(0)), "model.onnx", "there is no other");
    folder.put("onnx/model_fp16.onnx", "");
    assert_eq!(file(&folder, Device::Cuda(0)), "model.onnx", "it does not lie beside the graph");
    folder.put("model_fp16.onnx", "");
    assert_eq!(file(&folder, Device::Cuda(1)), "model_fp16.onnx");
    assert_eq!(file(&folder, Device::Cpu), "model.onnx");
}

#[test]
fn a_graph_in_the_onnx_folder_is_found() {
    let folder = Folder::new(&[("onnx/model.onnx", "")]);
    fs::remove_file(folder.0.path().join("model.onnx")).unwrap();
    assert!(folder.read("m").unwrap().graph().unwrap().ends_with("onnx/model.onnx"));
}

#[test]
fn a_sequence_classifier_without_pooling_is_a_reranker() {
    let config = BERT.replace("BertModel", "BertForSequenceClassification");
    let folder = Folder::new(&[("config.json", &config)]);
    let model = folder.read("ms-marco").unwrap();
    assert_eq!((model.kind, model.dimension), (ModelKind::Reranker, Some(0)));
    folder.put("rag_model.json", r#"{"kind":"embedding"}"#);
    assert_eq!(folder.read("ms-marco").unwrap().kind, ModelKind::Embedding);
}

#[test]
fn our_own_file_wins() {
    let folder = Folder::new(&[
        ("config.json", BERT),
        ("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens":true}"#),
        ("sentence_bert_config.json", r#"{"max_seq_length":256}"#),
        (
            "rag_model.json",
            r#"{"pooling":"last","max_tokens":128,"query_prefix":"query: ","passage_prefix":"passage: "}"#,
        ),
    ]);
    let model = folder.read("e5").unwrap();
    assert_eq!((model.pooling, model.max_tokens), (Pooling::Last, 128));
    assert_eq!((model.query_prefix.as_str(), model.passage_prefix.as_str()), ("query: ", "passage: "));
}

#[test]
fn what_is_wrong_is_said() {
    let cases = [
        ("rag_model.json", r#"{"kind":"oracle"}"#, "unknown kind"),
        ("rag_model.json", r#"{"kind":"chat"}"#, "no GGUF file"),
        ("rag_model.json", "{", "rag_model.json"),
        ("config.json", "[1]", "config.json"),
        ("1_Pooling/config.json", r#"{"pooling_mode_weightedmean_tokens":true}"#, "not supported"),
        (
            "1_Pooling/config.json",
            r#"{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}"#,
            "not supported",
        ),
        ("sentence_bert_config.json", r#"{"max_seq_length":2}"#, "no room"),
    ];
    for (file, content, expected) in cases {
        let error = Folder::new(&[(file, content)]).read("m").unwrap_err();
        assert!(error.contains(expected), "{file}: {error}");
    }
    let folder = Folder::new(&[]);
    fs::remove_file(folder.0.path().join("tokenizer.json")).unwrap();
    assert!(folder.read("m").unwrap_err().contains("tokenizer.json"));
}

#[test]
fn names_that_leave_the_models_folder_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let folders = [root.path().join("models").to_str().unwrap().to_owned()];
    fs::create_dir_all(root.path().join("models")).unwrap();
    fs::create_dir_all(root.path().join("secret")).unwrap();
    for name in ["../secret", "..", ".", "", "a/b", "/etc", "a\0b", ".hidden", "ü", &"x".repeat(200)] {
        assert!(ModelFolder::find(&folders, name).is_err(), "{name:?}");
    }
    assert_eq!(ModelFolder::find(&folders, "missing"), Ok(None));
}

#[test]
fn the_first_folder_wins_and_broken_models_are_listed_with_their_problem() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folders = [one.path().to_str().unwrap().to_owned(), two.path().to_str().unwrap().to_owned()];
    for (root, name) in [(&one, "a"), (&two, "a"), (&two, "b")] {
        let folder = root.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    }
    fs::write(one.path().join("a/model.onnx"), "").unwrap();
    fs::write(one.path().join("README"), "").unwrap();
    let list = ModelFolder::list(&folders);
    assert_eq!(list.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(list[0].1.as_ref().unwrap().graph().unwrap().starts_with(one.path()));
    assert!(list[1].1.as_ref().unwrap_err().contains("no model.onnx"));
}

const BEHIND_AN_ENDPOINT: &str = r#"{"endpoint": {"url": "https://me:sesame@api.example/v1", "model": "large", "api_key_file": "key"},
    "tokenizer": "beside", "dimension": 6, "max_tokens": 100, "languages": ["en", "de"]}"#;

#[test]
fn a_model_behind_an_endpoint_needs_no_graph_but_a_tokenizer() {
    let root = tempfile::tempdir().unwrap();
    let (remote, beside) = (root.path().join("remote"), root.path().join("beside"));
    fs::create_dir_all(&remote).unwrap();
    fs::write(remote.join("rag_model.json"), BEHIND_AN_ENDPOINT).unwrap();
    let missing = ModelFolder::read(&remote, "remote", &[]).unwrap_err();
    assert!(missing.contains("model \"beside\" with a tokenizer.json"), "{missing}");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("tokenizer.json"), "{}").unwrap();
    let found = ModelFolder::read(&remote, "remote", &[]).unwrap();
    assert_eq!((found.dimension, found.max_tokens, found.graph()), (Some(6), 100, None));
    assert_eq!(found.tokenizer, beside.join("tokenizer.json"));
    let BackendConfig::Endpoint(endpoint) = &found.backend else { panic!("{:?}", found.backend) };
    assert_eq!(endpoint.api_key_file, Some(remote.join("key")));
    let info = found.info();
    assert_eq!(info.endpoint.as_deref(), Some("large at api.example"));
    assert_eq!((info.pooling.as_str(), info.languages.len()), ("", 2));
}

#[test]
fn a_reranker_behind_an_endpoint_needs_no_dimension() {
    let ours = r#"{"kind": "reranker", "max_tokens": 100,
        "endpoint": {"url": "http://h:1/v1", "model": "m", "api": "deepinfra", "scores": "logit"}}"#;
    let found = Folder::new(&[("rag_model.json", ours)]).read("m").unwrap();
    assert_eq!((found.kind, found.dimension, found.max_tokens), (ModelKind::Reranker, Some(0), 100));
    let BackendConfig::Endpoint(endpoint) = &found.backend else { panic!("{:?}", found.backend) };
    assert_eq!((endpoint.api, endpoint.scores), (Some(Api::DeepInfra), Some(ScoreScale::Logit)));
    assert_eq!(found.info().endpoint.as_deref(), Some("m at h:1"));
}

#[test]
fn a_reranker_may_have_a_threshold_for_answers() {
    let read = |ours: &str| Folder::new(&[("rag_model.json", ours), ("model.onnx", "")]).read("m");
    let found = read(r#"{"kind": "reranker", "answer_threshold": 0.35}"#).unwrap();
    assert_eq!((found.answer_threshold, found.info().answer_threshold), (Some(0.35), Some(0.35)));
    assert_eq!(read(r#"{"kind": "reranker"}"#).unwrap().info().answer_threshold, None);
    let refused = |ours: &str, expected: &str| assert!(read(ours).unwrap_err().contains(expected), "{ours}");
    refused(r#"{"kind": "reranker", "answer_threshold": 1.5}"#, "from 0 to 1");
    refused(r#"{"kind": "embedding", "answer_threshold": 0.5}"#, "for a reranker");
    let weights = r#"{"bias": -1.5, "best": 0.1, "window": 0.5, "next": -0.2}"#;
    let found = read(&format!(r#"{{"kind": "reranker", "answer_weights": {weights}}}"#)).unwrap();
    assert_eq!(found.info().answer_weights.map(|weights| weights.window), Some(0.5));
    refused(&format!(r#"{{"kind": "embedding", "answer_weights": {weights}}}"#), "for a reranker");
    refused(r#"{"kind": "reranker", "answer_weights": {"bias": 1}}"#, "best");
}

#[test]
fn a_tokenizer_is_found_in_any_folder_of_models_and_first_beside_its_user() {
    let (one, two, three) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folders = [&one, &two, &three].map(|root| root.path().to_str().unwrap().to_owned());
    let put = |root: &tempfile::TempDir, file: &str, content: &str| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    let tokenizer = || ModelFolder::find(&folders, "remote").map(|found| found.unwrap().tokenizer);
    put(&two, "remote/rag_model.json", BEHIND_AN_ENDPOINT);
    let missing = tokenizer().unwrap_err();
    assert!(missing.contains("no folder of models has a model \"beside\""), "{missing}");
    // A folder of that name without a tokenizer does not hide one that has it.
    put(&one, "beside/config.json", "{}");
    put(&three, "beside/tokenizer.json", "{}");
    assert_eq!(tokenizer().unwrap(), three.path().join("beside/tokenizer.json"));
    put(&one, "beside/tokenizer.json", "{}");
    assert_eq!(tokenizer().unwrap(), one.path().join("beside/tokenizer.json"));
    put(&two, "beside/tokenizer.json", "{}");
    assert_eq!(tokenizer().unwrap(), two.path().join("beside/tokenizer.json"));
    for name in ["../beside", "/etc", "", ".hidden"] {
        let ours = BEHIND_AN_ENDPOINT.replace("\"beside\"", &format!("{name:?}"));
        put(&two, "remote/rag_model.json", &ours);
        assert!(tokenizer().unwrap_err().contains("is no name of a model"), "{name}");
    }
}

#[test]
fn an_endpoint_without_dimension_or_with_an_unknown_key_is_a_problem() {
    for (content, problem) in [
        (r#"{"endpoint": {"url": "http://h", "model": "m"}, "max_tokens": 100}"#, "needs dimension"),
        (r#"{"endpoint": {"url": "http://h"}, "dimension": 6, "max_tokens": 100}"#, "missing field `model`"),
        (r#"{"endpoint": {"url": "http://h", "model": "m", "key": "sesame"}}"#, "unknown field `key`"),
        (
            r#"{"kind": "reranker", "endpoint": {"url": "http://h", "model": "m"}}"#,
            "a reranker needs max_tokens",
        ),
        (
            r#"{"kind": "reranker", "max_tokens": 100, "endpoint": {"url": "http://h", "model": "m", "api": "openai"}}"#,
            "of a reranker is cohere, jina, tei or deepinfra",
        ),
        (
            r#"{"kind": "reranker", "max_tokens": 100,
                "endpoint": {"url": "http://h", "model": "m", "send_dimensions": true}}"#,
            "send_dimensions is for an embedding model",
        ),
        (
            r#"{"dimension": 6, "max_tokens": 100, "endpoint": {"url": "http://h", "model": "m", "api": "tei"}}"#,
            "of an embedding model is openai",
        ),
        (
            r#"{"dimension": 6, "max_tokens": 100, "endpoint": {"url": "http://h", "model": "m", "scores": "logit"}}"#,
            "endpoint.scores is for a reranker",
        ),
        (r#"{"endpoint": {"url": "http://h", "model": "m", "api": "bm25"}}"#, "unknown variant `bm25`"),
    ] {
        let folder = Folder::new(&[("rag_model.json", content)]);
        let found = folder.read("m").unwrap_err();
        assert!(found.contains(problem) && !found.contains("sesame"), "{found}");
    }
}
