//! Questions: whether one asks for a relation, and which names it may contain.

use super::key;
use crate::words::stop_words;
use regex::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Most words of a name in a question.
const MAX_WORDS: usize = 4;

/// Most names that are looked for.
const MAX_NAMES: usize = 256;

/// What asks for a relation, in English and German.
const RELATIONAL: &str = r"(?i)\b(?:depend(?:s|ed|ing|ent|ency|encies)? (?:up)?on\b|dependenc(?:y|ies) of|rel(?:y|ies) on|relat(?:e|es|ed|ion|ions|ionship|ionships)\b|connect(?:s|ed|ion|ions)? (?:to|with|between)|(?:link|tie|wire|couple|attache?)(?:d|s)? (?:to|with)|(?:is|are|be) part of|parts? of (?:which|what)|belongs? to|(?:which|what|who|that)\b.{0,60}\b(?:uses?|requires?|needs?|controls?|configures?|affects?|influences?|replaces?|contains?|includes?|causes?|calls?|supplies|feeds?)\b|wrapper (?:around|for|of)|(?:based|built) on|derived from|affected by|caused by|controlled by|configured by|used by|required by|replaced by|superseded by|in common|difference between|between .{1,60} and |interacts? with|häng(?:t|en)\b.{0,60}\bab\b|abhängig von|zusammenhang|verbunden mit|gehört zu|teil von|beziehung(?:en)? zwischen)";

static RELATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(RELATIONAL).ok());

/// Whether a question asks how things relate: by a verb of dependence, connection, membership, cause or use, or by "between
/// A and B".
pub fn asks_for_relations(question: &str) -> bool {
    RELATION.as_ref().is_some_and(|pattern| pattern.is_match(question))
}

/// Keys of all names that a question may contain: its runs of up to four words, but for stop words alone; the longer ones
/// of a place first, at most 256.
pub fn names_in(question: &str) -> Vec<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let stops: HashSet<&str> = stop_words("en").iter().chain(stop_words("de")).copied().collect();
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for start in 0..words.len() {
        for length in (1..=MAX_WORDS.min(words.len() - start)).rev() {
            let name = key(&words[start..start + length].join(" "));
            let ends = [name.split(' ').next(), name.rsplit(' ').next()];
            let is_name = name.len() >= 2 && !ends.iter().flatten().any(|word| stops.contains(word));
            if is_name && seen.insert(name.clone()) {
                names.push(name);
            }
            if names.len() == MAX_NAMES {
                return names;
            }
        }
    }
    names
}
