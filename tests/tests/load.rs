//! Files on their way in: `rag-load` from a client's machine, `rag_ingest_file` from the server's.

#![allow(clippy::unwrap_used)]

use rag_tests::{Database, Session, literal, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A folder that the server's user may read, with these files in it.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

/// `rag-load`, pointed at the database as this role.
fn rag_load(database: &Database<'_>, role: &str) -> Command {
    let mut admin = database.admin();
    let mut command = database.cluster().installation().command("rag-load");
    command
        .env("PGHOST", admin.value("SHOW unix_socket_directories"))
        .env("PGPORT", admin.value("SHOW port"))
        .env("PGUSER", role)
        .env("PGDATABASE", database.name())
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn ends(command: &mut Command, code: i32) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(status.code(), Some(code), "{stdout}\n{stderr}");
    (stdout, stderr)
}

fn uris(session: &mut Session) -> Vec<String> {
    session.column("SELECT uri FROM rag.document ORDER BY uri")
}

#[test]
fn a_folder_is_loaded_once_and_what_changed_again() {
    let database = Database::new("loadfolder");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let files = folder(&[
        ("a.md", "# Alpha\n\nThe alpha page."),
        ("sub/b.html", "<html><title>Beta</title><p>The beta page.</p></html>"),
        ("sub/c.txt", "The gamma page."),
        ("empty.txt", ""),
        (".hidden.md", "never"),
    ]);
    let load = |more: &[&str]| {
        let mut command = rag_load(&database, &role);
        command.arg(files.path()).args(["--base", "docs/"]).args(more);
        command
    };
    let (summary, errors) = ends(&mut load(&["--metadata", r#"{"origin": "test"}"#]), 0);
    assert!(
        summary.contains("3 loaded") && summary.contains("3 processed") && summary.contains("1 empty"),
        "{summary}"
    );
    assert_eq!(errors, "");
    assert_eq!(uris(&mut ann), ["docs/a.md", "docs/sub/b.html", "docs/sub/c.txt"]);
    assert_eq!(
        ann.column("SELECT concat_ws(' ', status, media_type, title, metadata ->> 'origin') FROM rag.document ORDER BY uri"),
        ["done text/markdown Alpha test", "done text/html Beta test", "done text/plain test"]
    );
    assert_eq!(ann.value("SELECT uri FROM rag_search('gamma', k => 1)"), "docs/sub/c.txt");

    let before = ann.rows("SELECT id, version, updated_at FROM rag.document ORDER BY id");
    let (summary, _) = ends(&mut load(&[]), 0);
    assert!(
        summary.contains("0 loaded") && summary.contains("3 unchanged") && !summary.contains("processed"),
        "{summary}"
    );
    assert_eq!(ann.rows("SELECT id, version, updated_at FROM rag.document ORDER BY id"), before);

    std::fs::write(files.path().join("sub/c.txt"), "The delta page.").unwrap();
    let (summary, _) = ends(&mut load(&["-j", "1"]), 0);
    assert!(summary.contains("1 loaded") && summary.contains("2 unchanged"), "{summary}");
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 3);
    assert_eq!(
        ann.value("SELECT content FROM rag_search('delta', k => 1, mode => 'keyword')"),
        "The delta page."
    );

    // Without --base the address is that of the file.
    let (summary, _) = ends(rag_load(&database, &role).arg(files.path().join("a.md")).arg("--no-wait"), 0);
    assert!(summary.contains("1 loaded"), "{summary}");
    assert!(uris(&mut ann).contains(&format!("file://{}", files.path().join("a.md").display())));
}

#[test]
fn failures_are_listed_with_reasons_and_the_others_are_done() {
    let database = Database::new("loadfail");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let files = folder(&[
        ("good.md", "The good page."),
        ("bad.pdf", "%PDF-1.7\nno more of it"),
        ("large.txt", &"x".repeat(5_000)),
    ]);
    std::os::unix::fs::symlink("good.md", files.path().join("link.md")).unwrap();
    let unreadable = files.path().join("secret.md");
    std::fs::write(&unreadable, "secret").unwrap();
    std::fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = rag_load(&database, &role);
    command.arg(files.path()).args(["--max-size", "4kB"]);
    let (summary, errors) = ends(&mut command, 1);
    assert!(
        summary.contains("1 processed") && summary.contains("3 failed") && summary.contains("1 links"),
        "{summary}"
    );
    for (file, reason) in [("bad.pdf", "pdf"), ("large.txt", "more than 4.00 kib"), ("secret.md", "denied")] {
        let lines: Vec<&str> = errors.lines().collect();
        let at = lines
            .iter()
            .position(|line| line.ends_with(file))
            .unwrap_or_else(|| panic!("{file} in {errors}"));
        assert!(lines[at + 1].to_lowercase().contains(reason), "{file}: {}", lines[at + 1]);
    }
    assert_eq!(
        ann.value("SELECT uri FROM rag_search('good', k => 1)"),
        format!("file://{}", files.path().join("good.md").display())
    );
    // A failed document stays a failure, though it is not sent again.
    let (summary, _) = ends(&mut command, 1);
    assert!(summary.contains("2 unchanged") && summary.contains("3 failed"), "{summary}");
}

#[test]
fn what_cannot_begin_says_why_and_ends_with_two() {
    let database = Database::new("loadusage");
    let role = database.role("ann");
    let outsider = database.outsider("outsider", "");
    let files = folder(&[("a.md", "A page.")]);
    let path = files.path().to_str().unwrap();
    let check = |role: &str, arguments: &[&str], reason: &str| {
        let (_, errors) = ends(rag_load(&database, role).args(arguments), 2);
        assert!(errors.contains(reason), "{arguments:?}: {errors}");
    };
    check(&role, &[], "PATH");
    check(&role, &["/no/such/folder"], "no such file or folder");
    check(&role, &[path, "-i", "[x"], "glob");
    check(&role, &[path, "--collection", "nowhere"], "42704");
    check(&outsider, &[path], "42501");
    check("nobody_at_all", &[path], "cannot connect");
    check(&role, &[path, "--dsn", "host=/nowhere user=x dbname=y"], "cannot connect");
    check(&role, &[path, "--dsn", "non=sense"], "-d: ");
    assert_eq!(database.admin().count("SELECT count(*) FROM rag.document"), 0);
}

#[test]
fn an_interrupted_run_is_resumed() {
    let database = Database::new("loadresume");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let texts: Vec<(String, String)> =
        (0..600).map(|n| (format!("{n:03}.txt"), format!("Page number {n}."))).collect();
    let files = folder(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    // Whoever stores a file under an address that is being stored waits, so that the run cannot come to its end.
    ann.ingest("Makes the collection.", "first");
    ann.run("DELETE FROM rag.document");
    let mut holder = database.connect(&role);
    let held = literal(&format!("file://{}", path(&files, "010.txt")));
    holder.run(&format!("BEGIN; INSERT INTO rag.document (uri, content) VALUES ({held}, 'In the way.')"));
    let mut child = rag_load(&database, &role)
        .arg(files.path())
        .args(["-j", "1", "--no-wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("some files are there", Duration::from_secs(60), || {
        ann.count("SELECT count(*) FROM rag.document") == 10
    });
    interrupt(&child);
    holder.run("ROLLBACK");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let there = ann.count("SELECT count(*) FROM rag.document");
    assert!((10..600).contains(&there), "{there} files were there before the end");
    let (summary, _) = ends(rag_load(&database, &role).arg(files.path()).arg("--no-wait"), 0);
    assert!(summary.contains(&format!("{there} unchanged")), "{summary} after {there}");
    assert_eq!(ann.count("SELECT count(DISTINCT uri) FROM rag.document"), 600);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 600);
}

fn interrupt(child: &std::process::Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn files_of_the_server_are_for_those_who_may_read_them() {
    let database = Database::new("serverfile");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let files = folder(&[
        ("a b.md", "Pages *marked* up."),
        ("lying.md", "<html><p>Paragraph</p></html>"),
        ("large.txt", ""),
    ]);
    // Takes no space, and is not read either.
    std::fs::File::options()
        .write(true)
        .open(files.path().join("large.txt"))
        .unwrap()
        .set_len(60 << 20)
        .unwrap();
    let call = |name: &str| format!("SELECT rag_ingest_file({})", literal(&path(&files, name)));
    let refused = ann.refuses("42501", &call("a b.md"));
    assert!(refused.hint.contains("pg_read_server_files"), "{refused}");
    database.admin().run(&format!("GRANT pg_read_server_files TO {role}"));
    ann.run(&call("a b.md"));
    ann.run(&call("a b.md"));
    ann.run(&call("lying.md"));
    ann.run("SELECT rag_ingest_file('PG_VERSION', 'The version', uri => 'version')");
    ann.settle();
    let uri = |name: &str| format!("file://{}", path(&files, name).replace(' ', "%20"));
    assert_eq!(
        ann.column("SELECT concat_ws(' ', uri, media_type, extracted ->> 'file_name') FROM rag.document ORDER BY uri = 'version', uri"),
        [
            format!("{} text/markdown a b.md", uri("a b.md")),
            format!("{} text/html lying.md", uri("lying.md")),
            "version text/plain version".to_owned(),
        ]
    );
    ann.refuses("58P01", &call("missing.md"));
    ann.refuses("42809", "SELECT rag_ingest_file('/')");
    ann.refuses("42809", "SELECT rag_ingest_file('/dev/zero')");
    ann.refuses("22023", "SELECT rag_ingest_file('')");
    ann.refuses("22004", "SELECT rag_ingest_file(NULL)");
    let failure = ann.refuses("54000", &call("large.txt"));
    assert!(failure.message.contains("62914560"), "{failure}");
}

fn path(files: &tempfile::TempDir, name: &str) -> String {
    Path::new(files.path()).join(name).to_str().unwrap().to_owned()
}

#[test]
fn files_that_no_parser_reads_are_not_sent() {
    let database = Database::new("loadother");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let files = folder(&[("good.md", "The good page.")]);
    std::fs::write(files.path().join("photo.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01").unwrap();
    let load = |more: &[&str]| {
        let mut command = rag_load(&database, &role);
        command.arg(files.path()).args(more);
        command
    };
    for _ in 0..2 {
        let (summary, errors) = ends(&mut load(&[]), 1);
        assert!(errors.contains("photo.png\n    image/png cannot be read; --skip-unsupported"), "{errors}");
        assert!(summary.contains("1 failed") && !summary.contains("0 loaded"), "{summary}");
        assert_eq!(uris(&mut ann).len(), 1);
    }
    let (summary, errors) = ends(&mut load(&["--skip-unsupported"]), 0);
    assert!(summary.contains("1 unchanged") && summary.contains("1 unsupported, skipped"), "{summary}");
    assert_eq!(errors, "");
}

#[test]
fn the_connection_is_named_as_for_psql() {
    let database = Database::new("loadflags");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let files = folder(&[("good.md", "The good page.")]);
    let mut admin = database.admin();
    let (host, port) = (admin.value("SHOW unix_socket_directories"), admin.value("SHOW port"));
    let plain = |arguments: &[&str]| {
        let mut command = database.cluster().installation().command("rag-load");
        for variable in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).arg(files.path()).args(arguments);
        command
    };
    ends(&mut plain(&["-w", "-h", &host, "-p", &port, "-U", &role, "-d", database.name()]), 0);
    let long = format!("dbname={} user={role}", database.name());
    let (summary, _) =
        ends(&mut plain(&["--host", &host, "--port", &port, "-U", "nobody", "--dbname", &long]), 0);
    assert!(summary.contains("1 unchanged"), "{summary}");
    // Encryption is asked for in a URL, and does not matter on a socket.
    let url = format!(
        "postgresql://{role}@/{}?host={}&sslmode=verify-full",
        database.name(),
        host.replace('/', "%2F")
    );
    let (summary, _) = ends(&mut plain(&["--port", &port, "-U", "nobody", "-d", &url]), 0);
    assert!(summary.contains("1 unchanged"), "{summary}");
    assert_eq!(uris(&mut ann).len(), 1);
    // What could not begin has no counts.
    let (summary, errors) =
        ends(&mut plain(&["-h", &host, "-p", &port, "-U", &role, "-d", database.name(), "-c", "nowhere"]), 2);
    assert_eq!(summary, "");
    assert!(errors.contains("[42704]"), "{errors}");
}
