//! Where a text can be cut: blocks, items, sentences, lines; and its tables.

use super::grapheme::is_grapheme_border;
use super::is_delimiter_row;
use crate::sentence::{LineKind, SentenceLanguage, lines, sentences_in, trimmed};
use std::ops::Range;

/// Where a section can be cut, from the coarsest level to the finest that is found beforehand.
pub(super) struct Borders {
    /// Blocks; items, rows and code lines; sentences; lines.
    pub(super) levels: [Level; 4],
    /// Starts of tables and code blocks, which are kept whole where they fit.
    whole: Vec<usize>,
    /// Tables in order.
    pub(super) tables: Vec<Table>,
    /// Starts of blocks that are list items, in order.
    list_blocks: Vec<usize>,
    /// Headings up to where their text begins.
    headings: Vec<Range<usize>>,
}

/// One way of cutting.
pub(super) struct Level {
    /// Rising; each level has the borders of the level before.
    pub(super) starts: Vec<usize>,
    /// Whether a border is taken even if it leaves a piece nearly empty.
    pub(super) may_leave_little: bool,
}

/// A table with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// Where its first row begins; the same as the body where that goes on from before the text.
    pub(super) start: usize,
    /// Its rows without the header.
    pub(super) body: Range<usize>,
    /// Header row and delimiter row.
    pub(super) header: String,
}

impl Borders {
    /// The borders of a text. Where the text begins within a table, `inherited` is that table's header.
    pub(super) fn of(text: &str, language: SentenceLanguage, inherited: Option<&str>) -> Self {
        let sentence_starts: Vec<usize> = sentences_in(text, language)
            .into_iter()
            .map(|range| range.start)
            .filter(|at| is_grapheme_border(text, *at))
            .collect();
        let mut blocks = Vec::new();
        let mut items = Vec::new();
        let mut any_line = Vec::new();
        let mut whole = Vec::new();
        let mut list_blocks = Vec::new();
        let mut tables = Tables { text, inherited, found: Vec::new(), open: Vec::new() };
        let mut before = LineKind::Blank;
        let mut in_code = false;
        let mut headings = Vec::new();
        let mut heading: Option<usize> = None;
        for line in lines(text) {
            let kind = line.kind;
            let at = line.bytes.start;
            let opens_code = kind == LineKind::Fence && !in_code;
            let opens_table = kind == LineKind::TableRow && before != LineKind::TableRow;
            if opens_code || opens_table {
                whole.push(at);
            }
            let leaves_table = before == LineKind::TableRow && kind != LineKind::TableRow;
            let leaves_code = before == LineKind::Fence && !in_code;
            let opens_block =
                before == LineKind::Blank || kind == LineKind::Heading || leaves_table || leaves_code;
            if kind == LineKind::TableRow {
                tables.open.push(line.bytes.clone());
            } else {
                tables.close();
            }
            if kind == LineKind::Heading {
                heading.get_or_insert(at);
            } else if kind != LineKind::Blank
                && let Some(start) = heading.take()
            {
                headings.push(start..at);
            }
            if kind != LineKind::Blank {
                if opens_code || opens_table || (opens_block && !in_code) {
                    blocks.push(at);
                    if kind == LineKind::ListItem {
                        list_blocks.push(at);
                    }
                }
                any_line.push(at);
                if kind != LineKind::Prose {
                    items.push(at);
                }
            }
            if kind == LineKind::Fence {
                in_code = !in_code;
            }
            before = kind;
        }
        tables.close();
        // A line of prose counts with the items where a sentence begins on it: a hard-wrapped line does not.
        items.extend(any_line.iter().filter(|line| {
            let visible = **line + text[**line..].len() - text[**line..].trim_start().len();
            sentence_starts.binary_search(&visible).is_ok()
        }));
        let items = joined(&blocks, &items);
        let sentences = joined(&items, &sentence_starts);
        let any_line = joined(&sentences, &any_line);
        Self {
            levels: [
                Level { starts: blocks, may_leave_little: false },
                Level { starts: items, may_leave_little: true },
                Level { starts: sentences, may_leave_little: true },
                Level { starts: any_line, may_leave_little: true },
            ],
            whole,
            tables: tables.found,
            list_blocks,
            headings,
        }
    }

    /// Starts of blocks: paragraphs, tables, lists, code blocks, headings.
    pub(super) fn blocks(&self) -> &[usize] {
        &self.levels[0].starts
    }

    /// Starts of items, table rows and code lines, and of blocks.
    pub(super) fn items(&self) -> &[usize] {
        &self.levels[1].starts
    }

    /// Starts of sentences, and of all that is coarser.
    pub(super) fn sentences(&self) -> &[usize] {
        &self.levels[2].starts
    }

    /// Starts of lines, and of all that is coarser.
    pub(super) fn lines(&self) -> &[usize] {
        &self.levels[3].starts
    }

    /// Whether a table or a code block begins here.
    pub(super) fn is_kept_whole(&self, start: usize) -> bool {
        self.whole.binary_search(&start).is_ok()
    }

    /// Whether the block that begins here is a list item.
    pub(super) fn is_list_item(&self, start: usize) -> bool {
        self.list_blocks.binary_search(&start).is_ok()
    }

    /// The heading, or the start of the table, that a border would part from what it is about.
    pub(super) fn headed_by(&self, border: usize) -> Option<usize> {
        let after = self.headings.partition_point(|heading| heading.start < border);
        let heading = self.headings[..after].last().filter(|heading| border <= heading.end);
        let after = self.tables.partition_point(|table| table.start < border);
        let table = self.tables[..after].last().filter(|table| border <= table.body.start);
        heading.map(|heading| heading.start).or_else(|| table.map(|table| table.start))
    }

    /// The table whose rows a place is among.
    pub(super) fn table_around(&self, at: usize) -> Option<&Table> {
        let after = self.tables.partition_point(|table| table.body.start <= at);
        self.tables[..after].last().filter(|table| at < table.body.end)
    }
}

/// Tables being collected.
struct Tables<'a> {
    text: &'a str,
    inherited: Option<&'a str>,
    found: Vec<Table>,
    /// Rows of the one being read.
    open: Vec<Range<usize>>,
}

impl Tables<'_> {
    fn close(&mut self) {
        let rows = std::mem::take(&mut self.open);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
        // The text begins with these rows if nothing visible stands before them.
        let goes_on = self.text[..first.start].trim().is_empty();
        let delimiter = rows.get(1).filter(|row| is_delimiter_row(&self.text[(*row).clone()]));
        if let Some(delimiter) = delimiter {
            if let Some(third) = rows.get(2) {
                let header = self.text[trimmed(self.text, first.start..delimiter.end)].to_owned();
                self.found.push(Table { start: first.start, body: third.start..last.end, header });
            }
        } else if goes_on && let Some(header) = self.inherited {
            self.found.push(Table {
                start: first.start,
                body: first.start..last.end,
                header: header.to_owned(),
            });
        }
    }
}

fn joined(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut all: Vec<usize> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}
