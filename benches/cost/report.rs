//! The table: what was measured, beside what, and whether the ratio is what it should be.

use rag_benches::Table;

/// One line of the table.
pub(crate) struct Line {
    /// What is measured.
    pub(crate) what: String,
    /// Its figure.
    pub(crate) found: String,
    /// What it is compared with, with its figure; empty if with nothing.
    pub(crate) beside: String,
    /// The ratio or difference that counts.
    pub(crate) ratio: String,
    /// The target; empty if none is set.
    pub(crate) target: String,
    /// Whether it is reached, if there is one.
    pub(crate) reached: Option<bool>,
}

/// Lines, in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Report(Vec<Line>);

impl Report {
    /// Adds a line, and shows it at once: the rest may take minutes.
    pub(crate) fn add(&mut self, line: Line) {
        eprintln!("{}: {} | {} | {} {}", line.what, line.found, line.beside, line.ratio, line.target);
        self.0.push(line);
    }

    /// Adds a figure without a target.
    pub(crate) fn note(
        &mut self,
        what: impl Into<String>,
        found: impl Into<String>,
        beside: impl Into<String>,
    ) {
        self.add(Line {
            what: what.into(),
            found: found.into(),
            beside: beside.into(),
            ratio: String::new(),
            target: String::new(),
            reached: None,
        });
    }

    /// Prints the table.
    pub(crate) fn print(self) {
        let mut table = Table::new(&["what", "found", "beside", "ratio", "target", ""]);
        for line in self.0 {
            let verdict = match line.reached {
                Some(true) => "ok",
                Some(false) => "MISS",
                None => "",
            };
            table.row([line.what, line.found, line.beside, line.ratio, line.target, verdict.to_owned()]);
        }
        table.print();
    }
}
