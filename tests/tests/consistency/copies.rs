//! Copies: pg_dump and restore, a template, a hot standby and its promotion.

use super::{WORD, assert_retrievers_agree};
use rag_tests::{Cluster, Database, Session, catalog, wait_until};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A database with something of everything: owners, grants, a gateway, failures, deletions, several segments.
fn furnish(database: &Database<'_>) {
    let [mut ann, mut bob] = [database.user("ann"), database.user("bob")];
    let gateway = database.gateway("gateway");
    ann.run("SELECT rag_create_collection('wiki', shared => true), rag_create_collection('small', options => '{\"chunking\": {\"size\": 64, \"overlap\": 0}}')");
    ann.run(&format!(
        "SELECT rag_grant('wiki', 'role:{}', 'read'), rag_grant('wiki', 'role:{}', 'write')",
        database.role_name("bob"),
        database.role_name("bob")
    ));
    bob.run(&format!("SELECT rag_accept('role:{}', 'wiki')", database.role_name("ann")));
    bob.run(&format!(
        "SELECT rag_ingest('{WORD} written by bob.', uri => 'page', collection => 'role:{}/wiki')",
        database.role_name("ann")
    ));
    for n in 0..8 {
        ann.ingest(&format!("{WORD} of ann, number {n}."), &format!("a{n}"));
        ann.run(&format!("INSERT INTO rag.document (uri, content, metadata, collection) VALUES ('s{n}', '# Title {n}\n\n{WORD} in small.', '{{\"n\": {n}}}', 'small')"));
    }
    ann.run("DELETE FROM rag.document WHERE uri IN ('a1', 's1')");
    ann.run("SELECT rag_ingest_bytes(decode('255044462d312e37', 'hex'), uri => 'failed')");
    let mut app = database.connect(&gateway);
    app.run("SET rag_ext.user_id = '9'");
    app.ingest(&format!("{WORD} of user nine."), "nine");
    for session in [&mut ann, &mut bob, &mut app] {
        session.settle();
    }
}

/// A hash of every row of every table of the extension, its leaves included. What is unlogged is in no copy.
fn fingerprint(session: &mut Session) -> Vec<(String, String)> {
    let tables = session.column("SELECT oid::regclass FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p') AND relpersistence = 'p' ORDER BY 1");
    tables
        .into_iter()
        .map(|table| {
            let hash = session.value(&format!("SELECT count(*) || ' ' || coalesce(md5(string_agg(md5(t::text), ',' ORDER BY t::text COLLATE \"C\")), '') FROM {table} t"));
            (table, hash)
        })
        .collect()
}

/// What each user finds, scores included.
fn findings(database: &str, cluster: &Cluster, roles: &[String]) -> Vec<Vec<Vec<Option<String>>>> {
    let mut all = Vec::new();
    for role in roles {
        let mut session = cluster.connect(role, database);
        if role.starts_with("gateway") {
            session.run("SET rag_ext.user_id = '9'");
        }
        for mode in ["keyword", "vector", "hybrid"] {
            all.push(session.rows(&format!("SELECT chunk_id, rank, score, uri, collection, header_path, snippet FROM rag_search('{WORD} number', k => 1000, mode => '{mode}')")));
        }
        assert!(all.iter().rev().take(3).all(|rows| !rows.is_empty()), "{role} finds nothing");
    }
    all
}

/// Waits until the background has nothing left to merge: only then does a copy, taken later, equal what was seen
/// before. A worker stays for as long as it finds something, and half a second more.
fn wait_until_at_rest(admin: &mut Session) {
    wait_until("the background is at rest", Duration::from_secs(120), || {
        let before = fingerprint(admin);
        std::thread::sleep(Duration::from_millis(500));
        let workers = admin.count(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'rag_ext%'",
        );
        workers == 0 && before == fingerprint(admin)
    });
}

fn assert_same(what: &str, left: Vec<(String, String)>, right: Vec<(String, String)>) {
    for (a, b) in left.iter().zip(&right) {
        assert_eq!(a, b, "{what}");
    }
    assert_eq!(left.len(), right.len(), "{what}");
}

fn restore(cluster: &Cluster, command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !errors.contains("ERROR"),
        "restore failed: {errors}\n{}",
        cluster.log_tail()
    );
}

#[test]
fn a_restored_dump_equals_its_source_and_queues_nothing() {
    let cluster = Cluster::builder("dump").start();
    let database = cluster.database("source");
    furnish(&database);
    let roles: Vec<String> = ["ann", "bob", "gateway"].iter().map(|name| database.role_name(name)).collect();
    let mut admin = database.admin();
    wait_until_at_rest(&mut admin);
    let (rows, shape) = (fingerprint(&mut admin), catalog::described(&mut admin));
    let found = findings(database.name(), &cluster, &roles);

    for (format, jobs) in [("plain", 1), ("custom", 1), ("custom", 4), ("custom", 8)] {
        let target = format!("restored_{format}_{jobs}");
        let file = cluster.file(&format!("{target}.dump"));
        cluster.call(
            cluster
                .program("pg_dump")
                .arg(format!("--format={format}"))
                .arg("--file")
                .arg(&file)
                .arg(database.name()),
        );
        cluster.connect("postgres", "postgres").run(&format!("CREATE DATABASE {target}"));
        let mut command;
        if format == "plain" {
            command = cluster.program("psql");
            command.args(["--set", "ON_ERROR_STOP=1", "--quiet", "--dbname", &target, "--file"]).arg(&file);
        } else {
            command = cluster.program("pg_restore");
            command.arg(format!("--jobs={jobs}"));
            command.args(["--exit-on-error", "--dbname", &target]).arg(&file);
        }
        restore(&cluster, &mut command);
        let mut restored = cluster.connect("postgres", &target);
        assert_same(format, fingerprint(&mut restored), rows.clone());
        catalog::assert_same(format, &shape, &catalog::described(&mut restored));
        assert_eq!(findings(&target, &cluster, &roles), found, "{format}");
        assert_eq!(restored.count("SELECT count(*) FROM rag.job WHERE state IN ('queued', 'running')"), 0);

        // It lives on: new work is taken up, and old work is not done again.
        let jobs = "SELECT md5(string_agg(j::text, ',' ORDER BY document_id)) FROM rag.job j WHERE document_id IN (SELECT id FROM rag.document WHERE uri IS DISTINCT FROM 'later')";
        let before = restored.value(jobs);
        let mut ann = cluster.connect(&roles[0], &target);
        ann.run(&format!(
            "INSERT INTO rag.document (uri, content) VALUES ('later', '{WORD} after the restore.')"
        ));
        ann.settle();
        assert_eq!(ann.count("SELECT count(*) FROM rag_search('restore', mode => 'keyword')"), 1);
        assert_eq!(restored.value(jobs), before);
    }
}

#[test]
fn a_dump_is_restored_by_a_superuser_of_another_name() {
    let cluster = Cluster::builder("renamed").start();
    let database = cluster.database("source");
    furnish(&database);
    let roles: Vec<String> = ["ann", "bob", "gateway"].iter().map(|name| database.role_name(name)).collect();
    let mut admin = database.admin();
    wait_until_at_rest(&mut admin);
    let rows = fingerprint(&mut admin);
    let found = findings(database.name(), &cluster, &roles);
    let file = cluster.file("renamed.dump");
    let mut dump = cluster.program("pg_dump");
    cluster.call(dump.args(["--format=custom", "--file"]).arg(&file).arg(database.name()));

    // As on a server where nobody was ever called postgres.
    admin.run("CREATE ROLE chief SUPERUSER LOGIN");
    drop(admin);
    let mut chief = cluster.connect("chief", "postgres");
    chief.run("ALTER ROLE postgres RENAME TO founder");
    chief.run("CREATE DATABASE restored");
    let mut command = cluster.program("pg_restore");
    command.args(["--username=chief", "--exit-on-error", "--no-owner", "--dbname=restored"]).arg(&file);
    restore(&cluster, &mut command);
    assert_same("restored", fingerprint(&mut cluster.connect("chief", "restored")), rows);
    assert_eq!(findings("restored", &cluster, &roles), found);
    let mut ann = cluster.connect(&roles[0], "restored");
    ann.ingest(&format!("{WORD} after the restore."), "later");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('restore', mode => 'keyword')"), 1);
    chief.run("ALTER ROLE founder RENAME TO postgres");
}

#[test]
fn added_policies_are_restored_or_reading_refuses() {
    let cluster = Cluster::builder("dump_policies").start();
    let database = cluster.database("source");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let mut owner = database.connect(&ann);
    for n in 0..4 {
        owner.ingest(&format!("{WORD} number {n}."), &format!("a{n}"));
    }
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    // Names that a search path finds here, and a role that is to be missing later.
    let mut admin = database.admin();
    admin.run(&format!(
        "CREATE SCHEMA app; CREATE TABLE app.secret (uri text PRIMARY KEY); INSERT INTO app.secret VALUES ('a1');
         GRANT USAGE ON SCHEMA app TO PUBLIC; GRANT SELECT ON app.secret TO PUBLIC;
         CREATE FUNCTION app.is_even(text) RETURNS boolean LANGUAGE sql RETURN right($1, 1)::int % 2 = 0;
         SET search_path = app, public;
         SELECT rag_add_policy('rag.document', 'no_secrets', 'NOT EXISTS (SELECT FROM secret s WHERE s.uri = document.uri)', command => 'select');
         SELECT rag_add_policy('rag.document', 'even', 'is_even(uri)', command => 'select', roles => '{{{bob}}}');
         RESET search_path"
    ));
    let seen = |session: &mut Session, ann: &str| {
        session.column(&format!(
            "SELECT uri FROM rag_search('{WORD}', mode => 'keyword', collection => 'role:{ann}/default') ORDER BY uri"
        ))
    };
    let expected = [(&ann, vec!["a0", "a2", "a3"]), (&bob, vec!["a0", "a2"])];
    for (role, uris) in &expected {
        assert_eq!(&seen(&mut database.connect(role), &ann), uris);
    }
    let file = |format: &str| {
        let file = cluster.file(&format!("{format}.dump"));
        let mut dump = cluster.program("pg_dump");
        cluster.call(dump.arg(format!("--format={format}")).arg("--file").arg(&file).arg(database.name()));
        file
    };
    let (plain, custom) = (file("plain"), file("custom"));
    let text = std::fs::read_to_string(&plain).unwrap();
    let broken = cluster.file("broken.dump");
    std::fs::write(&broken, text.replace(&format!("{{{bob}}}"), "{somebody_missing}")).unwrap();
    let targets = [("from_plain", &plain), ("from_custom", &custom), ("from_broken", &broken)];
    for (target, file) in targets {
        cluster.connect("postgres", "postgres").run(&format!("CREATE DATABASE {target}"));
        let mut command = cluster.program(if file == &custom { "pg_restore" } else { "psql" });
        match target {
            "from_custom" => command.args(["--exit-on-error", "--dbname", target]).arg(file),
            _ => {
                command.args(["--set", "ON_ERROR_STOP=1", "--quiet", "--dbname", target, "--file"]).arg(file)
            }
        };
        restore(&cluster, &mut command);
        let mut restored = cluster.connect("postgres", target);
        if target == "from_broken" {
            for (role, _) in &expected {
                let failure = cluster
                    .connect(role, target)
                    .refuses("55000", &format!("SELECT * FROM rag_search('{WORD}', mode => 'keyword')"));
                assert!(failure.hint.contains("rag_restore_policies()"), "{failure}");
            }
            assert_eq!(
                restored.refuses("42704", "SELECT rag_restore_policies()").message,
                "role \"somebody_missing\" does not exist"
            );
            restored.run(&format!(
                "UPDATE rag.added_policy SET roles = '{{{bob}}}' WHERE name = 'even'; SELECT rag_restore_policies()"
            ));
        }
        for (role, uris) in &expected {
            assert_eq!(&seen(&mut cluster.connect(role, target), &ann), uris, "{target}");
        }
        let policies = "SELECT count(*) || md5(string_agg(p::text, ',' ORDER BY tablename, policyname)) FROM pg_policies p WHERE schemaname = 'rag'";
        assert_eq!(restored.value(policies), admin.value(policies), "{target}");
    }
}

#[test]
fn a_dump_of_queued_work_is_finished_after_the_restore() {
    let cluster = Cluster::builder("dump_queued").setting("rag_ext.ingest_workers", "0").start();
    let database = cluster.database("queued");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('q', '{WORD} still queued.')"));
    let file = cluster.file("queued.dump");
    cluster.call(cluster.program("pg_dump").arg("--file").arg(&file).arg(database.name()));
    let mut admin = cluster.connect("postgres", "postgres");
    admin.run("CREATE DATABASE later");
    restore(
        &cluster,
        cluster
            .program("psql")
            .args(["--set", "ON_ERROR_STOP=1", "--quiet", "--dbname", "later", "--file"])
            .arg(&file),
    );
    cluster.configure("rag_ext.ingest_workers = 1\nrag_ext.launcher_naptime = 1\n");
    cluster.reload();
    let mut restored = cluster.connect(&role, "later");
    assert_eq!(restored.count("SELECT count(*) FROM rag.job"), 1);
    restored.settle();
    assert_eq!(assert_retrievers_agree(&mut restored, "finished in the copy"), 1);
}

#[test]
fn workers_keep_away_until_a_dump_is_restored() {
    let cluster = Cluster::builder("restoring").setting("rag_ext.launcher_naptime", "1").start();
    let database = cluster.database("source");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.ingest(&format!("{WORD} that was embedded."), "done");
    ann.run("SELECT rag_pause()");
    ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('queued', '{WORD} still queued.')"));
    let script = cluster.call(cluster.program("pg_dump").arg(database.name()));
    let mut admin = cluster.connect("postgres", "postgres");
    admin.run("CREATE DATABASE restored");

    // Pending work is there, and the space of its vectors is not.
    let (first, rest) = script.split_at(script.find("\nCOPY rag.vector_space ").unwrap() + 1);
    assert!(first.contains("\nCOPY rag.job ") && first.contains("\nCOPY rag.document "));
    let mut command = cluster.program("psql");
    command.args(["--set", "ON_ERROR_STOP=1", "--quiet", "--dbname", "restored"]);
    let mut psql =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut script = psql.stdin.take().unwrap();
    script.write_all(first.as_bytes()).unwrap();
    script.write_all(b"UPDATE rag.collection SET paused_at = NULL;\n").unwrap();
    script.flush().unwrap();
    let mut restored = cluster.connect("postgres", "restored");
    wait_until("the first part is there", Duration::from_secs(60), || {
        restored.try_run("SELECT FROM rag.job").is_ok()
            && restored.count("SELECT count(*) FROM rag.job WHERE state = 'queued'") == 1
            && restored.count("SELECT count(*) FROM rag.collection WHERE paused_at IS NULL") == 1
    });
    restored.run("SELECT rag.wake_workers()");
    // Some looks of workers.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(restored.column("SELECT state FROM rag.job ORDER BY state"), ["done", "queued"]);
    assert!(restored.value("SELECT rag_status()").contains("waits until the restore of a dump is over"));

    script.write_all(rest.as_bytes()).unwrap();
    drop(script);
    let output = psql.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut ann = cluster.connect(&role, "restored");
    ann.settle();
    assert_eq!(assert_retrievers_agree(&mut ann, "after the restore"), 2);
    assert_eq!(restored.column("SELECT kind || ': ' || problem FROM rag_verify()"), [""; 0]);
    assert_eq!(restored.count("SELECT count(*) FROM rag.restore"), 0);
}

#[test]
fn a_database_made_from_a_template_shares_no_cache_with_it() {
    let database = Database::new("template_source");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    for n in 0..5 {
        ann.ingest(&format!("{WORD} of the template, number {n}."), &format!("t{n}"));
    }
    assert_eq!(assert_retrievers_agree(&mut ann, "in the template"), 5);
    drop(ann);
    let mut admin = database.cluster().connect("postgres", "postgres");
    let copy = format!("{}_copy", database.name());
    let sql = format!("CREATE DATABASE {copy} TEMPLATE {}", database.name());
    wait_until("nobody is in the template", Duration::from_secs(30), || admin.try_run(&sql).is_ok());
    let mut in_copy = database.cluster().connect(&role, &copy);
    assert_eq!(assert_retrievers_agree(&mut in_copy, "in the copy"), 5);
    in_copy.run("DELETE FROM rag.document WHERE uri <> 't0'");
    in_copy.ingest(&format!("{WORD} of the copy."), "new");
    let mut ann = database.connect(&role);
    ann.ingest(&format!("{WORD} later in the template."), "other");
    assert_eq!(assert_retrievers_agree(&mut in_copy, "in the changed copy"), 2);
    assert_eq!(assert_retrievers_agree(&mut ann, "in the changed template"), 6);
    drop(in_copy);
    admin.run(&format!("DROP DATABASE {copy} WITH (FORCE)"));
}

#[test]
fn a_hot_standby_searches_and_answers_and_goes_on_after_promotion() {
    let primary = Cluster::builder("primary").start();
    let database = primary.database("replicated");
    furnish(&database);
    let roles: Vec<String> = ["ann", "bob", "gateway"].iter().map(|name| database.role_name(name)).collect();
    let standby = primary.standby("standby");
    let mut ann = database.connect(&roles[0]);
    ann.ingest(&format!("The arctic tern flies from pole to pole every year ({WORD})."), "tern");
    wait_until_at_rest(&mut database.admin());
    primary.wait_for(&standby);
    standby.running_engine();
    assert_eq!(findings(database.name(), &standby, &roles), findings(database.name(), &primary, &roles));
    let mut there = standby.connect(&roles[0], database.name());
    assert_retrievers_agree(&mut there, "on the standby");
    let answer = there.json("SELECT rag_answer('Which bird flies from pole to pole?')");
    assert_eq!(
        (&answer["found"], &answer["citations"][0]["uri"]),
        (&true.into(), &"tern".into()),
        "{answer:#}"
    );
    assert_eq!(there.error("SELECT rag_ingest('x')").code, "25006");

    ann.run("DELETE FROM rag.document WHERE uri = 'tern'");
    ann.ingest(&format!("{WORD} while the standby watches."), "watched");
    primary.wait_for(&standby);
    assert_retrievers_agree(&mut there, "after a change on the primary");
    assert_eq!(there.count("SELECT count(*) FROM rag_search('tern', mode => 'keyword')"), 0);

    primary.stop(rag_tests::Shutdown::Immediate);
    standby.connect("postgres", "postgres").run("SELECT pg_promote()");
    ann = standby.connect(&roles[0], database.name());
    ann.run(&format!(
        "INSERT INTO rag.document (uri, content) VALUES ('promoted', '{WORD} after the promotion.')"
    ));
    ann.settle();
    assert_retrievers_agree(&mut ann, "after the promotion");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('promotion', mode => 'keyword')"), 1);
}
