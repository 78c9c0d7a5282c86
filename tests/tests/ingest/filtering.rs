//! Metadata: its rows, and filters over them, compared with a reading of the rules that shares no code with
//! the extension.

use rag_tests::{Database, Random, Session, literal};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const KEYS: [&str; 4] = ["lang", "year", "tags", "a.b"];

/// All values of a dotted key: an array gives each of its elements.
fn values<'a>(document: &'a Value, key: &str) -> Vec<&'a Value> {
    let mut found = vec![document];
    for part in key.split('.') {
        found = found.into_iter().filter_map(|value| value.get(part)).flat_map(elements).collect();
    }
    found.into_iter().filter(|value| !value.is_null() && !value.is_object()).collect()
}

fn elements(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

/// Hours since 2024-01-01 of the few dates that occur here: the first hour, and the hour after the last.
fn hours(value: &Value) -> Option<(i64, i64)> {
    let text = value.as_str()?;
    let day = text.strip_prefix("2024-01-0")?.chars().next()?.to_digit(10)? as i64 - 1;
    match &text["2024-01-01".len()..] {
        "" => Some((24 * day, 24 * day + 24)),
        "T05:00Z" | "T07:00:00+02:00" => Some((24 * day + 5, 24 * day + 5)),
        other => panic!("no such date here: {other}"),
    }
}

/// How a document's value stands to that of a filter; a day of a filter lasts from morning to night.
fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    if let Some((from, to)) = hours(b) {
        let (own, _) = hours(a)?;
        return Some(match own {
            _ if own < from => std::cmp::Ordering::Less,
            _ if own >= to && own > from => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        });
    }
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// What the documentation of filters says, read plainly.
fn passes(document: &Value, filter: &Value) -> bool {
    filter.as_object().unwrap().iter().all(|(key, wanted)| match key.as_str() {
        "and" => wanted.as_array().unwrap().iter().all(|part| passes(document, part)),
        "or" => wanted.as_array().unwrap().iter().any(|part| passes(document, part)),
        "not" => !passes(document, wanted),
        _ => {
            let own = values(document, key);
            let any = |test: &dyn Fn(std::cmp::Ordering) -> bool, with: &Value| {
                own.iter().filter_map(|value| compare(value, with)).any(test)
            };
            if let Some(list) = wanted.as_array() {
                return list.iter().any(|one| any(&|o| o.is_eq(), one));
            }
            let Some(operators) = wanted.as_object() else { return any(&|o| o.is_eq(), wanted) };
            let is_range = |name: &str| matches!(name, "lt" | "lte" | "gt" | "gte" | "between");
            let in_range = |value: &Value| {
                operators.iter().filter(|(name, _)| is_range(name)).all(|(name, with)| match name.as_str() {
                    "lt" => compare(value, with).is_some_and(|o| o.is_lt()),
                    "lte" => compare(value, with).is_some_and(|o| o.is_le()),
                    "gt" => compare(value, with).is_some_and(|o| o.is_gt()),
                    "gte" => compare(value, with).is_some_and(|o| o.is_ge()),
                    _ => {
                        compare(value, &with[0]).is_some_and(|o| o.is_ge())
                            && compare(value, &with[1]).is_some_and(|o| o.is_le())
                    }
                })
            };
            operators.iter().all(|(operator, with)| match operator.as_str() {
                range if is_range(range) => own.iter().any(|value| in_range(value)),
                "nin" => {
                    !own.is_empty() && !with.as_array().unwrap().iter().any(|one| any(&|o| o.is_eq(), one))
                }
                "prefix" => {
                    own.iter().any(|v| v.as_str().is_some_and(|v| v.starts_with(with.as_str().unwrap())))
                }
                "eq" => any(&|o| o.is_eq(), with),
                "ne" => !own.is_empty() && !any(&|o| o.is_eq(), with),
                "in" => with.as_array().unwrap().iter().any(|one| any(&|o| o.is_eq(), one)),
                "exists" => own.is_empty() != with.as_bool().unwrap(),
                other => panic!("no operator {other}"),
            })
        }
    })
}

fn scalar(random: &mut Random) -> Value {
    match random.below(11) {
        8 => json!(*random.pick(&["2024-01-01", "2024-01-02", "2024-01-03"])),
        9 => json!(*random.pick(&["2024-01-01T05:00Z", "2024-01-02T07:00:00+02:00"])),
        0 => json!(true),
        1 => json!(false),
        2 => json!(random.below(5) as i64 - 2),
        3 => json!(random.below(5) as f64 / 2.0),
        4 => json!("Zürich"),
        5 => json!("it's \"quoted\" \\ %_"),
        _ => json!(*random.pick(&["en", "de", "Z", "a", "ä", ""])),
    }
}

fn metadata(random: &mut Random) -> Value {
    let mut object = json!({});
    for key in ["lang", "year", "tags"] {
        match random.below(5) {
            0 => {}
            1 => object[key] = Value::Null,
            2 => object[key] = (0..random.below(4)).map(|_| scalar(random)).collect(),
            _ => object[key] = scalar(random),
        }
    }
    if random.below(2) == 0 {
        object["a"] = json!({"b": scalar(random), "c": [scalar(random)]});
    }
    object
}

fn filter(random: &mut Random, depth: usize) -> Value {
    let mut object = json!({});
    for _ in 0..1 + random.below(2) {
        match random.below(if depth == 0 { 5 } else { 8 }) {
            5 => object["and"] = (0..random.below(3)).map(|_| filter(random, depth - 1)).collect(),
            6 => object["or"] = (0..random.below(4)).map(|_| filter(random, depth - 1)).collect(),
            7 => object["not"] = filter(random, depth - 1),
            choice => {
                let key = *random.pick(&KEYS);
                object[key] = match choice {
                    0 => scalar(random),
                    1 => json!({"exists": random.below(2) == 0}),
                    2 => json!({"in": (0..random.below(4)).map(|_| scalar(random)).collect::<Value>()}),
                    3 => match random.below(4) {
                        0 => json!({"prefix": *random.pick(&["e", "Z", "ä", "2024-01-0", "it's"])}),
                        1 => json!({"nin": (0..random.below(4)).map(|_| scalar(random)).collect::<Value>()}),
                        2 => (0..random.below(4)).map(|_| scalar(random)).collect::<Value>(),
                        _ => json!({*random.pick(&["eq", "ne"]): scalar(random)}),
                    },
                    _ => {
                        let mut bound = || match random.below(3) {
                            0 => json!(random.below(4)),
                            1 => json!("b"),
                            _ => json!(*random.pick(&["2024-01-02", "2024-01-02T05:00Z"])),
                        };
                        let (low, high) = (bound(), bound());
                        match random.below(3) {
                            0 => json!({"between": [low, high]}),
                            1 => {
                                json!({*random.pick(&["gt", "gte"]): low, *random.pick(&["lt", "lte"]): high})
                            }
                            _ => json!({*random.pick(&["lt", "lte", "gt", "gte"]): low}),
                        }
                    }
                };
            }
        }
    }
    object
}

#[test]
fn filters_let_through_what_a_plain_reading_lets_through() {
    let mut random = Random::announced("filters");
    let database = Database::new("filters");
    let mut ann = database.user("ann");
    let documents: Vec<Value> = (0..40).map(|_| metadata(&mut random)).collect();
    let rows: Vec<String> = documents
        .iter()
        .enumerate()
        .map(|(n, metadata)| format!("('{n}', 'Filterable entry {n}.', {})", literal(&metadata.to_string())))
        .collect();
    ann.run(&format!("INSERT INTO rag.document (uri, content, metadata) VALUES {}", rows.join(", ")));
    ann.settle();
    let mut passed = 0;
    for round in 0..150 {
        let filter = filter(&mut random, 3);
        let expected: BTreeSet<String> = documents
            .iter()
            .enumerate()
            .filter(|(_, d)| passes(d, &filter))
            .map(|(n, _)| n.to_string())
            .collect();
        let mode = ["keyword", "vector", "hybrid"][round % 3];
        let found: BTreeSet<String> = ann
            .column(&format!(
                "SELECT uri FROM rag_search('filterable', k => 1000, mode => '{mode}', filter => {})",
                literal(&filter.to_string())
            ))
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{mode}: {filter}");
        passed += expected.len();
        // The same rows whether they are listed beforehand, looked up, or listed because too few of those are let through.
        let first = |ann: &mut Session, limit: usize| {
            ann.run(&format!("SET rag_ext.filter_list_limit = {limit}"));
            ann.rows(&format!(
                "SELECT uri, score FROM rag_search('filterable', k => 5, mode => '{mode}', filter => {},
                     options => '{{\"candidates\": 10, \"near_duplicates\": \"keep\"}}')",
                literal(&filter.to_string())
            ))
        };
        let listed = first(&mut ann, 5000);
        assert_eq!(listed.len(), expected.len().min(5), "{mode}: {filter}");
        for limit in [0, 12, 25] {
            assert_eq!(first(&mut ann, limit), listed, "{mode}, {limit}: {filter}");
        }
        ann.run("RESET rag_ext.filter_list_limit");
    }
    assert!(passed > 200, "the filters let next to nothing through: {passed}");
}

#[test]
fn metadata_becomes_one_row_per_scalar() {
    let database = Database::new("metadata");
    let mut ann = database.user("ann");
    ann.run(
        r#"INSERT INTO rag.document (content, metadata) VALUES
           ('x', '{"s": "text", "n": 1.5, "b": true, "z": null, "list": [1, "two", 3], "o": {"deep": {"er": false}}, "none": []}')"#,
    );
    let rows = ann.rows("SELECT key, text_value, number_value, boolean_value FROM rag.metadata_value ORDER BY key, number_value, text_value");
    let text = rows
        .iter()
        .map(|row| row.iter().map(|value| value.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>();
    assert_eq!(
        text,
        ["b - - t", "list - 1 -", "list - 3 -", "list two - -", "n - 1.5 -", "o.deep.er - - f", "s text - -"]
    );
    ann.run("UPDATE rag.document SET metadata = '{\"s\": \"other\"}'");
    assert_eq!(
        ann.column(
            "SELECT key || '=' || text_value FROM rag.metadata_value WHERE key IN ('s', 'list', 'b', 'n')"
        ),
        ["s=other"]
    );
    ann.settle();
    assert_eq!(ann.count("SELECT version FROM rag.job"), 1, "metadata alone needs no new chunks");
}

#[test]
fn text_compares_by_bytes_whatever_the_database_collation() {
    let database = Database::new("collation");
    let mut ann = database.user("ann");
    for (uri, word) in [("upper", "Zebra"), ("lower", "apple"), ("umlaut", "Äpfel")] {
        ann.run(&format!(
            "SELECT rag_ingest('Sorted entry {uri}.', uri => '{uri}', metadata => '{{\"w\": \"{word}\"}}', options => '{{\"sync\": true}}')"
        ));
    }
    let found = ann
        .column(r#"SELECT uri FROM rag_search('sorted', filter => '{"w": {"gt": "Zebra"}}') ORDER BY uri"#);
    assert_eq!(found, ["lower", "umlaut"]);
}
