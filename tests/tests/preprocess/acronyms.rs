//! Acronyms: mined and given, and only those of what the caller sees.

use super::{found, stage};
use rag_tests::{Cluster, Database, wait_until};
use std::time::Duration;

const DEFINES: &str = "The service level agreement (SLA) is signed once a year by both sides.";
const LONG_ONLY: &str = "A service level agreement promises that the pumps run.";
const SHORT_ONLY: &str = "Nobody reads the SLA before the pumps stand still.";

#[test]
fn each_form_of_a_mined_acronym_finds_the_other() {
    let database = Database::new("acronym_mined");
    let mut ann = database.user("ann");
    ann.ingest(LONG_ONLY, "long");
    ann.ingest(SHORT_ONLY, "short");
    ann.ingest("Sourdough bread rises with wild yeast.", "bread");
    // Nothing to look up, and so no stage.
    assert_eq!(found(&mut ann, "SLA", "keyword", "{}"), ["short"]);
    assert_eq!(stage(&mut ann, "SLA", "keyword", "{}", "acronyms"), None);

    let defined = ann.ingest(DEFINES, "defines");
    let mined = "SELECT short_form || ' = ' || long_form FROM rag.mined_acronym";
    assert_eq!(ann.column(mined), ["SLA = service level agreement"]);
    for query in ["SLA", "service level agreements"] {
        let mut uris = found(&mut ann, query, "keyword", "{}");
        uris.sort();
        assert_eq!(uris, ["defines", "long", "short"], "{query}");
    }
    let snippet = "SELECT snippet FROM rag_search('SLA', mode => 'keyword', options => '{\"snippet_length\": 20}') WHERE uri = 'bells'";
    ann.ingest("All the old bells of the town ring at noon, says the service level agreement.", "bells");
    assert!(ann.value(snippet).contains("service level"));
    ann.run("DELETE FROM rag.document WHERE uri = 'bells'");
    let told = stage(&mut ann, "What is an SLA?", "hybrid", "{}", "acronyms").unwrap();
    assert_eq!(
        (&told["method"], &told["out"]),
        (&"SLA = service level agreement".into(), &1.into()),
        "{told}"
    );
    for options in [r#"{"acronyms": "off"}"#, r#"{"acronyms": "off", "spelling": "auto"}"#] {
        assert!(!found(&mut ann, "SLA in the spring", "keyword", options).contains(&"long".into()));
        assert_eq!(stage(&mut ann, "SLA", "keyword", options, "acronyms"), None);
    }
    // The gate of auto: short forms alone.
    let auto = r#"{"acronyms": "auto"}"#;
    assert!(found(&mut ann, "SLA", "keyword", auto).contains(&"long".into()));
    assert!(!found(&mut ann, "service level agreement", "keyword", auto).contains(&"short".into()));
    // Words in quotes are looked for as they are.
    assert!(!found(&mut ann, "\"SLA\"", "keyword", "{}").contains(&"long".into()));
    ann.refuses("22023", "SELECT * FROM rag_search('x', options => '{\"acronyms\": true}')");

    // They come and go with their document.
    ann.ingest("The slow local area (SLA) of the pool is closed.", "defines");
    assert_eq!(ann.column(mined), ["SLA = slow local area"]);
    ann.run(&format!("DELETE FROM rag.document WHERE id = '{defined}'"));
    assert_eq!(ann.count("SELECT count(*) FROM rag.mined_acronym"), 0);
    assert_eq!(found(&mut ann, "SLA", "keyword", "{}"), ["short"]);

    // Extraction mines the documents that were there before acronyms were.
    ann.ingest(DEFINES, "defines");
    database.admin().run("DELETE FROM rag.mined_acronym");
    ann.run("SELECT rag_reextract()");
    ann.settle();
    assert_eq!(ann.column(mined), ["SLA = service level agreement"]);
}

#[test]
fn the_most_common_meanings_are_taken_and_given_ones_come_first() {
    let database = Database::new("acronym_meanings");
    let mut ann = database.user("ann");
    for (uri, name) in [
        ("1", "first aid (FA)"),
        ("2", "fine art (FA)"),
        ("3", "fine art (FA)"),
        ("4", "flight attendant (FA)"),
        ("5", "field artillery (FA)"),
    ] {
        ann.ingest(&format!("We speak of {name} here, number {uri}."), uri);
    }
    let told = |session: &mut rag_tests::Session| {
        stage(session, "FA", "hybrid", "{}", "acronyms").unwrap()["method"].as_str().unwrap().to_owned()
    };
    assert_eq!(told(&mut ann), "FA = fine art; FA = field artillery; FA = first aid");
    ann.run("SELECT rag_set_acronym('default', 'FA', 'foot ailment')");
    ann.run("SELECT rag_set_acronym('default', 'FA', 'Foot Ailments')");
    assert_eq!(told(&mut ann), "FA = Foot Ailments; FA = fine art; FA = field artillery");
    assert_eq!(ann.count("SELECT count(*) FROM rag.acronym"), 1);
    assert_eq!(ann.count("SELECT rag_drop_acronym('default', 'FA', 'other')"), 0);
    assert_eq!(ann.count("SELECT rag_drop_acronym('default', 'FA')"), 1);
    assert_eq!(told(&mut ann), "FA = fine art; FA = field artillery; FA = first aid");
}

#[test]
fn only_the_owner_gives_acronyms_and_forms_are_checked() {
    let database = Database::new("acronym_rights");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut other) = (database.connect(&ann), database.connect(&bob));
    owner.ingest(LONG_ONLY, "long");
    let set = |collection: &str| {
        format!("SELECT rag_set_acronym('{collection}', 'SLA', 'service level agreement')")
    };
    other.refuses("42704", &set(&format!("role:{ann}/default")));
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'write')"));
    other.refuses("42501", &set(&format!("role:{ann}/default")));
    owner.refuses("42704", &set("missing"));
    owner.run(&set("default"));
    assert_eq!(found(&mut owner, "SLA", "keyword", "{}"), ["long"]);
    // Who can name the collection sees them; whoever cannot, does not.
    assert_eq!(other.count("SELECT count(*) FROM rag.acronym"), 1);
    assert_eq!(database.user("eve").count("SELECT count(*) FROM rag.acronym"), 0);
    other.refuses("42501", &format!("SELECT rag_drop_acronym('role:{ann}/default', 'SLA')"));
    other.refuses("42501", "DELETE FROM rag.acronym");
    database.admin().run(&set(&format!("role:{ann}/default")));
    for (short, long) in
        [("", "x y"), ("A B", "x y"), ("AAAAAAAAAAA", "x y"), ("AB", " - "), ("AB", "ab"), ("A\u{7}", "x y")]
    {
        let refused =
            owner.refuses("22023", &format!("SELECT rag_set_acronym('default', '{short}', '{long}')"));
        assert_ne!(refused.hint, "", "{refused}");
    }
    owner.refuses("22004", "SELECT rag_set_acronym('default', NULL, 'x')");
    owner.run("DELETE FROM rag.collection WHERE name = 'default'");
    assert_eq!(database.admin().count("SELECT count(*) FROM rag.acronym"), 0);
}

#[test]
fn what_others_define_does_not_exist() {
    let database = Database::new("acronym_isolation");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut other) = (database.connect(&ann), database.connect(&bob));
    owner.ingest("The service level agreement (SLA) is old.", "ann1");
    owner.ingest("A service level agreement.", "ann2");
    let seen = |session: &mut rag_tests::Session| {
        let sql = "SELECT uri, score, keyword_score, vector_score, (SELECT jsonb_agg(stage - 'ms') FROM jsonb_array_elements(details -> 'stages') stage)
                   FROM rag_search('SLA of the pumps', k => 5)";
        session.rows(sql)
    };
    other.ingest("A second language acquisition course about pumps.", "bob1");
    let alone = seen(&mut other);
    owner.ingest(
        "All pumps have a service level agreement (SLA), or a second language acquisition (SLA).",
        "ann3",
    );
    assert_eq!(seen(&mut other), alone);
    assert_eq!(other.count("SELECT count(*) FROM rag.mined_acronym"), 0);
    other.ingest("Second language acquisition (SLA) takes time.", "bob2");
    let told = |session: &mut rag_tests::Session| {
        stage(session, "SLA", "keyword", "{}", "acronyms").unwrap()["method"].clone()
    };
    assert_eq!(told(&mut other), "SLA = Second language acquisition");
    assert_eq!(told(&mut owner), "SLA = service level agreement; SLA = second language acquisition");

    // What is granted and accepted counts, until it is taken back.
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    other.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
    assert_eq!(told(&mut other), "SLA = Second language acquisition; SLA = service level agreement");
    owner.run(&format!("SELECT rag_revoke('default', 'role:{bob}', 'read')"));
    assert_eq!(told(&mut other), "SLA = Second language acquisition");
}

#[test]
fn what_policies_hide_defines_nothing() {
    let database = Database::new("acronym_hidden");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
    owner.ingest("A service level agreement is kept in the safe.", "open");
    owner.run("INSERT INTO rag.document (uri, content, metadata) VALUES ('secret', 'The service level agreement (SLA) is void.', '{\"secret\": true}')");
    owner.settle();
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
    assert!(found(&mut reader, "SLA", "keyword", "{}").contains(&"open".into()));
    database.admin().run(&format!(
        "SELECT rag_add_policy('rag.document', 'no_secrets', command => 'select',
             using_expression => $$current_user <> '{bob}' OR NOT metadata ? 'secret'$$)"
    ));
    assert!(found(&mut reader, "SLA", "keyword", "{}").is_empty());
    assert_eq!(reader.count("SELECT count(*) FROM rag.mined_acronym"), 0);
    // Nor where the policy hides the part of it that defines it.
    database.admin().run(&format!(
        "SELECT rag_drop_policy('rag.document', 'no_secrets');
         SELECT rag_add_policy('rag.chunk', 'no_void', command => 'select',
             using_expression => $$current_user <> '{bob}' OR content NOT LIKE '%void%'$$)"
    ));
    assert!(found(&mut reader, "SLA", "keyword", "{}").is_empty());
    for mut session in [reader, owner] {
        assert_eq!(session.count("SELECT count(*) FROM rag.mined_acronym"), 0);
    }
    (owner, reader) = (database.connect(&ann), database.connect(&bob));
    // Given ones stand in no document.
    owner.run("SELECT rag_set_acronym('default', 'SLA', 'service level agreement')");
    assert_eq!(found(&mut reader, "SLA", "keyword", "{}"), ["open"]);
}

#[test]
fn rows_of_attached_tables_define_for_those_who_see_them() {
    let database = Database::new("acronym_attached");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    owner.run(&format!(
        "CREATE TABLE notes (id int PRIMARY KEY, body text, reader text);
         INSERT INTO notes VALUES (1, 'A service level agreement lies in the drawer.', 'all'),
                                  (2, 'The service level agreement (SLA) is void.', 'nobody');
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
         CREATE POLICY all_rows ON notes USING (reader = 'all');
         GRANT SELECT ON notes TO {bob}"
    ));
    owner.run("SELECT rag_attach('notes', content => ARRAY['body'])");
    wait_until("both rows are indexed", Duration::from_secs(60), || {
        owner.count("SELECT count(*) FROM rag.document WHERE status = 'done'") == 2
    });
    let of = |session: &mut rag_tests::Session, collection: &str| {
        session.column(&format!(
            "SELECT content FROM rag_search('SLA', collection => '{collection}', mode => 'keyword')"
        ))
    };
    assert_eq!(of(&mut owner, "notes").len(), 2);
    assert!(of(&mut reader, &format!("role:{ann}/notes")).is_empty());
    owner.run("UPDATE notes SET reader = 'all'");
    wait_until("the row is followed", Duration::from_secs(60), || {
        of(&mut reader, &format!("role:{ann}/notes")).len() == 2
    });
}

#[test]
fn a_restored_dump_has_acronyms() {
    let cluster = Cluster::builder("acronym_dump").start();
    let database = cluster.database("acronym_dump");
    let mut ann = database.user("ann");
    ann.ingest(DEFINES, "defines");
    ann.run("SELECT rag_set_acronym('default', 'EOL', 'end of life')");
    let all = "SELECT short_form || ' = ' || long_form FROM rag.acronym
               UNION ALL SELECT short_form || ' = ' || long_form FROM rag.mined_acronym";
    let before = database.admin().column(all);
    assert_eq!(before.len(), 2);
    let file = cluster.file("acronyms.dump");
    cluster
        .call(cluster.program("pg_dump").args(["--format=custom", "--file"]).arg(&file).arg(database.name()));
    cluster.connect("postgres", "postgres").run("CREATE DATABASE acronym_restored");
    cluster.call(
        cluster
            .program("pg_restore")
            .args(["--exit-on-error", "--jobs=2", "--dbname=acronym_restored"])
            .arg(&file),
    );
    assert_eq!(cluster.connect("postgres", "acronym_restored").column(all), before);
}

/// Of many collections a session keeps whether they have acronyms: until somebody writes some.
#[test]
fn acronyms_of_many_collections_are_found_anew_after_a_write() {
    const COLLECTIONS: usize = 20;
    let database = Database::new("acronym_many");
    let mut ann = database.user("ann");
    ann.run(&format!(
        "SELECT rag_create_collection('c' || n) FROM generate_series(1, {COLLECTIONS}) n;
         INSERT INTO rag.document (collection, content, uri)
         SELECT 'c' || n, 'The slow local area is closed, says note ' || n, 'u' || n FROM generate_series(1, {COLLECTIONS}) n"
    ));
    ann.settle();
    let mut owner = database.connect(&ann.value("SELECT current_user"));
    let set = "SELECT rag_set_acronym('c19', 'SLA', 'slow local area')";
    let finds = |session: &mut rag_tests::Session| !found(session, "SLA", "keyword", "{}").is_empty();
    for _ in 0..2 {
        assert!(!finds(&mut ann), "nobody says what it is");
        assert!(!finds(&mut ann));
        owner.run(&format!("BEGIN; {set}"));
        assert!(finds(&mut owner) && !finds(&mut ann), "not committed");
        owner.run("ROLLBACK");
        assert!(!finds(&mut owner) && !finds(&mut ann), "rolled back");
        owner.run(set);
        assert!(finds(&mut owner) && finds(&mut ann), "committed");
        ann.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert!(finds(&mut ann));
        owner.run("SELECT rag_drop_acronym('c19', 'SLA')");
        assert!(finds(&mut ann), "a snapshot of before");
        ann.run("COMMIT");
        assert!(!finds(&mut ann), "taken back");
        owner.run(set);
        assert!(finds(&mut ann));
        database.admin().run("TRUNCATE rag.acronym");
        assert!(!finds(&mut owner) && !finds(&mut ann), "truncated");
    }
    owner.run(set);
    let mut admin = database.admin();
    for _ in 0..2 {
        admin.run("RESET rag_ext.all_domains");
        assert!(!finds(&mut admin), "of their own there is nothing");
        admin.run("SET rag_ext.all_domains = on");
        assert!(finds(&mut admin), "of collections that are not theirs");
    }
    admin.run("TRUNCATE rag.acronym; ALTER TABLE rag.acronym DISABLE TRIGGER note_write");
    assert!(!finds(&mut ann));
    owner.run(set);
    assert!(finds(&mut ann), "nothing is kept where nobody would be told");
}
