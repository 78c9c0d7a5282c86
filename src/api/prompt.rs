//! `rag_set_prompt`.

use super::{call, required};
use crate::collection::prompt;
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn rag_set_prompt(
    collection: Option<&str>,
    template: Option<GivenJsonb>,
) -> std::result::Result<(), ErrorReport> {
    call(|| prompt::set(collection, &required(template, "template")?.0))
}
