//! Numbers of list items as Word and PowerPoint write them.

/// Largest number that letters are repeated for; beyond, digits are shorter.
const MAX_LETTERED: u32 = 26 * 10;

/// Largest number written in Roman numerals.
const MAX_ROMAN: u32 = 3_999;

/// A number in one of the formats of `ST_NumberFormat`; formats that are words or of other scripts become digits.
pub(crate) fn formatted(number: u32, format: &str) -> String {
    match format {
        "upperRoman" => roman(number),
        "lowerRoman" => roman(number).to_lowercase(),
        "upperLetter" => lettered(number, b'A'),
        "lowerLetter" => lettered(number, b'a'),
        "decimalZero" => format!("{number:02}"),
        "none" => String::new(),
        _ => number.to_string(),
    }
}

fn roman(number: u32) -> String {
    const SIGNS: [(u32, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if number == 0 || number > MAX_ROMAN {
        return number.to_string();
    }
    let mut left = number;
    let mut roman = String::new();
    for (value, sign) in SIGNS {
        while left >= value {
            roman.push_str(sign);
            left -= value;
        }
    }
    roman
}

/// a … z, aa, bb … zz, aaa: the letter is repeated.
fn lettered(number: u32, first: u8) -> String {
    if number == 0 || number > MAX_LETTERED {
        return number.to_string();
    }
    let letter = char::from(first + ((number - 1) % 26) as u8);
    std::iter::repeat_n(letter, (number as usize - 1) / 26 + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::formatted;

    #[test]
    fn numbers_are_written_as_word_writes_them() {
        let cases = [
            (4, "decimal", "4"),
            (4, "decimalZero", "04"),
            (1_994, "upperRoman", "MCMXCIV"),
            (4, "lowerRoman", "iv"),
            (0, "lowerRoman", "0"),
            (u32::MAX, "upperRoman", "4294967295"),
            (26, "upperLetter", "Z"),
            (28, "lowerLetter", "bb"),
            (u32::MAX, "lowerLetter", "4294967295"),
            (3, "none", ""),
            (3, "chicago", "3"),
        ];
        for (number, format, expected) in cases {
            assert_eq!(formatted(number, format), expected, "{format}");
        }
    }
}
