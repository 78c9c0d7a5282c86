//! What one call asks many times and cannot change under it: who the caller is, and which domains he may read.
//!
//! Policies ask for both once per table and statement. Between an [`enter`] and the end of its scope the first
//! answer is kept, for one user, transaction and snapshot; outside of a call nothing is, so that policies that an
//! administrator adds, about a setting of the session for instance, hold from one statement to the next.

use crate::error::Result;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::rc::Rc;

/// Under which circumstances an answer was found.
#[derive(Clone, PartialEq, Eq)]
struct Circumstances {
    user: pg_sys::Oid,
    outer_user: pg_sys::Oid,
    transaction_start: i64,
    subtransaction: u32,
    snapshot: Option<SnapshotKey>,
    user_id: Option<String>,
}

/// What tells snapshots apart.
#[derive(Clone, PartialEq, Eq)]
struct SnapshotKey {
    /// Oldest running and next transaction, and the command within one's own.
    bounds: (u32, u32, u32),
    /// Running transactions between these, and subtransactions.
    running: Vec<u32>,
}

impl SnapshotKey {
    /// # Safety
    /// There is an active snapshot.
    unsafe fn active() -> Self {
        // SAFETY: the active snapshot outlives this function; its arrays have as many elements as it says.
        unsafe {
            let active = &*pg_sys::GetActiveSnapshot();
            let ids = |array: *mut pg_sys::TransactionId, count: usize| match count {
                0 => &[],
                _ => std::slice::from_raw_parts(array.cast_const(), count),
            };
            let top = ids(active.xip, active.xcnt as usize);
            let sub = ids(active.subxip, usize::try_from(active.subxcnt).unwrap_or(0));
            Self {
                bounds: (active.xmin.into_inner(), active.xmax.into_inner(), active.curcid),
                running: top.iter().chain(sub).map(|id| id.into_inner()).collect(),
            }
        }
    }
}

impl Circumstances {
    fn now() -> Self {
        // SAFETY: reads variables of the backend; the active snapshot, if there is one, outlives this function.
        unsafe {
            let snapshot = pg_sys::ActiveSnapshotSet().then(|| SnapshotKey::active());
            Self {
                user: pg_sys::GetUserId(),
                outer_user: pg_sys::GetOuterUserId(),
                transaction_start: pg_sys::GetCurrentTransactionStartTimestamp(),
                subtransaction: pg_sys::GetCurrentSubTransactionId(),
                snapshot,
                user_id: crate::config::user_id(),
            }
        }
    }
}

/// The last answer to one question.
struct Answer<T> {
    found_under: Circumstances,
    value: Rc<T>,
}

#[derive(Default)]
struct Cache {
    calls: usize,
    principals: Option<Answer<Vec<String>>>,
    domains: Option<Answer<Vec<pgrx::Uuid>>>,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// A call; answers are kept until the outermost one ends.
pub(crate) struct Call;

/// Begins a call.
pub(crate) fn enter() -> Call {
    CACHE.with_borrow_mut(|cache| cache.calls += 1);
    Call
}

impl Drop for Call {
    fn drop(&mut self) {
        CACHE.with_borrow_mut(|cache| {
            cache.calls -= 1;
            if cache.calls == 0 {
                *cache = Cache::default();
            }
        });
    }
}

/// The caller's principals; `find` finds them.
pub(crate) fn principals(find: impl FnOnce() -> Result<Vec<String>>) -> Result<Rc<Vec<String>>> {
    kept(|cache| &mut cache.principals, find)
}

/// The domains that the caller may read; `find` finds them.
pub(crate) fn readable_domains(
    find: impl FnOnce() -> Result<Vec<pgrx::Uuid>>,
) -> Result<Rc<Vec<pgrx::Uuid>>> {
    kept(|cache| &mut cache.domains, find)
}

/// Makes these the domains that the caller may read, found out by another way.
pub(crate) fn remember_readable_domains(ids: Vec<pgrx::Uuid>) {
    CACHE.with_borrow_mut(|cache| {
        if cache.calls > 0 {
            cache.domains = Some(Answer { found_under: Circumstances::now(), value: Rc::new(ids) });
        }
    });
}

fn kept<T>(
    place: impl Fn(&mut Cache) -> &mut Option<Answer<T>>,
    find: impl FnOnce() -> Result<T>,
) -> Result<Rc<T>> {
    if CACHE.with_borrow(|cache| cache.calls == 0) {
        return find().map(Rc::new);
    }
    let now = Circumstances::now();
    let known = CACHE.with_borrow_mut(|cache| match place(cache) {
        Some(answer) if answer.found_under == now => Some(Rc::clone(&answer.value)),
        _ => None,
    });
    if let Some(value) = known {
        return Ok(value);
    }
    // `find` may ask for the other answer, so nothing is borrowed here.
    let value = Rc::new(find()?);
    CACHE.with_borrow_mut(|cache| {
        *place(cache) = Some(Answer { found_under: now, value: Rc::clone(&value) });
    });
    Ok(value)
}
