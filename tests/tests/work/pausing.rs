//! rag_pause and rag_resume: one owner's work is held back, nobody else's.

use super::{LIMIT, long_text, put, states};
use rag_tests::{Database, wait_until};
use std::time::{Duration, Instant};

#[test]
fn a_paused_collection_waits_while_other_work_goes_on() {
    let database = Database::new("paused");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('slow'), rag_create_collection('quick')");
    assert_eq!(ann.count("SELECT rag_pause('slow')"), 1);
    assert_eq!(ann.count("SELECT rag_pause('slow')"), 0, "it is paused already");
    put(&mut ann, "slow", 3);
    put(&mut ann, "quick", 3);
    assert!(ann.holds("SELECT rag_wait('quick', '1 min')"));
    assert_eq!(states(&mut ann, "quick"), ["done 3"]);
    assert_eq!(states(&mut ann, "slow"), ["queued 3"]);

    let shown = ann.rows(
        "SELECT collection, paused, documents_pending, documents_running, estimated_time_left
         FROM rag.collection_status WHERE collection <> 'default' ORDER BY 1",
    );
    let shown: Vec<Vec<&str>> =
        shown.iter().map(|row| row.iter().map(|v| v.as_deref().unwrap_or("NULL")).collect()).collect();
    assert_eq!(shown, [["quick", "f", "0", "0", "00:00:00"], ["slow", "t", "3", "0", "NULL"]]);
    assert_eq!(ann.column("SELECT DISTINCT paused FROM rag.job_status WHERE collection = 'slow'"), ["t"]);

    ann.notices();
    let start = Instant::now();
    assert!(!ann.holds("SELECT rag_wait('slow', '1 min')"), "nothing will happen");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    let told = ann.notices();
    assert!(told.iter().any(|notice| notice.message.contains("3 documents are paused")), "{told:?}");

    assert_eq!(ann.count("SELECT rag_resume('slow')"), 1);
    assert_eq!(ann.count("SELECT rag_resume('slow')"), 0);
    assert!(ann.holds("SELECT rag_wait('slow', '1 min')"));
    assert_eq!(states(&mut ann, "slow"), ["done 3"]);
}

#[test]
fn pausing_everything_holds_back_what_is_the_callers_alone() {
    let database = Database::new("pause_all");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    ann.run("SELECT rag_create_collection('one')");
    put(&mut ann, "default", 1);
    ann.settle();
    assert_eq!(ann.count("SELECT rag_pause()"), 2, "one and default");
    for session in [&mut ann, &mut bob] {
        put(session, "default", 3);
    }
    bob.settle();
    assert_eq!(states(&mut bob, "default"), ["done 3"]);
    assert_eq!(states(&mut ann, "default"), ["done 1", "queued 2"]);
    assert_eq!(bob.count("SELECT rag_pause()"), 1);
    assert_eq!(bob.count("SELECT rag_resume()"), 1);
    assert_eq!(states(&mut ann, "default"), ["done 1", "queued 2"]);

    // A superuser acts for themselves, unless they say otherwise.
    let mut admin = database.admin();
    assert_eq!(admin.count("SELECT rag_resume()"), 0);
    admin.run("SET rag_ext.all_domains = on");
    assert_eq!(admin.count("SELECT rag_resume()"), 2);
    ann.settle();
    assert_eq!(states(&mut ann, "default"), ["done 3"]);
}

#[test]
fn what_is_at_hand_when_it_is_paused_is_finished_or_given_back() {
    let database = Database::new("pause_running");
    let mut ann = database.user("ann");
    // In one commit, and each long enough to be seen while it is worked on.
    let documents: Vec<String> =
        (0..6).map(|n| format!("('long {n}', {})", long_text(30, &format!("surveyor{n}")))).collect();
    ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES {}", documents.join(", ")));
    wait_until("work has begun", LIMIT, || {
        ann.count("SELECT documents_running FROM rag.collection_status") > 0
    });
    ann.run("SELECT rag_pause()");
    wait_until("nothing is at hand any more", LIMIT, || {
        ann.count("SELECT documents_running FROM rag.collection_status") == 0
    });
    let left = ann.count("SELECT count(*) FROM rag.job WHERE state = 'queued'");
    assert!(left >= 2, "{left} of 6 are left, though two workers were at one each");
    assert_eq!(ann.count("SELECT count(*) FROM rag.job WHERE state = 'failed' OR tries > 0"), 0);
    // Nothing happens meanwhile: as many are left when another's work has been done.
    let mut bob = database.user("bob");
    put(&mut bob, "default", 5);
    bob.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag.job WHERE state = 'queued'"), left);
    ann.run("SELECT rag_resume()");
    ann.settle();
    assert_eq!(states(&mut ann, "default"), ["done 6"]);
}

#[test]
fn a_writer_pauses_his_own_documents_in_anothers_collection_and_no_others() {
    let database = Database::new("pause_writer");
    let (ann_role, bob_role) = (database.role("ann"), database.role("bob"));
    let (mut ann, mut bob) = (database.connect(&ann_role), database.connect(&bob_role));
    ann.run("SELECT rag_create_collection('manuals'), rag_create_collection('read')");
    ann.run(&format!("SELECT rag_grant('manuals', 'role:{bob_role}', 'write'), rag_grant('read', 'role:{bob_role}', 'read')"));
    let name = format!("role:{ann_role}/manuals");
    put(&mut bob, &name, 1);
    assert!(bob.holds(&format!("SELECT rag_wait('{name}', '1 min')")));
    assert_eq!(bob.count(&format!("SELECT rag_pause('{name}')")), 1);
    put(&mut bob, &name, 3);
    put(&mut ann, "manuals", 2);
    assert!(ann.holds("SELECT rag_wait('manuals', '1 min')"), "the owner's documents are not held back");
    assert_eq!(states(&mut bob, &name), ["done 1", "queued 2"]);
    assert_eq!(bob.count("SELECT rag_resume()"), 1);
    assert!(bob.holds(&format!("SELECT rag_wait('{name}', '1 min')")));

    // The owner holds back everybody's.
    ann.run("SELECT rag_pause('manuals')");
    bob.run(&format!("INSERT INTO rag.document (collection, content) VALUES ('{name}', 'held back')"));
    assert!(!bob.holds(&format!("SELECT rag_wait('{name}', '1 min')")));
    assert_eq!(bob.count(&format!("SELECT rag_resume('{name}')")), 0, "that is the owner's to end");
    bob.refuses("42501", &format!("SELECT rag_pause('role:{ann_role}/read')"));
}

#[test]
fn what_is_hidden_and_what_is_missing_are_refused_alike() {
    let database = Database::new("steering_rights");
    let (ann_role, bob_role) = (database.role("ann"), database.role("bob"));
    let (mut ann, mut bob) = (database.connect(&ann_role), database.connect(&bob_role));
    ann.run("SELECT rag_create_collection('hidden')");
    let id = ann.ingest("A note of ann's.", "note");
    let nobody = "01890000-0000-7000-8000-000000000000";
    for function in [
        "rag_pause($)",
        "rag_resume($)",
        "rag_cancel($)",
        "rag_retry($)",
        "rag_set_priority($, 1)",
        "rag_drop_collection($)",
    ] {
        let hidden = format!("role:{ann_role}/hidden");
        let missing = format!("role:{ann_role}/hidden2");
        let failures: Vec<_> = [&hidden, &missing]
            .map(|name| {
                bob.refuses("42704", &format!("SELECT {}", function.replace('$', &format!("'{name}'"))))
            })
            .into_iter()
            .map(|failure| (failure.message.replace("hidden2", "hidden"), failure.hint))
            .collect();
        assert_eq!(failures[0], failures[1]);
        bob.refuses("42704", &format!("SELECT {}", function.replace('$', "'hidden'")));
    }
    for function in ["rag_cancel($)", "rag_retry($)", "rag_set_priority($, 1)"] {
        let failures: Vec<_> = [id.as_str(), nobody]
            .map(|id| {
                bob.refuses("42704", &format!("SELECT {}", function.replace('$', &format!("'{id}'::uuid"))))
            })
            .into_iter()
            .map(|failure| failure.message.replace(&id, "ID").replace(nobody, "ID"))
            .collect();
        assert_eq!(failures[0], failures[1]);
    }
    // A reader sees them, and may change nothing.
    ann.run(&format!("SELECT rag_grant('hidden', 'role:{bob_role}', 'read'), rag_grant('default', 'role:{bob_role}', 'read')"));
    for call in ["rag_pause($)", "rag_set_priority($, 1)", "rag_drop_collection($)"] {
        bob.refuses("42501", &format!("SELECT {}", call.replace('$', &format!("'role:{ann_role}/hidden'"))));
    }
    for call in ["rag_cancel($)", "rag_retry($)", "rag_set_priority($, 1)"] {
        bob.refuses("42501", &format!("SELECT {}", call.replace('$', &format!("'{id}'::uuid"))));
    }
    assert_eq!(
        bob.count(&format!("SELECT rag_cancel('role:{ann_role}/hidden')")),
        0,
        "nothing there is theirs"
    );

    for call in ["rag_set_priority('hidden', 101)", "rag_set_priority('hidden', -101)"] {
        ann.refuses("22023", &format!("SELECT {call}"));
    }
    ann.refuses("22023", "SELECT rag_ingest('x', options => '{\"priority\": 1000}')");
    for call in [
        "rag_drop_collection(NULL)",
        "rag_set_priority('hidden', NULL)",
        "rag_cancel(NULL::uuid)",
        "rag_retry(NULL::uuid)",
    ] {
        ann.refuses("22004", &format!("SELECT {call}"));
    }
    let failure = ann.refuses("42704", &format!("SELECT rag_retry('{id}')"));
    assert!(failure.hint.contains("::uuid"), "{failure}");
}
