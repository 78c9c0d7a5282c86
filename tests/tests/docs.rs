//! What README and docs/ say: their SQL runs and prints what they show, their settings and functions are the server's.
//!
//! A block marked `sql` is run by psql. One that creates the extension gets a new database, the others go on in the one
//! before. `-- as role NAME` connects as that role. An unmarked block right behind it shows the end of what it prints.

#![allow(clippy::unwrap_used)]

use rag_tests::{Cluster, Session, literal, repository};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Shown output of this section is that of `make demo`, over more pages than are read here: only its columns are compared.
const DEMO: &str = "Five minutes";

/// Pages of the manual that its questions are about.
const DEMO_PAGES: [&str; 6] = [
    "textsearch-indexes.html",
    "runtime-config-connection.html",
    "runtime-config-replication.html",
    "warm-standby.html",
    "routine-vacuuming.html",
    "runtime-config-autovacuum.html",
];

/// A block of SQL in a document.
struct Block {
    section: String,
    line: usize,
    sql: String,
    shown: Option<String>,
}

/// README and what lies in docs/, but for the decisions, which tell of their time.
fn documents() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    pages.insert(0, repository().join("README.md"));
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).unwrap();
    let (mut blocks, mut section) = (Vec::<Block>::new(), String::new());
    let mut lines = text.lines().enumerate();
    // Whether nothing but empty lines came since a block of SQL.
    let mut is_behind_sql = false;
    while let Some((index, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            let body = body.join("\n");
            match language {
                "sql" => {
                    blocks.push(Block { section: section.clone(), line: index + 1, sql: body, shown: None });
                }
                "" if is_behind_sql => blocks.last_mut().unwrap().shown = Some(body),
                _ => {}
            }
            is_behind_sql = language == "sql";
        } else if !line.is_empty() {
            is_behind_sql = false;
            if let Some(title) = line.strip_prefix("## ") {
                section = title.to_owned();
            }
        }
    }
    blocks
}

/// What psql prints for a script that must not fail.
fn psql(cluster: &Cluster, role: &str, database: &str, format: &[&str], script: &str, place: &str) -> String {
    let mut command = cluster.program("psql");
    command.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--pset=footer=off"]).args(format);
    command.arg(format!("--username={role}")).arg(format!("--dbname={database}"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{place}: {}\n{script}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Line of column names of an aligned table.
fn columns(text: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let rule = lines.iter().rposition(|line| line.contains("---"))?;
    Some(lines[rule.checked_sub(1)?].split('|').map(str::trim).collect())
}

fn run(cluster: &Cluster, database: &str, role: &str, page: &str, block: &Block) {
    let place = format!("{page}:{}", block.line);
    let is_table = block.shown.as_ref().is_some_and(|shown| columns(shown).is_some());
    let format: &[&str] = if is_table { &[] } else { &["--no-align", "--tuples-only"] };
    let connecting =
        Regex::new(r"(?m)^-- as role (\w+).*$").unwrap().replace_all(&block.sql, "\\connect - $1");
    let printed = psql(cluster, role, database, format, &connecting, &place);
    let Some(shown) = &block.shown else { return };
    if block.section == DEMO {
        assert_eq!(columns(&printed), columns(shown), "{place}: {printed}");
        assert!(!trimmed(&printed).is_empty(), "{place} prints nothing");
    } else {
        assert!(trimmed(&printed).ends_with(&trimmed(shown)), "{place} prints\n{printed}");
    }
}

fn create_database(cluster: &Cluster, name: &str) {
    cluster.connect("postgres", "postgres").run(&format!("CREATE DATABASE {name}"));
}

/// The collection that the questions of the demonstration are about.
fn read_the_manual(cluster: &Cluster, database: &str) {
    let folder = PathBuf::from(std::env::var("RAG_TEST_MANUAL").expect("`make test` sets RAG_TEST_MANUAL"));
    let mut session = cluster.connect("postgres", database);
    session.run("SELECT rag_create_collection('manual')");
    for name in DEMO_PAGES {
        let page = literal(&std::fs::read_to_string(folder.join(name)).unwrap());
        session.run(&format!(
            "SELECT rag_ingest({page}, uri => '{name}', collection => 'manual', options => '{{\"media_type\": \"text/html\"}}')"
        ));
    }
    session.settle();
}

#[test]
fn the_sql_of_the_documents_runs_and_prints_what_they_show() {
    let cluster = Cluster::builder("docs").start();
    cluster.connect("postgres", "postgres").run("CREATE ROLE app LOGIN");
    for (number, page) in documents().iter().enumerate() {
        let name = page.strip_prefix(repository()).unwrap().display().to_string();
        let mut database = format!("docs_{number}");
        create_database(&cluster, &database);
        let is_readme = name == "README.md";
        if !is_readme {
            cluster
                .connect("postgres", &database)
                .run("CREATE EXTENSION rag_ext CASCADE; SELECT rag_enable('app')");
        }
        // The README speaks to who installs it, the other pages to who uses it.
        let role = if is_readme { "postgres" } else { "app" };
        let mut has_manual = false;
        for (index, block) in blocks(page).iter().enumerate() {
            if block.sql.starts_with("CREATE EXTENSION") {
                database = format!("docs_{number}_{index}");
                create_database(&cluster, &database);
            }
            if block.section == DEMO && !has_manual {
                read_the_manual(&cluster, &database);
                has_manual = true;
            }
            run(&cluster, &database, role, &name, block);
        }
    }
}

/// The rows of the README's table of settings, as the server would write them.
fn settings(session: &mut Session) -> Vec<String> {
    session.column(
        "SELECT format('| `%s` | %s | %s | %s |', substr(name, 9),
             CASE boot_val WHEN '' THEN '(empty)' ELSE '`' || boot_val || '`' || coalesce(' ' || unit, '') END,
             CASE context WHEN 'user' THEN 'anyone' WHEN 'superuser' THEN 'superuser' WHEN 'sighup' THEN 'reload' ELSE context END,
             concat_ws(' ', short_desc, extra_desc))
         FROM pg_settings WHERE name LIKE 'rag\\_ext.%'
         ORDER BY array_position('{user,superuser,sighup,postmaster}', context), name",
    )
}

#[test]
fn settings_and_functions_are_the_servers() {
    let database = rag_tests::Database::new("docs");
    let mut admin = database.admin();
    admin.run("SELECT rag_embed('')  WHERE false");
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let described: Vec<&str> = readme
        .split("### Settings")
        .nth(1)
        .and_then(|rest| rest.split("\n### ").next())
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let settings = settings(&mut admin);
    for (described, setting) in described.iter().zip(&settings) {
        assert_eq!(described, setting, "the README's table of settings");
    }
    assert_eq!(described.len(), settings.len(), "rows of the README's table of settings");

    let texts: String = documents().iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let named = |pattern: &str| -> BTreeSet<String> {
        Regex::new(pattern).unwrap().captures_iter(&texts).map(|found| found[1].to_owned()).collect()
    };
    let functions: BTreeSet<String> = admin
        .column(
            "SELECT DISTINCT p.proname::text FROM pg_proc p
             JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
             JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
             WHERE e.extname = 'rag_ext' AND p.pronamespace <> 'rag'::regnamespace",
        )
        .into_iter()
        .collect();
    let mentioned = named(r"\b(rag_[a-z_]+)\b");
    let missing: Vec<&String> = functions.difference(&mentioned).collect();
    assert!(missing.is_empty(), "no document mentions {missing:?}");
    let called = named(r"\b(rag_[a-z_]+)\(");
    let unknown: Vec<&String> = called.difference(&functions).collect();
    assert!(unknown.is_empty(), "the documents call {unknown:?}");

    // Members of the schema: relations, their columns behind another point, and functions.
    for name in named(r"\brag\.([a-z_]+)\b") {
        let exists = format!(
            "SELECT to_regclass('rag.{name}') IS NOT NULL OR EXISTS (
                SELECT FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND proname = '{name}')"
        );
        assert!(admin.holds(&exists), "the documents name rag.{name}");
    }
}

/// A call of each function that takes options, as far as it needs other arguments.
const CALLS: [(&str, &str); 16] = [
    ("rag_search", "'x'"),
    ("rag_answer", "'x'"),
    ("rag_answer_text", "'x'"),
    ("rag_cite", "'x'"),
    ("rag_rerank", "'x', ARRAY['y']"),
    ("rag_rerank_chunks", "'x', '{}'"),
    ("rag_ingest", "'x'"),
    ("rag_ingest_bytes", "'x'"),
    ("rag_ingest_file", "'postgresql.conf'"),
    ("rag_create_collection", "'x'"),
    ("rag_alter_collection", "'default'"),
    ("rag_attach", "'source'"),
    ("rag_chunk", "'x'"),
    ("rag_chunk_bytes", "'x'"),
    ("rag_parse", "'x'"),
    ("rag_extract_metadata", "'x'"),
];

/// The options that a function knows, as the error says that refuses another one.
fn known_options(admin: &mut Session, call: &str, wrap: impl Fn(&str) -> String) -> BTreeSet<String> {
    let refused = admin.refuses("22023", &format!("SELECT {call}, options => '{}')", wrap("\"?\": 1")));
    let quoted = Regex::new("\"([a-z_]+)\"").unwrap();
    let hint = refused.hint;
    quoted.captures_iter(&hint).map(|found| found[1].to_owned()).collect()
}

/// The options that a comment names behind "options:", up to the end of the sentence; or those of another function.
fn described_options(comments: &BTreeMap<String, String>, function: &str) -> BTreeSet<String> {
    let comment = &comments[function];
    let Some((_, listed)) = comment.split_once("options: ") else {
        let other = Regex::new(r"\brag_[a-z_]+\b").unwrap().find(comment);
        return described_options(comments, other.expect("options, or another function").as_str());
    };
    let (mut depth, mut items) = (0, vec![String::new()]);
    for character in listed.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            '.' if depth == 0 => break,
            other if depth == 0 => items.last_mut().unwrap().push(other),
            _ => {}
        }
    }
    let mut options = BTreeSet::new();
    for item in items.iter().map(|item| item.trim()).filter(|item| *item != "none") {
        match item.strip_prefix("those of ") {
            Some(other) => options.extend(described_options(comments, other)),
            None => drop(options.insert(item.to_owned())),
        }
    }
    options
}

#[test]
fn options_are_those_that_the_functions_read() {
    let database = rag_tests::Database::new("options");
    let mut admin = database.admin();
    admin.run("CREATE TABLE source (id int PRIMARY KEY, body text); INSERT INTO rag.document (content) VALUES ('x')");
    let of_extension = "FROM pg_proc p
         JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
         JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
         WHERE e.extname = 'rag_ext'";
    let comments: BTreeMap<String, String> = admin
        .rows(&format!(
            "SELECT p.proname, obj_description(p.oid, 'pg_proc') {of_extension} AND p.proname LIKE 'rag\\_%'"
        ))
        .into_iter()
        .map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap()))
        .collect();
    let taking = admin
        .column(&format!("SELECT p.proname {of_extension} AND 'options' = ANY (p.proargnames) ORDER BY 1"));
    let calls: BTreeMap<&str, &str> = CALLS.into_iter().collect();
    let called: Vec<&str> = calls.keys().copied().collect();
    assert_eq!(taking, called, "functions with options, and calls of them here");

    let texts: String = documents().iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let mut missing = Vec::new();
    for (function, arguments) in calls {
        let call = format!("{function}({arguments}");
        let mut known = known_options(&mut admin, &call, |unknown| format!("{{{unknown}}}"));
        // Which there are depends on the method.
        if known.contains("method") {
            known.extend(known_options(&mut admin, &call, |unknown| {
                format!("{{\"method\": \"section\", {unknown}}}")
            }));
        }
        assert_eq!(described_options(&comments, function), known, "COMMENT ON FUNCTION {function}");
        let unnamed = known.iter().filter(|option| !texts.contains(&format!("`{option}`")));
        missing.extend(unnamed.map(|option| format!("{option} of {function}")));
    }
    assert!(missing.is_empty(), "options that no document names: {missing:?}");
}
