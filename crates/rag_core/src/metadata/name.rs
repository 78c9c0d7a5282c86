//! Companies and other names in a text, by how they are written: a heuristic, and no more.
//!
//! A company is a run of capitalised words before a legal form. Another name is a run of two to four capitalised
//! words that does not merely begin a sentence. Where a language capitalises its nouns, a run says little, so it
//! counts only behind a title such as `Dr.` or `Frau`.

use regex::Regex;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Legal forms, the longer before the shorter. Case counts: `AS` and `as` are two words.
const LEGAL_FORMS: &str = r"GmbH ?& ?Co\.? ?KGaA|GmbH ?& ?Co\.? ?KG|AG ?& ?Co\.? ?KGaA|AG ?& ?Co\.? ?KG|SE ?& ?Co\.? ?KGaA|gGmbH|GmbH|mbH|KGaA|KG|OHG|oHG|GbR|UG|AG|SE|e\. ?V\.|eG|Genossenschaft|Stiftung|Incorporated|Inc\.?|Corporation|Corp\.?|Company|Limited|Ltd\.?|LLC|L\.L\.C\.|LLP|L\.P\.|LP|PLC|plc|Pty\.? Ltd\.?|Pte\.? Ltd\.?|S\.A\.S\.|SAS|S\.A\.R\.L\.|SARL|Sàrl|S\.à r\.l\.|S\.A\.|SA|S\.p\.A\.|SpA|S\.r\.l\.|Srl|S\.L\.|B\.V\.|BV|N\.V\.|NV|Oyj|Oy|AB|ASA|A/S|ApS|Sp\. z o\.o\.|s\.r\.o\.|a\.s\.|Kft\.?|K\.K\.";

/// Words that begin a sentence or a heading more often than a name.
static COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| COMMON_WORDS.split_whitespace().collect());

const COMMON_WORDS: &str = "\
    a about above after all also although an and annex any appendix are as at because been before below both \
    but by can chapter contents could despite did do does during each either every few figure finally first \
    for from furthermore had has have he hence her here his how however i if in instead introduction is it \
    its last later many may meanwhile more moreover most my neither next no nor not note now of on once one \
    only or other our over page part please see section several she should since so some such summary table \
    than that the their then there these they this those three though thus to two under unless until was we \
    were what when where whereas whether which while who why will with within without would yes yet you your \
    aber alle als am an auch auf aus bei bis da damit das dass dem den der des die dies diese dieser dieses \
    durch ein eine einem einen einer er es für gegen hier ich ihr ihre im in ist kein keine mit nach nicht \
    nur oder ohne sein seine seit sie sind so über um und unter vom von vor war was wenn wer wie wir zu zum \
    zur zwischen monday tuesday wednesday thursday friday saturday sunday january february march april june \
    july august september october november december montag dienstag mittwoch donnerstag freitag samstag \
    sonntag januar februar märz mai juni juli oktober dezember";

const TITLES: &[&str] = &[
    "mr",
    "mrs",
    "ms",
    "miss",
    "dr",
    "prof",
    "professor",
    "sir",
    "lady",
    "lord",
    "president",
    "herr",
    "herrn",
    "frau",
    "dipl",
    "ing",
    "med",
    "phil",
    "jur",
    "madame",
    "monsieur",
    "señor",
    "señora",
];

/// Words within a name that are written small.
const PARTICLES: &[&str] = &[
    "von", "van", "der", "den", "de", "di", "da", "del", "della", "du", "la", "le", "zu", "of", "ten", "ter",
    "y", "al",
];

static COMPANY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let word = r"(?:\p{Lu}[\p{L}\p{N}'’.\-]*|\p{N}+\p{Lu}[\p{L}\p{N}]*)";
    let link = r"(?:[ \u{a0}](?:&|\+|and|und|et|y|of|für|de)[ \u{a0}]|[ \u{a0}])";
    Regex::new(&format!(
        r"(?<name>{word}(?:{link}{word}){{0,5}}?),?[ \u{{a0}}](?<form>{LEGAL_FORMS})(?<end>[^\p{{L}}\p{{N}}]|$)"
    ))
    .ok()
});

/// The companies of a text with their legal forms, each once, in the order of the text, at most `limit`.
pub(super) fn companies(text: &str, limit: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, company) in company_places(text) {
        if !found.contains(&company) {
            found.push(company);
            if found.len() == limit {
                break;
            }
        }
    }
    found
}

/// Each place of a text that names a company, and the name.
pub(crate) fn company_places(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, String)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let pattern = COMPANY.as_ref()?;
        loop {
            let captures = pattern.captures_at(text, at)?;
            let (name, form) = (captures.name("name")?, captures.name("form")?);
            at = form.end();
            if text[..name.start()].ends_with(|c: char| c.is_alphanumeric()) {
                continue;
            }
            let words: Vec<&str> =
                name.as_str().split_whitespace().skip_while(|word| is_common(word)).collect();
            // A legal form alone is no company, and neither is "The Company".
            if words.is_empty() || words.iter().all(|word| bare(word).chars().count() < 2) {
                continue;
            }
            let start = name.start() + name.as_str().find(words[0]).unwrap_or_default();
            return Some((start..form.end(), format!("{} {}", words.join(" "), form.as_str())));
        }
    })
}

struct Word<'a> {
    text: &'a str,
    /// Nothing but blanks stands between it and the word before.
    continues: bool,
    begins_sentence: bool,
}

/// Names other than companies, the more frequent first and otherwise in the order of the text, at most `limit`.
///
/// `nouns_are_capitalised`: as in German.
pub(super) fn names(text: &str, nouns_are_capitalised: bool, limit: usize) -> Vec<String> {
    let words = words_of_prose(text);
    let written_small: HashSet<&str> =
        words.iter().map(|w| w.text).filter(|w| w.starts_with(char::is_lowercase)).collect();
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    let mut i = 0;
    while i < words.len() {
        let (run, next) = run_at(&words, i);
        let Some(run) = run else {
            i = next;
            continue;
        };
        i = next.max(i + 1);
        let texts = words[run].iter().map(|word| word.text);
        let (lead, mut parts): (Vec<&str>, Vec<&str>) = {
            let mut leads = true;
            texts.partition(|text| {
                leads = leads && (is_title(text) || is_common(text));
                leads
            })
        };
        let titled = lead.iter().any(|text| is_title(text));
        while parts.last().is_some_and(|last| PARTICLES.contains(last)) {
            parts.pop();
        }
        let capitals = parts.iter().filter(|part| is_capitalised(part)).count();
        let ordinary = parts
            .iter()
            .any(|part| written_small.contains(part.to_lowercase().as_str()) && is_capitalised(part));
        let wanted = if titled { 1..=4 } else { 2..=4 };
        if !wanted.contains(&capitals) || (nouns_are_capitalised && !titled) {
            continue;
        }
        // "Annual Report" is a name only where neither word is used as a word.
        if ordinary && !titled {
            continue;
        }
        let order = counts.len();
        counts.entry(parts.join(" ")).or_insert((0, order)).0 += 1;
    }
    let mut names: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    names.sort_by(|(_, (a, first_a)), (_, (b, first_b))| b.cmp(a).then(first_a.cmp(first_b)));
    names.into_iter().take(limit).map(|(name, _)| name).collect()
}

/// The run of capitalised words, with particles between, that begins at `start`, and where to look on.
fn run_at(words: &[Word<'_>], start: usize) -> (Option<std::ops::Range<usize>>, usize) {
    let first = &words[start];
    if !is_capitalised(first.text) && !is_title(first.text) {
        return (None, start + 1);
    }
    let mut end = start + 1;
    while end < words.len() && words[end].continues {
        let word = words[end].text;
        let after_title = is_title(words[end - 1].text);
        if words[end].begins_sentence && !after_title {
            break;
        }
        if !is_capitalised(word) && !PARTICLES.contains(&word) {
            break;
        }
        end += 1;
    }
    (Some(start..end), end)
}

/// Words of running text: headings, tables and code are no prose and capitalise as they please.
fn words_of_prose(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        let bare = line.trim_start();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            in_code = !in_code;
        }
        if in_code || bare.starts_with(['#', '|', '`', '~']) {
            continue;
        }
        let mut begins_sentence = true;
        let mut continues = false;
        for token in bare.split_whitespace() {
            let word = token.trim_matches(|c: char| !c.is_alphanumeric());
            let leads = token.starts_with(|c: char| c.is_alphanumeric());
            if word.is_empty() {
                continues = false;
                continue;
            }
            words.push(Word { text: word, continues: continues && leads, begins_sentence });
            let ends = token.ends_with(['.', '!', '?', ':', ';']);
            let initial = word.chars().count() == 1 && token.ends_with('.');
            begins_sentence = ends && !initial && !is_title(word);
            continues = token.ends_with(|c: char| c.is_alphanumeric()) || initial || is_title(word);
        }
    }
    words
}

fn is_capitalised(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_uppercase)
        && (word.chars().count() == 1 || chars.any(char::is_lowercase))
        && !word.chars().any(|c| c.is_ascii_digit())
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word begins a sentence or a heading more often than a name.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON.contains(bare(word).to_lowercase().as_str())
}

fn is_title(word: &str) -> bool {
    word.starts_with(char::is_uppercase) && TITLES.contains(&bare(word).to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_companies(text: &str, expected: &[&str]) {
        assert_eq!(companies(text, 50), expected, "{text}");
    }

    #[test]
    fn companies_end_in_a_legal_form() {
        check_companies(
            "The Acme Widgets Inc. sued Müller & Söhne GmbH & Co. KG.",
            &["Acme Widgets Inc.", "Müller & Söhne GmbH & Co. KG"],
        );
        check_companies(
            "Die Siemens AG und SAP SE, sowie 3M Company.",
            &["Siemens AG", "SAP SE", "3M Company"],
        );
        check_companies("Foo Bar, Inc. and Foo Bar, Inc. again", &["Foo Bar Inc."]);
        check_companies("shares of Royal Dutch Shell plc rose", &["Royal Dutch Shell plc"]);
    }

    #[test]
    fn a_legal_form_alone_is_no_company() {
        check_companies("The Company shall pay. An AG is a form. GmbH", &[]);
        check_companies("it was as SEen", &[]);
        check_companies("", &[]);
    }

    #[test]
    fn names_are_runs_of_capitals_within_sentences() {
        let text = "Yesterday the pilot Amelia Earhart met Ludwig van Beethoven in New York. Later Amelia Earhart left.";
        assert_eq!(names(text, false, 9), ["Amelia Earhart", "Ludwig van Beethoven", "New York"]);
        assert_eq!(
            names("Dr. Grace Hopper spoke. Then Prof. Turing answered.", false, 9),
            ["Grace Hopper", "Turing"]
        );
    }

    #[test]
    fn headings_tables_code_and_ordinary_words_are_no_names() {
        let text = "# Annual Report Of Everything\n| Big Table | Cell |\n```\nFoo Bar\n```\nThe Annual Report is an annual report.";
        assert!(names(text, false, 9).is_empty(), "{:?}", names(text, false, 9));
    }

    #[test]
    fn german_names_need_a_title() {
        let text = "Der Große Preis ging an Frau Anna von Arnim und an die Deutsche Bahn.";
        assert_eq!(names(text, true, 9), ["Anna von Arnim"]);
    }

    #[test]
    fn any_text_is_survived() {
        for text in ["Ä", "Dr. ", "A. B. C.", "\u{200b}X Y", &"Aa ".repeat(1_000)] {
            names(text, false, 3);
            companies(text, 3);
        }
    }
}
