//! The best entries where a query has phrases or conditions: every posting is read, window by window.

use tantivy::postings::BlockSegmentPostings;

use crate::Error;
use crate::disjunction::{Bits, Scratch, WINDOW, close, open};
use crate::index::{TEXT, TITLE};
use crate::phrase::occurrences;
use crate::plan::Plan;
use crate::query::Operand;
use crate::segment::FieldReader;
use crate::top::{Ranked, Top};
use crate::weight::Weight;

/// What a list of entries does to the entries of a window.
struct Clause<'a> {
    list: List,
    field: &'a FieldReader,
    /// Absent where it does not count towards the score.
    weight: Option<Weight<'a>>,
    /// Places in the query's required and excluded conditions.
    requires: Vec<usize>,
    excludes: bool,
}

#[expect(clippy::large_enum_variant, reason = "a handful of them, and nearly all are the large one")]
enum List {
    Postings { postings: BlockSegmentPostings, at: usize },
    Occurrences { occurrences: Vec<(u32, u32)>, at: usize },
}

impl List {
    /// The current entry and how often it has what the list is about.
    fn current(&self) -> Option<(u32, u32)> {
        match self {
            List::Postings { postings, at } => {
                Some((*postings.docs().get(*at)?, *postings.freqs().get(*at)?))
            }
            List::Occurrences { occurrences, at } => occurrences.get(*at).copied(),
        }
    }

    fn advance(&mut self) {
        match self {
            List::Postings { postings, at } => {
                *at += 1;
                if *at >= postings.block_len() {
                    postings.advance();
                    *at = 0;
                }
            }
            List::Occurrences { at, .. } => *at += 1,
        }
    }
}

/// Offers the best entries of a segment to `top`.
pub(crate) fn collect(
    plan: &Plan<'_>,
    segment: usize,
    scratch: &mut Scratch,
    top: &mut Top<'_>,
) -> Result<(), Error> {
    let mut clauses = clauses(plan, segment, scratch)?;
    let mut required = vec![Bits::default(); plan.query.required.len()];
    let mut excluded = Bits::default();
    // A condition that nothing in the segment meets empties it.
    if !(0..required.len()).all(|at| clauses.iter().any(|clause| clause.requires.contains(&at))) {
        clauses.clear();
    }
    while let Some((first, _)) = clauses.iter().filter_map(|clause| clause.list.current()).min() {
        plan.check()?;
        let end = first.saturating_add(WINDOW as u32);
        for clause in &mut clauses {
            while let Some((entry, frequency)) = clause.list.current().filter(|(entry, _)| *entry < end) {
                let place = (entry - first) as usize;
                if let Some(weight) = clause.weight {
                    scratch.points[place] += weight.points(clause.field.norms.fieldnorm_id(entry), frequency);
                    scratch.touched.set(place);
                }
                clause.requires.iter().for_each(|at| required[*at].set(place));
                if clause.excludes {
                    excluded.set(place);
                }
                clause.list.advance();
            }
        }
        let (points, touched) = (&mut scratch.points, &mut scratch.touched);
        let passes = |place: usize| {
            let bit = |bits: &Bits| bits.0[place / 64] & (1 << (place % 64)) != 0;
            required.iter().all(bit) && !bit(&excluded)
        };
        touched.drain(|place| {
            let sum = std::mem::take(&mut points[place]);
            if sum >= top.threshold() && passes(place) {
                let entry = first + place as u32;
                top.offer(Ranked { points: sum, id: plan.segments[segment].id(entry), segment, entry });
            }
        });
        required.iter_mut().for_each(|bits| *bits = Bits::default());
        excluded = Bits::default();
    }
    for clause in clauses {
        if let List::Postings { postings, .. } = clause.list {
            close(postings, scratch);
        }
    }
    Ok(())
}

/// The lists that take part: terms and phrases that are scored, required or excluded.
fn clauses<'a>(plan: &'a Plan<'_>, segment: usize, scratch: &mut Scratch) -> Result<Vec<Clause<'a>>, Error> {
    let mut clauses = Vec::new();
    let mut add = |operand: Operand, field: usize, weight: Option<Weight<'a>>, list: List| {
        let required = plan.query.required.iter().enumerate();
        let requires = required.filter(|(_, required)| **required == operand).map(|(at, _)| at).collect();
        let excludes = plan.query.excluded.contains(&operand);
        let field = plan.segments[segment].field(field);
        clauses.push(Clause { list, field, weight, requires, excludes });
    };
    let is_condition =
        |operand| plan.query.required.contains(&operand) || plan.query.excluded.contains(&operand);
    for found in plan.found_in(segment) {
        let is_scored = plan.query.terms[found.term].count > 0;
        if is_scored || is_condition(Operand::Term(found.term)) {
            let weight = is_scored.then(|| plan.term_weight(found.term, found.field));
            let postings = open(plan.segments[segment].field(found.field), found, scratch)?;
            add(Operand::Term(found.term), found.field, weight, List::Postings { postings, at: 0 });
        }
    }
    for (phrase, wanted) in plan.query.phrases.iter().enumerate() {
        for field in [TEXT, TITLE] {
            let occurrences = occurrences(plan, segment, phrase, field)?;
            if !occurrences.is_empty() {
                let weight = (wanted.count > 0).then(|| plan.phrase_weight(phrase, field));
                add(Operand::Phrase(phrase), field, weight, List::Occurrences { occurrences, at: 0 });
            }
        }
    }
    Ok(clauses)
}
