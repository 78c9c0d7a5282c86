//! Sentences that say what the passages do not cover: no claim, so nothing has to bear them out.

use super::cite::without_markers;
use super::claim::numbers;
use regex::{Regex, RegexSet, RegexSetBuilder};
use std::sync::LazyLock;

/// Most words of such a sentence: a longer one tells something besides.
const MAX_WORDS: usize = 40;

/// Memory that the compiled patterns may take.
const MAX_BYTES: usize = 32 << 20;

/// Names for parts of [`SILENCE`], those that are made of others first.
///
/// The documents are meant as such: behind an article or an adjective that says that they were given, and as the whole of their
/// phrase. "Travel documents", "the context menu" and "documents of the owner" are things in the world.
const PARTS: &[(&str, &str)] = &[
    (
        "<EN_LEAD>",
        r"<LABEL> (?: (?: (?:unfortunately|sadly|regrettably|apparently|overall|also|additionally|furthermore|moreover|thus|therefore|hence|so|and|finally|sorry
            |i(?:'m|\s+am)\s+(?:very\s+)?sorry|in\s+(?:summary|short|conclusion|addition)|it\s+(?:seems|appears)|(?:please\s+)?note|answer) \W+ (?:that\s+)?
          | (?:as\s+(?:for|to)|regarding|concerning|about|for|on|based\s+on|according\s+to|from|with\s+(?:regard|respect|regards)\s+to) \s [^,;:.]+ , \s+ ) )*",
    ),
    (
        "<EN_OF>",
        r"(?:the|any) \s+ (?:<EN_GIVEN>\s+)? (?:information|content|contents|details|text|data) \s+ (?:(?:that\s+is\s+)?<EN_GIVEN>\s+|contained\s+)? (?:in|from|of|by) \s+",
    ),
    (
        "<EN_DOCS>",
        r"(?: (?:<EN_THE>\s+ (?:(?:<EN_GIVEN>|<EN_MORE>) \s+ (?:(?:and|or)\s+)?){0,3} | (?:(?:your|my|our)\s+)? (?:<EN_GIVEN> \s+ (?:(?:and|or)\s+)?){1,3}) <EN_NOUN>
            | (?:the\s+)? (?:provided|given|available|retrieved|supplied|context) \s+ (?:information|content|contents|material) ) <EN_BEHIND>*",
    ),
    (
        "<EN_BEHIND>",
        r"(?: ,? \s+ (?: <EN_GIVEN> | <EN_MORE> | below | here | themselves | itself | at\s+hand | in\s+question | (?:to|by)\s+(?:me|us|you)
            | (?:that\s+|which\s+)? (?:you|i|we) \s+ (?:(?:have|had|were|was|am|are)\s+)? (?:been\s+)? (?:gave|given|provided|have|had|found|shared|supplied|see) (?:\s+(?:me|us))?
            | (?:that\s+|which\s+) (?:are|is|were|was|have\s+been) \s+ (?:<EN_GIVEN>|<EN_MORE>)
            | (?:about|regarding|concerning) (?:\s+[^\s,;:.]+){1,6}? ) \b ,? )",
    ),
    (
        "<EN_THE>",
        r"(?: (?:(?:any|all|both|none|neither|either|most) \s+ of \s+)? (?:the|these|those|this) | any | both )",
    ),
    ("<EN_GIVEN>", r"(?:provided|given|available|retrieved|supplied|above|above-mentioned|found)"),
    (
        "<EN_MORE>",
        r"(?:following|cited|quoted|listed|shown|presented|relevant|numbered|searched|search|uploaded|other|same|two|three|four|five)",
    ),
    (
        "<EN_NOUN>",
        r"(?:(?:source|context|text|document|reference) \s+)? (?:passages?|documents?|sources?|texts?|excerpts?|context|snippets?) \b",
    ),
    (
        "<EN_END>",
        r"(?: \W* $ | [,.;:!?)] | \s+ (?:about|regarding|concerning|on|as|that|who|how|whether|when|where|what|why|to) \b )",
    ),
    ("<EN_NOT>", r"(?: \s+ (?:not|never) \b | n't \b ) <EN_HOW>*"),
    (
        "<EN_HOW>",
        r"(?: \s+ (?:explicitly|directly|clearly|specifically|actually|really|exactly|fully|expressly|precisely|separately|otherwise|even|ever|also|further|themselves|itself|(?:seem|appear)\s+to) \b )",
    ),
    (
        "<EN_SAY>",
        r"(?:say|state|mention|cover|specify|contain|include|describe|give|provide|address|tell|explain|indicate|discuss|name|define|answer|list|reveal|disclose|clarify|identify|elaborate|refer|make\s+(?:any\s+)?(?:mention|reference))",
    ),
    (
        "<EN_SAID>",
        r"(?:stated|mentioned|covered|specified|described|given|provided|addressed|explained|discussed|defined|named|listed|indicated|answered|clear)",
    ),
    (
        "<EN_TOLD>",
        r"(?:information|info|mention|details?|data|indication|reference|statement|answer|evidence|word)",
    ),
    (
        "<DE_LEAD>",
        r"<LABEL> (?: (?:leider|zudem|außerdem|auch|somit|daher|und|hinweis|antwort|es\s+tut\s+mir\s+leid) \W+ | (?:laut|nach|gemäß|zu|zum|zur|über|bezüglich|hinsichtlich|für|was|wer|wann|wie|wo|warum|ob) \s [^,;:.]+ , \s+ )*",
    ),
    (
        "<DE_WITHIN>",
        r"(?: (?:in|aus|von) \s+ <DE_DOCS> | im \s+ (?:<DE_GIVEN>\s+)? (?:kontext|text|dokument) )",
    ),
    (
        "<DE_DOCS>",
        r"(?: (?:d(?:ie|er|as|en|em)|diese[rnms]?|keine[rsm]?\s+(?:der|dieser)) \s+ (?:(?:<DE_GIVEN>|<DE_MORE>)\s+){0,3} <DE_NOUN> | (?:<DE_GIVEN>\s+){1,3} <DE_NOUN> )
          (?: ,? \s+ (?: zu[mr]? | über ) (?:\s+[^\s,;:.]+){1,3}? )?",
    ),
    (
        "<DE_GIVEN>",
        r"(?:(?:bereitgestellt|vorliegend|gegeben|verfügbar|vorhanden|gefunden|übergeben|abgerufen|obig)e[nrms]?|zur\s+verfügung\s+(?:gestellte|stehende)[nrms]?)",
    ),
    (
        "<DE_MORE>",
        r"(?:(?:genannt|angegeben|zitiert|gezeigt|folgend|ander|beid)e[nrms]?|zwei|drei|vier|fünf)",
    ),
    (
        "<DE_NOUN>",
        r"(?:passagen?|dokumente?n?|quellen?|texte?n?|textstellen?|auszüge?n?|auszug|kontexte?s?|unterlagen) \b",
    ),
    ("<DE_END>", r"(?: \W* $ | [,.;:!?)] | \s+ (?:zu[mr]?|über|dazu|darüber) \b )"),
    (
        "<DE_HOW>",
        r"(?: (?:explizit|ausdrücklich|direkt|selbst|auch|leider|dazu|darüber|hierzu|näher|genauer) \s+ | (?:zu[mr]?|über|von) (?:\s+[^\s,;:.]+){1,4}? \s+ )",
    ),
    ("<DE_NOT>", r"\b (?:nicht|nichts|kein(?:e|en|er|em|es|erlei)?) \b"),
    (
        "<DE_SAY>",
        r"(?:nennen|nennt|enthalten|enthält|sagen|sagt|besagen|besagt|erwähnen|erwähnt|beschreiben|beschreibt|erklären|erklärt|erläutern|erläutert|behandeln|behandelt|beantworten|beantwortet|benennen|benennt|verraten|verrät|spezifizieren|spezifiziert|definieren|definiert)",
    ),
    ("<DE_GIVE>", r"(?:geben|gibt|machen|macht|liefern|liefert|bieten|bietet|haben|hat)"),
    (
        "<DE_TOLD>",
        r"(?:angaben?|information(?:en)?|infos?|auskunft|auskünfte|hinweise?|aussagen?|antwort(?:en)?|details|einzelheiten|daten|aufschluss)",
    ),
    ("<DE_IS>", r"(?:wird|werden|wurden?|ist|sind)"),
    (
        "<DE_SAID>",
        r"(?:erwähnt|genannt|benannt|beschrieben|angegeben|erklärt|erläutert|enthalten|behandelt|aufgeführt|gesagt|vermerkt|definiert|spezifiziert|beantwortet|zu\s+finden)",
    ),
    ("<DE_FOUND>", r"(?:steht|stehen|finde[tn]\s+sich)"),
    (
        "<FR_LEAD>",
        r"<LABEL> (?: (?:malheureusement|désolée?|de\s+plus|en\s+outre|ainsi|donc|et|remarque|réponse) \W+ | (?:d'après|selon|concernant|quant|pour|sur|à\s+propos) \s [^,;:.]+ , \s+ )*",
    ),
    (
        "<FR_DOCS>",
        r"(?:les|ces|le|ce|cet|l'|aucun\s+de\s+ces|aucun\s+des) \s* (?:(?:deux|trois|autres|présents)\s+)? (?:passages?|documents?|sources?|textes?|extraits?|contexte)
          (?: \s+ (?:fourni|donné|disponible|cité|trouvé|récupéré|présenté|ci-dessus|en\s+question) e?s? )*",
    ),
    ("<FR_END>", r"(?: \W* $ | [,.;:!?)] | \s+ (?:sur|concernant|à|qui) \b )"),
    ("<FR_NOT>", r"\b (?:pas|rien|point|aucune?) \b"),
    (
        "<FR_SAY>",
        r"(?:di(?:t|sent)|mentionne(?:nt)?|contien(?:t|nent)|précise(?:nt)?|indique(?:nt)?|fourni(?:t|ssent)|donne(?:nt)?|décri(?:t|vent)|parle(?:nt)?|explique(?:nt)?|cite(?:nt)?|évoque(?:nt)?|nomme(?:nt)?|comporte(?:nt)?|aborde(?:nt)?|défini(?:t|ssent)|spécifie(?:nt)?|révèle(?:nt)?|répond(?:ent)?)",
    ),
    (
        "<FR_SAID>",
        r"(?:mentionné|précisé|indiqué|décrit|cité|donné|fourni|expliqué|spécifié|nommé|évoqué|défini|dit)e?s?",
    ),
    ("<FR_TOLD>", r"(?:informations?|mention|indications?|détails?|précisions?|réponse)"),
    // What a list item may be about, in bold letters.
    ("<LABEL>", r"^\W* (?: \*\* [^*:.]+ (?: :\*\* | \*\*: ) \s+ )?"),
];

/// What says, of the documents and of nothing else, that they do not say or hold something: in lower case, with straight
/// apostrophes.
const SILENCE: &[&str] = &[
    r"<EN_LEAD> (?:
        (?:<EN_OF>)? <EN_DOCS> \s+
          (?: (?:do|does|did) <EN_NOT> \s+ (?: <EN_SAY> \b | have \s+ (?:any\s+)? (?:\w+\s+)? <EN_TOLD> \b )
            | (?:say|contain|provide|give|have|include|offer|make|mention|has)s? \s+ (?: nothing \b | no \s+ (?:\w+\s+)? <EN_TOLD> \b ) )
        | (?:neither|none) \s+ of \s+ (?:the|these|those) \s+ (?:(?:<EN_GIVEN>|<EN_MORE>)\s+){0,2} <EN_NOUN> <EN_BEHIND>* <EN_HOW>* \s+ <EN_SAY> s? \b
        | (?: there \s+ (?:is|are|was|were) \s+ no | no ) \s+ (?:\w+\s+)? <EN_TOLD> \b [^,;:]*? \s (?:in|within|among|by|from) \s+ <EN_DOCS> <EN_END>
        | [^,;:]*? \b (?:is|are|was|were) <EN_NOT> \s+ <EN_SAID> (?:\s+[^\s,;:.]+){0,4}? \s+ (?:in|by|within|among|from) \s+ <EN_DOCS> <EN_END> )",
    // A single one behind whose name a marker stood.
    r"^\W* (?: (?:passage|document|source|text|excerpt|context) | (?:passages|documents|sources|texts|excerpts) \W+ (?:and|or) ) \s+ (?:do|does|did) <EN_NOT> \s+ <EN_SAY> \b",
    r"<DE_LEAD> (?:
        <DE_DOCS> ,? \s+
          (?: <DE_SAY> \b [^,;:]*? <DE_NOT>
            | <DE_GIVE> \b [^,;:]*? <DE_NOT> [^,;:]*? \b (?: <DE_TOLD> \b | an \b )
            | (?:gehen|geht) \b [^,;:]*? <DE_NOT> [^,;:]*? \b ein \b
            | (?:ist|sind|lässt|lassen|kann|können) \b [^,;:]*? <DE_NOT> [^,;:]*? \b entn(?:ehmen|ommen) \b )
        | <DE_WITHIN> \s+
          (?: <DE_FOUND> \b [^,;:]*? <DE_NOT>
            | (?:gibt|gab) \s+ es \s+ <DE_NOT> \s+ (?:\w+\s+)? <DE_TOLD> \b
            | (?:geht|gehen) \b [^,;:]*? <DE_NOT> [^,;:]*? \b hervor \b
            | <DE_IS> \b [^,;:]*? <DE_NOT> [^,;:]*? \b <DE_SAID> \b )
        | [^,;:]*? \b
          (?: <DE_IS> \s+ (?:[^\s,;:.]+\s+){0,4}? <DE_WITHIN> \s+ <DE_HOW>{0,2} <DE_NOT> [^,;:]*? \b <DE_SAID> \b
            | <DE_FOUND> \s+ (?:[^\s,;:.]+\s+){0,3}? <DE_NOT> \s [^,;:]*? \b <DE_WITHIN> <DE_END> )
        | (?:(?:es\s+gibt|gibt\s+es) \s+)? (?: <DE_WITHIN> \s+ <DE_NOT> \s+ (?:\w+\s+)? <DE_TOLD> \b | <DE_NOT> \s+ (?:\w+\s+)? <DE_TOLD> \b [^,;:]*? \s <DE_WITHIN> <DE_END> ) )",
    // What it is about stands first.
    r"^\W* (?: leider | auch | da(?:zu|rüber|von) | hier(?:zu|über) | (?:zu[mr]?|über|wer|wann|wie|wo|warum|was|ob) \s [^;:.]+ ) ,? \s+
      (?: <DE_SAY> \s+ <DE_DOCS> \b [^,;:]*? <DE_NOT> | <DE_GIVE> \s+ <DE_DOCS> \b [^,;:]*? <DE_NOT> [^,;:]*? \b (?: <DE_TOLD> \b | an \b ) )",
    r"<FR_LEAD> (?:
        <FR_DOCS> ,? \s+ n(?:e\s+|') (?:(?:en|y|me|nous)\s+)?
          (?: <FR_SAY> \s+ (?:[^\s,;:.]+ment\s+)? <FR_NOT>
            | permet(?:tent)? \s+ pas \s+ de \s+ (?:dire|savoir|répondre|déterminer|connaître|préciser) \b
            | f(?:ont|ait) \s+ (?:pas|aucune) \s+ mention \b )
        | [^,;:]*? \b n'(?:est|a|ont|était) \s+ pas \s+ (?:été\s+)? (?:[^\s,;:.]+ment\s+)? <FR_SAID> \s+ (?:[^\s,;:.]+\s+){0,3}? (?:dans|par) \s+ <FR_DOCS> <FR_END>
        | (?:il\s+)? n'y \s+ a \s+ (?: pas \s+ d(?:'|e\s+) | aucune? \s+ ) <FR_TOLD> \b [^,;:]*? \s dans \s+ <FR_DOCS> <FR_END> )",
];

static SILENT: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSetBuilder::new(SILENCE.iter().map(whole)).ignore_whitespace(true).size_limit(MAX_BYTES).build().ok()
});

/// A pattern with its parts, and with classes of the letters of these languages, which cost less than those of all.
fn whole(pattern: &&str) -> String {
    let whole = PARTS.iter().fold((*pattern).to_owned(), |whole, (name, part)| whole.replace(name, part));
    whole
        .replace(r"\s", r"[\x20\t\r\n\u{a0}\u{202f}]")
        .replace(r"\w", r"[a-z0-9_\u{c0}-\u{24f}]")
        .replace(r"\W", r"[^a-z0-9_\u{c0}-\u{24f}]")
        .replace(r"\b", r"(?-u:\b)")
}

/// What a claim may stand behind.
static TURN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)[;—–]|\b(?:but|however|although|though|while|whereas|because|since|aber|jedoch|sondern|doch|obwohl|denn|und\s+(?:nicht|kein\w*)|weil|mais|cependant|toutefois)\b",
    )
    .ok()
});

/// Whether a sentence says nothing but that the passages do not cover something. It names no number that is not in the
/// question.
pub fn is_gap(question: &str, sentence: &str) -> bool {
    let sentence = without_markers(sentence);
    let (Some(silence), Some(turn)) = (SILENT.as_ref(), TURN.as_ref()) else { return false };
    let asked = numbers(question);
    silence.is_match(&sentence.to_lowercase().replace('’', "'"))
        && !turn.is_match(&sentence)
        && sentence.split_whitespace().count() <= MAX_WORDS
        && numbers(&sentence).iter().all(|number| asked.iter().any(|other| other.is(number)))
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&SILENT);
    LazyLock::force(&TURN);
}

#[cfg(test)]
#[path = "gap_tests.rs"]
mod tests;
