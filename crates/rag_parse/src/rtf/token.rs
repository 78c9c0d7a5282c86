//! Groups, controls and text.

/// Most letters of a control word.
const MAX_WORD: usize = 32;

/// A piece of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// The group that begins may be passed over by who does not know it.
    Optional,
    Word(&'a str, Option<i32>),
    /// Text in the encoding of its font.
    Text(&'a [u8]),
    /// The same, written as a number.
    Byte(u8),
    /// A UTF-16 code unit.
    Character(i32),
}

/// Reads one token after the other.
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn control(&mut self) -> Option<Token<'a>> {
        let (first, after) = self.rest.split_first()?;
        if !first.is_ascii_alphabetic() {
            self.rest = after;
            return Some(match first {
                b'\'' => {
                    let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
                    let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
                    self.rest = if byte.is_some() { &after[2..] } else { after };
                    Token::Byte(byte.unwrap_or(b'\''))
                }
                b'*' => Token::Optional,
                b'~' => Token::Text(b" "),
                b'_' => Token::Text(b"-"),
                b'\n' | b'\r' => Token::Word("par", None),
                b'\t' => Token::Word("tab", None),
                b'\\' | b'{' | b'}' => Token::Byte(*first),
                // An optional hyphen and the like.
                _ => Token::Text(b""),
            });
        }
        let length = self.rest.iter().take(MAX_WORD).take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, after) = self.rest.split_at(length);
        let is_negative = after.first() == Some(&b'-') && after.get(1).is_some_and(u8::is_ascii_digit);
        let after = if is_negative { &after[1..] } else { after };
        let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
        let number = after[..digits].iter().fold(None::<i32>, |number, digit| {
            Some(number.unwrap_or_default().saturating_mul(10).saturating_add(i32::from(digit - b'0')))
        });
        let number = number.map(|number| if is_negative { -number } else { number });
        let after = &after[digits..];
        self.rest = after.strip_prefix(b" ").unwrap_or(after);
        let word = std::str::from_utf8(word).unwrap_or_default();
        Some(match (word, number) {
            ("u", Some(number)) => Token::Character(number),
            ("bin", Some(length)) => {
                let length = usize::try_from(length).unwrap_or_default();
                self.rest = self.rest.get(length..).unwrap_or_default();
                Token::Text(b"")
            }
            _ => Token::Word(word, number),
        })
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (first, after) = self.rest.split_first()?;
            match first {
                b'{' => {
                    self.rest = after;
                    return Some(Token::Open);
                }
                b'}' => {
                    self.rest = after;
                    return Some(Token::Close);
                }
                b'\\' => {
                    self.rest = after;
                    return self.control();
                }
                b'\r' | b'\n' | 0 => self.rest = after,
                _ => {
                    let ends = |byte: &u8| matches!(byte, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0);
                    let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
                    let (text, rest) = self.rest.split_at(length);
                    self.rest = rest;
                    return Some(Token::Text(text));
                }
            }
        }
    }
}
