//! The keyword arm: BM25 over the segments of the caller's domains, in the call's snapshot.

use super::scope::Scope;
use super::{by_row, segment_cache};
use crate::error::{Error, Result};
use crate::pg::{interrupts, transaction};
use crate::storage::segment::SegmentHeader;
use crate::storage::{Id, is_attached, segment};
use rag_bm25::{Language, Marker, Query, Segment};
use rag_core::answer::snippet::snippet;
use rag_core::fuse::Ranked;
use std::collections::{HashMap, HashSet};

/// The open segments of a scope, by language.
pub(crate) struct OpenSegments {
    groups: Vec<(Language, Vec<Segment>)>,
    entries: usize,
    damage: Option<Error>,
}

impl OpenSegments {
    /// Chunks in the segments, with those deleted since the last merges.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// What is wrong with a segment that is left out.
    pub(crate) fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }
}

/// Chunks in the segments of a scope, with those deleted since the last merges. Opens no more than it takes.
pub(crate) fn entries(scope: &Scope) -> Result<usize> {
    if scope.has_attached() || scope.may_hide_rows() {
        return Ok(segments(scope)?.entries());
    }
    let headers = transaction::attempt(|| segment::list(&scope.ids()))?;
    Ok(headers.iter().map(|header| header.entries as usize).sum())
}

/// Opens the segments of a scope, but for damaged ones. Statistics are those of exactly these.
pub(crate) fn segments(scope: &Scope) -> Result<OpenSegments> {
    let (attached, ordinary): (Vec<Id>, Vec<Id>) = scope.ids().into_iter().partition(|id| is_attached(*id));
    let may_hide_rows = scope.may_hide_rows();
    let (whole, in_part) = if may_hide_rows { (Vec::new(), ordinary) } else { (ordinary, Vec::new()) };
    // A page of the table itself that cannot be read is damage too.
    let headers = transaction::attempt(|| segment::list(&whole))?;
    let mut groups: Vec<(Language, Vec<Segment>)> = Vec::new();
    let mut entries = 0;
    let mut add = |language: Language, count: u32, open: Segment| {
        entries += count as usize;
        match groups.iter_mut().find(|(known, _)| *known == language) {
            Some((_, segments)) => segments.push(open),
            None => groups.push((language, vec![open])),
        }
    };
    let mut opened = segment_cache::open_all(&headers)?;
    for (index, open) in opened.segments {
        match language_of(&headers[index]) {
            Ok(language) => add(language, headers[index].entries, open),
            Err(error) => drop(opened.damage.get_or_insert(error)),
        }
    }
    let mut damage = opened.damage;
    let of_attached = by_row::segments_of_attached(&attached, may_hide_rows, &mut damage)?;
    for open in by_row::segments(&in_part, &mut damage)?.into_iter().chain(of_attached) {
        add(open.language(), open.len(), open);
    }
    Ok(OpenSegments { groups, entries, damage })
}

fn language_of(header: &SegmentHeader) -> Result<Language> {
    Language::from_name(&header.language).ok_or_else(|| {
        Error::damaged(format!("a segment names the unknown language \"{}\"", header.language))
            .hint(segment::REPAIR)
    })
}

/// The best hits, best first, ties by id; deleted chunks may be among them.
pub(crate) fn search(
    segments: &OpenSegments,
    query: &str,
    limit: usize,
    allowed: Option<&HashSet<Id>>,
) -> Result<Vec<Ranked>> {
    let accept = allowed.map(|allowed| move |id: Id| allowed.contains(&id));
    let accept: Option<&dyn Fn(Id) -> bool> = accept.as_ref().map(|f| f as &dyn Fn(Id) -> bool);
    let mut hits: Vec<Ranked> = Vec::new();
    for (language, group) in &segments.groups {
        let parsed = Query::parse(query, *language);
        if parsed.is_empty() {
            continue;
        }
        let found = rag_bm25::search_while(group, &parsed, limit, accept, interrupts::goes_on)?;
        hits.extend(found.into_iter().map(|hit| Ranked { id: hit.id, score: hit.score }));
    }
    if segments.groups.len() > 1 {
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits.truncate(limit);
    }
    Ok(hits)
}

/// The best hits that still exist, as many as there are up to `limit`.
pub(crate) fn search_live(
    scope: &Scope,
    segments: &OpenSegments,
    query: &str,
    limit: usize,
    allowed: Option<&HashSet<Id>>,
) -> Result<Vec<Ranked>> {
    let mut asked = limit;
    loop {
        let hits = search(segments, query, asked, allowed)?;
        let exhausted = hits.len() < asked;
        let ids: Vec<Id> = hits.iter().map(|h| h.id).collect();
        let alive = scope.visible(&ids)?;
        let live: Vec<Ranked> = hits.into_iter().filter(|h| alive.contains(&h.id)).take(limit).collect();
        if live.len() >= limit || exhausted {
            return Ok(live);
        }
        asked *= 2;
    }
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
