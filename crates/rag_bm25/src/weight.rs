//! BM25 in fixed point.
//!
//! The formula is tantivy's (lengths quantised to one byte per entry) with another `k1`. A term's share of a
//! score is computed in `f32` and then counted in units of 2⁻³², so that a sum does not depend on the order
//! of its parts: that order differs with the split into segments and with what a search skips.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Bm25Weight;

use crate::index::{FIELDS, TEXT, TITLE};
use crate::statistics::Statistics;

/// How slowly further occurrences stop to count.
const K1: f32 = 1.6;
/// How much a length counts. That of tantivy, without which its bounds of blocks would not hold.
const B: f32 = 0.75;
/// Tantivy's own `k1`, by which it chooses the bounds of blocks.
const TANTIVY_K1: f32 = 1.2;

/// What each field's score counts.
const FIELD_WEIGHTS: [f32; FIELDS] = {
    let mut weights = [0.0; FIELDS];
    weights[TEXT] = 1.0;
    weights[TITLE] = 0.5;
    weights
};

/// A share of a score, a score, or a bound of one, in units of 2⁻³². A share is below 2¹⁶ and a query has at
/// most 2¹² of them, so sums fit.
pub(crate) type Points = u64;

const UNIT: f32 = 4_294_967_296.0;

/// Entries in a full block of postings: only these have a bound of their own.
pub(crate) const FULL_BLOCK: usize = 128;

/// Widens a bound by more than the rounding of the arithmetic that leads to it.
const SLACK: f64 = 1.000_01;

/// A score as callers see it.
pub(crate) fn score_of(points: Points) -> f32 {
    (points as f64 / f64::from(UNIT)) as f32
}

/// The most points of which it is certain that fewer give a lower score than `score`.
pub(crate) fn points_below(score: f32) -> Points {
    (f64::from(score) * f64::from(UNIT) * (1.0 - 1.0 / f64::from(1 << 22))) as Points
}

/// A share in units, to the nearest.
///
/// Between 2²⁰ and 2²¹ the last bit of an `f64` is worth 2⁻³², so adding 2²⁰ leaves the units in the
/// mantissa. This is a third of the cost of a cast, which has to look out for numbers that do not fit.
#[inline]
fn units(share: f32) -> Points {
    const BASE: f64 = 1_048_576.0;
    (f64::from(share) + BASE).to_bits() - BASE.to_bits()
}

/// How long entries are against the average of all segments, by their quantised length, for each field.
pub(crate) struct Norms {
    pub(crate) averages: [f32; FIELDS],
    tables: [[f32; 256]; FIELDS],
    documents: u64,
}

impl Norms {
    pub(crate) fn new(statistics: &Statistics) -> Norms {
        let averages = statistics.average_lengths();
        let table = |field: usize| {
            std::array::from_fn(|id| {
                let length = FieldNormReader::id_to_fieldnorm(id as u8) as f32;
                K1 * (1.0 - B + B * length / averages[field])
            })
        };
        Norms { averages, tables: [table(TEXT), table(TITLE)], documents: statistics.documents }
    }

    /// What the presence of a term weighs that `frequency` entries have in a field. A segment whose
    /// frequencies exceed its entries is damaged; it gets a weight near 0 instead of a panic.
    pub(crate) fn inverse_frequency(&self, frequency: u64) -> f32 {
        inverse_frequency(self.documents, frequency)
    }

    /// The scorer of a term or phrase in one field, `count` times in the query.
    pub(crate) fn weight(&self, field: usize, inverse_frequency: f32, count: u32) -> Weight<'_> {
        let factor = inverse_frequency * (1.0 + K1) * FIELD_WEIGHTS[field] * count as f32;
        Weight { factor, table: &self.tables[field] }
    }
}

/// What the presence of something weighs that `frequency` of so many entries have.
pub(crate) fn inverse_frequency(entries: u64, frequency: u64) -> f32 {
    let others = entries.saturating_sub(frequency);
    (1.0 + (others as f32 + 0.5) / (frequency as f32 + 0.5)).ln()
}

/// Scores the occurrences of one term or phrase in one field.
#[derive(Clone, Copy)]
pub(crate) struct Weight<'a> {
    factor: f32,
    table: &'a [f32; 256],
}

impl Weight<'_> {
    /// The points of an entry of quantised length `norm` that has the term `frequency` times. Never 0, so
    /// that a match can be told from none.
    #[inline]
    pub(crate) fn points(&self, norm: u8, frequency: u32) -> Points {
        let frequency = frequency as f32;
        let share = self.factor * (frequency / (frequency + self.table[usize::from(norm)]));
        units(share).max(1)
    }

    /// No entry gets more.
    pub(crate) fn bound(&self) -> Points {
        self.bound_of(1.0)
    }

    /// No entry gets more whose saturation `tf / (tf + norm)` is at most `saturation`.
    fn bound_of(&self, saturation: f32) -> Points {
        ((f64::from(self.factor * saturation) * f64::from(UNIT)) * SLACK) as Points + 1
    }
}

/// The bounds that tantivy keeps for each block of postings, made valid for another average length and another `k1`.
///
/// A block names the entry that scores best under the average length of its own segment. Under another
/// average, another entry may score better, but not without limit: lengthening the average by `r` divides an
/// entry's norm by `r` at most, so a saturation `s` becomes `rs / (1 − s + rs)` at most; shortening it only
/// lowers saturations. Another `k1` multiplies all norms alike, so the same entry scores best.
pub(crate) struct BlockBounds {
    average: f32,
    /// Absent where no block can be full, which saves 1 KB per field in tiny segments.
    unit: Option<Bm25Weight>,
}

impl BlockBounds {
    /// `tokens` is tantivy's own count, by whose average the bounds were written.
    pub(crate) fn new(tokens: u64, entries: u32) -> BlockBounds {
        let average = tokens as f32 / entries as f32;
        let has_blocks = entries as usize >= FULL_BLOCK && tokens > 0;
        BlockBounds {
            average,
            unit: has_blocks.then(|| Bm25Weight::for_one_term_without_explain(1, 2, average)),
        }
    }

    /// No entry of the current block gets more. `average` is the average length over all segments.
    pub(crate) fn of_block(
        &self,
        postings: &mut BlockSegmentPostings,
        norms: &FieldNormReader,
        weight: &Weight<'_>,
        average: f32,
    ) -> Points {
        let Some(unit) = &self.unit else { return weight.bound() };
        // An entry of length 0 with endless occurrences has saturation 1: what is left is the unit's factor.
        let saturation = postings.block_max_score(norms, unit) / unit.score(0, u32::MAX);
        let ratio = (average / self.average).max(1.0) * (TANTIVY_K1 / K1);
        let stretched = ratio * saturation / (1.0 - saturation + ratio * saturation);
        // Also catches what is not a number.
        if stretched < 1.0 { weight.bound_of(stretched) } else { weight.bound() }
    }
}
