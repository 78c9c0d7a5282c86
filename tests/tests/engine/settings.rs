//! What is missing or set wrongly is said in words.

use super::LIMIT;
use rag_tests::{Cluster, Database, wait_until};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn a_server_that_has_not_preloaded_the_library_says_so() {
    let cluster = Cluster::builder("not_preloaded").without_preload().start();
    let mut admin = cluster.connect("postgres", "postgres");
    admin.run("CREATE EXTENSION rag_ext CASCADE");
    let warnings = admin.notices();
    let warning = warnings.iter().find(|notice| notice.message.contains("not preloaded"));
    assert!(warning.is_some_and(|w| w.hint.contains("shared_preload_libraries")), "{warnings:?}");
    let status = admin.value("SELECT rag_status()");
    assert!(status.contains("shared_preload_libraries"), "{status}");
    admin.run("INSERT INTO rag.document (uri, content) VALUES ('kept', 'It will be taken in.')");
    for sql in [
        "SELECT rag_embed('x')",
        "SELECT * FROM rag_rerank('x', ARRAY['y'])",
        "SELECT rag_ingest('x', options => '{\"sync\": true}')",
        "SELECT * FROM rag_search('x')",
        "SELECT * FROM rag_search('x', mode => 'keyword')",
        "SELECT rag_wait()",
        "SELECT rag_answer('x')",
        "SELECT rag_answer_text('x')",
        "SELECT * FROM rag_cite('x')",
        "SELECT rag_create_collection('x')",
        "SELECT rag_retry()",
    ] {
        let failure = admin.refuses("55000", sql);
        assert!(failure.hint.contains("shared_preload_libraries"), "{failure}");
    }
    cluster.configure("shared_preload_libraries = 'rag_ext'");
    cluster.restart();
    let mut admin = cluster.connect("postgres", "postgres");
    admin.settle();
    assert_eq!(admin.column("SELECT status FROM rag.document"), ["done"]);
    admin.ingest("Now it works.", "now");
    assert_eq!(admin.count("SELECT count(*) FROM rag_search('works', mode => 'keyword')"), 1);
}

#[test]
fn who_may_not_use_it_yet_is_told_who_can_help() {
    let database = Database::new("not_enabled");
    let role = database.outsider("eve", "");
    let mut eve = database.connect(&role);
    for sql in [
        "SELECT rag_status()",
        "SELECT * FROM rag_search('x')",
        "SELECT rag_ingest('x')",
        "SELECT count(*) FROM rag.document",
        "INSERT INTO rag.document (content) VALUES ('x')",
    ] {
        let failure = eve.refuses("42501", sql);
        assert!(failure.hint.contains("SELECT rag_enable('role')"), "{failure}");
    }
    // What is not ours, or stays with superusers, gets no such advice.
    database.admin().run("CREATE SCHEMA ragged; CREATE TABLE ragged.t ()");
    for sql in ["SELECT rag_enable('x')", "SELECT * FROM ragged.t", "SELECT pg_read_file('x')"] {
        let failure = eve.refuses("42501", sql);
        assert!(!failure.hint.contains("rag_enable"), "{failure}");
    }
}

#[test]
fn what_the_engine_lacks_is_named_and_mended_by_a_reload() {
    let cluster = Cluster::builder("lacking").start();
    let database = cluster.database("lacking");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    admin.notices();
    cluster.running_engine();
    for (setting, value, codes) in [
        ("rag_ext.engine_path", "/nonexistent/engine", ["58000", "58000"]),
        ("rag_ext.model_path", "/nonexistent/models", ["42704", "55000"]),
        ("rag_ext.onnxruntime_path", "/nonexistent/onnx.so", ["55000", "55000"]),
        ("rag_ext.embedding_model", "no-such-model", ["42704", "55000"]),
    ] {
        admin.run(&format!("ALTER SYSTEM SET {setting} = '{value}'"));
        cluster.reload();
        let call = "SELECT rag_embed('something new ' || clock_timestamp())";
        wait_until(setting, LIMIT, || {
            let refused = ann.try_rows(call).is_err_and(|failure| codes.contains(&failure.code.as_str()));
            refused && admin.value("SELECT rag_status()").contains("PROBLEM")
        });
        assert!(!ann.value("SELECT rag_status()").contains("/nonexistent"), "paths are for superusers");
        admin.run(&format!("ALTER SYSTEM RESET {setting}"));
        cluster.reload();
        wait_until("it works again", LIMIT, || ann.try_rows(call).is_ok());
    }
    admin.run("ALTER SYSTEM SET rag_ext.engine_memory_limit = '20MB'");
    cluster.reload();
    wait_until("the status says why the engine ends", LIMIT, || {
        admin.value("SELECT last_error FROM rag.engine_status").contains("engine_memory_limit allows, 20 MB")
    });
    assert!(cluster.log().contains("ended itself, for it held more memory"), "{}", cluster.log_tail());
    admin.run("ALTER SYSTEM RESET rag_ext.engine_memory_limit");
    admin.run("ALTER SYSTEM SET rag_ext.rerank_model = ''");
    cluster.reload();
    let call = "SELECT * FROM rag_rerank('x', ARRAY['y ' || clock_timestamp()])";
    wait_until("no reranker is left", LIMIT, || {
        ann.try_rows(call).is_err_and(|f| f.code == "55000" && !f.hint.is_empty())
    });
    // A missing reranker costs a search its reranking and nothing else.
    ann.ingest("A single sentence.", "one");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('sentence', options => '{\"rerank\": true}')"), 1);
    assert!(!ann.json("SELECT rag_answer('Is there a single sentence?')")["diagnostics"].is_null());
}

#[test]
fn ordinary_roles_change_no_path_and_no_address() {
    let cluster = Cluster::builder("settings").start();
    let database = cluster.database("settings");
    let mut ann = database.user("ann");
    let settings = database.admin().column("SELECT name FROM pg_settings WHERE name LIKE 'rag_ext.%'");
    assert!(settings.len() > 10, "{settings:?}");
    for name in settings {
        let secret = ["path", "url", "key", "llm"].iter().any(|word| name.contains(word));
        let outcome = ann.try_run(&format!("SET {name} = '1'"));
        if secret || name.ends_with("all_domains") || name.ends_with("allow_remote") {
            assert!(outcome.is_err(), "{name} can be set by anybody");
        }
        if secret {
            assert!(ann.try_rows(&format!("SHOW {name}")).is_err(), "{name} can be read by anybody");
        }
    }
    ann.refuses("42602", "SET rag_ext.no_such_setting = 1");
}

#[test]
fn the_engine_talks_to_its_own_server_only() {
    let cluster = Cluster::builder("peer").start();
    let database = cluster.database("peer");
    drop(database.user("ann"));
    let engine = cluster.running_engine();
    let sockets = std::fs::read_to_string(format!("/proc/{}/net/unix", engine.pid)).unwrap();
    let name = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7))
        // The postmaster's own sockets stand in the same list, by their absolute paths.
        .find(|path| {
            !path.starts_with(['@', '/']) && path.contains("rag") && cluster.data().join(path).exists()
        })
        .unwrap_or_else(|| panic!("no socket of the engine in {sockets}"));
    let path: PathBuf = cluster.data().join(name);
    let metadata = std::fs::metadata(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    assert_eq!(mode & 0o077, 0, "the socket's mode is {mode:o}");
    let data = std::fs::metadata(cluster.data()).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&metadata), std::os::unix::fs::MetadataExt::uid(&data));

    // This process is not the server's user where the tests run as root: it must be turned away unheard.
    if std::os::unix::fs::MetadataExt::uid(&data) != rustix::process::geteuid().as_raw() {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        assert!(ended.is_ok() || answer.is_empty(), "{ended:?}");
        assert!(answer.is_empty(), "the engine answered a stranger: {answer:?}");
    } else {
        // The same user may connect; what is not the protocol is refused, and the engine lives on.
        let mut stream = UnixStream::connect(&path).unwrap();
        std::io::Write::write_all(&mut stream, &[0xff; 64]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    assert!(engine.runs());
    cluster.running_engine();
}
