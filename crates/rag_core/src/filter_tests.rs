//! Tests of the filter language.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::metadata::typed_values;
use crate::option::OptionErrorKind;
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn check(filter: Value, metadata: Value, expected: bool) {
    let parsed = parse_filter(&filter).unwrap();
    assert_eq!(matches(&parsed, &typed_values(&metadata)), expected, "{filter} on {metadata}");
}

#[test]
fn conditions_side_by_side_must_all_hold() {
    let filter = json!({"lang": "en", "year": {"gte": 2020, "lt": 2024}});
    check(filter.clone(), json!({"lang": "en", "year": 2020}), true);
    check(filter.clone(), json!({"lang": "en", "year": 2024}), false);
    check(filter.clone(), json!({"lang": "de", "year": 2021}), false);
    check(filter, json!({"year": 2021}), false);
}

#[test]
fn any_element_of_an_array_may_match() {
    check(json!({"topic": "a"}), json!({"topic": ["b", "a"]}), true);
    check(json!({"topic": {"in": ["x", "b"]}}), json!({"topic": ["b", "a"]}), true);
    check(json!({"topic": {"in": []}}), json!({"topic": ["b"]}), false);
    check(json!({"n": {"gt": 5}}), json!({"n": [1, 9]}), true);
}

#[test]
fn one_value_must_be_within_all_bounds() {
    check(json!({"n": {"gt": 2, "lt": 8}}), json!({"n": [1, 9]}), false);
    check(json!({"n": {"gt": 2, "lt": 8}}), json!({"n": [1, 5, 9]}), true);
    check(json!({"n": {"between": [5, 5]}}), json!({"n": 5}), true);
    check(json!({"n": {"between": [6, 8]}}), json!({"n": [5, 9]}), false);
    check(json!({"n": {"gte": 1, "lt": "b"}}), json!({"n": [1, "a"]}), false);
}

#[test]
fn a_bare_array_means_in() {
    check(json!({"t": ["a", 2]}), json!({"t": 2}), true);
    check(json!({"t": []}), json!({"t": 2}), false);
    check(json!({"t": {"nin": ["a", "b"]}}), json!({"t": ["c", "b"]}), false);
    check(json!({"t": {"nin": ["a", "b"]}}), json!({"t": "c"}), true);
    check(json!({"t": {"nin": []}}), json!({"t": "c"}), true);
    check(json!({"t": {"nin": ["a"]}}), json!({}), false);
}

#[test]
fn a_prefix_is_of_texts_and_of_bytes() {
    check(json!({"u": {"prefix": "http"}}), json!({"u": "https://x"}), true);
    check(json!({"u": {"prefix": "Http"}}), json!({"u": "https://x"}), false);
    check(json!({"u": {"prefix": "1"}}), json!({"u": 12}), false);
    check(json!({"u": {"prefix": "2024-01"}}), json!({"u": "2024-01-31"}), true);
    check(json!({"u": {"prefix": "2024-01-31"}}), json!({"u": "2024-01-31T10:00Z"}), true);
}

#[test]
fn dates_compare_as_time_whatever_their_form() {
    let noon = json!({"d": "2024-01-31T14:00:00+02:00"});
    check(json!({"d": "2024-01-31T12:00Z"}), noon.clone(), true);
    check(json!({"d": "2024-01-31"}), noon.clone(), true);
    check(json!({"d": {"ne": "2024-01-31"}}), noon.clone(), false);
    check(json!({"d": ["2024-01-30", "2024-01-31"]}), noon.clone(), true);
    check(json!({"d": {"lte": "2024-01-31"}}), noon.clone(), true);
    check(json!({"d": {"lt": "2024-01-31"}}), noon.clone(), false);
    check(json!({"d": {"gt": "2024-01-31"}}), noon.clone(), false);
    check(json!({"d": {"gt": "2024-01-30"}}), noon.clone(), true);
    check(json!({"d": {"between": ["2024-01-31T11:59", "2024-01-31T12:01"]}}), noon, true);
    check(json!({"d": {"gte": "2024-01-31"}}), json!({"d": "2024-01-31"}), true);
    check(json!({"d": {"gte": "2024-01-31T00:01"}}), json!({"d": "2024-01-31"}), false);
}

#[test]
fn what_is_no_whole_date_compares_as_text() {
    check(json!({"d": {"gte": "2024-01"}}), json!({"d": "2024-01-31"}), true);
    check(json!({"d": {"lt": "2024-02"}}), json!({"d": "2024-01-31T10:00Z"}), true);
    check(json!({"d": {"gte": "2024-01-01"}}), json!({"d": "zebra"}), false);
    check(json!({"d": "2024-02-30"}), json!({"d": "2024-02-30"}), true);
}

#[test]
fn not_equal_wants_the_key_and_no_equal_value() {
    check(json!({"t": {"ne": "a"}}), json!({"t": "b"}), true);
    check(json!({"t": {"ne": "a"}}), json!({"t": ["b", "a"]}), false);
    check(json!({"t": {"ne": "a"}}), json!({}), false);
    check(json!({"not": {"t": "a"}}), json!({}), true);
    check(json!({"t": {"ne": "a"}}), json!({"t": 1}), true);
}

#[test]
fn types_are_not_mixed() {
    check(json!({"n": 1}), json!({"n": "1"}), false);
    check(json!({"n": "1"}), json!({"n": 1}), false);
    check(json!({"n": {"lt": "5"}}), json!({"n": 3}), false);
    check(json!({"b": true}), json!({"b": true}), true);
    check(json!({"n": 1.0}), json!({"n": 1}), true);
}

#[test]
fn existence_is_about_values() {
    check(json!({"draft": {"exists": false}}), json!({}), true);
    check(json!({"draft": {"exists": false}}), json!({"draft": null}), true);
    check(json!({"draft": {"exists": true}}), json!({"draft": false}), true);
    check(json!({"a.b": {"exists": true}}), json!({"a": {"b": 1}}), true);
}

#[test]
fn connectives_nest_and_their_empty_forms_hold_always_or_never() {
    let filter = json!({"or": [{"a": 1}, {"and": [{"b": 2}, {"not": {"c": 3}}]}]});
    check(filter.clone(), json!({"a": 1}), true);
    check(filter.clone(), json!({"b": 2}), true);
    check(filter, json!({"b": 2, "c": 3}), false);
    check(json!({}), json!({}), true);
    check(json!({"and": []}), json!({}), true);
    check(json!({"or": []}), json!({}), false);
    check(json!({"not": {}}), json!({}), false);
}

#[test]
fn what_is_no_filter_is_refused_with_a_reason() {
    let cases = [
        (json!(null), "filter must be a JSON object, not null"),
        (json!([{"a": 1}]), "filter must be a JSON object, not an array"),
        (json!({"a": null}), "filter on \"a\" cannot compare with null"),
        (json!({"a": [[1]]}), "filter on \"a\" cannot compare with an array of 1"),
        (json!({"a": {"between": [1]}}), "\"between\" on \"a\" must be two values, not an array of 1"),
        (json!({"a": {"between": 1}}), "\"between\" on \"a\" must be two values, not 1"),
        (json!({"a": {"prefix": ""}}), "\"prefix\" on \"a\" must be a text that is not empty, not \"\""),
        (json!({"a": {"nin": "x"}}), "\"nin\" on \"a\" must be an array, not a text"),
        (json!({"a": {}}), "filter on \"a\" has no operator"),
        (json!({"a": {"like": "x"}}), "unknown filter operator \"like\" on \"a\""),
        (json!({"a": {"in": "x"}}), "\"in\" on \"a\" must be an array, not a text"),
        (json!({"a": {"exists": 1}}), "\"exists\" on \"a\" must be true or false, not a number"),
        (json!({"a": {"lt": true}}), "\"lt\" on \"a\" cannot compare a boolean"),
        (json!({"a": {"eq": {}}}), "filter on \"a\" cannot compare with an object of 0"),
        (json!({"and": {}}), "\"and\" in a filter must be an array of filters, not an object"),
        (json!({"": 1}), "filter has an empty key"),
    ];
    for (filter, message) in cases {
        let error = parse_filter(&filter).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (OptionErrorKind::Invalid, message), "{filter}");
    }
}

#[test]
fn limits_are_named() {
    let conditions = |n: usize| json!({"or": (0..n).map(|i| json!({"a": i})).collect::<Vec<_>>()});
    parse_filter(&conditions(MAX_NODES - 1)).unwrap();
    let mut deep = json!({"a": 1});
    for _ in 0..MAX_DEPTH {
        deep = json!({"not": deep});
    }
    let cases = [
        (conditions(MAX_NODES), "filter has more than 256 nodes"),
        (deep, "filter is nested more than 16 levels deep"),
        (json!({"a": {"in": vec![1; 1001]}}), "\"in\" on \"a\" has 1001 values, more than 1000"),
        (json!({"a": "x".repeat(257)}), "filter value of \"a\" is longer than 256 characters"),
    ];
    for (filter, message) in cases {
        let error = parse_filter(&filter).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (OptionErrorKind::LimitExceeded, message));
    }
}

fn scalar_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[ab]{0,2}".prop_map(Value::from),
        "2024-01-0[12](T0[01]:00(Z|\\+01:00))?".prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[ab]",
        Just("and".to_owned()),
        Just("not".to_owned()),
        "(eq|ne|lt|gte|in|nin|or|exists|between|prefix)"
    ];
    scalar_json().prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_parsed_or_refused_and_negation_negates(json in any_json(), metadata in any_json()) {
        if let Ok(filter) = parse_filter(&json) {
            let values = typed_values(&metadata);
            let holds = matches(&filter, &values);
            prop_assert_eq!(matches(&Filter::Not(Box::new(filter)), &values), !holds);
        }
    }

    #[test]
    fn in_means_equal_to_one_of_them(
        wanted in proptest::collection::vec(scalar_json().prop_filter("no null", |v| !v.is_null()), 0..4),
        metadata in any_json(),
    ) {
        let values = typed_values(&json!({ "a": metadata }));
        let any_of: Vec<Value> = wanted.iter().map(|value| json!({ "a": value })).collect();
        let as_in = parse_filter(&json!({"a": {"in": wanted}})).unwrap();
        let as_or = parse_filter(&json!({ "or": any_of })).unwrap();
        prop_assert_eq!(matches(&as_in, &values), matches(&as_or, &values));
    }
}
