//! docs/reference.md is the catalog in words: each function, relation, setting and error, and nothing else.

use super::page::{Page, bare};
use rag_tests::{Database, RustSource, Session, project_files, repository};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Longest comment of an object: more stands in the reference.
const LONGEST_COMMENT: usize = 400;
const MOST_SENTENCES: usize = 3;

/// Conditions that the source names and no caller meets: log levels, the end of a worker, a line of the server's log, and
/// errors of Postgres that are told apart.
const NOT_RAISED: [&str; 8] = [
    "admin_shutdown",
    "configuration_limit_exceeded",
    "deadlock_detected",
    "foreign_key_violation",
    "index_corrupted",
    "undefined_function",
    "restrict_violation",
    "successful_completion",
];

/// The objects of a catalog that belong to the extension.
pub(crate) fn members(catalog: &str, alias: &str) -> String {
    format!(
        "FROM {catalog} {alias}
         JOIN pg_depend d ON d.classid = '{catalog}'::regclass AND d.objid = {alias}.oid AND d.deptype = 'e'
         JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid AND e.extname = 'rag_ext'"
    )
}

/// Fails with what only one of the two has.
fn assert_same(what: &str, page: &BTreeSet<String>, server: &BTreeSet<String>) {
    let mut report = String::new();
    for missing in server.difference(page) {
        writeln!(report, "  missing on the page: {missing}").unwrap();
    }
    for extra in page.difference(server) {
        writeln!(report, "  not on the server:   {extra}").unwrap();
    }
    assert!(report.is_empty(), "docs/reference.md, {what}:\n{report}");
}

/// One line, one blank, and the short names of types.
fn normal(text: &str) -> String {
    let cast = Regex::new(r"::[a-z_][a-z_ ]*(\[\])?").unwrap();
    let text = cast.replace_all(text, "").replace("timestamp with time zone", "timestamptz");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("TABLE(", "TABLE (").replace("( ", "(").replace(" )", ")")
}

/// Signatures of fenced blocks, where a line that begins with a blank goes on, and of the first cells of tables.
fn described_functions(page: &Page) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let break_within = Regex::new(r"\n\s+").unwrap();
    for fence in page.fences().iter().filter(|fence| fence.language == "text") {
        let joined = break_within.replace_all(&fence.body, " ");
        found.extend(joined.lines().map(normal));
    }
    for table in page.tables() {
        found.extend(table.rows_of("function").iter().map(|row| normal(bare(&row[0]))));
    }
    found
}

#[test]
fn functions_are_those_of_the_catalog() {
    let database = Database::new("reference");
    let signatures = database.admin().column(&format!(
        "SELECT format('%s%s(%s) → %s', CASE WHEN p.pronamespace = 'rag'::regnamespace THEN 'rag.' END, p.proname,
                       pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
         {} WHERE p.pronamespace <> 'rag'::regnamespace
                  OR p.proname IN (SELECT object FROM rag.allowed WHERE privilege = 'EXECUTE')",
        members("pg_proc", "p")
    ));
    assert!(signatures.len() > 60, "only {} functions", signatures.len());
    let server = signatures.iter().map(|signature| normal(signature)).collect();
    assert_same("functions", &described_functions(&Page::reference().part("Functions")), &server);
}

#[test]
fn each_function_stands_under_its_own_heading() {
    let functions = Page::reference().part("Functions");
    let name = Regex::new(r"(?m)^(rag_\w+)\(").unwrap();
    for (title, section) in functions.sections(4).iter().filter(|(title, _)| title.starts_with("rag_")) {
        let text = section.fences().iter().map(|fence| fence.body.clone() + "\n").collect::<String>();
        let named: BTreeSet<&str> =
            name.captures_iter(&text).map(|found| found.get(1).unwrap().as_str()).collect();
        assert_eq!(named, BTreeSet::from([title.as_str()]), "signatures under the heading {title}");
    }
}

#[test]
fn relations_and_their_columns_are_those_of_the_catalog() {
    let database = Database::new("reference");
    let columns = |condition: &str| -> BTreeSet<String> {
        let sql = format!(
            "SELECT format('rag.%s: %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
             {} JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             WHERE c.relkind IN ('r', 'p', 'v') AND {condition}",
            members("pg_class", "c")
        );
        database.admin().column(&sql).iter().map(|line| normal(line)).collect()
    };
    let page = Page::reference().part("Tables and views");
    let sections = page.sections(3);
    let described: Vec<&String> = sections.keys().filter(|title| title.starts_with("rag.")).collect();
    let named = described.iter().map(|name| format!("'{}'", &name[4..])).collect::<Vec<_>>().join(", ");
    let granted = "c.relname IN (SELECT object FROM rag.allowed WHERE privilege = 'SELECT')";
    let server = columns(&format!("({granted} OR c.relname IN ({named}))"));
    let mut written = BTreeSet::new();
    for name in described {
        for table in sections[name].tables() {
            let rows = table.rows_of("column").iter();
            written.extend(rows.map(|row| format!("{name}: {} {}", bare(&row[0]), row[1])));
        }
    }
    assert_same("columns", &written, &server);
}

/// Rows of the table of settings, as the server would write them.
fn settings(session: &mut Session) -> BTreeSet<String> {
    let rows = session.column(
        "SELECT format('| `%s` | %s | %s | %s | %s |', substr(name, 9),
             CASE vartype WHEN 'bool' THEN 'boolean' WHEN 'string' THEN 'text'
                  WHEN 'real' THEN format('number, %s to %s', min_val, max_val)
                  ELSE format('integer, %s to %s', min_val, max_val) END,
             CASE boot_val WHEN '' THEN '(empty)' ELSE '`' || boot_val || '`' || coalesce(' ' || unit, '') END,
             CASE context WHEN 'user' THEN 'anyone' WHEN 'superuser' THEN 'superuser' WHEN 'sighup' THEN 'reload' ELSE context END,
             concat_ws(' ', short_desc, extra_desc))
         FROM pg_settings WHERE name LIKE 'rag\\_ext.%'",
    );
    rows.into_iter().collect()
}

#[test]
fn settings_are_the_servers() {
    let database = Database::new("reference");
    let mut admin = database.admin();
    admin.run("SELECT rag_embed('') WHERE false");
    let page = Page::reference().part("Settings");
    let rows = page.prose().into_iter().map(|(_, line)| line).filter(|line| line.starts_with("| `"));
    assert_same("settings", &rows.map(str::to_owned).collect(), &settings(&mut admin));
}

/// Names of conditions that the source raises, as PL/pgSQL writes them.
fn raised_conditions() -> BTreeSet<String> {
    let (constant, option) =
        (Regex::new(r"\bERRCODE_([A-Z0-9_]+)\b").unwrap(), Regex::new(r"ERRCODE = '(\w+)'").unwrap());
    let mut found = BTreeSet::new();
    for path in project_files() {
        let read = || std::fs::read_to_string(repository().join(&path)).unwrap();
        if path.starts_with("src") {
            let code = RustSource::parse(&read()).code;
            let names = constant
                .captures_iter(&code)
                .map(|c| c[1].to_lowercase().trim_start_matches("t_r_").to_owned());
            found.extend(names);
        } else if path.starts_with("sql") {
            found.extend(option.captures_iter(&read()).map(|c| c[1].to_owned()));
        }
    }
    for name in NOT_RAISED {
        assert!(found.remove(name), "NOT_RAISED has {name}, and no source file names it");
    }
    // A log level, and no error.
    found.remove("warning");
    found
}

#[test]
fn errors_are_those_that_the_source_raises() {
    let database = Database::new("reference");
    let mut admin = database.admin();
    admin.run(
        "CREATE FUNCTION pg_temp.sqlstate_of(condition text) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN
             RAISE EXCEPTION 'raised' USING ERRCODE = condition;
         EXCEPTION WHEN OTHERS OR query_canceled THEN
             RETURN CASE WHEN SQLERRM = 'raised' THEN SQLSTATE END;
         END $$",
    );
    let raised: BTreeMap<String, String> = raised_conditions()
        .into_iter()
        .map(|name| (admin.value(&format!("SELECT pg_temp.sqlstate_of('{name}')")), name))
        .collect();
    let server = raised.iter().map(|(code, name)| format!("{code} {name}")).collect();
    let tables = Page::reference().part("Errors").tables();
    let rows = tables.iter().flat_map(|table| table.rows_of("SQLSTATE"));
    let written = rows.clone().map(|row| format!("{} {}", bare(&row[0]), bare(&row[1]))).collect();
    assert_same("errors", &written, &server);
    for row in rows {
        assert!(row.len() == 4 && !row[2].is_empty() && !row[3].is_empty(), "cause and remedy of {}", row[0]);
    }
}

fn sentences(text: &str) -> usize {
    let ends = Regex::new(r"[.!?](\s|$)").unwrap();
    ends.find_iter(text).count() + usize::from(!text.trim_end().ends_with(['.', '!', '?']))
}

#[test]
fn comments_are_short() {
    let database = Database::new("comments");
    let rows = database.admin().rows(
        "SELECT pg_describe_object(t.classoid, t.objoid, t.objsubid), t.description
         FROM pg_description t
         JOIN pg_depend d ON (d.classid, d.objid) = (t.classoid, t.objoid) AND d.deptype = 'e'
         JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid AND e.extname = 'rag_ext'",
    );
    assert!(rows.len() > 100, "only {} comments", rows.len());
    let mut long = Vec::new();
    for row in rows {
        let (object, comment) = (row[0].clone().unwrap(), row[1].clone().unwrap());
        let (count, length) = (sentences(&comment), comment.chars().count());
        if count > MOST_SENTENCES || length > LONGEST_COMMENT {
            long.push(format!("{object}: {count} sentences, {length} characters"));
        }
    }
    assert!(long.is_empty(), "comments for the reference:\n  {}", long.join("\n  "));
}

#[test]
fn sentences_are_counted() {
    for (text, count) in
        [("One. Two, e.g.x 0.5, rag.job", 2), ("One", 1), ("One? Two!", 2), ("A. B. C. D.", 4)]
    {
        assert_eq!(sentences(text), count, "{text}");
    }
}

/// What the functions give and what the views show of it: a name that only one of the two has is a column without values, or
/// a number that nobody sees.
#[test]
fn views_show_all_that_the_engine_says() {
    let database = Database::new("engine_views");
    let mut admin = database.admin();
    database.cluster().running_engine();
    for (view, object) in [
        ("engine_status", "SELECT rag.engine_state()"),
        ("model", "SELECT jsonb_array_elements(rag.models())"),
    ] {
        let keys =
            format!("SELECT DISTINCT k FROM ({object}) o (object), jsonb_object_keys(o.object) k ORDER BY 1");
        let columns = format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'rag.{view}'::regclass AND attnum > 0 ORDER BY 1"
        );
        assert_eq!(admin.column(&keys), admin.column(&columns), "rag.{view}");
    }
}
