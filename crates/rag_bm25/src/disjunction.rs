//! The best entries that have any of the terms: block-max MaxScore over windows of entries.
//!
//! Postings lists are sorted by the most they can add. The weakest ones whose bounds together stay below the
//! threshold cannot bring an entry in by themselves: they are only looked into for entries that the others
//! name. Of those others, blocks are skipped that cannot reach the threshold even with all other lists' help.
//! Skipping never changes an answer: bounds are exact sums in fixed point, see `weight`.

use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;

use crate::Error;
use crate::plan::{Found, Plan};
use crate::segment::FieldReader;
use crate::top::{Ranked, Top};
use crate::weight::{FULL_BLOCK, Points, Weight};

/// Entries in a window.
pub(crate) const WINDOW: usize = 4096;

/// Memory that is used again from segment to segment.
pub(crate) struct Scratch {
    /// The points of each entry of the window; all 0 between windows.
    pub(crate) points: Vec<Points>,
    /// Which entries of the window have points; all 0 between windows.
    pub(crate) touched: Bits,
    postings: Vec<BlockSegmentPostings>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { points: vec![0; WINDOW], touched: Bits::default(), postings: Vec::new() }
    }
}

/// A set of entries of a window.
#[derive(Clone)]
pub(crate) struct Bits(pub(crate) [u64; WINDOW / 64]);

impl Default for Bits {
    fn default() -> Self {
        Bits([0; WINDOW / 64])
    }
}

impl Bits {
    #[inline]
    pub(crate) fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Empties the set and calls `take` with what was in it, in rising order.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(usize)) {
        for (at, word) in self.0.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                take(at * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

/// A postings list being read.
struct Cursor<'a> {
    postings: BlockSegmentPostings,
    /// Place in the current block.
    at: usize,
    field: &'a FieldReader,
    weight: Weight<'a>,
    average: f32,
    bound: Points,
}

impl Cursor<'_> {
    /// The entry that the cursor stands on; above all entries at the end.
    #[inline]
    fn entry(&self) -> u32 {
        self.postings.docs().get(self.at).copied().unwrap_or(u32::MAX)
    }

    fn next_block(&mut self) {
        self.postings.advance();
        self.at = 0;
    }

    /// Adds the points of entries below `end` to the window that starts at `start`. Skips blocks whose bound
    /// plus `others` is below `threshold`.
    fn score(&mut self, start: u32, end: u32, others: Points, threshold: Points, scratch: &mut Scratch) {
        while self.entry() < end {
            // Worth asking only where the block is whole and the answer may be no.
            if self.at == 0 && self.postings.block_len() == FULL_BLOCK && threshold > 0 {
                let (field, weight, average) = (self.field, self.weight, self.average);
                let bound = field.bounds.of_block(&mut self.postings, &field.norms, &weight, average);
                if bound + others < threshold {
                    self.next_block();
                    continue;
                }
            }
            let (entries, frequencies) =
                (&self.postings.docs()[self.at..], &self.postings.freqs()[self.at..]);
            let mut read = 0;
            for (entry, frequency) in entries.iter().zip(frequencies) {
                if *entry >= end {
                    break;
                }
                let place = (entry - start) as usize;
                scratch.points[place] +=
                    self.weight.points(self.field.norms.fieldnorm_id(*entry), *frequency);
                scratch.touched.set(place);
                read += 1;
            }
            self.at += read;
            if self.at >= self.postings.block_len() {
                self.next_block();
            }
        }
    }

    /// The points that this list adds to `entry`. Entries must be asked for in rising order.
    fn points_of(&mut self, entry: u32) -> Points {
        if self.entry() < entry {
            self.at = self.postings.seek(entry);
        }
        if self.entry() != entry {
            return 0;
        }
        self.weight.points(self.field.norms.fieldnorm_id(entry), self.postings.freqs()[self.at])
    }
}

/// Offers the best entries of a segment to `top`.
pub(crate) fn collect(
    plan: &Plan<'_>,
    segment: usize,
    scratch: &mut Scratch,
    top: &mut Top<'_>,
) -> Result<(), Error> {
    let mut weighed: Vec<(&Found, Weight<'_>)> = plan
        .found_in(segment)
        .iter()
        .map(|found| (found, plan.term_weight(found.term, found.field)))
        .collect();
    weighed.retain(|(found, _)| plan.query.terms[found.term].count > 0);
    let total: Points = weighed.iter().map(|(_, weight)| weight.bound()).sum();
    if total < top.threshold() {
        return Ok(());
    }
    weighed.sort_by_key(|(_, weight)| weight.bound());
    let mut cursors = Vec::with_capacity(weighed.len());
    for (found, weight) in weighed {
        let field = plan.segments[segment].field(found.field);
        let postings = open(field, found, scratch)?;
        let average = plan.norms.averages[found.field];
        cursors.push(Cursor { postings, at: 0, field, weight, average, bound: weight.bound() });
    }
    walk(plan, segment, &mut cursors, total, scratch, top)?;
    scratch.postings.extend(cursors.into_iter().map(|cursor| cursor.postings));
    Ok(())
}

/// Opens a postings list in memory that an earlier one used, if there is any.
pub(crate) fn open(
    field: &FieldReader,
    found: &Found,
    scratch: &mut Scratch,
) -> Result<BlockSegmentPostings, Error> {
    match scratch.postings.pop() {
        Some(mut postings) => {
            field.index.reset_block_postings_from_terminfo(&found.info, &mut postings)?;
            Ok(postings)
        }
        None => {
            Ok(field.index.read_block_postings_from_terminfo(&found.info, IndexRecordOption::WithFreqs)?)
        }
    }
}

/// Gives the memory of a postings list back.
pub(crate) fn close(postings: BlockSegmentPostings, scratch: &mut Scratch) {
    scratch.postings.push(postings);
}

fn walk(
    plan: &Plan<'_>,
    segment: usize,
    cursors: &mut [Cursor<'_>],
    total: Points,
    scratch: &mut Scratch,
    top: &mut Top<'_>,
) -> Result<(), Error> {
    // The first `weak` lists together cannot reach the threshold.
    let (mut weak, mut weak_bound) = (0, 0);
    loop {
        plan.check()?;
        while weak < cursors.len() && weak_bound + cursors[weak].bound < top.threshold() {
            weak_bound += cursors[weak].bound;
            weak += 1;
        }
        let (weaker, stronger) = cursors.split_at_mut(weak);
        let Some(first) = stronger.iter().map(Cursor::entry).min().filter(|entry| *entry < u32::MAX) else {
            return Ok(());
        };
        let end = first.saturating_add(WINDOW as u32);
        for cursor in &mut *stronger {
            cursor.score(first, end, total - cursor.bound, top.threshold(), scratch);
        }
        let (points, touched) = (&mut scratch.points, &mut scratch.touched);
        touched.drain(|place| {
            let mut sum = std::mem::take(&mut points[place]);
            let entry = first + place as u32;
            let mut left = weak_bound;
            for cursor in weaker.iter_mut().rev() {
                if sum + left < top.threshold() {
                    return;
                }
                left -= cursor.bound;
                sum += cursor.points_of(entry);
            }
            if sum >= top.threshold() {
                top.offer(Ranked { points: sum, id: plan.segments[segment].id(entry), segment, entry });
            }
        });
    }
}
