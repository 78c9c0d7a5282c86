//! `rag_related`.

use super::{call, options_of, required};
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::search::options::checked_query;
use crate::search::related::related;
use crate::search::scope::Scope;
use crate::storage::uuid;
use pgrx::prelude::*;
use rag_core::option::OptionReader;

/// Rows that come where no number is asked for.
const DEFAULT_ROWS: usize = 50;

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_related(
    subject: Option<&str>,
    collection: Option<&str>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(kind, String),
            name!(name, Option<String>),
            name!(relation, String),
            name!(direction, String),
            name!(strength, f64),
            name!(depth, i32),
            name!(document_id, pgrx::Uuid),
            name!(title, Option<String>),
            name!(uri, Option<String>),
            name!(chunk_id, pgrx::Uuid),
        ),
    >,
    ErrorReport,
> {
    let rows = call(|| {
        let subject = checked_query(required(subject, "subject")?, "subject")?;
        let options = options_of(options)?;
        let mut reader = OptionReader::new(&options, "rag_related")?;
        let k = reader.integer("k", 1..=1000)?.map_or(DEFAULT_ROWS, |k| k as usize);
        let depth = reader.integer("depth", 1..=2)?.unwrap_or(2) as i32;
        reader.finish()?;
        related(&Scope::to_read(collection)?, subject, k, depth)
    })?;
    Ok(TableIterator::new(rows.into_iter().map(|row| {
        (
            row.kind,
            row.name,
            row.relation,
            row.direction.to_owned(),
            row.strength,
            row.depth,
            uuid(row.document),
            row.title,
            row.uri,
            uuid(row.chunk),
        )
    })))
}
