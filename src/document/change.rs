//! What becomes of a row of `rag.document` that is written: where it goes, what of it is the system's, and whether it is to
//! be processed.

use super::store::check_size;
use super::target;
use crate::error::{Error, Result};
use crate::pg::bounded_jsonb::{BoundedJsonb, Unreadable};
use crate::pg::stored_size::StoredSize;
use crate::pg::{elevation, random, server};
use crate::storage::{Id, document, id, uuid};
use pgrx::datum::{TimestampWithTimeZone, UnboxDatum};
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use pgrx::{AllocatedByRust, JsonB, PgTriggerOperation, WhoAllocated};
use rag_core::hash::sha256;
use rag_core::metadata::{MOST_LEVELS, is_too_deep};

type Row<'a> = PgHeapTuple<'a, AllocatedByRust>;

/// The row as it is to be stored, of a BEFORE trigger for INSERT or UPDATE.
pub(crate) fn before<'a>(trigger: &'a pgrx::PgTrigger<'a>) -> Result<Row<'a>> {
    let broken = |e: &dyn std::fmt::Display| Error::internal(format!("trigger called wrongly: {e}"));
    match trigger.op().map_err(|e| broken(&e))? {
        PgTriggerOperation::Insert => {
            let new = trigger.new().ok_or_else(|| broken(&"no new row"))?;
            if !is_restored(&new)? {
                // Before the row is copied and its content is unpacked.
                check_stored_size(&new)?;
            }
            before_insert(new.into_owned())
        }
        PgTriggerOperation::Update => {
            let old = trigger.old().ok_or_else(|| broken(&"no old row"))?.into_owned();
            let new = trigger.new().ok_or_else(|| broken(&"no new row"))?.into_owned();
            before_update(&old, new)
        }
        _ => Err(broken(&"neither INSERT nor UPDATE")),
    }
}

fn before_insert(mut new: Row<'_>) -> Result<Row<'_>> {
    if is_restored(&new)? {
        return Ok(new);
    }
    let hash = content_hash(&new)?;
    check_metadata(&new)?;
    let collection: String = get(&new, "collection")?.ok_or_else(|| Error::null("collection"))?;
    let owner: String = get(&new, "owner")?.ok_or_else(|| Error::null("owner"))?;
    let goes_to = target::resolve_row(&collection, &owner)?;
    set(&mut new, "domain_id", uuid(goes_to.domain))?;
    set(&mut new, "collection", goes_to.collection)?;
    set(&mut new, "owner", goes_to.owner)?;
    check_uri(&new)?;
    make_way(&new)?;
    set(&mut new, "sha256", hash.to_vec())?;
    set_system_columns(&mut new)?;
    target::row_is_done();
    Ok(new)
}

/// What a new document says of itself is not asked for: programs that write whole rows give NULL, or anything.
fn set_system_columns(new: &mut Row<'_>) -> Result<()> {
    let now = pgrx::datum::datetime_support::transaction_timestamp();
    if get::<pgrx::Uuid>(new, "id")?.is_none() {
        set(new, "id", pgrx::Uuid::from_bytes(random::new_id()?))?;
    }
    if get::<TimestampWithTimeZone>(new, "created_at")?.is_none() {
        set(new, "created_at", now)?;
    }
    set(new, "version", 1_i64)?;
    set(new, "status", "pending")?;
    set(new, "updated_at", now)?;
    for column in ["error", "text", "parsed_title", "detected_type"] {
        set::<Option<String>>(new, column, None)?;
    }
    set::<Option<i32>>(new, "chunks", None)?;
    for column in ["file_metadata", "extracted"] {
        set(new, column, JsonB(serde_json::json!({})))?;
    }
    Ok(())
}

fn before_update<'a>(old: &Row<'_>, mut new: Row<'a>) -> Result<Row<'a>> {
    if get::<pgrx::Uuid>(old, "id")? != get::<pgrx::Uuid>(&new, "id")? {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "the id of a document cannot be changed",
        )
        .hint("Insert a new document instead."));
    }
    // Only a worker changes the status itself: it completes the document, with the title that it found.
    if get::<String>(old, "status")? != get::<String>(&new, "status")? {
        return Ok(new);
    }
    check_stored_size(&new)?;
    let hash = content_hash(&new)?;
    check_metadata(&new)?;
    let old_domain: Option<Id> = get::<pgrx::Uuid>(old, "domain_id")?.map(id);
    let collection: String = get(&new, "collection")?.ok_or_else(|| Error::null("collection"))?;
    let owner: String = get(&new, "owner")?.ok_or_else(|| Error::null("owner"))?;
    let moves = get::<String>(old, "collection")?.as_deref() != Some(&collection)
        || get::<String>(old, "owner")?.as_deref() != Some(&owner);
    let mut moved = false;
    if moves {
        let goes_to = target::resolve(&collection, &owner)?;
        moved = Some(goes_to.domain) != old_domain;
        set(&mut new, "domain_id", uuid(goes_to.domain))?;
        set(&mut new, "collection", goes_to.collection)?;
        set(&mut new, "owner", goes_to.owner)?;
    }
    if moves || get::<String>(old, "uri")? != get::<String>(&new, "uri")? {
        check_uri(&new)?;
        make_way(&new)?;
    }
    let has_new_content = get::<&[u8]>(old, "sha256")? != Some(hash.as_slice());
    for (given, found) in [("title", "parsed_title"), ("media_type", "detected_type")] {
        let old_value: Option<String> = get(old, given)?;
        let new_value: Option<String> = get(&new, given)?;
        let is_found = old_value.is_some() && old_value == get(old, found)?;
        if has_new_content && is_found && old_value == new_value {
            // What the parser found in the old content says nothing about the new.
            set::<Option<String>>(&mut new, given, None)?;
        } else if !has_new_content && is_found && new_value.is_none() {
            // It would be found again.
            set(&mut new, given, old_value)?;
        }
    }
    let differs =
        |column: &str| -> Result<bool> { Ok(get::<String>(old, column)? != get::<String>(&new, column)?) };
    let changed = moved || has_new_content || differs("media_type")? || differs("title")?;
    let now = pgrx::datum::datetime_support::transaction_timestamp();
    if changed {
        let version: i64 = get(old, "version")?.unwrap_or(0);
        set(&mut new, "version", version + 1)?;
        set(&mut new, "sha256", hash.to_vec())?;
        set(&mut new, "status", "pending")?;
        set::<Option<String>>(&mut new, "error", None)?;
    }
    if moved {
        set(&mut new, "extracted", JsonB(serde_json::json!({})))?;
        set(&mut new, "file_metadata", JsonB(serde_json::json!({})))?;
        set::<Option<String>>(&mut new, "text", None)?;
        set::<Option<i32>>(&mut new, "chunks", None)?;
    }
    set(&mut new, "updated_at", now)?;
    Ok(new)
}

/// A document that nobody sees must not hold the key.
fn make_way(new: &Row<'_>) -> Result<()> {
    let key = |column| get::<String>(new, column);
    match (key("collection")?, key("owner")?, key("uri")?) {
        (Some(collection), Some(owner), Some(uri)) => {
            elevation::elevated(|| document::make_way(&collection, &owner, &uri))
        }
        _ => Ok(()),
    }
}

fn check_uri(new: &Row<'_>) -> Result<()> {
    let key = |column| Ok::<_, Error>(get::<String>(new, column)?.unwrap_or_default());
    target::check_uri(&key("collection")?, &key("owner")?, &key("uri")?)
}

/// A new row that already knows its domain is being restored; no one else may name a domain.
fn is_restored<A: WhoAllocated>(new: &PgHeapTuple<'_, A>) -> Result<bool> {
    let domain = new.get_by_name::<pgrx::Uuid>("domain_id").map_err(|e| broken_column("domain_id", &e))?;
    Ok(domain.is_some() && server::user_is_superuser())
}

fn check_stored_size<A: WhoAllocated>(row: &PgHeapTuple<'_, A>) -> Result<()> {
    for column in ["content", "file"] {
        let size = row.get_by_name::<StoredSize>(column).map_err(|e| broken_column(column, &e))?;
        if let Some(StoredSize(bytes)) = size {
            check_size(bytes)?;
        }
    }
    Ok(())
}

fn content_hash(row: &Row<'_>) -> Result<[u8; 32]> {
    // Detoasted once, and only borrowed.
    if let Some(text) = get::<&str>(row, "content")? {
        return Ok(sha256(text.as_bytes()));
    }
    match get::<&[u8]>(row, "file")? {
        Some(bytes) => Ok(sha256(bytes)),
        None => Err(Error::null("content").hint("A document has content (text) or file (bytea).")),
    }
}

fn check_metadata(row: &Row<'_>) -> Result<()> {
    match get::<BoundedJsonb>(row, "metadata")? {
        None => Err(Error::null("metadata")),
        Some(BoundedJsonb(Ok(value))) if is_too_deep(&value) => Err(too_deep()),
        Some(BoundedJsonb(Err(Unreadable::NumberTooLarge))) => {
            Err(Error::invalid("a number in metadata is beyond double precision")
                .hint(Unreadable::NUMBERS_HINT))
        }
        Some(BoundedJsonb(Err(Unreadable::TooDeep))) => Err(too_deep()),
        Some(BoundedJsonb(Ok(value))) if value.is_object() => Ok(()),
        Some(_) => {
            Err(Error::invalid("metadata must be a JSON object").hint("For example {\"lang\": \"en\"}."))
        }
    }
}

fn too_deep() -> Error {
    Error::limit(format!("metadata is nested more than {MOST_LEVELS} levels deep"))
        .hint("Give a flatter object.")
}

fn get<'r, T>(row: &'r Row<'_>, column: &str) -> Result<Option<T>>
where
    T: FromDatum + IntoDatum + UnboxDatum<As<'r> = T> + 'r,
{
    row.get_by_name(column).map_err(|e| broken_column(column, &e))
}

fn broken_column(column: &str, why: &dyn std::fmt::Display) -> Error {
    Error::internal(format!("column {column} of rag.document: {why}"))
}

fn set<T: IntoDatum>(row: &mut Row<'_>, column: &str, value: T) -> Result<()> {
    row.set_by_name(column, value)
        .map_err(|e| Error::internal(format!("column {column} of rag.document: {e}")))
}
