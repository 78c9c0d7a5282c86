//! Thresholds: none in a search unless it names one; of answers, kept with the reranker.

use super::{TOPICS, corpus};
use rag_tests::{Cluster, Database, Installation, Session};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

const QUERY: &str = "how does a glacier move?";

fn search(session: &mut Session, mode: &str, options: Value) -> Vec<Vec<Option<String>>> {
    session.rows(&format!(
        "SELECT uri, vector_score, rerank_score FROM rag_search('{QUERY}', k => 8, mode => '{mode}', options => '{options}')"
    ))
}

fn numbers(rows: &[Vec<Option<String>>], column: usize) -> Vec<f64> {
    rows.iter().filter_map(|row| row[column].as_ref()?.parse().ok()).collect()
}

#[test]
fn a_search_leaves_out_what_is_below_its_thresholds() {
    let database = Database::new("thresholds");
    let mut ann = corpus(&database, "ann");
    let all = search(&mut ann, "vector", json!({}));
    let cosines = numbers(&all, 1);
    assert_eq!(cosines.len(), TOPICS.len(), "no threshold by default");
    let between = (cosines[2] + cosines[3]) / 2.0;
    let above = search(&mut ann, "vector", json!({ "min_similarity": between }));
    assert_eq!(above, all[..3], "what is above is found as without a threshold");
    assert!(search(&mut ann, "vector", json!({ "min_similarity": 1 })).is_empty());
    assert_eq!(search(&mut ann, "vector", json!({ "min_similarity": -1 })), all);
    // Keywords find it all the same.
    let hybrid = search(&mut ann, "hybrid", json!({ "min_similarity": 1 }));
    assert!(!hybrid.is_empty() && numbers(&hybrid, 1).is_empty(), "{hybrid:?}");
    let told = ann.rows(&format!(
        "SELECT count(*) FILTER (WHERE dropped = 'below min_similarity'), count(*) FILTER (WHERE rank > 0 AND dropped IS NOT NULL)
         FROM rag_explain('{QUERY}', k => 8, options => '{{\"min_similarity\": {between}, \"per_candidate\": true}}')"
    ));
    assert_eq!(told, [["5", "0"].map(|count| Some(count.to_owned()))]);

    let all = search(&mut ann, "vector", json!({ "rerank": true }));
    let scores = numbers(&all, 2);
    let between = (scores[0] + scores[1]) / 2.0;
    // It is reranked for the threshold's sake.
    for options in
        [json!({ "min_rerank_score": between }), json!({ "min_rerank_score": between, "rerank": true })]
    {
        assert_eq!(search(&mut ann, "vector", options), all[..1]);
    }
    assert_eq!(search(&mut ann, "vector", json!({ "min_rerank_score": 0 })), all);
    let off = search(&mut ann, "vector", json!({ "min_rerank_score": between, "rerank": false }));
    assert_eq!(off.len(), TOPICS.len());
    // What is not scored is not above it; where there are no scores, nothing is below it.
    let some = search(&mut ann, "vector", json!({ "min_rerank_score": 0, "rerank_limit": 3 }));
    assert_eq!(some.len(), 3);
    let failed = search(&mut ann, "vector", json!({ "min_rerank_score": 1, "rerank_model": "none-such" }));
    assert_eq!(failed.len(), TOPICS.len());
    for wrong in [json!({ "min_similarity": 2 }), json!({ "min_rerank_score": -0.5 })] {
        ann.refuses("22023", &format!("SELECT rag_search('x', options => '{wrong}')"));
    }
}

/// Two rerankers with the graph of the default one: one says that hardly anything supports an answer, one that nearly all
/// does; and one that says nothing.
#[test]
fn an_answers_threshold_is_that_of_its_reranker() {
    let original = Installation::from_env().path("--sharedir").join("rag_ext/models/ms-marco-MiniLM-L-12-v2");
    let root = tempfile::Builder::new().prefix("rag_models_").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for (name, threshold) in [("strict", Some(1.0)), ("lenient", Some(0.0)), ("silent", None)] {
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        for file in ["model.onnx", "tokenizer.json"] {
            symlink(original.join(file), folder.join(file)).unwrap();
        }
        let mut model = json!({ "kind": "reranker" });
        if let Some(threshold) = threshold {
            model["answer_threshold"] = json!(threshold);
        }
        std::fs::write(folder.join("rag_model.json"), model.to_string()).unwrap();
    }
    let cluster = Cluster::builder("thresholds")
        .setting("rag_ext.model_path", &format!("{}:$sharedir/rag_ext/models", root.path().display()))
        .setting("rag_ext.rerank_model", "strict")
        .start();
    let database = cluster.database("thresholds");
    drop(corpus(&database, "ann"));
    let shown =
        "SELECT name || ' ' || answer_threshold FROM rag.model WHERE answer_threshold IS NOT NULL ORDER BY 1";
    let expected = ["lenient 0", "ms-marco-MiniLM-L-12-v2 0.5", "strict 1"];
    assert_eq!(database.admin().column(shown), expected);

    let (near, far) = ("How does a glacier move?", "Which bank lends money to students?");
    for (model, of_near, of_far) in
        [("strict", false, false), ("lenient", true, true), ("silent", true, false)]
    {
        cluster.configure(&format!("rag_ext.rerank_model = '{model}'\n"));
        cluster.reload();
        let mut admin = database.admin();
        rag_tests::wait_until("the engine has the model", Duration::from_secs(60), || {
            admin.column(
                "SELECT name FROM rag.model WHERE is_default AND kind = 'reranker' AND problem IS NULL",
            ) == [model]
        });
        let mut ann = database.connect(&database.role_name("ann"));
        let mut ask = |question: &str, options: Value| {
            let answer = ann.json(&format!("SELECT rag_answer('{question}', options => '{options}')"));
            let stages = answer["diagnostics"].as_array().unwrap();
            let support = stages.iter().find(|stage| stage["stage"] == "support").unwrap();
            (answer["found"].as_bool().unwrap(), support["details"].clone(), answer["method"].clone())
        };
        let found = ask(near, json!({}));
        assert_eq!((found.0, ask(far, json!({})).0), (of_near, of_far), "{model}: {found:?}");
        let by = if model == "silent" { "default" } else { "model" };
        assert_eq!((&found.1["by"], &found.2), (&json!(by), &json!("extractive")), "{found:?}");
        // The caller goes first, then the setting.
        assert_eq!(ask(near, json!({ "min_support": 0.5 })).1, json!({ "min_support": 0.5, "by": "option" }));
        assert!(ask(near, json!({ "min_support": 0.5 })).0);
        ann.run("SET rag_ext.min_support = 0.25");
        let answer = ann.json(&format!("SELECT rag_answer('{near}')"));
        assert!(answer["found"].as_bool().unwrap(), "{answer:#}");
        assert!(answer["diagnostics"].to_string().contains("\"by\":\"setting\""), "{answer:#}");
    }
}
