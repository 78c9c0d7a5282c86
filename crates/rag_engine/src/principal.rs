//! Keys that are worth nothing outside this process: who asks, for fair queueing, and what is asked, for the caches.
//!
//! Both are SHA-256 over length-prefixed parts under a random key drawn at the start, so neither can be guessed
//! from outside, and a cache never answers one caller with what another one asked.

use sha2::{Digest, Sha256};

/// Who asks, as the scheduler and the caches know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalKey(pub u128);

/// The random key of this process.
pub(crate) struct StartKey([u8; 32]);

impl StartKey {
    /// Draws a key. Fails only where the system has no randomness.
    pub(crate) fn draw() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// The key of a set of principals; their order does not matter.
    pub(crate) fn principal(&self, principals: &[String]) -> PrincipalKey {
        let mut sorted: Vec<&str> = principals.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let digest = self.digest("principals", &sorted.iter().map(|p| p.as_bytes()).collect::<Vec<_>>());
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        PrincipalKey(u128::from_le_bytes(half))
    }

    /// The key of something asked by `principal`. `kind` separates what might otherwise look alike.
    pub(crate) fn question(&self, kind: &str, principal: PrincipalKey, parts: &[&[u8]]) -> [u8; 32] {
        let principal = principal.0.to_le_bytes();
        let mut all: Vec<&[u8]> = Vec::with_capacity(parts.len() + 1);
        all.push(&principal);
        all.extend(parts);
        self.digest(kind, &all)
    }

    fn digest(&self, kind: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.0);
        for part in std::iter::once(&kind.as_bytes()).chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn order_of_principals_does_not_matter_but_their_borders_do() {
        let key = StartKey::draw().unwrap();
        let of = |names: &[&str]| key.principal(&names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(of(&["role:a", "role:b"]), of(&["role:b", "role:a"]));
        assert_ne!(of(&["role:a", "role:b"]), of(&["role:arole:b"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&[]), of(&[""]));
    }

    #[test]
    fn the_same_question_by_another_caller_has_another_key() {
        let key = StartKey::draw().unwrap();
        let (a, b) = (PrincipalKey(1), PrincipalKey(2));
        assert_eq!(key.question("embed", a, &[b"x"]), key.question("embed", a, &[b"x"]));
        assert_ne!(key.question("embed", a, &[b"x"]), key.question("embed", b, &[b"x"]));
        assert_ne!(key.question("embed", a, &[b"x"]), key.question("rerank", a, &[b"x"]));
        assert_ne!(key.question("embed", a, &[b"x", b"y"]), key.question("embed", a, &[b"xy"]));
    }

    #[test]
    fn two_starts_have_different_keys() {
        let (a, b) = (StartKey::draw().unwrap(), StartKey::draw().unwrap());
        assert_ne!(a.principal(&["role:a".into()]), b.principal(&["role:a".into()]));
    }
}
