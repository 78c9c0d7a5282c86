//! Links: what a text says of other documents, by address, by number, or by title.

use super::{Origin, address, key};
use crate::document::PreparedDocument;
use crate::word_pattern::WordPattern;
use regex::Regex;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

crate::choices! {
    /// By what a link names its document.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum LinkKind {
        /// A hyperlink or a path; the target is an address, resolved.
        Address = "address",
        /// A document's number; the target is its key.
        Code = "code",
        /// A title, in quotes; the target is the title as it stands there.
        Title = "title",
    }
}

/// A chunk points to a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Index of the chunk.
    pub chunk: usize,
    /// By what it names the document.
    pub kind: LinkKind,
    /// The name.
    pub target: String,
    /// Number of the section that is meant, as in `see section 4.2 of FC-001-234`.
    pub section: Option<String>,
    /// 0.9 for what the reader is sent to by number or title, 0.8 for a hyperlink or a path, 0.6 for a number that is
    /// merely named.
    pub strength: f32,
}

const SENT: f32 = 0.9;
const LINKED: f32 = 0.8;
const NAMED: f32 = 0.6;

/// Most links of one document.
const MAX_LINKS: usize = 1_000;

/// Most bytes of a title.
const MAX_TITLE_BYTES: usize = 200;

/// What sends a reader elsewhere.
const SEE: &str = r"(?i:see(?: also)?|refer to|described in|specified in|defined in|according to|as per|in accordance with|siehe(?: auch)?|beschrieben in|gemäß|laut)";
const WHAT: &str = r"(?i:(?:the )?(?:document|manual|guide|report|chapter|standard|specification|procedure|data sheet|dokument|handbuch|bericht|kapitel|norm) )?";
const CODE: &str = r"(?P<code>[A-Z]{2,8}(?:-[A-Z]{1,4})?(?:-[0-9]{2,8}){1,4}|RFC ?[0-9]{3,5}|ISO(?:/IEC)? ?[0-9]{3,6}(?:-[0-9]{1,3})?)";

static MARKDOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"\]\(\s*<?(?P<address>[^\s()<>]{1,1000})>?(?:\s+["'][^"'\n]{0,200}["'])?\s*\)"#).ok()
});
static BARE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:https?|file)://[^\s<>"'`()\[\]{}|]{1,1000}"#).ok());
static SECTION: LazyLock<Option<WordPattern>> = LazyLock::new(|| {
    WordPattern::new(&format!(
        r"\b(?i:section|chapter|clause|annex|abschnitt|kapitel) (?P<section>[0-9A-Z]+(?:\.[0-9]+){{0,4}}),? (?i:of|in|von|aus) {WHAT}{CODE}\b"
    ))
});
static SEEN: LazyLock<Option<WordPattern>> =
    LazyLock::new(|| WordPattern::new(&format!(r"\b{SEE} {WHAT}{CODE}\b")));
static NUMBER: LazyLock<Option<WordPattern>> = LazyLock::new(|| WordPattern::new(&format!(r"\b{CODE}\b")));
static TITLE: LazyLock<Option<WordPattern>> = LazyLock::new(|| {
    WordPattern::new(&format!(r#"\b{SEE} {WHAT}["“„«*_](?P<title>[^"“”„«»*_\n]{{3,200}})["”“»*_]"#))
});

/// Names of files that documents come from, in the text after what sends the reader there.
static PATH: LazyLock<Option<WordPattern>> = LazyLock::new(|| {
    WordPattern::new(&format!(
        r#"\b{SEE} {WHAT}[`"'“„]?(?P<path>(?:\.{{0,2}}/)*[\w.-]+(?:/[\w.-]+)*\.(?i:md|markdown|adoc|rst|txt|html?|pdf|docx?|pptx?|xlsx?|odt|epub|csv|rtf|eml))\b"#
    ))
});

/// The links of a document, each target once per chunk and by its strongest mention, in the order of the text.
pub(super) fn links(prepared: &PreparedDocument, origin: &Origin<'_>) -> Vec<Link> {
    let own: HashSet<String> = own_names(origin);
    let mut found = Found { own, ..Found::default() };
    for (chunk, part) in prepared.chunks.iter().enumerate() {
        let text = prepared.chunk_text(part);
        addresses(text, origin.uri, chunk, &mut found);
        numbers_and_titles(text, chunk, &mut found);
    }
    if let Some(html) = origin.html {
        let starts: Vec<usize> = prepared.chunks.iter().map(|chunk| chunk.bytes.start).collect();
        for (place, reference) in anchors(html, &prepared.parsed.text) {
            let chunk = starts.partition_point(|start| *start <= place).saturating_sub(1);
            if !starts.is_empty()
                && let Some(target) = address::resolved(origin.uri, &reference)
            {
                found.add(Link { chunk, kind: LinkKind::Address, target, section: None, strength: LINKED });
            }
        }
    }
    found.links.sort_by_key(|link| link.chunk);
    found.links
}

/// What the document itself is called by: a link to that is none.
fn own_names(origin: &Origin<'_>) -> HashSet<String> {
    let uri = origin.uri.and_then(|uri| address::resolved(None, uri));
    let mut names: HashSet<String> = uri.into_iter().chain(origin.title.map(str::to_owned)).collect();
    if let Some(pattern) = NUMBER.as_ref() {
        for text in origin.title.into_iter().chain(origin.uri) {
            names.extend(pattern.captures_iter(text).map(|code| key(code.get_match().as_str())));
        }
    }
    names
}

#[derive(Default)]
struct Found {
    own: HashSet<String>,
    links: Vec<Link>,
    places: HashMap<(usize, LinkKind, String), usize>,
}

impl Found {
    fn add(&mut self, link: Link) {
        if self.own.contains(&link.target) {
            return;
        }
        let place = (link.chunk, link.kind, link.target.clone());
        match self.places.get(&place) {
            Some(known) => {
                let known = &mut self.links[*known];
                known.section = known.section.take().or(link.section);
                known.strength = known.strength.max(link.strength);
            }
            None if self.links.len() < MAX_LINKS => {
                self.places.insert(place, self.links.len());
                self.links.push(link);
            }
            None => {}
        }
    }
}

fn addresses(text: &str, base: Option<&str>, chunk: usize, found: &mut Found) {
    let in_brackets =
        MARKDOWN.iter().flat_map(|pattern| pattern.captures_iter(text)).filter_map(|c| c.name("address"));
    let bare = BARE.iter().flat_map(|pattern| pattern.find_iter(text));
    let paths = PATH.iter().flat_map(|pattern| pattern.captures_iter(text)).filter_map(|c| c.name("path"));
    for address in in_brackets
        .chain(paths)
        .map(|m| m.as_str())
        .chain(bare.map(|m| m.as_str().trim_end_matches(['.', ',', ';', ':', '!'])))
    {
        if let Some(target) = address::resolved(base, address) {
            found.add(Link { chunk, kind: LinkKind::Address, target, section: None, strength: LINKED });
        }
    }
}

fn numbers_and_titles(text: &str, chunk: usize, found: &mut Found) {
    for (pattern, strength) in [(&SECTION, SENT), (&SEEN, SENT), (&NUMBER, NAMED)] {
        for captures in pattern.iter().flat_map(|pattern| pattern.captures_iter(text)) {
            let Some(code) = captures.name("code") else { continue };
            let section = captures.name("section").map(|section| section.as_str().to_owned());
            found.add(Link { chunk, kind: LinkKind::Code, target: key(code.as_str()), section, strength });
        }
    }
    for captures in TITLE.iter().flat_map(|pattern| pattern.captures_iter(text)) {
        let Some(title) = captures.name("title") else { continue };
        let target = title.as_str().trim().trim_end_matches([',', '.']).to_owned();
        if target.len() <= MAX_TITLE_BYTES {
            found.add(Link { chunk, kind: LinkKind::Title, target, section: None, strength: SENT });
        }
    }
}

/// The hyperlinks of an HTML document, each with the place in its text where the linked words stand. Those whose words
/// the text does not have there are left out: they were navigation.
fn anchors(html: &str, text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut at, mut place, mut since) = (0, 0, 0);
    for _ in 0..MAX_ANCHORS {
        let Some(start) = tag_from(html, at) else { break };
        let Some(length) = html[start..].find('>') else { break };
        let tag = &html[start..start + length];
        at = start + length + 1;
        let inner = &html[at..at + ceil(&html[at..], MAX_ANCHOR_BYTES)];
        let words = without_tags(&inner[..inner.find("</a").or_else(|| inner.find("</A")).unwrap_or(0)]);
        let is_navigation = attribute(tag, "rel").is_some() || attribute(tag, "accesskey").is_some();
        let Some(reference) = attribute(tag, "href") else { continue };
        if is_navigation || words.chars().count() < 2 {
            continue;
        }
        // The text has hardly more bytes than the HTML since the last hyperlink that was found.
        let window = &text[place..place + ceil(&text[place..], (start - since) * 5 / 4 + words.len() + 200)];
        let longest = words.split_whitespace().max_by_key(|word| word.len()).unwrap_or_default();
        if let Some(offset) = window.find(words.as_str()).or_else(|| window.find(longest)) {
            place += offset;
            since = at;
            found.push((place, reference.replace("&amp;", "&")));
        }
    }
    found
}

/// Most hyperlinks of an HTML document that are looked at.
const MAX_ANCHORS: usize = 2_000;

/// Most bytes of the words of a hyperlink, with the tags among them.
const MAX_ANCHOR_BYTES: usize = 400;

/// Where the next `<a ` begins.
fn tag_from(html: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += html[at..].find('<')?;
        let mut next = html[at + 1..].bytes();
        if next.next().is_some_and(|b| b.eq_ignore_ascii_case(&b'a'))
            && next.next().is_some_and(|b| b.is_ascii_whitespace())
        {
            return Some(at);
        }
        at += 1;
    }
}

/// The value of a tag's attribute, in quotes or without.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let lower = tag.to_ascii_lowercase();
    let found = lower.match_indices(name).find(|(at, _)| {
        lower[..*at].ends_with(|c: char| c.is_ascii_whitespace())
            && lower[at + name.len()..].trim_start().starts_with('=')
    });
    let value = tag[found?.0 + name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let end = match value.chars().next()? {
        quote @ ('"' | '\'') => return value[1..].split(quote).next().map(str::to_owned),
        _ => value.find(char::is_whitespace).unwrap_or(value.len()),
    };
    Some(value[..end].to_owned())
}

/// Text between tags, with single blanks.
fn without_tags(html: &str) -> String {
    let mut is_tag = false;
    let text: String = html
        .chars()
        .filter(|c| {
            let is_text = !is_tag && *c != '<';
            is_tag = (is_tag || *c == '<') && *c != '>';
            is_text
        })
        .collect();
    text.replace("&nbsp;", " ").replace("&amp;", "&").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most so many bytes of a text, up to the end of a character.
fn ceil(text: &str, bytes: usize) -> usize {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}
