//! The BEFORE trigger of `rag.document`, and metadata as rows.

use super::call_even_unloaded;
use crate::document::change;
use crate::pg::table_watch;
use crate::pg::transition::Statement;
use crate::pg::{ErrorReport, FunctionCallInfo};
use crate::storage::metadata;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use pgrx::{AllocatedByRust, JsonB};
use rag_core::filter::Scalar;

#[pg_trigger(sql = false)]
fn document_before<'a>(
    trigger: &'a pgrx::PgTrigger<'a>,
) -> std::result::Result<Option<PgHeapTuple<'a, AllocatedByRust>>, ErrorReport> {
    let row = call_even_unloaded(|| change::before(trigger));
    match row {
        Ok(row) => Ok(Some(row)),
        Err(report) => {
            report.report(pgrx::PgLogLevel::ERROR);
            Ok(None)
        }
    }
}

#[pg_extern(sql = false)]
fn added_policy_changed(fcinfo: FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    table_watch::announce_change(Statement::of_call(fcinfo)?.table);
    Ok(())
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn metadata_rows(
    metadata: JsonB,
    extracted: JsonB,
    fields: JsonB,
) -> TableIterator<
    'static,
    (
        name!(key, String),
        name!(ordinal, i32),
        name!(text_value, Option<String>),
        name!(number_value, Option<f64>),
        name!(boolean_value, Option<bool>),
        name!(time_value, Option<TimestampWithTimeZone>),
    ),
> {
    let rows = rag_core::metadata::effective_rows(&metadata.0, &extracted.0, &fields.0);
    TableIterator::new(rows.into_iter().enumerate().map(|(i, (key, value))| {
        let ordinal = i as i32;
        let moment = value.time().and_then(|span| metadata::time(span.from));
        match value {
            Scalar::Text(text) => (key, ordinal, Some(text), None, None, moment),
            Scalar::Number(number) => (key, ordinal, None, Some(number), None, None),
            Scalar::Bool(boolean) => (key, ordinal, None, None, Some(boolean), None),
        }
    }))
}
