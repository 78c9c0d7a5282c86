//! What is said to somebody who finds less than they expect.

use super::corpus;
use rag_tests::{Database, Session};

fn said(session: &mut Session, sql: &str) -> String {
    session.notices();
    session.rows(sql);
    session.notices().iter().map(|notice| format!("{notice} {}\n", notice.hint)).collect()
}

#[test]
fn who_finds_nothing_is_told_why_as_far_as_it_is_his_to_know() {
    let database = Database::new("advice");
    let mut ann = corpus(&database, "ann");
    let mut bob = database.user("bob");
    bob.run(
        "INSERT INTO rag.document (content, metadata) VALUES ('A note about water.', '{\"secret_key\": 1}')",
    );
    bob.settle();

    // A filter on a key that no document has: bob's are not looked at.
    for key in ["missing_key", "secret_key"] {
        let filtered = format!("SELECT * FROM rag_search('water', filter => '{{\"{key}\": 2024}}')");
        let told = said(&mut ann, &filtered);
        assert!(told.contains(&format!("no document has a value of \"{key}\"")), "{told}");
        assert!(told.contains("rag.metadata_value"), "{told}");
    }
    let other_value = "SELECT * FROM rag_search('water', filter => '{\"language\": \"xx\"}')";
    assert_eq!(said(&mut ann, other_value), "");

    // A superuser has nothing of their own.
    let mut admin = database.admin();
    let told = said(&mut admin, "SELECT * FROM rag_search('water')");
    assert!(told.contains("rag_ext.all_domains = on"), "{told}");
    admin.run("SET rag_ext.all_domains = on");
    assert_eq!(said(&mut admin, "SELECT * FROM rag_search('water')"), "");
    let mut nobody = database.user("nobody");
    assert_eq!(said(&mut nobody, "SELECT * FROM rag_search('water')"), "");

    // A number where a name belongs.
    for query in ["'water'", "'water'::text"] {
        let failure = ann.refuses("42883", &format!("SELECT * FROM rag_search({query}, 5)"));
        assert!(failure.hint.contains("k => 5"), "{failure} {}", failure.hint);
    }
    let failure = ann.refuses("42883", "SELECT no_such_function('water', 5)");
    assert!(!failure.hint.contains("k => 5"), "{failure} {}", failure.hint);
}

#[test]
fn a_language_that_the_model_does_not_know_is_named() {
    let database = Database::new("foreign");
    let mut ann = corpus(&database, "ann");
    let stages = |session: &mut Session, query: &str| {
        session.value(&format!("SELECT details FROM rag_search('{query}', k => 1)"))
    };
    for (name, language, expected) in [("a", "german", true), ("b", "english", false), ("c", "simple", false)]
    {
        let told =
            said(&mut ann, &format!("SELECT rag_create_collection('{name}', language => '{language}')"));
        assert_eq!(told.contains("does not know the collection's language, german"), expected, "{told}");
    }
    let german = stages(&mut ann, "Wie viele Saiten hat die Geige, und womit werden sie gestrichen?");
    assert!(german.contains("language (de)"), "{german}");
    assert!(
        !stages(&mut ann, "How many strings does a violin have, and how is it played?")
            .contains("language (")
    );
    assert!(
        ann.json("SELECT rag_answer('Сколько струн у скрипки?')")["warnings"]
            .to_string()
            .contains("language (")
    );
}
