//! Tests of separated values.
#![allow(clippy::unwrap_used)]

use super::super::{DocumentContent, ParseErrorKind, detect, parse};
use std::time::{Duration, Instant};

fn csv(text: &str) -> String {
    parse(DocumentContent::Text(text), Some("text/csv")).unwrap().text
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(csv(text).lines().collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn rows_become_a_table_whatever_parts_their_fields() {
    for separator in [",", ";", "\t", "|"] {
        let text = "name,city,year\r\nAda,London,1815\r\nGrace,New York,1906\r\n".replace(',', separator);
        check(
            &text,
            &[
                "| name | city | year |",
                "| --- | --- | --- |",
                "| Ada | London | 1815 |",
                "| Grace | New York | 1906 |",
            ],
        );
    }
}

#[test]
fn quoted_fields_keep_separators_pipes_and_line_breaks_as_spaces() {
    check(
        "a,b\n\"x,y\",\"say \"\"hi\"\"\"\n\"two\nlines\",p|q\n",
        &["| a | b |", "| --- | --- |", "| x,y | say \"hi\" |", "| two lines | p\\|q |"],
    );
}

#[test]
fn decimal_commas_do_not_win_over_semicolons() {
    check(
        "Name;Preis;Rest\nA;1,5;2,0\nB;2,5;3,0\n",
        &["| Name | Preis | Rest |", "| --- | --- | --- |", "| A | 1,5 | 2,0 |", "| B | 2,5 | 3,0 |"],
    );
    check("1,5;2,5\n3,5;4,5\n", &["| 1,5 | 2,5 |", "| --- | --- |", "| 3,5 | 4,5 |"]);
}

#[test]
fn ragged_rows_are_filled_and_the_header_is_as_wide_as_the_widest() {
    check(
        "a,b\n1\n1,2,3\n\n4,5\n",
        &["| a | b | |", "| --- | --- | --- |", "| 1 | | |", "| 1 | 2 | 3 |", "| 4 | 5 | |"],
    );
}

#[test]
fn rows_ahead_of_the_header_are_a_caption() {
    check(
        "Sales 2024\nas of May,,\n\nname,q1,q2\na,1,2\nb,3,4\nc,5,6\n",
        &[
            "Sales 2024",
            "",
            "as of May",
            "",
            "| name | q1 | q2 |",
            "| --- | --- | --- |",
            "| a | 1 | 2 |",
            "| b | 3 | 4 |",
            "| c | 5 | 6 |",
        ],
    );
}

#[test]
fn excel_names_its_separator_in_a_first_line() {
    check("sep=;\na,b;c\n1;2\n", &["| a,b | c |", "| --- | --- |", "| 1 | 2 |"]);
}

#[test]
fn a_single_column_is_a_table_and_nothing_is_nothing() {
    check("Industry\nSales\nOther\n", &["| Industry |", "| --- |", "| Sales |", "| Other |"]);
    check("", &[]);
    check("\n ,\n,,,\n", &[]);
}

#[test]
fn a_quote_that_is_never_closed_does_not_swallow_the_file() {
    check(
        "a,b\n1,\"open\n2,\"closed\"\n3,\"x\n",
        &["| a | b |", "| --- | --- |", "| 1 | open 2,closed\" |", "| 3 | \"x |"],
    );
    check(
        "a,b\n1,\"open\n2,x\n3,y\n",
        &["| a | b |", "| --- | --- |", "| 1 | \"open |", "| 2 | x |", "| 3 | y |"],
    );
    check("size,b\n5\" pipe,x\n", &["| size | b |", "| --- | --- |", "| 5\" pipe | x |"]);
}

#[test]
fn tables_are_told_by_content_and_prose_is_not_taken_for_one() {
    let tables = [
        "id,name,price\n1,pen,0.5\n2,cup,3\n",
        "Datum;Betrag (EUR)\n2024-01-01;1,50\n2024-01-02;2,50\n",
        "name\tcity\nAda\tLondon\nGrace\tNew York\n",
        "sep=,\na,b\n",
    ];
    for text in tables {
        assert_eq!(detect(text.as_bytes()), "text/csv", "{text}");
    }
    let others = [
        "Dear John,\nI write to you, as ever,\nwith love, Ann\n",
        "Roses are red, said he\nViolets are blue, said she\nSugar is sweet, said we\n",
        "one, two, three\nfour, five, six\nseven, eight, nine\n",
        "a,b\n1,2\n",
        "int a;\nint b;\nint c;\n",
        "2024-01-01|INFO|start\n2024-01-01|INFO|stop\n2024-01-02|WARN|x\n",
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n",
        "INSERT INTO t VALUES (1,2);\nINSERT INTO t VALUES (2,3);\nINSERT INTO t VALUES (3,4);\n",
        "{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":2}\n",
        "key,value\n1,2\n1,2,3\n4,5\n",
        "\tindented\n\tcode\n\there\n",
        "",
    ];
    for text in others {
        assert_ne!(detect(text.as_bytes()), "text/csv", "{text}");
    }
}

#[test]
fn files_of_any_shape_are_read_in_linear_time_and_memory() {
    let started = Instant::now();
    let wide = csv(&format!("{}\n{}", "column,".repeat(1_000_000), "x,".repeat(1_000_000)));
    assert_eq!(wide.lines().nth(1).unwrap().matches("---").count(), 256);
    assert!(wide.contains(" column column column "), "what is beyond the last column is lost");
    let mut ragged = "x,".repeat(300);
    ragged.push_str(&"\ny".repeat(100_000));
    assert!(csv(&ragged).len() < 2 << 20);
    // Hours if an open quote were looked for anew in each row.
    csv(&"\"".repeat(1_000_001));
    csv(&"\"a\n".repeat(300_001));
    csv(&"a,\"b\n".repeat(300_001));
    csv(&"\n".repeat(1_000_000));
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
}

#[test]
fn a_table_that_is_too_long_as_markdown_is_refused() {
    let text = format!("sep=;\na;b\n{}", "|".repeat(40 << 20));
    let error = parse(DocumentContent::Text(&text), Some("text/csv")).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::LimitExceeded);
    assert_eq!(error.message, "document has more than 67108864 bytes as Markdown");
}
