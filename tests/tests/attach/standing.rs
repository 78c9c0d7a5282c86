//! What a call has found out about an attached table holds for its caller alone, and no longer than it runs.

use super::rights::owner_and_reader;
use super::{indexed, settle};
use rag_tests::{Database, wait_until};
use std::time::Duration;

/// A cursor that has begun to answer from a collection stays open.
fn open_cursor(question: &str, collection: &str) -> String {
    format!(
        "BEGIN;
         DECLARE begun CURSOR FOR SELECT rag.answer_parts('{question}', '{collection}', NULL, NULL, '{{\"generate\": false}}');
         FETCH 1 FROM begun"
    )
}

#[test]
fn who_names_a_collection_names_it_for_nobody_else() {
    let database = Database::new("named_by");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    let mut admin = database.admin();
    let bob = reader.value("SELECT current_user");
    admin.run(&format!(
        "CREATE TABLE seen_by (who name); GRANT INSERT ON seen_by TO public; GRANT CREATE ON SCHEMA public TO {bob}"
    ));
    reader.run(
        "CREATE FUNCTION count_documents() RETURNS bigint LANGUAGE sql SECURITY DEFINER
             SET search_path = pg_catalog, pg_temp AS 'SELECT count(*) FROM rag.document'",
    );
    owner.run(
        "CREATE FUNCTION spy() RETURNS boolean LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.seen_by VALUES (current_user); RETURN true; END $$;
         GRANT EXECUTE ON FUNCTION spy TO public; GRANT SELECT ON notes TO public;
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY p ON notes USING (spy())",
    );
    settle(&mut owner, "notes");
    // Ann has bob's function look at the documents: while her cursor is open, and from within her policy itself.
    owner.run(&open_cursor("What hangs high?", "notes"));
    owner.run("SELECT count_documents(); FETCH ALL FROM begun; COMMIT");
    owner.run(
        "CREATE OR REPLACE FUNCTION spy() RETURNS boolean LANGUAGE plpgsql AS
             $$ BEGIN
                 INSERT INTO public.seen_by VALUES (current_user);
                 IF current_setting('test.depth', true) IS DISTINCT FROM '1' THEN
                     PERFORM set_config('test.depth', '1', true);
                     PERFORM public.count_documents();
                 END IF;
                 RETURN true;
             END $$",
    );
    let _ = owner.try_run("SELECT count(*) FROM rag_search('rope', collection => 'notes')");
    assert_eq!(admin.column("SELECT DISTINCT who FROM seen_by"), [ann.as_str()]);
    // He who names it himself has it run.
    reader.run(&format!("SELECT count(*) FROM rag_search('rope', collection => 'role:{ann}/notes')"));
    assert_eq!(admin.count(&format!("SELECT count(DISTINCT who) FROM seen_by WHERE who = '{bob}'")), 1);
}

#[test]
fn what_a_cursor_has_seen_is_asked_anew_by_the_next_statement() {
    let database = Database::new("seen_once");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    owner.run(
        "GRANT SELECT ON notes TO public; ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON notes USING (reader = 'all')",
    );
    settle(&mut owner, "notes");
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'notes')"));
    let shown = "SELECT content FROM rag.chunk ORDER BY 1";
    assert_eq!(reader.column(shown), ["The rope bridge hangs high."]);
    reader.run(&open_cursor("What hangs high?", &format!("role:{ann}/notes")));
    owner.run("UPDATE notes SET reader = 'none', body = 'The merger is on Friday.' WHERE id = 1");
    settle(&mut owner, "notes");
    assert!(indexed(&mut owner, "notes").contains(&"The merger is on Friday.".to_owned()));
    assert!(reader.column(shown).is_empty());
    // What was found at its beginning is told to its end, and noted.
    let parts = reader.column("FETCH ALL FROM begun");
    assert!(parts.last().is_some_and(|done| done.contains("The rope bridge hangs high.")), "{parts:?}");
    reader.run("COMMIT");
}

#[test]
fn plans_of_our_statements_are_not_printed() {
    let database = Database::new("printed");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    owner.run(
        "CREATE TABLE people (mail text PRIMARY KEY, reader text, body text);
         INSERT INTO people VALUES ('bob@corp', 'all', 'The rope bridge hangs high.'), ('secret@corp', 'none', 'The rope is sold.');
         ALTER TABLE people ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON people USING (reader = 'all');
         GRANT SELECT ON people TO public;
         SELECT rag_attach('people', content => ARRAY['body'])",
    );
    settle(&mut owner, "people");
    // As the server prints constants: each byte as a signed number.
    let printed = |bytes: String| {
        let byte = |at: usize| u8::from_str_radix(&bytes[at..at + 2], 16).unwrap() as i8;
        (0..bytes.len()).step_by(2).map(|at| byte(at).to_string()).collect::<Vec<_>>().join(" ")
    };
    let mail = printed(owner.value("SELECT encode('secret@corp', 'hex')"));
    let id = printed(
        owner.value("SELECT replace(id::text, '-', '') FROM rag.chunk WHERE content = 'The rope is sold.'"),
    );
    for setting in ["debug_print_plan", "debug_print_parse", "debug_print_rewritten"] {
        reader.notices();
        reader.run(&format!(
            "SET plan_cache_mode = force_custom_plan; SET client_min_messages = log; SET debug_pretty_print = off; SET {setting} = on"
        ));
        for mode in ["keyword", "vector", "hybrid"] {
            let named = format!("role:{ann}/people");
            reader.run(&format!(
                "SELECT count(*) FROM rag_search('rope', '{named}', mode => '{mode}', k => 1)"
            ));
        }
        reader.run(&format!("SET {setting} = off; SET client_min_messages = notice"));
        // Lines are broken where they are long.
        let unbroken = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told: Vec<String> =
            reader.notices().into_iter().map(|notice| unbroken(notice.message + &notice.detail)).collect();
        // The caller's own statements are theirs to look at.
        assert!(!told.is_empty(), "{setting} prints something");
        assert!(told.iter().all(|text| !text.contains(&mail) && !text.contains(&id)), "{setting}");
    }
}

/// Another collection of a table that is watched already, and a transaction that began before a table was.
#[test]
fn what_was_written_before_a_table_was_attached_is_found_whenever_it_is_committed() {
    let database = Database::new("open_writers");
    let (mut owner, _, ann) = owner_and_reader(&database);
    let mut writer = database.connect(&ann);
    writer.run("BEGIN; INSERT INTO notes VALUES (7, 'all', 'A zebra crosses.')");
    let mut attaching = database.connect(&ann);
    let attached = std::thread::spawn(move || {
        attaching.run("SELECT rag_attach('notes', content => ARRAY['body'], collection => 'again')");
        attaching
    });
    wait_until("somebody waits for the writer", Duration::from_secs(60), || {
        owner.count("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ShareRowExclusiveLock'") > 0
    });
    writer.run("COMMIT");
    drop(attached.join().unwrap());
    for collection in ["notes", "again"] {
        settle(&mut owner, collection);
        assert!(indexed(&mut owner, collection).contains(&"A zebra crosses.".to_owned()), "{collection}");
    }

    owner.run("CREATE TABLE later (id int PRIMARY KEY, body text)");
    writer.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM notes");
    owner.run("SELECT rag_attach('later', content => ARRAY['body'])");
    settle(&mut owner, "later");
    writer.run("INSERT INTO later VALUES (1, 'A zebra comes late.'); COMMIT");
    settle(&mut owner, "later");
    assert_eq!(indexed(&mut owner, "later"), ["A zebra comes late."]);
}
