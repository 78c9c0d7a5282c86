//! Where terms stand next to each other.

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use crate::Error;
use crate::plan::{Found, Plan};

/// Entries looked at between two questions whether to go on.
const STEPS_AT_ONCE: u32 = 1024;

/// The entries of a segment that have a phrase in a field, in rising order, and how often each has it.
pub(crate) fn occurrences(
    plan: &Plan<'_>,
    segment: usize,
    phrase: usize,
    field: usize,
) -> Result<Vec<(u32, u32)>, Error> {
    let found = plan.found_in(segment);
    let reader = plan.segments[segment].field(field);
    let mut places: Vec<(&Found, u32)> = Vec::new();
    for (term, offset) in &plan.query.phrases[phrase].places {
        // A term that the field lacks makes the phrase impossible.
        let Some(found) = found.iter().find(|found| found.term == *term && found.field == field) else {
            return Ok(Vec::new());
        };
        places.push((found, *offset));
    }
    // The rarest term leads.
    places.sort_by_key(|(found, offset)| (found.info.doc_freq, *offset));
    let mut lists: Vec<(SegmentPostings, u32)> = Vec::with_capacity(places.len());
    for (found, offset) in places {
        let option = IndexRecordOption::WithFreqsAndPositions;
        lists.push((reader.index.read_postings_from_terminfo(&found.info, option)?, offset));
    }
    let mut result = Vec::new();
    let (mut starts, mut positions) = (Vec::new(), Vec::new());
    let Some(((leader, leader_offset), followers)) = lists.split_first_mut() else { return Ok(result) };
    let mut entry = leader.doc();
    let mut steps = 0_u32;
    while entry != TERMINATED {
        if steps.is_multiple_of(STEPS_AT_ONCE) {
            plan.check()?;
        }
        steps = steps.wrapping_add(1);
        match meet(entry, followers) {
            Meeting::At => {
                let count = count((leader, *leader_offset), followers, &mut starts, &mut positions);
                result.extend((count > 0).then_some((entry, count)));
                entry = leader.advance();
            }
            Meeting::NotBefore(next) => entry = leader.seek(next),
        }
    }
    Ok(result)
}

enum Meeting {
    At,
    NotBefore(u32),
}

/// Brings all lists to `entry`, or finds the next entry that may have them all.
fn meet(entry: u32, followers: &mut [(SegmentPostings, u32)]) -> Meeting {
    for (postings, _) in followers {
        let reached = if postings.doc() < entry { postings.seek(entry) } else { postings.doc() };
        if reached > entry {
            return Meeting::NotBefore(reached);
        }
    }
    Meeting::At
}

/// How many positions the phrase starts at in the entry that all lists stand on.
fn count(
    (leader, leader_offset): (&mut SegmentPostings, u32),
    followers: &mut [(SegmentPostings, u32)],
    starts: &mut Vec<u32>,
    positions: &mut Vec<u32>,
) -> u32 {
    read_starts(leader, leader_offset, starts);
    for (postings, offset) in followers {
        if starts.is_empty() {
            break;
        }
        read_starts(postings, *offset, positions);
        keep_common(starts, positions);
    }
    starts.len() as u32
}

/// Where the phrase would have to start for each position of the term.
fn read_starts(postings: &mut SegmentPostings, offset: u32, starts: &mut Vec<u32>) {
    starts.clear();
    postings.append_positions_with_offset(0, starts);
    starts.retain_mut(|position| {
        let start = position.checked_sub(offset);
        *position = start.unwrap_or(0);
        start.is_some()
    });
}

/// Keeps what is in both sorted lists.
pub(crate) fn keep_common(kept: &mut Vec<u32>, other: &[u32]) {
    let mut rest = other;
    kept.retain(|value| {
        rest = &rest[rest.partition_point(|candidate| candidate < value)..];
        rest.first() == Some(value)
    });
}

#[cfg(test)]
mod tests {
    use super::keep_common;

    #[test]
    fn common_values_are_kept_in_order() {
        let mut kept = vec![1, 3, 5, 7];
        keep_common(&mut kept, &[0, 3, 4, 7, 9]);
        assert_eq!(kept, [3, 7]);
        keep_common(&mut kept, &[]);
        assert!(kept.is_empty());
    }
}
