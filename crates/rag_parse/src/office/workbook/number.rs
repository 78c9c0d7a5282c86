//! Numbers as a cell's format shows them (ECMA-376, part 1, 18.8.31).
//!
//! Colours, fill characters and paddings are left out; fractions are shown as decimals.

mod code;

pub(super) use code::Code;
use code::{DatePart, Section, Token};

/// Days from the epoch of Excel's serial numbers to that of ours (1970-01-01).
const DAYS_1900: i64 = 25_569;
const DAYS_1904: i64 = 24_107;

/// Largest serial number of a date: 9999-12-31.
const MAX_SERIAL: f64 = 2_958_466.0;

impl Code {
    /// The text that a number is shown as; `is_1904` says from when days are counted.
    pub(super) fn show(&self, number: f64, is_1904: bool) -> String {
        let Some((section, number)) = self.section(number) else { return general(number) };
        if section.is_general() {
            return general(number);
        }
        if section.is_date() {
            return date(section, number, is_1904).unwrap_or_else(|| general(number));
        }
        section.show_number(number)
    }
}

/// A number without format: up to fifteen digits, as few as it takes.
pub(super) fn general(number: f64) -> String {
    if !number.is_finite() {
        return "#NUM!".to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-9..1e15).contains(&size) {
        return scientific(number, 5, 2);
    }
    // What binary fractions add beyond the fifteenth digit, no program shows.
    let decimals = if size < 1.0 { 15 } else { 14 - size.log10().floor() as usize };
    trimmed(format!("{number:.decimals$}"))
}

fn trimmed(text: String) -> String {
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn scientific(number: f64, decimals: usize, exponent_digits: usize) -> String {
    let text = format!("{number:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{}E{sign}{digits:0>exponent_digits$}", trimmed(mantissa.to_owned()))
}

impl Section {
    fn show_number(&self, number: f64) -> String {
        let mut number = number;
        for _ in 0..self.percents() {
            number *= 100.0;
        }
        number /= 1_000f64.powi(i32::from(self.scale));
        let mut out = String::new();
        let digits = if self.is_scientific {
            scientific(number.abs(), self.decimals, 2)
        } else {
            self.digits(number.abs())
        };
        if number < 0.0 && digits.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            out.push('-');
        }
        let mut has_digits = false;
        for token in &self.tokens {
            match token {
                Token::Digits if !has_digits => {
                    has_digits = true;
                    out.push_str(&digits);
                }
                Token::Literal(text) => out.push_str(text),
                Token::Percent => out.push('%'),
                Token::Digits | Token::Text | Token::General | Token::Date(_) => {}
            }
        }
        out.trim().to_owned()
    }

    /// Digits with as many decimals and separators as the placeholders ask for.
    fn digits(&self, number: f64) -> String {
        let text = format!("{:.*}", self.decimals, rounded(number, self.decimals));
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let kept = fraction.trim_end_matches('0').len().max(self.least_decimals);
        let fraction = &fraction[..kept.min(fraction.len())];
        let whole = if whole == "0" && self.least_digits == 0 && !fraction.is_empty() { "" } else { whole };
        let mut out = format!("{whole:0>width$}", width = self.least_digits);
        if self.has_thousands {
            let mut at = out.len();
            while at > 3 {
                at -= 3;
                out.insert(at, ',');
            }
        }
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
        out
    }
}

/// A number rounded half away from zero, with 1.005 taken for what it was typed as.
fn rounded(number: f64, decimals: usize) -> f64 {
    let unit = 10f64.powi(decimals.min(300) as i32);
    let scaled = number * unit * (1.0 + f64::EPSILON);
    if scaled < 1e15 { scaled.round() / unit } else { number }
}

/// A date or time; `None` for a number that is none.
fn date(section: &Section, serial: f64, is_1904: bool) -> Option<String> {
    if !(0.0..MAX_SERIAL).contains(&serial) {
        return None;
    }
    // Whole seconds, so that 23:59:59.9999 is midnight of the next day as everywhere else; more digits are cut.
    let subsecond = section.subsecond_digits();
    let unit = 10f64.powi(i32::from(subsecond));
    let ticks = (serial * 86_400.0 * unit).round();
    let seconds = (ticks / unit).floor();
    let fraction = ticks - seconds * unit;
    let day = (seconds / 86_400.0).floor();
    let in_day = (seconds - day * 86_400.0) as u32;
    // In the 1900 system day 60 is a 29 February that never was.
    let shift = if is_1904 { DAYS_1904 } else { DAYS_1900 - i64::from(day < 60.0) };
    let (year, month, date, weekday) = civil(day as i64 - shift);
    let (hour, minute, second) = (in_day / 3_600, in_day / 60 % 60, in_day % 60);
    let mut out = String::new();
    for token in &section.tokens {
        let text = match token {
            Token::Literal(text) => text.clone(),
            Token::Percent => "%".to_owned(),
            Token::Digits | Token::Text | Token::General => String::new(),
            Token::Date(part) => match part {
                DatePart::Year(digits) if *digits <= 2 => format!("{:02}", year.rem_euclid(100)),
                DatePart::Year(_) => format!("{year:04}"),
                DatePart::Month(1) => month.to_string(),
                DatePart::Month(2) => format!("{month:02}"),
                DatePart::Month(3) => MONTHS[month as usize - 1][..3].to_owned(),
                DatePart::Month(5) => MONTHS[month as usize - 1][..1].to_owned(),
                DatePart::Month(_) => MONTHS[month as usize - 1].to_owned(),
                DatePart::Day(1) => date.to_string(),
                DatePart::Day(2) => format!("{date:02}"),
                DatePart::Day(3) => DAYS[weekday][..3].to_owned(),
                DatePart::Day(_) => DAYS[weekday].to_owned(),
                DatePart::Hour(width) => {
                    let hour = if section.is_twelve_hours() { (hour + 11) % 12 + 1 } else { hour };
                    format!("{hour:0width$}", width = usize::from(*width).min(2))
                }
                DatePart::Minute(width) => format!("{minute:0width$}", width = usize::from(*width).min(2)),
                DatePart::Second(width) => format!("{second:0width$}", width = usize::from(*width).min(2)),
                DatePart::Subsecond(width) => {
                    format!(".{:0width$}", fraction as u64, width = usize::from(*width))
                }
                DatePart::Half => if hour < 12 { "AM" } else { "PM" }.to_owned(),
                DatePart::ElapsedHours => (seconds as u64 / 3_600).to_string(),
                DatePart::ElapsedMinutes => (seconds as u64 / 60).to_string(),
                DatePart::ElapsedSeconds => (seconds as u64).to_string(),
            },
        };
        out.push_str(&text);
    }
    Some(out.trim().to_owned())
}

/// Year, month, day and weekday (Sunday is 0) of a day counted from 1970-01-01.
fn civil(days: i64) -> (i64, u32, u32, usize) {
    // Years of the Gregorian calendar counted from March, in eras of 400 years.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * from_march + 2) / 5 + 1) as u32;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day, (days + 4).rem_euclid(7) as usize)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
