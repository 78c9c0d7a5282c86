//! What nobody learns of rows that are hidden from them: not their keys, their number, or their values.

use super::rights::{FOR_ALL, owner_and_reader};
use super::{indexed, settle};
use rag_tests::{Database, Session, wait_until};
use std::time::Duration;

const PAUSE: &str = "UPDATE rag.attachment SET due_at = now() + interval '1 day'";
const RESUME: &str = "UPDATE rag.attachment SET due_at = now(); SELECT rag.wake_workers()";

/// Sessions of ann, who may create tables, and bob, with ann's name.
fn two(database: &Database<'_>) -> (Session, Session, String) {
    let [ann, bob] = ["ann", "bob"].map(|name| database.role(name));
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    (database.connect(&ann), database.connect(&bob), ann)
}

/// Chunks that naming ann's collection finds.
fn named(session: &mut Session, ann: &str, collection: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT content FROM rag_search('rope', k => 10, collection => 'role:{ann}/{collection}') ORDER BY 1"
    ))
}

#[test]
fn progress_and_errors_are_shown_to_the_collections_owner_alone() {
    let database = Database::new("progress");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    owner.run(FOR_ALL);
    settle(&mut owner, "notes");
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'notes')"));
    for relation in ["attachment", "attachment_status"] {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.{relation}")), 0, "rag.{relation}");
        assert_eq!(owner.count(&format!("SELECT count(*) FROM rag.{relation}")), 1, "rag.{relation}");
    }
    // Which row a visible document is of, they are told still.
    assert_eq!(
        reader.rows("SELECT source, key->>'id', collection FROM rag.attached_document"),
        [["notes", "1", "notes"].map(|text| Some(text.to_owned()))]
    );
    let source = format!("SELECT rag.attached_source(id) FROM rag.collection WHERE owner = 'role:{ann}'");
    assert_eq!(reader.value(&source), "notes");
    let id = owner.value("SELECT collection_id FROM rag.attachment");
    owner.run("REVOKE SELECT ON notes FROM public");
    assert!(reader.holds(&format!("SELECT rag.attached_source('{id}') IS NULL")));

    // Values in a stored error are cut, and its detail is left out.
    owner.run(
        "CREATE TABLE wrong (id int PRIMARY KEY, whose text, body text);
         INSERT INTO wrong VALUES (1, repeat('s', 100), 'A rope.');
         SELECT rag_attach('wrong', content => ARRAY['body'], options => '{\"owner\": \"whose::int::text\"}')",
    );
    let error = "SELECT error FROM rag.failed_job WHERE collection = 'wrong'";
    wait_until("the row is given up", Duration::from_secs(60), || !owner.rows(error).is_empty());
    let error = owner.value(error);
    assert!(error.contains(&"s".repeat(64)) && !error.contains(&"s".repeat(65)), "{error}");
    assert_eq!(owner.value("SELECT sqlstate FROM rag.failed_job WHERE collection = 'wrong'"), "22P02");
}

#[test]
fn a_hidden_key_that_does_not_fit_its_columns_new_type_is_in_nobodys_error() {
    let database = Database::new("new_type");
    let (mut owner, mut reader, ann) = two(&database);
    let mut admin = database.admin();
    owner.run(
        "CREATE TABLE tickets (id text PRIMARY KEY, n int NOT NULL, reader text, body text); GRANT SELECT ON tickets TO public;
         INSERT INTO tickets VALUES ('1', 7, 'all', 'A rope for all.'), ('top-secret', 8, 'none', 'A rope for none.');
         ALTER TABLE tickets ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON tickets USING (reader = 'all');
         SELECT rag_attach('tickets', content => ARRAY['body'])",
    );
    settle(&mut owner, "tickets");
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'tickets')"));
    assert_eq!(named(&mut reader, &ann, "tickets"), ["A rope for all."]);
    let kept = admin.value("SELECT document_id FROM rag.attached_row WHERE key = '1'");

    // No worker follows meanwhile.
    admin.run(PAUSE);
    owner.run("INSERT INTO tickets VALUES ('also-secret', 9, 'none', 'Another rope for none.')");
    owner.run("ALTER TABLE tickets ALTER id TYPE int USING length(id)");
    assert!(named(&mut reader, &ann, "tickets").is_empty());
    for relation in ["chunk", "document", "attached_row", "attached_document"] {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.{relation}")), 0, "rag.{relation}");
    }
    admin.run(RESUME);
    settle(&mut owner, "tickets");
    assert_eq!(named(&mut reader, &ann, "tickets"), ["A rope for all."]);
    assert_eq!(indexed(&mut owner, "tickets").len(), 3);
    let rows = "SELECT key FROM rag.attached_row ORDER BY key";
    assert_eq!(admin.column(rows), ["1", "10", "11"]);
    assert_eq!(admin.value("SELECT document_id FROM rag.attached_row WHERE key = '1'"), kept);

    // The same, when other columns become the key.
    owner.run(
        "ALTER TABLE tickets ALTER id TYPE text USING 'secret ' || id; INSERT INTO tickets VALUES ('x', 1, 'all', 'A last rope.')",
    );
    settle(&mut owner, "tickets");
    owner.run(
        "BEGIN; ALTER TABLE tickets DROP CONSTRAINT tickets_pkey; ALTER TABLE tickets ADD PRIMARY KEY (n);
         SELECT rag_attach('tickets', content => ARRAY['body'])",
    );
    assert!(named(&mut owner, &ann, "tickets").is_empty());
    owner.run("COMMIT");
    settle(&mut owner, "tickets");
    assert_eq!(named(&mut reader, &ann, "tickets"), ["A last rope.", "A rope for all."]);
    assert_eq!(admin.column(rows), ["1", "7", "8", "9"]);
}

#[test]
fn keys_of_domains_and_enums_are_compared_without_checks_or_errors() {
    let database = Database::new("key_types");
    let (mut owner, mut reader, ann) = two(&database);
    // A function that looks at keys, and an enum that may forget one.
    owner.run(&format!(
        "CREATE FUNCTION is_code(code text) RETURNS boolean LANGUAGE plpgsql AS $$
         BEGIN
             IF current_user <> '{ann}' THEN RAISE EXCEPTION 'a check has seen %', code; END IF;
             RETURN true;
         END $$;
         CREATE DOMAIN any_code AS text CHECK (public.is_code(VALUE)); CREATE DOMAIN code AS any_code;
         CREATE TYPE color AS ENUM ('red', 'secret')"
    ));
    for (table, key) in [("codes", "code"), ("colors", "color")] {
        owner.run(&format!(
            "CREATE TABLE {table} (id {key} PRIMARY KEY, reader text, body text); GRANT SELECT ON {table} TO public;
             INSERT INTO {table} VALUES ('red', 'all', 'A rope for all.'), ('secret', 'none', 'A rope for none.');
             ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {table} USING (reader = 'all');
             SELECT rag_attach('{table}', content => ARRAY['body'])"
        ));
        settle(&mut owner, table);
        assert_eq!(named(&mut reader, &ann, table), ["A rope for all."], "{table}");
    }
    owner.run("ALTER TYPE color RENAME VALUE 'secret' TO 'more secret'");
    assert_eq!(named(&mut reader, &ann, "colors"), ["A rope for all."]);
    owner.run("UPDATE colors SET body = body || ' Or for some.'");
    settle(&mut owner, "colors");
    assert_eq!(named(&mut reader, &ann, "colors"), ["A rope for all. Or for some."]);
}

#[test]
fn a_uri_says_nothing_about_other_rows() {
    let database = Database::new("uris");
    let (mut owner, mut reader, ann) = two(&database);
    owner.run(
        "CREATE TABLE links (id text PRIMARY KEY, reader text, link text, body text); GRANT SELECT ON links TO public;
         INSERT INTO links VALUES ('1', 'all', 'a', 'A rope.'), ('2', 'all', 'b', 'A rope.'), ('3', 'none', 'b', 'A rope.'),
                                  ('4', 'none', NULL, 'A rope.'), ('5', 'all', 'public.links/4', 'A rope.'), ('x#y', 'all', 'a', 'A rope.');
         ALTER TABLE links ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON links USING (reader = 'all');
         SELECT rag_attach('links', content => ARRAY['body'], uri => 'link')",
    );
    settle(&mut owner, "links");
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'links')"));
    let uris = "SELECT uri FROM rag.document ORDER BY uri COLLATE \"C\"";
    assert_eq!(reader.column(uris), ["a#1", "a#x%23y", "b#2", "public.links/4#5"]);
    assert_eq!(owner.column(uris), ["a#1", "a#x%23y", "b#2", "b#3", "public.links/4", "public.links/4#5"]);

    // Once the column cannot have duplicates, it is enough by itself.
    owner.run("DELETE FROM links WHERE id IN ('3', 'x#y'); CREATE UNIQUE INDEX links_link ON links (link) WHERE id <> ''");
    settle(&mut owner, "links");
    assert_eq!(reader.column(uris), ["a#1", "b#2", "public.links/4#5"], "a partial index promises nothing");
    owner.run("CREATE UNIQUE INDEX ON links (link); UPDATE links SET body = 'A long rope.' WHERE id = '1'");
    settle(&mut owner, "links");
    assert_eq!(reader.column(uris), ["a", "b", "public.links/4#5"]);
    assert_eq!(owner.column(uris), ["a", "b", "public.links/4", "public.links/4#5"]);
}

#[test]
fn rows_that_pass_their_uris_on_are_followed() {
    let database = Database::new("passed_uris");
    let (mut owner, _, _) = two(&database);
    owner.run(
        "CREATE TABLE links (id int PRIMARY KEY, link text UNIQUE, body text);
         INSERT INTO links SELECT n, 'u' || n, 'A rope.' FROM generate_series(700, 1, -1) n;
         SELECT rag_attach('links', content => ARRAY['body'], uri => 'link')",
    );
    settle(&mut owner, "links");
    let wrong = "SELECT count(*) FROM links l LEFT JOIN rag.attached_document a ON a.key->>'id' = l.id::text
                 LEFT JOIN rag.document d ON d.id = a.document_id WHERE d.uri IS DISTINCT FROM l.link";
    assert_eq!(owner.count(wrong), 0);
    owner.run("UPDATE links SET link = 'u' || (id + 1)");
    settle(&mut owner, "links");
    assert_eq!(owner.count(wrong), 0);
}

#[test]
fn what_one_role_may_see_is_not_remembered_for_the_next() {
    let database = Database::new("remembered");
    let (mut owner, reader, ann) = owner_and_reader(&database);
    let mut admin = database.admin();
    let bob = database.role_name("bob");
    drop(reader);
    // An expression that PL/pgSQL keeps until the transaction ends.
    admin.run(
        "CREATE FUNCTION sees(domain uuid, document uuid) RETURNS boolean LANGUAGE plpgsql AS
             $$ BEGIN RETURN rag.sees_document(domain, document); END $$;
         CREATE FUNCTION reads(collection uuid) RETURNS boolean LANGUAGE plpgsql AS
             $$ BEGIN RETURN rag.source_readable(collection); END $$;
         GRANT EXECUTE ON FUNCTION sees, reads TO public",
    );
    let row =
        admin.value("SELECT format('%L, %L', domain_id, document_id) FROM rag.attached_row WHERE key = '1'");
    let collection = admin.value("SELECT quote_literal(collection_id) FROM rag.attachment");
    for question in [format!("SELECT sees({row})"), format!("SELECT reads({collection})")] {
        admin.run(&format!("BEGIN; SET LOCAL ROLE {ann}"));
        assert!(admin.holds(&question), "{question}");
        admin.run(&format!("SET LOCAL ROLE {bob}"));
        assert!(!admin.holds(&question), "{question}");
        admin.run(&format!("SET LOCAL ROLE {ann}"));
        assert!(admin.holds(&question), "{question}");
        admin.run("COMMIT");
    }
    // Nor from one statement to the next.
    owner.run(&format!(
        "BEGIN; DO $$ BEGIN ASSERT sees({row}); DELETE FROM notes; ASSERT NOT sees({row}); END $$; ROLLBACK"
    ));
}

/// How long an index counts would tell how many hidden rows have what a filter asks for.
#[test]
fn rows_that_are_asked_about_one_by_one_are_not_counted_by_an_index() {
    let database = Database::new("uncounted");
    let (mut owner, _, ann) = owner_and_reader(&database);
    owner.run(FOR_ALL);
    owner.run(
        "INSERT INTO notes SELECT n, 'all', 'Rope number ' || n FROM generate_series(10, 20) n;
         INSERT INTO rag.document (content) SELECT 'A rope of my own, number ' || n FROM generate_series(10, 20) n",
    );
    settle(&mut owner, "notes");
    owner.settle();
    for (name, collection, is_counted) in
        [("ann", "default", true), ("ann", "notes", false), ("bob", "notes", false)]
    {
        let mut session = database.explained(&database.role_name(name));
        session.run("SET rag_ext.filter_list_limit = 1");
        session.notices();
        let found = session.count(&format!(
            "SELECT count(*) FROM rag_search('rope', 'role:{ann}/{collection}', k => 5, mode => 'keyword',
                 filter => '{{\"collection\": \"{collection}\"}}')"
        ));
        assert_eq!(found, 5, "{name} {collection}");
        let plans = session.notices();
        let has = |text: &str| plans.iter().any(|plan| plan.message.contains(text));
        assert_eq!(has("SELECT unnest(ARRAY["), is_counted, "{name} {collection}: {plans:#?}");
        assert!(is_counted || has("CROSS JOIN LATERAL (SELECT c.id"), "{name} {collection}: {plans:#?}");
    }
}

/// What a search looks up by name may stand in a hidden row alone: that it was tried shows in no counter of the table.
#[test]
fn counters_do_not_tell_what_stands_in_a_hidden_row() {
    let database = Database::new("counters");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    owner.run(
        "ALTER TABLE notes ADD tag text; ALTER TABLE notes ADD uri text UNIQUE;
         INSERT INTO notes VALUES
             (3, 'none', 'The Quark Zone Xylophone (QZX) of the rope bridge depends on log_qzx. See other.md.', 'qzx', 'qzx.md');
         INSERT INTO notes SELECT n, 'all', 'Rope number ' || n || ' needs log_rope, see [qzx](qzx.md).' FROM generate_series(10, 50) n;
         SELECT rag_detach('notes');
         SELECT rag_attach('notes', content => ARRAY['body'], uri => 'uri', metadata => ARRAY['tag'])",
    );
    owner.run(FOR_ALL);
    settle(&mut owner, "notes");
    let hidden = "SELECT count(*) FROM rag.mined_acronym WHERE short_form = 'QZX'";
    assert_eq!(owner.count(hidden), 1);
    assert_ne!(owner.count("SELECT count(*) FROM rag.entity_mention WHERE key = 'log_qzx'"), 0);

    let of = format!("collection => 'role:{ann}/notes'");
    let statements = [
        format!("SELECT * FROM rag_search('% rope', mode => 'keyword', {of})"),
        format!("SELECT * FROM rag_search('% rope', mode => 'vector', {of})"),
        format!(
            "SELECT * FROM rag_search('how does log_% relate to log_rope', {of},
                 options => '{{\"graph\": \"on\", \"hops\": 2, \"spelling\": \"on\"}}')"
        ),
        format!("SELECT * FROM rag_search('rope', {of}, filter => '{{\"tag\": \"%\"}}')"),
        format!("SELECT * FROM rag_related('log_%', {of})"),
        format!("SELECT * FROM rag_related('%.md', {of})"),
        format!("SELECT * FROM rag_explain('% rope', {of})"),
    ];
    for statement in statements {
        let mut seen = |guess: &str| {
            let statement = statement.replace('%', guess);
            // Counters of earlier transactions are handed over.
            reader.run("SELECT pg_stat_force_next_flush()");
            reader.run("BEGIN");
            reader.rows(&statement);
            let counted = reader.rows(
                "SELECT s.relid::regclass, s.seq_scan, s.seq_tup_read, s.idx_scan, s.idx_tup_fetch,
                        (SELECT string_agg(l.mode, ' ' ORDER BY l.mode) FROM pg_locks l WHERE l.relation = s.relid AND l.pid = pg_backend_pid())
                 FROM pg_stat_xact_all_tables s WHERE s.schemaname IN ('public', 'rag') ORDER BY s.relid",
            );
            reader.run("COMMIT");
            counted
        };
        // The first call reads catalogs that later ones have in memory.
        seen("qzx");
        let hit = seen("qzx");
        assert!(hit.iter().flatten().flatten().any(|cell| cell == "notes"), "{statement}");
        assert_eq!(hit, seen("qzy"), "{statement}");
    }
}
