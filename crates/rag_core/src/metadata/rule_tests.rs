//! Tests of single metadata rules.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::option::OptionErrorKind;
use serde_json::json;

fn rule(definition: Value) -> Rule {
    Rule::compile(&serde_json::from_value(definition).unwrap()).unwrap()
}

#[track_caller]
fn check(definition: Value, text: &str, expected: Value) {
    let rule = rule(definition.clone());
    let text = if rule.reads_lower_case() { text.to_lowercase() } else { text.to_owned() };
    assert_eq!(Value::from(rule.values(&text, Some("en"), &mut || true)), expected, "{definition}");
}

#[track_caller]
fn refused(definition: Value, kind: OptionErrorKind, message: &str) {
    let error = Rule::compile(&serde_json::from_value(definition.clone()).unwrap()).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (kind, message), "{definition}");
}

#[test]
fn a_pattern_gives_its_group_its_template_or_its_match() {
    let text = "Files FC-001-234 and FC-002-345, again FC-001-234";
    let pattern = r"\bFC-\d{3}-\d{3}\b";
    check(json!({"key": "code", "pattern": pattern}), text, json!(["FC-001-234"]));
    check(
        json!({"key": "code", "pattern": pattern, "multiple": true}),
        text,
        json!(["FC-001-234", "FC-002-345"]),
    );
    check(json!({"key": "code", "pattern": r"FC-(\d{3})"}), text, json!(["001"]));
    check(json!({"key": "code", "pattern": r"(FC)-(?<value>\d{3})"}), text, json!(["001"]));
    check(
        json!({"key": "code", "pattern": r"FC-(\d{3})-(\d{3})", "value": "$2/$1"}),
        text,
        json!(["234/001"]),
    );
    check(json!({"key": "kind", "pattern": "(?i)files", "value": "list"}), text, json!(["list"]));
    check(json!({"key": "code", "pattern": "nothing"}), text, json!([]));
}

#[test]
fn values_have_the_type_that_the_rule_says() {
    let number = json!({"key": "n", "pattern": r"total: (\S+)", "type": "number"});
    check(number.clone(), "total: 12'500", json!([12500]));
    check(number.clone(), "total: 1.5", json!([1.5]));
    check(number, "total: many", json!([]));
    let date = json!({"key": "d", "pattern": r"due (.{10,20}\d)", "type": "date"});
    check(date.clone(), "due 3 March 2024", json!(["2024-03-03"]));
    check(date, "due 2024-03-03T10:00", json!(["2024-03-03T10:00"]));
    check(json!({"key": "b", "pattern": r"final: (\w+)", "type": "boolean"}), "final: Ja", json!([true]));
}

#[test]
fn keywords_are_whole_words_unless_they_are_open() {
    let bucket = |words: Value, minimum: i32| json!({"key": "topics", "kind": "keyword", "value": "finance", "words": words, "minimum": minimum});
    check(bucket(json!(["Bank"]), 1), "a bank.", json!(["finance"]));
    check(bucket(json!(["bank"]), 1), "bankers, embankment", json!([]));
    check(bucket(json!(["bank*"]), 1), "Bankers", json!(["finance"]));
    check(bucket(json!(["*bank*"]), 1), "Zentralbanken", json!(["finance"]));
    check(bucket(json!(["interest rate", "loan"]), 2), "The interest rate of a loan", json!(["finance"]));
    check(bucket(json!(["loan"]), 2), "one loan", json!([]));
    check(bucket(json!(["ÄRA"]), 1), "eine Ära", json!(["finance"]));
}

#[test]
fn dates_companies_and_names_need_no_pattern() {
    let text = "On 3 March 2024 Ada Lovelace joined Foo Bar GmbH; on 04.03.2024 she left.";
    check(
        json!({"key": "dates", "kind": "date", "type": "date", "multiple": true}),
        text,
        json!(["2024-03-03", "2024-03-04"]),
    );
    check(json!({"key": "companies", "kind": "company", "multiple": true}), text, json!(["Foo Bar GmbH"]));
    check(json!({"key": "names", "kind": "name"}), text, json!(["Ada Lovelace"]));
    let file = json!({"key": "date", "kind": "date", "source": "file_name"});
    check(file, "report_20240131.pdf", json!(["2024-01-31"]));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let invalid = OptionErrorKind::Invalid;
    refused(json!({"key": "k", "pattern": "("}), invalid, "pattern \"(\" is not a regular expression");
    refused(
        json!({"key": "k", "pattern": "(?=x)"}),
        invalid,
        "pattern \"(?=x)\" is not a regular expression",
    );
    refused(json!({"key": "k", "pattern": "x*"}), invalid, "pattern \"x*\" matches the empty text");
    refused(json!({"key": "k"}), invalid, "a metadata rule of kind \"pattern\" needs a pattern");
    refused(json!({"key": "a.b", "pattern": "x"}), invalid, "invalid key \"a.b\" of a metadata rule");
    refused(json!({"key": "and", "pattern": "x"}), invalid, "invalid key \"and\" of a metadata rule");
    refused(json!({"key": "", "pattern": "x"}), invalid, "invalid key \"\" of a metadata rule");
    refused(json!({"key": "k", "kind": "magic"}), invalid, "unknown kind \"magic\" of a metadata rule");
    refused(
        json!({"key": "k", "kind": "date", "source": "body"}),
        invalid,
        "unknown source \"body\" of a metadata rule",
    );
    refused(
        json!({"key": "k", "kind": "date", "type": "time"}),
        invalid,
        "unknown type \"time\" of a metadata rule",
    );
    refused(
        json!({"key": "k", "kind": "date", "pattern": "x"}),
        invalid,
        "a metadata rule of kind \"date\" takes no pattern",
    );
    refused(
        json!({"key": "k", "kind": "keyword", "words": ["a"]}),
        invalid,
        "a metadata rule of kind \"keyword\" needs a value",
    );
    refused(
        json!({"key": "k", "kind": "keyword", "value": "v"}),
        invalid,
        "a metadata rule of kind \"keyword\" needs words",
    );
    refused(
        json!({"key": "k", "kind": "keyword", "value": "v", "words": ["*"]}),
        invalid,
        "keyword \"*\" is empty or too long",
    );
    refused(
        json!({"key": "k", "kind": "keyword", "value": "v", "words": ["a"], "minimum": 0}),
        invalid,
        "minimum of a metadata rule is 0, but must be at least 1",
    );
}

#[test]
fn patterns_have_limits() {
    let limit = OptionErrorKind::LimitExceeded;
    refused(
        json!({"key": "k", "pattern": "x".repeat(1001)}),
        limit,
        "pattern has 1001 characters, more than 1000",
    );
    refused(
        json!({"key": "k", "pattern": r"(\w{100}){100}"}),
        limit,
        "pattern \"(\\w{100}){100}\" needs more than 262144 bytes",
    );
}

#[test]
fn a_pattern_that_would_backtrack_for_ever_ends() {
    let text = format!("{}!", "a".repeat(100_000));
    check(json!({"key": "k", "pattern": "(a+)+$"}), &text, json!([]));
}
