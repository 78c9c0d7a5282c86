//! Programs that know `rag.document` from the catalog, as object-relational mappers do: they write whole rows, look for one
//! key, and refer to it. And COPY.

use super::words_found;
use rag_tests::{Database, wait_until};
use std::io::Write;
use std::time::Duration;

const COLUMNS: &str = "id, collection, owner, title, uri, media_type, content, file, metadata, status, error, created_at, \
    updated_at, domain_id, version, sha256, text, chunks, parsed_title, detected_type, file_metadata, extracted";

#[test]
fn one_column_is_the_key_of_each_table_of_documents() {
    let database = Database::new("keys");
    let mut ann = database.user("ann");
    for table in ["document", "section", "chunk"] {
        let key = ann.column(&format!(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
             WHERE i.indrelid = 'rag.{table}'::regclass AND i.indisprimary"
        ));
        assert_eq!(key, ["id"], "rag.{table}");
    }
    // And so the other columns depend on it.
    ann.ingest("A row about otters.", "otters");
    assert_eq!(
        ann.rows("SELECT d.uri, d.title, count(c.id) FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id GROUP BY d.id").len(),
        1
    );
}

#[test]
fn system_columns_are_accepted_and_ignored() {
    let database = Database::new("whole_rows");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    bob.ingest("A note of bob's.", "bobs");
    let mut admin = database.admin();
    let bobs = admin.value("SELECT domain_id FROM rag.document WHERE uri = 'bobs'");
    // All that is nullable and has no default is NULL.
    ann.run(
        "INSERT INTO rag.document (title, uri, media_type, content, file, error, sha256, text, chunks, parsed_title, detected_type)
         VALUES (NULL, 'one', NULL, 'A row about otters.', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    );
    // And all of them, with what is not true.
    let made_up = format!(
        "'default', rag.current_owner(), 'Two', 'two', NULL, 'A row about beavers.', NULL, '{{}}', 'done', 'none', NULL,
         NULL, '{bobs}', 7, '\\x00', 'A forged text.', 9, 'Forged', 'text/forged', '{{\"a\": 1}}', '{{\"b\": 2}}'"
    );
    let id =
        ann.value(&format!("INSERT INTO rag.document ({COLUMNS}) VALUES (NULL, {made_up}) RETURNING id"));
    ann.settle();
    assert_eq!((words_found(&mut ann, "otters"), words_found(&mut ann, "beavers")), (1, 1));
    let row = "SELECT status, error, domain_id, version, sha256, text, chunks, parsed_title, detected_type, file_metadata, extracted - 'uploaded_at' - 'extracted_at', created_at IS NOT NULL";
    let stored = format!("{row} FROM rag.document WHERE id = '{id}'");
    let before = admin.rows(&stored);
    assert_eq!(before[0][0].as_deref(), Some("done"));
    assert_eq!(before[0][5].as_deref(), Some("A row about beavers."));
    assert_ne!(before[0][2].as_deref(), Some(bobs.as_str()));
    assert!(!format!("{before:?}").contains("orged"), "{before:?}");

    // A whole row written back changes nothing, whatever it says of those columns.
    let mut back = format!("UPDATE rag.document SET ({COLUMNS}) = ('{id}', {made_up}) WHERE id = '{id}'");
    back = back.replace("NULL,\n         NULL, '", "now(),\n         now(), '");
    ann.run(&back);
    assert_eq!(admin.rows(&stored), before);
    // What is the writer's own is taken.
    assert_eq!(ann.value(&format!("{} RETURNING status", back.replace("beavers", "badgers"))), "pending");
    ann.settle();
    assert_eq!((words_found(&mut ann, "beavers"), words_found(&mut ann, "badgers")), (0, 1));
    assert_eq!(words_found(&mut bob, "badgers"), 0);
}

#[test]
fn rows_are_copied_into_the_view_by_anybody() {
    let database = Database::new("copy_in");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    for (title, word) in [("First", "albatross"), ("Second", "cormorant")] {
        let mut writer =
            ann.client().copy_in("COPY rag.document_in (uri, title, content) FROM STDIN").unwrap();
        for n in 0..5 {
            writeln!(writer, "c{n}\t{title}\tLine {n} about a {word}.").unwrap();
        }
        writer.finish().unwrap();
        ann.settle();
        assert_eq!(words_found(&mut ann, word), 5);
    }
    // The same addresses, and so the same documents.
    assert_eq!(words_found(&mut ann, "albatross"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document_in WHERE title = 'Second'"), 5);
    let stranger = database.role_name("ann");
    let failure = bob.refuses(
        "42501",
        &format!("INSERT INTO rag.document_in (owner, content) VALUES ('role:{stranger}', 'Slipped in.')"),
    );
    assert!(!failure.to_string().is_empty());
    assert_eq!(words_found(&mut bob, "cormorant"), 0);
}

#[test]
fn tables_that_refer_to_documents_keep_theirs_and_stop_nobody() {
    let database = Database::new("references");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let mut admin = database.admin();
    admin.run(&format!(
        "GRANT REFERENCES (id) ON rag.document TO {role}; CREATE SCHEMA app AUTHORIZATION {role}"
    ));
    ann.run("CREATE TABLE app.ticket (id int PRIMARY KEY, document uuid REFERENCES rag.document (id))");
    ann.run("CREATE TABLE app.note (id int PRIMARY KEY, document uuid REFERENCES rag.document (id) ON DELETE SET NULL)");
    for collection in ["kept", "other"] {
        ann.run(&format!("SELECT rag_create_collection('{collection}')"));
        ann.run(&format!(
            "INSERT INTO rag.document (collection, uri, content) VALUES ('{collection}', '{collection}', 'A {collection} note.')"
        ));
    }
    ann.settle();
    ann.run(
        "INSERT INTO app.ticket SELECT 1, id FROM rag.document WHERE uri = 'kept';
         INSERT INTO app.note SELECT row_number() OVER (), id FROM rag.document",
    );
    ann.refuses("23503", "DELETE FROM rag.document WHERE uri = 'kept'");
    ann.run("UPDATE rag.document SET content = 'A kept note, changed.' WHERE uri = 'kept'");
    // Its row stays, seen by nobody, and the other collection is cleared away none the less.
    ann.run("SELECT rag_drop_collection('kept'); SELECT rag_drop_collection('other')");
    let left = |admin: &mut rag_tests::Session| admin.column("SELECT uri FROM rag.document ORDER BY 1");
    wait_until("the other collection is gone", Duration::from_secs(60), || left(&mut admin) == ["kept"]);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM app.note WHERE document IS NULL"), 1);
    ann.run("DELETE FROM app.ticket");
    // Workers come when there is work.
    ann.ingest("Something else.", "else");
    wait_until("the row is gone", Duration::from_secs(60), || left(&mut admin) == ["else"]);
}
