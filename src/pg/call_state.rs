//! State of a function between its calls within one execution of a statement, and no longer.

use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use std::cell::RefCell;

/// What an answer may depend on and does not change within one execution. The place of a function in an expression
/// may outlive that: PL/pgSQL keeps its expressions until the transaction ends.
#[derive(PartialEq, Eq)]
struct Execution {
    users: (pg_sys::Oid, pg_sys::Oid),
    user_id: Option<String>,
    /// Of the snapshot: oldest running and next transaction, how many run in between, and the command of one's own. As
    /// long as the next one stays the same, transactions only leave.
    snapshot: Option<(u32, u32, u32, i32, u32)>,
}

impl Execution {
    fn current() -> Self {
        // SAFETY: reads variables of the backend; the active snapshot outlives this function.
        let (users, snapshot) = unsafe {
            let snapshot = pg_sys::ActiveSnapshotSet().then(|| {
                let active = &*pg_sys::GetActiveSnapshot();
                let (oldest, next) = (active.xmin.into_inner(), active.xmax.into_inner());
                (oldest, next, active.xcnt, active.subxcnt, active.curcid)
            });
            ((pg_sys::GetUserId(), pg_sys::GetOuterUserId()), snapshot)
        };
        Self { users, user_id: crate::config::user_id(), snapshot }
    }
}

/// What is known, and of which execution.
struct Known<T> {
    of: Execution,
    state: T,
}

/// Runs `work` with the state that belongs to this place in the running statement. The next execution, under
/// another snapshot, role or settings, begins with `T::default()`.
///
/// A function must always ask for the same `T`. A call from within `work` back to the same place, as by a
/// policy that reads what it guards, gets a state of its own.
pub(crate) fn with_state<T: Default + 'static, R>(
    call: pg_sys::FunctionCallInfo,
    work: impl FnOnce(&mut T) -> R,
) -> R {
    let execution = Execution::current();
    // SAFETY: Postgres passes a valid call; `flinfo` lives as long as the expression that the call is part of,
    // and so does its context, which drops the state. Nobody else writes `fn_extra` of our own function.
    let known: *const RefCell<Known<T>> = unsafe {
        let place = (*call).flinfo;
        if place.is_null() {
            return work(&mut T::default());
        }
        if (*place).fn_extra.is_null() {
            let new = RefCell::new(Known { of: Execution::current(), state: T::default() });
            (*place).fn_extra = PgMemoryContexts::For((*place).fn_mcxt).leak_and_drop_on_delete(new).cast();
        }
        (*place).fn_extra.cast()
    };
    // SAFETY: made above or by an earlier call, and dropped only with its context.
    match unsafe { &*known }.try_borrow_mut() {
        Ok(mut known) => {
            if known.of != execution {
                *known = Known { of: execution, state: T::default() };
            }
            work(&mut known.state)
        }
        Err(_) => work(&mut T::default()),
    }
}
