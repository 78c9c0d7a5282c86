//! State of a function between its calls within one execution of a statement, and no longer.

use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use std::cell::RefCell;

/// Runs `work` with the state that belongs to this place in the running statement. The next execution, under
/// another snapshot, role or settings, begins with `T::default()`.
///
/// A function must always ask for the same `T`. A call from within `work` back to the same place, as by a
/// policy that reads what it guards, gets a state of its own.
pub(crate) fn with_state<T: Default + 'static, R>(
    call: pg_sys::FunctionCallInfo,
    work: impl FnOnce(&mut T) -> R,
) -> R {
    // SAFETY: Postgres passes a valid call; `flinfo` lives as long as the expression that the call is part of,
    // and so does its context, which drops the state. Nobody else writes `fn_extra` of our own function.
    let state: *const RefCell<T> = unsafe {
        let place = (*call).flinfo;
        if place.is_null() {
            return work(&mut T::default());
        }
        if (*place).fn_extra.is_null() {
            let state =
                PgMemoryContexts::For((*place).fn_mcxt).leak_and_drop_on_delete(RefCell::new(T::default()));
            (*place).fn_extra = state.cast();
        }
        (*place).fn_extra.cast()
    };
    // SAFETY: made above or by an earlier call, and dropped only with its context.
    match unsafe { &*state }.try_borrow_mut() {
        Ok(mut state) => work(&mut state),
        Err(_) => work(&mut T::default()),
    }
}
