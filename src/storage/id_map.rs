//! Maps by id for what is asked about each entry of an index: ids are random or digests, so they are their own hash.

use super::Id;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by id.
pub(crate) type IdMap<V> = HashMap<Id, V, BuildHasherDefault<IdHasher>>;

/// An id as a hash: its halves, for one of them may tell a time.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u128(&mut self, id: u128) {
        self.0 ^= (id >> 64) as u64 ^ id as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
