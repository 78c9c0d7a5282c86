//! SHA-256, the content hash of documents, texts and segments.

use sha2::{Digest, Sha256};

/// The SHA-256 digest of some bytes.
///
/// Source: FIPS 180-4.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The first eight bytes of the [`sha256`] of some bytes, as a number: to tell names apart where there is no room for more.
pub fn number(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = sha256(bytes);
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// [`sha256`] of bytes that come piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all of them.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Hasher, number, sha256};

    fn hex(digest: [u8; 32]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_equal_the_published_examples() {
        let examples = [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ];
        for (input, expected) in examples {
            assert_eq!(hex(sha256(input.as_bytes())), expected, "of {input:?}");
            let mut hasher = Hasher::default();
            input.as_bytes().chunks(2).for_each(|piece| hasher.update(piece));
            assert_eq!(hex(hasher.finish()), expected, "of {input:?} in pieces");
            assert_eq!(format!("{:016x}", number(input.as_bytes())), expected[..16], "of {input:?}");
        }
    }
}
