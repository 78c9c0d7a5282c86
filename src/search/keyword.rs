//! The keyword retriever: BM25 over the segments of the caller's domains, in the call's snapshot.

use super::allowed::Allowed;
use super::bundle::{self, Bundled};
use super::retriever::Retriever;
use super::scope::Scope;
use super::{blob_cache, visible_segments};
use crate::error::{Error, Result};
use crate::pg::interrupts;
use crate::storage::blob::REPAIR;
use crate::storage::segment::SegmentHeader;
use crate::storage::{Id, is_attached};
use rag_bm25::{Correction, Language, Marker, Query, Segment};
use rag_core::answer::snippet::snippet;
use rag_core::fuse::Ranked;
use std::collections::{HashMap, HashSet};

/// Ranks by words: the segments of a scope, by language, but for damaged ones. Statistics are those of exactly these.
pub(crate) struct KeywordRetriever<'a> {
    query: &'a str,
    more: &'a str,
    corrections: &'a [Correction],
    allowed: Option<&'a Allowed<'a>>,
    groups: Vec<(Language, Vec<Segment>)>,
    /// Chunks in the segments, with those deleted since the last merges.
    entries: usize,
    damage: Option<Error>,
}

impl<'a> KeywordRetriever<'a> {
    /// Opens the segments.
    pub(crate) fn open(scope: &Scope, query: &'a str, allowed: Option<&'a Allowed<'a>>) -> Result<Self> {
        let mut opened =
            Self { query, more: "", corrections: &[], allowed, groups: Vec::new(), entries: 0, damage: None };
        let (attached, ordinary): (Vec<Id>, Vec<Id>) =
            scope.ids().into_iter().partition(|id| is_attached(*id));
        let may_hide_rows = scope.may_hide_rows();
        let in_part = if may_hide_rows { ordinary } else { Vec::new() };
        let Bundled { bundles, others } = bundle::open(scope.segments()?)?;
        for segment in bundles {
            opened.add(segment.language(), segment.len(), segment);
        }
        let cached = blob_cache::open_all(&others)?;
        opened.damage = cached.damage;
        for (index, segment) in cached.blobs {
            match language_of(others[index]) {
                Ok(language) => opened.add(language, others[index].entries, segment),
                Err(error) => drop(opened.damage.get_or_insert(error)),
            }
        }
        let of_attached = visible_segments::of_attached(&attached, may_hide_rows, &mut opened.damage)?;
        let in_part = visible_segments::of_domains(&in_part, &mut opened.damage)?;
        for segment in in_part.into_iter().chain(of_attached) {
            opened.add(segment.language(), segment.len(), segment);
        }
        Ok(opened)
    }

    /// With more words than the query's, and others in place of some.
    pub(crate) fn with(self, more: &'a str, corrections: &'a [Correction]) -> Self {
        Self { more, corrections, ..self }
    }

    /// The segments, by language.
    pub(crate) fn groups(&self) -> &[(Language, Vec<Segment>)] {
        &self.groups
    }

    fn add(&mut self, language: Language, entries: u32, segment: Segment) {
        self.entries += entries as usize;
        match self.groups.iter_mut().find(|(known, _)| *known == language) {
            Some((_, segments)) => segments.push(segment),
            None => self.groups.push((language, vec![segment])),
        }
    }
}

impl Retriever for KeywordRetriever<'_> {
    const NAME: &'static str = "keyword";
    const FILTERS: bool = false;

    fn rank(&mut self, limit: usize) -> Result<Vec<Ranked>> {
        let listed = self.allowed.and_then(Allowed::listed);
        let accept = listed.map(|listed| move |id: Id| listed.chunks.contains_key(&id));
        let accept: Option<&dyn Fn(Id) -> bool> = accept.as_ref().map(|f| f as &dyn Fn(Id) -> bool);
        let mut hits: Vec<Ranked> = Vec::new();
        for (language, group) in &self.groups {
            let parsed = Query::parse(self.query, *language);
            // Most queries are searched for as they are.
            let parsed = if self.more.is_empty() { parsed } else { parsed.with_more(self.more) };
            let parsed = parsed.corrected(self.corrections);
            if parsed.is_empty() {
                continue;
            }
            let found = rag_bm25::search_while(group, &parsed, limit, accept, interrupts::goes_on)?;
            hits.extend(found.into_iter().map(|hit| Ranked { id: hit.id, score: hit.score }));
        }
        if self.groups.len() > 1 {
            hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
            hits.truncate(limit);
        }
        Ok(hits)
    }

    fn ranked(&self) -> usize {
        self.entries
    }

    fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }
}

fn language_of(header: &SegmentHeader) -> Result<Language> {
    Language::from_name(&header.language).ok_or_else(|| {
        Error::damaged(format!("a segment names the unknown language \"{}\"", header.language)).hint(REPAIR)
    })
}

/// Whether a query tells what is looked for in one of these languages, by name; in none where it has stop words only.
pub(crate) fn has_content<'a>(query: &str, languages: impl IntoIterator<Item = &'a str>) -> bool {
    let languages: HashSet<Language> =
        languages.into_iter().map(|name| Language::from_name(name).unwrap_or(Language::Simple)).collect();
    languages.into_iter().any(|language| Query::has_content(query, language))
}

/// Marks the query's words in texts of several languages.
pub(crate) struct Highlighter<'a> {
    query: &'a str,
    markers: HashMap<Language, Marker>,
}

impl<'a> Highlighter<'a> {
    pub(crate) fn new(query: &'a str) -> Self {
        Self { query, markers: HashMap::new() }
    }

    /// Byte ranges of matched words.
    pub(crate) fn matches(&mut self, text: &str, language: &str) -> Vec<std::ops::Range<usize>> {
        let language = Language::from_name(language).unwrap_or(Language::Simple);
        self.markers
            .entry(language)
            .or_insert_with(|| Query::parse(self.query, language).marker(language))
            .mark(text)
    }

    /// A line of at most `max_chars` characters that shows why a text was found: from the first words that match.
    ///
    /// Only as much of the text is analysed as it takes to find them, for this is done for every row.
    pub(crate) fn snippet(&mut self, text: &str, language: &str, max_chars: usize) -> String {
        let part_bytes = MIN_PART_BYTES.max(max_chars.saturating_add(max_chars / 2));
        let mut part = 0..0;
        let mut matches = Vec::new();
        while part.end < text.len() && matches.is_empty() {
            part = part.end..end_of_part(text, part.end, part_bytes);
            matches = self.matches(&text[part.clone()], language);
        }
        if matches.is_empty() {
            return snippet(text, &[], max_chars);
        }
        // What follows the match belongs to it; what precedes it is in the part.
        let shown = part.start..end_of_part(text, part.end, max_chars);
        let mut line = snippet(&text[shown.clone()], &matches, max_chars.saturating_sub(2));
        if shown.start > 0 && !line.starts_with('…') {
            line.insert(0, '…');
        }
        if shown.end < text.len() && !line.ends_with('…') {
            line.push('…');
        }
        line
    }
}

/// Fewest bytes that are analysed at a time.
const MIN_PART_BYTES: usize = 256;

/// End of the part of a text that begins at `start`: behind white space, or the text's end.
fn end_of_part(text: &str, start: usize, bytes: usize) -> usize {
    let mut least = start.saturating_add(bytes).min(text.len());
    while !text.is_char_boundary(least) {
        least += 1;
    }
    text[least..].find(char::is_whitespace).map_or(text.len(), |space| least + space)
}
