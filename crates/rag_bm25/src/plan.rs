//! A query's terms looked up in the segments, and what they weigh there.

use tantivy::postings::TermInfo;

use crate::index::{FIELDS, TEXT, TITLE};
use crate::interrupt::{GoesOn, check};
use crate::statistics::statistics;
use crate::weight::{Norms, Weight};
use crate::{Error, Query, Segment};

/// What a term counts that was added to a query, against one that was typed.
const ADDED: f32 = 0.02;

/// Everything that a search knows before it reads postings.
pub(crate) struct Plan<'a> {
    pub(crate) query: &'a Query,
    pub(crate) segments: &'a [Segment],
    pub(crate) norms: Norms,
    /// Asked for each segment and each window of entries.
    pub(crate) goes_on: GoesOn,
    /// Terms found, by segment; those of segment `s` are `found[starts[s]..starts[s + 1]]`.
    found: Vec<Found>,
    starts: Vec<usize>,
    /// How many entries have each of the query's terms in each field.
    frequencies: Vec<[u64; FIELDS]>,
}

/// A term of the query that a field of a segment has.
pub(crate) struct Found {
    /// Index into the query's terms; rises within a segment.
    pub(crate) term: usize,
    pub(crate) field: usize,
    pub(crate) info: TermInfo,
}

impl<'a> Plan<'a> {
    /// Looks the terms up. Cost is segments × terms.
    pub(crate) fn new(segments: &'a [Segment], query: &'a Query, goes_on: GoesOn) -> Result<Plan<'a>, Error> {
        let mut found = Vec::new();
        let mut starts = Vec::with_capacity(segments.len() + 1);
        let mut frequencies = vec![[0; FIELDS]; query.terms.len()];
        for segment in segments {
            check(goes_on)?;
            if segment.language() != query.language {
                return Err(Error::LanguageMismatch { found: segment.language(), expected: query.language });
            }
            starts.push(found.len());
            for (term, wanted) in query.terms.iter().enumerate() {
                for field in [TEXT, TITLE] {
                    if segment.tokens()[field] == 0 {
                        continue;
                    }
                    if let Some(info) = segment.field(field).index.terms().get(&wanted.text)? {
                        frequencies[term][field] += u64::from(info.doc_freq);
                        found.push(Found { term, field, info });
                    }
                }
            }
        }
        starts.push(found.len());
        let norms = Norms::new(&statistics(segments));
        Ok(Plan { query, segments, norms, goes_on, found, starts, frequencies })
    }

    /// An error once somebody wants the search to end.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check(self.goes_on)
    }

    /// The terms that a segment has.
    pub(crate) fn found_in(&self, segment: usize) -> &[Found] {
        &self.found[self.starts[segment]..self.starts[segment + 1]]
    }

    /// The scorer of a term in a field.
    pub(crate) fn term_weight(&self, term: usize, field: usize) -> Weight<'_> {
        let inverse_frequency = self.norms.inverse_frequency(self.frequencies[term][field]);
        let wanted = &self.query.terms[term];
        let share = if wanted.is_added { ADDED } else { 1.0 };
        self.norms.weight(field, inverse_frequency * share, wanted.count)
    }

    /// The scorer of a phrase in a field: its terms' rarity counts once for each place.
    pub(crate) fn phrase_weight(&self, phrase: usize, field: usize) -> Weight<'_> {
        let phrase = &self.query.phrases[phrase];
        let rarity = |(term, _): &(usize, u32)| self.norms.inverse_frequency(self.frequencies[*term][field]);
        self.norms.weight(field, phrase.places.iter().map(rarity).sum(), phrase.count)
    }
}
