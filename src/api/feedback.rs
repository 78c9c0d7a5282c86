//! `rag_feedback`.

use super::{call, options_of, required};
use crate::config;
use crate::error::{Error, Result};
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, elevation, principal, server};
use crate::rights;
use crate::search::options::checked_query;
use crate::storage::feedback::{self, Shown};
use crate::storage::{Id, chunk, id, text_of_id};
use pgrx::prelude::*;
use rag_core::option::OptionReader;

#[pg_extern(sql = false)]
fn rag_feedback(
    query: Option<&str>,
    chunk_id: Option<pgrx::Uuid>,
    verdict: Option<i32>,
    options: Option<GivenJsonb>,
) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let query = checked_query(required(query, "query")?, "query")?;
        let chunk = id(required(chunk_id, "chunk_id")?);
        let verdict = required(verdict, "verdict")?;
        if !(-1..=1).contains(&verdict) {
            return Err(Error::invalid(format!("verdict is {verdict}")).hint(
                "1 says that the chunk answers the query, -1 that it does not, 0 takes back what was said.",
            ));
        }
        OptionReader::new(&options_of(options)?, "rag_feedback")?.finish()?;
        let owner = principal::current_owner()?;
        let shown = visible_chunk(query, chunk)?;
        elevation::elevated(|| match verdict {
            0 => feedback::take_back(&shown, &owner),
            verdict => feedback::put(&shown, &owner, verdict),
        })
    })
}

/// The chunk, looked up as the caller.
fn visible_chunk(query: &str, chunk: Id) -> Result<Shown<'_>> {
    let everything = config::all_domains() && server::user_is_superuser();
    let domains: Vec<Id> = rights::visible_domains(everything, None)?.into_iter().map(|d| d.id).collect();
    let shown = chunk::show(&domains, &[chunk])?.into_values().next();
    let shown = shown.ok_or_else(|| {
        Error::missing(format!("there is no chunk {}, or none that you may see", text_of_id(chunk))).hint(
            "The column chunk_id of rag_search has the ids; a document that has changed has other chunks.",
        )
    })?;
    Ok(Shown { domain: shown.domain, document: shown.document, chunk, query })
}
