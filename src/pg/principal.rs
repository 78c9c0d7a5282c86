//! Who the caller is, in the words of the rights model: principals, read from the catalogs without SQL.
//!
//! Runs inside row-level-security policies, also in parallel workers: no SPI, no state beyond a cache of role
//! memberships that catalog invalidations clear.

use crate::config;
use crate::error::{Error, Result, excerpt};
use crate::pg::table::{self, Condition, Row};
use crate::pg::{call_cache, user_id};
use pgrx::{PgSqlErrorCode, pg_sys};
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString};

thread_local! {
    static MEMBERSHIPS: RefCell<HashMap<u32, Vec<pg_sys::Oid>>> = RefCell::new(HashMap::new());
    /// Counts changes of roles and memberships. What was read while one came may be of before it.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    static CALLBACK_REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// What the caller acts as; see the comment of `rag.principals()`.
pub(crate) fn current_principals() -> Result<Vec<String>> {
    call_cache::principals(find_principals).map(|principals| principals.to_vec())
}

fn find_principals() -> Result<Vec<String>> {
    let user = current_user();
    if let Some(gateway) = gateway(user) {
        return Ok(gateway_user(user, gateway)?.into_iter().collect());
    }
    refuse_forgotten_gateway(user)?;
    Ok(inherited_roles(user).into_iter().filter_map(role_name).map(|name| format!("role:{name}")).collect())
}

/// Owner of what the caller creates.
pub(crate) fn current_owner() -> Result<String> {
    let user = current_user();
    if let Some(gateway) = gateway(user) {
        return gateway_user(user, gateway)?.ok_or_else(|| {
            Error::forbidden("a gateway acts for nobody while rag_ext.user_id is unset").hint(
                "SET LOCAL rag_ext.user_id = '…' in the transaction, outside SECURITY DEFINER functions.",
            )
        });
    }
    refuse_forgotten_gateway(user)?;
    let name = role_name(user).ok_or_else(|| Error::internal("the current role has no name"))?;
    Ok(format!("role:{name}"))
}

/// Whether row-level security holds for the current user.
pub(crate) fn is_held_to_policies() -> bool {
    role_is_held_to_policies(current_user())
}

/// Whether it holds for the current user, or for who has called a function that runs with its definer's rights: what that
/// reads must not tell them more than the function does.
pub(crate) fn caller_is_held_to_policies() -> bool {
    is_held_to_policies() || role_is_held_to_policies(outer_user())
}

/// Whether row-level security holds for a role: not for superusers, nor with BYPASSRLS.
pub(crate) fn role_is_held_to_policies(role: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalog caches.
    unsafe { !pg_sys::superuser_arg(role) && !pg_sys::has_bypassrls_privilege(role) }
}

/// 42501 where the session says for which application user it speaks, but its role is no gateway: what was written then
/// would be the role's, and so every user's. Behind a SECURITY DEFINER function the setting counts for nobody.
fn refuse_forgotten_gateway(user: pg_sys::Oid) -> Result<()> {
    if user != outer_user() || config::user_id().is_none() {
        return Ok(());
    }
    let name = role_name(user).unwrap_or_default();
    let quoted = name.replace('\'', "''");
    Err(Error::forbidden(format!("rag_ext.user_id is set, but role \"{name}\" is no gateway")).hint(format!(
        "A superuser makes it one: SELECT rag_register_gateway('{quoted}'). To act as the role: RESET rag_ext.user_id."
    )))
}

/// 42501 for a gateway whose users are set by SET LOCAL alone. Call where a value is about to outlive its transaction.
pub(crate) fn check_user_id_may_stay() -> Result<()> {
    let user = current_user();
    match gateway(user) {
        Some(Gateway { local_only: true }) => refuse_for_session(user),
        _ => Ok(()),
    }
}

fn refuse_for_session(gateway: pg_sys::Oid) -> Result<()> {
    Err(Error::forbidden(format!(
        "gateway \"{}\" takes rag_ext.user_id for one transaction at a time, not for the session",
        role_name(gateway).unwrap_or_default()
    ))
    .hint("SET LOCAL rag_ext.user_id = '…' in each transaction. RESET rag_ext.user_id ends the session's value."))
}

/// Whether the current user may see what all users do together: superusers and members of `pg_monitor`.
pub(crate) fn may_monitor() -> bool {
    // SAFETY: catalog look-up within a transaction.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), pg_sys::Oid::from(ROLE_PG_MONITOR)) }
}

/// `pg_monitor`.
const ROLE_PG_MONITOR: u32 = 3373;

/// The role behind a principal; 0 for `public`; `None` if there is no such role.
pub(crate) fn role_of(principal: &str) -> Option<pg_sys::Oid> {
    match Principal::parse(principal)? {
        Principal::Public => Some(pg_sys::InvalidOid),
        Principal::Role(name) => role_oid(name),
        Principal::User { gateway, .. } => role_oid(&gateway),
    }
}

/// A principal, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Principal<'a> {
    Public,
    Role(&'a str),
    User { gateway: String, id: &'a str },
}

impl<'a> Principal<'a> {
    /// `None` if the text has none of the three forms.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text == "public" {
            return Some(Self::Public);
        }
        if let Some(name) = text.strip_prefix("role:") {
            return (!name.is_empty()).then_some(Self::Role(name));
        }
        let (gateway, id) = text.strip_prefix("user:")?.split_once('/')?;
        if gateway.is_empty() || id.is_empty() {
            return None;
        }
        Some(Self::User { gateway: gateway.replace("%2F", "/").replace("%25", "%"), id })
    }
}

/// Id that the domain of `owner` in a collection has if it is created now; `None` stands for the owner's
/// collection `default`.
///
/// A collection `default` may be deleted and made again while what was in it is still being cleared away: its
/// domain then takes the next id that is free.
pub(crate) fn derived_domain(collection: Option<[u8; 16]>, owner: &str) -> [u8; 16] {
    let mut generation = 0;
    loop {
        let id = domain_of_generation(collection, owner, generation);
        if collection.is_some() || !is_dropped_domain(id) {
            return id;
        }
        generation += 1;
    }
}

fn domain_of_generation(collection: Option<[u8; 16]>, owner: &str, generation: u32) -> [u8; 16] {
    let role = role_of(owner).unwrap_or(pg_sys::InvalidOid);
    let mut hash = Sha256::new();
    // SAFETY: reads values that are fixed while the server runs.
    let (system, database) = unsafe { (pg_sys::GetSystemIdentifier(), pg_sys::MyDatabaseId) };
    hash.update(system.to_le_bytes());
    hash.update(database.to_u32().to_le_bytes());
    hash.update(role.to_u32().to_le_bytes());
    hash.update(collection.unwrap_or_default());
    hash.update(owner.as_bytes());
    if generation > 0 {
        hash.update(b"\0");
        hash.update(generation.to_le_bytes());
    }
    let digest = hash.finalize();
    let mut id = [0u8; 16];
    id.copy_from_slice(&digest[..16]);
    // The uppermost ids are those of attached tables.
    id[0] &= 0x7f;
    // Version 8, variant 1 of RFC 9562: a UUID of the application's own making.
    id[6] = (id[6] & 0x0f) | 0x80;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}

/// A number that no other cluster has.
pub(crate) fn system_identifier() -> u64 {
    // SAFETY: reads a value that is fixed while the server runs.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// Whether a principal's name still belongs to this role.
pub(crate) fn is_current(principal: &str, role: pg_sys::Oid) -> bool {
    role_of(principal) == Some(role)
}

pub(crate) fn current_user() -> pg_sys::Oid {
    // SAFETY: reads a variable of the backend.
    unsafe { pg_sys::GetUserId() }
}

fn outer_user() -> pg_sys::Oid {
    // SAFETY: reads a variable of the backend.
    unsafe { pg_sys::GetOuterUserId() }
}

/// What `rag.gateway` says of a role.
struct Gateway {
    /// Whether it speaks for a user in one transaction only.
    local_only: bool,
}

/// `user:GATEWAY/ID`, if a user is set and nobody stands between the session and us.
fn gateway_user(role: pg_sys::Oid, gateway: Gateway) -> Result<Option<String>> {
    let id = config::user_id().filter(|_| role == outer_user());
    let (Some(id), Some(name)) = (id, role_name(role)) else { return Ok(None) };
    // What is not UTF-8 is not told apart, as in databases of other encodings.
    if id.contains(char::REPLACEMENT_CHARACTER) {
        let code = PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE;
        return Err(Error::new(code, "rag_ext.user_id is not UTF-8"));
    }
    if gateway.local_only && !user_id::is_local() {
        refuse_for_session(role)?;
    }
    Ok(Some(format!("user:{}/{id}", name.replace('%', "%25").replace('/', "%2F"))))
}

fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: returns null for an unknown role (noerr), else a string in the current memory context.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

fn role_oid(name: &str) -> Option<pg_sys::Oid> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is a C string; missing roles give 0.
    let oid = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The role as a gateway, if `rag.gateway` names it.
fn gateway(role: pg_sys::Oid) -> Option<Gateway> {
    let local_only = |row: &Row<'_>| row.get(c"local_only");
    let found = table::rows(c"gateway", c"gateway_pkey", &Condition::Oid(c"role", role), local_only);
    found.first().map(|local_only| Gateway { local_only: *local_only })
}

/// Whether `rag.domain` has this id without a collection: it is being cleared away.
fn is_dropped_domain(id: [u8; 16]) -> bool {
    let without_collection = |row: &Row<'_>| Some(row.get::<pgrx::Uuid>(c"collection_id").is_none());
    table::rows(c"domain", c"domain_pkey", &Condition::Uuid(c"id", id), without_collection).contains(&true)
}

/// The role and all roles whose privileges it inherits, without what being a superuser would add.
fn inherited_roles(role: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    if let Some(roles) = MEMBERSHIPS.with_borrow(|cache| cache.get(&role.to_u32()).cloned()) {
        return roles;
    }
    register_invalidation();
    let changes = CHANGES.get();
    let mut roles = vec![role];
    let mut next = 0;
    while next < roles.len() {
        for granted in directly_inherited(roles[next]) {
            if !roles.contains(&granted) {
                roles.push(granted);
            }
        }
        next += 1;
    }
    roles[1..].sort_unstable_by_key(|role| role.to_u32());
    if CHANGES.get() == changes {
        MEMBERSHIPS.with_borrow_mut(|cache| cache.insert(role.to_u32(), roles.clone()));
    }
    roles
}

fn directly_inherited(member: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    #[cfg(feature = "pg15")]
    const COLUMNS: (i16, i32, Option<i32>) = (2, 1, None);
    #[cfg(not(feature = "pg15"))]
    const COLUMNS: (i16, i32, Option<i32>) = (3, 2, Some(6));
    let (member_column, role_column, inherit_column) = COLUMNS;

    // Before Postgres 16 inheriting is a property of the member, since then of the grant.
    // SAFETY: look-up in a catalog cache.
    if inherit_column.is_none() && !unsafe { role_inherits(member) } {
        return Vec::new();
    }
    let mut roles = Vec::new();
    // SAFETY: an index scan of pg_auth_members under a catalog snapshot (null), closed before returning; column
    // numbers are those of the major that this was compiled for.
    unsafe {
        let relation =
            pg_sys::table_open(pg_sys::Oid::from(MEMBERSHIP_TABLE), pg_sys::AccessShareLock as i32);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            member_column,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(member),
        );
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::Oid::from(MEMBER_INDEX),
            true,
            std::ptr::null_mut(),
            1,
            &mut key,
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let descriptor = (*relation).rd_att;
            let mut is_null = false;
            let role = pg_sys::heap_getattr(tuple, role_column, descriptor, &mut is_null);
            let inherits = match inherit_column {
                None => true,
                Some(column) => {
                    pg_sys::heap_getattr(tuple, column, descriptor, &mut is_null).value() as u8 != 0
                }
            };
            if inherits {
                roles.push(pg_sys::Oid::from(role.value() as u32));
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
    }
    roles
}

/// `pg_auth_members`.
const MEMBERSHIP_TABLE: u32 = 1261;

/// `pg_auth_members_member_role_index`.
const MEMBER_INDEX: u32 = 2695;

/// `pg_authid.rolinherit`.
unsafe fn role_inherits(role: pg_sys::Oid) -> bool {
    // SAFETY: the tuple is valid until it is released.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::AUTHOID as i32, pg_sys::Datum::from(role));
        if tuple.is_null() {
            return false;
        }
        let mut is_null = false;
        let value = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::AUTHOID as i32,
            tuple,
            pg_sys::Anum_pg_authid_rolinherit as i16,
            &mut is_null,
        );
        pg_sys::ReleaseSysCache(tuple);
        value.value() as u8 != 0
    }
}

fn register_invalidation() {
    if CALLBACK_REGISTERED.replace(true) {
        return;
    }
    for cache in [pg_sys::SysCacheIdentifier::AUTHMEMMEMROLE, pg_sys::SysCacheIdentifier::AUTHOID] {
        // SAFETY: the callback only clears a map; it may run at any catalog access. There are 64 slots for such
        // callbacks, of which we take two, once per backend.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                cache as i32,
                Some(forget_memberships),
                pg_sys::Datum::from(0usize),
            );
        }
    }
}

unsafe extern "C-unwind" fn forget_memberships(_: pg_sys::Datum, _: i32, _: u32) {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    MEMBERSHIPS.with(|cache| {
        if let Ok(mut cache) = cache.try_borrow_mut() {
            cache.clear();
        }
    });
}

/// Checks that a text names a principal whose role exists, and returns that role (0 for `public`).
pub(crate) fn existing_role(principal: &str) -> Result<pg_sys::Oid> {
    if Principal::parse(principal).is_none() {
        return Err(Error::invalid(format!("invalid principal \"{}\"", excerpt(principal)))
            .hint("A principal is role:NAME, user:GATEWAY/ID or public."));
    }
    role_of(principal).ok_or_else(|| {
        Error::missing(format!("the role of principal \"{}\" does not exist", excerpt(principal)))
    })
}
