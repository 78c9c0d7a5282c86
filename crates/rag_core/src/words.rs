//! Stems and stop words of languages, for the keyword index and for whatever else compares words.

pub use frostem::{Algorithm, Stemmer};

/// Words of a language, by its ISO 639-1 code, that say nothing about a topic; empty where no list is known.
///
/// Source: the lists of NLTK.
pub fn stop_words(language: &str) -> &'static [&'static str] {
    stop_words::lookup(language).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_by_the_code_of_a_language() {
        assert!(stop_words("en").contains(&"the") && stop_words("de").contains(&"und"));
        assert!(stop_words("").is_empty() && stop_words("tlh").is_empty());
    }

    #[test]
    fn words_become_stems() {
        assert_eq!(Stemmer::new(Algorithm::English).stem("running"), "run");
        assert_eq!(Stemmer::new(Algorithm::German).stem("häuser"), "haus");
    }
}
