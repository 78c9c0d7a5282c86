//! Plans of ordinary roles over our tables: the same, and with the same estimates, whatever others have in them.
//!
//! Row-level security alone filters what a scan brings: a sequential scan, or an index that begins with another column
//! than the policy's, still goes over others' rows, which shows in time and counters. So such a role's plan reads a
//! table by an index that leads with the guarded column, and by the list of what they see. Sizes and statistics, by
//! which the planner would estimate and choose, are about all rows: they get constants, and so
//! do functions that run with their definer's rights for them, triggers for instance. Superusers, workers, and roles with
//! BYPASSRLS are planned for as ever, but for what our statements look up ([`by_index`]): a worker begins when tables are
//! empty, and keeps its plans.

use crate::error::Error;
use crate::pg::elevation;
use crate::pg::explain::may_read_all_statistics;
use crate::pg::index_condition::guarded_column;
use crate::pg::principal::{caller_is_held_to_policies, role_is_held_to_policies};
use crate::pg::scoped::Scoped;
use crate::pg::spi::{self, Access};
use pgrx::{PgLogLevel, PgSqlErrorCode, is_a, pg_guard, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;

/// What a table is taken to hold: enough rows for the more selective of two indexes to be the cheaper one after both
/// have been narrowed down to some domains.
const ROWS: f64 = 100_000_000.0;
const PAGES: u32 = 2_000;
const INDEX_PAGES: u32 = 10;
const INDEX_HEIGHT: i32 = 1;

/// Under which some given rows are looked up one after the other, whatever statistics say.
const BY_INDEX: &[(&CStr, &CStr)] = &[
    (c"enable_seqscan", c"off"),
    (c"enable_bitmapscan", c"off"),
    (c"enable_hashjoin", c"off"),
    (c"enable_mergejoin", c"off"),
];

thread_local! {
    /// How many calls of [`by_index`] are under way, one within the other.
    static LOOK_UPS: Cell<usize> = const { Cell::new(0) };
    /// How what is being planned is to come by its rows; none if it is not a statement of ours.
    static OURS: Cell<Option<Access>> = const { Cell::new(None) };
}

static mut NEXT_RELATION_INFO: pg_sys::get_relation_info_hook_type = None;
static mut NEXT_RELATION_STATS: pg_sys::get_relation_stats_hook_type = None;
static mut NEXT_PLANNER: pg_sys::planner_hook_type = None;
static mut NEXT_PATHLIST: pg_sys::set_rel_pathlist_hook_type = None;

/// Installs the hooks. Call once, from `_PG_init`.
pub(crate) fn install() {
    // SAFETY: on the main thread, before anything is planned by this process.
    unsafe {
        NEXT_PLANNER = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(planner);
        NEXT_RELATION_INFO = pg_sys::get_relation_info_hook;
        pg_sys::get_relation_info_hook = Some(relation_info);
        NEXT_RELATION_STATS = pg_sys::get_relation_stats_hook;
        pg_sys::get_relation_stats_hook = Some(relation_stats);
        NEXT_PATHLIST = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(set_rel_pathlist);
    }
}

/// Has what is planned while `work` runs look up rows one after the other, by index. Most plans are kept, so this costs nothing
/// most times.
pub(crate) fn by_index<T>(work: impl FnOnce() -> T) -> T {
    let _look_up = Scoped::set(&LOOK_UPS, LOOK_UPS.get() + 1);
    work()
}

/// Whether a plan is being made within [`by_index`].
pub(super) fn looks_up() -> bool {
    LOOK_UPS.get() > 0
}

/// Whether what is being planned is a statement of ours: those name domains that the caller sees, or none, and no others.
pub(super) fn plans_ours() -> bool {
    OURS.get().is_some()
}

/// Whether what is being planned is a statement of ours that lists what indexes have.
fn lists() -> bool {
    OURS.get() == Some(Access::CoveringIndex)
}

/// Whether a relation is in the extension's schema.
pub(crate) fn is_ours(relation: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups within a transaction.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"rag".as_ptr(), true);
        schema != pg_sys::InvalidOid && pg_sys::get_rel_namespace(relation) == schema
    }
}

/// Whether a plan reads tables of the extension.
///
/// # Safety
/// A valid plan.
pub(crate) unsafe fn reads_ours(planned: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: as the function's.
    unsafe { is_any_ours((*planned).relationOids) }
}

/// Whether a query names a table of the extension, wherever in it.
///
/// # Safety
/// A valid query, which has been rewritten.
unsafe fn names_ours(query: *mut pg_sys::Query) -> bool {
    let (mut relations, mut others, mut has_policies) = (std::ptr::null_mut(), std::ptr::null_mut(), false);
    // SAFETY: as the function's; the lists are made in the current memory context.
    unsafe {
        pg_sys::extract_query_dependencies(query.cast(), &mut relations, &mut others, &mut has_policies);
        is_any_ours(relations)
    }
}

/// # Safety
/// A list of OIDs, or null.
unsafe fn is_any_ours(relations: *mut pg_sys::List) -> bool {
    // SAFETY: as the function's; indexes are below the list's length.
    unsafe {
        let count = if relations.is_null() { 0 } else { (*relations).length as usize };
        (0..count).any(|index| is_ours((*(*relations).elements.add(index)).oid_value))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn planner(
    query: *mut pg_sys::Query,
    text: *const std::ffi::c_char,
    options: i32,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: Postgres hands over a valid query, and gets the plan that was made for it.
    unsafe {
        let plan = || match NEXT_PLANNER {
            Some(next) => pg_sys::ffi::pg_guard_ffi_boundary(|| next(query, text, options, params)),
            None => pg_sys::standard_planner(query, text, options, params),
        };
        let ours = if text.is_null() { None } else { spi::access_of_running(CStr::from_ptr(text)) };
        // What others' functions plan meanwhile of their own tables is planned as ever.
        let is_looked_up = looks_up() && (ours.is_some() || names_ours(query));
        let planned = {
            let _made = Scoped::set(&OURS, ours);
            if is_looked_up { elevation::with_settings(BY_INDEX, plan) } else { plan() }
        };
        // What it is taken to cost is no reason to compile it: by our constants, or because a way that is turned off here is its
        // only one, which before Postgres 18 is taken to cost more than anything.
        let is_overestimated = || is_looked_up || caller_is_held_to_policies() && reads_ours(planned);
        if (*planned).jitFlags != 0 && is_overestimated() {
            (*planned).jitFlags = 0;
        }
        planned
    }
}

/// Whose rights count for a relation of the plan: those of the view's owner where it is read through one.
///
/// # Safety
/// A relation of a plan that is being made.
unsafe fn reader(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> pg_sys::Oid {
    // SAFETY: the planner keeps one range table entry per relation.
    unsafe {
        #[cfg(feature = "pg15")]
        let role = (**(*root).simple_rte_array.add((*rel).relid as usize)).checkAsUser;
        #[cfg(not(feature = "pg15"))]
        let role = (*rel).userid;
        #[cfg(not(feature = "pg15"))]
        let _ = root;
        if role == pg_sys::InvalidOid { pg_sys::GetUserId() } else { role }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_info(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's own structures, filled in before it calls; fields are set to values that it may find there.
    unsafe {
        if let Some(next) = NEXT_RELATION_INFO {
            pg_sys::ffi::pg_guard_ffi_boundary(|| next(root, relation, is_parent, rel));
        }
        let is_told =
            || looks_up() || role_is_held_to_policies(reader(root, rel)) || caller_is_held_to_policies();
        if !is_ours(relation) || !is_told() {
            return;
        }
        (*rel).tuples = ROWS;
        (*rel).pages = PAGES;
        (*rel).allvisfrac = if lists() { 1.0 } else { 0.0 };
        // Not by the size that it is taken to have.
        (*rel).rel_parallel_workers = 0;
        for index in elements::<pg_sys::IndexOptInfo>((*rel).indexlist) {
            (*index).tuples = ROWS;
            (*index).pages = INDEX_PAGES;
            (*index).tree_height = INDEX_HEIGHT;
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_stats(
    root: *mut pg_sys::PlannerInfo,
    entry: *mut pg_sys::RangeTblEntry,
    column: i16,
    found: *mut pg_sys::VariableStatData,
) -> bool {
    // SAFETY: the planner's own structures. To have dealt with it without a tuple means that there are no statistics.
    unsafe {
        if is_ours((*entry).relid) {
            // The relation may also be a join, which has no entry of its own.
            #[cfg(feature = "pg15")]
            let role = (*entry).checkAsUser;
            #[cfg(not(feature = "pg15"))]
            let role = match (*found).rel {
                rel if rel.is_null() => pg_sys::InvalidOid,
                rel => (*rel).userid,
            };
            let is_held = role != pg_sys::InvalidOid && role_is_held_to_policies(role);
            if is_held || looks_up() || caller_is_held_to_policies() {
                return true;
            }
        }
        match NEXT_RELATION_STATS {
            Some(next) => pg_sys::ffi::pg_guard_ffi_boundary(|| next(root, entry, column, found)),
            None => false,
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn set_rel_pathlist(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's own structures, at the point where it lets paths be added and taken away.
    unsafe {
        if let Some(next) = NEXT_PATHLIST {
            pg_sys::ffi::pg_guard_ffi_boundary(|| next(root, rel, index, entry));
        }
        // Proved to be empty, by a condition that is never true.
        let is_empty = elements::<pg_sys::Path>((*rel).pathlist)
            .any(|path| is_a(path.cast(), pg_sys::NodeTag::T_AppendPath));
        let is_table = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && !(*entry).inh;
        if is_table && !is_empty && is_ours((*entry).relid) && role_is_held_to_policies(reader(root, rel)) {
            search_by_guarded_column(root, rel, entry);
        }
    }
}

/// # Safety
/// A table of a plan whose paths are being made.
unsafe fn search_by_guarded_column(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: as the function's. What is taken out of the lists stays valid; new lists are made in the same context.
    unsafe {
        let conditions: Vec<_> = elements::<pg_sys::RestrictInfo>((*rel).baserestrictinfo).collect();
        let guarded: Vec<i16> = conditions
            .iter()
            .filter_map(|condition| guarded_column((**condition).clause.cast()))
            .filter(|(table, _)| *table == (*rel).relid)
            .map(|(_, column)| column)
            .collect();
        let names_cursor = conditions
            .iter()
            .any(|condition| is_a((**condition).clause.cast(), pg_sys::NodeTag::T_CurrentOfExpr));
        // A cursor has shown its row already.
        if guarded.is_empty() || names_cursor {
            return;
        }
        if !(*entry).tablesample.is_null() {
            let error = Error::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "TABLESAMPLE is not supported on tables of rag_ext",
            );
            let error = error.detail("A sample would be one of all rows, hidden ones included.");
            pg_sys::panic::ErrorReport::from(error).report(PgLogLevel::ERROR);
        }
        let is_guarded = |index: *mut pg_sys::IndexOptInfo| {
            guarded.iter().any(|column| i32::from(*column) == *(*index).indexkeys)
        };
        let indexes: Vec<_> = elements::<pg_sys::IndexOptInfo>((*rel).indexlist).collect();
        let (kept, others): (Vec<_>, Vec<_>) = indexes.into_iter().partition(|index| is_guarded(*index));
        if kept.is_empty() {
            return;
        }
        // What a statement that writes goes over is counted, and whoever writes can look at that; so can members of
        // pg_read_all_stats at all that is read. What we list is of rows that the caller sees.
        let is_untold = only_reads(root) && (lists() || !may_read_all_statistics());
        let is_by_key = |index: *mut pg_sys::IndexOptInfo| (*index).unique && is_untold;
        let by_key = paths_by(root, rel, others.into_iter().filter(|index| is_by_key(*index)));
        paths_by(root, rel, kept.into_iter());
        // Of two ways to the same rows, a statement of ours takes the one among the rows of its domain.
        let mut found = Vec::new();
        if lists() || plans_ours() && looks_up() {
            found.extend(elements((*rel).pathlist).filter(|path| finds_rows(*path)));
        }
        for path in by_key.into_iter().filter(|path| finds_a_given_key(*path)) {
            let is_found =
                |by: &*mut pg_sys::Path| pg_sys::bms_is_subset(required_outer(*by), required_outer(path));
            if !found.iter().any(is_found) {
                pg_sys::add_path(rel, path);
            }
        }
        // Conditions of the caller come after the policies', also those that cost nothing, such as IS NULL, and would
        // otherwise be tried first.
        for condition in conditions {
            if (*condition).security_level > 0 {
                (*condition).leakproof = false;
            }
        }
    }
}

/// Whether the statement as a whole only reads.
///
/// # Safety
/// A plan that is being made.
unsafe fn only_reads(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the planner keeps each query's structures until the whole is planned.
    unsafe {
        let mut outermost = root;
        while !(*outermost).parent_root.is_null() {
            outermost = (*outermost).parent_root;
        }
        let query = (*outermost).parse;
        (*query).commandType == pg_sys::CmdType::CMD_SELECT && !(*query).hasModifyingCTE
    }
}

/// Has the planner make paths by these indexes alone, and returns them.
///
/// # Safety
/// As [`search_by_guarded_column`]; the indexes are the table's.
unsafe fn paths_by(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    indexes: impl Iterator<Item = *mut pg_sys::IndexOptInfo>,
) -> Vec<*mut pg_sys::Path> {
    // SAFETY: as the function's; new lists are made in the planner's context.
    unsafe {
        (*rel).indexlist =
            indexes.fold(std::ptr::null_mut(), |list, index| pg_sys::lappend(list, index.cast()));
        (*rel).pathlist = std::ptr::null_mut();
        (*rel).partial_pathlist = std::ptr::null_mut();
        pg_sys::create_index_paths(root, rel);
        elements((*rel).pathlist).collect()
    }
}

/// Whether a path looks up one unique column by a value, or by some: whoever knows a random id may be told as fast as
/// ever what they see of it, but may not go over a range of them.
///
/// # Safety
/// A valid path.
unsafe fn finds_a_given_key(path: *mut pg_sys::Path) -> bool {
    // SAFETY: as the function's.
    unsafe {
        index_path(path)
            .is_some_and(|path| (*path.indexinfo).nkeycolumns == 1 && is_given(path, 0, Given::Any))
    }
}

/// Whether a path looks up one row of an index by a value of each column, or some by several of the last one. In an index
/// that begins with the domain, what a caller sees lies together; in one by ids, which are digests, it lies scattered among the
/// rows of others.
///
/// # Safety
/// A valid path.
unsafe fn finds_rows(path: *mut pg_sys::Path) -> bool {
    // SAFETY: as the function's.
    unsafe {
        index_path(path).is_some_and(|path| {
            let index = &*path.indexinfo;
            let last = index.nkeycolumns - 1;
            let given = |column| if column == last { Given::Any } else { Given::One };
            index.unique && (0..=last).all(|column| is_given(path, column, given(column)))
        })
    }
}

/// Relations whose rows a path needs a row of.
///
/// # Safety
/// A valid path.
unsafe fn required_outer(path: *mut pg_sys::Path) -> pg_sys::Relids {
    // SAFETY: as the function's.
    unsafe { (*path).param_info.as_ref().map_or(std::ptr::null_mut(), |parameters| parameters.ppi_req_outer) }
}

/// # Safety
/// A valid path.
unsafe fn index_path<'a>(path: *mut pg_sys::Path) -> Option<&'a pg_sys::IndexPath> {
    // SAFETY: the cast is to the type that the node's tag names.
    unsafe { is_a(path.cast(), pg_sys::NodeTag::T_IndexPath).then(|| &*path.cast::<pg_sys::IndexPath>()) }
}

/// How many values a column is searched for.
#[derive(PartialEq, Eq)]
enum Given {
    One,
    Any,
}

/// Whether a path searches its index for rows where a column has a given value, or one of some.
///
/// # Safety
/// A valid path.
unsafe fn is_given(path: &pg_sys::IndexPath, column: i32, given: Given) -> bool {
    // SAFETY: each cast is to the type that the node's tag names; an index has as many families as columns.
    unsafe {
        elements::<pg_sys::IndexClause>(path.indexclauses)
            .filter(|clause| i32::from((**clause).indexcol) == column)
            .any(|clause| {
                let condition = (*(*clause).rinfo).clause.cast::<pg_sys::Node>();
                let operator = match (*condition).type_ {
                    pg_sys::NodeTag::T_OpExpr => (*condition.cast::<pg_sys::OpExpr>()).opno,
                    pg_sys::NodeTag::T_ScalarArrayOpExpr if given == Given::Any => {
                        (*condition.cast::<pg_sys::ScalarArrayOpExpr>()).opno
                    }
                    _ => return false,
                };
                let family = *(*path.indexinfo).opfamily.add(column as usize);
                pg_sys::get_op_opfamily_strategy(operator, family) == pg_sys::BTEqualStrategyNumber as i32
            })
    }
}

/// Elements of a list of nodes; null is an empty one.
///
/// # Safety
/// A list of pointers to `T`, which outlives the iteration.
pub(super) unsafe fn elements<T>(list: *mut pg_sys::List) -> impl Iterator<Item = *mut T> {
    // SAFETY: as the function's.
    let count = if list.is_null() { 0 } else { unsafe { (*list).length as usize } };
    (0..count).map(move |index| unsafe {
        // SAFETY: `index` is below the list's length.
        (*(*list).elements.add(index)).ptr_value.cast()
    })
}
