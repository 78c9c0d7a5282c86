//! Tables of queries and judgements, which are users' own: read as the caller, whole, and checked while they are read.

mod answers;

pub(crate) use answers::{JudgedQuestion, questions};

use super::relation::{self, Attribute, Relation};
use crate::error::{Error, Result, excerpt};
use crate::pg::{Oid, spi};
use pgrx::prelude::{PgBuiltInOids, PgSqlErrorCode as Code};
use std::collections::{HashMap, HashSet};

/// Most queries of one evaluation.
pub(crate) const MAX_QUERIES: usize = 10_000;

/// Most judgements of one evaluation.
pub(crate) const MAX_JUDGEMENTS: usize = 1_000_000;

/// Most bytes of the texts of one table: ids and queries, or ids and what is judged.
pub(crate) const MAX_BYTES: usize = 128 * 1024 * 1024;

/// A query of the caller's table.
pub(crate) struct JudgedQuery {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// Grades by what they are of, for each query by its id.
pub(crate) type Judgements = HashMap<String, HashMap<String, i32>>;

/// What a column must be.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Compared by its text.
    Any,
    Text,
    Integer,
    Boolean,
}

impl Kind {
    fn fits(self, attribute: &Attribute) -> bool {
        match self {
            Self::Any => true,
            Self::Text => attribute.category == "S",
            Self::Boolean => attribute.base_type == PgBuiltInOids::BOOLOID.value(),
            Self::Integer => [PgBuiltInOids::INT2OID, PgBuiltInOids::INT4OID, PgBuiltInOids::INT8OID]
                .iter()
                .any(|integer| attribute.base_type == integer.value()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "any type",
            Self::Text => "a text",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
        }
    }
}

/// The queries, in the order of their ids: `id` of any type that has an order, `query` a text.
///
/// 42501: the caller may not read them. 42809: no table or view. 22023: a column is missing or of another type, an id stands
/// twice. 22004: a value is NULL. 54000: more than [`MAX_QUERIES`], or than [`MAX_BYTES`].
pub(crate) fn queries(table: Oid) -> Result<Vec<JudgedQuery>> {
    let table = Table::open(table, "queries", &[("id", Kind::Any), ("query", Kind::Text)])?;
    let sql = format!(
        "SELECT t.\"id\"::pg_catalog.text, t.\"query\"::pg_catalog.text FROM {} AS t ORDER BY t.\"id\" LIMIT $1",
        table.full_name()
    );
    let mut rows = Vec::new();
    table.read(&sql, MAX_QUERIES, |row| {
        let query = JudgedQuery { id: table.value(row, 1, "id")?, text: table.value(row, 2, "query")? };
        let bytes = query.id.len() + query.text.len();
        rows.push(query);
        Ok(bytes)
    })?;
    table.require_once(rows.iter().map(|row| row.id.as_str()))?;
    Ok(rows)
}

/// The judgements: `query_id` and `document` of any type, `relevance` an integer. Errors as [`queries`], the limit being
/// [`MAX_JUDGEMENTS`].
pub(crate) fn judgements(table: Oid) -> Result<Judgements> {
    let columns = [("query_id", Kind::Any), ("document", Kind::Any), ("relevance", Kind::Integer)];
    let table = Table::open(table, "judgements", &columns)?;
    let sql = format!(
        "SELECT t.\"query_id\"::pg_catalog.text, t.\"document\"::pg_catalog.text, t.\"relevance\"::pg_catalog.int8
         FROM {} AS t LIMIT $1",
        table.full_name()
    );
    let mut judgements = Judgements::new();
    table.read(&sql, MAX_JUDGEMENTS, |row| {
        let grade: i64 = table.value(row, 3, "relevance")?;
        let grade = i32::try_from(grade).map_err(|_| {
            Error::invalid(format!("relevance of {} is {grade}, beyond an integer", table.full_name()))
        })?;
        let query: String = table.value(row, 1, "query_id")?;
        let document: String = table.value(row, 2, "document")?;
        let bytes = query.len() + document.len();
        let of_query = judgements.entry(query.clone()).or_default();
        if of_query.insert(document.clone(), grade).is_some() {
            let (document, query) = (excerpt(&document), excerpt(&query));
            return Err(table.twice(&format!("document \"{document}\" of query \"{query}\"")));
        }
        Ok(bytes)
    })?;
    Ok(judgements)
}

/// A relation that the caller may read.
struct Table {
    relation: Relation,
    /// The argument that names it.
    argument: &'static str,
}

impl Table {
    fn open(oid: Oid, argument: &'static str, columns: &[(&str, Kind)]) -> Result<Self> {
        let gone = || Error::missing(format!("{argument}: no table has the OID {}", oid.to_u32()));
        let relation = relation::relation(oid)?.ok_or_else(gone)?;
        if !["r", "p", "v", "m", "f"].contains(&relation.kind.as_str()) {
            let message = format!("{argument}: {} is no table or view", relation.full_name);
            return Err(Error::new(Code::ERRCODE_WRONG_OBJECT_TYPE, message));
        }
        check_columns(&relation, argument, columns)?;
        if relation::lock(oid) { Ok(Self { relation, argument }) } else { Err(gone()) }
    }

    /// Those of the columns that it has. They are checked as the ones are that it must have.
    fn present<'a>(&self, columns: &[(&'a str, Kind)]) -> Result<Vec<&'a str>> {
        let attributes = relation::attributes(self.relation.oid)?;
        let has = |name: &str| attributes.iter().any(|attribute| attribute.name == name);
        let present: Vec<(&str, Kind)> = columns.iter().copied().filter(|(name, _)| has(name)).collect();
        if !present.is_empty() {
            check_columns(&self.relation, self.argument, &present)?;
        }
        Ok(present.into_iter().map(|(name, _)| name).collect())
    }

    /// Quoted, with its schema.
    fn full_name(&self) -> &str {
        &self.relation.full_name
    }

    /// Runs a statement that ends with `LIMIT $1`; `each` takes a row in, and tells of how many bytes. 54000: more than `most`
    /// rows, or than [`MAX_BYTES`].
    fn read(&self, sql: &str, most: usize, mut each: impl FnMut(&spi::Row) -> Result<usize>) -> Result<()> {
        let beyond = |limit: String| {
            Err(Error::limit(format!("{} has more than {limit}", self.full_name()))
                .hint("A view can take a sample of it."))
        };
        let (mut rows, mut bytes) = (0, 0);
        spi::read_snapshot_in_parts(sql, vec![(most as i64 + 1).into()], |row| {
            rows += 1;
            if rows > most {
                return beyond(format!("{most} rows"));
            }
            bytes += each(row)?;
            if bytes > MAX_BYTES { beyond(format!("{MAX_BYTES} bytes of text")) } else { Ok(()) }
        })
    }

    fn value<T: pgrx::FromDatum>(&self, row: &spi::Row, number: i32, column: &str) -> Result<T> {
        row.get(number).ok_or_else(|| Error::null(&format!("column {column} of {}", self.full_name())))
    }

    /// 22023: two rows have the same id.
    fn require_once<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let mut seen = HashSet::new();
        match ids.into_iter().find(|id| !seen.insert(*id)) {
            Some(id) => Err(self.twice(&format!("id \"{}\"", excerpt(id)))),
            None => Ok(()),
        }
    }

    fn twice(&self, what: &str) -> Error {
        Error::invalid(format!("{} has two rows of {what}", self.full_name()))
            .hint("A view can keep one of them: SELECT DISTINCT ON, or max(relevance).")
    }
}

/// 22023: a column is missing or of another type. 42501: the caller may not read one.
fn check_columns(relation: &Relation, argument: &str, columns: &[(&str, Kind)]) -> Result<()> {
    let attributes = relation::attributes(relation.oid)?;
    let (mut wrong, mut numbers) = (Vec::new(), Vec::new());
    for (name, kind) in columns {
        match attributes.iter().find(|attribute| attribute.name == *name) {
            Some(found) if kind.fits(found) => numbers.push(found.number),
            Some(found) => wrong.push(format!("\"{name}\" is {}, not {}", found.type_name, kind.name())),
            None => wrong.push(format!("\"{name}\" is missing")),
        }
    }
    if !wrong.is_empty() {
        let wanted = columns.iter().map(|(name, kind)| format!("\"{name}\" ({})", kind.name()));
        return Err(Error::invalid(format!(
            "{argument}: {} does not have the columns that are read",
            relation.full_name
        ))
        .detail(format!("Column {}.", wrong.join(", ")))
        .hint(format!(
            "Columns are {}: a view can give them these names.",
            wanted.collect::<Vec<_>>().join(", ")
        )));
    }
    if !relation::rights(relation.oid, &numbers)?.can_read {
        return Err(Error::forbidden(format!("permission denied for {}", relation.full_name))
            .hint("The columns are read as the caller: GRANT SELECT on them."));
    }
    Ok(())
}
