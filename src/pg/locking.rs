//! Keeps ordinary roles from locking tables of the extension as wholes: workers, and everybody else, would wait for them.
//!
//! LOCK TABLE asks for no more than the right to delete rows, which everybody has to their own. Other statements take
//! their lock first and look for the right to it then; while they wait for it, everybody waits behind them. So whoever
//! has not the right is refused before.

use crate::error::{Error, Result};
use crate::pg::{database, server};
use pgrx::pg_sys;
use std::ffi::CStr;

/// A table that a statement is about to lock, and a right to it that lets one do so. Its owner always may.
struct Wanted {
    table: *mut pg_sys::RangeVar,
    right: Option<pg_sys::AclMode>,
}

/// 42501 if a statement would lock a table of the extension as a whole, and the current user may not.
///
/// # Safety
/// `statement` is a valid utility statement or null; in a transaction.
pub(crate) unsafe fn check(statement: *mut pg_sys::Node) -> Result<()> {
    if statement.is_null() {
        return Ok(());
    }
    // SAFETY: as the function's.
    for Wanted { table, right } in unsafe { wanted(statement) } {
        if table.is_null() || server::user_is_superuser() {
            continue;
        }
        // SAFETY: a name of the statement. Nothing is locked, and what does not exist is for others to tell.
        let oid = unsafe {
            let flags = pg_sys::RVROption::RVR_MISSING_OK;
            pg_sys::RangeVarGetRelidExtended(table, pg_sys::NoLock as i32, flags, None, std::ptr::null_mut())
        };
        for reached in reached_from(oid) {
            if is_ours(reached) && !may_lock(reached, right) {
                return Err(refusal(&name(reached), right));
            }
        }
    }
    Ok(())
}

fn refusal(table: &str, right: Option<pg_sys::AclMode>) -> Error {
    if right == Some(pg_sys::ACL_REFERENCES as pg_sys::AclMode) {
        return Error::forbidden(format!("permission denied to refer to rag.{table}"))
            .hint(format!("A superuser permits foreign keys: GRANT REFERENCES ON rag.{table} TO …"));
    }
    Error::forbidden(format!("must be owner of rag.{table}"))
        .hint("Others, and background workers, would wait for the table. SELECT … FOR UPDATE locks rows.")
}

/// What a statement is about to lock so that writers wait for it, before it looks for the right to.
///
/// # Safety
/// A valid utility statement.
unsafe fn wanted(statement: *mut pg_sys::Node) -> Vec<Wanted> {
    let alone = |table| vec![Wanted { table, right: None }];
    // SAFETY: each cast is to the type that the node's tag names, and lists hold what the statement's type says.
    unsafe {
        match (*statement).type_ {
            pg_sys::NodeTag::T_LockStmt => {
                let lock = statement.cast::<pg_sys::LockStmt>();
                if (*lock).mode <= pg_sys::RowExclusiveLock as i32 {
                    return Vec::new();
                }
                members((*lock).relations).flat_map(|table| alone(table.cast())).collect()
            }
            pg_sys::NodeTag::T_RuleStmt => alone((*statement.cast::<pg_sys::RuleStmt>()).relation),
            pg_sys::NodeTag::T_CreateTrigStmt => {
                let table = (*statement.cast::<pg_sys::CreateTrigStmt>()).relation;
                vec![Wanted { table, right: Some(pg_sys::ACL_TRIGGER as pg_sys::AclMode) }]
            }
            pg_sys::NodeTag::T_AlterTableStmt => {
                let commands = (*statement.cast::<pg_sys::AlterTableStmt>()).cmds;
                members(commands).flat_map(|command| wanted_by_command(command.cast())).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// # Safety
/// A valid command of ALTER TABLE.
unsafe fn wanted_by_command(command: *mut pg_sys::AlterTableCmd) -> Vec<Wanted> {
    use pg_sys::AlterTableType as Kind;
    // SAFETY: the definition is of the type that belongs to the command.
    unsafe {
        let definition = (*command).def;
        if definition.is_null() {
            return Vec::new();
        }
        match (*command).subtype {
            Kind::AT_AttachPartition | Kind::AT_DetachPartition => {
                vec![Wanted { table: (*definition.cast::<pg_sys::PartitionCmd>()).name, right: None }]
            }
            Kind::AT_AddConstraint => referenced(definition).into_iter().collect(),
            Kind::AT_AddColumn => {
                let constraints = (*definition.cast::<pg_sys::ColumnDef>()).constraints;
                members(constraints).filter_map(|constraint| referenced(constraint)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The table that a foreign key refers to.
///
/// # Safety
/// A valid node.
unsafe fn referenced(constraint: *mut pg_sys::Node) -> Option<Wanted> {
    // SAFETY: cast to the type that the tag names.
    unsafe {
        if (*constraint).type_ != pg_sys::NodeTag::T_Constraint {
            return None;
        }
        let table = (*constraint.cast::<pg_sys::Constraint>()).pktable;
        Some(Wanted { table, right: Some(pg_sys::ACL_REFERENCES as pg_sys::AclMode) })
    }
}

/// # Safety
/// A list of nodes, or null, that outlives the iterator.
unsafe fn members(list: *mut pg_sys::List) -> impl Iterator<Item = *mut pg_sys::Node> {
    // SAFETY: a list has as many elements as it says.
    unsafe {
        let length = if list.is_null() { 0 } else { (*list).length as usize };
        (0..length).map(move |index| (*(*list).elements.add(index)).ptr_value.cast::<pg_sys::Node>())
    }
}

/// A relation, and those below it if it is a view: what locks a view locks them too.
fn reached_from(relation: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut reached = vec![relation];
    let mut next = 0;
    while let Some(&relation) = reached.get(next) {
        next += 1;
        // SAFETY: a look-up in the catalog cache.
        let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
        if kind == pg_sys::RELKIND_VIEW {
            for below in relations_of_view(relation) {
                if !reached.contains(&below) {
                    reached.push(below);
                }
            }
        }
    }
    reached
}

fn relations_of_view(view: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut found: Vec<pg_sys::Oid> = Vec::new();
    // SAFETY: the view's query belongs to the open relation, and is only read.
    unsafe {
        let mode = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let relation = pg_sys::try_relation_open(view, mode);
        if relation.is_null() {
            return found;
        }
        let query = pg_sys::get_view_query(relation).cast();
        collect(query, (&raw mut found).cast());
        pg_sys::relation_close(relation, mode);
    }
    found
}

/// Adds the relations that a query names to the vector behind `found`.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn collect(node: *mut pg_sys::Node, found: *mut std::ffi::c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: Postgres calls it with nodes of the query, and with the vector that `relations_of_view` has made.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => {
                let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;
                pg_sys::query_tree_walker(node.cast(), Some(collect), found, flags)
            }
            pg_sys::NodeTag::T_RangeTblEntry => {
                let entry = node.cast::<pg_sys::RangeTblEntry>();
                if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                    (*found.cast::<Vec<pg_sys::Oid>>()).push((*entry).relid);
                }
                false
            }
            _ => pg_sys::expression_tree_walker(node, Some(collect), found),
        }
    }
}

/// Whether a relation lies in the extension's schema.
fn is_ours(relation: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalogs.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"rag".as_ptr(), true);
        schema != pg_sys::InvalidOid
            && pg_sys::get_rel_namespace(relation) == schema
            && database::has_extension()
    }
}

fn may_lock(relation: pg_sys::Oid, right: Option<pg_sys::AclMode>) -> bool {
    // SAFETY: look-ups in the catalogs by the OID of a relation that was found just now.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(not(feature = "pg15"))]
        let is_owner =
            pg_sys::object_ownercheck(pg_sys::Oid::from(pg_sys::RelationRelationId.to_u32()), relation, user);
        #[cfg(feature = "pg15")]
        let is_owner = pg_sys::pg_class_ownercheck(relation, user);
        is_owner
            || right.is_some_and(|right| {
                let any = pg_sys::AclMaskHow::ACLMASK_ANY;
                pg_sys::pg_class_aclcheck(relation, user, right) == pg_sys::AclResult::ACLCHECK_OK
                    || pg_sys::pg_attribute_aclcheck_all(relation, user, right, any)
                        == pg_sys::AclResult::ACLCHECK_OK
            })
    }
}

fn name(relation: pg_sys::Oid) -> String {
    // SAFETY: a copy of the name, or null.
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
    }
}
