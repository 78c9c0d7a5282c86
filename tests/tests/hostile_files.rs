//! Hundreds of hostile and broken files among sound ones, taken in by SQL: each comes to an end that says why, the
//! sound ones are done, and neither the server nor the engine notices.

#![allow(clippy::unwrap_used)]

#[path = "hostile_files/memory.rs"]
mod memory;

use memory::MemoryWatch;
use rag_test_files::{Original, Random, TestFile, bombs, damaged, originals, wrong_types};
use rag_tests::{Cluster, Database, Failure, Session, Witness};
use std::collections::HashMap;
use std::time::Instant;

/// Limits of the parse child, lower than the default so that bombs go off sooner.
const MEMORY_MIB: u64 = 512;
const CPU_SECONDS: u64 = 10;

/// What a child needs beside the document's share: the program itself and its pipes.
const CHILD_BASE_MIB: u64 = 64;

/// Models, caches and the documents on their way through the engine.
const ENGINE_MIB: u64 = 1024;

/// Copies of each sound file, spread among the others.
const COPIES: usize = 3;

/// SQLSTATEs with which a document may fail: does not parse, is not supported, is over a limit.
const REASONS: [&str; 3] = ["22000", "0A000", "54000"];

fn cluster() -> Cluster {
    Cluster::builder("hostile_files")
        .setting("rag_ext.parse_memory_limit", &format!("{MEMORY_MIB}MB"))
        .setting("rag_ext.parse_cpu_limit", &format!("{CPU_SECONDS}s"))
        .start()
}

#[test]
fn every_file_comes_to_an_end_and_harms_nobody() {
    let cluster = cluster();
    let database = cluster.database("hostile_files");
    let mut witness = Witness::of(&cluster);
    let mut ann = database.user("ann");
    let engine = engine_start(&database);

    let originals = originals();
    let hostile = [damaged(&originals), wrong_types(&originals), bombs()].concat();
    assert!(hostile.len() >= 200, "{}", hostile.len());
    let watch = MemoryWatch::below(cluster.postmaster());
    let began = Instant::now();
    for file in shuffled(&originals, &hostile) {
        ingest(&mut ann, &file).unwrap_or_else(|failure| panic!("{}: {failure}", file.name));
    }
    let ingested = began.elapsed();
    // Longer than other tests wait: some children run until their CPU time is over.
    let is_settled = (0..5).any(|_| ann.settles("SELECT rag_wait(NULL, '3 min')"));
    assert!(
        is_settled,
        "work is still pending: {:?}",
        ann.rows("SELECT state, count(*) FROM rag.job_status GROUP BY state")
    );
    let settled = began.elapsed();
    let most = watch.end();

    let ends = ends(&mut ann);
    check_hostile(&hostile, &ends);
    check_originals(&mut ann, &originals, &ends);
    check_chunks(&mut ann);

    assert_eq!(engine_start(&database), engine, "the engine was restarted");
    witness.assert_no_restart();
    eprintln!(
        "{} files taken in after {ingested:.0?}, done after {settled:.0?}; most memory: engine {} MiB, a child {} MiB \
         of {} children seen",
        ends.len(),
        most.engine_mib,
        most.child_mib,
        most.children
    );
    assert!(most.children > 0, "no child was seen");
    assert!(most.child_mib <= MEMORY_MIB + CHILD_BASE_MIB, "a child held {} MiB", most.child_mib);
    assert!(most.engine_mib <= ENGINE_MIB, "the engine held {} MiB", most.engine_mib);
}

#[test]
fn the_confinement_of_the_children_is_whole() {
    let cluster = cluster();
    let database = cluster.database("confinement");
    let mut admin = database.admin();
    let in_force = rag_tests::eventually("the self-test", std::time::Duration::from_secs(60), || {
        let found = admin.value("SELECT parse_sandbox FROM rag.engine_status");
        (found.contains("rlimits")).then_some(found)
    });
    assert!(in_force.ends_with("seccomp"), "{in_force}");
}

/// Process id and restarts of the engine, once it runs.
fn engine_start(database: &Database<'_>) -> Vec<Option<String>> {
    let mut admin = database.admin();
    rag_tests::eventually("the engine runs", std::time::Duration::from_secs(60), || {
        admin.rows("SELECT pid, restarts FROM rag.engine_status WHERE running").pop()
    })
}

/// All files once, and the sound ones several times, in an order that is random but always the same.
fn shuffled(originals: &[Original], hostile: &[TestFile]) -> Vec<TestFile> {
    let mut files = hostile.to_vec();
    for copy in 0..COPIES {
        let named = |file: &TestFile| TestFile { name: copy_name(file, copy), ..file.clone() };
        files.extend(originals.iter().map(|original| named(&original.file)));
    }
    let mut random = Random::seeded(1);
    for last in (1..files.len()).rev() {
        files.swap(last, random.below(last + 1));
    }
    files
}

fn copy_name(file: &TestFile, copy: usize) -> String {
    format!("sound {copy}, {}", file.name)
}

fn ingest(session: &mut Session, file: &TestFile) -> Result<(), Failure> {
    let options = match file.media_type {
        Some(media_type) => serde_json::json!({ "media_type": media_type }).to_string(),
        None => "{}".to_owned(),
    };
    let sql = "SELECT rag_ingest_bytes($1, uri => $2, options => $3::text::jsonb)";
    match session.client().query(sql, &[&file.bytes, &file.name, &options]) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(error.as_db_error().map_or_else(|| panic!("{}: {error}", file.name), Failure::from))
        }
    }
}

/// How a document ended.
#[derive(Debug)]
struct End {
    status: String,
    error: String,
    sqlstate: String,
}

fn ends(session: &mut Session) -> HashMap<String, End> {
    let rows = session.rows(
        "SELECT d.uri, d.status, coalesce(d.error, ''), coalesce(f.sqlstate, '')
         FROM rag.document d LEFT JOIN rag.failed_job f ON f.document_id = d.id",
    );
    rows.into_iter()
        .map(|row| {
            let [uri, status, error, sqlstate] = row.try_into().unwrap();
            (
                uri.unwrap(),
                End { status: status.unwrap(), error: error.unwrap(), sqlstate: sqlstate.unwrap() },
            )
        })
        .collect()
}

fn check_hostile(hostile: &[TestFile], ends: &HashMap<String, End>) {
    let mut reasons: HashMap<&str, usize> = HashMap::new();
    for file in hostile {
        let end = &ends[&file.name];
        match &end.status[..] {
            "done" => assert_eq!((&end.error[..], &end.sqlstate[..]), ("", ""), "{}", file.name),
            "failed" => {
                assert!(REASONS.contains(&&end.sqlstate[..]), "{}: {end:?}", file.name);
                assert!((10..600).contains(&end.error.len()), "{}: {end:?}", file.name);
                assert!(!end.error.contains("panic"), "{}: {end:?}", file.name);
            }
            _ => panic!("{}: {end:?}", file.name),
        }
        *reasons.entry(if end.status == "done" { "done" } else { &end.sqlstate }).or_default() += 1;
    }
    eprintln!("{} hostile files: {reasons:?}", hostile.len());
    assert!(ends["one string many times.xlsx"].error.contains("100 times as much"), "{ends:?}");
    assert!(reasons.len() > REASONS.len(), "some way to end was not met: {reasons:?}");
}

fn check_originals(session: &mut Session, originals: &[Original], ends: &HashMap<String, End>) {
    for Original { file, says } in originals {
        for copy in 0..COPIES {
            let name = copy_name(file, copy);
            assert_eq!(ends[&name].status, "done", "{name}: {:?}", ends[&name]);
            let text = session
                .value(&format!("SELECT text FROM rag.document WHERE uri = {}", rag_tests::literal(&name)));
            assert!(text.contains(says), "{name}: {text}");
        }
    }
    let found = session.column("SELECT uri FROM rag_search('bittern booms reeds', k => 5)");
    assert!(found[0].ends_with(".pdf"), "{found:?}");
}

/// Each chunk is what stands at its place, whatever its document was.
fn check_chunks(session: &mut Session) {
    let wrong = session.rows(
        "SELECT d.uri, c.id FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id
         WHERE c.content IS DISTINCT FROM substr(d.text, c.char_from + 1, c.char_to - c.char_from) OR c.tokens > 512",
    );
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_file_beyond_the_limit_is_refused_before_it_is_stored() {
    let cluster = cluster();
    let database = cluster.database("too_big");
    let mut ann = database.user("ann");
    let big = TestFile { name: "60 MB.bin".into(), media_type: None, bytes: vec![b'x'; 60_000_000] };
    let failure = ingest(&mut ann, &big).unwrap_err();
    assert_eq!(failure.code, "54000", "{failure}");
    assert!(failure.message.contains("60000000") && failure.message.contains("52428800"), "{failure}");
    assert!(failure.hint.contains("max_document_size"), "{failure}");
    // Stored elsewhere out of line, packed to almost nothing: refused by its size, not by unpacking it.
    ann.run("CREATE TEMP TABLE elsewhere AS SELECT repeat('x', 60000000) AS content, convert_to(repeat('x', 60000000), 'utf8') AS file");
    ann.refuses("54000", "INSERT INTO rag.document (uri, content) SELECT 'text', content FROM elsewhere");
    ann.refuses("54000", "INSERT INTO rag.document (uri, file) SELECT 'file', file FROM elsewhere");
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('small', 'small')");
    ann.refuses("54000", "UPDATE rag.document SET content = (SELECT content FROM elsewhere)");
    assert_eq!(ann.column("SELECT uri FROM rag.document"), ["small"]);
}
