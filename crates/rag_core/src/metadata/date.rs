//! Dates in running text and in file names: `31.01.2024`, `2024-01-31`, `31 January 2024`, `31. Januar 2024`,
//! `January 31, 2024`.
//!
//! Forms that read differently on two continents (`01/02/2024`) are no dates here: a wrong date is worse than
//! none. Days that no calendar has are left out.

use super::moment;
use crate::word_pattern::WordPattern;
use std::sync::LazyLock;

/// Names of months, lower-case, in English, German, French, Spanish and Italian; `.` after a short form is allowed.
const MONTHS: [&str; 12] = [
    "january|jan|januar|jänner|janvier|janv|enero|ene|gennaio|gen",
    "february|feb|februar|feber|février|fevrier|févr|febrero|febbraio",
    "march|mar|märz|maerz|mär|mrz|mars|marzo",
    "april|apr|avril|avr|abril|abr|aprile",
    "may|mai|mayo|maggio|mag",
    "june|jun|juni|juin|junio|giugno|giu",
    "july|jul|juli|juillet|juil|julio|luglio|lug",
    "august|aug|août|aout|agosto|ago",
    "september|sept|sep|septembre|septiembre|settembre|set",
    "october|oct|oktober|okt|octobre|octubre|ottobre|ott",
    "november|nov|novembre|noviembre",
    "december|dec|dezember|dez|décembre|decembre|déc|diciembre|dic|dicembre",
];

struct Forms {
    year_first: WordPattern,
    dotted: WordPattern,
    day_first: WordPattern,
    month_first: WordPattern,
    in_names: WordPattern,
}

static FORMS: LazyLock<Option<Forms>> = LazyLock::new(|| {
    let months = MONTHS.join("|");
    let form = |pattern: &str| WordPattern::new(&pattern.replace("MONTH", &months));
    Some(Forms {
        year_first: form(r"\b(?<y>\d{4})([-/])(?<m>\d{2})([-/])(?<d>\d{2})(?:\b|T)")?,
        dotted: form(r"\b(?<d>\d{1,2})\. ?(?<m>\d{1,2})\. ?(?<y>\d{4})\b")?,
        day_first: form(
            r"(?i)\b(?<d>\d{1,2})(?:st|nd|rd|th|er|\.|º)?(?: of| de)?[ \u{a0}]+(?<month>MONTH)\b\.?,?(?: de)?[ \u{a0}]+(?<y>\d{4})\b",
        )?,
        month_first: form(
            r"(?i)\b(?<month>MONTH)\b\.?[ \u{a0}]+(?<d>\d{1,2})(?:st|nd|rd|th)?,?[ \u{a0}]+(?<y>\d{4})\b",
        )?,
        in_names: form(r"(?:^|[^0-9])(?<y>(?:19|20)\d{2})(?<m>\d{2})(?<d>\d{2})(?:[^0-9]|$)")?,
    })
});

/// The dates of a text as `YYYY-MM-DD`, each once, in the order of their first occurrence, at most `limit`.
///
/// `in_name`: the text is a file name or an address, in which `20240131` is a date as well, and an underscore
/// stands for a blank.
pub(super) fn dates(text: &str, in_name: bool, limit: usize) -> Vec<String> {
    let Some(forms) = FORMS.as_ref().filter(|_| may_have_year(text)) else { return Vec::new() };
    let spaced;
    let text = if in_name {
        spaced = text.replace('_', " ");
        spaced.as_str()
    } else {
        text
    };
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut patterns = vec![&forms.year_first, &forms.dotted, &forms.day_first, &forms.month_first];
    if in_name {
        patterns.push(&forms.in_names);
    }
    for pattern in patterns {
        let mut kept = 0;
        for captures in pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            let number = |name: &str| captures.name(name)?.as_str().parse::<u32>().ok();
            let month = match captures.name("month") {
                Some(name) => month_of(name.as_str()),
                None => number("m"),
            };
            let date = number("y").zip(month).zip(number("d"));
            let Some(date) = date.and_then(|((y, m), d)| moment::date(y, m, d)) else { continue };
            // 10.11.1.2024 is an address or a version, 112024-01-01 a number.
            let before = text[..whole.start()].chars().next_back();
            let after = &text[whole.end()..];
            let goes_on = after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit());
            if !(1000..=2999).contains(&date.year()) || before == Some('.') || before == Some('-') || goes_on
            {
                continue;
            }
            found.push((whole.start(), moment::iso(date)));
            kept += 1;
            if kept >= limit * 4 {
                break;
            }
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut dates: Vec<String> = Vec::new();
    for (_, date) in found {
        if !dates.contains(&date) {
            dates.push(date);
        }
    }
    dates.truncate(limit);
    dates
}

/// Whether four digits stand together, as in all forms: most texts have none, and need no search for forms.
fn may_have_year(text: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    text.as_bytes().chunk_by(|a, b| is_digit(a) == is_digit(b)).any(|run| run.len() >= 4 && is_digit(&run[0]))
}

fn month_of(name: &str) -> Option<u32> {
    let name = name.to_lowercase();
    let index = MONTHS.iter().position(|names| names.split('|').any(|known| known == name))?;
    u32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::dates;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(dates(text, false, 50), expected, "{text}");
    }

    #[test]
    fn numbers_in_either_order() {
        check("Bern, 31.01.2024.", &["2024-01-31"]);
        check("am 1.2.2024 und 2024-02-02T10:00Z", &["2024-02-01", "2024-02-02"]);
        check("on 2024/03/04 it rained", &["2024-03-04"]);
        check("the 24. 12. 1998", &["1998-12-24"]);
    }

    #[test]
    fn written_months_of_several_languages() {
        check(
            "On 3 March 2021, on 3rd of April, 2021 and May 5, 2021.",
            &["2021-03-03", "2021-04-03", "2021-05-05"],
        );
        check("Zürich, 1. März 2020; den 24. Dezember 2019", &["2020-03-01", "2019-12-24"]);
        check("Wien, 6. Jänner 2022", &["2022-01-06"]);
        check("le 1er août 1999, el 2 de mayo de 1808", &["1999-08-01", "1808-05-02"]);
        check("SEPT. 11, 2001", &["2001-09-11"]);
    }

    #[test]
    fn what_is_ambiguous_or_impossible_is_no_date() {
        check("01/02/2024", &[]);
        check("31.02.2024 and 2023-02-29 and 99.99.2024", &[]);
        check("version 10.11.1.2024 and 1.2.2024.5", &[]);
        check("May 2024", &[]);
        check("", &[]);
    }

    #[test]
    fn each_date_comes_once_in_the_order_of_the_text() {
        check("3 May 2021, then 2020-01-01, then 03.05.2021", &["2021-05-03", "2020-01-01"]);
        assert_eq!(dates("2020-01-01 2020-01-02 2020-01-03", false, 2), ["2020-01-01", "2020-01-02"]);
    }

    #[test]
    fn names_of_files_have_forms_of_their_own() {
        assert_eq!(dates("report_20240131_final.pdf", true, 9), ["2024-01-31"]);
        assert_eq!(dates("FC-001-234_2024-05-06.pdf", true, 9), ["2024-05-06"]);
        assert_eq!(dates("minutes_3_March_2021.docx", true, 9), ["2021-03-03"]);
        assert_eq!(dates("order 20240131", false, 9), Vec::<String>::new());
    }
}
