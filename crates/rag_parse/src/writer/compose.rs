//! Documents made of others: text that is Markdown already, and plain text.

use super::{Writer, poses_as_block};
use rag_core::document::Heading;

impl Writer {
    /// Lines of plain text as a paragraph; none that could be taken for markup of blocks.
    pub(crate) fn paragraph(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let poses = |line: &str| line.split_whitespace().next().is_some_and(poses_as_block);
        let escaped: Vec<String> = lines
            .iter()
            .map(|line| if poses(line) { format!("\\{}", line.trim_start()) } else { line.clone() })
            .collect();
        self.lines(escaped.iter().map(String::as_str));
    }

    /// A document's Markdown with its headings, which become `deeper` by so many levels.
    pub(crate) fn markdown(&mut self, text: &str, headings: &[Heading], deeper: u8) {
        let mut end = 0;
        for heading in headings {
            self.blocks(&text[end..heading.bytes.start]);
            self.heading(heading.level.saturating_add(deeper).min(6), heading.title.clone());
            end = heading.bytes.end;
        }
        self.blocks(&text[end..]);
    }

    fn blocks(&mut self, text: &str) {
        let text = text.trim_end().trim_start_matches(['\n', '\r']);
        if !text.is_empty() {
            self.lines(text.lines());
        }
    }
}
