//! The size of a text or bytea of a row, known without unpacking it or fetching it from where it is stored.

use pgrx::datum::{Datum, UnboxDatum};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Bytes of a value as a client would get it, without its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredSize(pub(crate) usize);

impl FromDatum for StoredSize {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the caller hands over a value of a type that is_compatible_with takes: a varlena, whose header this
        // reads, and nothing behind it.
        let size = unsafe { pg_sys::toast_raw_datum_size(datum) };
        Some(Self(size.saturating_sub(pg_sys::VARHDRSZ)))
    }
}

impl IntoDatum for StoredSize {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        None
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::BYTEAOID
    }

    fn is_compatible_with(other: pg_sys::Oid) -> bool {
        other == pg_sys::BYTEAOID || other == pg_sys::TEXTOID
    }
}

// SAFETY: the size borrows nothing of the value.
unsafe impl UnboxDatum for StoredSize {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Self
    where
        Self: 'src,
    {
        // SAFETY: as for from_polymorphic_datum; the datum is not null.
        let size = unsafe { pg_sys::toast_raw_datum_size(datum.sans_lifetime()) };
        Self(size.saturating_sub(pg_sys::VARHDRSZ))
    }
}
