//! Statements: prepared once and kept as long as they are used, run under the caller's snapshot.
//!
//! pgrx's own SPI takes a new snapshot per statement once the transaction has written, so one call would see
//! several states. Here [`read_snapshot`] runs under the active snapshot; [`execute`] sees what came before in
//! the transaction and takes a new one.

use super::scoped::Scoped;
use super::{elevation, planner};
use crate::error::{Error, Result};
use pgrx::pg_sys;
use pgrx::{FromDatum, IntoDatum};
use std::cell::Cell;
use std::ffi::{CStr, CString};

mod plans;

thread_local! {
    /// The statement that runs, the innermost: its text, and how it is to be planned.
    static RUNNING: Cell<Option<(*const str, Access)>> = const { Cell::new(None) };
}

/// How rows are to be come by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// As the planner sees fit.
    Any,
    /// From indexes that have all that is asked for: roles that are planned for by constants are planned for as if all pages
    /// were all-visible.
    CoveringIndex,
}

/// How a text is to be planned that is the one of the statement of ours that runs; none if it is that of one that somebody
/// else's function runs meanwhile.
pub(super) fn access_of_running(text: &CStr) -> Option<Access> {
    let (running, access) = RUNNING.get()?;
    // SAFETY: whoever runs a statement has borrowed its text, and takes it back before.
    (text.to_bytes() == unsafe { &*running }.as_bytes()).then_some(access)
}

/// An argument of a statement.
#[derive(Clone)]
pub(crate) struct Arg {
    oid: pg_sys::Oid,
    datum: Option<pg_sys::Datum>,
}

impl<T: IntoDatum> From<T> for Arg {
    fn from(value: T) -> Self {
        Self { oid: T::type_oid(), datum: value.into_datum() }
    }
}

impl Arg {
    /// A null of type text[].
    pub(crate) fn no_texts() -> Self {
        Self { oid: pg_sys::TEXTARRAYOID, datum: None }
    }

    /// A value of a type that is another extension's, read from its text form: once, where a cast in the statement
    /// would read it again for each row, because a plan that serves all arguments folds none of them.
    pub(crate) fn read_as(type_oid: pg_sys::Oid, text: &str) -> Result<Self> {
        let text = CString::new(text).map_err(|_| Error::internal("a value contains a NUL byte"))?;
        // SAFETY: look-ups by a type's OID, which raise an error if there is no such type; the input function copies
        // the text into the current memory context, which outlives the statement.
        let datum = unsafe {
            let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            pg_sys::getTypeInputInfo(type_oid, &mut input, &mut parameter);
            pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1)
        };
        Ok(Self { oid: type_oid, datum: Some(datum) })
    }

    /// A text[], for thousands of short texts: made by one call, where [`From`] makes several for each text.
    pub(crate) fn texts(texts: &[impl AsRef<str>]) -> Self {
        const HEADER: usize = size_of::<u32>();
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        // Varlenas with their full header, one after the other, each aligned like it.
        let words = |text: &str| 1 + text.len().div_ceil(HEADER);
        let mut buffer: Vec<u32> = vec![0; texts.iter().map(|text| words(text)).sum()];
        let mut datums = Vec::with_capacity(texts.len());
        let mut rest = buffer.as_mut_slice();
        for text in texts {
            let (value, after) = rest.split_at_mut(words(text));
            // SAFETY: the value has room for the header and the bytes of the text.
            unsafe {
                let value = value.as_mut_ptr().cast::<pg_sys::varlena>();
                pgrx::set_varsize_4b(value, (HEADER + text.len()) as i32);
                std::ptr::copy_nonoverlapping(text.as_ptr(), value.cast::<u8>().add(HEADER), text.len());
                datums.push(pg_sys::Datum::from(value));
            }
            rest = after;
        }
        // SAFETY: as many texts as said, which the array copies.
        let array = unsafe {
            let (length, by_value, align) = (-1, false, b'i' as std::ffi::c_char);
            pg_sys::construct_array(
                datums.as_mut_ptr(),
                datums.len() as i32,
                pg_sys::TEXTOID,
                length,
                by_value,
                align,
            )
        };
        Self { oid: pg_sys::TEXTARRAYOID, datum: Some(pg_sys::Datum::from(array)) }
    }
}

/// One row of a result; columns count from 1.
pub(crate) struct Row {
    types: Vec<pg_sys::Oid>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Row {
    /// For rows of this shape.
    ///
    /// # Safety
    /// A valid descriptor.
    unsafe fn of(descriptor: pg_sys::TupleDesc) -> Self {
        // SAFETY: has as many columns as it says.
        let types: Vec<pg_sys::Oid> = unsafe {
            let columns = 0..(*descriptor).natts;
            columns.map(|column| pg_sys::SPI_gettypeid(descriptor, column + 1)).collect()
        };
        Self { values: vec![pg_sys::Datum::null(); types.len()], nulls: vec![true; types.len()], types }
    }

    /// Takes the values of a row: all at once, for each call of the server is guarded against its errors, which costs more
    /// than a value.
    ///
    /// # Safety
    /// A row of this shape, which outlives the use of its values.
    unsafe fn fill(&mut self, tuple: pg_sys::HeapTuple, descriptor: pg_sys::TupleDesc) {
        // SAFETY: there is room for as many columns as the descriptor has.
        unsafe {
            pg_sys::heap_deform_tuple(tuple, descriptor, self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        }
    }

    /// The value of a column, or `None` if it is null.
    pub(crate) fn get<T: FromDatum>(&self, column: i32) -> Option<T> {
        let place = column as usize - 1;
        // SAFETY: the values are those of an SPI result that outlives the row callback; the type is that of the statement,
        // which stands beside the call.
        unsafe { T::from_polymorphic_datum(self.values[place], self.nulls[place], self.types[place]) }
    }

    /// The value of a column that cannot be null.
    pub(crate) fn require<T: FromDatum>(&self, column: i32) -> Result<T> {
        self.get(column).ok_or_else(|| Error::internal(format!("column {column} is unexpectedly null")))
    }
}

/// An SPI connection that ends with its scope. After an error the end of the (sub)transaction closes it.
struct Connection;

impl Connection {
    fn open() -> Result<Self> {
        // SAFETY: called on the backend's main thread within a transaction.
        match unsafe { pg_sys::SPI_connect() } {
            code if code == pg_sys::SPI_OK_CONNECT as i32 => Ok(Self),
            code => Err(Error::internal(format!("SPI_connect returned {code}"))),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: `open` connected at this nesting level.
            unsafe { pg_sys::SPI_finish() };
        }
    }
}

/// A plan that ends with the SPI connection, for statements that are put together by the caller's wishes.
fn plan_once(sql: &str, args: &[Arg], options: i32) -> Result<pg_sys::SPIPlanPtr> {
    let text = CString::new(sql).map_err(|_| Error::internal("statement contains a NUL byte"))?;
    let mut oids: Vec<pg_sys::Oid> = args.iter().map(|a| a.oid).collect();
    // SAFETY: SPI is connected; `oids` is as long as said.
    let plan =
        unsafe { pg_sys::SPI_prepare_cursor(text.as_ptr(), oids.len() as i32, oids.as_mut_ptr(), options) };
    if plan.is_null() { Err(Error::internal("statement cannot be prepared")) } else { Ok(plan) }
}

/// What SPI takes for arguments: their values, and which of them are null.
fn values_of(args: &[Arg]) -> (Vec<pg_sys::Datum>, Vec<std::ffi::c_char>) {
    let value = |arg: &Arg| arg.datum.unwrap_or(pg_sys::Datum::from(0usize));
    let null = |arg: &Arg| if arg.datum.is_some() { b' ' } else { b'n' } as std::ffi::c_char;
    (args.iter().map(value).collect(), args.iter().map(null).collect())
}

struct Mode {
    read_only: bool,
    keep_plan: bool,
    access: Access,
}

impl Mode {
    /// Under the active snapshot.
    const SNAPSHOT: Self = Self { read_only: true, keep_plan: true, access: Access::Any };
    /// With what is there now, and what the statement writes.
    const LATEST: Self = Self { read_only: false, ..Self::SNAPSHOT };
}

/// Settings of anybody's by which the server tells of a statement what its plan is, constants and all, or how much it sorts.
const TOLD_OF: &[(&CStr, &CStr)] = &[
    (c"debug_print_parse", c"off"),
    (c"debug_print_rewritten", c"off"),
    (c"debug_print_plan", c"off"),
    (c"trace_sort", c"off"),
];

/// Runs a statement of ours without telling of it: ids and keys of hidden rows are among its arguments, and it goes over such
/// rows.
fn untold<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: variables of settings, read on the backend's main thread.
    let is_told_of = unsafe {
        pg_sys::Debug_print_parse
            || pg_sys::Debug_print_rewritten
            || pg_sys::Debug_print_plan
            || pg_sys::trace_sort
    };
    if is_told_of { elevation::with_settings(TOLD_OF, work) } else { work() }
}

fn run_plan<R>(sql: &str, args: Vec<Arg>, mode: Mode, each: impl FnMut(&Row) -> Result<R>) -> Result<Vec<R>> {
    untold(|| run_prepared(sql, args, mode, each))
}

fn run_prepared<R>(
    sql: &str,
    args: Vec<Arg>,
    mode: Mode,
    mut each: impl FnMut(&Row) -> Result<R>,
) -> Result<Vec<R>> {
    let _connection = Connection::open()?;
    let _running = Scoped::set(&RUNNING, Some((std::ptr::from_ref(sql), mode.access)));
    let kept;
    let plan = if mode.keep_plan {
        // One plan for all arguments: planning anew, with all policies, would cost more than running.
        let prepare = || plan_once(sql, &args, pg_sys::CURSOR_OPT_GENERIC_PLAN as i32);
        kept = plans::kept(sql, args.iter().map(|arg| arg.oid.to_u32()).collect(), prepare)?;
        kept.plan()
    } else {
        plan_once(sql, &args, 0)?
    };
    let (mut values, nulls) = values_of(&args);
    // SAFETY: the plan was prepared for exactly these argument types; values and nulls are as long as they are.
    // The result table lives until SPI_finish, which runs after the loop.
    unsafe {
        let code = pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls.as_ptr(), mode.read_only, 0);
        if code < 0 {
            return Err(Error::internal(format!("SPI_execute_plan returned {code}")));
        }
        let table = pg_sys::SPI_tuptable;
        if table.is_null() {
            return Ok(Vec::new());
        }
        let (count, descriptor) = ((*table).numvals as usize, (*table).tupdesc);
        let mut rows = Vec::with_capacity(count);
        if count == 0 {
            pg_sys::SPI_freetuptable(table);
            return Ok(rows);
        }
        let mut row = Row::of(descriptor);
        for i in 0..count {
            row.fill(*(*table).vals.add(i), descriptor);
            rows.push(each(&row)?);
        }
        pg_sys::SPI_freetuptable(table);
        Ok(rows)
    }
}

/// Reads under the active snapshot: all reads of one call see one state.
pub(crate) fn read_snapshot<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Vec<R>> {
    run_plan(sql, args, Mode::SNAPSHOT, each)
}

/// [`read_snapshot`] of some given rows, and what belongs to them, one after the other by index, whatever statistics say:
/// those of tables that were filled a moment ago say that it is quickest to read all.
pub(crate) fn look_up<R>(sql: &str, args: Vec<Arg>, each: impl FnMut(&Row) -> Result<R>) -> Result<Vec<R>> {
    planner::by_index(|| read_snapshot(sql, args, each))
}

/// [`read_snapshot`] of a statement whose text differs from call to call: its plan is not kept.
pub(crate) fn read_snapshot_once<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Vec<R>> {
    run_plan(sql, args, Mode { keep_plan: false, ..Mode::SNAPSHOT }, each)
}

/// [`read_snapshot_once`] of a list of what is in some domains, from indexes that have all that is asked for, where there are
/// such.
pub(crate) fn list_once<R>(sql: &str, args: Vec<Arg>, each: impl FnMut(&Row) -> Result<R>) -> Result<Vec<R>> {
    let mode = Mode { access: Access::CoveringIndex, keep_plan: false, ..Mode::SNAPSHOT };
    run_plan(sql, args, mode, each)
}

/// Rows of one part of what is read in parts.
const PART: std::ffi::c_long = 100;

/// Reads under the active snapshot, a part after the other: `each` ends it by an error before more than that is held. For
/// statements whose result may be of any size.
pub(crate) fn read_snapshot_in_parts(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<()>,
) -> Result<()> {
    untold(|| read_in_parts(sql, args, each))
}

fn read_in_parts(sql: &str, args: Vec<Arg>, mut each: impl FnMut(&Row) -> Result<()>) -> Result<()> {
    let _connection = Connection::open()?;
    let _running = Scoped::set(&RUNNING, Some((std::ptr::from_ref(sql), Access::Any)));
    let plan = plan_once(sql, &args, 0)?;
    let (mut values, nulls) = values_of(&args);
    // SAFETY: the plan was prepared for exactly these argument types; values and nulls are as long as they are. Rows live
    // until their part is freed. An error of the server closes the cursor with the (sub)transaction.
    unsafe {
        let cursor =
            pg_sys::SPI_cursor_open(std::ptr::null(), plan, values.as_mut_ptr(), nulls.as_ptr(), true);
        let mut row = None;
        let outcome = loop {
            pg_sys::SPI_cursor_fetch(cursor, true, PART);
            let (table, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize);
            let descriptor = (*table).tupdesc;
            let row = row.get_or_insert_with(|| Row::of(descriptor));
            let outcome = (0..count).try_for_each(|i| {
                row.fill(*(*table).vals.add(i), descriptor);
                each(row)
            });
            pg_sys::SPI_freetuptable(table);
            if count == 0 || outcome.is_err() {
                break outcome;
            }
        };
        pg_sys::SPI_cursor_close(cursor);
        outcome
    }
}

/// Reads, or locks, what is there now: what others have committed since the active snapshot, and what the transaction has
/// just written.
pub(crate) fn read_latest<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Vec<R>> {
    run_plan(sql, args, Mode::LATEST, each)
}

/// [`read_latest`] of some rows that are found one after the other by index, as by [`look_up`].
pub(crate) fn look_up_latest<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Vec<R>> {
    planner::by_index(|| read_latest(sql, args, each))
}

/// [`look_up_latest`] of at most one row.
pub(crate) fn look_up_latest_one<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Option<R>> {
    Ok(look_up_latest(sql, args, each)?.into_iter().next())
}

/// Writes, and gives what RETURNING does.
pub(crate) fn execute<R>(sql: &str, args: Vec<Arg>, each: impl FnMut(&Row) -> Result<R>) -> Result<Vec<R>> {
    run_plan(sql, args, Mode::LATEST, each)
}

/// [`execute`] without a result.
pub(crate) fn run(sql: &str, args: Vec<Arg>) -> Result<()> {
    execute(sql, args, |_| Ok(())).map(drop)
}

/// [`execute`] of a statement about some rows that are found one after the other by index, as by [`look_up`].
pub(crate) fn execute_by_index<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Vec<R>> {
    planner::by_index(|| execute(sql, args, each))
}

/// [`execute_by_index`] without a result.
pub(crate) fn run_by_index(sql: &str, args: Vec<Arg>) -> Result<()> {
    execute_by_index(sql, args, |_| Ok(())).map(drop)
}

/// Has this session plan all statements anew at their next use, those within functions too.
pub(crate) fn plan_anew() -> Result<()> {
    run("DISCARD PLANS", vec![])
}

/// [`read_snapshot`] of at most one row.
pub(crate) fn read_snapshot_one<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Option<R>> {
    Ok(read_snapshot(sql, args, each)?.into_iter().next())
}

/// [`read_latest`] of at most one row.
pub(crate) fn read_latest_one<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Option<R>> {
    Ok(read_latest(sql, args, each)?.into_iter().next())
}

/// [`execute`] of at most one row.
pub(crate) fn execute_one<R>(
    sql: &str,
    args: Vec<Arg>,
    each: impl FnMut(&Row) -> Result<R>,
) -> Result<Option<R>> {
    Ok(execute(sql, args, each)?.into_iter().next())
}
