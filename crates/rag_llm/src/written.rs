//! Text that comes in pieces which may end within a character.

/// Gives out whole characters, and keeps the beginning of one until the rest has come.
#[derive(Debug, Default)]
pub struct WholeCharacters {
    begun: Vec<u8>,
}

impl WholeCharacters {
    /// The characters that are whole by now. What is no UTF-8 becomes U+FFFD; U+0000, which Postgres has no place for, is left
    /// out.
    pub fn take(&mut self, piece: &[u8]) -> String {
        self.begun.extend_from_slice(piece);
        let mut text = String::new();
        let mut at = 0;
        loop {
            let rest = &self.begun[at..];
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    at = self.begun.len();
                    break;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&rest[..valid]));
                    at += valid;
                    let Some(invalid) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    at += invalid;
                }
            }
        }
        self.begun.drain(..at);
        text.retain(|c| c != '\0');
        text
    }

    /// What is left at the end: U+FFFD where a character was begun.
    pub fn finish(self) -> &'static str {
        if self.begun.is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        let mut characters = WholeCharacters::default();
        assert_eq!(characters.take(b"a\xffb\0\xf0\x9f"), "a\u{fffd}b");
        assert_eq!(characters.take(b"\x98"), "");
        assert_eq!(characters.take(b"\x80!\xc3"), "\u{1f600}!");
        assert_eq!(characters.finish(), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_text_comes_whole_however_it_is_cut(text in "[^\\x00]{0,20}", cuts in prop::collection::vec(1usize..4, 80)) {
            let mut characters = WholeCharacters::default();
            let (mut rest, mut found) = (text.as_bytes(), String::new());
            for cut in cuts {
                let (piece, others) = rest.split_at(cut.min(rest.len()));
                found.push_str(&characters.take(piece));
                rest = others;
            }
            prop_assert_eq!(found, text);
            prop_assert_eq!(characters.finish(), "");
        }
    }
}
