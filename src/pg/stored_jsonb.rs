//! A jsonb on its way from a table to the caller, as it is stored: taken apart and put together again it would cost
//! time with every row, and numbers the digits that a float does not hold.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};

/// The bytes of a jsonb value, header included.
#[derive(Debug, Clone)]
pub(crate) struct StoredJsonb(Vec<u8>);

impl StoredJsonb {
    /// As the server stores it: for a value that many rows have, which is put together once.
    pub(crate) fn of(value: serde_json::Value) -> Option<Self> {
        // SAFETY: a datum of the type that was asked for, in the current memory context.
        unsafe { Self::from_datum(JsonB(value).into_datum()?, false) }
    }
}

impl FromDatum for StoredJsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the caller hands over a jsonb, which is a varlena. Its unpacked copy has a header of four bytes that
        // says how long it is, and is ours to free.
        unsafe {
            let copy = pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr());
            let bytes = std::slice::from_raw_parts(copy.cast::<u8>(), pgrx::varsize(copy)).to_vec();
            pg_sys::pfree(copy.cast());
            Some(Self(bytes))
        }
    }
}

impl IntoDatum for StoredJsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // SAFETY: palloc gives as many bytes as asked for, or raises an error; the bytes are those of a jsonb, for
        // nothing else makes this type.
        unsafe {
            let value = pg_sys::palloc(self.0.len()).cast::<u8>();
            std::ptr::copy_nonoverlapping(self.0.as_ptr(), value, self.0.len());
            Some(pg_sys::Datum::from(value))
        }
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: what is returned is the datum of the value.
unsafe impl BoxRet for StoredJsonb {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: a datum of the type that the function returns, made in the current memory context.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

impl_sql_translatable!(StoredJsonb, "jsonb");
