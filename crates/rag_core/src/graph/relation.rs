//! Relations: what a sentence says of two entities that stand next to each other in it, by the verb between them.

use super::entity::{Entity, Kind};
use crate::sentence::sentences;
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::LazyLock;

crate::choices! {
    /// What one entity is to another.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// It does not work, or not in the same way, without the other.
        DependsOn = "depends_on",
        /// It needs the other.
        Requires = "requires",
        /// It decides how the other works.
        Configures = "configures",
        /// Something goes from one to the other.
        ConnectsTo = "connects_to",
        /// The other has it.
        IsPartOf = "is_part_of",
        /// It has taken the place of the other.
        Replaces = "replaces",
        /// The other comes of it.
        Causes = "causes",
        /// It works by means of the other.
        Uses = "uses",
    }
}

/// The subject does to the object what the verb says; indexes into the entities of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// Who does it.
    pub subject: usize,
    /// What is done.
    pub verb: Verb,
    /// To whom it is done.
    pub object: usize,
}

/// Most bytes between two entities that a verb relates.
const MAX_GAP: usize = 90;

/// Words between two entities, what they say, and whether the second one does it to the first.
const PHRASES: &[(&str, Verb, bool)] = &[
    ("depends on", Verb::DependsOn, false),
    ("depend on", Verb::DependsOn, false),
    ("depends upon", Verb::DependsOn, false),
    ("depending on", Verb::DependsOn, false),
    ("relies on", Verb::DependsOn, false),
    ("rely on", Verb::DependsOn, false),
    ("is dependent on", Verb::DependsOn, false),
    ("hängt von", Verb::DependsOn, false),
    ("requires", Verb::Requires, false),
    ("require", Verb::Requires, false),
    ("needs", Verb::Requires, false),
    ("must be used with", Verb::Requires, false),
    ("benötigt", Verb::Requires, false),
    ("erfordert", Verb::Requires, false),
    ("is required by", Verb::Requires, true),
    ("is required for", Verb::Requires, true),
    ("is needed by", Verb::Requires, true),
    ("configures", Verb::Configures, false),
    ("controls", Verb::Configures, false),
    ("determines", Verb::Configures, false),
    ("specifies", Verb::Configures, false),
    ("enables", Verb::Configures, false),
    ("limits", Verb::Configures, false),
    ("konfiguriert", Verb::Configures, false),
    ("steuert", Verb::Configures, false),
    ("is configured by", Verb::Configures, true),
    ("is configured in", Verb::Configures, true),
    ("is controlled by", Verb::Configures, true),
    ("are controlled by", Verb::Configures, true),
    ("is determined by", Verb::Configures, true),
    ("is set by", Verb::Configures, true),
    ("is specified by", Verb::Configures, true),
    ("is limited by", Verb::Configures, true),
    ("is governed by", Verb::Configures, true),
    ("connects to", Verb::ConnectsTo, false),
    ("connect to", Verb::ConnectsTo, false),
    ("is connected to", Verb::ConnectsTo, false),
    ("are connected to", Verb::ConnectsTo, false),
    ("is attached to", Verb::ConnectsTo, false),
    ("is wired to", Verb::ConnectsTo, false),
    ("is linked to", Verb::ConnectsTo, false),
    ("communicates with", Verb::ConnectsTo, false),
    ("talks to", Verb::ConnectsTo, false),
    ("feeds", Verb::ConnectsTo, false),
    ("ist verbunden mit", Verb::ConnectsTo, false),
    ("is fed by", Verb::ConnectsTo, true),
    ("is part of", Verb::IsPartOf, false),
    ("is a part of", Verb::IsPartOf, false),
    ("are part of", Verb::IsPartOf, false),
    ("belongs to", Verb::IsPartOf, false),
    ("is a component of", Verb::IsPartOf, false),
    ("is included in", Verb::IsPartOf, false),
    ("is installed in", Verb::IsPartOf, false),
    ("gehört zu", Verb::IsPartOf, false),
    ("ist teil von", Verb::IsPartOf, false),
    ("contains", Verb::IsPartOf, true),
    ("consists of", Verb::IsPartOf, true),
    ("comprises", Verb::IsPartOf, true),
    ("includes", Verb::IsPartOf, true),
    ("replaces", Verb::Replaces, false),
    ("supersedes", Verb::Replaces, false),
    ("ersetzt", Verb::Replaces, false),
    ("is replaced by", Verb::Replaces, true),
    ("was replaced by", Verb::Replaces, true),
    ("is superseded by", Verb::Replaces, true),
    ("causes", Verb::Causes, false),
    ("leads to", Verb::Causes, false),
    ("results in", Verb::Causes, false),
    ("triggers", Verb::Causes, false),
    ("raises", Verb::Causes, false),
    ("verursacht", Verb::Causes, false),
    ("is caused by", Verb::Causes, true),
    ("is triggered by", Verb::Causes, true),
    ("is raised by", Verb::Causes, true),
    ("uses", Verb::Uses, false),
    ("use", Verb::Uses, false),
    ("calls", Verb::Uses, false),
    ("invokes", Verb::Uses, false),
    ("is based on", Verb::Uses, false),
    ("runs on", Verb::Uses, false),
    ("is implemented by", Verb::Uses, false),
    ("verwendet", Verb::Uses, false),
    ("nutzt", Verb::Uses, false),
    ("is used by", Verb::Uses, true),
    ("are used by", Verb::Uses, true),
    ("is called by", Verb::Uses, true),
];

/// Words that turn a statement into another one.
const NEGATIONS: &[&str] = &[
    " not ",
    "n't ",
    " no longer ",
    " never ",
    " without ",
    " unlike ",
    " instead of ",
    " rather than ",
    " nicht ",
    " ohne ",
];

static VERBS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(PHRASES.iter().map(|(phrase, _, _)| format!(" {phrase} ")))
        .ok()
});

/// The relations that a text states of its entities, in order. Of a list behind the verb ("A requires B, C and D") each
/// member counts. Nothing reaches over the end of a sentence, and what is negated is not said.
pub fn relations(text: &str, entities: &[Entity]) -> Vec<Relation> {
    let mut found = Vec::new();
    if entities.len() < 2 {
        return found;
    }
    let mut next = 0;
    for sentence in sentences(text) {
        while next < entities.len() && entities[next].bytes.start < sentence.start {
            next += 1;
        }
        let first = next;
        while next < entities.len() && entities[next].bytes.end <= sentence.end {
            next += 1;
        }
        if next - first >= 2 && next - first <= MAX_IN_SENTENCE {
            of_sentence(text, entities, first..next, &mut found);
        }
    }
    found
}

/// A sentence of more entities is a table or a list of names.
const MAX_IN_SENTENCE: usize = 16;

fn of_sentence(text: &str, entities: &[Entity], range: std::ops::Range<usize>, found: &mut Vec<Relation>) {
    let mut open: Option<(usize, Verb, bool)> = None;
    for second in range.start + 1..range.end {
        let gap = &text[entities[second - 1].bytes.end..entities[second].bytes.start];
        if let Some((verb, is_passive)) = stated(gap) {
            open = Some((second - 1, verb, is_passive));
        } else if !is_enumeration(gap) {
            open = None;
        }
        if let Some((first, verb, is_passive)) = open
            && !(is_vague(&entities[first]) && is_vague(&entities[second]))
        {
            let (subject, object) = if is_passive { (second, first) } else { (first, second) };
            found.push(Relation { subject, verb, object });
        }
    }
}

/// Words in capitals are often stressed, or the first ones of something longer: two of them say too little.
fn is_vague(entity: &Entity) -> bool {
    matches!(entity.kind, Kind::Term | Kind::Command)
}

/// The relation that the words between two entities state, and whether it goes from the second to the first.
fn stated(gap: &str) -> Option<(Verb, bool)> {
    if gap.len() > MAX_GAP {
        return None;
    }
    let words = gap.to_lowercase().replace(['`', '*', '\n', '\t', '\r'], " ");
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    if NEGATIONS.iter().any(|negation| words.contains(negation)) || words.contains([';', ':', '(']) {
        return None;
    }
    let verb = VERBS.as_ref()?.find(&words)?;
    let (_, relation, is_passive) = PHRASES.get(verb.pattern().as_usize())?;
    Some((*relation, *is_passive))
}

/// Whether only commas and "and" stand between two entities.
fn is_enumeration(gap: &str) -> bool {
    gap.len() <= 24
        && gap
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | '/' | '`' | '*'))
            .all(|word| matches!(word, "" | "and" | "or" | "the" | "und" | "oder"))
}
