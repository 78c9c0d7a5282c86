//! Writing: only as oneself, only into what one may write.

use super::own_something;
use rag_tests::{Database, literal};

#[test]
fn the_first_insert_of_a_new_owner_returns_its_row() {
    let database = Database::new("first_insert");
    let mut ann = database.user("ann");
    let row = ann.rows(
        "INSERT INTO rag.document (content) VALUES ('first') RETURNING owner, collection, status, version",
    );
    let owner = format!("role:{}", database.role_name("ann"));
    assert_eq!(row[0], [Some(owner), Some("default".into()), Some("pending".into()), Some("1".into())]);
    let gateway = database.gateway("gateway");
    let mut app = database.connect(&gateway);
    for user in ["1", "2"] {
        app.run(&format!("BEGIN; SET LOCAL rag_ext.user_id = '{user}'"));
        assert_eq!(
            app.value("INSERT INTO rag.document (content) VALUES ('first') RETURNING owner"),
            format!("user:{gateway}/{user}")
        );
        app.run("COMMIT");
    }
}

#[test]
fn two_sessions_of_a_new_owner_may_begin_at_once() {
    let database = Database::new("race");
    for round in 0..5 {
        let role = database.role(&format!("new{round}"));
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let mut session = database.connect(&role);
                std::thread::spawn(move || {
                    session
                        .run(&format!("INSERT INTO rag.document (uri, content) VALUES ('{n}', 'text {n}')"))
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut session = database.connect(&role);
        assert_eq!(
            session.rows("SELECT count(*), count(DISTINCT domain_id) FROM rag.document")[0],
            [Some("4".into()), Some("1".into())]
        );
        assert_eq!(session.count("SELECT count(*) FROM rag.collection"), 1);
    }
}

#[test]
fn nobody_writes_in_anothers_name() {
    let database = Database::new("forging");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let theirs = own_something(&mut ann, "ann");
    let mine = own_something(&mut bob, "bob");
    let mut admin = database.admin();
    let owner = format!("role:{}", database.role_name("ann"));
    let domain = admin.value(&format!("SELECT domain_id FROM rag.document WHERE id = '{theirs}'"));
    let forged = [
        format!("INSERT INTO rag.document (owner, content) VALUES ('{owner}', 'forged')"),
        format!("INSERT INTO rag.document (owner, content) VALUES ('{owner}', 'forged') RETURNING id"),
        format!("UPDATE rag.document SET owner = '{owner}' WHERE id = '{mine}'"),
        "INSERT INTO rag.document (owner, content) VALUES ('role:postgres', 'forged')".to_owned(),
        "INSERT INTO rag.document (owner, content) VALUES ('public', 'forged')".to_owned(),
        "INSERT INTO rag.document (owner, content) VALUES ('role:never existed', 'forged')".to_owned(),
    ];
    for sql in forged {
        let failure = bob.error(&sql);
        assert!(["42501", "42704"].contains(&failure.code.as_str()), "{failure}\nin: {sql}");
    }
    // A domain is not asked for: what says so is one's own.
    let own = bob.value(&format!("SELECT domain_id FROM rag.document WHERE id = '{mine}'"));
    let inserted = format!(
        "INSERT INTO rag.document (domain_id, content) VALUES ('{domain}', 'forged') RETURNING domain_id"
    );
    assert_eq!(bob.value(&inserted), own);
    bob.run(&format!(
        "UPDATE rag.document SET domain_id = '{domain}'; DELETE FROM rag.document WHERE content = 'forged'"
    ));
    assert_eq!(bob.column("SELECT DISTINCT domain_id FROM rag.document"), [own]);

    // Hidden and missing collections of others are the same error.
    let default = bob.refuses(
        "42704",
        &format!("INSERT INTO rag.document (collection, content) VALUES ('{owner}/default', 'x')"),
    );
    let missing = bob.refuses(
        "42704",
        &format!("INSERT INTO rag.document (collection, content) VALUES ('{owner}/defauit', 'x')"),
    );
    assert_eq!(default.message.replace("defauit", "default"), missing.message.replace("defauit", "default"));

    for sql in ["UPDATE rag.document SET title = 'x' WHERE id = $$", "DELETE FROM rag.document WHERE id = $$"]
    {
        bob.run(&sql.replace("$$", &literal(&theirs)));
    }
    assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE title IS NULL"), 1);

    for table in [
        "chunk",
        "section",
        "embedding",
        "segment",
        "deletion_count",
        "job",
        "metadata_value",
        "acronym",
        "mined_acronym",
        "entity_mention",
        "entity_relation",
        "document_link",
        "graph_job",
        "domain",
        "vector_space",
        "collection",
        "collection_grant",
        "gateway",
        "accepted_collection",
    ] {
        bob.refuses("42501", &format!("INSERT INTO rag.{table} DEFAULT VALUES"));
    }
    for table in [
        "chunk",
        "section",
        "embedding",
        "segment",
        "deletion_count",
        "job",
        "metadata_value",
        "acronym",
        "mined_acronym",
        "entity_mention",
        "entity_relation",
        "document_link",
        "graph_job",
        "domain",
        "vector_space",
        "gateway",
    ] {
        bob.refuses("42501", &format!("DELETE FROM rag.{table}"));
    }
    for set in ["status = 'done'", "text = 'x'", "chunks = 5", "version = 9", "sha256 = ''", "error = 'x'"] {
        let row = format!(
            "SELECT d - 'updated_at' FROM (SELECT to_jsonb(d) AS d FROM rag.document d WHERE id = '{mine}') d"
        );
        let before = bob.value(&row);
        bob.run(&format!("UPDATE rag.document SET {set}"));
        assert_eq!(bob.value(&row), before, "{set}");
    }
    for table in ["document", "chunk", "embedding"] {
        bob.refuses("42501", &format!("TRUNCATE rag.{table} CASCADE"));
    }
    // Whether somebody's default was dropped is theirs alone to know.
    bob.run("SELECT rag.derived_domain(NULL, rag.current_owner())");
    bob.refuses("42501", &format!("SELECT rag.derived_domain(NULL, '{owner}')"));
    for call in [
        "rag.forget_documents('{}', '{}')",
        "rag.forget_feedback('{}', '{}')",
        "rag.forget_metadata('{}', '{}')",
        "rag.process_anew('{}', '{}')",
        "rag.set_rights('public', 'write')",
        "rag.adopt_principal(0::regrole, 'x')",
        "rag_enable('public')",
        "rag_disable('public')",
    ] {
        bob.refuses("42501", &format!("SELECT {call}"));
    }
}

#[test]
fn what_a_caller_may_not_set_is_set_for_him() {
    let database = Database::new("status");
    let mut ann = database.user("ann");
    ann.run("INSERT INTO rag.document (content, status, error, created_at, updated_at) VALUES ('sneaky words', 'done', 'none', now() - interval '1 day', now() - interval '1 day')");
    ann.settle();
    assert_eq!(ann.value("SELECT status || coalesce(error, '') FROM rag.document"), "done");
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_search('sneaky', mode => 'keyword')"),
        1,
        "it was processed all the same"
    );
}

#[test]
fn a_conflict_with_a_hidden_row_is_no_conflict() {
    let database = Database::new("conflict");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let upsert = "INSERT INTO rag.document (uri, content) VALUES ('same', 'Owned twice.')
                  ON CONFLICT (collection, owner, uri) DO UPDATE SET content = excluded.content, title = 'met' RETURNING title";
    assert_eq!(ann.value(upsert), "NULL");
    assert_eq!(bob.value(upsert), "NULL");
    assert_eq!(bob.value(upsert), "met");
    assert_eq!(ann.value("SELECT title FROM rag.document"), "NULL");
    let id = ann.value("SELECT id FROM rag.document");
    // An id that somebody else's row has is refused without a word about that row.
    let failure = bob.error(&format!("INSERT INTO rag.document (id, content) VALUES ('{id}', 'x')"));
    assert_eq!(failure.code, "23505", "{failure}");
    assert!(!failure.detail.contains("same") && !failure.detail.contains("Owned"), "{failure}");
    let quiet = bob.column(&format!(
        "INSERT INTO rag.document (id, content) VALUES ('{id}', 'x') ON CONFLICT DO NOTHING RETURNING id"
    ));
    assert!(quiet.is_empty());
}
