//! Dates and times in ISO 8601 form: which texts are points in time, and which span of time each stands for.
//!
//! Finding dates in other forms within a text is left to [`super::date`].

use time::{Date, Month, Time, UtcOffset};

/// A span of time in microseconds since 1970-01-01 00:00 UTC: from its first moment to before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First microsecond.
    pub from: i64,
    /// The microsecond after the last one.
    pub to: i64,
}

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// The span of a text that is wholly a date or a time in ISO 8601 form; `None` for any other text.
///
/// `2024-01-31` is a day in UTC. `2024-01-31T10:00`, with a space for the T or with seconds and a fraction, is a
/// moment; a zone (`Z`, `+02`, `+0200`, `+02:00`) may follow, else it is UTC. Years are 0001 to 9999.
pub fn span_of(text: &str) -> Option<Span> {
    // Most texts are no dates, and this is asked of every one.
    let bytes = text.as_bytes();
    if !(10..=40).contains(&bytes.len()) || bytes[4] != b'-' || bytes[7] != b'-' || !text.is_ascii() {
        return None;
    }
    let day = date(number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?)?;
    if text.len() == 10 {
        let from = microseconds(day, Time::MIDNIGHT, UtcOffset::UTC);
        return Some(Span { from, to: from + DAY });
    }
    let rest = text[10..].strip_prefix(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let from = microseconds(day, time_of_day(&rest[..zone_at])?, zone(&rest[zone_at..])?);
    Some(Span { from, to: from + 1 })
}

/// A day of the Gregorian calendar, if there is one.
pub(super) fn date(year: u32, month: u32, day: u32) -> Option<Date> {
    let year = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()
}

/// A day as `YYYY-MM-DD`.
pub(super) fn iso(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

fn microseconds(day: Date, time: Time, zone: UtcOffset) -> i64 {
    let moment = day.with_time(time).assume_offset(zone);
    moment.unix_timestamp() * 1_000_000 + i64::from(moment.microsecond())
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`; digits beyond microseconds are left out.
fn time_of_day(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let mut parts = whole.split(':');
    let hour = two_digits(parts.next()?)?;
    let minute = two_digits(parts.next()?)?;
    let second = parts.next().map_or(Some(0), two_digits)?;
    if parts.next().is_some() || (whole.len() != 8 && whole.len() != text.len()) {
        return None;
    }
    if fraction.is_empty() || fraction.len() > 12 {
        return None;
    }
    number(fraction)?;
    let padded: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Time::from_hms_micro(hour, minute, second, number(&padded)?).ok()
}

fn zone(text: &str) -> Option<UtcOffset> {
    let sign = match text.chars().next() {
        None => return Some(UtcOffset::UTC),
        Some('Z' | 'z') if text.len() == 1 => return Some(UtcOffset::UTC),
        Some('+') => 1,
        Some('-') => -1,
        Some(_) => return None,
    };
    let parts: Vec<&str> = text[1..].split(':').collect();
    let digits = parts.concat();
    if !matches!(digits.len(), 2 | 4 | 6) || (parts.len() > 1 && parts.iter().any(|part| part.len() != 2)) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), number);
    let [hours, minutes, seconds] = [part(0)?, part(2)?, part(4)?];
    if minutes > 59 || seconds > 59 {
        return None;
    }
    UtcOffset::from_whole_seconds(sign * i32::try_from(hours * 3600 + minutes * 60 + seconds).ok()?).ok()
}

fn two_digits(text: &str) -> Option<u8> {
    if text.len() == 2 { number(text).and_then(|n| u8::try_from(n).ok()) } else { None }
}

/// A number of digits only: no sign, no blank.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_date_is_a_day_and_a_time_is_a_moment() {
        assert_eq!(span_of("1970-01-01"), Some(Span { from: 0, to: DAY }));
        assert_eq!(span_of("1970-01-02T00:00:00Z"), Some(Span { from: DAY, to: DAY + 1 }));
        assert_eq!(span_of("0001-01-01").unwrap().from, -62_135_596_800 * 1_000_000);
    }

    #[test]
    fn forms_of_one_moment_are_equal() {
        let moment = span_of("2024-02-29T12:30:00Z");
        assert!(moment.is_some());
        for text in [
            "2024-02-29T12:30",
            "2024-02-29 12:30:00",
            "2024-02-29T12:30:00.000000Z",
            "2024-02-29T14:30:00+02:00",
            "2024-02-29T14:30+02",
            "2024-02-29T08:00:00.0-0430",
            "2024-03-01T00:00:00+11:30",
        ] {
            assert_eq!(span_of(text), moment, "{text}");
        }
        assert_eq!(span_of("1970-01-01T00:00:00.1234567").unwrap().from, 123_456);
        assert_eq!(span_of("1969-12-31T23:59:59.5Z").unwrap().from, -500_000);
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "2024",
            "2024-02",
            "2023-02-29",
            "2024-13-01",
            "0000-01-01",
            "2024-2-1",
            "2024-01-01x",
            "2024-01-01T",
            "2024-01-01T10",
            "2024-01-01T24:00",
            "2024-01-01T10:00+",
            "2024-01-01T10:00+2",
            "2024-01-01T10:00.5",
            "2024-01-01T1:00",
            "2024-01-01T10:00:00.",
            "2024-01-01T10:00Zx",
            "+024-01-01",
            "2024-01-01T10:00+25:99",
            "2024-01-01T10:00:00-1:2:3",
            "２０２４-01-01",
            "2024-01-01T10:00:00+02::00",
        ] {
            assert_eq!(span_of(text), None, "{text}");
        }
    }
}
