//! The languages that text can be analysed in, named like Postgres' text search configurations.

use rag_core::words::{self, Algorithm, Stemmer};

/// How the text of a segment is analysed: which stop words are dropped and how words are stemmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Language {
    /// No stop words and no stemmer; words are still folded to lower case.
    Simple,
    Arabic,
    Armenian,
    Basque,
    Catalan,
    Danish,
    Dutch,
    English,
    Estonian,
    Finnish,
    French,
    German,
    Greek,
    Hindi,
    Hungarian,
    Indonesian,
    Irish,
    Italian,
    Lithuanian,
    Nepali,
    Norwegian,
    Polish,
    Portuguese,
    Romanian,
    Russian,
    Serbian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
    Yiddish,
}

/// Name, ISO 639-1 code and stemmer of each language. The order is the code that blobs store: append only.
const TABLE: [(Language, &str, &str, Option<Algorithm>); 31] = {
    use Algorithm as A;
    use Language as L;
    [
        (L::Simple, "simple", "", None),
        (L::Arabic, "arabic", "ar", Some(A::Arabic)),
        (L::Armenian, "armenian", "hy", Some(A::Armenian)),
        (L::Basque, "basque", "eu", Some(A::Basque)),
        (L::Catalan, "catalan", "ca", Some(A::Catalan)),
        (L::Danish, "danish", "da", Some(A::Danish)),
        (L::Dutch, "dutch", "nl", Some(A::Dutch)),
        (L::English, "english", "en", Some(A::English)),
        (L::Estonian, "estonian", "et", Some(A::Estonian)),
        (L::Finnish, "finnish", "fi", Some(A::Finnish)),
        (L::French, "french", "fr", Some(A::French)),
        (L::German, "german", "de", Some(A::German)),
        (L::Greek, "greek", "el", Some(A::Greek)),
        (L::Hindi, "hindi", "hi", Some(A::Hindi)),
        (L::Hungarian, "hungarian", "hu", Some(A::Hungarian)),
        (L::Indonesian, "indonesian", "id", Some(A::Indonesian)),
        (L::Irish, "irish", "ga", Some(A::Irish)),
        (L::Italian, "italian", "it", Some(A::Italian)),
        (L::Lithuanian, "lithuanian", "lt", Some(A::Lithuanian)),
        (L::Nepali, "nepali", "ne", Some(A::Nepali)),
        (L::Norwegian, "norwegian", "no", Some(A::Norwegian)),
        (L::Polish, "polish", "pl", Some(A::Polish)),
        (L::Portuguese, "portuguese", "pt", Some(A::Portuguese)),
        (L::Romanian, "romanian", "ro", Some(A::Romanian)),
        (L::Russian, "russian", "ru", Some(A::Russian)),
        (L::Serbian, "serbian", "sr", Some(A::Serbian)),
        (L::Spanish, "spanish", "es", Some(A::Spanish)),
        (L::Swedish, "swedish", "sv", Some(A::Swedish)),
        (L::Tamil, "tamil", "ta", Some(A::Tamil)),
        (L::Turkish, "turkish", "tr", Some(A::Turkish)),
        (L::Yiddish, "yiddish", "yi", Some(A::Yiddish)),
    ]
};

const ALL: [Language; TABLE.len()] = {
    let mut all = [Language::Simple; TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        all[at] = TABLE[at].0;
        at += 1;
    }
    all
};

impl Language {
    /// The language of a Postgres text search configuration (`english`, `pg_catalog.german`, `simple`) or of
    /// an ISO 639-1 code (`en`); case does not matter. `None` for a name not known here.
    pub fn from_name(name: &str) -> Option<Language> {
        let name = name.trim().to_ascii_lowercase();
        let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
        let found = TABLE.iter().find(|row| row.1 == name || (!row.2.is_empty() && row.2 == name));
        found.map(|row| row.0)
    }

    /// The name of the Postgres text search configuration.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Its ISO 639-1 code, such as `de`; none of [`Language::Simple`].
    pub fn iso_code(self) -> Option<&'static str> {
        Some(TABLE[self as usize].2).filter(|code| !code.is_empty())
    }

    /// All languages, in the order of their codes.
    pub fn all() -> &'static [Language] {
        &ALL
    }

    /// The number that blobs store.
    pub(crate) fn code(self) -> u16 {
        self as u16
    }

    pub(crate) fn from_code(code: u16) -> Option<Language> {
        ALL.get(usize::from(code)).copied()
    }

    pub(crate) fn stemmer(self) -> Option<Stemmer> {
        TABLE[self as usize].3.map(Stemmer::new)
    }

    /// Words too common to be indexed; empty where no list is known.
    pub(crate) fn stop_words(self) -> &'static [&'static str] {
        words::stop_words(TABLE[self as usize].2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_language_is_its_row_in_the_table() {
        for (at, language) in Language::all().iter().enumerate() {
            assert_eq!(usize::from(language.code()), at);
            assert_eq!(Language::from_code(language.code()), Some(*language));
        }
        assert_eq!(Language::from_code(31), None);
    }

    #[test]
    fn names_are_those_of_text_search_configurations_and_iso_codes() {
        for language in Language::all() {
            assert_eq!(Language::from_name(language.name()), Some(*language));
        }
        assert_eq!(Language::from_name("pg_catalog.English"), Some(Language::English));
        assert_eq!(Language::from_name("de"), Some(Language::German));
        assert_eq!(Language::from_name(""), None);
        assert_eq!(Language::from_name("klingon"), None);
    }

    #[test]
    fn the_common_languages_have_stop_words() {
        use Language as L;
        for language in [L::English, L::German, L::French, L::Spanish, L::Italian, L::Dutch, L::Russian] {
            assert!(language.stop_words().len() > 50, "{language:?}");
        }
        assert!(L::Simple.stop_words().is_empty());
    }
}
