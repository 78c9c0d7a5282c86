//! Each option that a function reads stands under its heading in docs/reference.md, with what it can be.

use super::page::{Page, bare};
use super::reference::members;
use rag_tests::{Database, Failure, Session};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// A call of each function that takes options, as far as it needs other arguments.
const CALLS: [(&str, &str); 23] = [
    ("rag_search", "'x'"),
    ("rag_explain", "'x'"),
    ("rag_evaluate", "NULL, 'query', 'judgement'"),
    ("rag_evaluate_answers", "NULL, 'question'"),
    ("rag_feedback", "'x', rag.new_id(), 1"),
    ("rag_answer", "'x'"),
    ("rag_answer_stream", "'x'"),
    ("rag_answer_text", "'x'"),
    ("rag_answer_many", "'{x}'"),
    ("rag_cite", "'x'"),
    ("rag_rerank", "'x', ARRAY['y']"),
    ("rag_related", "'x'"),
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

/// Longer than any text that an option takes.
const LONG: usize = 10_000;

/// A session of a superuser, with what the calls are about.
fn prepared(database: &Database<'_>) -> Session {
    let mut admin = database.admin();
    admin.run(
        "CREATE TABLE query AS SELECT 1 AS id, 'x'::text AS query;
         CREATE TABLE question AS SELECT 1 AS id, 'x'::text AS question;
         CREATE TABLE judgement AS SELECT 1 AS query_id, 'x'::text AS document, 1 AS relevance",
    );
    admin.run("CREATE TABLE source (id int PRIMARY KEY, body text); INSERT INTO rag.document (content) VALUES ('x')");
    admin
}

/// What a function says of an option's value: it is refused, or taken.
fn tried(admin: &mut Session, call: &str, more: &str, option: &str, value: &str) -> Option<Failure> {
    admin
        .try_run(&format!("BEGIN; SELECT {call}, options => '{{{more}\"{option}\": {value}}}'); ROLLBACK"))
        .err()
        .inspect(|_| {
            admin.run("ROLLBACK");
        })
}

/// The options that a function knows, as the error says that refuses another one.
fn known_options(admin: &mut Session, call: &str, more: &str) -> BTreeSet<String> {
    let refused = tried(admin, call, more, "?", "1").unwrap_or_else(|| panic!("{call} takes any option"));
    assert_eq!(refused.code, "22023", "{refused}");
    words(&refused.hint).into_iter().collect()
}

/// With what else has to be said for each: which there are depends on the method, where there is one.
fn known_by_any_method(admin: &mut Session, call: &str) -> BTreeMap<String, &'static str> {
    let mut known: BTreeMap<String, &str> =
        known_options(admin, call, "").into_iter().map(|option| (option, "")).collect();
    if known.contains_key("method") {
        for method in ["\"method\": \"section\", ", "\"method\": \"semantic\", "] {
            for option in known_options(admin, call, method) {
                known.entry(option).or_insert(method);
            }
        }
    }
    known
}

fn words(hint: &str) -> Vec<String> {
    let quoted = Regex::new("\"([a-z_]+)\"").unwrap();
    quoted.captures_iter(hint).map(|found| found[1].to_owned()).collect()
}

/// What an option can be, in the words of the reference, as the errors say that refuse other values.
fn kind_of(admin: &mut Session, call: &str, more: &str, option: &str) -> String {
    let Some(refused) = tried(admin, call, more, option, "[]") else { return "array".to_owned() };
    let wanted = refused.message.split(" must be ").nth(1).and_then(|rest| rest.split(", not ").next());
    let bounds = |refused: Failure| {
        let hint = refused.hint;
        let between = hint.strip_prefix("It must be between ").and_then(|rest| rest.strip_suffix('.'));
        between.unwrap_or_else(|| panic!("bounds of {option} of {call}: {hint}")).replace(" and ", " to ")
    };
    match wanted.unwrap_or_else(|| panic!("{option} of {call}: {refused}")) {
        "a whole number" => format!("integer, {}", bounds(tried(admin, call, more, option, "1e15").unwrap())),
        "a number" => format!("number, {}", bounds(tried(admin, call, more, option, "1e15").unwrap())),
        "a text" => {
            let long = tried(admin, call, more, option, &format!("\"{}\"", "x".repeat(LONG))).unwrap();
            if long.code == "54000" {
                let most = long.message.rsplit(' ').next().unwrap().to_owned();
                return format!("text, at most {most} characters");
            }
            let choices: Vec<String> = words(&long.hint).iter().map(|word| format!("`{word}`")).collect();
            assert!(!choices.is_empty(), "choices of {option} of {call}: {}", long.hint);
            choices.join(", ")
        }
        "an object" => "object".to_owned(),
        other => other.to_owned(),
    }
}

/// The options that the reference has under a function's heading, with their second cells: its table, and those of other
/// functions that it refers to, maybe but for those that begin with a word.
fn described(sections: &BTreeMap<String, Page>, function: &str) -> BTreeMap<String, String> {
    let section =
        sections.get(function).unwrap_or_else(|| panic!("docs/reference.md has no heading {function}"));
    let mut options = BTreeMap::new();
    for table in section.tables() {
        let rows = table.rows_of("option").iter();
        options.extend(rows.map(|row| (bare(&row[0]).to_owned(), row[1].clone())));
    }
    let others = Regex::new(r"Options: those of \[`(rag_\w+)`\]\(#\w+\)(?: but `(\w+)`)?").unwrap();
    for other in others.captures_iter(&section.text) {
        let mut inherited = described(sections, &other[1]);
        inherited.retain(|option, _| other.get(2).is_none_or(|but| !option.starts_with(but.as_str())));
        options.extend(inherited);
    }
    options
}

/// Whether a text begins with these words, and not with longer ones.
fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

#[test]
fn options_are_those_that_the_functions_read() {
    let database = Database::new("options");
    let mut admin = prepared(&database);
    let mut taking = admin.column(&format!(
        "SELECT p.proname {} WHERE 'options' = ANY (p.proargnames) ORDER BY 1",
        members("pg_proc", "p")
    ));
    // It only hands on those of rag_answer_stream.
    taking.retain(|name| name != "answer_parts");
    let calls: BTreeMap<&str, &str> = CALLS.into_iter().collect();
    assert_eq!(
        taking,
        calls.keys().copied().collect::<Vec<_>>(),
        "functions with options, and calls of them here"
    );

    let sections = Page::reference().part("Functions").sections(4);
    let mut wrong = Vec::new();
    for (function, arguments) in calls {
        let call = format!("{function}({arguments}");
        let known = known_by_any_method(&mut admin, &call);
        let described = described(&sections, function);
        wrong.extend(
            described
                .keys()
                .filter(|option| !known.contains_key(*option))
                .map(|option| format!("{function} knows no {option}")),
        );
        for (option, more) in known {
            let kind = kind_of(&mut admin, &call, more, &option);
            match described.get(&option) {
                None => wrong.push(format!("{option} of {function} is missing: {kind}")),
                Some(cell) if !begins_with(cell, &kind) => {
                    wrong.push(format!("{option} of {function} is {kind}, and not {cell}"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "docs/reference.md, options:\n  {}", wrong.join("\n  "));
}

/// The names that a comment lists behind `options:`; what stands in parentheses is about the name before it, and `those of
/// f but x` leaves out what begins with x.
fn promised(comments: &BTreeMap<String, String>, function: &str) -> Option<BTreeSet<String>> {
    let aside = Regex::new(r" ?\([^()]*\)").unwrap();
    let list = comments.get(function)?.split_once("options: ")?.1.to_owned();
    let list = aside.replace_all(&list, "");
    let items = list.split('.').next().unwrap_or_default().split(", ").filter(|item| *item != "none");
    let names = items.flat_map(|item| match item.strip_prefix("those of ") {
        Some(others) => {
            let (other, but) = others.split_once(" but ").unwrap_or((others, "-"));
            let mut names = promised(comments, other).unwrap_or_default();
            names.retain(|name| !name.starts_with(but));
            names
        }
        None => BTreeSet::from([item.to_owned()]),
    });
    Some(names.collect())
}

#[test]
fn comments_promise_the_options_that_the_functions_read() {
    let database = Database::new("promises");
    let mut admin = prepared(&database);
    let sql = format!("SELECT p.proname, obj_description(p.oid) {}", members("pg_proc", "p"));
    let comments: BTreeMap<String, String> =
        admin.rows(&sql).into_iter().filter_map(|row| Some((row[0].clone()?, row[1].clone()?))).collect();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (function, arguments) in CALLS {
        let Some(promised) = promised(&comments, function) else { continue };
        let known = known_by_any_method(&mut admin, &format!("{function}({arguments}"));
        let known: BTreeSet<String> = known.into_keys().collect();
        compared += 1;
        if promised != known {
            wrong.push(format!("{function} promises {promised:?} and reads {known:?}"));
        }
    }
    assert!(wrong.is_empty() && compared >= 9, "COMMENT ON, {compared} compared:\n  {}", wrong.join("\n  "));
}
