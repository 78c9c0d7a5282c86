//! Models that a test makes up.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A folder of models, for `rag_ext.model_path`, with one of this name of which `rag_model.json` is all.
pub fn model_folder(name: &str, model: &Value) -> TempDir {
    // Where the user that Postgres runs as may read.
    let root = tempfile::Builder::new().prefix("rag_models_").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let folder = root.path().join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("rag_model.json"), model.to_string()).unwrap();
    root
}
