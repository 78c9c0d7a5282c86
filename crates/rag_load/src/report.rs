//! What the run came to: counts, and the failures with their reasons.

use std::io::Write;
use std::path::Path;

/// Counts and failures.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Sent, because they were new or had changed.
    pub(crate) loaded: usize,
    pub(crate) loaded_bytes: u64,
    /// There already, with the same bytes.
    pub(crate) unchanged: usize,
    pub(crate) empty: usize,
    /// Left out, because no parser reads them.
    pub(crate) unsupported: usize,
    /// Symbolic links that were not followed.
    pub(crate) links: usize,
    /// Not sent, because the program was interrupted.
    pub(crate) left_out: usize,
    /// Sent, and not processed when the program ended.
    pub(crate) left_to_the_server: usize,
    /// Of those that were sent, the ones that the server has done.
    pub(crate) processed: usize,
    failures: Vec<(String, String)>,
    timed_out: bool,
}

impl Report {
    /// A file failed.
    pub(crate) fn fail(&mut self, path: &Path, reason: impl Into<String>) {
        self.failures.push((path.display().to_string(), reason.into()));
    }

    /// The patience ended before the server's work.
    pub(crate) fn time_out(&mut self, left: usize) {
        self.left_to_the_server = left;
        self.timed_out = true;
    }

    /// Whether something that was wanted did not happen.
    pub(crate) fn has_failures(&self) -> bool {
        !self.failures.is_empty() || self.timed_out
    }

    /// Prints the counts to stdout and the failures to stderr; no counts where the run ended before there was anything.
    pub(crate) fn print(&self, was_cut_short: bool) {
        if !self.failures.is_empty() {
            let mut text = format!("\n{} failed:\n", self.failures.len());
            for (path, reason) in &self.failures {
                text.push_str(&format!("  {path}\n    {reason}\n"));
            }
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        let summary = self.summary(was_cut_short);
        if !summary.is_empty() {
            let _ = writeln!(std::io::stdout(), "{summary}");
        }
    }

    fn summary(&self, was_cut_short: bool) -> String {
        let mut parts = Vec::new();
        // Beside an error "0 loaded" would read like a result.
        if self.loaded > 0 || !(was_cut_short || self.has_failures()) {
            parts.push(format!("{} loaded ({})", self.loaded, indicatif::BinaryBytes(self.loaded_bytes)));
        }
        for (count, what) in [
            (self.processed, "processed"),
            (self.unchanged, "unchanged"),
            (self.empty, "empty, skipped"),
            (self.unsupported, "unsupported, skipped"),
            (self.links, "links, not followed"),
            (self.failures.len(), "failed"),
            (self.left_out, "left out"),
            (self.left_to_the_server, "still being processed by the server"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join(" · ")
    }
}

/// One line on stderr.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "rag-load: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_only_what_there_was() {
        let mut report = Report { loaded: 2, loaded_bytes: 2048, ..Report::default() };
        assert_eq!(report.summary(false), "2 loaded (2.00 KiB)");
        assert!(!report.has_failures());
        report.fail(Path::new("a"), "why");
        report.empty = 1;
        assert_eq!(report.summary(false), "2 loaded (2.00 KiB) · 1 empty, skipped · 1 failed");
        assert!(report.has_failures());
        report.loaded = 0;
        assert_eq!(report.summary(false), "1 empty, skipped · 1 failed");
        assert_eq!(Report::default().summary(false), "0 loaded (0 B)");
        assert_eq!(Report::default().summary(true), "");
    }
}
