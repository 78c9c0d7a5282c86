//! The BEFORE trigger of `rag.document`, triggers that tell other sessions, and metadata as rows.

use super::call_even_unloaded;
use crate::document::change;
use crate::error::Error;
use crate::pg::transition::Statement;
use crate::pg::write_log::Subject;
use crate::pg::{ErrorReport, FunctionCallInfo};
use crate::pg::{table_watch, writes};
use crate::storage::{id, metadata};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use pgrx::{AllocatedByPostgres, AllocatedByRust, JsonB};
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

/// Before a row is written: notes what it is about, as it was and as it will be. Before TRUNCATE: that all rows change.
#[pg_trigger(sql = false)]
fn note_write<'a>(
    trigger: &'a pgrx::PgTrigger<'a>,
) -> std::result::Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, ErrorReport> {
    if let Err(error) = note_rows(trigger) {
        ErrorReport::from(error).report(pgrx::PgLogLevel::ERROR);
    }
    Ok(trigger.new().or_else(|| trigger.old()))
}

/// The trigger's arguments are the columns that say what a row is about; without any it concerns everybody.
fn note_rows(trigger: &pgrx::PgTrigger<'_>) -> crate::error::Result<()> {
    let wrong = |e: &dyn std::fmt::Display| Error::internal(format!("trigger called wrongly: {e}"));
    let columns = trigger.extra_args().map_err(|e| wrong(&e))?;
    let rows = [trigger.old(), trigger.new()];
    if columns.is_empty() || rows.iter().all(Option::is_none) {
        writes::note(Subject::ALL);
        return Ok(());
    }
    for row in rows.iter().flatten() {
        for column in &columns {
            let (_, attribute) = row.get_attribute_by_name(column).ok_or_else(|| wrong(&"no such column"))?;
            let subject = if PgBuiltInOids::UUIDOID.oid() == attribute.type_oid() {
                row.get_by_name(column).map_err(|e| wrong(&e))?.map(|value| writes::id(id(value)))
            } else {
                row.get_by_name(column).map_err(|e| wrong(&e))?.map(|text: String| writes::text(&text))
            };
            subject.into_iter().for_each(writes::note);
        }
    }
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
