//! Which keyword segments are merged into one.
//!
//! Tiered: segments of like size are merged once there are several, so each entry is written about log n times. No merge
//! makes a segment of more than so many bytes, so that what a merge takes does not grow with the domain.

/// Segments of one tier that are merged into one of the next.
pub const FAN_IN: usize = 8;

/// A segment is written anew for its deleted entries alone once they are one of so many.
const WORN: u64 = 20;

/// What is known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    /// With deleted ones.
    pub entries: u32,
    /// Of them deleted, as far as somebody has looked.
    pub deleted: u32,
    /// Of all of it.
    pub bytes: u64,
}

impl SegmentSize {
    fn tier(&self) -> u32 {
        self.entries.max(1).ilog(FAN_IN as u32)
    }

    /// About as many bytes as its living entries take.
    fn living_bytes(&self) -> u64 {
        let living = u64::from(self.entries.saturating_sub(self.deleted));
        let bytes = u128::from(self.bytes) * u128::from(living) / u128::from(self.entries.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Places of the segments that are merged next: all up to the largest tier that has at least [`FAN_IN`] of them, the
/// smallest first, as many as make a segment of at most `max_bytes`. None where no tier is full.
///
/// A segment of more than half of that is merged no more.
pub fn full_tier(sizes: &[SegmentSize], max_bytes: u64) -> Vec<usize> {
    let mut growing: Vec<usize> =
        (0..sizes.len()).filter(|place| sizes[*place].bytes <= max_bytes / 2).collect();
    let in_tier = |tier: u32| growing.iter().filter(|place| sizes[**place].tier() == tier).count();
    let full = growing.iter().map(|place| sizes[*place].tier()).filter(|tier| in_tier(*tier) >= FAN_IN).max();
    let Some(largest) = full else { return Vec::new() };
    growing.retain(|place| sizes[*place].tier() <= largest);
    growing.sort_by_key(|place| sizes[*place].bytes);
    fitting(&growing, max_bytes, |place| sizes[place].bytes)
}

/// Groups of segments that are written anew, each group as one of at most `max_bytes`, or of one segment: those with
/// many deleted entries. Where a twentieth of all entries is deleted there are some.
pub fn worn(sizes: &[SegmentSize], max_bytes: u64) -> Vec<Vec<usize>> {
    let is_worn =
        |size: &SegmentSize| size.deleted > 0 && u64::from(size.deleted) * WORN >= u64::from(size.entries);
    let mut rest: Vec<usize> = (0..sizes.len()).filter(|place| is_worn(&sizes[*place])).collect();
    rest.sort_by_key(|place| sizes[*place].living_bytes());
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let group = fitting(&rest, max_bytes, |place| sizes[place].living_bytes());
        rest.drain(..group.len());
        groups.push(group);
    }
    groups
}

/// The first of the places that have at most `max_bytes` together; at least one.
fn fitting(places: &[usize], max_bytes: u64, bytes: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut sum = 0_u64;
    let fits = places.iter().take_while(|place| {
        sum = sum.saturating_add(bytes(**place));
        sum <= max_bytes
    });
    let count = fits.count().max(1).min(places.len());
    places[..count].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES_PER_ENTRY: u64 = 500;

    fn whole(entries: u32) -> SegmentSize {
        SegmentSize { entries, deleted: 0, bytes: u64::from(entries) * BYTES_PER_ENTRY }
    }

    /// Merges what is due until nothing is, and returns the entries that were written.
    fn merge_all(sizes: &mut Vec<SegmentSize>, max_bytes: u64) -> u64 {
        let mut written = 0;
        loop {
            let group = full_tier(sizes, max_bytes);
            if group.is_empty() {
                return written;
            }
            assert!(group.len() > 1, "a merge makes fewer of them: {group:?} of {sizes:?}");
            let merged: u32 = group.iter().map(|place| sizes[*place].entries).sum();
            assert!(whole(merged).bytes <= max_bytes);
            written += u64::from(merged);
            let mut place = 0;
            sizes.retain(|_| {
                place += 1;
                !group.contains(&(place - 1))
            });
            sizes.push(whole(merged));
        }
    }

    proptest! {
        #[test]
        fn segments_stay_few_and_bounded(
            new in prop::collection::vec(1_u32..400, 1..400),
            max_entries in 1_000_u64..20_000,
        ) {
            let max_bytes = max_entries * BYTES_PER_ENTRY;
            let (mut sizes, mut written, mut all) = (Vec::new(), 0, 0);
            for entries in new {
                sizes.push(whole(entries));
                all += u64::from(entries);
                written += merge_all(&mut sizes, max_bytes);
            }
            prop_assert_eq!(sizes.iter().map(|size| u64::from(size.entries)).sum::<u64>(), all);
            let growing = sizes.iter().filter(|size| size.bytes <= max_bytes / 2).count() as u64;
            let tiers = u64::from(max_entries.ilog(FAN_IN as u64)) + 1;
            prop_assert!(growing <= tiers * (FAN_IN as u64 - 1), "{} growing ones", growing);
            prop_assert!(sizes.len() as u64 - growing <= 2 * all / max_entries, "full ones are full");
            prop_assert!(written <= all * (tiers + 1), "{} of {} written", written, all);
        }

        #[test]
        fn what_is_worn_is_written_once(
            sizes in prop::collection::vec((1_u32..10_000, 0_u32..10_000), 0..40),
            max_entries in 1_000_u64..20_000,
        ) {
            let max_bytes = max_entries * BYTES_PER_ENTRY;
            let sizes: Vec<_> = sizes
                .into_iter()
                .map(|(entries, deleted)| SegmentSize { deleted: deleted.min(entries), ..whole(entries) })
                .collect();
            let groups = worn(&sizes, max_bytes);
            let places: Vec<usize> = groups.iter().flatten().copied().collect();
            for (place, size) in sizes.iter().enumerate() {
                let times = places.iter().filter(|found| **found == place).count();
                let is_worn = size.deleted > 0 && size.deleted * 20 >= size.entries;
                prop_assert_eq!(times, usize::from(is_worn));
            }
            for group in &groups {
                let bytes: u64 = group.iter().map(|place| sizes[*place].living_bytes()).sum();
                prop_assert!(group.len() == 1 || bytes <= max_bytes);
            }
            let all: u32 = sizes.iter().map(|size| size.entries).sum();
            let deleted: u32 = sizes.iter().map(|size| size.deleted).sum();
            prop_assert!(deleted == 0 || deleted * 20 < all || !groups.is_empty());
        }
    }

    #[test]
    fn nothing_is_merged_before_a_tier_is_full() {
        assert!(full_tier(&[whole(10); 7], u64::MAX).is_empty());
        assert_eq!(full_tier(&[whole(10); 8], u64::MAX).len(), 8);
        // Smaller ones go along, larger ones do not.
        let mut sizes = vec![whole(10_000), whole(1)];
        sizes.extend([whole(100); 8]);
        assert_eq!(full_tier(&sizes, u64::MAX), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn the_bound_may_come_down() {
        let sizes = [whole(1_000); 8];
        assert!(full_tier(&sizes, 900 * BYTES_PER_ENTRY).is_empty(), "larger than what is made now");
        assert_eq!(full_tier(&sizes, 3_500 * BYTES_PER_ENTRY).len(), 3);
        let larger = SegmentSize { deleted: 100, ..whole(1_000) };
        assert_eq!(worn(&[larger], 100), [[0]]);
    }
}
