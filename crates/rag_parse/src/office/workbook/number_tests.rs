//! Tests of number formats.

use super::{Code, general};

#[test]
fn numbers_are_shown_as_their_format_says() {
    for (code, number, expected) in [
        ("General", 1.0, "1"),
        ("0", 2.5, "3"),
        ("0.00", 1.005, "1.01"),
        ("0.00", -0.001, "0.00"),
        ("#,##0", 1_234_567.0, "1,234,567"),
        ("#,##0.00;[Red]-#,##0.00", -1234.5, "-1,234.50"),
        ("#,##0.00_);(#,##0.00)", -1234.5, "(1,234.50)"),
        ("0%", 0.25, "25%"),
        ("0.0%", 0.1234, "12.3%"),
        ("\"EUR\" 0.00", 5.0, "EUR 5.00"),
        ("[$€-407] #,##0.00", 1000.0, "€ 1,000.00"),
        ("#,##0.00 \\€", 12.0, "12.00 €"),
        ("000", 7.0, "007"),
        ("#.##", 0.5, ".5"),
        ("0.##", 2.0, "2"),
        ("0.00E+00", 12345.0, "1.23E+04"),
        ("#,##0,\"k\"", 12_345.0, "12k"),
        ("0;-0;\"none\"", 0.0, "none"),
        ("[>=100]\"many\";0", 150.0, "many"),
        ("[>=100]\"many\";0", 15.0, "15"),
        ("@", 42.0, "42"),
        ("", 42.0, ""),
        ("0.000000000000000000000000000000000000000000", 1.0, "1.000000000000000000000000000000"),
    ] {
        assert_eq!(Code::read(code).show(number, false), expected, "{code}");
    }
}

#[test]
fn dates_and_times_are_shown_as_their_format_says() {
    for (code, number, expected) in [
        ("yyyy-mm-dd", 45_413.0, "2024-05-01"),
        ("d.m.yy", 45_413.0, "1.5.24"),
        ("dddd, d mmmm yyyy", 45_413.0, "Wednesday, 1 May 2024"),
        ("mm/dd/yyyy hh:mm:ss", 45_413.75, "05/01/2024 18:00:00"),
        ("h:mm AM/PM", 0.75, "6:00 PM"),
        ("[h]:mm", 1.5, "36:00"),
        ("mm:ss.00", 1.0 / 86_400.0 * 61.25, "01:01.25"),
        ("hh:mm", 0.999_999, "00:00"),
        ("[$-F800]dddd\\, mmmm dd\\, yyyy", 1.0, "Monday, January 01, 1900"),
        ("yyyy-mm-dd", 61.0, "1900-03-01"),
        ("yyyy-mm-dd", -1.0, "-1"),
        ("yyyy-mm-dd", 1e300, "1E+300"),
    ] {
        assert_eq!(Code::read(code).show(number, false), expected, "{code}");
    }
    assert_eq!(Code::read("yyyy-mm-dd").show(0.0, true), "1904-01-01");
}

#[test]
fn numbers_without_format_have_as_many_digits_as_they_need() {
    for (number, expected) in [
        (0.0, "0"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (1_234_567.891, "1234567.891"),
        (1e21, "1E+21"),
        (1.5e-12, "1.5E-12"),
        (f64::NAN, "#NUM!"),
        (123_456_789_012.0, "123456789012"),
    ] {
        assert_eq!(general(number), expected);
    }
}

#[test]
fn no_code_is_too_odd() {
    for code in [
        ";;;;",
        "\"",
        "[",
        "\\",
        "_",
        "*",
        "[h",
        "E+",
        "[>x]0",
        "ssss.000000000",
        "????/????",
        "\u{1f600}%%%",
    ] {
        for number in [0.0, -1.5, 1e15, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY] {
            let _ = Code::read(code).show(number, false);
        }
    }
}
