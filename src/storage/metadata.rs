//! Metadata: the rules that find it, what they found, and filters over it as SQL: bind parameters only, over typed
//! rows and leakproof comparisons.
//!
//! What a filter means is defined by `rag_core::filter::matches`.

use super::among::Among;
use super::{ByDomain, Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{JsonB, Uuid};
use rag_core::filter::{Bound, Filter, Scalar};
use rag_core::metadata::rule::RuleDefinition;
use serde_json::{Map, Value};
use std::rc::Rc;

/// Most rules that are applied to one document.
const MAX_RULES: i64 = 500;

const RULES: &str = "SELECT name, key, kind, source, pattern, value, words, minimum, type, multiple
     FROM (SELECT DISTINCT ON (r.name) r.*
           FROM rag.metadata_rule r
           WHERE (r.owner = 'public' AND r.owner_role = 0)
              OR (r.owner = $1 AND r.owner_role = $2::oid::regrole AND (r.collection IS NULL OR r.collection = $3))
           ORDER BY r.name, r.builtin, r.owner = 'public', r.collection IS NULL, r.id) rules
     WHERE enabled ORDER BY ordinal, name LIMIT $4";

/// The rules for documents of a domain, in their order: those of the collection's owner, and everybody's.
/// Elevated.
pub(crate) fn rules_of_domain(domain: Id) -> Result<Rc<[RuleDefinition]>> {
    let collection = spi::read_latest_one(
        "SELECT c.owner, c.owner_role::oid::int8, c.name FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE d.id = $1",
        vec![uuid(domain).into()],
        |row| Ok((row.require::<String>(1)?, row.require::<i64>(2)?, row.require::<String>(3)?)),
    )?;
    let Some((owner, role, name)) = collection else { return Ok(Rc::default()) };
    let args = vec![owner.into(), role.into(), name.into(), MAX_RULES.into()];
    spi::read_latest(RULES, args, rule_of_row).map(Rc::from)
}

/// The rules for documents of a collection, as far as the caller sees them.
pub(crate) fn visible_rules(collection_owner: &str, collection: &str) -> Result<Rc<[RuleDefinition]>> {
    let role = crate::pg::principal::existing_role(collection_owner)?;
    let args =
        vec![collection_owner.into(), i64::from(role.to_u32()).into(), collection.into(), MAX_RULES.into()];
    spi::read_snapshot(RULES, args, rule_of_row).map(Rc::from)
}

fn rule_of_row(row: &spi::Row) -> Result<RuleDefinition> {
    Ok(RuleDefinition {
        name: row.require(1)?,
        key: row.require(2)?,
        kind: row.require(3)?,
        source: row.require(4)?,
        pattern: row.get(5),
        value: row.get(6),
        words: row.require(7)?,
        minimum: row.require(8)?,
        value_type: row.require(9)?,
        multiple: row.require(10)?,
    })
}

/// Replaces what was extracted from a document; its trigger writes the rows. Elevated.
pub(crate) fn store(domain: Id, document: Id, extracted: Map<String, Value>) -> Result<()> {
    spi::run(
        "UPDATE rag.document
         SET extracted = jsonb_strip_nulls(jsonb_build_object('uploaded_at', extracted -> 'uploaded_at',
                 'extracted_at', date_trunc('second', clock_timestamp()) AT TIME ZONE 'UTC')) || $3
         WHERE domain_id = $1 AND id = $2",
        vec![uuid(domain).into(), uuid(document).into(), JsonB(Value::Object(extracted)).into()],
    )
}

/// A processed document, to extract its metadata anew.
pub(crate) struct Extractable {
    pub(crate) text: String,
    pub(crate) title: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) file: Value,
}

/// The document of a claimed job, if only extraction is asked for: `Some(None)` if somebody is changing it right
/// now. Locks it. Elevated.
pub(crate) fn lock_for_extraction(
    domain: Id,
    document: Id,
    version: i64,
) -> Result<Option<Option<Extractable>>> {
    let args = || vec![uuid(domain).into(), uuid(document).into(), version.into()];
    let asked = spi::read_latest_one(
        "SELECT true FROM rag.job j JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
         WHERE j.domain_id = $1 AND j.document_id = $2 AND j.version = $3 AND j.kind = 'extract'
           AND d.version = $3 AND d.status = 'done' AND d.text IS NOT NULL",
        args(),
        |row| row.require::<bool>(1),
    )?;
    if asked.is_none() {
        return Ok(None);
    }
    spi::read_latest_one(
        "SELECT text, title, uri, file_metadata FROM rag.document
         WHERE domain_id = $1 AND id = $2 AND version = $3 FOR NO KEY UPDATE SKIP LOCKED",
        args(),
        |row| {
            Ok(Extractable {
                text: row.require(1)?,
                title: row.get(2),
                uri: row.get(3),
                file: row.require::<JsonB>(4)?.0,
            })
        },
    )
    .map(Some)
}

/// Marks the job of an extraction as done. Elevated.
pub(crate) fn finish_extraction(domain: Id, document: Id, version: i64) -> Result<()> {
    spi::run(
        "UPDATE rag.job SET state = 'done', finished_at = clock_timestamp(), embedded = 0,
                sqlstate = NULL, error = NULL, worker_pid = NULL, worker_start = NULL
         WHERE domain_id = $1 AND document_id = $2 AND version = $3 AND state = 'running' AND kind = 'extract'",
        vec![uuid(domain).into(), uuid(document).into(), version.into()],
    )
}

/// Queues the extraction of metadata for the processed documents of these domains, and returns how many. Elevated.
pub(crate) fn queue_extraction(domains: &[Id]) -> Result<i64> {
    let queued = spi::execute(
        "UPDATE rag.job j
         SET state = 'queued', kind = 'extract', tries = 0, due_at = clock_timestamp(),
             queued_at = clock_timestamp(), started_at = NULL, finished_at = NULL
         FROM rag.document d
         WHERE j.domain_id = ANY ($1) AND j.state = 'done'
           AND d.domain_id = j.domain_id AND d.id = j.document_id AND d.version = j.version
           AND d.status = 'done' AND d.text IS NOT NULL
         RETURNING 1",
        vec![uuids(domains.iter().copied()).into()],
        |_| Ok(()),
    )?;
    Ok(queued.len() as i64)
}

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
    let condition = statement.condition(filter);
    let limit = statement.bind(at_most.map(|most| most as i64));
    let sql = format!(
        "SELECT d.domain_id, d.id FROM rag.document d WHERE {} AND ({condition}) LIMIT {limit}",
        among.condition("d.domain_id")
    );
    let args = std::iter::once(among.argument()).chain(statement.args).collect();
    let found = spi::list_once(&sql, args, |row| Ok((id(row.require(1)?), id(row.require(2)?))))?;
    Ok(found.into_iter().collect())
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

    fn condition(&mut self, filter: &Filter) -> String {
        match filter {
            Filter::All(filters) => self.joined(filters, " AND ", "true"),
            Filter::Any(filters) => self.joined(filters, " OR ", "false"),
            Filter::Not(filter) => format!("NOT ({})", self.condition(filter)),
            Filter::Exists { key, exists } => {
                let is_there = self.has_any_row(key);
                if *exists { is_there } else { format!("NOT {is_there}") }
            }
            Filter::In { key, values } => {
                let test = self.equal_to_any(values);
                self.has_row(key, &test)
            }
            Filter::NotIn { key, values } => {
                let is_there = self.has_any_row(key);
                let test = self.equal_to_any(values);
                let is_equal = self.has_row(key, &test);
                format!("({is_there} AND NOT {is_equal})")
            }
            Filter::Range { key, bounds } => {
                let tests: Vec<String> =
                    bounds.iter().map(|(bound, limit)| self.within(*bound, limit)).collect();
                self.has_row(key, &tests.join(" AND "))
            }
            Filter::Prefix { key, prefix } => {
                let low = self.bind(prefix.clone());
                let test = match after_prefix(prefix) {
                    Some(high) => format!("m.text_value >= {low} AND m.text_value < {}", self.bind(high)),
                    None => format!("m.text_value >= {low}"),
                };
                self.has_row(key, &test)
            }
        }
    }

    fn joined(&mut self, filters: &[Filter], with: &str, empty: &str) -> String {
        let parts: Vec<String> = filters.iter().map(|f| format!("({})", self.condition(f))).collect();
        if parts.is_empty() { empty.to_owned() } else { parts.join(with) }
    }

    /// Whether a document has a value of the key.
    fn has_any_row(&mut self, key: &str) -> String {
        match self.way {
            Way::Listing(among) => {
                let (key, is_among) = (self.bind(key), among.condition("m.domain_id"));
                let rows = OF_A_TYPE.map(|is_of_type| {
                    format!(
                        "SELECT m.document_id FROM rag.metadata_value m
                         WHERE {is_among} AND m.key = {key} AND {is_of_type}"
                    )
                });
                format!("(d.id IN ({}))", rows.join(" UNION ALL "))
            }
            Way::Asking { .. } => self.has_row(key, "true"),
        }
    }

    /// Whether a document has a value of the key that passes a test.
    fn has_row(&mut self, key: &str, test: &str) -> String {
        let key = self.bind(key);
        match self.way {
            Way::Listing(among) => format!(
                "(d.id IN (SELECT m.document_id FROM rag.metadata_value m
                           WHERE {} AND m.key = {key} AND ({test})))",
                among.condition("m.domain_id")
            ),
            // Neither a join nor a hashed subplan may come of it, which would read the rows of all documents, nor a search by
            // value: the test waits until the document's rows are there.
            Way::Asking { document } => format!(
                "coalesce((SELECT true FROM (SELECT * FROM rag.metadata_value m WHERE m.domain_id = r.domain_id
                                             AND m.document_id = r.{document} AND m.key = {key} OFFSET 0) m
                           WHERE {test} LIMIT 1), false)"
            ),
        }
    }

    /// Texts and numbers in one array each, so that many values are one index condition.
    fn equal_to_any(&mut self, values: &[Scalar]) -> String {
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
        if tests.is_empty() { "false".to_owned() } else { tests.join(" OR ") }
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
