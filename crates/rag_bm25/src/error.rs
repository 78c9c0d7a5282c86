//! What can go wrong with a blob. Queries never fail: anything a user types is a query.

use crate::Language;

/// Why a blob could not be built, opened, searched or merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a blob made by [`crate::build`], or are damaged or cut.
    #[error("keyword segment is damaged: {0}")]
    Corrupt(String),
    /// The layout belongs to another version of this crate: build the segment again.
    #[error("keyword segment has format version {found}, this build reads version {expected}")]
    FormatVersion {
        /// The version that the blob names.
        found: u32,
        /// [`crate::FORMAT_VERSION`].
        expected: u32,
    },
    /// The segments to be merged were analysed by different versions: build the older ones again.
    #[error("keyword segments have analyser versions {found} and {expected}")]
    AnalyserVersion {
        /// The version of the segment that differs.
        found: u32,
        /// The version of the first segment.
        expected: u32,
    },
    /// A segment's language is not the query's, or not that of the segments it is to be merged with.
    #[error("keyword segment is in {}, expected {}", found.name(), expected.name())]
    LanguageMismatch {
        /// The language of the segment that differs.
        found: Language,
        /// The language of the query, or of the first segment.
        expected: Language,
    },
    /// Whoever waits wants no more of it.
    #[error("keyword index: interrupted")]
    Interrupted,
    /// A file of [`crate::merge_in`] could not be written or read.
    #[error("files of a keyword segment that is being made: {0}")]
    File(std::io::Error),
    /// More entries than one segment can hold, or tantivy refused.
    #[error("keyword index: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Corrupt(error.to_string())
    }
}
