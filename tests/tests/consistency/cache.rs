//! Files that hold copies of segments: whatever becomes of them, what is found is what the rows say.

use super::WORD;
use rag_tests::{Cluster, Session, Shutdown, Witness, eventually, wait_until};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files of the keyword cache, biggest first.
pub(crate) fn cache_files(cluster: &Cluster) -> Vec<PathBuf> {
    let mut folders = vec![cluster.data().to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let in_cache = path.iter().any(|part| part.to_string_lossy().contains("rag_ext"));
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() && in_cache => found.push((entry.metadata().unwrap().len(), path)),
                _ => {}
            }
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// As its owner or root can, who may make it writable.
fn cut_short(file: &Path, length: u64) {
    std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    File::options().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// Puts documents of so many different words that their one segment is kept in a file, and not on the heap.
fn fill(session: &mut Session) {
    fill_with(session, 320);
}

fn fill_with(session: &mut Session, documents: usize) {
    session.run(&format!(
        "INSERT INTO rag.document (uri, content)
         SELECT 'd' || n, '{WORD} ' || (SELECT string_agg((n * 1000 + m)::text, ' ') FROM generate_series(1, 45) m) FROM generate_series(1, {documents}) n"
    ));
    session.settle();
    // Many deletions make one segment of all.
    session.run(&format!(
        "DELETE FROM rag.document WHERE uri IN (SELECT 'd' || n FROM generate_series(1, {documents} / 4) n)"
    ));
    wait_until("the segments are merged", Duration::from_secs(60), || {
        session.count("SELECT count(DISTINCT id) FROM rag.segment") == 1
    });
}

fn query() -> String {
    format!("SELECT chunk_id, score FROM rag_search('{WORD}', k => 1000, mode => 'keyword')")
}

#[test]
fn files_of_the_cache_that_a_power_cut_or_a_person_has_left_empty_or_short_do_no_harm() {
    let cluster = Cluster::builder("cache_files").start();
    let database = cluster.database("cache_files");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    fill(&mut ann);
    let query = query();
    let expected = ann.rows(&query);
    assert_eq!(expected.len(), 240);
    // Under a session that has it mapped, where a read past the end would be the end of the server. A worker that has
    // just looked may take a file away once; whoever wants it next writes it anew.
    let mut mapped = database.connect(&role);
    let mut witness = Witness::of(&cluster);
    for length in [0, 1000] {
        let files = eventually("a file that is mapped", Duration::from_secs(60), || {
            assert_eq!(mapped.rows(&query), expected);
            Some(cache_files(&cluster)).filter(|files| !files.is_empty())
        });
        files.iter().for_each(|file| cut_short(file, length));
        assert_eq!(mapped.rows(&query), expected, "cut short to {length}");
        witness.assert_no_restart();
    }
    for file in cache_files(&cluster) {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o400, "{file:?}");
    }
    for damage in ["empty", "short", "gone"] {
        cluster.stop(Shutdown::Immediate);
        for file in cache_files(&cluster) {
            let length = std::fs::metadata(&file).unwrap().len();
            match damage {
                "empty" => cut_short(&file, 0),
                "short" => cut_short(&file, length / 2),
                _ => std::fs::remove_file(&file).unwrap(),
            }
        }
        cluster.start();
        let mut session = database.connect(&role);
        assert_eq!(session.rows(&query), expected, "{damage}");
        assert!(session.lives());
    }
}

/// A file of the cache as somebody writes it, of the server's own user.
fn begin_to_write(file: &Path) -> (PathBuf, File) {
    let aside = file.with_added_extension("part");
    std::fs::write(&aside, "half of it").unwrap();
    let server = std::fs::metadata(file.parent().unwrap()).unwrap();
    std::os::unix::fs::chown(&aside, Some(server.uid()), Some(server.gid())).unwrap();
    let opened = File::open(&aside).unwrap();
    (aside, opened)
}

#[test]
fn one_session_writes_a_file_and_the_others_wait_for_it_but_not_for_ever() {
    let cluster = Cluster::builder("cache_writers").start();
    let database = cluster.database("cache_writers");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    fill(&mut ann);
    let query = query();
    let expected = ann.rows(&query);
    let written = || cache_files(&cluster);
    let files = eventually("a file", Duration::from_secs(60), || {
        assert_eq!(database.connect(&role).rows(&query), expected);
        <[PathBuf; 1]>::try_from(written()).ok()
    });
    let [file] = files;

    // Another session is at it, and does not come to an end: it is waited for, which can be cancelled, and in the end the
    // rows are read.
    let (aside, lock) = begin_to_write(&file);
    lock.lock().unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut waiting = database.connect(&role);
    waiting.run("SET statement_timeout = '300ms'");
    assert_eq!(waiting.error(&query).code, "57014");
    waiting.run("SET statement_timeout = 0");
    assert_eq!(waiting.rows(&query), expected);
    assert_eq!(written(), [aside.as_path()], "nobody else has written");
    // It is killed, and leaves half a file.
    drop(lock);
    assert_eq!(database.connect(&role).rows(&query), expected);
    assert_eq!(written(), [file.as_path()], "the half is made whole");

    // All want it at the same moment.
    for _ in 0..5 {
        std::fs::remove_file(&file).unwrap();
        let mut sessions: Vec<Session> = (0..8).map(|_| database.connect(&role)).collect();
        std::thread::scope(|scope| {
            for session in &mut sessions {
                scope.spawn(|| assert_eq!(session.rows(&query), expected));
            }
        });
        assert_eq!(written(), [file.as_path()]);
    }
}

#[test]
fn a_cancel_ends_a_hybrid_search_that_could_go_on_without_vectors() {
    let cluster = Cluster::builder("cancelled_codes").start();
    let database = cluster.database("cancelled_codes");
    let mut ann = database.user("ann");
    // So many that their codes are kept in a file as well.
    fill_with(&mut ann, 480);
    let hybrid = "SELECT count(*) FROM rag_search('a lantern at night', k => 5, mode => 'hybrid')";
    let by_codes = "SET rag_ext.exact_search_limit = 0";
    ann.run(by_codes);
    let files = eventually("a file of each", Duration::from_secs(60), || {
        assert_eq!(ann.count(hybrid), 5);
        Some(cache_files(&cluster)).filter(|files| files.len() == 2)
    });
    // Words are there already.
    let mut waiting = database.connect(&ann.value("SELECT current_user"));
    waiting.run(&query());
    waiting.run(by_codes);
    let held: Vec<File> = files
        .iter()
        .map(|file| {
            let (_, lock) = begin_to_write(file);
            lock.lock().unwrap();
            std::fs::remove_file(file).unwrap();
            lock
        })
        .collect();
    waiting.run("SET statement_timeout = '300ms'");
    assert_eq!(waiting.error(hybrid).code, "57014");
    drop(held);
    waiting.run("SET statement_timeout = 0");
    assert_eq!(waiting.count(hybrid), 5);
}

/// Puts a file beside the cache's, of the server's own user, that was last written so long ago.
fn put(folder: &Path, name: &str, age: Duration) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, "of no use").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    let server = std::fs::metadata(folder).unwrap();
    std::os::unix::fs::chown(&path, Some(server.uid()), Some(server.gid())).unwrap();
    path
}

#[test]
fn files_of_segments_that_are_gone_and_bundles_that_nobody_opens_are_taken_away() {
    let cluster = Cluster::builder("stale_files").start();
    let database = cluster.database("stale_files");
    let mut admin = database.admin();
    fill(&mut admin);
    let found = admin.rows(&query());
    let kept = eventually("a file", Duration::from_secs(60), || cache_files(&cluster).pop());
    let folder = kept.parent().unwrap();
    let oid = admin.value("SELECT oid FROM pg_database WHERE datname = current_database()");
    const HOUR: Duration = Duration::from_secs(3600);
    // Digests begin with any digit.
    let gone: Vec<PathBuf> = ('0'..='9')
        .chain('a'..='f')
        .map(|digit| put(folder, &format!("{oid}_{}", digit.to_string().repeat(64)), Duration::ZERO))
        .chain([put(folder, &format!("{oid}_bundle_{}", "0".repeat(64)), 2 * HOUR)])
        .collect();
    let young = put(folder, &format!("{oid}_bundle_{}", "1".repeat(64)), HOUR / 2);
    admin.run("INSERT INTO rag.document (content) VALUES ('Has a worker come.')");
    admin.settle();
    wait_until("they are taken away", Duration::from_secs(60), || gone.iter().all(|file| !file.exists()));
    assert!(young.exists() && kept.exists());
    assert_eq!(admin.rows(&query()).len(), found.len());
}
