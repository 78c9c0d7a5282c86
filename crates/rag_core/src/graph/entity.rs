//! Entities of a text, by how they are written: codes, settings, products, devices, organisations, persons.
//!
//! Each rule is a regular expression of linear time; where two find the same place, the one that stands first wins.

use super::MAX_NAME_BYTES;
use super::dictionary::{
    HARDWARE_HEADS, ORGANISATION_HEADS, SOFTWARE_HEADS, is_extension, is_no_lead, is_no_setting, is_no_term,
    known,
};
use crate::metadata::name::{company_places, is_common};
use crate::word_pattern::WordPattern;
use aho_corasick::{AhoCorasick, MatchKind};
use std::ops::Range;
use std::sync::LazyLock;

crate::choices! {
    /// What kind of thing an entity is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Kind {
        /// An error, fault or state: `ORA-00942`, `SQLSTATE 42501`, `HTTP 503`.
        Error = "error",
        /// A document by its number: `FC-001-234`, `RFC 5424`, `ISO 9001`.
        DocumentCode = "document_code",
        /// A setting, parameter, environment variable or option: `max_wal_size`, `spring.jpa.url`, `--force`.
        Configuration = "configuration",
        /// A file by its name: `pg_hba.conf`.
        File = "file",
        /// A product, program, protocol or language.
        Software = "software",
        /// A device, a part of one, or a model number.
        Hardware = "hardware",
        /// A company, authority, university and the like.
        Organisation = "organisation",
        /// Somebody by name.
        Person = "person",
        /// A command of several words in capitals: `CREATE INDEX`.
        Command = "command",
        /// A word in capitals, such as an acronym.
        Term = "term",
    }
}

/// A place in a text that names something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// What it is.
    pub kind: Kind,
    /// Where the name stands.
    pub bytes: Range<usize>,
}

/// Whether a place that a pattern finds in a text is an entity.
type Test = fn(&str, &Range<usize>) -> bool;

/// A rule: what its first group, or else its whole match, finds is of the kind if the test says so.
struct Rule {
    kind: Kind,
    pattern: WordPattern,
    accepts: Test,
}

fn anything(_: &str, _: &Range<usize>) -> bool {
    true
}

/// Up to three capitalised words, with blanks behind them.
const LEAD: &str = r"(?:\p{Lu}[\p{L}0-9+-]*[ ]){1,3}";
/// A given name, perhaps an initial or a small particle, and a family name.
const PERSON: &str =
    r"\p{Lu}\p{Ll}+(?:-\p{Lu}\p{Ll}+)?(?: \p{Lu}\.| (?:von|van|de|der|di))* \p{Lu}\p{Ll}+(?:-\p{Lu}\p{Ll}+)?";

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules: [(Kind, String, Test); 16] = [
        (Kind::Error, r"\b(?:ORA|TNS|PLS|RMAN|SP2|CVE|MSG|KB|ERR|SQL)[-_]?[0-9]{3,7}(?:-[0-9]{3,7})?\b".into(), anything),
        (Kind::Error, r"\b(?:SQLSTATE[ :]+[0-9A-Z]{5}|HTTP (?:status )?[1-5][0-9]{2})\b".into(), anything),
        (Kind::Error, r"\b(?i:error|fault|alarm|fehler|störung)(?i:[ -]?code)?[ :]+([A-Z]{1,3}-?[0-9]{2,6}|0x[0-9A-Fa-f]{2,16})\b".into(), anything),
        (Kind::Error, r"\b(?:E[0-9]{4}|ERR_[A-Z0-9_]{2,40}|[A-Z][A-Za-z]{2,40}(?:Error|Exception))\b".into(), anything),
        (Kind::DocumentCode, r"\b(?:RFC ?[0-9]{3,5}|ISO(?:/IEC)? ?[0-9]{3,6}(?:-[0-9]{1,3})?(?::[0-9]{4})?|(?:DIN|EN|IEC|IEEE|NIST) ?(?:SP ?)?[0-9]{3,6}(?:[-.][0-9]{1,3})*)\b".into(), anything),
        (Kind::DocumentCode, r"\b[A-Z]{2,8}(?:-[A-Z]{1,4})?(?:-[0-9]{2,8}){1,4}\b".into(), anything),
        (Kind::Configuration, r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b".into(), anything),
        (Kind::File, r"\b[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\.[a-z]{1,10}\b".into(), is_file),
        (Kind::Configuration, r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*){1,4}\b".into(), is_setting),
        (Kind::Configuration, r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b".into(), anything),
        (Kind::Configuration, r"(?:^|[\s`(])(--[a-z][a-z0-9]*(?:-[a-z0-9]+)+)\b".into(), anything),
        (Kind::Person, format!(r"\b(?:Mr|Mrs|Ms|Dr|Prof|Professor|Sir|Herr|Frau)\.? ((?:\p{{Lu}}\. )*(?:{PERSON}|\p{{Lu}}\p{{Ll}}+))"), anything),
        (Kind::Person, format!(r"\b(?i:by|authors?|maintainer|contact|von|autor(?:in)?)(?: is)?:? ({PERSON})"), leads_person),
        (Kind::Organisation, format!(r"\b(?:{LEAD}(?:{ORGANISATION_HEADS})|(?:University|Institute|Ministry|Department|Bank|Universität) (?:of|for|für) (?:\p{{Lu}}[\p{{L}}-]* ?){{1,3}})\b"), is_name),
        (Kind::Hardware, format!(r"\b{LEAD}(?:{HARDWARE_HEADS})\b"), is_name),
        (Kind::Software, format!(r"\b{LEAD}(?:{SOFTWARE_HEADS})\b"), is_name),
    ];
    let late: [(Kind, String, Test); 6] = [
        (
            Kind::Software,
            r"\b[A-Z][A-Za-z+]*(?: [A-Z][A-Za-z+]*){0,2} [vV]?[0-9]+(?:\.[0-9]+){1,3}\b".into(),
            is_name,
        ),
        (
            Kind::Hardware,
            r"\b(?:[A-Z]{1,5}[0-9]{2,6}[A-Z]{0,3}|[A-Z]-[0-9]{2,5}[A-Z]{0,2})(?:-[A-Z0-9]{1,6})*\b".into(),
            anything,
        ),
        (
            Kind::Hardware,
            r"\b(?i:p/n|part (?:no\.?|number)|model)[ :]+([A-Z0-9][A-Z0-9-]{3,20})\b".into(),
            has_digit,
        ),
        (Kind::Software, r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b".into(), anything),
        (Kind::Command, r"\b[A-Z]{2,20}(?: [A-Z]{2,20}){1,3}\b".into(), is_name),
        (Kind::Term, r"\b[A-Z]{3,20}\b".into(), is_term),
    ];
    let compiled = rules.into_iter().chain(late).filter_map(|(kind, pattern, accepts)| {
        Some(Rule { kind, pattern: WordPattern::new(&pattern)?, accepts })
    });
    compiled.collect()
});

struct Known {
    names: AhoCorasick,
    kinds: Vec<Kind>,
}

static KNOWN: LazyLock<Option<Known>> = LazyLock::new(|| {
    let names = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(known().map(|(name, _)| name))
        .ok()?;
    Some(Known { names, kinds: known().map(|(_, kind)| kind).collect() })
});

/// The entities of a text, in its order and without overlap; names of more than [`MAX_NAME_BYTES`] are left out.
///
/// Linear in the length of the text.
pub fn entities(text: &str) -> Vec<Entity> {
    let mut found: Vec<(usize, Entity)> = Vec::new();
    for (order, rule) in RULES.iter().enumerate() {
        for captures in rule.pattern.captures_iter(text) {
            let Some(place) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            let bytes = without_lead(text, rule.kind, place.range());
            if (rule.accepts)(text, &bytes) {
                found.push((order, Entity { kind: kind_of(rule.kind, &text[bytes.clone()]), bytes }));
            }
        }
    }
    let companies = company_places(text);
    found.extend(companies.map(|(bytes, _)| (0, Entity { kind: Kind::Organisation, bytes })));
    if let Some(known) = KNOWN.as_ref() {
        let names = known.names.find_iter(text).filter(|place| stands_alone(text, &place.range()));
        found.extend(names.map(|place| {
            (RULES.len(), Entity { kind: known.kinds[place.pattern().as_usize()], bytes: place.range() })
        }));
    }
    found.retain(|(_, entity)| {
        entity.bytes.len() <= MAX_NAME_BYTES && !is_in_address(text, entity.bytes.start)
    });
    // The first to begin, of these the one of the earlier rule; what overlaps it goes.
    found.sort_by(|(a, x), (b, y)| {
        x.bytes.start.cmp(&y.bytes.start).then(a.cmp(b)).then(y.bytes.end.cmp(&x.bytes.end))
    });
    let mut end = 0;
    found.retain(|(_, entity)| {
        let is_free = entity.bytes.start >= end;
        if is_free {
            end = entity.bytes.end;
        }
        is_free
    });
    found.into_iter().map(|(_, entity)| entity).collect()
}

/// Programs that are written like settings.
fn kind_of(kind: Kind, name: &str) -> Kind {
    let is_program = kind == Kind::Configuration && name.starts_with("pg_");
    if is_program { Kind::Software } else { kind }
}

/// A name of several words without an article or another such word before it.
fn without_lead(text: &str, kind: Kind, mut bytes: Range<usize>) -> Range<usize> {
    if !matches!(kind, Kind::Organisation | Kind::Hardware | Kind::Software | Kind::Command) {
        return bytes;
    }
    bytes.end -= text[bytes.clone()].len() - text[bytes.clone()].trim_end().len();
    while let Some((first, rest)) = text[bytes.clone()].split_once(' ') {
        let leads_nothing = is_no_lead(first) || kind == Kind::Command && is_no_term(first);
        if !leads_nothing {
            break;
        }
        bytes.start = bytes.end - rest.len();
    }
    bytes
}

/// Whether a name of capitalised words has more than its last word, or a digit.
fn is_name(text: &str, bytes: &Range<usize>) -> bool {
    let name = &text[bytes.clone()];
    name.contains(' ') && !name.split(' ').next().is_some_and(is_no_lead)
}

fn is_file(text: &str, bytes: &Range<usize>) -> bool {
    text[bytes.clone()].rsplit('.').next().is_some_and(is_extension)
}

fn is_setting(text: &str, bytes: &Range<usize>) -> bool {
    let name = &text[bytes.clone()];
    let last = name.rsplit('.').next().unwrap_or_default();
    let follows_mark = text[..bytes.start].ends_with(['@', '/', '.']);
    name.len() >= 6 && !follows_mark && !is_no_setting(last) && name.split('.').all(|part| part.len() >= 2)
}

fn leads_person(text: &str, bytes: &Range<usize>) -> bool {
    !text[bytes.clone()].split(' ').any(|word| is_no_lead(word) || is_common(word))
}

fn has_digit(text: &str, bytes: &Range<usize>) -> bool {
    text[bytes.clone()].contains(|c: char| c.is_ascii_digit())
}

fn is_term(text: &str, bytes: &Range<usize>) -> bool {
    !is_no_term(&text[bytes.clone()])
}

/// Whether no letter, digit or underscore touches a place.
fn stands_alone(text: &str, bytes: &Range<usize>) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !text[..bytes.start].ends_with(is_part) && !text[bytes.end..].starts_with(is_part)
}

/// Whether a place lies in a web address or a link's target.
fn is_in_address(text: &str, at: usize) -> bool {
    let word = text[..at].rsplit(char::is_whitespace).next().unwrap_or_default();
    word.contains("://") || word.contains("](")
}
