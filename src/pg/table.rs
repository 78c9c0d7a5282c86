//! Rows of our own small tables, read straight from them by index: without SQL, and without policies.
//!
//! For what policies are made of, which would hide the rows or ask again. Nothing of it can be seen from outside: the
//! locks are let go at once, and the scans are not counted.

use crate::pg::Oid;
use crate::pg::statistics::Uncounted;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::ops::Bound;

/// Which rows; the column leads the index.
pub(crate) enum Condition<'a> {
    /// A text column equals this.
    Text(&'a CStr, &'a str),
    /// An oid column equals this.
    Oid(&'a CStr, Oid),
    /// A uuid column equals this.
    Uuid(&'a CStr, [u8; 16]),
    /// A uuid column is this or greater.
    UuidFrom(&'a CStr, [u8; 16]),
}

/// Numbers of a table's columns, each looked up once in a scan.
struct Columns {
    table: Oid,
    numbers: RefCell<Vec<(CString, i16)>>,
}

impl Columns {
    fn of(table: Oid) -> Self {
        Self { table, numbers: RefCell::default() }
    }

    /// 0 or less if there is no such column.
    fn number(&self, column: &CStr) -> i16 {
        let mut numbers = self.numbers.borrow_mut();
        if let Some((_, number)) = numbers.iter().find(|(name, _)| name.as_c_str() == column) {
            return *number;
        }
        // SAFETY: a catalog look-up within a transaction.
        let number = unsafe { pg_sys::get_attnum(self.table, column.as_ptr()) };
        numbers.push((column.to_owned(), number));
        number
    }
}

/// A row of a scan.
pub(crate) struct Row<'a> {
    columns: &'a Columns,
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl Row<'_> {
    /// The value of a column; `None` if it is null, or there is no such column.
    pub(crate) fn get<T: FromDatum>(&self, column: &CStr) -> Option<T> {
        let mut is_null = false;
        // SAFETY: tuple and descriptor are those of the scan, which outlives the row; the type is the column's, which
        // stands in sql/.
        unsafe {
            let number = self.columns.number(column);
            if number <= 0 {
                return None;
            }
            let value = pg_sys::heap_getattr(self.tuple, i32::from(number), self.descriptor, &mut is_null);
            T::from_datum(value, is_null)
        }
    }
}

/// What `read` makes of the rows that meet a condition, under the active snapshot; rows of which it makes nothing are
/// left out. While the extension is being created or dropped, a table or index may be missing: then there are no rows.
pub(crate) fn rows<R>(
    table: &CStr,
    index: &CStr,
    condition: &Condition<'_>,
    mut read: impl FnMut(&Row<'_>) -> Option<R>,
) -> Vec<R> {
    let mut found = Vec::new();
    scan(table, index, condition, |row| {
        found.extend(read(row));
        true
    });
    found
}

/// Those of some texts that a row with one of these ids has in a column, under the active snapshot. The index is led by the
/// ids' column and this one, of collation "C".
///
/// A row that is found tells how far the next text must be, so this costs a look at the index for each id and each group of
/// texts that no row stands between, and no more than one for each text.
pub(crate) fn present(
    table: &CStr,
    index: &CStr,
    column: &CStr,
    ids: &[[u8; 16]],
    texts: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if ids.is_empty() || texts.is_empty() {
        return found;
    }
    seek(table, index, |seeker, known| {
        for id in ids {
            let mut next = texts.iter().next();
            while let Some(text) = next {
                let keys = &mut [uuid_key(1, id), text_key_from(2, text)];
                // SAFETY: the values of the conditions are of the columns' types and outlive the look-up.
                let row = unsafe { seeker.first(keys) };
                let stored = row.and_then(|tuple| seeker.row(known, tuple).get::<String>(column));
                let Some(stored) = stored else { break };
                next = texts.range::<str, _>((Bound::Included(stored.as_str()), Bound::Unbounded)).next();
                if next == Some(&stored) {
                    next = texts.range::<str, _>((Bound::Excluded(stored.as_str()), Bound::Unbounded)).next();
                    found.insert(stored);
                }
            }
        }
    });
    found
}

/// Those of some ids that a row has, in the column that leads the index, under the active snapshot.
pub(crate) fn having_rows(table: &CStr, index: &CStr, ids: &[[u8; 16]]) -> Vec<[u8; 16]> {
    let mut found = Vec::new();
    if ids.is_empty() {
        return found;
    }
    seek(table, index, |seeker, _| {
        found.extend(ids.iter().filter(|id| {
            // SAFETY: the value of the condition is of the column's type and outlives the look-up.
            unsafe { seeker.first(&mut [uuid_key(1, id)]) }.is_some()
        }));
    });
    found
}

/// Many look-ups in one index, one after the other, each by as many conditions.
struct Seeker<const KEYS: usize> {
    scan: pg_sys::IndexScanDesc,
    slot: *mut pg_sys::TupleTableSlot,
    descriptor: pg_sys::TupleDesc,
}

impl<const KEYS: usize> Seeker<KEYS> {
    /// The first row that meets conditions on the index' columns, valid until the next look-up.
    ///
    /// # Safety
    /// The values of the conditions are of the columns' types.
    unsafe fn first(&mut self, keys: &mut [pg_sys::ScanKeyData; KEYS]) -> Option<pg_sys::HeapTuple> {
        // SAFETY: the scan is open, and was begun with as many conditions: it copies so many.
        unsafe {
            pg_sys::index_rescan(self.scan, keys.as_mut_ptr(), KEYS as i32, std::ptr::null_mut(), 0);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            pg_sys::index_getnext_slot(self.scan, forward, self.slot)
                .then(|| pg_sys::ExecFetchSlotHeapTuple(self.slot, false, std::ptr::null_mut()))
        }
    }

    fn row<'a>(&self, columns: &'a Columns, tuple: pg_sys::HeapTuple) -> Row<'a> {
        Row { columns, tuple, descriptor: self.descriptor }
    }
}

/// Opens an index for look-ups; does nothing where it or the table is missing.
fn seek<const KEYS: usize>(table: &CStr, index: &CStr, work: impl FnOnce(&mut Seeker<KEYS>, &Columns)) {
    // SAFETY: both are there; relations are open while they are scanned, and the scan is closed before them.
    unsafe {
        let Some((table, index)) = oids(table, index) else { return };
        let _uncounted = Uncounted::besides(&[table, index]);
        let share = pg_sys::AccessShareLock as i32;
        let (relation, index) = (pg_sys::table_open(table, share), pg_sys::index_open(index, share));
        let slot = pg_sys::table_slot_create(relation, std::ptr::null_mut());
        let snapshot = pg_sys::GetActiveSnapshot();
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        let scan = pg_sys::index_beginscan(relation, index, snapshot, KEYS as i32, 0);
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        let scan = pg_sys::index_beginscan(relation, index, snapshot, std::ptr::null_mut(), KEYS as i32, 0);
        work(&mut Seeker { scan, slot, descriptor: (*relation).rd_att }, &Columns::of(table));
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_close(index, share);
        pg_sys::table_close(relation, share);
    }
}

/// A table of ours and an index of it; `None` where one is missing, as while the extension is being created or dropped.
fn oids(table: &CStr, index: &CStr) -> Option<(Oid, Oid)> {
    // SAFETY: catalog look-ups within a transaction.
    let oid = |name: &CStr| unsafe {
        pg_sys::get_relname_relid(name.as_ptr(), pg_sys::get_namespace_oid(c"rag".as_ptr(), true))
    };
    let (table, index) = (oid(table), oid(index));
    (![table, index].contains(&pg_sys::InvalidOid)).then_some((table, index))
}

/// That an index' column equals an id.
fn uuid_key(column: i16, id: &[u8; 16]) -> pg_sys::ScanKeyData {
    let value = pg_sys::Datum::from(id.as_ptr());
    key(column, pg_sys::BTEqualStrategyNumber, pg_sys::InvalidOid, pg_sys::F_UUID_EQ, value)
}

/// That an index' column of collation "C" is a text or greater.
fn text_key_from(column: i16, text: &str) -> pg_sys::ScanKeyData {
    let value = text.into_datum().unwrap_or(pg_sys::Datum::null());
    key(column, pg_sys::BTGreaterEqualStrategyNumber, pg_sys::C_COLLATION_OID, pg_sys::F_TEXT_GE, value)
}

fn key(
    column: i16,
    strategy: u32,
    collation: Oid,
    procedure: u32,
    value: pg_sys::Datum,
) -> pg_sys::ScanKeyData {
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: writes the condition; the procedure is one of the server's own.
    unsafe {
        pg_sys::ScanKeyEntryInitialize(
            &mut key,
            0,
            column,
            strategy as u16,
            pg_sys::InvalidOid,
            collation,
            pg_sys::Oid::from(procedure),
            value,
        );
    }
    key
}

/// Goes over the rows that meet a condition, as long as `next` says so.
fn scan(table: &CStr, index: &CStr, condition: &Condition<'_>, mut next: impl FnMut(&Row<'_>) -> bool) {
    // SAFETY: an ordinary index scan, closed before returning; the value of the condition is of the column's type, and
    // outlives the scan.
    unsafe {
        let Some((table, index)) = oids(table, index) else { return };
        // Closed before it ends.
        let _uncounted = Uncounted::besides(&[table, index]);
        let relation = pg_sys::table_open(table, pg_sys::AccessShareLock as i32);
        let snapshot = if pg_sys::ActiveSnapshotSet() {
            pg_sys::GetActiveSnapshot()
        } else {
            pg_sys::GetTransactionSnapshot()
        };
        let (equal, no_collation) = (pg_sys::BTEqualStrategyNumber, pg_sys::InvalidOid);
        let of_uuid = |bytes: &[u8; 16]| Some(pg_sys::Datum::from(bytes.as_ptr()));
        let (column, strategy, collation, procedure, value) = match condition {
            Condition::Text(column, text) => {
                (column, equal, pg_sys::DEFAULT_COLLATION_OID, pg_sys::F_TEXTEQ, text.into_datum())
            }
            Condition::Oid(column, oid) => {
                (column, equal, no_collation, pg_sys::F_OIDEQ, Some(pg_sys::Datum::from(*oid)))
            }
            Condition::Uuid(column, bytes) => {
                (column, equal, no_collation, pg_sys::F_UUID_EQ, of_uuid(bytes))
            }
            Condition::UuidFrom(column, bytes) => {
                let or_greater = pg_sys::BTGreaterEqualStrategyNumber;
                (column, or_greater, no_collation, pg_sys::F_UUID_GE, of_uuid(bytes))
            }
        };
        let value = value.unwrap_or(pg_sys::Datum::null());
        let mut key = key(pg_sys::get_attnum(table, column.as_ptr()), strategy, collation, procedure, value);
        let scan = pg_sys::systable_beginscan(relation, index, true, snapshot, 1, &mut key);
        let columns = Columns::of(table);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let row = Row { columns: &columns, tuple, descriptor: (*relation).rd_att };
            if !next(&row) {
                break;
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
    }
}
