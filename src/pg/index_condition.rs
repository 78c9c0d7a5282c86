//! What the planner asks about a policy's function: which condition an index can be searched by, and how many rows
//! pass.
//!
//! `rag.sees(domain_id)` holds only for domains of a list, so an index on `domain_id` is searched for
//! `domain_id = ANY (rag.readable_domain_ids())`, a list that is made when the scan begins. The function itself stays a
//! filter of every row all the same.

use super::planner::{elements, looks_up, plans_ours};
use pgrx::{Internal, IntoDatum, is_a, pg_sys};
use std::ffi::CStr;

/// Functions of policies, with that which lists what their first argument must be among.
const LISTS: [(&CStr, &CStr); 11] = [
    (c"sees", c"readable_domain_ids"),
    (c"sees_document", c"readable_domain_ids"),
    (c"sees_part", c"readable_domain_ids"),
    (c"sees_whole", c"readable_domain_ids"),
    (c"may_write", c"writable_domain_ids"),
    (c"sees_collection", c"visible_collection_ids"),
    (c"owns_collection", c"own_collection_ids"),
    (c"sees_grant", c"granted_domain_ids"),
    (c"is_mine", c"principals"),
    (c"is_mine_or_public", c"principals_and_public"),
    (c"sees_log", c"log_owners"),
];

/// What part of a table's rows a caller is taken to see. A constant: estimates must not depend on what others have.
const SELECTIVITY: f64 = 0.01;

/// Answers a request of the planner to a support function; null where it asks for something else.
pub(crate) fn answer(request: Internal) -> Internal {
    let nothing = || Internal::from(Some(pg_sys::Datum::null()));
    let Some(request) = request.unwrap() else { return nothing() };
    let node = request.cast_mut_ptr::<pg_sys::Node>();
    // SAFETY: Postgres passes a request, which its tag names, and which is valid during the call.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_SupportRequestIndexCondition => {
                let condition = index_condition(&mut *node.cast());
                Internal::from(condition.map(pg_sys::Datum::from).or(Some(pg_sys::Datum::null())))
            }
            pg_sys::NodeTag::T_SupportRequestSelectivity => {
                (*node.cast::<pg_sys::SupportRequestSelectivity>()).selectivity = SELECTIVITY;
                Internal::from(Some(pg_sys::Datum::from(node)))
            }
            _ => nothing(),
        }
    }
}

/// The column that a policy's function is asked about, if the clause is one; of the first argument.
///
/// # Safety
/// `clause` is a valid expression, or null.
pub(crate) unsafe fn guarded_column(clause: *mut pg_sys::Node) -> Option<(u32, i16)> {
    // SAFETY: each cast is to the type that the node's tag names.
    unsafe {
        if clause.is_null() || !is_a(clause, pg_sys::NodeTag::T_FuncExpr) {
            return None;
        }
        let call = clause.cast::<pg_sys::FuncExpr>();
        list_function((*call).funcid)?;
        let argument = first_argument(call)?;
        if !is_a(argument, pg_sys::NodeTag::T_Var) {
            return None;
        }
        let column = argument.cast::<pg_sys::Var>();
        Some(((*column).varno as u32, (*column).varattno))
    }
}

/// A list of one expression, or none if this is no index for it.
unsafe fn index_condition(request: &mut pg_sys::SupportRequestIndexCondition) -> Option<*mut pg_sys::List> {
    // SAFETY: the request names a call of one of our functions and a column of an index; nodes are made in the
    // planner's memory context.
    unsafe {
        if request.indexarg != 0 || !is_a(request.node, pg_sys::NodeTag::T_FuncExpr) {
            return None;
        }
        if plans_ours() && is_known_otherwise(request) {
            return None;
        }
        let list = list_function(request.funcid)?;
        let array_type = pg_sys::get_func_rettype(list);
        let (operator, procedure) = match array_type {
            pg_sys::UUIDARRAYOID => (UUID_EQUALS, pg_sys::F_UUID_EQ),
            pg_sys::TEXTARRAYOID => (pg_sys::TextEqualOperator, pg_sys::F_TEXTEQ),
            _ => return None,
        };
        let operator = pg_sys::Oid::from(operator);
        if pg_sys::get_op_opfamily_strategy(operator, request.opfamily)
            != pg_sys::BTEqualStrategyNumber as i32
        {
            return None;
        }
        let column = pg_sys::copyObjectImpl(first_argument(request.node.cast())?.cast());
        let listing = pg_sys::makeFuncExpr(
            list,
            array_type,
            std::ptr::null_mut(),
            request.indexcollation,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        );
        let mut condition =
            pgrx::PgBox::<pg_sys::ScalarArrayOpExpr>::alloc_node(pg_sys::NodeTag::T_ScalarArrayOpExpr);
        condition.opno = operator;
        condition.opfuncid = pg_sys::Oid::from(procedure);
        condition.useOr = true;
        condition.inputcollid = request.indexcollation;
        condition.args = pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), column), listing.cast());
        condition.location = -1;
        request.lossy = true;
        Some(pg_sys::lappend(std::ptr::null_mut(), condition.into_pg().cast()))
    }
}

/// Whether the statement itself says what the column is: among a list, a given value, or, where rows are looked up one after the
/// other, that of another table's row. Statements of ours say so of domains that the caller sees, or look up a row of one of the
/// tables by its id. Then that is what the index is searched for, and the policy's function is asked about each row all the
/// same: a list of thousands is gone through by each look into an index, and before Postgres 17 an index is searched for all
/// pairs of two lists.
///
/// # Safety
/// A valid request.
unsafe fn is_known_otherwise(request: &pg_sys::SupportRequestIndexCondition) -> bool {
    // SAFETY: the planner's own structures; each cast is to the type that the node's tag names.
    unsafe {
        let (rel, index) = ((*request.index).rel, request.index);
        let column = *(*index).indexkeys.add(request.indexcol as usize);
        let is_column = |node: *mut pg_sys::Node| {
            is_a(node, pg_sys::NodeTag::T_Var) && {
                let var = &*node.cast::<pg_sys::Var>();
                (var.varno as u32, i32::from(var.varattno)) == ((*rel).relid, column)
            }
        };
        let is_listed = elements::<pg_sys::RestrictInfo>((*rel).baserestrictinfo).any(|condition| {
            let clause = (*condition).clause.cast::<pg_sys::Node>();
            is_a(clause, pg_sys::NodeTag::T_ScalarArrayOpExpr) && {
                let list = &*clause.cast::<pg_sys::ScalarArrayOpExpr>();
                list.useOr
                    && elements::<pg_sys::Node>(list.args).next().is_some_and(is_column)
                    && pg_sys::get_op_opfamily_strategy(list.opno, request.opfamily)
                        == pg_sys::BTEqualStrategyNumber as i32
            }
        });
        let is_equal = |class: *mut pg_sys::EquivalenceClass| {
            let members =
                || elements::<pg_sys::EquivalenceMember>((*class).ec_members).map(|member| (*member).em_expr);
            members().any(|member| is_column(member.cast()))
                && ((*class).ec_has_const || looks_up() && members().any(|member| !is_column(member.cast())))
        };
        is_listed || elements::<pg_sys::EquivalenceClass>((*request.root).eq_classes).any(is_equal)
    }
}

/// `=` of uuid.
const UUID_EQUALS: u32 = 2972;

/// # Safety
/// A valid call.
unsafe fn first_argument(call: *mut pg_sys::FuncExpr) -> Option<*mut pg_sys::Node> {
    // SAFETY: a list of expressions, or null.
    unsafe {
        let arguments = (*call).args;
        (!arguments.is_null() && (*arguments).length > 0).then(|| (*(*arguments).elements).ptr_value.cast())
    }
}

/// The function that lists what a policy's function looks for; `None` for any other function.
fn list_function(policy: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: look-ups in the catalog caches; the name, if there is one, is a C string of the current context.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"rag".as_ptr(), true);
        if schema == pg_sys::InvalidOid || pg_sys::get_func_namespace(policy) != schema {
            return None;
        }
        let name = pg_sys::get_func_name(policy);
        if name.is_null() {
            return None;
        }
        let (_, list) = LISTS.iter().find(|(guard, _)| *guard == CStr::from_ptr(name))?;
        let no_arguments = pg_sys::buildoidvector(std::ptr::null(), 0);
        let found = pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Anum_pg_proc_oid as i16,
            pg_sys::Datum::from(list.as_ptr()),
            pg_sys::Datum::from(no_arguments),
            schema.into_datum()?,
            pg_sys::Datum::null(),
        );
        (found != pg_sys::InvalidOid).then_some(found)
    }
}
