//! Deleting collections: gone with the commit whatever they hold, cleared away in the background.

use super::{LIMIT, assert_within, long_text, put, time};
use rag_tests::{Database, Session, wait_until};
use std::time::{Duration, Instant};

const DERIVED: [&str; 13] = [
    "document",
    "chunk",
    "section",
    "embedding",
    "segment",
    "metadata_value",
    "mined_acronym",
    "job",
    "deletion_count",
    "entity_mention",
    "entity_relation",
    "document_link",
    "graph_job",
];

/// Rows of this owner's domains that nobody sees any more, as a superuser counts them.
fn remains(admin: &mut Session) -> i64 {
    let counts = DERIVED.map(|table| {
        format!("(SELECT count(*) FROM rag.{table} t WHERE t.domain_id NOT IN (SELECT id FROM rag.domain WHERE collection_id IS NOT NULL))")
    });
    admin.count(&format!(
        "SELECT {} + (SELECT count(*) FROM rag.domain WHERE collection_id IS NULL)",
        counts.join(" + ")
    ))
}

/// Adds documents of 100 chunks each, with a vector for each chunk, without the engine.
fn fill(admin: &mut Session, collection: &str, documents: usize) {
    admin.run(&format!(
        "CREATE TEMP TABLE made AS
             SELECT rag.new_id() AS id, d.id AS domain_id, d.owner, n
             FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id, generate_series(1, {documents}) n
             WHERE c.name = '{collection}';
         INSERT INTO rag.document (id, collection, owner, uri, content, text, status, chunks, domain_id, updated_at)
             SELECT id, '{collection}', owner, 'bulk ' || n, 'made', 'made', 'done', 100, domain_id, '2020-01-01' FROM made;
         INSERT INTO rag.section (domain_id, id, document_id, ordinal, header_path, char_from, char_to)
             SELECT domain_id, id, id, 0, '{{}}', 0, 4 FROM made;
         INSERT INTO rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens, char_from, char_to, sha256)
             SELECT domain_id, gen_random_uuid(), id, id, c, 'made', '', 1, 0, 4, '' FROM made, generate_series(0, 99) c;
         INSERT INTO rag.embedding (vector_space_id, domain_id, chunk_id, vector)
             SELECT (SELECT id FROM rag.vector_space), k.domain_id, k.id, (SELECT vector FROM rag.embedding LIMIT 1)
             FROM rag.chunk k JOIN made m ON m.id = k.document_id WHERE k.ordinal < 20;
         INSERT INTO rag.job (domain_id, document_id, version, state, finished_at)
             SELECT domain_id, id, 1, 'done', '2020-01-01' FROM made;
         DROP TABLE made"
    ));
}

#[test]
fn a_collection_of_200_000_chunks_is_deleted_in_a_moment_and_its_name_is_free() {
    let database = Database::new("drop_large");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    ann.run("SELECT rag_create_collection('large')");
    ann.run("SELECT rag_ingest('The first of many notes.', uri => 'bulk 1 of them', collection => 'large')");
    ann.settle();
    fill(&mut admin, "large", 2000);
    assert!(ann.count("SELECT count(*) FROM rag.chunk") > 200_000);
    assert_eq!(ann.count("SELECT documents FROM rag.collection_status WHERE collection = 'large'"), 2001);
    // What somebody holds is left to the end, and with it the domain.
    let mut holder = database.admin();
    holder.run("BEGIN; SELECT FROM rag.document WHERE uri = 'bulk 3' FOR UPDATE");

    let deletion = "DELETE FROM rag.collection WHERE name = 'large'";
    assert_within(Duration::from_secs(1), deletion, || {
        ann.run("BEGIN");
        let took = time(&mut ann, deletion);
        ann.run("ROLLBACK");
        took
    });
    ann.run(deletion);
    assert!(remains(&mut admin) > 20_000, "they are cleared away later");
    for table in DERIVED.into_iter().filter(|table| *table != "embedding") {
        assert_eq!(ann.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
    for view in ["job_status", "failed_job", "collection_status"] {
        assert_eq!(ann.count(&format!("SELECT count(*) FROM rag.{view}")), 0, "rag.{view}");
        assert_eq!(admin.count(&format!("SELECT count(*) FROM rag.{view}")), 0, "rag.{view}");
    }
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('notes')"), 0);
    ann.refuses("42704", "SELECT count(*) FROM rag_search('notes', collection => 'large')");

    // The same name and the same keys, at once.
    ann.run("SELECT rag_create_collection('large')");
    ann.run(
        "INSERT INTO rag.document (collection, uri, content) VALUES ('large', 'bulk 7', 'A new note.')
             ON CONFLICT (collection, owner, uri) DO UPDATE SET content = excluded.content",
    );
    ann.run("INSERT INTO rag.document (collection, uri, content) VALUES ('large', 'bulk', 'Another note.')");
    ann.run("UPDATE rag.document SET uri = 'bulk 8' WHERE uri = 'bulk'");
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('note', 'large', k => 10)"), 2);
    wait_until("the rest is cleared away", Duration::from_secs(600), || remains(&mut admin) <= 2);
    holder.run("ROLLBACK");
    // Looked for again when there is something to do, or after a nap.
    ann.run("INSERT INTO rag.document (collection, uri, content) VALUES ('large', 'last', 'The last note.')");
    ann.settle();

    wait_until("everything is cleared away", Duration::from_secs(600), || remains(&mut admin) == 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), 3);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('note', 'large', k => 10)"), 3);
    assert_eq!(admin.count("SELECT count(*) FROM rag.embedding"), 3);
}

#[test]
fn the_default_collection_can_be_deleted_and_comes_back_by_itself() {
    let database = Database::new("drop_default");
    let mut ann = database.user("ann");
    let (mut admin, mut holder) = (database.admin(), database.admin());
    for round in 0..3 {
        ann.run(&format!(
            "INSERT INTO rag.document (uri, content) VALUES ('note', 'Note of round {round}.')"
        ));
        ann.settle();
        assert_eq!(ann.column("SELECT content FROM rag.chunk"), [format!("Note of round {round}.")]);
        assert_eq!(ann.count("SELECT count(*) FROM rag_search('note', k => 10)"), 1);
        if round == 0 {
            // So that what was deleted in this round is still being cleared away in the next ones.
            ann.run("INSERT INTO rag.document (uri, content) VALUES ('held', 'Held by somebody.')");
            holder.run("BEGIN; SELECT FROM rag.document WHERE uri = 'held' FOR UPDATE");
        }
        ann.run("SELECT rag_drop_collection('default')");
        assert!(remains(&mut admin) > 0);
        assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
        // Inserted by the statement that makes the domain anew.
        let id = ann.ingest("In between.", "between");
        assert_eq!(ann.column("SELECT id FROM rag.document"), [id]);
        ann.run("DELETE FROM rag.collection WHERE name = 'default'");
    }
    holder.run("ROLLBACK");
    ann.run("SELECT rag_create_collection('another'), rag_drop_collection('another')");
    wait_until("everything is cleared away", LIMIT, || remains(&mut admin) == 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag.collection"), 0);
}

#[test]
fn deleting_a_collection_that_is_being_worked_on_stops_the_work_without_a_complaint() {
    let database = Database::new("drop_running");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('running')");
    for n in 0..3 {
        ann.run(&format!(
            "INSERT INTO rag.document (collection, content) VALUES ('running', {})",
            long_text(300, &format!("surveyor{n}"))
        ));
    }
    wait_until("work has begun", LIMIT, || {
        ann.count("SELECT count(*) FROM rag.job WHERE state = 'running'") > 0
    });
    ann.run("SELECT rag_drop_collection('running')");
    let dropped = Instant::now();
    let mut admin = database.admin();
    wait_until("everything is cleared away", LIMIT, || remains(&mut admin) == 0);
    put(&mut ann, "default", 2);
    ann.settle();
    assert!(dropped.elapsed() < Duration::from_secs(40), "{:?}", dropped.elapsed());
    let log = database.cluster().log();
    let mark = format!("@{} ", database.name());
    let noise: Vec<&str> = log
        .lines()
        .filter(|line| {
            line.contains(&mark) && ["WARNING", "ERROR", "FATAL"].iter().any(|word| line.contains(word))
        })
        .collect();
    assert!(noise.is_empty(), "{noise:#?}");
}

#[test]
fn what_is_inserted_while_its_collection_is_deleted_does_not_stay_behind() {
    let database = Database::new("drop_race");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let mut admin = database.admin();
    ann.run("SELECT rag_create_collection('notes')");
    put(&mut ann, "notes", 3);
    ann.settle();
    ann.run("BEGIN; INSERT INTO rag.document (collection, content) VALUES ('notes', 'In time.')");
    let mut other = database.connect(&role);
    let deletion = std::thread::spawn(move || other.run("DELETE FROM rag.collection WHERE name = 'notes'"));
    wait_until("the deletion waits", LIMIT, || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM rag.collection%'") == 1
    });
    ann.run("COMMIT");
    deletion.join().unwrap();
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
    wait_until("everything is cleared away", LIMIT, || remains(&mut admin) == 0);
    assert_eq!(admin.count("SELECT count(*) FROM rag.document"), 0);
}

#[test]
fn what_waits_for_the_deletion_of_its_collection_is_refused() {
    let database = Database::new("drop_waits");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run("SELECT rag_create_collection('notes')");
    put(&mut ann, "notes", 1);
    put(&mut ann, "default", 1);
    ann.settle();
    ann.run("BEGIN; SELECT rag_drop_collection('notes')");
    let refused = [
        "INSERT INTO rag.document (collection, content) VALUES ('notes', 'Too late.')",
        "UPDATE rag.document SET collection = 'notes', uri = 'moved' WHERE collection = 'default'",
        "SELECT rag_ingest('Too late.', collection => 'notes', options => '{\"sync\": true}')",
    ]
    .map(|sql| {
        let mut other = database.connect(&role);
        std::thread::spawn(move || other.error(sql).code)
    });
    let mut admin = database.admin();
    wait_until("all wait", LIMIT, || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 3
    });
    ann.run("COMMIT");
    assert_eq!(refused.map(|code| code.join().unwrap()), ["42704"; 3]);
    assert_eq!(ann.column("SELECT collection FROM rag.document"), ["default"]);
}

#[test]
fn deleting_is_the_owners_alone_and_takes_others_documents_along() {
    let database = Database::new("drop_rights");
    let (ann_role, bob_role) = (database.role("ann"), database.role("bob"));
    let (mut ann, mut bob) = (database.connect(&ann_role), database.connect(&bob_role));
    ann.run("SELECT rag_create_collection('manuals')");
    let name = format!("role:{ann_role}/manuals");
    for privilege in ["read", "write"] {
        ann.run(&format!("SELECT rag_grant('manuals', 'role:{bob_role}', '{privilege}')"));
    }
    put(&mut bob, &name, 2);
    put(&mut ann, "manuals", 2);
    bob.run(&format!("SELECT rag_accept('role:{ann_role}', 'manuals')"));
    bob.settle();
    bob.run("DELETE FROM rag.collection");
    bob.refuses("42501", &format!("SELECT rag_drop_collection('{name}')"));
    assert_eq!(ann.count("SELECT count(*) FROM rag.collection"), 1);
    let deleted = ann.client().execute("DELETE FROM rag.collection WHERE name = $1", &[&"manuals"]).unwrap();
    assert_eq!(deleted, 1, "as many rows as a mapper expects");
    for session in [&mut ann, &mut bob] {
        for table in ["document", "domain", "collection_grant", "accepted_collection", "collection"] {
            assert_eq!(session.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
        }
    }
    bob.refuses("42704", &format!("SELECT rag_search('note', collection => '{name}')"));
    let mut admin = database.admin();
    wait_until("everything is cleared away", LIMIT, || remains(&mut admin) == 0);
    ann.run("SELECT rag_create_collection('theirs')");
    admin.run(&format!("SELECT rag_drop_collection('role:{ann_role}/theirs')"));
    assert_eq!(ann.count("SELECT count(*) FROM rag.collection"), 0);
}
