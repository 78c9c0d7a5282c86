//! Writing and finding within one transaction, and being told what became of it.

use super::words_found;
use rag_tests::{Database, Session};
use std::io::Write;

const BROKEN: &str = "SELECT rag_ingest_bytes(decode('255044462d312e37', 'hex'), uri => 'broken')";

fn said(session: &mut Session) -> String {
    session.notices().iter().map(ToString::to_string).collect()
}

#[test]
fn what_a_transaction_writes_it_finds() {
    let database = Database::new("sync");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    ann.run("BEGIN; SET LOCAL rag_ext.sync = on");
    ann.run("INSERT INTO rag.document (uri, content, metadata) SELECT 'n' || n, 'Note ' || n || ' about a heron.', '{\"kind\": \"note\"}' FROM generate_series(1, 3) n");
    assert_eq!(words_found(&mut ann, "heron"), 3);
    let mut writer = ann.client().copy_in("COPY rag.document_in (uri, content) FROM STDIN").unwrap();
    writeln!(writer, "copied\tA copied line about a heron.").unwrap();
    writer.finish().unwrap();
    assert_eq!(words_found(&mut ann, "heron"), 4);
    ann.run(
        "INSERT INTO rag.document (uri, content) VALUES ('n1', 'Note 1 about a stork.'), ('n4', 'Note 4 about a stork.')
         ON CONFLICT (collection, owner, uri) DO UPDATE SET content = excluded.content",
    );
    assert_eq!((words_found(&mut ann, "heron"), words_found(&mut ann, "stork")), (3, 2));
    ann.run("UPDATE rag.document SET title = 'Renamed' WHERE uri = 'n2'; DELETE FROM rag.document WHERE uri = 'n3'");
    assert_eq!((words_found(&mut ann, "heron"), words_found(&mut ann, "renamed")), (2, 1));
    assert_eq!(
        ann.count(
            "SELECT count(*) FROM rag_search('stork', mode => 'keyword', filter => '{\"kind\": \"note\"}')"
        ),
        1
    );
    assert!(ann.holds("SELECT rag_wait()"), "nothing is left to wait for");
    ann.run("COMMIT");
    assert_eq!(ann.column("SELECT DISTINCT status FROM rag.document"), ["done"]);
    assert_eq!(words_found(&mut ann, "stork"), 2);
    assert_eq!(words_found(&mut bob, "stork"), 0);

    ann.run("BEGIN; SET LOCAL rag_ext.sync = on; INSERT INTO rag.document (content) VALUES ('A heron that never was.'); ROLLBACK");
    assert_eq!(words_found(&mut ann, "never"), 0);
    // The setting ended with its transaction.
    ann.run("SELECT rag_pause()");
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('later', 'A bittern.')");
    assert_eq!(ann.value("SELECT status FROM rag.document WHERE uri = 'later'"), "pending");
    ann.run("SELECT rag_resume()");
    // A document that cannot be read is an error of the statement, and is not stored.
    ann.run("SET rag_ext.sync = on");
    ann.error(BROKEN);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE uri = 'broken'"), 0);
}

#[test]
fn waiting_tells_of_failures_and_of_one_document() {
    let database = Database::new("waiting");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let broken = ann.value(BROKEN);
    let sound = ann.value("INSERT INTO rag.document (content) VALUES ('A sound note.') RETURNING id");
    assert!(!ann.holds("SELECT rag_wait()"), "one has failed");
    assert!(said(&mut ann).contains("1 documents failed"));
    assert!(ann.holds(&format!("SELECT rag_wait('{sound}'::uuid)")));
    assert_eq!(said(&mut ann), "");
    assert!(!ann.holds(&format!("SELECT rag_wait('{broken}'::uuid, '1 min')")));
    assert!(said(&mut ann).contains("failed"));
    for id in [&sound, "00000000-0000-7000-8000-000000000001"] {
        bob.refuses("42704", &format!("SELECT rag_wait('{id}'::uuid)"));
    }
    assert!(bob.holds("SELECT rag_wait()"), "others' failures are not theirs");
    ann.run("SELECT rag_pause()");
    let held = ann.value("INSERT INTO rag.document (content) VALUES ('A held note.') RETURNING id");
    assert!(!ann.holds(&format!("SELECT rag_wait('{held}'::uuid)")));
    assert!(said(&mut ann).contains("paused"));
    ann.run("SELECT rag_resume()");
    assert!(ann.holds(&format!("SELECT rag_wait('{held}'::uuid)")));
    ann.run(&format!("DELETE FROM rag.document WHERE id = '{broken}'"));
    assert!(ann.holds("SELECT rag_wait()"));
}
