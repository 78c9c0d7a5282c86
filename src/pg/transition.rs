//! What a statement-level trigger is told: its table, and the keys of the rows that the statement changed.
//!
//! The rows are read where the executor has collected them, without a query: this is part of every statement
//! that changes the table.

use super::elevation;
use crate::error::{Error, Result};
use pgrx::{FromDatum, pg_sys};
use std::cell::UnsafeCell;
use std::ffi::CStr;

/// What the statement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Update,
    Delete,
    Truncate,
}

/// Rows as they were before the statement, or as it left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Old,
    New,
}

/// A statement that fired a trigger.
pub(crate) struct Statement {
    data: *const pg_sys::TriggerData,
    pub(crate) table: pg_sys::Oid,
    pub(crate) operation: Operation,
}

/// A key: a whole number, which most keys are, the text of its one column, or the texts of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Integer(i64),
    Text(String),
    Texts(Vec<String>),
}

/// Settings under which a value has always the same text.
pub(crate) const PLAIN_TEXT: &[(&CStr, &CStr)] = &[
    (c"datestyle", c"ISO, MDY"),
    (c"intervalstyle", c"postgres"),
    (c"timezone", c"UTC"),
    (c"extra_float_digits", c"1"),
    (c"bytea_output", c"hex"),
    (c"lc_monetary", c"C"),
    (c"xmlbinary", c"base64"),
];

impl Statement {
    /// The statement that called a trigger function: AFTER, for each statement.
    pub(crate) fn of_call(call: pg_sys::FunctionCallInfo) -> Result<Self> {
        let wrong = || Error::internal("called otherwise than as an AFTER trigger for each statement");
        // SAFETY: a function that is called as a trigger has its data as context, valid during the call.
        unsafe {
            if !pgrx::trigger_support::called_as_trigger(call) {
                return Err(wrong());
            }
            let data = (*call).context.cast::<pg_sys::TriggerData>().cast_const();
            let event = (*data).tg_event;
            if event & (pg_sys::TRIGGER_EVENT_ROW | pg_sys::TRIGGER_EVENT_BEFORE) != 0 {
                return Err(wrong());
            }
            let operation = match event & pg_sys::TRIGGER_EVENT_OPMASK {
                pg_sys::TRIGGER_EVENT_INSERT => Operation::Insert,
                pg_sys::TRIGGER_EVENT_UPDATE => Operation::Update,
                pg_sys::TRIGGER_EVENT_DELETE => Operation::Delete,
                _ => Operation::Truncate,
            };
            Ok(Self { data, table: (*(*data).tg_relation).rd_id, operation })
        }
    }

    /// Rows of one side, to be read once. `None` if the trigger was not declared with them.
    pub(crate) fn rows(&self, side: Side) -> Option<Rows<'_>> {
        // SAFETY: the data outlives `self`'s borrow; the executor keeps the rows until the trigger returns. A
        // read pointer of our own leaves other readers where they are.
        unsafe {
            let store = match side {
                Side::Old => (*self.data).tg_oldtable,
                Side::New => (*self.data).tg_newtable,
            };
            if store.is_null() {
                return None;
            }
            let pointer = pg_sys::tuplestore_alloc_read_pointer(store, pg_sys::EXEC_FLAG_REWIND as i32);
            pg_sys::tuplestore_select_read_pointer(store, pointer);
            pg_sys::tuplestore_rescan(store);
            let descriptor = (*(*self.data).tg_relation).rd_att;
            let slot = pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsMinimalTuple);
            Some(Rows {
                store,
                slot,
                table: self.table,
                columns: (*descriptor).natts,
                _statement: std::marker::PhantomData,
            })
        }
    }
}

/// Rows of a statement.
pub(crate) struct Rows<'a> {
    store: *mut pg_sys::Tuplestorestate,
    slot: *mut pg_sys::TupleTableSlot,
    table: pg_sys::Oid,
    columns: i32,
    _statement: std::marker::PhantomData<&'a Statement>,
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: made by `Statement::rows`; after an error the memory context frees it.
            unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.slot) };
        }
    }
}

impl Rows<'_> {
    /// The next row's values of these columns, counted from 1; `None` after the last row. A null is an empty text.
    pub(crate) fn next(&mut self, columns: &[Output]) -> Option<Key> {
        // SAFETY: the store was set to a read pointer of ours when this was made, and nobody else reads it meanwhile; the
        // slot is made for its rows; the columns are checked against the descriptor, and the slot's arrays have as many
        // values as it was asked for.
        unsafe {
            if !pg_sys::tuplestore_gettupleslot(self.store, true, false, self.slot) {
                return None;
            }
            let most = columns.iter().map(|c| c.number).max().unwrap_or(0);
            if ((*self.slot).tts_nvalid as i32) < i32::from(most) {
                pg_sys::slot_getsomeattrs_int(self.slot, i32::from(most));
            }
            let value = |column: &Output| {
                let at = column.number as usize - 1;
                let is_null = *(*self.slot).tts_isnull.add(at);
                (!is_null).then(|| *(*self.slot).tts_values.add(at))
            };
            if let [column] = columns {
                let Some(datum) = value(column) else { return Some(Key::Text(String::new())) };
                return Some(match column.integer {
                    Some(read) => Key::Integer(read(datum)),
                    None => Key::Text(column.text(datum)),
                });
            }
            Some(Key::Texts(
                columns.iter().map(|c| value(c).map(|d| c.text(d)).unwrap_or_default()).collect(),
            ))
        }
    }

    /// How to read columns, by their numbers. `None` if the table has no such column any more.
    pub(crate) fn outputs(&self, columns: &[i16]) -> Option<Vec<Output>> {
        columns.iter().map(|number| self.output(*number)).collect()
    }

    fn output(&self, number: i16) -> Option<Output> {
        if number < 1 || i32::from(number) > self.columns {
            return None;
        }
        // SAFETY: catalog look-up; a dropped column has no type.
        let type_oid = unsafe { pg_sys::get_atttype(self.table, number) };
        if type_oid == pg_sys::InvalidOid {
            return None;
        }
        let integer: Option<fn(pg_sys::Datum) -> i64> = match type_oid {
            pg_sys::INT2OID => Some(|d| i64::from(d.value() as i16)),
            pg_sys::INT4OID => Some(|d| i64::from(d.value() as i32)),
            pg_sys::INT8OID => Some(|d| d.value() as i64),
            _ => None,
        };
        let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: catalog look-ups of a column's type and of its output function.
        unsafe {
            pg_sys::getTypeOutputInfo(type_oid, &mut function, &mut is_varlena);
            pg_sys::fmgr_info(function, &mut info);
        }
        Some(Output {
            number,
            function: UnsafeCell::new(info),
            integer,
            is_text: matches!(type_oid, pg_sys::TEXTOID | pg_sys::VARCHAROID),
            is_plain: PLAIN_TYPES.contains(&type_oid),
        })
    }
}

/// How a column of a key is read.
pub(crate) struct Output {
    number: i16,
    /// Looked up once; keeps between calls what it likes.
    function: UnsafeCell<pg_sys::FmgrInfo>,
    integer: Option<fn(pg_sys::Datum) -> i64>,
    is_text: bool,
    is_plain: bool,
}

/// Types whose text depends on no setting.
const PLAIN_TYPES: [pg_sys::Oid; 8] = [
    pg_sys::INT2OID,
    pg_sys::INT4OID,
    pg_sys::INT8OID,
    pg_sys::TEXTOID,
    pg_sys::VARCHAROID,
    pg_sys::BPCHAROID,
    pg_sys::UUIDOID,
    pg_sys::NUMERICOID,
];

impl Output {
    /// Whether all these columns give the same text under any settings.
    fn are_plain(columns: &[Output]) -> bool {
        columns.iter().all(|c| c.is_plain)
    }

    /// # Safety
    /// The datum is a value of the column's type.
    unsafe fn text(&self, datum: pg_sys::Datum) -> String {
        // SAFETY: text is a varlena in the server's encoding, which pgrx checks. An output function gives a string in
        // the current memory context, which is freed here; nobody else holds its information.
        unsafe {
            if self.is_text
                && let Some(text) = String::from_polymorphic_datum(datum, false, pg_sys::TEXTOID)
            {
                return text;
            }
            let text = pg_sys::OutputFunctionCall(self.function.get(), datum);
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            pg_sys::pfree(text.cast());
            copy
        }
    }
}

/// Runs `work` under settings that give values of these columns one text.
pub(crate) fn with_plain_text<T>(columns: &[Output], work: impl FnOnce() -> T) -> T {
    if Output::are_plain(columns) { work() } else { elevation::with_settings(PLAIN_TEXT, work) }
}
