//! A jsonb that a caller gives: one that cannot be taken apart is their error, and no bug.

use crate::error::Error;
use crate::pg::ErrorReport;
use crate::pg::bounded_jsonb::{BoundedJsonb, Unreadable};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::nullable::Nullable;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, pg_sys};
use serde_json::Value;

/// The value. 54000 where it is nested more than 127 levels deep, 22023 where a number in it is beyond a double.
#[derive(Debug, Clone)]
pub(crate) struct GivenJsonb(pub(crate) Value);

impl FromDatum for GivenJsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        type_oid: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: the caller hands over a jsonb.
        match unsafe { BoundedJsonb::from_polymorphic_datum(datum, is_null, type_oid) }?.0 {
            Ok(value) => Some(Self(value)),
            Err(reason) => {
                ErrorReport::from(refusal(reason)).report(PgLogLevel::ERROR);
                None
            }
        }
    }
}

/// What to say of a jsonb that cannot be taken apart.
fn refusal(reason: Unreadable) -> Error {
    match reason {
        Unreadable::NumberTooLarge => {
            Error::invalid("a number in the jsonb is beyond double precision").hint(Unreadable::NUMBERS_HINT)
        }
        Unreadable::TooDeep => Error::limit("the jsonb is nested too deeply, but the limit is 127 levels")
            .hint("Give a flatter object."),
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
