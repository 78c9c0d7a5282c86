//! The files, and what another parser made of each.

use crate::reading::Reading;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the other parser's results.
const REFERENCES: &str = "groundtruth";

/// One file to be parsed.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Its folder's name, such as `docx`.
    pub(crate) format: String,
    /// Where it lies.
    pub(crate) path: PathBuf,
}

/// All files of all formats, in order. Images that lie beside a page are not documents.
pub(crate) fn all(folder: &Path) -> Vec<Sample> {
    let mut samples = Vec::new();
    for format in entries(folder).into_iter().filter(|path| path.is_dir() && !path.ends_with(REFERENCES)) {
        let name = format.file_name().unwrap().to_str().unwrap().to_owned();
        let is_document = |path: &PathBuf| path.extension().is_some_and(|extension| extension == &name[..]);
        samples.extend(
            entries(&format)
                .into_iter()
                .filter(is_document)
                .map(|path| Sample { format: name.clone(), path }),
        );
    }
    samples
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

impl Sample {
    /// Format and file name.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.format, self.file_name())
    }

    /// The media type that goes with the name, for formats without a signature.
    pub(crate) fn media_type_of_name(&self) -> Option<&'static str> {
        match &self.format[..] {
            "md" => Some("text/markdown"),
            "csv" => Some("text/csv"),
            _ => None,
        }
    }

    /// Whether its reference is plain text without structure.
    pub(crate) fn is_pdf(&self) -> bool {
        self.format == "pdf"
    }

    /// What the other parser found, if there is its result.
    pub(crate) fn reference(&self) -> Option<Reading> {
        if self.is_pdf() {
            return Some(Reading::of_pages(&pdftotext(&self.path)));
        }
        let name = format!("{}__{}.md", self.format, self.file_name());
        let path = self.path.parent().unwrap().with_file_name(REFERENCES).join(name);
        fs::read_to_string(path).ok().map(|markdown| Reading::of_markdown(&markdown))
    }

    fn file_name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }
}

/// The text of a PDF in reading order, by poppler.
fn pdftotext(path: &Path) -> String {
    let output = Command::new("pdftotext").args(["-enc", "UTF-8", "-nopgbrk"]).arg(path).arg("-").output();
    let output = output.expect("pdftotext of the package poppler-utils");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
