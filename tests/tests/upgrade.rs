//! From each released version to this one: the same catalog as a fresh database, the same findings as before, and a dump
//! of it restored. What was released lies in `sql/released/`, with a dump of a filled database in `data/` (see
//! `scripts/freeze.sh`).

#![allow(clippy::unwrap_used)]

use rag_tests::catalog::{self, assert_same};
use rag_tests::{Cluster, Database, Session, repository, shared, wait_until};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The versions that were released, and are not this one.
fn released() -> Vec<String> {
    let files = std::fs::read_dir(repository().join("sql/released")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let versions =
        names.filter_map(|name| Some(name.strip_prefix("rag_ext--")?.strip_suffix(".sql")?.to_owned()));
    let versions: Vec<String> = versions.filter(|version| version != env!("CARGO_PKG_VERSION")).collect();
    assert!(!versions.is_empty(), "nothing is released");
    versions
}

#[test]
fn an_upgraded_database_has_the_catalog_of_a_fresh_one() {
    let fresh = Database::new("fresh");
    let mut fresh_admin = fresh.admin();
    let (catalog, rows) = (catalog::described(&mut fresh_admin), catalog::rows(&mut fresh_admin));
    assert!(catalog.len() > 500 && rows.len() > 50, "{} objects and {} rows", catalog.len(), rows.len());
    for version in released() {
        let name = format!("upgraded_{}", version.replace('.', "_"));
        let mut postgres = shared().connect("postgres", "postgres");
        postgres.run(&format!("CREATE DATABASE {name}"));
        let mut admin = shared().connect("postgres", &name);
        // What was there first, and fits better than what is meant, is taken neither then nor by a step.
        admin.run(
            "CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'somebody else''s code'; END $$",
        );
        admin.run(&format!("CREATE EXTENSION rag_ext VERSION '{version}' CASCADE"));
        admin.run("ALTER EXTENSION rag_ext UPDATE");
        assert_same(&format!("{version}: catalog"), &catalog, &catalog::described(&mut admin));
        assert_same(&format!("{version}: rows"), &rows, &catalog::rows(&mut admin));
        drop(admin);
        postgres.run(&format!("DROP DATABASE {name} WITH (FORCE)"));
    }
}

/// A server with the roles of a dump.
fn server_with_roles(name: &str) -> Cluster {
    let cluster = Cluster::builder(name).setting("rag_ext.launcher_naptime", "1").start();
    let roles =
        "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE clerk LOGIN; CREATE ROLE app LOGIN";
    cluster.connect("postgres", "postgres").run(roles);
    cluster
}

/// Restores the dump of a filled database of this version.
fn restore(cluster: &Cluster, version: &str, database: &str) {
    let packed = repository().join(format!("tests/tests/data/rag_ext-{version}.sql.gz"));
    let file = cluster.file("dump.sql");
    let unpacked = Command::new("gzip").args(["--decompress", "--stdout"]).arg(&packed).output().unwrap();
    assert!(unpacked.status.success(), "{}: {}", packed.display(), String::from_utf8_lossy(&unpacked.stderr));
    std::fs::write(&file, unpacked.stdout).unwrap();
    let mut psql = cluster.program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", database, "--file"])
        .arg(&file);
    let output = psql.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("ERROR"), "{errors}\n{}", cluster.log_tail());
}

/// What was found before is found now, by each role; then the queued document, and nothing is wrong.
fn assert_as_before(cluster: &Cluster, database: &str) {
    let mut admin = cluster.connect("postgres", database);
    let asked = admin.rows("SELECT role, user_id, sql, result FROM public.asked");
    assert!(asked.len() > 100, "only {} were asked", asked.len());
    let mut differences = Vec::new();
    for row in asked {
        let [role, user_id, sql, before] = <[_; 4]>::try_from(row).unwrap().map(Option::unwrap);
        let mut session = cluster.connect(&role, database);
        session.run(&format!("SET rag_ext.user_id = '{user_id}'"));
        let now = session.column(&sql).first().cloned().unwrap_or_default();
        if now != before {
            differences.push(format!("{role} {user_id}: {sql}\n  before {before}\n  now    {now}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// It lives on: what was queued is done, a row of an attached table is followed, a new document is found and cited.
fn assert_lives(cluster: &Cluster, database: &str) {
    let mut ann = cluster.connect("ann", database);
    ann.run("SELECT rag_create_collection('later', model => 'all-MiniLM-L6-v2')");
    ann.run("INSERT INTO rag.document (uri, content, collection) VALUES ('later.txt', 'A lock lifts ships.', 'later')");
    ann.run("INSERT INTO public.article VALUES (3, 'Winter', 'The winter ferry leaves at noon.')");
    ann.run("INSERT INTO rag.document (uri, content, collection) VALUES ('new.md', '# Knots\n\nA clove hitch ties a rope to a bollard.', 'wiki')");
    ann.settle();
    assert_eq!(ann.value("SELECT uri FROM rag_search('clove hitch bollard', k => 1)"), "new.md");
    let mut app = cluster.connect("app", database);
    app.run("SET rag_ext.user_id = '11'");
    app.settle();
    assert_eq!(app.value("SELECT uri FROM rag_search('pilot tanker', k => 1)"), "queued.txt");
    assert_eq!(ann.value("SELECT d.key->>'id' FROM rag_search('winter ferry noon', k => 1) s JOIN rag.attached_document d USING (document_id)"), "3");
    let mut bob = cluster.connect("bob", database);
    assert!(
        bob.value("SELECT rag_answer_text('What does a clove hitch tie to a bollard?')").contains("rope")
    );
    let mut clerk = cluster.connect("clerk", database);
    assert_eq!(clerk.count("SELECT count(*) FROM rag_search('clove hitch', mode => 'keyword')"), 0);
    clerk.refuses("42501", "SELECT rag_ingest('x')");
    let wrong = cluster
        .connect("postgres", database)
        .column("SET rag_ext.all_domains = on; SELECT v::text FROM rag_verify() v");
    assert_eq!(wrong, Vec::<String>::new());
}

/// Both ways from a released version to this one: an update where the database lies, and a dump that is restored into a
/// new one. They come to the same.
#[test]
fn a_filled_database_is_upgraded_or_restored() {
    for version in released() {
        let cluster = server_with_roles("upgraded");
        let mut postgres = cluster.connect("postgres", "postgres");
        for database in ["upgraded", "restored"] {
            postgres.run(&format!("CREATE DATABASE {database}"));
        }
        let mut admin = cluster.connect("postgres", "upgraded");
        admin.run(&format!("CREATE EXTENSION rag_ext VERSION '{version}' CASCADE"));
        // As it would lie in a database that is to be upgraded: the library of now lets no function of then put it there.
        admin.run("ALTER DATABASE upgraded SET session_replication_role = replica");
        restore(&cluster, &version, "upgraded");
        admin.run("ALTER DATABASE upgraded RESET session_replication_role");
        let mut ann = cluster.connect("ann", "upgraded");
        for sql in [
            "SELECT * FROM rag_search('tides')",
            "SELECT rag_answer('Which tides?')",
            "SELECT rag_ingest('x')",
        ] {
            let refused = ann.refuses("55000", sql);
            assert!(refused.hint.contains("ALTER EXTENSION rag_ext UPDATE"), "{refused}");
        }
        // Whoever writes meanwhile is not disturbed; it is worked on afterwards.
        let mut app = cluster.connect("app", "upgraded");
        app.run("SET rag_ext.user_id = '11'");
        app.run(
            "INSERT INTO rag.document (uri, content) VALUES ('meanwhile.txt', 'A tug tows each tanker.')",
        );
        ann.run("INSERT INTO public.article VALUES (4, 'Tug', 'The tug lies at the east quay.')");
        wait_until("a worker has said so", Duration::from_secs(60), || {
            cluster.log().contains(&format!("nothing is ingested: rag_ext is of version {version}"))
        });
        assert_eq!(app.value("SELECT status FROM rag.document WHERE uri = 'meanwhile.txt'"), "pending");
        admin.run("ALTER EXTENSION rag_ext UPDATE");
        app.settle();
        ann.settle();
        assert_eq!(app.value("SELECT uri FROM rag_search('tug tows', k => 1)"), "meanwhile.txt");
        let row = "DELETE FROM public.article WHERE id = 4 AND EXISTS (SELECT FROM rag_search('tug east quay', mode => 'keyword')) RETURNING id";
        assert_eq!(ann.value(row), "4");
        ann.settle();
        assert_as_before(&cluster, "upgraded");

        restore(&cluster, &version, "restored");
        let mut restored = cluster.connect("postgres", "restored");
        restored.run("SELECT rag.renew_rights()");
        let current = restored.value("SELECT extversion FROM pg_extension WHERE extname = 'rag_ext'");
        assert_eq!(current, env!("CARGO_PKG_VERSION"));
        assert_as_before(&cluster, "restored");
        assert_same(&version, &catalog::described(&mut restored), &catalog::described(&mut admin));
        let [in_restored, in_upgraded] = [&mut restored, &mut admin].map(lasting_rows);
        assert!(in_restored.len() > 60, "only {} rows", in_restored.len());
        assert_same(&version, &in_restored, &in_upgraded);
        for (name, session) in [("upgraded", &mut admin), ("restored", &mut restored)] {
            assert_lives(&cluster, name);
            // A partition of then is like one that is made now.
            let [then, now] =
                ["bge-small-en-v1.5", "all-MiniLM-L6-v2"].map(|model| catalog::partition(session, model));
            assert_eq!(then, now, "{name}");
            assert_eq!(catalog::granted_by_scripts(session), Vec::<String>::new(), "{name}");
        }
    }
}

/// Rows that no worker changes, of all but the caller who was not asked; without what says where a source's row lies.
fn lasting_rows(admin: &mut Session) -> BTreeSet<String> {
    let others = "domain_id NOT IN (SELECT id FROM rag.domain WHERE owner = 'user:app/11')";
    let tables = ["document", "section", "chunk", "embedding", "metadata_value", "attached_row"];
    let mut queries: Vec<String> = tables
        .iter()
        .map(|table| {
            format!(
                "SELECT '{table} ' || (to_jsonb(t) - 'row_version')::text FROM rag.{table} t WHERE {others}"
            )
        })
        .collect();
    for table in [
        "collection",
        "collection_grant",
        "accepted_collection",
        "gateway",
        "added_policy",
        "metadata_rule",
        "vector_space",
    ] {
        queries.push(format!("SELECT '{table} ' || t::text FROM rag.{table} t"));
    }
    queries.iter().flat_map(|sql| admin.column(sql)).collect()
}
