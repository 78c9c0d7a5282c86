//! `rag_set_acronym` and `rag_drop_acronym`.

use super::{call, required};
use crate::collection::acronym;
use crate::pg::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn rag_set_acronym(
    collection: Option<&str>,
    short_form: Option<&str>,
    long_form: Option<&str>,
) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let collection = required(collection, "collection")?;
        acronym::set(collection, required(short_form, "short_form")?, required(long_form, "long_form")?)
    })
}

#[pg_extern(sql = false)]
fn rag_drop_acronym(
    collection: Option<&str>,
    short_form: Option<&str>,
    long_form: Option<&str>,
) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let collection = required(collection, "collection")?;
        acronym::drop_set(collection, required(short_form, "short_form")?, long_form)
    })
}
