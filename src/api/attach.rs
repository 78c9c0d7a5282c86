//! Attaching tables: `rag_attach`, `rag_detach`, the trigger on attached tables, and the functions of policies.

use super::{call, options_of, required};
use crate::attach::{self, AttachRequest, Visibility};
use crate::collection::create::{check_language, check_model, warn_of_foreign};
use crate::collection::name::checked_name;
use crate::error::Error;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::transition::Statement;
use crate::pg::{ErrorReport, FunctionCallInfo, Oid, call_state, shared};
use crate::storage::{id, uuid};
use pgrx::prelude::*;
use rag_core::option::OptionReader;

/// Most characters of an option with a name or an expression.
const MAX_CHARS: usize = 1000;

#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn rag_attach(
    source: Option<Oid>,
    collection: Option<&str>,
    content: Option<Vec<Option<String>>>,
    title: Option<&str>,
    uri: Option<&str>,
    metadata: Option<Vec<Option<String>>>,
    options: Option<GivenJsonb>,
) -> Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let source = required(source, "source")?;
        let options = options_of(options)?;
        let mut reader = OptionReader::new(&options, "rag_attach")?;
        let request = AttachRequest {
            collection: collection.map(checked_name).transpose()?,
            content: content.map(named).transpose()?,
            title,
            uri,
            metadata: metadata.map(named).transpose()?.unwrap_or_default(),
            file: reader.text("file", MAX_CHARS)?,
            labels: reader.object("labels")?,
            owner: reader.text("owner", MAX_CHARS)?,
            media_type: reader.text("media_type", MAX_CHARS)?,
            language: reader.text("language", MAX_CHARS)?.unwrap_or("english"),
            model: reader.text("model", MAX_CHARS)?,
            chunking: reader.object("chunking")?,
            graph: reader.choice("graph")?,
        };
        reader.finish()?;
        check_language(request.language)?;
        check_model(request.model)?;
        warn_of_foreign(request.model, request.language);
        let collection = attach::attach(source, &request)?;
        shared::request_work_at_commit();
        Ok(uuid(collection))
    })
}

fn named(columns: Vec<Option<String>>) -> crate::error::Result<Vec<String>> {
    columns.into_iter().map(|name| name.ok_or_else(|| Error::null("a column"))).collect()
}

#[pg_extern(sql = false)]
fn rag_detach(source: Option<Oid>, collection: Option<&str>) -> Result<i64, ErrorReport> {
    call(|| Ok(attach::detach(required(source, "source")?, collection)? as i64))
}

/// The trigger on attached tables: whatever it is called with, it notes keys of the table that fired it.
#[pg_extern(sql = false)]
fn attached_change(fcinfo: FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(attach::note_statement(&Statement::of_call(fcinfo)?)?)
}

#[pg_extern(sql = false)]
fn source_readable(collection: pgrx::Uuid, fcinfo: FunctionCallInfo) -> Result<bool, ErrorReport> {
    let seen = |visibility: &mut Visibility| attach::is_source_readable(visibility, id(collection));
    Ok(call_state::with_state(fcinfo, seen)?)
}

#[pg_extern(sql = false)]
fn attached_source(collection: pgrx::Uuid, fcinfo: FunctionCallInfo) -> Result<Option<Oid>, ErrorReport> {
    let seen = |visibility: &mut Visibility| attach::readable_source(visibility, id(collection));
    Ok(call_state::with_state(fcinfo, seen)?)
}
