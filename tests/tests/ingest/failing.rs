//! Documents that cannot be processed, arguments that make no sense, and waiting for what will not come.

use super::words_found;
use rag_tests::{Cluster, Database, Session, wait_until};
use std::time::Duration;

const PDF: &str = "decode('255044462d312e370a25e2e3cfd30a', 'hex')";
const ZIP: &str = "decode('504b0304140000000800', 'hex')";

#[test]
fn a_document_that_cannot_be_read_is_a_failed_job_and_the_others_go_on() {
    let database = Database::new("failed");
    let mut ann = database.user("ann");
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('before', 'The first marmot whistles.')");
    for (uri, bytes) in [("pdf", PDF), ("zip", ZIP)] {
        ann.run(&format!("SELECT rag_ingest_bytes({bytes}, uri => '{uri}')"));
    }
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('after', 'The second marmot whistles.')");
    ann.settle();
    assert_eq!(words_found(&mut ann, "marmot"), 2);
    let failed = ann.rows("SELECT uri, sqlstate, error, tries FROM rag.failed_job ORDER BY uri");
    assert_eq!(failed.len(), 2, "{failed:?}");
    for (row, uri) in failed.iter().zip(["pdf", "zip"]) {
        assert_eq!(row[0].as_deref(), Some(uri));
        assert!(matches!(row[1].as_deref(), Some("0A000" | "22000")), "{row:?}");
        assert!(row[2].as_ref().unwrap().len() > 10, "{row:?}");
    }
    let documents = ann.rows("SELECT status, error FROM rag.document WHERE uri IN ('pdf', 'zip')");
    assert!(
        documents.iter().all(|row| row[0].as_deref() == Some("failed") && row[1].is_some()),
        "{documents:?}"
    );
    assert_eq!(
        ann.count("SELECT documents_failed FROM rag.collection_status WHERE collection = 'default'"),
        2
    );

    assert_eq!(ann.count("SELECT rag_retry()"), 2);
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag.failed_job"), 2);
    ann.run("UPDATE rag.document SET file = NULL, media_type = NULL, content = 'A third marmot.' WHERE uri = 'pdf'");
    ann.settle();
    assert_eq!(words_found(&mut ann, "marmot"), 3);
    assert_eq!(ann.column("SELECT uri FROM rag.failed_job"), ["zip"]);
    assert_eq!(ann.value("SELECT error FROM rag.document WHERE uri = 'pdf'"), "NULL");

    let failure =
        ann.error(&format!("SELECT rag_ingest_bytes({PDF}, uri => 'now', options => '{{\"sync\": true}}')"));
    assert!(["0A000", "22000"].contains(&failure.code.as_str()), "{failure}");
}

#[test]
fn a_fault_of_the_server_is_waited_out_and_costs_no_document_a_try() {
    let cluster = Cluster::builder("server_faults").setting("rag_ext.max_tries", "1").start();
    let database = cluster.database("server_faults");
    let (mut admin, mut ann) = (database.admin(), database.user("ann"));
    // A full disk, memory that ran out, a server that is about to start, a disk that does not answer.
    let faults = ["53100", "53200", "57P03", "58030"];
    for fault in faults {
        admin.run(&format!("CREATE SEQUENCE public.seen_{fault}"));
    }
    admin.run(
        "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE fault text := substr(NEW.content, 1, 5);
         BEGIN
             PERFORM nextval(format('public.%I', lower('seen_' || fault)));
             RAISE EXCEPTION 'no space left on device' USING ERRCODE = fault;
         END $$;
         CREATE TRIGGER fails BEFORE INSERT ON rag.chunk FOR EACH ROW EXECUTE FUNCTION public.fail()",
    );
    for fault in faults {
        ann.run(&format!(
            "INSERT INTO rag.document (uri, content) VALUES ('{fault}', '{fault} and a marmot.')"
        ));
    }
    wait_until("each was tried again", Duration::from_secs(60), || {
        assert_eq!(ann.rows("SELECT uri, sqlstate FROM rag.failed_job"), Vec::<Vec<_>>::new());
        faults.iter().all(|fault| admin.count(&format!("SELECT last_value FROM public.seen_{fault}")) >= 2)
    });
    assert_eq!(ann.column("SELECT DISTINCT tries FROM rag.job"), ["0"]);
    admin.run("DROP TRIGGER fails ON rag.chunk");
    ann.settle();
    assert_eq!(ann.column("SELECT DISTINCT status FROM rag.document"), ["done"]);
    assert_eq!(words_found(&mut ann, "marmot"), 4);
}

#[test]
fn documents_that_are_written_together_keep_what_is_theirs_and_one_that_cannot_be_written_fails_alone() {
    let database = Database::new("written_together");
    let (mut admin, mut ann) = (database.admin(), database.user("ann"));
    admin.run(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF NEW.content LIKE '%unwritable%' THEN
                 RAISE EXCEPTION 'refused' USING ERRCODE = 'data_exception';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuses BEFORE INSERT ON rag.chunk FOR EACH ROW EXECUTE FUNCTION public.refuse()",
    );
    // Each names a number and an acronym that are its own, and every third one is longer than a chunk.
    let content = "format(E'# Order\n\nOrder XQ-%1$s. The Common Note %2$s Register (CN%2$sR) has it.%3$s%4$s', $2 + n,
            chr(64 + n), repeat(E' It goes on.', CASE n % 3 WHEN 0 THEN 300 ELSE 0 END), CASE n WHEN $3 THEN ' unwritable' END)";
    let found = "SELECT d.uri, m.key, a.short_form FROM rag.document d
         JOIN rag.chunk c ON c.document_id = d.id AND c.ordinal = 0
         LEFT JOIN rag.entity_mention m ON m.chunk_id = c.id AND m.document_id = d.id AND m.kind = 'document_code'
         LEFT JOIN rag.mined_acronym a ON a.document_id = d.id ORDER BY d.uri";
    let expected = |numbers: &dyn Fn(u8) -> Option<u32>| {
        let row = |n: u8| {
            let acronym = format!("CN{}R", char::from(64 + n));
            numbers(n).map(|number| [format!("{n:02}"), format!("xq-{number}"), acronym].map(Some).to_vec())
        };
        (1..=12).filter_map(row).collect::<Vec<_>>()
    };
    let filled =
        |content: &str, first: &str, refused: &str| content.replace("$2", first).replace("$3", refused);
    let write_together = |ann: &mut Session, statement: String| {
        ann.run("SELECT rag_pause()");
        ann.run(&statement);
        ann.run("SELECT rag_resume()");
        ann.settle();
    };
    let insert = format!(
        "INSERT INTO rag.document (uri, content) SELECT lpad(n::text, 2, '0'), {} FROM generate_series(1, 12) n",
        filled(content, "100", "5")
    );
    write_together(&mut ann, insert);
    assert_eq!(ann.column("SELECT uri FROM rag.failed_job"), ["05"]);
    assert_eq!(admin.rows(found), expected(&|n| (n != 5).then_some(100 + u32::from(n))));
    super::assert_spans_are_exact(&mut ann);

    // Some change, one of them to what cannot be written: it keeps its earlier form.
    let update = format!(
        "UPDATE rag.document d SET content = {} FROM generate_series(4, 9) n WHERE d.uri = lpad(n::text, 2, '0')",
        filled(content, "200", "8")
    );
    write_together(&mut ann, update);
    assert_eq!(ann.column("SELECT uri FROM rag.failed_job"), ["08"]);
    let is_changed = |n: u8| (4..=9).contains(&n) && n != 8;
    assert_eq!(admin.rows(found), expected(&|n| Some(if is_changed(n) { 200 } else { 100 } + u32::from(n))));
}

#[test]
fn an_update_that_fails_leaves_the_earlier_form_searchable() {
    let database = Database::new("failed_update");
    let mut ann = database.user("ann");
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('a', 'The capercaillie dances.')");
    ann.settle();
    ann.run(&format!("UPDATE rag.document SET content = NULL, file = {ZIP} WHERE uri = 'a'"));
    ann.settle();
    assert_eq!(ann.value("SELECT status FROM rag.document"), "failed");
    assert_eq!(words_found(&mut ann, "capercaillie"), 1);
    super::assert_spans_are_exact(&mut ann);
}

#[test]
fn waiting_inside_of_the_transaction_that_holds_the_work_is_refused() {
    let database = Database::new("waiting");
    let mut ann = database.user("ann");
    ann.run("BEGIN; INSERT INTO rag.document (content) VALUES ('held back')");
    let failure = ann.refuses("55000", "SELECT rag_wait()");
    assert!(!failure.hint.is_empty(), "{failure}");
    ann.run("ROLLBACK");

    ann.run("INSERT INTO rag.document (content) VALUES ('committed')");
    ann.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    let failure = ann.refuses("55000", "SELECT rag_wait()");
    assert!(!failure.hint.is_empty(), "{failure}");
    ann.run("ROLLBACK");
    ann.settle();
    ann.run("BEGIN; SELECT 1");
    assert!(ann.holds("SELECT rag_wait()"), "a transaction that wrote nothing may wait");
    ann.run("COMMIT");
    ann.refuses("42704", "SELECT rag_wait('no such collection')");
    let failure = ann.refuses("42704", "SELECT rag_wait('01a20e14-7255-7c73-b5c7-5e8cb9c70928')");
    assert!(failure.hint.contains("::uuid"), "{failure}");
}

#[test]
fn waiting_ends_with_false_when_the_time_is_over() {
    let database = Database::new("wait_limit");
    let mut ann = database.user("ann");
    ann.ingest("The hydrographer sleeps.", "first");
    ann.run("SELECT rag_pause(); INSERT INTO rag.document (uri, content) VALUES ('held', 'He wakes up.')");
    // Workers pass over what somebody holds, however fast they are.
    let mut holder = database.admin();
    holder.run("BEGIN; SELECT FROM rag.job WHERE state = 'queued' FOR UPDATE");
    ann.run("SELECT rag_resume()");
    let start = std::time::Instant::now();
    assert!(!ann.holds("SELECT rag_wait(NULL, '200 ms')"));
    let took = start.elapsed();
    assert!((Duration::from_millis(200)..Duration::from_secs(20)).contains(&took), "{took:?}");
    assert!(!ann.holds("SELECT rag_wait(NULL, '0')"));
    ann.refuses("22004", "SELECT rag_wait(NULL, NULL)");
    holder.run("ROLLBACK");
    ann.settle();
    assert_eq!(words_found(&mut ann, "wakes"), 1);
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_a_word_about_them() {
    let database = Database::new("arguments");
    let mut ann = database.user("ann");
    ann.ingest("Anything at all.", "a");
    for sql in [
        "SELECT rag_ingest(NULL)",
        "SELECT rag_ingest_bytes(NULL)",
        "SELECT rag_ingest('x', collection => NULL)",
        "SELECT rag_ingest('x', metadata => NULL)",
        "SELECT rag_ingest('x', options => NULL)",
        "SELECT * FROM rag_search(NULL)",
        "SELECT * FROM rag_search('x', k => NULL)",
        "SELECT * FROM rag_search('x', mode => NULL)",
        "SELECT * FROM rag_search('x', options => NULL)",
        "SELECT rag_answer(NULL)",
        "SELECT rag_embed(NULL)",
        "SELECT * FROM rag_rerank(NULL, ARRAY['x'])",
        "SELECT * FROM rag_rerank('x', NULL)",
        "SELECT * FROM rag_rerank('x', ARRAY['x', NULL])",
        "SELECT * FROM rag_rerank_chunks('x', NULL)",
        "SELECT rag_create_collection(NULL)",
        "SELECT rag_grant(NULL, 'public', 'read')",
        "SELECT rag_grant('default', NULL, 'read')",
        "SELECT rag_accept(NULL, 'x')",
    ] {
        ann.refuses("22004", sql);
    }
    for sql in [
        "SELECT rag_ingest('x', metadata => '[1]')",
        "SELECT rag_ingest('x', options => '{\"sync\": \"yes\"}')",
        "SELECT rag_ingest('x', options => '[]')",
        "SELECT * FROM rag_search('x', k => 0)",
        "SELECT * FROM rag_search('x', k => -1)",
        "SELECT * FROM rag_search('x', k => 1001)",
        "SELECT * FROM rag_search('x', mode => 'telepathy')",
        "SELECT * FROM rag_search('x', filter => '[]')",
        "SELECT * FROM rag_search('x', filter => '{\"a\": {\"like\": \"b\"}}')",
        "SELECT * FROM rag_search('x', options => '{\"fusion\": \"cold\"}')",
        "SELECT * FROM rag_search('x', options => '{\"keyword_weight\": 1.5}')",
        "SELECT * FROM rag_search('x', options => '{\"min_score\": \"high\"}')",
        "SELECT rag_answer('x', history => '{}')",
        "SELECT rag_answer('x', history => '[{\"role\": \"emperor\", \"content\": \"x\"}]')",
        "SELECT rag_answer('x', options => '{\"min_support\": 2}')",
        "SELECT rag_grant('default', 'public', 'everything')",
        "SELECT rag_grant('default', 'ann', 'read')",
    ] {
        ann.refuses("22023", sql);
    }
    for call in [
        "rag_ingest('x', options => $$)",
        "rag_ingest_bytes('x', options => $$)",
        "rag_search('x', options => $$)",
        "rag_rerank('x', ARRAY['x'], options => $$)",
        "rag_rerank_chunks('x', '{}', options => $$)",
        "rag_answer('x', options => $$)",
        "rag_answer_text('x', options => $$)",
        "rag_cite('x', options => $$)",
        "rag_create_collection('x', options => $$)",
    ] {
        let call = call.replace("$$", "'{\"sinc\": true}'");
        let failure = ann.refuses("22023", &format!("SELECT * FROM {call}"));
        assert!(failure.message.contains("sinc") && !failure.hint.is_empty(), "{failure}");
    }
    for sql in [
        "SELECT * FROM rag_rerank('x', array_fill('x'::text, ARRAY[1001]))",
        "SELECT * FROM rag_search('x', filter => jsonb_build_object('a', jsonb_build_object('in', (SELECT jsonb_agg(n) FROM generate_series(1, 1001) n))))",
        "SELECT rag_embed(repeat('word ', 20000))",
    ] {
        ann.refuses("54000", sql);
    }
    let failure = ann.error("SELECT rag_answer(repeat('why ', 1000000))");
    assert_eq!(failure.code, "54000", "{failure}");
    ann.refuses("42704", "SELECT rag_ingest('x', collection => 'never made')");
    ann.refuses("42704", "INSERT INTO rag.document (collection, content) VALUES ('never made', 'x')");
    ann.refuses("22004", "INSERT INTO rag.document (title) VALUES ('neither content nor file')");
}

#[test]
fn a_secret_of_the_document_does_not_reach_the_log() {
    let database = Database::new("log");
    let mut ann = database.user("ann");
    let secret = "xylophonist-secret-4711";
    ann.run(&format!(
        "INSERT INTO rag.document (title, uri, content) VALUES ('{secret}', '{secret}', 'text {secret}')"
    ));
    ann.run(&format!("SELECT rag_ingest_bytes({ZIP} || '{secret}'::bytea, title => '{secret}')"));
    ann.settle();
    ann.rows(&format!("SELECT * FROM rag_search('{secret}')"));
    ann.rows(&format!("SELECT rag_answer('what about {secret}?')"));
    wait_until("both are processed", Duration::from_secs(60), || {
        ann.count("SELECT count(*) FROM rag.failed_job") == 1
    });
    let log = database.cluster().log();
    let line = log.lines().find(|line| line.contains(secret));
    assert_eq!(line, None);
}
