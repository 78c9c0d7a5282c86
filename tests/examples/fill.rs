//! `fill FILE`: fills a database of the installed version with something of everything and dumps it into FILE. The dump
//! also has what was found then: table `asked`, which the tests of upgrades ask again. Called by scripts/freeze.sh.

#![allow(clippy::unwrap_used)]

use rag_tests::{Cluster, Database, literal, wait_until};
use std::path::PathBuf;
use std::time::Duration;

/// Roles are no part of a dump: who restores it makes them first.
const ROLES: &str =
    "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE clerk LOGIN; CREATE ROLE app LOGIN";

/// What the superuser sets up.
const SET_UP: &str = "
SELECT rag_enable('ann'), rag_enable('bob'), rag_enable('clerk', 'read'), rag_enable('app'), rag_register_gateway('app');
CREATE TABLE public.article (id bigint PRIMARY KEY, headline text, body text);
ALTER TABLE public.article OWNER TO ann;
CREATE TABLE public.asked (role text, user_id text, sql text, result text);
GRANT SELECT ON public.asked TO PUBLIC;
SELECT rag_add_policy('rag.document', 'no_drafts', $$ NOT metadata ? 'draft' $$, command => 'select')";

const ANN: &str = r#"
SELECT rag_create_collection('wiki', shared => true);
SELECT rag_create_collection('small', options => '{"chunking": {"size": 64, "overlap": 0}}');
SELECT rag_create_collection('nested', options => '{"chunking": {"method": "parent_child"}}');
SELECT rag_grant('wiki', 'role:bob', 'read'), rag_grant('wiki', 'role:bob', 'write'), rag_grant('small', 'role:clerk', 'read');
INSERT INTO rag.metadata_rule (name, key, pattern, type) VALUES ('order', 'order', 'Order (\d+)', 'number');
INSERT INTO rag.document (uri, content, metadata) VALUES
  ('tides.md', E'# Tide tables\n\nThe harbour of Nordhavn publishes its tide tables every January.\n\n## Spring tides\n\nSpring tides occur shortly after full moon and new moon. At Nordhavn the spring range is 4.2 metres.', '{"year": 2026}'),
  ('keeper.txt', 'The lighthouse keeper Ida Brandt polished the lens every morning before sunrise. Order 4711 was for new oil.', '{}'),
  ('draft.txt', 'The harbour master plans a second lighthouse.', '{"draft": true}'),
  ('gone.txt', 'The old harbour crane was sold.', '{}');
INSERT INTO rag.document (uri, content, collection) VALUES
  ('bees.html', '<!DOCTYPE html><html><head><title>Beekeeping</title></head><body><h1>Beekeeping</h1><h2>Winter feeding</h2><p>In winter a colony of honey bees needs about fifteen kilograms of stored honey.</p></body></html>', 'small'),
  ('wax.md', E'# Wax\n\nCandles are made of the wax of honey bees.', 'small'),
  ('wiki.md', E'# Ropes\n\nA bowline makes a loop that does not slip.', 'wiki'),
  ('nested.md', E'# Sails\n\nA spinnaker is a sail for courses off the wind. It is flown from a pole.\n\n# Anchors\n\nA plough anchor holds well in sand and mud.', 'nested');
INSERT INTO public.article VALUES (1, 'Night ferry', 'The ferry leaves at nine in the evening.'), (2, 'Fog', 'No ferry sails in fog.');
SELECT rag_attach('public.article', title => 'headline');
SELECT rag_ingest_bytes(decode('255044462d312e37', 'hex'), uri => 'broken.pdf')"#;

const BOB: &str = "
SELECT rag_accept('role:ann', 'wiki');
SELECT rag_ingest('A sheet bend joins two ropes of different size.', uri => 'bend', collection => 'role:ann/wiki');
SELECT rag_ingest('The harbour café of Bob opens at seven.', uri => 'cafe')";

const CLERK: &str = "SELECT rag_accept('role:ann', 'small')";

const OF_A_USER: &str =
    "SELECT rag_ingest('The berth of user nine lies in the inner harbour.', uri => 'berth')";

/// Words to look for, and questions, each of which has one best document for whoever sees it.
const QUERIES: [&str; 4] = ["spring tides", "lighthouse keeper", "honey winter", "bowline loop ropes"];
/// A word that several documents have, of which nobody sees all.
const SHARED_WORD: &str = "harbour";
const QUESTIONS: [&str; 3] = [
    "How large is the spring range at Nordhavn?",
    "How much honey does a colony need in winter?",
    "When does the ferry leave?",
];

fn main() {
    let file = PathBuf::from(std::env::args().nth(1).expect("the file to write"));
    let cluster = Cluster::builder("release").start();
    let database = cluster.database("release");
    fill(&database);
    ask(&database);
    leave_work(&cluster, &database);
    let dump = cluster.call(cluster.program("pg_dump").arg(database.name()));
    // Which an older psql does not know.
    let lines = dump
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    std::fs::write(file, lines.collect::<String>()).unwrap();
    // Its work is left to whoever restores it.
    database.leave_damaged();
}

fn fill(database: &Database<'_>) {
    let mut admin = database.admin();
    admin.run(ROLES);
    admin.run(SET_UP);
    for (role, user_id, sql) in
        [("ann", "", ANN), ("bob", "", BOB), ("clerk", "", CLERK), ("app", "9", OF_A_USER)]
    {
        let mut session = database.connect(role);
        session.run(&format!("SET rag_ext.user_id = '{user_id}'"));
        session.run(sql);
        session.settle();
    }
    // What was deleted and changed leaves traces too.
    let mut ann = database.connect("ann");
    ann.run("DELETE FROM rag.document WHERE uri = 'gone.txt'; UPDATE rag.document SET content = content || ' She kept the log.' WHERE uri = 'keeper.txt'; DELETE FROM public.article WHERE id = 2");
    ann.settle();
}

/// Asks as each role and keeps the answers: all that may be found, and what comes first. Not scores, nor the order of the
/// rest: later versions may know better.
fn ask(database: &Database<'_>) {
    let mut statements = vec!["SELECT string_agg(uri, ' ' ORDER BY uri) FROM rag.document".to_owned()];
    for query in QUERIES.iter().chain([&SHARED_WORD]).map(|query| literal(query)) {
        for mode in ["keyword", "vector", "hybrid"] {
            statements.push(format!(
                "SELECT string_agg(chunk_id::text, ' ' ORDER BY chunk_id) FROM rag_search({query}, k => 1000, mode => '{mode}')"
            ));
        }
    }
    // The first of what has the words: what comes first of the rest is anybody's guess.
    statements.extend(QUERIES.map(literal).map(|query| {
        format!("SELECT uri FROM rag_search({query}, k => 1) WHERE EXISTS (SELECT FROM rag_search({query}, mode => 'keyword'))")
    }));
    statements.push(
        "SELECT string_agg(DISTINCT uri, ' ') FROM rag_search('harbour', filter => '{\"year\": 2026}')"
            .into(),
    );
    statements.push(
        "SELECT string_agg(DISTINCT uri, ' ') FROM rag_search('lighthouse', filter => '{\"order\": 4711}')"
            .into(),
    );
    statements.push("SELECT string_agg(source || ' ' || key, ', ') FROM rag.attached_document".into());
    for question in QUESTIONS.map(literal) {
        statements.push(format!(
            "SELECT concat_ws(' ', a->>'found', a->'citations'->0->>'document_id', a->'citations'->0->>'uri') FROM rag_answer({question}) a"
        ));
    }
    let mut admin = database.admin();
    for (role, user_id) in [("ann", ""), ("bob", ""), ("clerk", ""), ("app", "9"), ("app", "10")] {
        let mut session = database.connect(role);
        session.run(&format!("SET rag_ext.user_id = '{user_id}'"));
        for sql in &statements {
            let result = session.column(sql).first().cloned().unwrap_or_default();
            let row = [role, user_id, sql, &result].map(literal).join(", ");
            admin.run(&format!("INSERT INTO public.asked VALUES ({row})"));
        }
    }
    let found = admin.count("SELECT count(*) FROM public.asked WHERE result NOT IN ('', 'NULL', 'false')");
    assert!(found > 60, "only {found} answers to compare later");
}

/// A document that waits for a worker, and the background otherwise at rest.
fn leave_work(cluster: &Cluster, database: &Database<'_>) {
    cluster.configure("rag_ext.ingest_workers = 0");
    cluster.reload();
    let mut admin = database.admin();
    wait_until("the workers are gone", Duration::from_secs(60), || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'rag_ext%'") == 0
    });
    // Of somebody who was not asked.
    let mut session = database.connect("app");
    session.run("SET rag_ext.user_id = '11'");
    session
        .run("INSERT INTO rag.document (uri, content) VALUES ('queued.txt', 'A pilot boards each tanker.')");
    assert_eq!(admin.count("SELECT count(*) FROM rag.job WHERE state = 'queued'"), 1);
}
