//! What one call asks many times and cannot change under it: who the caller is.
//!
//! Between an [`enter`] and the end of its scope the first answer is kept, for as long as the circumstances are the same.

use super::circumstances::Circumstances;
use crate::error::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// The last answer.
struct Answer {
    found_under: Circumstances,
    principals: Rc<Vec<String>>,
}

#[derive(Default)]
struct Cache {
    calls: usize,
    answer: Option<Answer>,
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
    if CACHE.with_borrow(|cache| cache.calls == 0) {
        return find().map(Rc::new);
    }
    let now = Circumstances::now();
    let known = CACHE.with_borrow(|cache| match &cache.answer {
        Some(answer) if answer.found_under == now => Some(Rc::clone(&answer.principals)),
        _ => None,
    });
    if let Some(principals) = known {
        return Ok(principals);
    }
    let principals = Rc::new(find()?);
    CACHE.with_borrow_mut(|cache| {
        cache.answer = Some(Answer { found_under: now, principals: Rc::clone(&principals) });
    });
    Ok(principals)
}
