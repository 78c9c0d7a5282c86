//! `rag_verify`.

use super::{call, required};
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::search::scope::Scope;
use crate::search::verify::{self, Finding};
use crate::storage::uuid;
use crate::workers;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_verify(
    collection: Option<&str>,
    repair: Option<bool>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(kind, String),
            name!(collection, Option<String>),
            name!(object, pgrx::Uuid),
            name!(problem, String),
            name!(repaired, bool),
        ),
    >,
    ErrorReport,
> {
    let findings = call(|| {
        let repair = required(repair, "repair")?;
        let scope = Scope::resolve(collection)?;
        check_rights(&scope, collection)?;
        let findings = verify::verify(&scope, repair)?;
        if findings.iter().any(|finding| finding.repaired) {
            workers::wake_at_commit();
        }
        let named = |finding: Finding| (scope.name(finding.domain), finding);
        Ok(findings.into_iter().map(named).collect::<Vec<_>>())
    })?;
    Ok(TableIterator::new(findings.into_iter().map(move |(name, finding)| {
        (finding.kind.to_owned(), name, uuid(finding.object), finding.problem, finding.repaired)
    })))
}

/// Findings are about all rows: of those who may see all of them.
fn check_rights(scope: &Scope, collection: Option<&str>) -> Result<()> {
    if scope.may_hide_rows() {
        return Err(Error::forbidden("added policies may hide rows from you")
            .hint("A superuser with rag_ext.all_domains = on may verify them."));
    }
    if collection.is_some() && !scope.ids().is_empty() && scope.own_domains().is_empty() {
        return Err(Error::forbidden("nothing in this collection is yours")
            .hint("Its owner may verify it, or a superuser with rag_ext.all_domains = on."));
    }
    Ok(())
}
