//! Ids: UUID version 7, made from a clock and random bytes that the caller supplies, and version 8, made from
//! what it names.

/// A UUID version 7: 48 bits of Unix time in milliseconds, then 74 random bits.
///
/// `unix_ms` beyond 48 bits (the year 10889) wraps. Of the ten random bytes six bits are overwritten by
/// the version and the variant. Ids of different milliseconds sort by time; within one they are random.
/// Source: RFC 9562, section 5.7.
pub fn uuid_v7(unix_ms: u64, random: [u8; 10]) -> [u8; 16] {
    let mut id = [0u8; 16];
    id[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
    id[6..].copy_from_slice(&random);
    id[6] = 0x70 | (id[6] & 0x0f);
    id[8] = 0x80 | (id[8] & 0x3f);
    id
}

/// A UUID version 8 from a hash: its first 16 bytes, less the six bits of version and variant.
///
/// Source: RFC 9562, section 5.8.
pub fn uuid_v8(hash: [u8; 32]) -> [u8; 16] {
    let mut id = [0u8; 16];
    id.copy_from_slice(&hash[..16]);
    id[6] = 0x80 | (id[6] & 0x0f);
    id[8] = 0x80 | (id[8] & 0x3f);
    id
}

#[cfg(test)]
mod tests {
    use super::{uuid_v7, uuid_v8};

    #[test]
    fn a_hash_keeps_all_but_six_bits() {
        let id = uuid_v8([0xff; 32]);
        assert_eq!(id[6] >> 4, 8);
        assert_eq!(id[8] >> 6, 2);
        assert_eq!(id.iter().map(|byte| byte.count_ones()).sum::<u32>(), 128 - 4);
    }

    #[test]
    fn the_id_equals_the_example_of_the_standard() {
        // RFC 9562, appendix A.6: 017F22E2-79B0-7CC3-98C4-DC0C0C07398F.
        let random = [0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f];
        let expected = 0x017F_22E2_79B0_7CC3_98C4_DC0C_0C07_398F_u128.to_be_bytes();
        assert_eq!(uuid_v7(0x017F_22E2_79B0, random), expected);
    }

    #[test]
    fn a_later_millisecond_sorts_later_whatever_the_random_bytes() {
        assert!(uuid_v7(1_000, [0xff; 10]) < uuid_v7(1_001, [0; 10]));
    }

    #[test]
    fn version_and_variant_stand_for_any_random_bytes() {
        for byte in [0x00, 0xff, 0x5a] {
            let id = uuid_v7(u64::MAX, [byte; 10]);
            assert_eq!(id[6] >> 4, 7);
            assert_eq!(id[8] >> 6, 2);
        }
    }
}
