//! Running text of office documents: runs with their formatting, and how they are written as Markdown.

use crate::html::clean;
use crate::writer::Writer;
use std::rc::Rc;

/// Longest address of a link in bytes; a longer one is left out.
const MAX_LINK_BYTES: usize = 2_048;

/// A box that is ticked, and one that is not, as in Markdown's lists of tasks.
pub(crate) const CHECKED: &str = "[x]";
pub(crate) const UNCHECKED: &str = "[ ]";

/// Words from which on a monospaced paragraph that ends as a sentence is prose.
const PROSE_WORDS: usize = 12;

/// Formatting of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) bold: bool,
    pub(crate) italic: bool,
    pub(crate) strike: bool,
    pub(crate) code: bool,
    pub(crate) superscript: bool,
}

/// A piece of running text.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Run { text: String, style: Style, link: Option<Rc<str>> },
    LineBreak,
    Page(u32),
}

impl Piece {
    fn page(&self) -> Option<u32> {
        match self {
            Self::Page(page) => Some(*page),
            Self::Run { .. } | Self::LineBreak => None,
        }
    }
}

/// The text of a paragraph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pieces: Vec<Piece>,
}

/// Signs of emphasis in the order in which they are opened.
const SIGNS: [&str; 4] = ["~~", "**", "*", "`"];

impl Style {
    fn signs(self) -> [bool; 4] {
        // Inside code no other sign would be one.
        let plain = !self.code;
        [self.strike && plain, self.bold && plain, self.italic && plain, self.code]
    }
}

impl Text {
    /// Adds a run; adjacent runs of the same formatting become one.
    pub(crate) fn push(&mut self, more: &str, style: Style, link: Option<&Rc<str>>) {
        if more.is_empty() {
            return;
        }
        let more = clean(more);
        if style.superscript
            && more.starts_with(|c: char| c.is_ascii_digit() || "+-−".contains(c))
            && self.last_char().is_some_and(char::is_alphanumeric)
            && !matches!(self.pieces.last(), Some(Piece::Run { style, .. }) if style.superscript)
        {
            // What a superscript number means is lost without a sign: 10^6, m^2.
            self.push("^", Style { superscript: false, ..style }, link);
        }
        match self.pieces.last_mut() {
            Some(Piece::Run { text, style: last, link: last_link })
                if *last == style && last_link.as_ref() == link =>
            {
                text.push_str(&more);
            }
            _ => self.pieces.push(Piece::Run { text: more.into_owned(), style, link: link.cloned() }),
        }
    }

    /// Ends a line.
    pub(crate) fn push_line_break(&mut self) {
        self.pieces.push(Piece::LineBreak);
    }

    /// Begins a page.
    pub(crate) fn push_page(&mut self, page: u32) {
        self.pieces.push(Piece::Page(page));
    }

    /// Goes on with another text.
    pub(crate) fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    fn last_char(&self) -> Option<char> {
        match self.pieces.last()? {
            Piece::Run { text, .. } => text.chars().next_back(),
            Piece::LineBreak | Piece::Page(_) => None,
        }
    }

    /// Whether nothing in it can be seen.
    pub(crate) fn is_blank(&self) -> bool {
        self.runs().all(|(text, _)| text.trim().is_empty())
    }

    /// Characters, white space included.
    pub(crate) fn chars(&self) -> usize {
        self.runs().map(|(text, _)| text.chars().count()).sum()
    }

    /// Whether it is code by its font alone. Whole sentences in such a font are somebody's taste.
    pub(crate) fn looks_like_code(&self) -> bool {
        if self.is_blank() || !self.runs().all(|(text, style)| style.code || text.trim().is_empty()) {
            return false;
        }
        let plain = self.plain();
        let is_prose = plain.ends_with(['.', '!', '?']) && plain.split(' ').count() >= PROSE_WORDS;
        !is_prose
    }

    /// Writes a box to tick at the beginning as Markdown does.
    pub(crate) fn tick(&mut self) {
        let first = self.pieces.iter_mut().find_map(|piece| match piece {
            Piece::Run { text, .. } if !text.trim().is_empty() => Some(text),
            _ => None,
        });
        let Some(text) = first else { return };
        let start = text.trim_start();
        let sign = match start.chars().next() {
            Some('☐' | '❏' | '❑') => UNCHECKED,
            Some('☑' | '☒') => CHECKED,
            _ => return,
        };
        let rest: String = start.chars().skip(1).collect();
        let space = if rest.is_empty() || rest.starts_with(char::is_whitespace) { "" } else { " " };
        *text = format!("{sign}{space}{rest}");
    }

    /// Whether the text begins with this word.
    pub(crate) fn starts_with(&self, word: &str) -> bool {
        self.runs()
            .find(|(text, _)| !text.trim().is_empty())
            .is_some_and(|(text, _)| text.trim_start().starts_with(word))
    }

    fn runs(&self) -> impl Iterator<Item = (&str, Style)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Run { text, style, .. } => Some((text.as_str(), *style)),
            Piece::LineBreak | Piece::Page(_) => None,
        })
    }

    /// The words alone, on one line.
    pub(crate) fn plain(&self) -> String {
        let mut plain = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Run { text, .. } => plain.push_str(text),
                Piece::LineBreak => plain.push(' '),
                Piece::Page(_) => {}
            }
        }
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The lines as they are, without formatting.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        for piece in &self.pieces {
            match (piece, lines.last_mut()) {
                (Piece::Run { text, .. }, Some(line)) => line.push_str(&text.replace('\n', " ")),
                (Piece::LineBreak, _) => lines.push(String::new()),
                _ => {}
            }
        }
        lines
    }

    /// The page that begins before the first word.
    pub(crate) fn begins_page(&self) -> Option<u32> {
        let before = self.pieces.iter().take_while(|piece| match piece {
            Piece::Run { text, .. } => text.trim().is_empty(),
            Piece::LineBreak | Piece::Page(_) => true,
        });
        before.filter_map(Piece::page).last()
    }

    /// Takes the page that begins before the first word out of it.
    pub(crate) fn take_first_page(&mut self) -> Option<u32> {
        let page = self.begins_page()?;
        let at = self.pieces.iter().position(|piece| match piece {
            Piece::Run { text, .. } => !text.trim().is_empty(),
            Piece::LineBreak | Piece::Page(_) => false,
        });
        self.pieces.drain(..at.unwrap_or(self.pieces.len()));
        Some(page)
    }

    /// The last page that begins in it.
    pub(crate) fn last_page(&self) -> Option<u32> {
        self.pieces.iter().rev().find_map(Piece::page)
    }

    /// Writes it with its formatting.
    pub(crate) fn write(&self, writer: &mut Writer) {
        let mut line = Line::default();
        let mut open_link: Option<&Rc<str>> = None;
        for piece in &self.pieces {
            match piece {
                Piece::Run { text, style, link } => {
                    if link.as_ref() != open_link {
                        line.close_link(open_link);
                        line.begin_link(link.is_some());
                        open_link = link.as_ref();
                    }
                    line.push(text, *style);
                }
                Piece::LineBreak => {
                    line.close_link(open_link.take());
                    writer.text(&line.take());
                    if writer.is_flat() {
                        writer.space();
                    } else {
                        writer.line();
                    }
                }
                Piece::Page(page) => {
                    line.close_link(open_link.take());
                    writer.text(&line.take());
                    writer.page(*page);
                }
            }
        }
        line.close_link(open_link);
        writer.text(&line.take());
    }
}

/// A line of Markdown in the making. Signs stand at words, not at spaces, or they would be no signs.
#[derive(Default)]
struct Line {
    out: String,
    /// Signs that are open, the innermost last.
    open: Vec<usize>,
    /// Length of `out` without trailing white space.
    visible: usize,
    /// Where the text of an open link begins.
    link_at: Option<usize>,
    /// Whether a link begins at the next word.
    owes_link: bool,
}

impl Line {
    fn push(&mut self, text: &str, style: Style) {
        let Some(first) = text.find(|c: char| !c.is_whitespace()) else {
            // Blanks take any formatting, so that `**a** **b**` does not fall apart.
            self.out.push_str(text);
            return;
        };
        let wanted = style.signs();
        self.close_unless(wanted);
        self.out.push_str(&text[..first]);
        if std::mem::take(&mut self.owes_link) {
            self.link_at = Some(self.out.len());
        }
        let text = &text[first..];
        for (sign, wanted) in wanted.into_iter().enumerate() {
            if wanted && !self.open.contains(&sign) {
                let sign_text = if SIGNS[sign] == "`" && text.contains('`') { "" } else { SIGNS[sign] };
                if !sign_text.is_empty() {
                    self.out.push_str(sign_text);
                    self.open.push(sign);
                }
            }
        }
        self.out.push_str(text);
        self.visible = self.out.trim_end().len();
    }

    /// Closes the signs that are not wanted, and those inside them.
    fn close_unless(&mut self, wanted: [bool; 4]) {
        let Some(keep) = self.open.iter().position(|sign| !wanted[*sign]) else { return };
        let blanks = self.out.split_off(self.visible);
        while self.open.len() > keep {
            let Some(sign) = self.open.pop() else { break };
            self.out.push_str(SIGNS[sign]);
        }
        self.visible = self.out.len();
        self.out.push_str(&blanks);
    }

    fn begin_link(&mut self, begins: bool) {
        if begins {
            self.close_unless([false; 4]);
        }
        self.owes_link = begins;
    }

    fn close_link(&mut self, link: Option<&Rc<str>>) {
        let (Some(link), Some(at)) = (link, self.link_at.take()) else { return };
        self.close_unless([false; 4]);
        let text = &self.out[at..self.visible];
        let address = address(link);
        if address.len() > MAX_LINK_BYTES || text.trim() == link.as_ref() || text.contains(['[', ']']) {
            return;
        }
        let blanks = self.out.split_off(self.visible);
        self.out.insert(at, '[');
        self.out.push_str("](");
        self.out.push_str(&address);
        self.out.push(')');
        self.visible = self.out.len();
        self.out.push_str(&blanks);
    }

    fn take(&mut self) -> String {
        self.close_unless([false; 4]);
        let line = std::mem::take(self);
        line.out
    }
}

/// An address as it may stand in a Markdown link.
fn address(link: &str) -> String {
    let mut address = String::with_capacity(link.len());
    for c in link.chars() {
        match c {
            ' ' => address.push_str("%20"),
            '(' => address.push_str("%28"),
            ')' => address.push_str("%29"),
            '<' => address.push_str("%3C"),
            '>' => address.push_str("%3E"),
            _ if c.is_whitespace() || c.is_control() => {}
            _ => address.push(c),
        }
    }
    address
}

/// A link's address, if it leads somewhere outside of the document that a reader can go to.
pub(crate) fn link_to(address: &str) -> Option<Rc<str>> {
    let scheme = address.trim().split_once(':')?.0.to_ascii_lowercase();
    matches!(scheme.as_str(), "http" | "https" | "mailto" | "ftp" | "tel").then(|| Rc::from(address.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(runs: &[(&str, &str, &str)]) -> String {
        let mut text = Text::default();
        for (run, style, link) in runs {
            let style = Style {
                bold: style.contains('b'),
                italic: style.contains('i'),
                strike: style.contains('s'),
                code: style.contains('c'),
                superscript: style.contains('^'),
            };
            text.push(run, style, link_to(link).as_ref());
        }
        let mut writer = Writer::new();
        text.write(&mut writer);
        writer.finish().unwrap_or_default().0.trim_end().to_owned()
    }

    #[test]
    fn signs_stand_at_words_and_close_in_order() {
        type Runs<'a> = &'a [(&'a str, &'a str, &'a str)];
        let cases: &[(Runs<'_>, &str)] = &[
            (&[("a ", "", ""), ("bold ", "b", ""), ("c", "", "")], "a **bold** c"),
            (&[("a", "b", ""), (" ", "", ""), ("b", "b", "")], "**a b**"),
            (&[("a ", "b", ""), ("b", "bi", ""), (" c", "b", "")], "**a *b* c**"),
            (&[("a", "b", ""), ("b", "i", "")], "**a***b*"),
            (&[("x", "s", ""), (" y()", "c", ""), (".", "", "")], "~~x~~ `y()`."),
            (&[("bold code", "bc", "")], "`bold code`"),
            (&[("a`b", "c", "")], "a`b"),
            (&[(" ", "b", ""), ("x", "", "")], "x"),
            (&[("x", "", ""), ("2", "^", ""), (" 1", "", ""), ("st", "^", "")], "x^2 1st"),
            (
                &[("see ", "", ""), ("the site ", "b", "http://x.y/a b(c)"), ("now", "", "")],
                "see [**the site**](http://x.y/a%20b%28c%29) now",
            ),
            (&[("http://x.y", "", "http://x.y")], "http://x.y"),
            (&[("a", "b", "http://x.y"), ("b", "b", "")], "[**a**](http://x.y)**b**"),
            (&[("local", "", "file:///etc")], "local"),
        ];
        for (runs, expected) in cases {
            assert_eq!(markdown(runs), *expected, "{runs:?}");
        }
    }
}
