//! Damage: what it does not reach is still found, it stops nobody else, and rag_verify finds and mends it.

use super::{WORD, assert_retrievers_agree};
use rag_tests::{Cluster, Database, Session, Shutdown, wait_until};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Findings, as kind and problem, and how many were not repaired.
fn findings(session: &mut Session, call: &str) -> (Vec<String>, i64) {
    let rows = session.rows(&format!("SELECT kind || ': ' || problem, repaired FROM {call} ORDER BY 1"));
    let open = rows.iter().filter(|row| row[1].as_deref() != Some("t")).count();
    (rows.into_iter().filter_map(|mut row| row[0].take()).collect(), open as i64)
}

#[track_caller]
fn assert_sound(session: &mut Session, when: &str) {
    assert_eq!(findings(session, "rag_verify()"), (Vec::new(), 0), "{when}");
}

/// Uris with scores to the last bit, and what the stage "keyword" says.
fn found(session: &mut Session, mode: &str) -> (Vec<Vec<Option<String>>>, serde_json::Value) {
    let call = format!("rag_search('{WORD} number', k => 100, mode => '{mode}')");
    let rows = session.rows(&format!("SELECT uri, keyword_score, vector_score FROM {call} ORDER BY rank"));
    let stages = session.json(&format!("SELECT details -> 'stages' FROM {call} WHERE rank = 1"));
    let keyword = stages.as_array().unwrap().iter().find(|stage| stage["stage"] == "keyword");
    (rows, keyword.cloned().unwrap_or_default())
}

#[test]
fn a_damaged_segment_hides_its_own_entries_alone_and_stops_nobody() {
    let database = Database::new("damaged_segment");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let mut owner = database.connect(&ann);
    let mut admin = database.admin();
    // As many segments as are merged at once, if only all could be read.
    for n in 0..7 {
        owner.ingest(&format!("{WORD} number {n}."), &format!("a{n}"));
    }
    let modes = ["keyword", "vector", "hybrid"];
    let sound: Vec<_> = modes.iter().map(|mode| found(&mut owner, mode).0).collect();
    assert_sound(&mut owner, "before");
    admin.run(
        "UPDATE rag.segment SET data = set_byte(data, length(data) / 2, 255 - get_byte(data, length(data) / 2))
         WHERE id = (SELECT id FROM rag.segment ORDER BY id LIMIT 1)",
    );

    let mut owner = database.connect(&ann);
    owner.notices();
    for (mode, before) in modes.iter().zip(&sound) {
        let (rows, keyword) = found(&mut owner, mode);
        let expected = if *mode == "keyword" { 6 } else { 7 };
        assert_eq!((rows.len(), before.len()), (expected, 7), "{mode}: {rows:?}");
        let warnings = owner.notices();
        if *mode == "vector" {
            assert_eq!((&rows, warnings.len()), (before, 0), "{warnings:?}");
            continue;
        }
        assert_eq!(keyword["fallback"], "what is sound", "{keyword}");
        assert!(keyword["reason"].as_str().unwrap().contains("SHA-256"), "{keyword}");
        assert!(warnings.iter().all(|w| w.code == "XX001" && w.hint.contains("rag_verify")), "{warnings:?}");
        assert!(!warnings.is_empty());
    }
    owner.json(&format!("SELECT rag_answer('What is {WORD} number 3?')"));

    // The merge that cannot be is put off; the work of all goes on.
    let mut other = database.connect(&bob);
    for n in 0..2 {
        owner.ingest(&format!("{WORD} number c {n}."), &format!("c{n} at once"));
    }
    for (session, name) in [(&mut owner, "c"), (&mut other, "b")] {
        session.run(&format!(
            "INSERT INTO rag.document (uri, content) SELECT '{name}' || n, '{WORD} number {name} ' || n FROM generate_series(1, 20) n"
        ));
        session.settle();
    }
    wait_until("the merge is put off", Duration::from_secs(60), || {
        admin.count("SELECT count(*) FROM rag.merge_failure WHERE sqlstate = 'XX001'") == 1
    });
    other.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('later', '{WORD} number later')"));
    other.settle();
    assert_eq!(found(&mut other, "keyword").0.len(), 21);
    assert_sound(&mut other, "somebody else");

    let (problems, open) = findings(&mut owner, "rag_verify()");
    assert!(problems.len() == 1 && problems[0].starts_with("segment: ") && open == 1, "{problems:?}");
    assert_eq!(findings(&mut owner, "rag_verify('default', repair => true)"), (problems, 0));
    assert_sound(&mut owner, "after the repair");
    assert_eq!(admin.count("SELECT count(*) FROM rag.merge_failure"), 0);
    owner.run("DELETE FROM rag.document WHERE uri LIKE 'c%'");
    owner.run("SELECT rag_verify(repair => true)");
    owner.notices();
    wait_until("the deleted are merged away", Duration::from_secs(60), || {
        admin.count("SELECT count(*) FROM rag.deletion_count") == 0
    });
    let healed: Vec<_> = modes.iter().map(|mode| found(&mut owner, mode).0).collect();
    assert_eq!(healed, sound);
    assert!(owner.notices().is_empty());
}

#[test]
fn pages_that_cannot_be_read_are_left_out_and_given_up_by_a_superuser() {
    let cluster = Cluster::builder("bad_page").setting("rag_ext.merge_enabled", "off").start();
    let database = cluster.database("bad_page");
    let ann = database.role("ann");
    let mut owner = database.connect(&ann);
    // Segments too large for one row of their table.
    let words = owner.value("SELECT string_agg(left(md5(n::text), 8), ' ') FROM generate_series(1, 60) n");
    for n in 0..4 {
        owner.ingest(&format!("{WORD} number {n}. {words}"), &format!("a{n}"));
    }
    let mut admin = database.admin();
    // Without them damage is found by digests, and does not keep rows from being deleted.
    let has_checksums = admin.value("SHOW data_checksums") == "on";
    let file = admin.value(
        "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = 'rag.segment'::regclass",
    );
    admin.run("CHECKPOINT");
    drop((owner, admin));
    cluster.stop(Shutdown::Fast);
    let file = std::fs::OpenOptions::new().write(true).open(cluster.data().join(file)).unwrap();
    assert!(file.metadata().unwrap().len() > 8192, "more than one page");
    file.write_all_at(b"damage", 8192 - 600).unwrap();
    cluster.start();
    cluster.running_engine();
    let mut owner = database.connect(&ann);
    let left = found(&mut owner, "keyword").0.len();
    assert!((1..4).contains(&left), "{left} of 4 found");
    assert_eq!((found(&mut owner, "vector").0.len(), found(&mut owner, "hybrid").0.len()), (4, 4));
    let (problems, open) = findings(&mut owner, "rag_verify(repair => true)");
    assert!(!problems.is_empty() && (open > 0) == has_checksums, "{problems:?}");
    let mut admin = database.admin();
    admin.run("SET rag_ext.all_domains = on; SET zero_damaged_pages = on");
    assert_eq!(findings(&mut admin, "rag_verify(repair => true)").1, 0);
    assert_sound(&mut database.connect(&ann), "after the repair");
    assert_eq!(found(&mut database.connect(&ann), "keyword").0.len(), 4);
}

#[test]
fn whatever_disagrees_is_found_and_mended() {
    let database = Database::new("disagreeing");
    let mut owner = database.user("ann");
    let mut admin = database.admin();
    for n in 0..6 {
        owner.ingest(
            &format!("# Überschrift {n}\n\n{WORD} number {n}, naïve.\n\n## Second\n\nMore of {WORD}."),
            &format!("a{n}"),
        );
    }
    assert_sound(&mut owner, "before");
    let of = |uri: &str| format!("(SELECT id FROM rag.document WHERE uri = '{uri}')");
    let cases = [
        (format!("UPDATE rag.chunk SET content = content || '!' WHERE document_id = {}", of("a0")), "text: 2 of 2 chunks are not"),
        (format!("UPDATE rag.chunk SET char_from = char_from + 1 WHERE document_id = {}", of("a0")), "text: 2 of 2 chunks are not"),
        (format!("DELETE FROM rag.section WHERE document_id = {}", of("a1")), "text: 2 of 2 chunks have no section"),
        (format!("DELETE FROM rag.embedding WHERE chunk_id IN (SELECT id FROM rag.chunk WHERE document_id = {})", of("a2")), "vector: 2 chunks have no vector"),
        ("INSERT INTO rag.embedding SELECT vector_space_id, domain_id, gen_random_uuid(), vector FROM rag.embedding LIMIT 3".into(), "vector: 3 vectors belong to no chunk"),
        ("INSERT INTO rag.entity_mention (domain_id, document_id, chunk_id, key, kind, name, weight) SELECT domain_id, document_id, gen_random_uuid(), 'x', 'term', 'X', 1 FROM rag.chunk LIMIT 2".into(), "graph: 2 rows of the graph belong to no chunk"),
        (format!("UPDATE rag.document SET chunks = 7 WHERE id = {}", of("a3")), "counter: it counts 7 chunks and has 2"),
        (
            "DELETE FROM rag.segment WHERE id = (SELECT id FROM rag.segment ORDER BY id LIMIT 1)".to_owned(),
            "segment: ",
        ),
        ("SET session_replication_role = replica; INSERT INTO rag.chunk SELECT domain_id, gen_random_uuid(), gen_random_uuid(), section_id, ordinal, content, context, tokens, char_from, char_to, page_from, page_to, sha256 FROM rag.chunk LIMIT 1; RESET session_replication_role".into(), "text: 1 chunks belong to no document"),
    ];
    for (damage, problem) in &cases {
        admin.run(damage);
        let (problems, open) = findings(&mut owner, "rag_verify()");
        let is_found = problems.iter().any(|found| found.starts_with(problem));
        assert!(is_found && open == problems.len() as i64, "{problems:?} after {damage}");
        assert_eq!(findings(&mut owner, "rag_verify(repair => true)"), (problems, 0), "{damage}");
        owner.settle();
        assert_sound(&mut owner, damage);
        assert_eq!(assert_retrievers_agree(&mut owner, damage), 12);
    }
    // In one transaction, for a worker would merge what is deleted.
    owner.run("BEGIN; DELETE FROM rag.document WHERE uri = 'a5'");
    assert_sound(&mut owner, "after a deletion");
    owner.run("COMMIT");

    let mut other = database.user("bob");
    other
        .refuses("42704", &format!("SELECT * FROM rag_verify('role:{}/default')", database.role_name("ann")));
    owner.run(&format!("SELECT rag_grant('default', 'role:{}', 'read')", database.role_name("bob")));
    other
        .refuses("42501", &format!("SELECT * FROM rag_verify('role:{}/default')", database.role_name("ann")));
    assert_sound(&mut other, "somebody else");
    owner.refuses("42704", "SELECT * FROM rag_verify('missing')");
    owner.refuses("22004", "SELECT * FROM rag_verify(repair => NULL)");
    admin.run("SELECT rag_add_policy('rag.document', 'some', 'uri <> ''a1''', command => 'select')");
    owner.refuses("42501", "SELECT * FROM rag_verify()");
}

#[test]
fn vectors_without_a_chunk_cost_no_result_and_are_swept() {
    let cluster = Cluster::builder("ghosts")
        .setting("rag_ext.ingest_workers", "0")
        .setting("rag_ext.launcher_naptime", "1")
        .start();
    let database = cluster.database("ghosts");
    let mut ann = database.user("ann");
    for n in 0..12 {
        ann.ingest(&format!("{WORD} number {n}."), &format!("a{n}"));
    }
    let mut admin = database.admin();
    let modes = ["vector", "hybrid"];
    let top = |session: &mut Session, mode: &str| {
        session.rows(&format!(
            "SELECT uri, score, vector_rank, vector_score FROM rag_search('{WORD} number', k => 10, mode => '{mode}', options => '{{\"candidates\": 10}}') ORDER BY rank"
        ))
    };
    let before: Vec<_> = modes.iter().map(|mode| top(&mut ann, mode)).collect();
    assert!(before.iter().all(|rows| rows.len() == 10), "{before:?}");
    let stray = "SELECT count(*) FROM rag.embedding e WHERE NOT EXISTS (SELECT FROM rag.chunk c WHERE c.id = e.chunk_id)";
    admin.run("INSERT INTO rag.embedding SELECT vector_space_id, domain_id, gen_random_uuid(), vector FROM rag.embedding, generate_series(1, 40)");
    assert_eq!(modes.iter().map(|mode| top(&mut ann, mode)).collect::<Vec<_>>(), before);

    // A deletion that waited for one who added a vector takes that along.
    admin.run(
        "DELETE FROM rag.embedding e WHERE NOT EXISTS (SELECT FROM rag.chunk c WHERE c.id = e.chunk_id);
         CREATE TABLE kept AS SELECT e.* FROM rag.embedding e JOIN rag.chunk c ON c.id = e.chunk_id
             JOIN rag.document d ON d.id = c.document_id WHERE d.uri = 'a3';
         DELETE FROM rag.embedding WHERE chunk_id IN (SELECT chunk_id FROM kept);
         BEGIN;
         SELECT FROM rag.chunk WHERE id IN (SELECT chunk_id FROM kept) FOR KEY SHARE;
         INSERT INTO rag.embedding SELECT * FROM kept",
    );
    std::thread::scope(|scope| {
        let pid = ann.pid();
        let deletion = scope.spawn(|| ann.run("DELETE FROM rag.document WHERE uri = 'a3'"));
        let mut witness = database.admin();
        wait_until("the deletion waits", Duration::from_secs(30), || {
            witness.holds(&format!(
                "SELECT wait_event_type IS NOT DISTINCT FROM 'Lock' FROM pg_stat_activity WHERE pid = {pid}"
            ))
        });
        admin.run("COMMIT");
        deletion.join().unwrap();
    });
    assert_eq!(admin.count(stray), 0);

    admin.run("INSERT INTO rag.embedding SELECT vector_space_id, domain_id, gen_random_uuid(), vector FROM rag.embedding, generate_series(1, 40)");
    assert!(admin.count(stray) > 0);
    cluster.configure("rag_ext.ingest_workers = 1\n");
    cluster.reload();
    wait_until("a worker has swept", Duration::from_secs(60), || admin.count(stray) == 0);
    assert_eq!(top(&mut ann, "vector").len(), 10);
}

#[test]
fn files_of_a_dropped_database_go_with_it() {
    // Workers of a database take away what none of its segments is called; here the launcher is to do it.
    let cluster = Cluster::builder("dropped")
        .setting("rag_ext.launcher_naptime", "1")
        .setting("rag_ext.ingest_workers", "0")
        .start();
    let database = cluster.database("dropped");
    let mut admin = cluster.connect("postgres", "postgres");
    let folder = cluster.data().join("pg_stat_tmp/rag_ext");
    let oid = |admin: &mut Session, name: &str| {
        admin.count(&format!("SELECT oid::bigint FROM pg_database WHERE datname = '{name}'"))
    };
    let (dropped, kept) = (oid(&mut admin, database.name()), oid(&mut admin, "postgres"));
    cluster.running_engine();
    let files = [dropped, kept].map(|oid| folder.join(format!("{oid}_00ff")));
    files.iter().for_each(|file| std::fs::write(file, "segment").unwrap());
    std::thread::sleep(Duration::from_secs(2));
    assert!(files.iter().all(|file| file.exists()));
    let name = database.name().to_owned();
    drop(database);
    wait_until("the database is gone", Duration::from_secs(30), || {
        admin.try_run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).is_ok()
    });
    wait_until("its files are gone", Duration::from_secs(30), || !files[0].exists());
    assert!(files[1].exists());
}
