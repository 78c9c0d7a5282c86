//! Format codes such as `#,##0.00;[Red]-#,##0.00` taken apart.

/// Most characters of a code that are read; Excel allows 255.
const MAX_CODE_CHARS: usize = 512;

/// Most digits on either side of the decimal point.
const MAX_DIGITS: usize = 30;

/// A format code.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    /// Positive, negative, zero, as far as there are.
    sections: Vec<Section>,
}

/// The part of a code that is for numbers of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Section {
    pub(super) tokens: Vec<Token>,
    /// Digits before the decimal point that are shown even where they are zeros.
    pub(super) least_digits: usize,
    pub(super) decimals: usize,
    /// Decimals that are shown even where they are zeros.
    pub(super) least_decimals: usize,
    pub(super) has_thousands: bool,
    /// Thousands by which the number is divided.
    pub(super) scale: u8,
    pub(super) is_scientific: bool,
    /// `[>=100]` and the like.
    condition: Option<(Comparison, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Literal(String),
    /// The number itself.
    Digits,
    Percent,
    General,
    Text,
    Date(DatePart),
}

/// Numbers are widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatePart {
    Year(u8),
    Month(u8),
    Day(u8),
    Hour(u8),
    Minute(u8),
    Second(u8),
    Subsecond(u8),
    Half,
    ElapsedHours,
    ElapsedMinutes,
    ElapsedSeconds,
}

impl Code {
    /// Takes a code apart. What is unknown in it is shown as it is.
    pub(crate) fn read(code: &str) -> Self {
        let code: Vec<char> = code.chars().take(MAX_CODE_CHARS).collect();
        let mut sections = Vec::new();
        let mut reader = CodeReader { code: &code, at: 0 };
        loop {
            sections.push(reader.section());
            if reader.at >= code.len() {
                return Self { sections };
            }
            reader.at += 1;
        }
    }

    /// The section for a number, and the number as the section shows it: a section of their own shows negative
    /// numbers without sign.
    pub(super) fn section(&self, number: f64) -> Option<(&Section, f64)> {
        let conditional = self.sections.iter().any(|section| section.condition.is_some());
        if conditional {
            let fits = |section: &&Section| {
                section.condition.is_none_or(|(comparison, bound)| match comparison {
                    Comparison::Less => number < bound,
                    Comparison::LessOrEqual => number <= bound,
                    Comparison::Equal => number == bound,
                    Comparison::NotEqual => number != bound,
                    Comparison::GreaterOrEqual => number >= bound,
                    Comparison::Greater => number > bound,
                })
            };
            return self.sections.iter().take(3).find(fits).map(|section| (section, number));
        }
        match self.sections.as_slice() {
            [_, negative, ..] if number < 0.0 => Some((negative, -number)),
            [_, _, zero, ..] if number == 0.0 => Some((zero, number)),
            [first, ..] => Some((first, number)),
            [] => None,
        }
    }
}

impl Section {
    pub(super) fn is_general(&self) -> bool {
        self.tokens.contains(&Token::General) || self.tokens == [Token::Text]
    }

    pub(super) fn is_date(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Date(_)))
    }

    pub(super) fn is_twelve_hours(&self) -> bool {
        self.tokens.contains(&Token::Date(DatePart::Half))
    }

    pub(super) fn percents(&self) -> usize {
        self.tokens.iter().filter(|token| **token == Token::Percent).count()
    }

    pub(super) fn subsecond_digits(&self) -> u8 {
        let digits = self.tokens.iter().find_map(|token| match token {
            Token::Date(DatePart::Subsecond(digits)) => Some(*digits),
            _ => None,
        });
        digits.unwrap_or_default()
    }

    fn literal(&mut self, text: &str) {
        match self.tokens.last_mut() {
            Some(Token::Literal(last)) => last.push_str(text),
            _ => self.tokens.push(Token::Literal(text.to_owned())),
        }
    }
}

struct CodeReader<'a> {
    code: &'a [char],
    at: usize,
}

impl CodeReader<'_> {
    fn section(&mut self) -> Section {
        let mut section = Section::default();
        let mut in_fraction = false;
        while let Some(c) = self.code.get(self.at).copied()
            && c != ';'
        {
            self.at += 1;
            match c {
                '"' => {
                    let text = self.until('"');
                    section.literal(&text);
                }
                '\\' | '!' => {
                    if let Some(next) = self.take() {
                        section.literal(&next.to_string());
                    }
                }
                // As wide as the next character, or filled with it: neither is a word.
                '_' => {
                    self.take();
                    section.literal(" ");
                }
                '*' => {
                    self.take();
                }
                '[' => {
                    let text = self.until(']');
                    bracket(&mut section, &text);
                }
                '0' | '#' | '?' => digit(&mut section, c, in_fraction),
                '.' if self.is_subsecond(&section) => {
                    let width = self.run('0');
                    section.tokens.push(Token::Date(DatePart::Subsecond(width.min(6))));
                }
                '.' if !section.is_date() => {
                    in_fraction = true;
                    if !section.tokens.contains(&Token::Digits) {
                        section.tokens.push(Token::Digits);
                    }
                }
                ',' if section.tokens.last() == Some(&Token::Digits) => {
                    if matches!(self.code.get(self.at), Some('0' | '#' | '?')) {
                        section.has_thousands = true;
                    } else {
                        section.scale = section.scale.saturating_add(1).min(5);
                    }
                }
                '%' => section.tokens.push(Token::Percent),
                'E' | 'e' if matches!(self.code.get(self.at), Some('+' | '-')) => {
                    section.is_scientific = true;
                    self.at += 1;
                    self.run('0');
                    self.run('#');
                }
                '@' => section.tokens.push(Token::Text),
                'G' | 'g' if self.follows("eneral") => section.tokens.push(Token::General),
                'A' | 'a' if self.follows("m/pm") || self.follows("/p") => {
                    section.tokens.push(Token::Date(DatePart::Half));
                }
                'y' | 'Y' | 'm' | 'M' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' => {
                    let width = 1 + self.run_of(c);
                    date_part(&mut section, c.to_ascii_lowercase(), width);
                }
                _ => section.literal(&c.to_string()),
            }
        }
        section
    }

    fn take(&mut self) -> Option<char> {
        let c = self.code.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn until(&mut self, end: char) -> String {
        let rest = &self.code[self.at..];
        let length = rest.iter().position(|c| *c == end).unwrap_or(rest.len());
        self.at += (length + 1).min(rest.len());
        rest[..length].iter().collect()
    }

    fn run(&mut self, c: char) -> u8 {
        let length = self.code[self.at..].iter().take_while(|own| **own == c).count();
        self.at += length;
        u8::try_from(length).unwrap_or(u8::MAX)
    }

    fn run_of(&mut self, c: char) -> u8 {
        let length = self.code[self.at..].iter().take_while(|own| own.eq_ignore_ascii_case(&c)).count();
        self.at += length;
        u8::try_from(length).unwrap_or(u8::MAX - 1)
    }

    fn follows(&mut self, word: &str) -> bool {
        let rest = &self.code[self.at..];
        let count = word.chars().count();
        let found = rest.len() >= count
            && rest.iter().zip(word.chars()).all(|(own, wanted)| own.eq_ignore_ascii_case(&wanted));
        self.at += if found { count } else { 0 };
        found
    }

    fn is_subsecond(&self, section: &Section) -> bool {
        self.code.get(self.at) == Some(&'0')
            && matches!(
                section.tokens.last(),
                Some(Token::Date(DatePart::Second(_) | DatePart::ElapsedSeconds))
            )
    }
}

fn digit(section: &mut Section, c: char, in_fraction: bool) {
    if section.is_scientific || section.is_date() {
        return;
    }
    if !section.tokens.contains(&Token::Digits) {
        section.tokens.push(Token::Digits);
    }
    if in_fraction {
        section.decimals = (section.decimals + 1).min(MAX_DIGITS);
        if c == '0' {
            section.least_decimals = section.decimals;
        }
    } else if c == '0' || section.least_digits > 0 {
        section.least_digits = (section.least_digits + 1).min(MAX_DIGITS);
    }
}

/// What stands in square brackets: an elapsed time, a condition, a currency; colours and locales say nothing.
fn bracket(section: &mut Section, text: &str) {
    let lower = text.to_ascii_lowercase();
    let only = |c: char| !lower.is_empty() && lower.chars().all(|own| own == c);
    if only('h') {
        section.tokens.push(Token::Date(DatePart::ElapsedHours));
    } else if only('m') {
        section.tokens.push(Token::Date(DatePart::ElapsedMinutes));
    } else if only('s') {
        section.tokens.push(Token::Date(DatePart::ElapsedSeconds));
    } else if let Some(currency) = text.strip_prefix('$') {
        let symbol = currency.split('-').next().unwrap_or_default();
        section.literal(symbol);
    } else if text.starts_with(['<', '>', '=']) {
        let digits = text.trim_start_matches(['<', '>', '=']);
        let comparison = match &text[..text.len() - digits.len()] {
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            "<>" => Comparison::NotEqual,
            ">=" => Comparison::GreaterOrEqual,
            ">" => Comparison::Greater,
            _ => Comparison::Equal,
        };
        section.condition = digits.trim().parse().ok().map(|bound| (comparison, bound));
    }
}

/// `m` is a minute after hours and before seconds, else a month.
fn date_part(section: &mut Section, c: char, width: u8) {
    let last = section.tokens.iter_mut().rev().find_map(|token| match token {
        Token::Date(part) => Some(part),
        _ => None,
    });
    let part = match (c, last) {
        ('y', _) => DatePart::Year(width),
        ('d', _) => DatePart::Day(width),
        ('h', _) => DatePart::Hour(width),
        ('s', last) => {
            if let Some(last) = last
                && let DatePart::Month(width) = *last
            {
                *last = DatePart::Minute(width);
            }
            DatePart::Second(width)
        }
        (_, Some(DatePart::Hour(_) | DatePart::ElapsedHours)) => DatePart::Minute(width),
        _ => DatePart::Month(width),
    };
    section.tokens.push(Token::Date(part));
}
