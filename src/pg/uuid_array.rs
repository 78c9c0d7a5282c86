//! Many ids as one value: a caller may see thousands of domains, and each statement is told of them.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// A `uuid[]` without nulls.
#[derive(Debug, Clone)]
pub(crate) struct UuidArray(Vec<[u8; 16]>);

impl FromIterator<[u8; 16]> for UuidArray {
    fn from_iter<I: IntoIterator<Item = [u8; 16]>>(ids: I) -> Self {
        Self(ids.into_iter().collect())
    }
}

impl IntoDatum for UuidArray {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let count = i32::try_from(self.0.len()).ok()?;
        let mut elements: Vec<pg_sys::Datum> =
            self.0.iter().map(|id| pg_sys::Datum::from(id.as_ptr())).collect();
        // SAFETY: as many pointers as said, each to the 16 bytes of a uuid, which is passed by reference and has no
        // alignment; they are copied into an array of the current memory context.
        let array = unsafe {
            pg_sys::construct_array(elements.as_mut_ptr(), count, pg_sys::UUIDOID, 16, false, b'c' as _)
        };
        Some(pg_sys::Datum::from(array))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::UUIDARRAYOID
    }
}

// SAFETY: what is returned is the datum of the value.
unsafe impl BoxRet for UuidArray {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: a datum of the type that the function returns, made in the current memory context.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

impl_sql_translatable!(UuidArray, "uuid[]");
