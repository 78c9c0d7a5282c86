//! Running our own statements with the extension's rights, and under a search path nobody else chose.

use super::scoped::Scoped;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};

const SAFE_SEARCH_PATH: &CStr = c"pg_catalog, pg_temp";

thread_local! {
    /// Search paths that callers of our functions had, innermost last.
    static CALLERS_PATHS: RefCell<Vec<CString>> = const { RefCell::new(Vec::new()) };
    static RESTRICTIONS: Cell<usize> = const { Cell::new(0) };
}

/// Restores user and settings when it goes out of scope, settings also that somebody else's function made meanwhile: an
/// expression of a table's owner must not choose the search path of what comes after it. If an error leaves the scope
/// instead, the end of the (sub)transaction restores both.
struct Scope {
    user: Option<(pg_sys::Oid, i32)>,
    guc_level: i32,
}

impl Drop for Scope {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: runs on the backend's main thread, within the transaction that `enter` ran in; level and user
        // are those that `enter` read.
        unsafe {
            pg_sys::AtEOXact_GUC(false, self.guc_level);
            if let Some((user, context)) = self.user {
                pg_sys::SetUserIdAndSecContext(user, context);
            }
        }
    }
}

fn enter(user: Option<(pg_sys::Oid, u32)>) -> Scope {
    // SAFETY: called on the backend's main thread within a transaction. The user exists, and
    // SECURITY_LOCAL_USERID_CHANGE makes SET ROLE impossible until the scope ends.
    unsafe {
        let mut before = None;
        if let Some((user, restriction)) = user {
            let (mut id, mut context) = (pg_sys::InvalidOid, 0);
            pg_sys::GetUserIdAndSecContext(&mut id, &mut context);
            before = Some((id, context));
            let restriction = pg_sys::SECURITY_LOCAL_USERID_CHANGE | restriction;
            pg_sys::SetUserIdAndSecContext(user, context | restriction as i32);
        }
        let guc_level = pg_sys::NewGUCNestLevel();
        set_search_path(SAFE_SEARCH_PATH);
        Scope { user: before, guc_level }
    }
}

/// # Safety
/// Called on the backend's main thread within a transaction and a nest level of settings that ends with a scope.
unsafe fn set_search_path(path: &CStr) {
    // SAFETY: as the function's; Postgres copies the value.
    unsafe {
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            path.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

fn search_path() -> CString {
    // SAFETY: the variable of the setting, never null once settings are loaded; copied before it can change.
    unsafe { CStr::from_ptr(pg_sys::namespace_search_path) }.to_owned()
}

/// Runs `work` as the bootstrap superuser with `search_path = pg_catalog, pg_temp`.
///
/// Whatever is to be decided by the caller's rights must be decided before; `work` may run only statements of
/// `storage/`, and each of them names the domains that it touches.
pub(crate) fn elevated<T>(work: impl FnOnce() -> T) -> T {
    let _scope = enter(Some((pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), 0)));
    work()
}

/// Runs `work` as a role in a security-restricted operation: what the role's own policies, expressions and
/// functions do there they do with no more than its rights, and leave nothing behind in the session.
pub(crate) fn restricted_to<T>(role: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    let _scope = enter(Some((role, pg_sys::SECURITY_RESTRICTED_OPERATION)));
    work()
}

/// Runs `work` as the caller in a security-restricted operation: somebody else's policies and functions that it comes to
/// cannot say for which application user the session speaks, take another role, or leave anything behind in it. Settings
/// that they make end with it.
pub(crate) fn restricted<T>(work: impl FnOnce() -> T) -> T {
    let _depth = Scoped::set(&RESTRICTIONS, RESTRICTIONS.get() + 1);
    // SAFETY: on the backend's main thread within a transaction; the user stays the same, and the scope ends both the
    // restriction and the nest level.
    let _scope = unsafe {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        pg_sys::SetUserIdAndSecContext(user, restricted);
        Scope { user: Some((user, context)), guc_level: pg_sys::NewGUCNestLevel() }
    };
    work()
}

/// How many calls of [`restricted`] are under way, one within the other. What somebody else's code does is told by this
/// from what we do ourselves.
pub(crate) fn restrictions() -> usize {
    RESTRICTIONS.get()
}

/// Runs `work` as the caller with `search_path = pg_catalog, pg_temp`, so that no operator or function of our
/// statements is found in a schema of the caller's choice.
pub(crate) fn with_safe_search_path<T>(work: impl FnOnce() -> T) -> T {
    let _caller = CallersPath::remember();
    let _scope = enter(None);
    work()
}

/// Keeps the caller's search path for as long as ours is in force.
struct CallersPath;

impl CallersPath {
    fn remember() -> Self {
        let path = search_path();
        CALLERS_PATHS.with_borrow_mut(|paths| {
            // Called from within a statement of ours, as a policy's function is: the caller is whoever called that.
            let outer = paths.last().filter(|_| path.as_c_str() == SAFE_SEARCH_PATH).cloned();
            paths.push(outer.unwrap_or(path));
        });
        Self
    }
}

impl Drop for CallersPath {
    fn drop(&mut self) {
        CALLERS_PATHS.with_borrow_mut(|paths| paths.pop());
    }
}

/// Runs `work` under the search path that the caller of our function had: for statements that name everything
/// in full, but run policies that may not.
pub(crate) fn with_callers_search_path<T>(work: impl FnOnce() -> T) -> T {
    let callers = CALLERS_PATHS.with_borrow(|paths| paths.last().cloned());
    let Some(path) = callers.filter(|_| search_path().as_c_str() == SAFE_SEARCH_PATH) else {
        return work();
    };
    // SAFETY: on the backend's main thread within a transaction; the scope ends the nest level.
    let _scope = unsafe {
        let guc_level = pg_sys::NewGUCNestLevel();
        set_search_path(&path);
        Scope { user: None, guc_level }
    };
    work()
}

/// Runs `work` with settings changed until it returns.
pub(crate) fn with_settings<T>(settings: &[(&CStr, &CStr)], work: impl FnOnce() -> T) -> T {
    // SAFETY: as in `enter`; names and values are literals that Postgres or pgvector define.
    let scope = unsafe {
        let guc_level = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
        Scope { user: None, guc_level }
    };
    let result = work();
    drop(scope);
    result
}
