//! Sums over exactly the segments that a caller may see.

use crate::Segment;
use crate::index::{FIELDS, TEXT, TITLE};

/// What BM25 knows about the collection as a whole. Dead entries count until they are merged away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Entries.
    pub documents: u64,
    /// Terms in titles that are kept apart.
    pub title_tokens: u64,
    /// Terms in all texts.
    pub text_tokens: u64,
}

/// Sums the statistics of segments. Exact, so it does not matter how entries are spread over segments.
pub fn statistics(segments: &[Segment]) -> Statistics {
    segments.iter().fold(Statistics::default(), |sum, segment| {
        let tokens = segment.tokens();
        Statistics {
            documents: sum.documents + u64::from(segment.len()),
            title_tokens: sum.title_tokens + tokens[TITLE],
            text_tokens: sum.text_tokens + tokens[TEXT],
        }
    })
}

impl Statistics {
    /// The average length of each field in terms; 0 where there are no entries.
    pub(crate) fn average_lengths(&self) -> [f32; FIELDS] {
        let average =
            |tokens: u64| if self.documents == 0 { 0.0 } else { tokens as f32 / self.documents as f32 };
        let mut averages = [0.0; FIELDS];
        averages[TEXT] = average(self.text_tokens);
        averages[TITLE] = average(self.title_tokens);
        averages
    }
}
