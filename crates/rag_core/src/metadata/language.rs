//! The language of a text as an ISO 639-1 code.

/// Bytes that are looked at: more do not make the guess better.
const MAX_BYTES: usize = 16 * 1024;

/// Letters below which a guess is a throw of dice.
const MIN_LETTERS: usize = 40;

/// Words that are frequent in English, and rare or unknown in each other language of the detector, in order: not `of`, `was` or
/// `are`.
const ENGLISH: [&str; 30] = [
    "about", "and", "because", "been", "between", "both", "but", "from", "into", "its", "not", "other",
    "should", "such", "than", "that", "the", "their", "there", "these", "they", "this", "were", "what",
    "when", "which", "with", "would", "you", "your",
];

/// Bytes of the longest of them.
const LONGEST_ENGLISH_WORD: usize = 7;

/// So many different ones are more than a title in another language's sentence.
const LEAST_ENGLISH_WORDS: u32 = 4;

/// One in so many words of a plainly English text is one of them.
const ENGLISH_SHARE: usize = 10;

/// One in so many words of a text that is partly in another language has letters beyond ASCII.
const FOREIGN_SHARE: usize = 25;

/// ISO 639-3 codes that the detector knows, with their two letters.
const CODES: &str = "afr af aka ak amh am ara ar aze az bel be ben bn bul bg cat ca ces cs cmn zh dan da deu de ell el \
eng en epo eo est et fin fi fra fr guj gu heb he hin hi hrv hr hun hu hye hy ind id ita it jav jv jpn ja kan kn kat ka \
khm km kor ko lat la lav lv lit lt mal ml mar mr mkd mk mya my nep ne nld nl nob nb ori or pan pa pes fa pol pl por pt \
ron ro rus ru sin si slk sk slv sl sna sn spa es srp sr swe sv tam ta tel te tgl tl tha th tuk tk tur tr ukr uk urd ur \
uzb uz vie vi yid yi zul zu cym cy";

/// The language, if the text says so clearly.
pub fn language_of(text: &str) -> Option<&'static str> {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    if text.chars().filter(|c| c.is_alphabetic()).take(MIN_LETTERS).count() < MIN_LETTERS {
        return None;
    }
    if is_plainly_english(text) {
        return Some("en");
    }
    let found = whatlang::detect(text).filter(whatlang::Info::is_reliable)?;
    short_code(found.lang().code())
}

/// Whether so many words are English alone that no other language can be the text's: of an English text they are about a
/// seventh. The detector compares a text with each of its languages, however short it is, and most texts are English.
fn is_plainly_english(text: &str) -> bool {
    let (mut words, mut english, mut beyond_ascii) = (0, 0, 0);
    let mut seen = 0_u32;
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
        words += 1;
        beyond_ascii += usize::from(!word.is_ascii());
        if let Some(place) = place_in_english(word) {
            english += 1;
            seen |= 1 << place;
        }
    }
    seen.count_ones() >= LEAST_ENGLISH_WORDS
        && english * ENGLISH_SHARE >= words
        && beyond_ascii * FOREIGN_SHARE <= words
}

/// Where a word stands in [`ENGLISH`].
fn place_in_english(word: &str) -> Option<usize> {
    let mut lower = [0; LONGEST_ENGLISH_WORD];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    ENGLISH.binary_search_by(|known| known.as_bytes().cmp(lower)).ok()
}

/// The language of a text, as a code, if it is none of `known`: told by the script, and from some 40 letters on by the
/// words. `None` also where nothing is known, or nothing can be told.
pub fn foreign_language(text: &str, known: &[String]) -> Option<&'static str> {
    let is_known = |code: &str| known.iter().any(|k| k == code);
    let script = whatlang::detect_script(text).filter(|_| !known.is_empty())?;
    let of_script: Vec<&str> = script.langs().iter().filter_map(|lang| short_code(lang.code())).collect();
    if of_script.iter().any(|code| is_known(code)) {
        return language_of(text).filter(|code| !is_known(code));
    }
    // Whichever of them it is.
    let guessed = whatlang::detect(text).and_then(|found| short_code(found.lang().code()));
    guessed.or(of_script.first().copied())
}

/// The language that a file says it is in, as a code: `en-US` is `en`, `deu` is `de`.
pub(super) fn declared(tag: &str) -> Option<String> {
    let primary = tag.split(['-', '_']).next()?.trim().to_ascii_lowercase();
    match primary.len() {
        2 if primary.bytes().all(|b| b.is_ascii_alphabetic()) => Some(primary),
        3 => short_code(&primary).map(str::to_owned),
        _ => None,
    }
}

fn short_code(long: &str) -> Option<&'static str> {
    let mut codes = CODES.split(' ');
    while let (Some(three), Some(two)) = (codes.next(), codes.next()) {
        if three == long {
            return Some(two);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_foreign_by_its_script_or_by_enough_of_its_words() {
        let known = ["en".to_owned()];
        for (text, foreign) in [
            ("Who wrote the report?", None),
            ("Wer schrieb das?", None),
            ("Wer hat den Bericht über die Hafengebühren des vergangenen Jahres geschrieben?", Some("de")),
            ("北京有多少人？", Some("zh")),
            ("1234 ?", None),
        ] {
            assert_eq!(foreign_language(text, &known), foreign, "{text}");
            assert_eq!(foreign_language(text, &[]), None, "{text}");
        }
        // By its script alone a short text may be in one of several.
        assert!(foreign_language("Кто написал отчёт?", &known).is_some());
        assert_eq!(foreign_language("Кто написал отчёт?", &["bg".to_owned()]), None);
    }

    #[test]
    fn every_language_of_the_detector_has_a_code() {
        let missing: Vec<&str> = whatlang::Lang::all()
            .iter()
            .map(whatlang::Lang::code)
            .filter(|code| short_code(code).is_none())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn sentences_show_their_language() {
        for (text, expected) in [
            ("The committee met on Tuesday and decided that the bridge would be closed for repairs.", "en"),
            (
                "Der Ausschuss hat am Dienstag beschlossen, dass die Brücke für Reparaturen gesperrt wird.",
                "de",
            ),
            ("Le comité a décidé mardi que le pont serait fermé pendant les travaux de réparation.", "fr"),
        ] {
            assert_eq!(language_of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_text_with_english_words_in_it_is_in_its_own_language() {
        let english =
            "The committee met on Tuesday and decided that the bridge would be closed for these repairs.";
        assert!(is_plainly_english(english));
        assert!(is_plainly_english(&format!("{english} {english} The façade was not seen.")));
        for (text, expected) in [
            (
                "Im Handbuch steht: »The file has been saved with these settings.« Diese Meldung erscheint nach dem Speichern, \
                 wenn alle Einstellungen stimmen und die Datei geschrieben werden konnte. Wird sie nicht angezeigt, so ist bitte \
                 zuerst nachzusehen, wer in dem Verzeichnis schreiben darf und ob genug Platz auf dem Laufwerk ist.",
                Some("de"),
            ),
            (
                "De commissie van de gemeente is van mening dat het water in de haven niet was gemeten, en dat is wat er in het \
                 verslag staat; of het waar is, weet niemand.",
                None,
            ),
        ] {
            assert!(!is_plainly_english(text), "{text}");
            assert_eq!(language_of(text), expected, "{text}");
        }
        for text in [
            "Der Film The Good, the Bad and the Ugly lief gestern Abend im Kino und hat mir wieder sehr gut gefallen, obwohl er \
             so lang ist.",
            "Hier soir nous avons vu The Lord of the Rings: The Return of the King au cinéma, et nous avons trouvé que ce film \
             est bien plus long que le livre ne le laisse croire.",
            "The and that.",
        ] {
            assert!(!is_plainly_english(text), "{text}");
        }
        assert!(ENGLISH.is_sorted() && ENGLISH.len() <= 32);
        assert!(ENGLISH.iter().all(
            |word| word.len() <= LONGEST_ENGLISH_WORD && place_in_english(&word.to_uppercase()).is_some()
        ));
    }

    #[test]
    fn too_little_text_has_no_language() {
        for text in ["", "12345 67890 12345 67890 12345", "Hello"] {
            assert_eq!(language_of(text), None, "{text}");
        }
    }

    #[test]
    fn declared_tags_become_codes() {
        assert_eq!(declared("en-US").as_deref(), Some("en"));
        assert_eq!(declared("DEU").as_deref(), Some("de"));
        assert_eq!(declared("x-klingon"), None);
    }
}
