//! What a written answer is made of: sentences, code and tables, each of which is borne out as a whole or not, and what stands
//! between them.

use super::cite::marked_sentences;
use crate::sentence::{LineKind, lines, trimmed};
use std::ops::Range;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its place; without markers that stand behind its end.
    pub bytes: Range<usize>,
    /// Numbers of the passages that it cites, each once. Code and tables without any have those of what leads to them.
    pub numbers: Vec<usize>,
    /// What it is.
    pub kind: UnitKind,
    /// What stands before it.
    pub gap: Gap,
}

/// What a part of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// A sentence, a heading, or an item of a list.
    Sentence,
    /// A fenced block, fences and all.
    Code,
    /// Rows that follow each other.
    Table,
}

/// What stands between two parts: of several, the last of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// They are of one paragraph.
    Blank,
    /// The second begins a line.
    Line,
    /// It begins a block.
    Paragraph,
}

impl Gap {
    /// The white space that it is written as.
    pub fn text(self) -> &'static str {
        match self {
            Self::Blank => " ",
            Self::Line => "\n",
            Self::Paragraph => "\n\n",
        }
    }
}

/// The parts of an answer, in order.
pub fn units(answer: &str) -> Vec<Unit> {
    let lines: Vec<_> = lines(answer).collect();
    let kind_at = |at: usize| {
        let line = lines.partition_point(|line| line.next <= at);
        lines.get(line).map_or(LineKind::Prose, |line| line.kind)
    };
    let mut units: Vec<Unit> = Vec::new();
    let mut end = 0;
    for (bytes, numbers) in marked_sentences(answer) {
        let line = kind_at(bytes.start);
        let kind = match line {
            LineKind::Fence | LineKind::Code => UnitKind::Code,
            LineKind::TableRow => UnitKind::Table,
            _ => UnitKind::Sentence,
        };
        let breaks = answer[end..bytes.start].matches('\n').count();
        end = bytes.end;
        match units.last_mut() {
            // A blank line in a block of code is code.
            Some(last)
                if kind != UnitKind::Sentence
                    && last.kind == kind
                    && (breaks < 2 || kind_at(last.bytes.end + 1) == LineKind::Code) =>
            {
                last.bytes.end = bytes.end;
                let new = numbers.into_iter().filter(|number| !last.numbers.contains(number));
                last.numbers.extend(new.collect::<Vec<_>>());
            }
            last => {
                let is_after_block = last.is_some_and(|last| last.kind != UnitKind::Sentence);
                let gap = match breaks {
                    _ if kind != UnitKind::Sentence || is_after_block => Gap::Paragraph,
                    0 => Gap::Blank,
                    1 if !matches!(line, LineKind::ListItem | LineKind::Heading) => Gap::Blank,
                    1 => Gap::Line,
                    _ => Gap::Paragraph,
                };
                units.push(Unit { bytes, numbers, kind, gap });
            }
        }
    }
    for at in 1..units.len() {
        if units[at].kind != UnitKind::Sentence && units[at].numbers.is_empty() {
            units[at].numbers = units[at - 1].numbers.clone();
        }
    }
    units
}

/// Where a passage has the lines of a block of code, one behind the other; blank lines and indentation do not count, nor does what a
/// prompt of a shell puts before the first word. None if it lacks one of them, or the block has none.
pub fn code_in(block: &str, passage: &str) -> Option<Range<usize>> {
    let wanted: Vec<&str> = lines(block)
        .filter(|line| line.kind == LineKind::Code)
        .map(|line| block[line.bytes].trim())
        .filter(|line| !line.is_empty())
        .collect();
    let (first, more) = wanted.split_first()?;
    let all: Vec<Range<usize>> =
        lines(passage).map(|line| trimmed(passage, line.bytes)).filter(|line| !line.is_empty()).collect();
    let has = |line: &Range<usize>, wanted: &str| {
        passage[line.clone()]
            .strip_suffix(wanted)
            .is_some_and(|prompt| prompt.is_empty() || prompt.ends_with([' ', '>', '#', '$']))
    };
    (0..all.len()).find_map(|at| {
        let rest = all.get(at + 1..=at + more.len())?;
        let is_here = has(&all[at], first) && rest.iter().zip(more).all(|(line, wanted)| has(line, wanted));
        let last = rest.last().unwrap_or(&all[at]);
        is_here.then(|| all[at].end - first.len()..last.end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_tables_are_one_part_each_and_keep_their_lines() {
        let answer = "Use this: [1]\n\n```sql\nSELECT 1;\n\nSELECT 2;\n```\n\nIt has two modes. [2] They are:\n- fast [1]\n- slow [2]\n\n| a | b |\n|---|---|\n| 1 | 2 | [3]\n\nThe\nend. [3]";
        let found: Vec<(&str, Vec<usize>, Gap)> =
            units(answer).into_iter().map(|unit| (&answer[unit.bytes], unit.numbers, unit.gap)).collect();
        assert_eq!(
            found,
            [
                ("Use this:", vec![1], Gap::Blank),
                ("```sql\nSELECT 1;\n\nSELECT 2;\n```", vec![1], Gap::Paragraph),
                ("It has two modes.", vec![2], Gap::Paragraph),
                ("They are:", vec![], Gap::Blank),
                ("- fast", vec![1], Gap::Line),
                ("- slow", vec![2], Gap::Line),
                ("| a | b |\n|---|---|\n| 1 | 2 |", vec![3], Gap::Paragraph),
                ("The\nend.", vec![3], Gap::Paragraph),
            ]
        );
        assert!(units("").is_empty());
    }

    #[test]
    fn code_is_found_line_by_line() {
        let passage =
            "Do it:\n\n    postgres=# SELECT pg_backup_start('x');\n\n    SELECT pg_backup_stop();\nDone.";
        let found = |block: &str| code_in(block, passage).map(|bytes| &passage[bytes]);
        assert_eq!(
            found("```sql\nSELECT pg_backup_start('x');\nSELECT pg_backup_stop();\n```"),
            Some("SELECT pg_backup_start('x');\n\n    SELECT pg_backup_stop();")
        );
        assert_eq!(found("```\nSELECT pg_backup_stop();\n```"), Some("SELECT pg_backup_stop();"));
        for block in ["```\nSELECT pg_backup_stop();\nDROP TABLE x;\n```", "```\n```", "", "```\nop();\n```"]
        {
            assert_eq!(found(block), None, "{block}");
        }
    }
}
