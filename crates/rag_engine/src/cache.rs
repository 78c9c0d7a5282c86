//! One cache for everything the engine may answer twice: bounded in bytes over all kinds of value, and by age.
//!
//! Keys are digests made by [`crate::principal`]; the values are vectors, scores and completions. The least recently
//! used goes first. Age counts from the moment a value was stored; a hit does not renew it.

use rag_wire::Completion;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Digest of a question and of who asked it.
pub type Key = [u8; 32];

/// Bytes that one entry costs beside its value: key twice, order, map slots.
const ENTRY_BYTES: usize = 192;

/// What is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A query's vector.
    Vector(Arc<[f32]>),
    /// A pair's logit.
    Score(f32),
    /// A chat endpoint's answer.
    Completion(Completion),
}

impl Value {
    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Value::Vector(values) => values.len() * size_of::<f32>(),
                Value::Score(_) => 0,
                Value::Completion(completion) => completion.text.len() + completion.model.len(),
            }
    }
}

struct Entry {
    value: Value,
    stored: Instant,
    used: u64,
}

/// A cache bounded by bytes and age. Not shared: the owner locks it.
pub struct Cache {
    limit_bytes: usize,
    lifetime: Duration,
    entries: HashMap<Key, Entry>,
    /// Key by time of last use, the oldest first.
    order: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
}

impl Cache {
    /// An empty cache. A limit of 0 bytes or a lifetime of 0 keeps nothing.
    pub fn new(limit_bytes: usize, lifetime: Duration) -> Self {
        let (entries, order) = (HashMap::new(), BTreeMap::new());
        Self { limit_bytes, lifetime, entries, order, uses: 0, bytes: 0 }
    }

    /// Changes the bounds and drops what no longer fits.
    pub fn set_bounds(&mut self, limit_bytes: usize, lifetime: Duration) {
        (self.limit_bytes, self.lifetime) = (limit_bytes, lifetime);
        self.shrink_to(limit_bytes);
    }

    /// The value, if it is there and not too old.
    pub fn get(&mut self, key: &Key, now: Instant) -> Option<Value> {
        let entry = self.entries.get_mut(key)?;
        if now.saturating_duration_since(entry.stored) >= self.lifetime {
            self.remove(*key);
            return None;
        }
        self.order.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        self.order.insert(entry.used, *key);
        Some(entry.value.clone())
    }

    /// Stores a value, dropping the least recently used as needed. One larger than the whole cache is not stored.
    pub fn put(&mut self, key: Key, value: Value, now: Instant) {
        self.remove(key);
        let bytes = value.bytes();
        if bytes > self.limit_bytes || self.lifetime.is_zero() {
            return;
        }
        self.shrink_to(self.limit_bytes - bytes);
        self.uses += 1;
        self.bytes += bytes;
        self.order.insert(self.uses, key);
        self.entries.insert(key, Entry { value, stored: now, used: self.uses });
    }

    /// Drops everything that is too old.
    pub fn expire(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        let old: Vec<Key> = self
            .entries
            .iter()
            .filter(|(_, entry)| now.saturating_duration_since(entry.stored) >= lifetime)
            .map(|(key, _)| *key)
            .collect();
        old.into_iter().for_each(|key| self.remove(key));
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.limit_bytes, self.lifetime);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some((_, key)) = self.order.first_key_value()
        {
            self.remove(*key);
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.order.remove(&entry.used);
            self.bytes -= entry.value.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn key(n: u8) -> Key {
        [n; 32]
    }

    fn vector(numbers: usize) -> Value {
        Value::Vector(vec![0.5; numbers].into())
    }

    /// A cache that holds `n` scores.
    fn cache_of(n: usize) -> Cache {
        Cache::new(n * ENTRY_BYTES, MINUTE)
    }

    #[test]
    fn a_stored_value_is_found_again() {
        let (mut cache, now) = (Cache::new(1 << 20, MINUTE), Instant::now());
        cache.put(key(1), vector(384), now);
        assert_eq!(cache.get(&key(1), now), Some(vector(384)));
        assert_eq!(cache.get(&key(2), now), None);
        assert_eq!(cache.bytes(), 384 * 4 + ENTRY_BYTES);
    }

    #[test]
    fn a_value_expires_from_the_moment_it_was_stored_even_if_used() {
        let (mut cache, start) = (Cache::new(1 << 20, MINUTE), Instant::now());
        cache.put(key(1), Value::Score(1.0), start);
        assert!(cache.get(&key(1), start + MINUTE - Duration::from_millis(1)).is_some());
        assert_eq!(cache.get(&key(1), start + MINUTE), None);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn the_least_recently_used_value_goes_first() {
        let (mut cache, now) = (cache_of(3), Instant::now());
        for n in 1..=3 {
            cache.put(key(n), Value::Score(f32::from(n)), now);
        }
        assert!(cache.get(&key(1), now).is_some());
        cache.put(key(4), Value::Score(4.0), now);
        let found: Vec<u8> = (1..=4).filter(|n| cache.get(&key(*n), now).is_some()).collect();
        assert_eq!(found, [1, 3, 4]);
    }

    #[test]
    fn the_bound_holds_whatever_is_stored() {
        let (mut cache, now) = (Cache::new(10_000, MINUTE), Instant::now());
        for n in 0..=255u8 {
            cache.put(key(n), vector(usize::from(n) * 7), now);
            assert!(cache.bytes() <= 10_000);
        }
        assert!(cache.bytes() > 5_000);
    }

    #[test]
    fn a_value_larger_than_the_cache_is_not_stored_and_drops_nothing_else() {
        let (mut cache, now) = (cache_of(2), Instant::now());
        cache.put(key(1), Value::Score(1.0), now);
        cache.put(key(2), vector(1000), now);
        assert_eq!(cache.get(&key(2), now), None);
        assert!(cache.get(&key(1), now).is_some());
    }

    #[test]
    fn storing_again_replaces_and_renews() {
        let (mut cache, start) = (cache_of(4), Instant::now());
        cache.put(key(1), Value::Score(1.0), start);
        cache.put(key(1), Value::Score(2.0), start + MINUTE / 2);
        assert_eq!(cache.get(&key(1), start + MINUTE), Some(Value::Score(2.0)));
        assert_eq!(cache.bytes(), ENTRY_BYTES);
    }

    #[test]
    fn bounds_of_zero_keep_nothing() {
        let now = Instant::now();
        for (bytes, lifetime) in [(0, MINUTE), (1 << 20, Duration::ZERO)] {
            let mut cache = Cache::new(bytes, lifetime);
            cache.put(key(1), Value::Score(1.0), now);
            assert_eq!((cache.get(&key(1), now), cache.bytes()), (None, 0));
        }
    }

    #[test]
    fn smaller_bounds_take_effect_at_once() {
        let (mut cache, now) = (cache_of(4), Instant::now());
        (1..=4).for_each(|n| cache.put(key(n), Value::Score(0.0), now));
        cache.set_bounds(2 * ENTRY_BYTES, MINUTE);
        assert_eq!(cache.bytes(), 2 * ENTRY_BYTES);
        assert!(cache.get(&key(4), now).is_some());
    }

    #[test]
    fn expire_drops_the_old_and_keeps_the_young() {
        let (mut cache, start) = (cache_of(4), Instant::now());
        cache.put(key(1), Value::Score(1.0), start);
        cache.put(key(2), Value::Score(2.0), start + MINUTE / 2);
        cache.expire(start + MINUTE);
        assert_eq!(cache.bytes(), ENTRY_BYTES);
        assert!(cache.get(&key(2), start + MINUTE).is_some());
    }
}
