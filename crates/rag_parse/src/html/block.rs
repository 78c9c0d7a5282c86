//! Headings, lists, code and tables: what their elements begin and end.

use super::super::dom::NodeId;
use super::super::table::{Rendered, Table};
use super::{List, Open, Page, element};

impl Page<'_> {
    pub(crate) fn begin_heading(&mut self, name: &str) -> Open {
        let level = name.as_bytes()[1] - b'0';
        if self.asides > 0 || self.writer.is_flat() {
            self.writer.block();
            return Open::Label;
        }
        self.writer.structure();
        self.writer.begin_flat(true);
        Open::Heading(level)
    }

    pub(crate) fn begin_list(&mut self, id: NodeId, name: &str) -> Open {
        if self.lists.is_empty() {
            self.writer.structure();
        } else {
            self.writer.structure_line();
        }
        let number = (name == "ol").then(|| {
            self.dom.attribute(id, "start").and_then(|start| start.trim().parse().ok()).unwrap_or(1)
        });
        let count =
            |wanted| self.dom.children(id).filter(|child| self.dom.name(*child) == Some(wanted)).count();
        let terms_stand_alone = name == "dl" && count("dd") * 2 < count("dt");
        self.lists.push(List {
            number,
            is_empty: true,
            has_open_item: false,
            has_open_term: false,
            terms_stand_alone,
        });
        self.asides += 1;
        Open::List
    }

    pub(crate) fn begin_item(&mut self) -> Open {
        let Some(list) = self.lists.last_mut() else {
            self.writer.block();
            return Open::Block;
        };
        if std::mem::take(&mut list.has_open_item) {
            self.writer.end_item();
        }
        list.has_open_term = false;
        let marker = match &mut list.number {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            None => "- ".to_owned(),
        };
        self.writer.item(marker, std::mem::take(&mut list.is_empty));
        Open::Item
    }

    /// A term opens an item, which its definitions continue; terms in a row share one.
    pub(crate) fn begin_term(&mut self) -> Open {
        match self.lists.last_mut() {
            Some(list) if list.has_open_term && !list.terms_stand_alone => {
                self.writer.explained();
                self.writer.next_term();
            }
            Some(list) => {
                if std::mem::replace(&mut list.has_open_item, true) {
                    self.writer.end_item();
                }
                self.writer.item("- ".to_owned(), std::mem::take(&mut list.is_empty));
                list.has_open_term = true;
            }
            None => {
                self.writer.block();
                return Open::Label;
            }
        }
        self.in_term = true;
        Open::Term
    }

    pub(crate) fn begin_definition(&mut self) -> Open {
        match self.lists.last_mut() {
            Some(list) if list.has_open_item => list.has_open_term = false,
            // A definition without term is an item of its own.
            Some(list) => {
                list.has_open_item = true;
                self.writer.item("- ".to_owned(), std::mem::take(&mut list.is_empty));
            }
            None => self.writer.block(),
        }
        Open::Definition
    }

    pub(crate) fn begin_superscript(&mut self, id: NodeId) {
        let exponent = self.dom.text_below(id, 16);
        let is_exponent = exponent.chars().all(|c| c.is_ascii_alphanumeric() || "+-−".contains(c));
        if !exponent.is_empty() && is_exponent && self.writer.last_char().is_some_and(char::is_alphanumeric) {
            self.writer.word("^");
        }
    }

    pub(crate) fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        if code.starts_with(char::is_whitespace) {
            self.writer.space();
        }
        let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            return;
        }
        if self.writer.is_heading() {
            self.writer.word(&words);
        } else {
            let fence = "`".repeat(longest_run(&words, '`') + 1);
            let pad = if words.starts_with('`') || words.ends_with('`') { " " } else { "" };
            self.writer.word(&format!("{fence}{pad}{words}{pad}{fence}"));
        }
        if code.ends_with(char::is_whitespace) {
            self.writer.space();
        }
    }

    pub(crate) fn end_preformatted(&mut self, id: NodeId) {
        let code = self.preformatted.take().unwrap_or_default();
        if self.writer.is_flat() {
            self.code = Some(code);
            self.writer.block();
            self.end_code();
            self.writer.block();
            return;
        }
        let code = code.trim_end().trim_start_matches(['\n', '\r']);
        if code.is_empty() {
            return;
        }
        let fence = "`".repeat(longest_run(code, '`').max(2) + 1);
        let opening = format!("{fence}{}", self.language(id).unwrap_or_default());
        let lines = code.lines().map(str::trim_end);
        self.writer.lines(std::iter::once(opening.as_str()).chain(lines).chain([fence.as_str()]));
    }

    /// The language that a code block's class, or that of the `code` inside, names.
    pub(crate) fn language(&self, id: NodeId) -> Option<&str> {
        let inner = self.dom.children(id).find(|child| self.dom.name(*child) == Some("code"));
        [Some(id), inner].into_iter().flatten().find_map(|id| {
            let language = element::classes(self.dom, id)
                .find_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")))?;
            language.chars().all(|c| c.is_ascii_alphanumeric() || "+#-".contains(c)).then_some(language)
        })
    }

    pub(crate) fn begin_table(&mut self, id: NodeId) -> Open {
        self.writer.structure();
        // A table where only a line fits (in a heading, say) is running text.
        let is_data = !self.layout_tables.contains(&id) && !self.writer.is_flat();
        self.tables.push(is_data.then(Table::default));
        Open::Table
    }

    pub(crate) fn begin_table_part(&mut self, name: &str) -> Open {
        let in_data = matches!(self.tables.last(), Some(Some(_)));
        if !in_data || self.writer.is_flat() {
            self.writer.block();
            return Open::Block;
        }
        match name {
            "thead" => {
                self.table(|table| table.set_head(true));
                Open::Head
            }
            "tr" => {
                self.table(Table::begin_row);
                Open::Row
            }
            "td" | "th" => {
                self.writer.begin_flat(false);
                Open::Cell
            }
            "caption" => {
                self.writer.begin_flat(false);
                Open::Caption
            }
            _ => Open::Nothing,
        }
    }

    pub(crate) fn end_cell(&mut self, id: NodeId) {
        let text = self.writer.end_flat();
        let span =
            |name| self.dom.attribute(id, name).and_then(|value| value.trim().parse().ok()).unwrap_or(1);
        let (columns, rows) = (span("colspan"), span("rowspan"));
        let is_header = self.dom.name(id) == Some("th");
        self.table(|table| table.add_cell(text, is_header, columns, rows));
    }

    pub(crate) fn end_table(&mut self) {
        match self.tables.pop().flatten().map(Table::render) {
            Some(Rendered::Lines(lines)) => self.writer.lines(lines.iter().map(String::as_str)),
            Some(Rendered::Paragraphs(paragraphs)) => {
                for paragraph in paragraphs {
                    self.writer.block();
                    self.writer.text(&paragraph);
                }
            }
            None => {}
        }
        self.writer.block();
    }

    pub(crate) fn table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(Some(table)) = self.tables.last_mut() {
            change(table);
        }
    }
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or_default()
}
