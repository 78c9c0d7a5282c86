//! Filters over metadata as SQL: bind parameters only, over typed rows and leakproof comparisons.
//!
//! What a filter means is defined by `rag_core::filter::matches`.

use super::super::among::{self, Among};
use super::super::{ByDomain, Id, id, uuids};
use crate::error::Result;
use crate::pg::spi;
use pgrx::Uuid;
use pgrx::datum::TimestampWithTimeZone;
use rag_core::filter::{Bound, Filter, Scalar};
use std::collections::HashSet;

/// Tests of which each row passes one: there is an index of the rows that pass it, by domain and key.
const OF_A_TYPE: [&str; 3] =
    ["m.text_value IS NOT NULL", "m.number_value IS NOT NULL", "m.boolean_value IS NOT NULL"];

/// Those of the keys that no document of the domains has a value of, as far as the caller sees them.
pub(crate) fn missing_keys(domains: &[Id], keys: Vec<String>) -> Result<Vec<String>> {
    let is_there = OF_A_TYPE.map(|is_of_type| {
        format!(
            "EXISTS (SELECT FROM rag.metadata_value m
                     JOIN rag.document d ON d.domain_id = m.domain_id AND d.id = m.document_id
                     WHERE m.domain_id = ANY ($1) AND m.key = k.key AND {is_of_type})"
        )
    });
    spi::read_snapshot(
        &format!("SELECT k.key FROM unnest($2::text[]) k (key) WHERE NOT ({})", is_there.join(" OR ")),
        vec![uuids(domains.iter().copied()).into(), keys.into()],
        |row| row.require::<String>(1),
    )
}

/// Documents of the domains whose metadata passes the filter; not more than `at_most`.
pub(crate) fn matching_documents(
    domains: &[Id],
    filter: &Filter,
    at_most: Option<usize>,
) -> Result<ByDomain> {
    let among = Among::named(domains);
    let mut statement = Statement { args: Vec::new(), way: Way::Listing(&among) };
    let (condition, is_selected) = match statement.selections(filter) {
        Some(selections) => (is_in(&selections), true),
        None => (statement.combination(filter), false),
    };
    let limit = at_most.map_or(String::new(), |most| format!(" LIMIT {}", statement.bind(most as i64)));
    let sql = format!(
        "SELECT d.domain_id, d.id FROM rag.document d WHERE {} AND ({condition}){limit}",
        among.condition("d.domain_id")
    );
    let args = statement.args(&among);
    let read = |row: &spi::Row| Ok((id(row.require(1)?), id(row.require(2)?)));
    let found = match among {
        // There is one way: what is selected, and the document of each.
        Among::One(_) if is_selected && at_most.is_none() => among::look_up(&sql, args, read),
        _ => spi::list_once(&sql, args, read),
    };
    Ok(found?.into_iter().collect())
}

/// Most selections of documents, each by an index, that a condition is put together of.
const MOST_SELECTIONS: usize = 8;

/// Most look-ups in indexes by which rows are counted: one for each value in each domain.
const MOST_LOOK_UPS: usize = 500;

/// [`matching_documents`] where indexes tell that no more than so many documents pass, by counting as many rows of some of the
/// conditions that all must hold.
pub(crate) fn few_matching_documents(
    domains: &[Id],
    filter: &Filter,
    at_most: usize,
) -> Result<Option<ByDomain>> {
    let parts = match filter {
        Filter::All(parts) => parts.as_slice(),
        _ => std::slice::from_ref(filter),
    };
    // Each of the documents is asked about all of them.
    let at_most = at_most / parts.len().max(1);
    let Some(part) = part_of_few(domains, parts, at_most)? else { return Ok(None) };
    let mut documents = matching_documents(domains, part, None)?;
    if parts.len() > 1 {
        let passing = matching_of_documents(domains, filter, &documents.ids().collect::<Vec<Id>>())?;
        let passing: HashSet<Id> = passing.into_iter().collect();
        documents.retain(|id| passing.contains(&id));
    }
    Ok(Some(documents))
}

/// The one of the filters that the fewest documents pass, if they are told to be no more than so many.
fn part_of_few<'a>(domains: &[Id], parts: &'a [Filter], at_most: usize) -> Result<Option<&'a Filter>> {
    let among = Among::named(domains);
    let mut statement = Statement { args: Vec::new(), way: Way::Listing(&among) };
    let end = statement.bind(at_most as i64 + 1);
    let (mut counted, mut counts, mut look_ups_left) = (Vec::new(), Vec::new(), MOST_LOOK_UPS);
    for part in parts {
        // Each is a part of the statement.
        if counted.len() == MOST_SELECTIONS {
            break;
        }
        let look_ups = values_looked_up(part).and_then(|values| values.checked_mul(domains.len()));
        let left = look_ups.and_then(|look_ups| look_ups_left.checked_sub(look_ups));
        if let Some(left) = left
            && let Some(selections) = statement.selections(part)
        {
            look_ups_left = left;
            let count = |selection: &String| format!(" + (SELECT count(*) FROM ({selection} LIMIT {end}) s)");
            counts.push(format!("0::int8{}", selections.iter().map(count).collect::<String>()));
            counted.push(part);
        }
    }
    if counted.is_empty() {
        return Ok(None);
    }
    let sql = format!("SELECT unnest(ARRAY[{}])", counts.join(", "));
    let args = statement.args(&among);
    let counts = among::look_up(&sql, args, |row| row.require::<i64>(1))?;
    let fewest = counts.into_iter().zip(counted).min_by_key(|(count, _)| *count);
    Ok(fewest.filter(|(count, _)| *count <= at_most as i64).map(|(_, part)| part))
}

/// How many values are looked up for a filter, where every row that is gone over counts.
fn values_looked_up(filter: &Filter) -> Option<usize> {
    match filter {
        Filter::Any(filters) => filters.iter().map(values_looked_up).sum(),
        Filter::In { values, .. } => Some(values.len()),
        Filter::Exists { exists: true, .. } => Some(OF_A_TYPE.len()),
        Filter::Prefix { .. } => Some(1),
        Filter::Range { bounds, .. } => {
            // By the index of one type all rows would be gone over that pass what is asked of this type.
            let is_time = |(_, limit): &(Bound, Scalar)| limit.time().is_some();
            let kind = |bound: &(Bound, Scalar)| (std::mem::discriminant(&bound.1), is_time(bound));
            bounds.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1])).then_some(1)
        }
        Filter::All(_) | Filter::Not(_) | Filter::NotIn { .. } | Filter::Exists { exists: false, .. } => None,
    }
}

/// Those of the documents, of these domains, whose metadata passes the filter.
pub(crate) fn matching_of_documents(domains: &[Id], filter: &Filter, documents: &[Id]) -> Result<Vec<Id>> {
    matching(domains, filter, documents, ("document", "id"))
}

/// Those of the chunks, of these domains, that are there and whose documents' metadata passes the filter.
pub(crate) fn matching_of_chunks(domains: &[Id], filter: &Filter, chunks: &[Id]) -> Result<Vec<Id>> {
    matching(domains, filter, chunks, ("chunk", "document_id"))
}

/// Those of the rows of a table, of these domains, whose documents' metadata passes the filter, one after the other by the
/// index: those that are asked about are few beside all.
fn matching(
    domains: &[Id],
    filter: &Filter,
    ids: &[Id],
    (table, document): (&str, &'static str),
) -> Result<Vec<Id>> {
    let among = Among::looked_up(domains);
    let mut statement = Statement { args: Vec::new(), way: Way::Asking { document } };
    let ids = statement.bind(uuids(ids.iter().copied()));
    let condition = statement.condition(filter);
    let sql = format!(
        "SELECT r.domain_id, r.id FROM unnest({ids}::uuid[]) h (id) JOIN rag.{table} r ON r.id = h.id
         WHERE {} AND ({condition})",
        among.condition("r.domain_id")
    );
    among.look_up(&sql, statement.args, |row| row.require::<Uuid>(2).map(id))
}

/// How documents that pass are found.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// All rows of a condition are looked up at once, in these domains.
    Listing(&'a Among<'a>),
    /// Those of one document after the other, which is this column of a row `r`.
    Asking { document: &'static str },
}

struct Statement<'a> {
    /// From `$2` on: the first is that of [`Among::condition`].
    args: Vec<spi::Arg>,
    way: Way<'a>,
}

impl Statement<'_> {
    fn bind(&mut self, arg: impl Into<spi::Arg>) -> String {
        self.args.push(arg.into());
        format!("${}", self.args.len() + 1)
    }

    /// All arguments, with those that [`Among::condition`] takes.
    fn args(self, among: &Among<'_>) -> Vec<spi::Arg> {
        std::iter::once(among.argument()).chain(self.args).collect()
    }

    fn condition(&mut self, filter: &Filter) -> String {
        match self.selections(filter) {
            Some(selections) => is_in(&selections),
            None => self.combination(filter),
        }
    }

    /// [`Self::condition`] where there are no [`Self::selections`].
    fn combination(&mut self, filter: &Filter) -> String {
        match filter {
            Filter::All(filters) => self.joined(filters, " AND ", "true"),
            Filter::Any(filters) => self.joined(filters, " OR ", "false"),
            Filter::Not(filter) => format!("NOT ({})", self.condition(filter)),
            Filter::Exists { key, exists: false } => format!("NOT ({})", self.has_any_row(key)),
            Filter::NotIn { key, values } => {
                let (is_there, tests) = (self.has_any_row(key), self.equal_to_any(values));
                format!("({is_there} AND NOT {})", self.has_row(key, &tests))
            }
            Filter::Exists { .. } | Filter::In { .. } | Filter::Range { .. } | Filter::Prefix { .. } => {
                let tests = self.tests(filter);
                tests.map_or_else(|| "false".to_owned(), |(key, tests)| self.has_row(key, &tests))
            }
        }
    }

    /// Selections of documents that together are all that pass, each by the index of a type: where what passes is a few of them.
    fn selections(&mut self, filter: &Filter) -> Option<Vec<String>> {
        let Way::Listing(among) = self.way else { return None };
        let bound = self.args.len();
        let selections = match filter {
            Filter::Any(filters) => {
                let parts: Option<Vec<_>> = filters.iter().map(|filter| self.selections(filter)).collect();
                parts.map(|parts| parts.concat())
            }
            _ => self.tests(filter).map(|(key, tests)| {
                let key = self.bind(key);
                selection_by_each(among, &key, &tests)
            }),
        };
        let selections = selections.filter(|selections| selections.len() <= MOST_SELECTIONS);
        if selections.is_none() {
            self.args.truncate(bound);
        }
        selections
    }

    /// The key of a filter, and tests of its values: a document passes if one of its values passes one of these.
    fn tests<'a>(&mut self, filter: &'a Filter) -> Option<(&'a str, Vec<String>)> {
        match filter {
            Filter::Exists { key, exists: true } => Some((key, OF_A_TYPE.map(str::to_owned).to_vec())),
            Filter::In { key, values } => Some((key, self.equal_to_any(values))),
            Filter::Range { key, bounds } => Some((key, vec![self.within_all(bounds)])),
            Filter::Prefix { key, prefix } => Some((key, vec![self.begins_with(prefix)])),
            _ => None,
        }
    }

    fn joined(&mut self, filters: &[Filter], with: &str, empty: &str) -> String {
        let parts: Vec<String> = filters.iter().map(|f| format!("({})", self.condition(f))).collect();
        if parts.is_empty() { empty.to_owned() } else { parts.join(with) }
    }

    /// Whether a document has a value of the key.
    fn has_any_row(&mut self, key: &str) -> String {
        self.has_row(key, &OF_A_TYPE.map(str::to_owned))
    }

    /// Whether a document has a value of the key that passes one of the tests.
    fn has_row(&mut self, key: &str, tests: &[String]) -> String {
        let key = self.bind(key);
        match self.way {
            Way::Listing(among) if tests.len() > MOST_SELECTIONS => {
                is_in(&[selection(among, &key, &any_of(tests))])
            }
            Way::Listing(among) => is_in(&selection_by_each(among, &key, tests)),
            // Neither a join nor a hashed subplan may come of it, which would read the rows of all documents, nor a search by
            // value: the test waits until the document's rows are there.
            Way::Asking { document } => format!(
                "coalesce((SELECT true FROM (SELECT * FROM rag.metadata_value m WHERE m.domain_id = r.domain_id
                                             AND m.document_id = r.{document} AND m.key = {key} OFFSET 0) m
                           WHERE {} LIMIT 1), false)",
                any_of(tests)
            ),
        }
    }

    /// Tests of which a value passes one if it equals one of these. Texts and numbers in one array each, so that many values are one
    /// index condition.
    fn equal_to_any(&mut self, values: &[Scalar]) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        let mut numbers: Vec<f64> = Vec::new();
        let mut tests: Vec<String> = Vec::new();
        for value in values {
            match (value.time(), value) {
                (Some(span), _) => {
                    let (from, to) = (self.bind(time(span.from)), self.bind(time(span.to)));
                    tests.push(format!("(m.time_value >= {from} AND m.time_value < {to})"));
                }
                (None, Scalar::Text(text)) => texts.push(text.clone()),
                (None, Scalar::Number(number)) => numbers.push(*number),
                (None, Scalar::Bool(boolean)) => {
                    tests.push(format!("m.boolean_value = {}", self.bind(*boolean)));
                }
            }
        }
        match texts.len() {
            0 => {}
            1 => tests.push(format!("m.text_value = {}", self.bind(texts.swap_remove(0)))),
            _ => tests.push(format!("m.text_value = ANY ({})", self.bind(texts))),
        }
        match numbers.len() {
            0 => {}
            1 => tests.push(format!("m.number_value = {}", self.bind(numbers[0]))),
            _ => tests.push(format!("m.number_value = ANY ({})", self.bind(numbers))),
        }
        tests
    }

    fn begins_with(&mut self, prefix: &str) -> String {
        let low = self.bind(prefix.to_owned());
        match after_prefix(prefix) {
            Some(high) => format!("m.text_value >= {low} AND m.text_value < {}", self.bind(high)),
            None => format!("m.text_value >= {low}"),
        }
    }

    fn within_all(&mut self, bounds: &[(Bound, Scalar)]) -> String {
        let tests: Vec<String> = bounds.iter().map(|(bound, limit)| self.within(*bound, limit)).collect();
        tests.join(" AND ")
    }

    fn within(&mut self, bound: Bound, limit: &Scalar) -> String {
        if let Some(span) = limit.time() {
            // A day in a filter begins and ends; what is stored is a moment.
            let (operator, moment) = match bound {
                Bound::Less => ("<", span.from),
                Bound::LessOrEqual => ("<", span.to),
                Bound::Greater => (">=", span.to),
                Bound::GreaterOrEqual => (">=", span.from),
            };
            return format!("m.time_value {operator} {}", self.bind(time(moment)));
        }
        let operator = match bound {
            Bound::Less => "<",
            Bound::LessOrEqual => "<=",
            Bound::Greater => ">",
            Bound::GreaterOrEqual => ">=",
        };
        match limit {
            Scalar::Text(text) => format!("m.text_value {operator} {}", self.bind(text.clone())),
            Scalar::Number(number) => format!("m.number_value {operator} {}", self.bind(*number)),
            Scalar::Bool(_) => "false".to_owned(),
        }
    }
}

/// Documents of domains with values of a key that pass a test.
fn selection(among: &Among<'_>, key: &str, test: &str) -> String {
    let is_among = among.condition("m.domain_id");
    format!("SELECT m.document_id FROM rag.metadata_value m WHERE {is_among} AND m.key = {key} AND ({test})")
}

fn selection_by_each(among: &Among<'_>, key: &str, tests: &[String]) -> Vec<String> {
    tests.iter().map(|test| selection(among, key, test)).collect()
}

fn is_in(selections: &[String]) -> String {
    match selections {
        [] => "false".to_owned(),
        _ => format!("(d.id IN ({}))", selections.join(" UNION ALL ")),
    }
}

fn any_of(tests: &[String]) -> String {
    if tests.is_empty() { "false".to_owned() } else { tests.join(" OR ") }
}

/// The least text, by bytes, that is greater than all texts that begin so; `None` if there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Above the last code point before the surrogates come those behind them.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Microseconds from 1970-01-01 to 2000-01-01, where Postgres begins to count.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// A moment, in microseconds since 1970, for SQL. Those of the years 0001 to 9999 all exist there.
pub(crate) fn time(microseconds: i64) -> Option<TimestampWithTimeZone> {
    TimestampWithTimeZone::try_from(microseconds - POSTGRES_EPOCH).ok()
}
