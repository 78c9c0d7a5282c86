//! The table changes, the documents follow.

use super::{indexed, settle, state};
use rag_tests::{Database, Session, wait_until};
use std::time::Duration;

const ARTICLES: &str = "CREATE TABLE articles (id int PRIMARY KEY, title text, body text);
    INSERT INTO articles VALUES (1, 'Bells', 'A bell is cast in bronze.'), (2, 'Ferries', 'The ferry leaves at night.')";

#[test]
fn rows_become_documents_and_changes_follow() {
    let database = Database::new("follow");
    let ann = database.role("ann");
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    let mut ann = database.connect(&ann);
    ann.run(ARTICLES);
    ann.run("SELECT rag_attach('articles', title => 'title')");
    settle(&mut ann, "articles");
    assert_eq!(indexed(&mut ann, "articles"), ["A bell is cast in bronze.", "The ferry leaves at night."]);
    let found = ann.rows("SELECT title, uri, metadata->'source_row'->>'table', metadata->'source_row'->'key'->>'id' FROM rag_search('bronze bell', k => 1)");
    let expected = ["Bells", "public.articles/1", "public.articles", "1"];
    assert_eq!(found, [expected.map(|text| Some(text.to_owned()))]);

    ann.run("UPDATE articles SET body = 'A bell is cast in iron.' WHERE id = 1");
    ann.run("DELETE FROM articles WHERE id = 2");
    ann.run("INSERT INTO articles VALUES (3, 'Ink', 'Ink is made of gall.') ON CONFLICT DO NOTHING");
    ann.run("INSERT INTO articles VALUES (3, 'Ink', 'Ink is made of oak galls.') ON CONFLICT (id) DO UPDATE SET body = excluded.body");
    settle(&mut ann, "articles");
    assert_eq!(indexed(&mut ann, "articles"), ["A bell is cast in iron.", "Ink is made of oak galls."]);
    let joined = ann.rows(
        "SELECT a.id, a.body, d.source FROM rag_search('oak galls', k => 1) s JOIN rag.attached_document d USING (document_id)
         JOIN articles a ON a.id = (d.key->>'id')::int",
    );
    assert_eq!(joined, [["3", "Ink is made of oak galls.", "articles"].map(|text| Some(text.to_owned()))]);

    ann.run("UPDATE articles SET id = id + 10");
    ann.run("ALTER TABLE articles RENAME COLUMN body TO text; ALTER TABLE articles RENAME TO notes");
    ann.run("UPDATE notes SET text = text || ' Indeed.' WHERE id = 13");
    settle(&mut ann, "articles");
    assert_eq!(
        indexed(&mut ann, "articles"),
        ["A bell is cast in iron.", "Ink is made of oak galls. Indeed."]
    );

    ann.run("TRUNCATE notes");
    settle(&mut ann, "articles");
    assert!(indexed(&mut ann, "articles").is_empty(), "{:?}", state(&mut ann));
    assert_eq!(ann.count("SELECT rag_detach('notes')"), 1);
    assert_eq!(ann.count("SELECT count(*) FROM rag.collection"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'notes'::regclass"), 0);
}

#[test]
fn a_session_keeps_the_plans_of_the_last_tables_alone() {
    let database = Database::new("plansoftables");
    let mut ann = author(&database);
    ann.run(
        "DO $$ BEGIN FOR n IN 1..150 LOOP
            EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, body text)', n);
            EXECUTE format('ALTER TABLE t%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', n);
            EXECUTE format('CREATE POLICY all_rows ON t%s USING (id > 0)', n);
            EXECUTE format('INSERT INTO t%s VALUES (1, ''A word of table %s.'')', n, n);
            EXECUTE format('SELECT rag_attach(''t%s'')', n);
         END LOOP; END $$",
    );
    ann.settle();
    database.admin().run(&format!("GRANT pg_read_all_stats TO {}", database.role_name("ann")));
    let kept = "SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'SPI Plan'";
    let mut searching = database.connect(&database.role_name("ann"));
    let mut most = 0;
    for n in 1..=150 {
        assert_eq!(
            searching
                .count(&format!("SELECT count(*) FROM rag_search('word', k => 10, collection => 't{n}')")),
            1
        );
        most = most.max(searching.count(kept));
    }
    assert!(most <= MOST_PLANS, "{most} plans");
}

/// Those that are kept, and a few of Postgres' own.
const MOST_PLANS: i64 = 150;

/// A role that may create tables, connected.
fn author(database: &Database<'_>) -> Session {
    let ann = database.role("ann");
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    database.connect(&ann)
}

#[test]
fn tables_of_every_shape_are_followed() {
    let database = Database::new("shapes");
    let mut ann = author(&database);
    ann.run(
        "CREATE TABLE pairs (a text, b timestamptz, body text, PRIMARY KEY (a, b));
         CREATE TABLE keyless (n int, body text);
         CREATE TABLE ranged (id int, day date, body text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
         CREATE TABLE ranged_early (body text, day date NOT NULL, id int NOT NULL);
         ALTER TABLE ranged ATTACH PARTITION ranged_early FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')",
    );
    for table in ["pairs", "keyless", "ranged"] {
        ann.run(&format!("SELECT rag_attach('{table}', content => ARRAY['body'])"));
    }
    // Another style of dates in the session that writes must not make another key.
    ann.run(
        "SET datestyle = 'German'; SET timezone = 'Asia/Tokyo';
         INSERT INTO pairs VALUES ('x, \"y\"', '2024-02-01 10:00+00', 'first'), ('x', '2024-02-01 10:00+00', 'second');
         RESET datestyle; RESET timezone",
    );
    ann.run("UPDATE pairs SET body = 'third' WHERE a = 'x'");
    ann.run("INSERT INTO keyless VALUES (1, 'same'), (1, 'same'), (2, 'same'), (3, 'other'), (4, NULL), (5, '  ')");
    ann.run("INSERT INTO ranged VALUES (1, '2020-03-01', 'through the parent')");
    ann.run("INSERT INTO ranged_early (id, day, body) VALUES (2, '2020-04-01', 'into the partition')");
    for table in ["pairs", "keyless", "ranged"] {
        settle(&mut ann, table);
    }
    assert_eq!(indexed(&mut ann, "pairs"), ["first", "third"]);
    assert_eq!(indexed(&mut ann, "keyless"), ["other", "same"]);
    assert_eq!(indexed(&mut ann, "ranged"), ["into the partition", "through the parent"]);

    ann.run(
        "DELETE FROM keyless WHERE n = 3; DELETE FROM keyless WHERE ctid = (SELECT min(ctid) FROM keyless)",
    );
    ann.run("UPDATE pairs SET b = b + interval '1 day' WHERE a <> 'x'; DELETE FROM pairs WHERE a = 'x'");
    // Partitions that come later, made or attached, and one that goes.
    ann.run(
        "CREATE TABLE ranged_late PARTITION OF ranged FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
         INSERT INTO ranged_late VALUES (3, '2021-05-01', 'into a new partition');
         CREATE TABLE ranged_other (LIKE ranged INCLUDING ALL);
         INSERT INTO ranged_other VALUES (4, '2022-05-01', 'before it was attached');
         ALTER TABLE ranged ATTACH PARTITION ranged_other FOR VALUES FROM ('2022-01-01') TO ('2023-01-01');
         ALTER TABLE ranged DETACH PARTITION ranged_early",
    );
    for table in ["pairs", "keyless", "ranged"] {
        settle(&mut ann, table);
    }
    assert_eq!(indexed(&mut ann, "pairs"), ["first"]);
    assert_eq!(indexed(&mut ann, "keyless"), ["same"]);
    assert_eq!(indexed(&mut ann, "ranged"), ["before it was attached", "into a new partition"]);
    ann.run(
        "UPDATE ranged SET day = '2021-06-01', id = 9 WHERE id = 4; DELETE FROM ranged_late WHERE id = 3",
    );
    settle(&mut ann, "ranged");
    assert_eq!(indexed(&mut ann, "ranged"), ["before it was attached"]);
}

#[test]
fn labels_files_uris_and_metadata_are_taken_from_columns() {
    let database = Database::new("columns");
    let mut ann = author(&database);
    ann.run(
        "CREATE TABLE cases (id int PRIMARY KEY, name text, link text, year int, tags text[], problem text, remedy text, scan bytea);
         INSERT INTO cases VALUES
             (1, 'Rust', 'https://example.org/rust', 1999, '{iron,water}', 'The hinge rusts.', 'Oil the hinge.',
              convert_to(E'# Hinges\\n\\nA file about hinges.', 'UTF8')),
             (2, 'Rot', 'https://example.org/rust', 2001, NULL, 'The beam rots.', NULL, NULL)",
    );
    ann.run(
        "SELECT rag_attach('cases', content => ARRAY['problem', 'remedy'], title => 'name', uri => 'link', metadata => ARRAY['year', 'tags'],
                           options => '{\"labels\": {\"problem\": \"Problem\", \"remedy\": \"Remedy\"}}')",
    );
    ann.run("SELECT rag_attach('cases', 'scans', options => '{\"file\": \"scan\"}')");
    settle(&mut ann, "cases");
    settle(&mut ann, "scans");
    assert_eq!(
        ann.value("SELECT text FROM rag.document WHERE title = 'Rust'"),
        "## Problem\n\nThe hinge rusts.\n\n## Remedy\n\nOil the hinge."
    );
    assert_eq!(
        ann.value("SELECT header_path FROM rag_search('oil', 'cases', k => 1, mode => 'keyword')"),
        "{Remedy}"
    );
    let uris = ann.column("SELECT uri FROM rag.document WHERE collection = 'cases' ORDER BY uri");
    assert_eq!(uris, ["https://example.org/rust#1", "https://example.org/rust#2"]);
    let filtered = "SELECT count(DISTINCT document_id) FROM rag_search('hinge', 'cases', k => 5, filter => '{\"year\": {\"lt\": 2000}, \"tags\": \"water\"}')";
    assert_eq!(ann.count(filtered), 1);
    assert_eq!(ann.column("SELECT title FROM rag.document WHERE collection = 'scans'"), ["Hinges"]);

    // A filter knows a column by its present name, for rows of before, too.
    ann.run("ALTER TABLE cases RENAME year TO since");
    settle(&mut ann, "cases");
    assert_eq!(ann.count(&filtered.replace("year", "since")), 1);
    assert_eq!(ann.count(filtered), 0);

    // Attached again with other columns: everything is made anew.
    ann.run("SELECT rag_attach('cases', content => ARRAY['remedy'], title => 'name')");
    settle(&mut ann, "cases");
    assert_eq!(indexed(&mut ann, "cases"), ["Oil the hinge."]);
    assert_eq!(ann.column("SELECT uri FROM rag.document WHERE collection = 'cases'"), ["public.cases/1"]);
}

#[test]
fn a_dropped_column_stops_the_attachment_and_not_the_user() {
    let database = Database::new("dropped");
    let mut ann = author(&database);
    ann.run(ARTICLES);
    ann.run("SELECT rag_attach('articles', title => 'title')");
    settle(&mut ann, "articles");
    ann.run("ALTER TABLE articles DROP COLUMN body");
    ann.run("INSERT INTO articles VALUES (7, 'Nobody')");
    wait_until("the attachment stops", Duration::from_secs(60), || {
        ann.value("SELECT state FROM rag.attachment_status") == "stopped"
    });
    let error = ann.value("SELECT error FROM rag.attachment_status");
    assert!(error.contains("column \"body\" was dropped") && error.contains("rag_attach"), "{error}");
    // What was made of a column that nobody can be asked about any more is shown to nobody.
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('bell', collection => 'articles')"), 0);
    ann.run("ALTER TABLE articles ADD COLUMN body text DEFAULT 'Everything anew.'");
    ann.run("SELECT rag_attach('articles', title => 'title')");
    settle(&mut ann, "articles");
    assert_eq!(indexed(&mut ann, "articles"), ["Everything anew."; 3]);

    ann.run("DROP TABLE articles");
    wait_until("the collection goes with its table", Duration::from_secs(60), || {
        ann.count("SELECT count(*) FROM rag.collection") == 0
    });
    let mut admin = database.admin();
    for table in ["document", "chunk", "attached_row", "attached_change", "attachment"] {
        wait_until("what is left is cleared away", Duration::from_secs(60), || {
            admin.count(&format!("SELECT count(*) FROM rag.{table}")) == 0
        });
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let database = Database::new("refused");
    let mut ann = author(&database);
    ann.run(
        "CREATE TABLE mine (id int PRIMARY KEY, n int, body text, raw bytea);
         CREATE VIEW seen AS SELECT * FROM mine; CREATE TEMP TABLE passing (id int PRIMARY KEY, body text);
         CREATE TABLE parted (id int, body text) PARTITION BY LIST (id);
         CREATE TABLE part PARTITION OF parted DEFAULT",
    );
    let mut admin = database.admin();
    admin.run("CREATE TABLE others (id int PRIMARY KEY, body text)");
    for (code, call) in [
        ("42501", "'others'"),
        ("42809", "'seen'"),
        ("0A000", "'passing'"),
        ("0A000", "'part'"),
        ("42703", "'mine', content => ARRAY['absent']"),
        ("42804", "'mine', content => ARRAY['raw']"),
        ("42804", "'mine', options => '{\"file\": \"body\"}'"),
        ("22023", "'mine', options => '{\"colour\": 1}'"),
        ("22023", "'mine', content => ARRAY['body'], options => '{\"file\": \"raw\"}'"),
        ("22023", "'mine', options => '{\"labels\": {\"n\": \"Number\"}}'"),
        ("22023", "'mine', content => '{}'"),
        ("22004", "NULL"),
        ("42703", "'mine', options => '{\"owner\": \"nothing\"}'"),
        ("42P01", "'4711'::oid::regclass"),
    ] {
        let failure = ann.refuses(code, &format!("SELECT rag_attach({call})"));
        assert!(failure.message.chars().next().unwrap().is_lowercase(), "{failure}");
    }
    admin.refuses("0A000", "SELECT rag_attach('pg_class')");
    assert_eq!(ann.count("SELECT count(*) FROM rag.collection"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'rag_%'"), 0);
    ann.run("SELECT rag_create_collection('mine')");
    ann.refuses("42710", "SELECT rag_attach('mine')");
    ann.run("SELECT rag_attach('mine', 'rows')");
    ann.refuses("0A000", "INSERT INTO rag.document (collection, content) VALUES ('rows', 'by hand')");
    ann.refuses("0A000", "SELECT rag_grant('rows', 'public', 'read')");
    ann.refuses("42704", "SELECT rag_detach('mine', 'absent')");
    // No CASCADE: the triggers go along, and the table stays. A worker's locks may be in the way for a moment.
    wait_until("the extension can be dropped", Duration::from_secs(60), || {
        match admin.try_run("DROP EXTENSION rag_ext") {
            Ok(()) => true,
            Err(failure) if failure.code == "40P01" => false,
            Err(failure) => panic!("{failure}"),
        }
    });
    ann.run("INSERT INTO mine VALUES (1, 1, 'The extension is gone.')");
    assert_eq!(ann.count("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"), 0);
}

#[test]
fn rows_come_back_after_the_documents_are_truncated() {
    let database = Database::new("truncated_documents");
    let mut ann = author(&database);
    ann.run(ARTICLES);
    ann.run("SELECT rag_attach('articles', title => 'title')");
    settle(&mut ann, "articles");
    let before = indexed(&mut ann, "articles");
    assert_eq!(before.len(), 2);
    // Looked at before anybody else can: a worker is at it as soon as that is committed.
    let mut admin = database.admin();
    admin.run("BEGIN; TRUNCATE rag.document");
    assert_eq!(admin.count("SELECT count(*) FROM rag.attached_row"), 0);
    admin.run("COMMIT");
    wait_until("the rows are documents again", Duration::from_secs(60), || {
        indexed(&mut ann, "articles") == before
    });
    settle(&mut ann, "articles");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('bronze bell', 'articles', k => 1)"), 1);
    assert_eq!(ann.column("SELECT state FROM rag.attachment_status"), ["current"]);
}

#[test]
fn a_row_that_cannot_be_a_document_stops_only_itself() {
    let database = Database::new("bad_rows");
    let mut ann = author(&database);
    // An address that no index holds, however compressed, values that are nested more deeply or larger than anything reads,
    // and one that the owner's expression cannot read.
    ann.run(
        "CREATE TABLE articles (id int PRIMARY KEY, link text, info jsonb, body text, whose text NOT NULL DEFAULT '1');
         INSERT INTO articles SELECT n, 'https://example.org/' || n, '{}', 'Article number ' || n FROM generate_series(1, 40) n;
         UPDATE articles SET link = (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 200) n) WHERE id = 7;
         UPDATE articles SET info = (repeat('[', 3000) || repeat(']', 3000))::jsonb WHERE id = 11;
         UPDATE articles SET info = '{\"n\": 1e400}' WHERE id = 12;
         UPDATE articles SET whose = 'nobody' WHERE id = 13;
         SELECT rag_attach('articles', content => ARRAY['body'], uri => 'link', metadata => ARRAY['info'],
             options => '{\"owner\": \"CASE WHEN whose::int = 1 THEN ''role:'' || current_user END\"}')",
    );
    settle(&mut ann, "articles");
    assert_eq!(indexed(&mut ann, "articles").len(), 36, "{:?}", state(&mut ann));
    let failed = "SELECT r.key->>'id', f.sqlstate, f.error FROM rag.failed_job f
                  JOIN rag.attached_document r USING (document_id) ORDER BY (r.key->>'id')::int";
    let told = ann.rows(failed);
    let told: Vec<Vec<&str>> = told
        .iter()
        .map(|row| row.iter().map(|value| value.as_deref().unwrap_or_default()).collect())
        .collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0][..2] == ["7", "54000"] && told[0][2].starts_with("uri has "), "{told:?}");
    assert!(told[1][..2] == ["11", "54000"] && told[1][2].contains("\"info\" is nested"), "{told:?}");
    assert!(told[2][0] == "12" && told[2][2].contains("\"info\" is beyond double precision"), "{told:?}");
    assert_eq!(told[3], ["13", "22P02", "invalid input syntax for type integer: \"nobody\""]);
    assert_eq!(ann.value("SELECT failed FROM rag.attachment_status"), "4");

    // A row that was good and is bad now, and one that was bad and is good.
    ann.run(
        "UPDATE articles SET whose = 'nobody' WHERE id = 1; UPDATE articles SET whose = '1' WHERE id = 13",
    );
    ann.run(
        "UPDATE articles SET link = NULL WHERE id = 7; UPDATE articles SET info = NULL WHERE id IN (11, 12)",
    );
    settle(&mut ann, "articles");
    assert_eq!(indexed(&mut ann, "articles").len(), 39);
    assert_eq!(ann.column(&failed.replace(", f.sqlstate, f.error", "")), ["1"]);
}

#[test]
fn keys_may_be_longer_than_an_index_holds() {
    let database = Database::new("long_keys");
    let mut ann = author(&database);
    // Bytes that do not compress: an index holds them, and their text is twice as long.
    ann.run(
        "CREATE TABLE named (name bytea PRIMARY KEY, body text);
         INSERT INTO named SELECT (SELECT decode(string_agg(md5(k || ' ' || n), ''), 'hex') FROM generate_series(1, 125) n), 'Body ' || k
             FROM generate_series(1, 3) k;
         SELECT rag_attach('named', content => ARRAY['body'])",
    );
    settle(&mut ann, "named");
    assert_eq!(indexed(&mut ann, "named"), ["Body 1", "Body 2", "Body 3"]);
    assert_eq!(ann.count("SELECT count(*) FROM rag.failed_job"), 0);
    ann.run("UPDATE named SET body = body || ' again' WHERE body = 'Body 2'; DELETE FROM named WHERE body = 'Body 3'");
    settle(&mut ann, "named");
    assert_eq!(indexed(&mut ann, "named"), ["Body 1", "Body 2 again"]);
}
