//! What README and docs/ say: their SQL runs and prints what they show, and what they name is the server's.
//!
//! A block marked `sql` is run by psql. One that creates the extension gets a new database, the others go on in the one
//! before. `-- as role NAME` connects as that role, and the next block begins as the page's own role again. An unmarked
//! block right behind it shows the end of what it prints. The page about clients has blocks in other languages too: see `docs/clients.rs`.

#![allow(clippy::unwrap_used)]

#[path = "docs/clients.rs"]
mod clients;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/options.rs"]
mod options;
#[path = "docs/page.rs"]
mod page;
#[path = "docs/reference.rs"]
mod reference;

use page::{Fence, Page};
use rag_tests::{Cluster, Database};
use reference::members;
use regex::Regex;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

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

fn run(cluster: &Cluster, database: &str, role: &str, place: &str, sql: &str, shown: Option<&str>) {
    let is_table = shown.is_some_and(|shown| shown.contains("---"));
    let format: &[&str] = if is_table { &[] } else { &["--no-align", "--tuples-only"] };
    let connecting = Regex::new(r"(?m)^-- as role (\w+).*$").unwrap().replace_all(sql, "\\connect - $1");
    // Data of COPY end with a line of their own.
    let printed = psql(cluster, role, database, format, &format!("{connecting}\n"), place);
    if let Some(shown) = shown {
        assert!(trimmed(&printed).ends_with(&trimmed(shown)), "{place} prints\n{printed}");
    }
}

fn create_database(cluster: &Cluster, name: &str) {
    cluster.connect("postgres", "postgres").run(&format!("CREATE DATABASE {name}"));
}

/// What is shown behind a block.
fn shown(next: Option<&Fence>) -> Option<&str> {
    next.filter(|fence| fence.is_next && fence.language.is_empty()).map(|fence| fence.body.as_str())
}

#[test]
fn the_sql_of_the_documents_runs_and_prints_what_they_show() {
    let cluster = Cluster::builder("docs").start();
    cluster.connect("postgres", "postgres").run("CREATE ROLE app LOGIN");
    let mut compared = 0;
    let pages = Page::all().into_iter().filter(|page| page.name != clients::PAGE);
    for (number, page) in pages.enumerate() {
        let mut database = format!("docs_{number}");
        create_database(&cluster, &database);
        let is_readme = page.name == "README.md";
        if !is_readme {
            cluster
                .connect("postgres", &database)
                .run("CREATE EXTENSION rag_ext CASCADE; SELECT rag_enable('app')");
        }
        // The README speaks to who installs it, the other pages to who uses it.
        let role = if is_readme { "postgres" } else { "app" };
        let fences = page.fences();
        for (index, block) in fences.iter().enumerate().filter(|(_, fence)| fence.language == "sql") {
            if block.body.starts_with("CREATE EXTENSION") {
                database = format!("docs_{number}_{index}");
                create_database(&cluster, &database);
            }
            let shown = shown(fences.get(index + 1));
            compared += usize::from(shown.is_some());
            let place = format!("{}:{}", page.name, block.line);
            run(&cluster, &database, role, &place, &block.body, shown);
        }
    }
    assert!(compared > 8, "only {compared} outputs are shown");
}

#[test]
fn functions_and_relations_that_the_documents_name_exist() {
    let database = Database::new("docs");
    let mut admin = database.admin();
    let functions: BTreeSet<String> = admin
        .column(&format!(
            "SELECT DISTINCT p.proname::text {} WHERE p.pronamespace <> 'rag'::regnamespace",
            members("pg_proc", "p")
        ))
        .into_iter()
        .collect();
    let texts: String = Page::all().into_iter().map(|page| page.text).collect();
    let named = |pattern: &str| -> BTreeSet<String> {
        Regex::new(pattern).unwrap().captures_iter(&texts).map(|found| found[1].to_owned()).collect()
    };
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
