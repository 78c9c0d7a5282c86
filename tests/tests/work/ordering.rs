//! Priorities: an owner orders their own work, and takes no turn from anybody else.

use super::put;
use rag_tests::Database;

/// A database whose engine is there: what is claimed while it starts is put back, and begun later than the rest.
fn ready_database(test: &str) -> Database<'static> {
    let database = Database::new(test);
    database.cluster().running_engine();
    database
}

#[test]
fn documents_of_a_higher_priority_come_before_older_ones() {
    let database = ready_database("priority");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('notes'), rag_pause('notes')");
    put(&mut ann, "notes", 40);
    ann.run("SELECT rag_ingest('Read me first.', uri => 'urgent', collection => 'notes', options => '{\"priority\": 50}')");
    ann.run("SELECT rag_ingest('Read me early.', uri => 'early', collection => 'notes')");
    ann.run("SELECT rag_set_priority(id, 20) FROM rag.document WHERE uri = 'early'");
    ann.run("SELECT rag_set_priority(id, -100) FROM rag.document WHERE uri = 'n1'");
    ann.run("SELECT rag_resume('notes')");
    ann.settle();
    let order = ann.column("SELECT uri FROM rag.job_status ORDER BY started_at");
    let place = |uri: &str| order.iter().position(|other| other == uri).unwrap();
    // Eight at a time are claimed.
    assert!(place("urgent") < 8 && place("early") < 8, "{order:?}");
    assert!(place("n1") > 30, "{order:?}");
}

#[test]
fn an_owners_turns_are_spent_in_his_collection_of_the_highest_priority() {
    let database = ready_database("priority_collection");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('later'), rag_create_collection('sooner')");
    ann.run("SELECT rag_pause(); SELECT rag_set_priority('sooner', 7)");
    put(&mut ann, "later", 30);
    put(&mut ann, "sooner", 30);
    ann.run("SELECT rag_resume()");
    ann.settle();
    assert!(ann.holds(
        "SELECT (SELECT max(started_at) FROM rag.job_status WHERE collection = 'sooner')
              < (SELECT min(started_at) FROM rag.job_status WHERE collection = 'later')"
    ));
}

#[test]
fn no_priority_takes_a_turn_from_another_owner() {
    let database = ready_database("priority_others");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    for session in [&mut ann, &mut bob] {
        put(session, "default", 1);
        session.settle();
        session.run("SELECT rag_pause()");
    }
    ann.run("SELECT rag_set_priority('default', 100)");
    put(&mut ann, "default", 120);
    put(&mut bob, "default", 20);
    let mut admin = database.admin();
    admin.run("SET rag_ext.all_domains = on");
    assert_eq!(admin.count("SELECT rag_resume()"), 2);
    ann.settle();
    bob.settle();
    let before = admin.count(
        "SELECT count(*) FROM rag.job_status WHERE owner LIKE 'role:ann%' AND started_at <
             (SELECT max(started_at) FROM rag.job_status WHERE owner LIKE 'role:bob%')",
    );
    assert!((8..=72).contains(&before), "{before} of the other's came before the last of their 20");
}

#[test]
fn turns_go_by_owner_however_many_collections_one_has() {
    let database = ready_database("turns");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    for n in 1..=20 {
        ann.run(&format!("SELECT rag_create_collection('c{n}')"));
        put(&mut ann, &format!("c{n}"), 1);
    }
    put(&mut bob, "default", 1);
    ann.settle();
    bob.settle();
    ann.run("SELECT rag_pause()");
    bob.run("SELECT rag_pause()");
    for n in 1..=20 {
        put(&mut ann, &format!("c{n}"), 9);
    }
    put(&mut bob, "default", 25);
    let mut admin = database.admin();
    admin.run("SET rag_ext.all_domains = on");
    assert_eq!(admin.count("SELECT rag_resume()"), 21);
    bob.settle();
    ann.settle();
    // Their 24 are three turns; the other owner has one or two before each.
    let before = admin.count(
        "SELECT count(*) FROM rag.job_status WHERE owner LIKE 'role:ann%' AND uri <> 'n1' AND started_at <
             (SELECT max(started_at) FROM rag.job_status WHERE owner LIKE 'role:bob%')",
    );
    assert!(before <= 72, "{before} of the other's 160 came before the last of their 24");
}

#[test]
fn what_a_long_transaction_has_queued_is_done_though_later_documents_were_claimed_before() {
    let database = ready_database("late_commit");
    let mut ann = database.user("ann");
    put(&mut ann, "default", 20);
    ann.settle();
    let mut slow = database.connect(&database.role_name("ann"));
    slow.run(
        "BEGIN; INSERT INTO rag.document (uri, content) VALUES ('slow', 'Queued first, committed last.')",
    );
    // Workers have claimed the jobs behind it when it comes.
    put(&mut ann, "default", 60);
    ann.settle();
    put(&mut ann, "default", 300);
    slow.run("COMMIT");
    ann.settle();
    assert_eq!(ann.value("SELECT status FROM rag.document WHERE uri = 'slow'"), "done");
    assert_eq!(ann.count("SELECT count(*) FROM rag.job WHERE state <> 'done'"), 0);
}
