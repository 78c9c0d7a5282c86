//! A jsonb that may be nested more deeply, or have larger numbers, than can be taken apart: that is an answer, and no bug.

use pgrx::datum::{Datum, UnboxDatum};
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};
use serde_json::Value;
use serde_json::error::Category;

/// Why a jsonb cannot be taken apart: the server's notion of JSON has more of these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is nested more than 127 levels deep.
    TooDeep,
    /// A number in it is beyond a double.
    NumberTooLarge,
}

impl Unreadable {
    /// What numbers there may be.
    pub(crate) const NUMBERS_HINT: &str = "Give numbers from -1.7e308 to 1.7e308.";
}

/// The value, or why there is none.
#[derive(Debug, Clone)]
pub(crate) struct BoundedJsonb(pub(crate) Result<Value, Unreadable>);

impl FromDatum for BoundedJsonb {
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
        Some(Self(serde_json::from_str(&text).map_err(|error| {
            let is_number =
                error.classify() == Category::Syntax && error.to_string().starts_with("number out of range");
            if is_number { Unreadable::NumberTooLarge } else { Unreadable::TooDeep }
        })))
    }
}

/// The text of a jsonb.
///
/// # Safety
///
/// The datum is a jsonb that is not null.
unsafe fn text_of(datum: pg_sys::Datum) -> Option<String> {
    // SAFETY: a jsonb goes in. Its text is a string of our own, which ends with NUL.
    unsafe {
        let out = direct_function_call::<&std::ffi::CStr>(pg_sys::jsonb_out, &[Some(datum)])?;
        let text = out.to_string_lossy().into_owned();
        pg_sys::pfree(out.as_ptr().cast_mut().cast());
        Some(text)
    }
}

impl IntoDatum for BoundedJsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        None
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: the value is a copy.
unsafe impl UnboxDatum for BoundedJsonb {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Self
    where
        Self: 'src,
    {
        // SAFETY: a jsonb that is not null.
        unsafe { Self::from_polymorphic_datum(datum.sans_lifetime(), false, pg_sys::JSONBOID) }
            .unwrap_or(Self(Ok(Value::Null)))
    }
}
