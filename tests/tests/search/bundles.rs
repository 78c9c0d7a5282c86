//! Keyword search over hundreds of small segments, which are bundled: what is found, and its scores, are those of the
//! segments one by one.

use rag_tests::{Cluster, Database, Session, literal, wait_until};
use std::collections::BTreeSet;
use std::time::Duration;

/// Users, each with a document of their own, in a domain of their own.
const USERS: usize = 320;

/// Searches that make all bundles.
const SEARCHES: usize = 4;

const QUERIES: [&str; 6] =
    ["river", "+river -u7", "\"depth of river\"", "u7 u8 u9 depth", "u100 bridge", "rivver u3"];

/// Ids and scores of a reader's hits.
fn found(session: &mut Session) -> Vec<Vec<Vec<Option<String>>>> {
    let search = |query: &&str| {
        let query = literal(query);
        let rows = session.rows(&format!(
            "SELECT chunk_id, score, keyword_score FROM rag_search({query}, k => 400, mode => 'keyword') ORDER BY rank"
        ));
        assert!(!rows.is_empty(), "{query}");
        rows
    };
    QUERIES.iter().map(search).collect()
}

/// A new session's hits, once all bundles are made.
fn bundled(database: &Database<'_>) -> Vec<Vec<Vec<Option<String>>>> {
    let mut session = reader(database);
    (0..SEARCHES).for_each(|_| drop(found(&mut session)));
    found(&mut reader(database))
}

fn reader(database: &Database<'_>) -> Session {
    let mut session = database.admin();
    session.run("SET rag_ext.all_domains = on");
    session
}

/// Bundles that there are.
fn bundles(cluster: &Cluster) -> BTreeSet<String> {
    let folder = cluster.data().join("pg_stat_tmp/rag_ext");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.contains("_bundle_") && !name.contains('.')).collect()
}

/// Makes the segments as old as those that are bundled.
fn age(session: &mut Session) {
    session.run(
        "UPDATE rag.segment SET id = overlay(id::text PLACING '00000000-0000' FROM 1 FOR 13)::uuid;
         UPDATE rag.segment_codes SET segment_id = overlay(segment_id::text PLACING '00000000-0000' FROM 1 FOR 13)::uuid",
    );
}

fn settle(session: &mut Session, documents: usize) {
    wait_until("all documents are processed", Duration::from_secs(180), || {
        session.count("SELECT count(*) FROM rag.job WHERE state = 'done'") == documents as i64
    });
}

fn put(session: &mut Session, user: usize, text: &str) {
    session.run(&format!(
        "SET rag_ext.user_id = 'u{user}'; INSERT INTO rag.document (uri, content) VALUES ('{text}', '{text}')"
    ));
}

#[test]
fn hundreds_of_small_segments_are_searched_as_bundles_with_the_same_scores() {
    let cluster = Cluster::builder("bundles").setting("rag_ext.merge_enabled", "off").start();
    let database = cluster.database("bundles");
    let gateway = database.gateway("gateway");
    let mut admin = database.admin();
    let mut writer = database.connect(&gateway);
    for user in 0..USERS {
        let words = "deep ".repeat(user % 7);
        put(&mut writer, user, &format!("The depth of river u{user} under the bridge is {words}"));
    }
    settle(&mut admin, USERS);
    let one_by_one = found(&mut reader(&database));
    assert_eq!(one_by_one[0].len(), USERS);
    assert_eq!(bundles(&cluster).len(), 0, "they are too young");

    age(&mut admin);
    assert_eq!(bundled(&database), one_by_one);
    let first = bundles(&cluster);
    assert!(!first.is_empty());

    // Whoever sees one of the segments alone has the scores of that one.
    let alone = "SELECT score FROM rag_search('river', mode => 'keyword')";
    writer.run("SET rag_ext.user_id = 'u5'");
    let score = writer.column(alone);
    put(
        &mut database.connect(&gateway),
        5 + USERS,
        "The depth of river u5 under the bridge is deep deep deep deep deep ",
    );
    settle(&mut admin, USERS + 1);
    assert_eq!(score.len(), 1);
    writer.run(&format!("SET rag_ext.user_id = 'u{}'", 5 + USERS));
    assert_eq!(writer.column(alone), score);

    // What comes later is searched beside the bundles, and bundled when it is old; one bundle is made anew for it.
    let more = found(&mut reader(&database));
    assert_eq!((more[0].len(), bundles(&cluster)), (USERS + 1, first.clone()));
    age(&mut admin);
    assert_eq!(bundled(&database), more);
    let second = bundles(&cluster);
    assert_eq!(second.difference(&first).count(), 1);

    // Within a transaction, after a rollback, and once something is deleted.
    let mut session = reader(&database);
    session.run("BEGIN; DELETE FROM rag.document WHERE content LIKE '% u9 %'");
    assert_eq!(found(&mut session)[0].len(), USERS);
    session.run("ROLLBACK");
    assert_eq!(found(&mut session), more);
    session.run("DELETE FROM rag.document WHERE content LIKE '% u9 %'");
    assert_eq!(found(&mut session)[0].len(), USERS);

    // A damaged segment hides its own entries alone, and a bundle that was cut or written over is made anew.
    admin.run(
        "UPDATE rag.segment SET data = set_byte(data, length(data) / 2, 255 - get_byte(data, length(data) / 2)),
             sha256 = sha256(data || '\\x00')
         WHERE domain_id = (SELECT domain_id FROM rag.chunk WHERE content LIKE '% u11 %')",
    );
    assert_eq!(bundled(&database)[0].len(), USERS - 1);
    admin.run("SET rag_ext.all_domains = on; SELECT rag_verify(repair => true)");
    wait_until("it is mended", Duration::from_secs(60), || bundled(&database)[0].len() == USERS);
    for name in bundles(&cluster) {
        let file = cluster.data().join("pg_stat_tmp/rag_ext").join(name);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "nothing of the kind").unwrap();
    }
    assert_eq!(bundled(&database)[0].len(), USERS);
}
