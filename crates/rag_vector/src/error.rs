//! What can go wrong with a blob.

/// Why codes could not be opened or searched.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes were not made by [`crate::Encoder`], or are damaged or cut.
    #[error("vector codes are damaged: {0}")]
    Corrupt(String),
    /// The layout belongs to another version of this crate: encode the vectors again.
    #[error("vector codes have format version {found}, this build reads version {expected}")]
    FormatVersion {
        /// The version that the blob names.
        found: u32,
        /// [`crate::FORMAT_VERSION`].
        expected: u32,
    },
    /// Vectors of different models.
    #[error("vector codes have {found} dimensions, the query has {expected}")]
    Dimension {
        /// Of the codes.
        found: usize,
        /// Of the query.
        expected: usize,
    },
    /// Whoever waits wants no more of it.
    #[error("vector codes: interrupted")]
    Interrupted,
}
