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
                    2 => json!({"in": (0..random.below(16)).map(|_| scalar(random)).collect::<Value>()}),
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
    ann.run("SELECT rag_create_collection('second')");
    let documents: Vec<Value> = (0..40).map(|_| metadata(&mut random)).collect();
    let collection_of = |n: usize| if n.is_multiple_of(3) { "second" } else { "default" };
    let rows: Vec<String> = documents
        .iter()
        .enumerate()
        .map(|(n, metadata)| {
            let (collection, metadata) = (collection_of(n), literal(&metadata.to_string()));
            format!("('{collection}', '{n}', 'Filterable entry {n}.', {metadata})")
        })
        .collect();
    let rows = rows.join(", ");
    ann.run(&format!("INSERT INTO rag.document (collection, uri, content, metadata) VALUES {rows}"));
    ann.settle();
    let mut superuser = database.admin();
    superuser.run("SET rag_ext.all_domains = on");
    let mut passed = 0;
    for round in 0..150 {
        let filter = filter(&mut random, 3);
        let collection = [None, Some("second"), Some("default"), None][round % 4];
        let expected: BTreeSet<String> = documents
            .iter()
            .enumerate()
            .filter(|(n, d)| [None, Some(collection_of(*n))].contains(&collection) && passes(d, &filter))
            .map(|(n, _)| n.to_string())
            .collect();
        let mode = ["keyword", "vector", "hybrid"][round % 3];
        let place = collection.map_or("NULL".to_owned(), literal);
        let session = if round % 5 == 4 { &mut superuser } else { &mut ann };
        let found: BTreeSet<String> = session
            .column(&format!(
                "SELECT uri FROM rag_search('filterable', {place}, k => 1000, mode => '{mode}', filter => {})",
                literal(&filter.to_string())
            ))
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{mode}: {filter}");
        passed += expected.len();
        // The same rows whether they are listed beforehand, looked up, or listed because too few of those are let through.
        let first = |session: &mut Session, limit: usize| {
            session.run(&format!("SET rag_ext.filter_list_limit = {limit}"));
            session.rows(&format!(
                "SELECT uri, score FROM rag_search('filterable', {place}, k => 5, mode => '{mode}', filter => {},
                     options => '{{\"candidates\": 10, \"near_duplicates\": \"keep\"}}')",
                literal(&filter.to_string())
            ))
        };
        let listed = first(session, 5000);
        assert_eq!(listed.len(), expected.len().min(5), "{mode}: {filter}");
        for limit in [0, 1, 12, 20, 25] {
            assert_eq!(first(session, limit), listed, "{mode}, {limit}: {filter}");
        }
        session.run("RESET rag_ext.filter_list_limit");
    }
    assert!(passed > 200, "the filters let next to nothing through: {passed}");
}

/// Whether few documents pass is counted in the index of each type, up to an end. Nothing but these is gone over then, and if
/// they have many chunks these are not listed.
#[test]
fn few_documents_are_told_by_an_index() {
    let database = Database::new("few");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run(
        "INSERT INTO rag.document (uri, content, metadata)
         SELECT 'note' || n, 'Lamp ' || n || ' of a tower.',
                jsonb_build_object('n', n, 'code', 'c' || n, 'flag', n = 3, 'on', date '2024-01-01' + n, 'of', 'note')
         FROM generate_series(1, 200) n",
    );
    let chunks = ann.ingest_book();
    ann.run(r#"UPDATE rag.document SET metadata = '{"of": "book"}' WHERE uri = 'book.md'"#);
    ann.settle();
    let mut explained = database.explained(&role);
    let mut search = |filter: &str, limit: usize| {
        explained.run(&format!("SET rag_ext.filter_list_limit = {limit}"));
        explained.notices();
        let rows = explained.rows(&format!(
            "SELECT uri, score, details #>> '{{stages,0}}'
             FROM rag_search('lamp', k => 4, mode => 'keyword', filter => {}, options => '{{\"near_duplicates\": \"keep\"}}')",
            literal(filter)
        ));
        let plans = explained.notices().into_iter().map(|notice| notice.message);
        (rows, plans.collect::<Vec<String>>())
    };
    let is_count = |plan: &&String| plan.contains("SELECT unnest(ARRAY[");
    let is_asked = |stage: &String| stage.contains("\"candidates\"") && stage.contains("\"filter\"");
    let is_sample = |plan: &&String| plan.contains("CROSS JOIN LATERAL (SELECT c.id");
    let hits = |rows: &[Vec<Option<String>>]| rows.iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>();
    for (filter, indexes, found) in [
        (r#"{"n": 7}"#, &["metadata_value_number"][..], 1),
        (r#"{"n": {"gt": 3, "lte": 5}}"#, &["metadata_value_number"], 2),
        (r#"{"code": ["c7", "c9", "none"]}"#, &["metadata_value_text"], 2),
        (r#"{"code": {"prefix": "c19"}}"#, &["metadata_value_text"], 4),
        (r#"{"flag": true}"#, &["metadata_value_boolean"], 1),
        (r#"{"on": "2024-01-09"}"#, &["metadata_value_time"], 1),
        (
            r#"{"n": ["c7", 7, true]}"#,
            &["metadata_value_number", "metadata_value_text", "metadata_value_boolean"],
            1,
        ),
        (r#"{"or": [{"n": 7}, {"code": "c9"}]}"#, &["metadata_value_number", "metadata_value_text"], 2),
        (r#"{"of": "note", "n": {"lt": 3}, "not": {"code": "c1"}}"#, &["metadata_value_number"], 1),
        (
            r#"{"none": {"exists": true}}"#,
            &["metadata_value_number", "metadata_value_text", "metadata_value_boolean"],
            0,
        ),
    ] {
        let (listed, _) = search(filter, 5_000);
        assert_eq!(listed.len(), found, "{filter}");
        let (rows, plans) = search(filter, 1);
        assert_eq!(hits(&rows), hits(&listed), "{filter}");
        assert!(!rows.iter().any(|row| row[2].as_ref().is_some_and(is_asked)), "{filter}: {rows:?}");
        let counts: Vec<&String> = plans.iter().filter(is_count).collect();
        let [count] = counts[..] else { panic!("{filter}: {plans:#?}") };
        assert!(indexes.iter().all(|index| count.contains(&format!("using {index}"))), "{filter}\n{count}");
        assert!(!plans.iter().any(|plan| is_sample(&plan)), "{filter}");
    }
    // More than few, and what no index tells.
    for filter in [r#"{"of": "note"}"#, r#"{"not": {"n": {"lt": 200}}}"#, r#"{"n": {"nin": [5]}}"#] {
        let (rows, plans) = search(filter, 1);
        assert!(!rows.is_empty() && plans.iter().any(|plan| is_sample(&plan)), "{filter}: {plans:#?}");
    }
    // One document, of more chunks than are listed.
    let (rows, plans) = search(r#"{"of": "book"}"#, 1);
    assert!(chunks > 80 && !plans.iter().any(|plan| is_sample(&plan)), "{chunks} {plans:#?}");
    assert_eq!(rows.len(), 4);
    assert!(rows[0][2].as_ref().is_some_and(is_asked), "{rows:?}");
    assert_eq!(hits(&rows), hits(&search(r#"{"of": "book"}"#, 5_000).0));
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
