//! What the graph costs and shows does not grow with what everybody names: many domains, many mentions, many links.

use super::{stage, write_notes};
use rag_tests::{Database, Session, literal};

fn found(session: &mut Session, query: &str, options: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT uri FROM rag_search({}, k => 10, mode => 'keyword', options => '{options}') ORDER BY rank",
        literal(query)
    ))
}

#[test]
fn of_many_domains_the_graph_looks_at_those_of_the_best_hits() {
    let database = Database::new("graph_domains");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('other')");
    write_notes(&mut ann);
    ann.run("INSERT INTO rag.document (collection, uri, content) VALUES ('other', 'elsewhere.md', 'V-204 was bought in May.')");
    ann.settle();
    let graph = r#"{"graph": "on"}"#;
    let near = "plant/FC-001-234.md".to_owned();
    let few = found(&mut ann, "coolant", graph);
    assert!(few.contains(&near) && few.contains(&"elsewhere.md".to_owned()), "{few:?}");
    ann.run("SELECT rag_create_collection('c' || n) FROM generate_series(1, 64) n");
    let many = found(&mut ann, "coolant", graph);
    assert!(many.contains(&near) && !many.contains(&"elsewhere.md".to_owned()), "{many:?}");
    let hop = found(&mut ann, "coolant", r#"{"hops": 2}"#);
    assert!(hop.contains(&near), "{hop:?}");
    // What is asked about is found wherever it is named.
    let naming = "SELECT uri FROM rag_related('V-204') WHERE relation = 'names' ORDER BY 1";
    assert_eq!(ann.column(naming), ["elsewhere.md", "plant/FC-001-234.md", "plant/pump.md"]);
    assert!(ann.count("SELECT count(*) FROM rag_related('plant/pump.md') WHERE relation = 'links_to'") > 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag_related('nothing of the kind')"), 0);
}

/// Adds documents of one chunk each that name what the notes name, and each other, without the engine.
fn bomb(admin: &mut Session, documents: usize) {
    admin.run(&format!(
        "CREATE TEMP TABLE made AS
             SELECT rag.new_id() AS id, gen_random_uuid() AS chunk, d.id AS domain_id, d.owner, n
             FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id, generate_series(1, {documents}) n
             WHERE c.name = 'default' AND EXISTS (SELECT FROM rag.document o WHERE o.domain_id = d.id);
         INSERT INTO rag.document (id, collection, owner, uri, content, text, status, chunks, domain_id, updated_at)
             SELECT id, 'default', owner, 'bomb ' || n, 'made', 'made', 'done', 1, domain_id, '2020-01-01' FROM made;
         INSERT INTO rag.section (domain_id, id, document_id, ordinal, header_path, char_from, char_to)
             SELECT domain_id, id, id, 0, '{{}}', 0, 4 FROM made;
         INSERT INTO rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens, char_from, char_to, sha256)
             SELECT domain_id, chunk, id, id, 0, 'made', '', 1, 0, 4, '' FROM made;
         INSERT INTO rag.entity_mention (domain_id, document_id, chunk_id, key, kind, name, weight)
             SELECT domain_id, id, chunk, key, 'document_code', upper(key), weight FROM made,
                 LATERAL (VALUES ('fc-001-234', 0.4), ('v-204', 0.4), ('coolant pump', 0.4), ('bomb-' || n, 1)) m (key, weight);
         INSERT INTO rag.entity_relation (domain_id, document_id, chunk_id, subject, relation, object)
             SELECT domain_id, id, chunk, 'v-204', 'uses', 'bomb-' || n FROM made;
         INSERT INTO rag.document_link (domain_id, document_id, chunk_id, kind, target, strength)
             SELECT domain_id, id, chunk, 'code', target, 0.6 FROM made,
                 LATERAL (SELECT 'fc-001-234' AS target UNION ALL SELECT 'bomb-' || (n + l) % {documents} FROM generate_series(1, 10) l) t;
         DROP TABLE made"
    ));
}

/// Rows of the graph's tables that indexes have brought so far.
fn read(session: &mut Session, admin: &mut Session) -> i64 {
    session.run("SELECT pg_stat_force_next_flush()");
    session.run("SELECT 1");
    admin.run("SELECT pg_stat_clear_snapshot()");
    admin.count(
        "SELECT sum(idx_tup_fetch)::bigint FROM pg_stat_user_tables
         WHERE relname IN ('entity_mention', 'entity_relation', 'document_link')",
    )
}

#[test]
fn ten_thousand_documents_that_name_each_other_cost_no_more_than_some() {
    const BOMBS: usize = 10_000;
    let database = Database::new("graph_bomb");
    let (mut ann, mut admin) = (database.user("ann"), database.admin());
    // The rows that the test adds are in no keyword segment.
    database.leave_damaged();
    write_notes(&mut ann);
    bomb(&mut admin, BOMBS);
    let mut cost = |ann: &mut Session, sql: &str| {
        let before = read(ann, &mut admin);
        let rows = ann.column(sql);
        (rows, read(ann, &mut admin) - before)
    };
    for options in [r#"{"graph": "on"}"#, r#"{"hops": 2}"#] {
        let search = format!(
            "SELECT uri FROM rag_search('coolant', k => 10, mode => 'keyword', options => '{options}')"
        );
        let (uris, read) = cost(&mut ann, &search);
        assert!(uris.contains(&"plant/pump.md".to_owned()), "{uris:?}");
        assert!(read < BOMBS as i64, "{options}: {read} rows");
    }
    // Links are followed all the same: from what points there, and to the one that is called so.
    let (linked, read) =
        cost(&mut ann, "SELECT uri FROM rag_related('plant/pump.md') WHERE relation = 'links_to' ORDER BY 1");
    assert_eq!(linked, ["plans/cellar.md", "plant/FC-001-234.md"]);
    assert!(read < BOMBS as i64, "{read} rows");
    let (back, read) = cost(
        &mut ann,
        "SELECT uri FROM rag_related('plant/FC-001-234.md', options => '{\"k\": 1000}') WHERE relation = 'links_to'",
    );
    assert!(back.len() <= 200 && read < BOMBS as i64, "{} links, {read} rows", back.len());
    let (related, read) = cost(&mut ann, "SELECT name FROM rag_related('V-204', options => '{\"k\": 1000}')");
    assert!(related.len() <= 1000 && read < 2 * BOMBS as i64, "{} rows of {read}", related.len());
}

#[test]
fn a_document_of_thousands_of_names_is_as_others() {
    let database = Database::new("graph_names");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    let names: Vec<String> = (0..5_000)
        .map(|n| if n % 40 == 0 { format!("\n\nsetting_{n}") } else { format!("setting_{n}") })
        .collect();
    ann.ingest(&format!("# Coolant settings\n\n{}", names.join(" ")), "many.md");
    let mentions = ann.count(
        "SELECT count(*) FROM rag.entity_mention m JOIN rag.document d ON d.id = m.document_id WHERE d.uri = 'many.md'",
    );
    assert!(mentions > 500, "{mentions}");
    let uris = found(&mut ann, "coolant", r#"{"graph": "on"}"#);
    assert!(uris.contains(&"plant/FC-001-234.md".to_owned()), "{uris:?}");
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_related('many.md', options => '{\"k\": 1000}')"),
        mentions.min(1000)
    );
}

#[test]
fn what_is_reached_and_named_counts_with_the_greater_share() {
    let database = Database::new("graph_shares");
    let mut ann = database.user("ann");
    // V-204 is reached from the pump and named in passing; V-900 begins a line and is not reached.
    for (uri, text) in [
        ("hit.md", "The Alpha Pump is connected to valve V-204 by a hose of rubber.\n\nV-900 is red."),
        ("one.md", "V-204 is connected to V-301."),
        ("two.md", "V-900 is connected to V-302."),
        ("three.md", "Since May the seal of V-301 is green."),
        ("four.md", "Since May the seal of V-302 is green."),
    ] {
        ann.ingest(text, uri);
    }
    let uris = found(&mut ann, "Alpha Pump", r#"{"graph": "on"}"#);
    let place = |uri: &str| uris.iter().position(|found| found == uri);
    assert_eq!(place("hit.md"), Some(0), "{uris:?}");
    assert!(place("three.md").is_some() && place("three.md") < place("four.md"), "{uris:?}");
    assert!(
        stage(
            &mut ann,
            r#"rag_search('Alpha Pump', mode => 'keyword', options => '{"graph": "on"}')"#,
            "graph"
        )
        .is_some()
    );
}
