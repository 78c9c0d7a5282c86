//! Merging of sections that are too short to say anything on their own.

use super::section::{Unit, shared};

/// A section with its length.
struct Measured {
    unit: Unit,
    length: usize,
}

/// Merges each section shorter than `min_size` with a neighbour.
///
/// It goes with a neighbour with which it has at most `size`; of two with the one that shares more of its headings,
/// else with the one that follows. Where neither has room, it is merged all the same, to be cut with the other.
/// Runs of short sections become as few as reach `min_size`. `length` is called once per section.
pub(super) fn short_sections(
    units: Vec<Unit>,
    min_size: usize,
    size: usize,
    length: impl Fn(&Unit) -> usize,
) -> Vec<Unit> {
    let mut waiting = units.into_iter().map(|unit| Measured { length: length(&unit), unit }).peekable();
    let mut merged: Vec<Measured> = Vec::new();
    while let Some(mut section) = waiting.next() {
        while section.length < min_size {
            // Room first, then common headings.
            let fit = |path: (usize, usize), other: &Measured| {
                (
                    other.length + section.length <= size,
                    shared(path_at(other, path.0), path_at(&section, path.1)),
                )
            };
            let before = merged.last().map(|other| fit((other.unit.parts.len() - 1, 0), other));
            let after = waiting.peek().map(|other| fit((0, section.unit.parts.len() - 1), other));
            section = match (before, after) {
                (None, None) => break,
                (Some(before), after) if after.is_none_or(|after| before > after) => {
                    let Some(previous) = merged.pop() else { break };
                    join(previous, section)
                }
                _ => {
                    let Some(next) = waiting.next() else { break };
                    join(section, next)
                }
            };
        }
        merged.push(section);
    }
    merged.into_iter().map(|section| section.unit).collect()
}

fn path_at(section: &Measured, part: usize) -> &[String] {
    section.unit.parts.get(part).map_or(&[], |(_, path)| path)
}

fn join(first: Measured, second: Measured) -> Measured {
    let bytes = first.unit.bytes.start..second.unit.bytes.end;
    let body = first.unit.body;
    let parts = first.unit.parts.into_iter().chain(second.unit.parts).collect();
    Measured { length: first.length + second.length, unit: Unit { parts, bytes, body } }
}
