//! Writing documents: INSERT, UPDATE, DELETE, ON CONFLICT, COPY, rag_ingest, and what each leaves behind.

use super::{assert_spans_are_exact, words_found};
use rag_tests::{Database, Session, literal};
use std::io::Write;

#[test]
fn plain_sql_is_enough_for_a_document_from_first_to_last() {
    let database = Database::new("plain_sql");
    let mut ann = database.user("ann");
    let id = ann.value(
        "INSERT INTO rag.document (content) VALUES ('A quokka lives on Rottnest Island.') RETURNING id",
    );
    let owner = ann.value(&format!("SELECT owner FROM rag.document WHERE id = '{id}'"));
    assert_eq!(owner, format!("role:{}", database.role_name("ann")));
    ann.settle();
    assert_eq!(words_found(&mut ann, "quokka"), 1);

    ann.run(&format!("UPDATE rag.document SET content = 'A wombat digs at night.' WHERE id = '{id}'"));
    ann.settle();
    assert_eq!((words_found(&mut ann, "quokka"), words_found(&mut ann, "wombat")), (0, 1));

    ann.run(&format!(
        "UPDATE rag.document SET title = 'Marsupials', metadata = '{{\"n\": 1}}' WHERE id = '{id}'"
    ));
    ann.settle();
    assert_eq!(
        ann.value("SELECT title FROM rag_search('wombat', k => 1, filter => '{\"n\": 1}')"),
        "Marsupials"
    );
    assert_eq!(words_found(&mut ann, "marsupials"), 1, "the title is searched as well");

    ann.run(&format!("DELETE FROM rag.document WHERE id = '{id}'"));
    assert_eq!(words_found(&mut ann, "wombat"), 0);
    let mut admin = database.admin();
    for table in [
        "chunk",
        "section",
        "embedding",
        "metadata_value",
        "mined_acronym",
        "job",
        "entity_mention",
        "entity_relation",
        "document_link",
        "graph_job",
    ] {
        assert_eq!(admin.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
}

#[test]
fn many_rows_in_one_statement_become_many_documents() {
    let database = Database::new("many_rows");
    let mut ann = database.user("ann");
    let ids = ann.column(
        "INSERT INTO rag.document (uri, content, metadata)
         SELECT 'n' || n, 'Ledger entry number ' || n || ' about turnips.', jsonb_build_object('n', n)
         FROM generate_series(1, 25) n RETURNING id",
    );
    assert_eq!(ids.len(), 25);
    ann.settle();
    assert_eq!(words_found(&mut ann, "turnips"), 25);
    ann.run("UPDATE rag.document SET content = replace(content, 'turnips', 'parsnips') WHERE (metadata->>'n')::int <= 10");
    ann.settle();
    assert_eq!((words_found(&mut ann, "turnips"), words_found(&mut ann, "parsnips")), (15, 10));
    ann.run("DELETE FROM rag.document WHERE (metadata->>'n')::int BETWEEN 6 AND 15");
    assert_eq!((words_found(&mut ann, "turnips"), words_found(&mut ann, "parsnips")), (10, 5));
    assert_spans_are_exact(&mut ann);
}

#[test]
fn on_conflict_updates_by_uri() {
    let database = Database::new("on_conflict");
    let mut ann = database.user("ann");
    let rows = |ann: &mut Session, text: &str| {
        ann.column(&format!(
            "INSERT INTO rag.document (uri, content) VALUES ('a', {}), ('b', 'Second: aardvark.')
             ON CONFLICT (collection, owner, uri) DO UPDATE SET content = excluded.content RETURNING id",
            literal(text)
        ))
    };
    let first = rows(&mut ann, "First: platypus.");
    ann.settle();
    let jobs = "SELECT string_agg(md5(j::text), ',' ORDER BY document_id) FROM rag.job j";
    let before = ann.value(jobs);
    assert_eq!(rows(&mut ann, "First: platypus."), first);
    assert_eq!(ann.value(jobs), before, "the same content queues nothing");
    assert_eq!(rows(&mut ann, "First: echidna."), first);
    ann.settle();
    assert_eq!((words_found(&mut ann, "platypus"), words_found(&mut ann, "echidna")), (0, 1));
    let nothing = ann.column(
        "INSERT INTO rag.document (uri, content) VALUES ('a', 'Third: dingo.')
         ON CONFLICT (collection, owner, uri) DO NOTHING RETURNING id",
    );
    assert!(nothing.is_empty());
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 2);
    ann.refuses("23505", "INSERT INTO rag.document (uri, content) VALUES ('a', 'no conflict clause')");
}

#[test]
fn copy_brings_documents_in() {
    let database = Database::new("copy");
    // Postgres itself takes no COPY FROM where row-level security holds, so this is for superusers.
    let mut ann = database.admin();
    let mut writer = ann.client().copy_in("COPY rag.document (uri, content) FROM STDIN").unwrap();
    for n in 0..5 {
        writeln!(writer, "c{n}\tCopied line {n} about albatrosses.").unwrap();
    }
    writer.finish().unwrap();
    ann.settle();
    assert_eq!(words_found(&mut ann, "albatrosses"), 5);
}

#[test]
fn rag_ingest_does_the_same_thing_only_once() {
    let database = Database::new("idempotent");
    let mut ann = database.user("ann");
    let id = ann.value("SELECT rag_ingest('An ibis stands in the reeds.', uri => 'ibis')");
    ann.settle();
    let state = "SELECT row_to_json(d)::text FROM rag.document d UNION ALL SELECT j::text FROM rag.job j
                 UNION ALL SELECT c::text FROM rag.chunk c ORDER BY 1";
    let before = ann.column(state);
    assert_eq!(ann.value("SELECT rag_ingest('An ibis stands in the reeds.', uri => 'ibis')"), id);
    assert_eq!(ann.column(state), before, "the same uri and content changes nothing");

    assert_eq!(ann.value("SELECT rag_ingest('A heron stands in the reeds.', uri => 'ibis')"), id);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 1);
    ann.settle();
    assert_eq!((words_found(&mut ann, "ibis"), words_found(&mut ann, "heron")), (0, 1));

    let unnamed = ann.value("SELECT rag_ingest('A bittern booms at dusk.')");
    assert_eq!(
        ann.value("SELECT rag_ingest('A bittern booms at dusk.')"),
        unnamed,
        "equal content without uri"
    );
    let other = ann.value("SELECT rag_ingest('A bittern booms at dusk.', uri => 'bittern')");
    assert_ne!(other, unnamed, "another uri is another document");
    let elsewhere = ann.value("SELECT rag_create_collection('elsewhere')");
    assert_ne!(elsewhere, "NULL");
    assert_ne!(
        ann.value("SELECT rag_ingest('A bittern booms at dusk.', collection => 'elsewhere')"),
        unnamed
    );
    ann.settle();
    assert_eq!(words_found(&mut ann, "bittern"), 3);
}

#[test]
fn equal_text_is_embedded_once_per_domain_and_again_for_another_owner() {
    let database = Database::new("reuse");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let ingest = |session: &mut Session, uri: &str| {
        let id = session
            .value(&format!("SELECT rag_ingest('The kestrel hovers above the motorway.', uri => '{uri}')"));
        session.settle();
        let row = session.rows(&format!("SELECT chunks, embedded FROM rag.job WHERE document_id = '{id}'"));
        (row[0][0].clone().unwrap(), row[0][1].clone().unwrap())
    };
    assert_eq!(ingest(&mut ann, "one"), ("1".into(), "1".into()));
    assert_eq!(ingest(&mut ann, "two"), ("1".into(), "0".into()), "reused");
    assert_eq!(ingest(&mut bob, "one"), ("1".into(), "1".into()), "another owner's vector is not reused");
    assert_eq!(
        ann.count("SELECT count(DISTINCT vector) FROM rag_vectors(ARRAY(SELECT id FROM rag.chunk))"),
        1
    );
    let scores = ann.column("SELECT vector_score FROM rag_search('kestrel', mode => 'vector')");
    assert_eq!((scores.len(), &scores[0]), (2, &scores[1]));
}

#[test]
fn sync_work_is_done_in_the_callers_own_transaction() {
    let database = Database::new("sync");
    let (mut ann, mut second) = (database.user("ann"), database.connect(&database.role_name("ann")));
    ann.run("BEGIN");
    ann.ingest("The axolotl regrows its limbs.", "axolotl");
    assert_eq!(words_found(&mut ann, "axolotl"), 1, "the own transaction sees it");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('axolotl', mode => 'vector')"), 1);
    assert_eq!(words_found(&mut second, "axolotl"), 0, "nobody else does");
    assert_eq!(second.count("SELECT count(*) FROM rag.chunk"), 0);
    ann.run("COMMIT");
    assert_eq!(words_found(&mut second, "axolotl"), 1);
    assert_eq!(second.value("SELECT status FROM rag.document"), "done");

    ann.run("BEGIN");
    ann.ingest("The olm lives in caves.", "olm");
    ann.run("SAVEPOINT here");
    ann.ingest("The newt lives in ponds.", "newt");
    assert_eq!((words_found(&mut ann, "olm"), words_found(&mut ann, "newt")), (1, 1));
    ann.run("ROLLBACK TO here");
    assert_eq!((words_found(&mut ann, "olm"), words_found(&mut ann, "newt")), (1, 0));
    ann.run("ROLLBACK");
    assert_eq!((words_found(&mut ann, "olm"), words_found(&mut ann, "axolotl")), (0, 1));
}

#[test]
fn what_is_rolled_back_leaves_nothing() {
    let database = Database::new("rollback");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    let tables = admin.column(
        "SELECT oid::regclass FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind = 'r'",
    );
    let mut rows = || {
        tables.iter().map(|table| admin.count(&format!("SELECT count(*) FROM {table}"))).collect::<Vec<_>>()
    };
    let before = rows();
    ann.run("BEGIN");
    ann.ingest("A pangolin rolls up.", "pangolin");
    ann.run("SAVEPOINT a");
    ann.run("INSERT INTO rag.document (content, metadata) VALUES ('An aardwolf eats termites.', '{\"a\": [1, 2]}')");
    ann.run("SELECT rag_create_collection('gone')");
    ann.run("ROLLBACK");
    assert_eq!(rows(), before, "{tables:?}");
    assert!(ann.holds("SELECT rag_wait(NULL, '10 s')"), "nothing to wait for");
}

#[test]
fn chunks_and_sections_say_exactly_where_they_stand() {
    let database = Database::new("spans");
    let mut ann = database.user("ann");
    let prose = "Ünïcödé 🦉 flies — straßenweise — über die Brücke; 数据库 keeps 记录. ".repeat(40);
    let markdown = format!(
        "Before any heading: naïve café.\n\n# Erste Überschrift\n\n{prose}\n\n## Zweite 🦊\n\n{prose}\n\n| a | b |\n|---|---|\n| 1 | ü |\n\n# Last\n\n```\ncode ünder\n```\n"
    );
    ann.ingest(&markdown, "unicode.md");
    ann.ingest(
        &format!("<h1>Eins &amp; zwei</h1><p>{prose}</p><h2>Drei</h2><ul><li>ä</li><li>ö</li></ul>"),
        "page.html",
    );
    ann.ingest("Just one line\r\nand another\tone.", "plain.txt");
    assert_spans_are_exact(&mut ann);
    assert!(ann.count("SELECT count(*) FROM rag.chunk") > 8);
    assert!(ann.holds("SELECT bool_and(tokens BETWEEN 1 AND 480) FROM rag.chunk"));
    let paths = ann.column(
        "SELECT DISTINCT array_to_string(s.header_path, ' > ') FROM rag.section s JOIN rag.document d ON d.id = s.document_id
         WHERE d.uri = 'unicode.md' ORDER BY 1",
    );
    for path in ["", "Erste Überschrift", "Erste Überschrift > Zweite 🦊", "Last"] {
        assert!(paths.iter().any(|p| p == path), "{path:?} is not in {paths:?}");
    }
    assert_eq!(ann.value("SELECT text = content FROM rag.document WHERE uri = 'unicode.md'"), "t");
    assert!(ann.holds(
        "SELECT text NOT LIKE '%<p>%' AND text NOT LIKE '%&amp;%' FROM rag.document WHERE uri = 'page.html'"
    ));
    assert!(ann.holds("SELECT every(d.chunks = (SELECT count(*) FROM rag.chunk c WHERE c.document_id = d.id)) FROM rag.document d"));
    let covered = ann.rows(
        "SELECT d.uri FROM rag.document d WHERE EXISTS (
            SELECT FROM generate_series(1, length(d.text)) p
            WHERE substr(d.text, p, 1) ~ '[[:alnum:]]'
              AND NOT EXISTS (SELECT FROM rag.chunk c WHERE c.document_id = d.id AND p > c.char_from AND p <= c.char_to))",
    );
    assert!(covered.is_empty(), "text that no chunk holds: {covered:?}");
}

#[test]
fn chunk_size_and_overlap_of_a_collection_are_kept() {
    let database = Database::new("size");
    let mut ann = database.user("ann");
    ann.run(
        "SELECT rag_create_collection('small', options => '{\"chunking\": {\"size\": 40, \"overlap\": 8}}')",
    );
    ann.value(&format!(
        "SELECT rag_ingest({}, collection => 'small', options => '{{\"sync\": true}}')",
        literal(&super::long_text(2, "surveyor"))
    ));
    assert!(ann.holds("SELECT max(tokens) <= 40 AND count(*) > 15 FROM rag.chunk"));
    assert_spans_are_exact(&mut ann);
    ann.refuses("42710", "SELECT rag_create_collection('small')");
    for options in [
        r#"{"chunking": {"size": 0}}"#,
        r#"{"chunking": {"size": 100000}}"#,
        r#"{"chunking": {"size": 50, "overlap": 60}}"#,
        r#"{"chunking": {"sise": 100}}"#,
        r#"{"chunking": 5}"#,
    ] {
        let sql = format!("SELECT rag_create_collection('bad', options => '{options}')");
        ann.refuses("22023", &sql);
    }
    for name in ["", "a/b", &"n".repeat(129), "line\nbreak"] {
        let failure = ann.refuses("22023", &format!("SELECT rag_create_collection({})", literal(name)));
        assert!(failure.message.chars().count() < 200, "{failure}");
    }
    let unknown = ann.refuses("22023", "SELECT rag_create_collection('x', language => 'klingon')");
    assert!(unknown.hint.contains("simple takes words of any language"), "{unknown}");
    ann.refuses("42704", "SELECT rag_create_collection('x', model => 'no-such-model')");
}
