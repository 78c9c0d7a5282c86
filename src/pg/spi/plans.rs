//! Plans that a backend keeps. Each attached table has statements of its own, so of all plans only those are kept that
//! were used last.

use crate::error::{Error, Result};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// Most plans that are kept: a session that searches and writes needs some 30, a worker some 100.
const MAX_KEPT: usize = 128;

/// Text and argument types of a statement. A text is looked up by index (see `planner::by_index`), or it is not: whoever is first
/// decides on the plan.
type Key = (Rc<str>, Vec<u32>);

/// A kept plan, which is freed when it has been forgotten and nobody runs it any more: a statement may call a function
/// that comes here again.
pub(super) struct Kept {
    plan: pg_sys::SPIPlanPtr,
    used: Cell<u64>,
}

impl Kept {
    pub(super) fn plan(&self) -> pg_sys::SPIPlanPtr {
        self.plan
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // While an error unwinds nothing of Postgres is called that could raise another.
        if !std::thread::panicking() {
            // SAFETY: the plan was kept by `SPI_keepplan`, nobody runs it, and nothing else refers to it.
            unsafe { pg_sys::SPI_freeplan(self.plan) };
        }
    }
}

#[derive(Default)]
struct Plans {
    kept: HashMap<Key, Rc<Kept>>,
    clock: u64,
}

thread_local! {
    /// Left as they are when the process ends: by then Postgres has taken down what freeing needs.
    static PLANS: ManuallyDrop<RefCell<Plans>> = ManuallyDrop::default();
}

fn with_plans<T>(body: impl FnOnce(&mut Plans) -> T) -> T {
    PLANS.with(|plans| body(&mut plans.borrow_mut()))
}

/// The plan of a statement; `prepare` makes it where none is kept. SPI must be connected.
pub(super) fn kept(
    sql: &str,
    types: Vec<u32>,
    prepare: impl FnOnce() -> Result<pg_sys::SPIPlanPtr>,
) -> Result<Rc<Kept>> {
    let key = (Rc::from(sql), types);
    let known = with_plans(|plans| {
        plans.clock += 1;
        let kept = plans.kept.get(&key)?;
        kept.used.set(plans.clock);
        Some(Rc::clone(kept))
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let plan = prepare()?;
    // SAFETY: the plan was just prepared. A kept plan lives until it is freed, and Postgres replans it when tables,
    // policies or the role change.
    if unsafe { pg_sys::SPI_keepplan(plan) } != 0 {
        return Err(Error::internal("a plan cannot be kept"));
    }
    let (kept, forgotten) = with_plans(|plans| {
        let kept = Rc::new(Kept { plan, used: Cell::new(plans.clock) });
        plans.kept.insert(key, Rc::clone(&kept));
        (kept, plans.forget())
    });
    drop(forgotten);
    Ok(kept)
}

impl Plans {
    /// Takes out the older half once there are too many, so that going over many tables does not forget one by one.
    fn forget(&mut self) -> Vec<Rc<Kept>> {
        if self.kept.len() <= MAX_KEPT {
            return Vec::new();
        }
        let mut ages: Vec<u64> = self.kept.values().map(|kept| kept.used.get()).collect();
        let middle = ages.len() / 2;
        let (_, median, _) = ages.select_nth_unstable(middle);
        let median = *median;
        self.kept.extract_if(|_, kept| kept.used.get() <= median).map(|(_, kept)| kept).collect()
    }
}
