//! A jsonb that may be nested more deeply, or have larger numbers, than can be taken apart: that is an answer, and no bug.

use pgrx::datum::{Datum, UnboxDatum};
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};
use serde_json::Value;

/// The value, or why there is none: it is nested more than 127 levels deep, or a number in it is beyond a double.
#[derive(Debug)]
pub(crate) struct BoundedJsonb(pub(crate) serde_json::Result<Value>);

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
        Some(Self(serde_json::from_str(&text)))
    }
}

/// The text of a jsonb.
///
/// # Safety
///
/// The datum is a jsonb that is not null.
pub(super) unsafe fn text_of(datum: pg_sys::Datum) -> Option<String> {
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
