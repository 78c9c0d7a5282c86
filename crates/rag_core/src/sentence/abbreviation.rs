//! Full stops that end no sentence.
//!
//! Those of English and German count everywhere, for people do not always say in which language they write, as far
//! as they are no words of other languages; those of the text's own language come on top.

/// The language of a text, as far as its full stops go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SentenceLanguage {
    /// None of those below, or not known.
    Unknown,
    Danish,
    Dutch,
    English,
    French,
    German,
    Italian,
    Norwegian,
    Polish,
    Portuguese,
    Spanish,
    Swedish,
}

impl SentenceLanguage {
    /// By the name of Postgres' text search configuration, such as `german`.
    pub fn from_name(name: &str) -> Self {
        match name {
            "danish" => Self::Danish,
            "dutch" => Self::Dutch,
            "english" => Self::English,
            "french" => Self::French,
            "german" => Self::German,
            "italian" => Self::Italian,
            "norwegian" => Self::Norwegian,
            "polish" => Self::Polish,
            "portuguese" => Self::Portuguese,
            "spanish" => Self::Spanish,
            "swedish" => Self::Swedish,
            _ => Self::Unknown,
        }
    }

    /// What ends no sentence whatever follows, besides [`TITLES_AND_CONNECTIVES`].
    fn own(self) -> &'static [&'static str] {
        match self {
            Self::Unknown => &[],
            Self::English => &["inc", "ltd", "corp", "co", "jr", "sr", "dept", "est", "assn", "u.s"],
            Self::German => &[
                "str", "geb", "gest", "verh", "usw", "u.u", "i.a", "i.ü", "m.e", "o.g", "s.a", "sen", "jun",
                "dipl", "ing", "ggü", "max", "min", "mind", "allg", "bes", "einschl", "zzgl", "abzgl",
            ],
            Self::French => &[
                "p.ex", "ex", "m", "mm", "mme", "mlle", "me", "mgr", "env", "av", "apr", "j.-c", "cf", "éd",
                "dir", "bd", "boul", "art", "chap", "c.-à-d", "r.-v",
            ],
            Self::Spanish => &[
                "sr", "sra", "srta", "dra", "ud", "uds", "avda", "av", "p.ej", "ej", "pág", "págs", "núm",
                "art", "d", "dª", "lic", "ing", "ee.uu", "aprox", "gral", "tel",
            ],
            Self::Italian => &[
                "sig", "sigg", "sig.ra", "dott", "dott.ssa", "avv", "ing", "arch", "ad es", "es", "p.es",
                "pag", "pagg", "art", "artt", "cap", "ecc", "c.d", "n", "tel", "s.p.a", "s.r.l",
            ],
            Self::Portuguese => &[
                "sr", "sra", "srs", "dra", "exmo", "exma", "av", "p.ex", "ex", "pág", "págs", "núm", "art",
                "eng", "tel", "ltda",
            ],
            Self::Dutch => &[
                "dhr", "mevr", "mw", "ir", "drs", "mr", "bijv", "bv", "o.a", "d.w.z", "m.b.t", "i.v.m",
                "t.o.v", "z.o.z", "e.d", "ca", "nr", "blz", "incl", "excl", "jl",
            ],
            Self::Polish => &[
                "np", "ul", "al", "pl", "tzn", "tj", "m.in", "ok", "godz", "im", "św", "mgr", "inż", "hab",
                "pt", "zob", "por", "str", "nr", "ww", "tzw",
            ],
            Self::Danish | Self::Norwegian => &[
                "bl.a", "f.eks", "dvs", "ca", "evt", "inkl", "jf", "mv", "nr", "osv", "pga", "tlf", "vedr",
                "kl", "hr", "fr", "frk",
            ],
            Self::Swedish => &[
                "bl.a", "t.ex", "dvs", "ca", "ev", "exkl", "inkl", "jfr", "kl", "m.m", "nr", "o.d", "osv",
                "p.g.a", "resp", "s.k", "tel",
            ],
        }
    }
}

/// Followed by anything, these end no sentence.
const TITLES_AND_CONNECTIVES: &[&str] = &[
    "e.g", "i.e", "cf", "vs", "viz", "resp", "dr", "mr", "mrs", "ms", "prof", "st", "gen", "col", "capt",
    "lt", "sgt", "rev", "hon", "messrs", "z.b", "d.h", "u.a", "o.ä", "s.o", "s.u", "i.d.r", "bzw", "ggf",
    "vgl", "hr", "fr", "sog", "evtl", "inkl", "approx", "incl", "esp",
];

/// Followed by a number (or a letter, as in "App. B"), these end no sentence.
const BEFORE_NUMBERS: &[&str] = &[
    "no", "nos", "fig", "figs", "eq", "eqs", "sec", "secs", "ch", "chap", "vol", "vols", "p", "pp", "art",
    "ver", "v", "app", "tab", "ref", "refs", "par", "para", "ed", "nr", "abs", "abb", "kap", "bd", "s", "ca",
    "c", "approx", "§",
];

/// Ahead of these, a German ordinal ("3. Mai") ends no sentence.
const GERMAN_MONTHS: &[&str] = &[
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

/// Whether the boundary between `before` and `after` is none, because `before` ends in an abbreviation.
pub(super) fn joins(language: SentenceLanguage, before: &str, after: &str) -> bool {
    let Some(before) = before.trim_end().strip_suffix('.') else { return false };
    let word =
        before.rsplit(|c: char| c.is_whitespace() || "([{\"'“‘„»".contains(c)).next().unwrap_or(before);
    let next = after.trim_start();
    let Some(first) = next.chars().next() else { return false };
    if word.is_empty() || word.len() > 12 {
        return false;
    }
    if word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit()) {
        let name = next.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        return GERMAN_MONTHS.contains(&name);
    }
    let lower = word.to_lowercase();
    if TITLES_AND_CONNECTIVES.contains(&lower.as_str()) || language.own().contains(&lower.as_str()) {
        return true;
    }
    if BEFORE_NUMBERS.contains(&lower.as_str()) && first.is_numeric() {
        return true;
    }
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        // An initial, "J. Smith"; "I" is a word. German "z. B." too.
        (Some(letter), None) => {
            (letter.is_uppercase() && letter != 'I' && first.is_uppercase())
                || (letter.is_lowercase() && starts_with_initial(next))
        }
        // Initials written together, "J.R. Tolkien", where the last is preceded by a full stop.
        (Some(letter), Some('.')) => {
            letter.is_uppercase()
                && first.is_uppercase()
                && word.split('.').count() > 1
                && word.split('.').all(|part| part.chars().count() == 1)
                && !matches!(lower.as_str(), "u.s" | "u.k" | "e.u" | "u.n" | "u.s.a" | "a.d" | "b.c")
        }
        _ => false,
    }
}

/// Whether a text begins with one letter and a full stop.
fn starts_with_initial(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(char::is_alphabetic) && chars.next() == Some('.')
}
