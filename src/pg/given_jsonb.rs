//! A jsonb that a caller gives: one that cannot be taken apart is their error, and no bug.

use crate::error::Error;
use crate::pg::ErrorReport;
use crate::pg::bounded_jsonb::text_of;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::nullable::Nullable;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, pg_sys};
use serde_json::Value;
use serde_json::error::Category;

/// The value. 54000 where it is nested more than 127 levels deep, 22023 where a number in it is beyond a double.
#[derive(Debug, Clone)]
pub(crate) struct GivenJsonb(pub(crate) Value);

impl FromDatum for GivenJsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the caller hands over a jsonb.
        let text = unsafe { text_of(datum) }?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(Self(value)),
            Err(error) => {
                ErrorReport::from(refusal(&error)).report(PgLogLevel::ERROR);
                None
            }
        }
    }
}

/// Whether a jsonb cannot be taken apart for a number in it: the only thing but its depth that the server's notion of JSON
/// has more of.
pub(crate) fn is_number_too_large(error: &serde_json::Error) -> bool {
    error.classify() == Category::Syntax && error.to_string().starts_with("number out of range")
}

/// What is wrong with the text of a jsonb, which is sound JSON.
fn refusal(error: &serde_json::Error) -> Error {
    if is_number_too_large(error) {
        Error::invalid("a number in the jsonb is beyond double precision")
            .hint("Give numbers from -1.7e308 to 1.7e308.")
    } else {
        Error::limit("the jsonb is nested too deeply, but the limit is 127 levels")
            .hint("Give a flatter object.")
    }
}

// SAFETY: the argument is a jsonb, as the SQL declaration says.
unsafe impl<'fcx> ArgAbi<'fcx> for GivenJsonb {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: see above. A NULL is a JSON null, which no function takes.
        unsafe { arg.unbox_arg_using_from_datum() }.unwrap_or(Self(Value::Null))
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: see above.
        unsafe { arg.unbox_arg_using_from_datum() }.into()
    }
}

impl_sql_translatable!(GivenJsonb, "jsonb");
