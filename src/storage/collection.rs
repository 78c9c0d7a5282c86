//! Collections, their domains, and who may see them.

use super::{Id, id, uuid, uuids};
use crate::error::{Error, Result};
use crate::pg::Oid;
use crate::pg::principal::current_principals;
use crate::pg::{principal, relation, spi};
use pgrx::JsonB;
use std::collections::HashSet;
use std::rc::Rc;

/// A domain that the caller may see, with its collection.
#[derive(Debug, Clone)]
pub(crate) struct VisibleDomain {
    pub(crate) id: Id,
    pub(crate) collection_id: Id,
    pub(crate) collection: Rc<str>,
    pub(crate) collection_owner: Rc<str>,
    pub(crate) model: Rc<str>,
    pub(crate) language: Rc<str>,
    /// What feedback counts for in a search by default, 0 to 1.
    pub(crate) feedback_boost: f64,
    /// Whether its documents' text may go beyond this machine, where the settings allow that.
    pub(crate) allows_remote: bool,
    /// Whether the caller acts as the collection's owner.
    pub(crate) is_own: bool,
    /// Whether the caller acts as the domain's owner.
    pub(crate) is_own_domain: bool,
    /// Whether the caller has taken it into unnamed searches.
    pub(crate) is_accepted: bool,
}

/// Texts, each kept once: thousands of domains repeat the same few.
#[derive(Default)]
struct Texts(HashSet<Rc<str>>);

impl Texts {
    fn shared(&mut self, text: String) -> Rc<str> {
        if let Some(known) = self.0.get(text.as_str()) {
            return Rc::clone(known);
        }
        let text: Rc<str> = text.into();
        self.0.insert(Rc::clone(&text));
        text
    }
}

/// Domains that the caller sees, with their collections; only those that are `listed`, where policies do not hold for
/// them. With a name: those of collections so called.
pub(crate) fn visible_domains(listed: Option<&[Id]>, name: Option<&str>) -> Result<Vec<VisibleDomain>> {
    let mut args: Vec<spi::Arg> = vec![current_principals()?.into(), name.map(str::to_owned).into()];
    let mut condition = "";
    if let Some(listed) = listed {
        args.push(super::uuids(listed.iter().copied()).into());
        condition = "AND d.id = ANY ($3)";
    }
    let sql = format!(
        "SELECT d.id, c.id, c.name, c.owner, c.model, c.language,
                c.owner = ANY ($1) AND rag.is_current(c.owner, c.owner_role),
                d.owner = ANY ($1) AND rag.is_current(d.owner, d.owner_role),
                d.id IN (SELECT a.domain_id FROM rag.accepted_collection a
                         WHERE a.principal = ANY ($1) AND rag.is_current(a.principal, a.principal_role)),
                c.options -> 'feedback_boost', c.options -> 'remote'
         FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE ($2 IS NULL OR c.name = $2) {condition}"
    );
    let mut texts = Texts::default();
    spi::read_snapshot(&sql, args, |row| {
        Ok(VisibleDomain {
            id: id(row.require(1)?),
            collection_id: id(row.require(2)?),
            collection: texts.shared(row.require(3)?),
            collection_owner: texts.shared(row.require(4)?),
            model: texts.shared(row.require(5)?),
            language: texts.shared(row.require(6)?),
            feedback_boost: row.get::<JsonB>(10).and_then(|JsonB(boost)| boost.as_f64()).unwrap_or(0.0),
            allows_remote: row.get::<JsonB>(11).and_then(|JsonB(remote)| remote.as_bool()).unwrap_or(true),
            is_own: row.require(7)?,
            is_own_domain: row.require(8)?,
            is_accepted: row.require(9)?,
        })
    })
}

/// Whether any domain of a collection is none of these. For superusers.
pub(crate) fn any_domain_but(domains: &[Id]) -> Result<bool> {
    let found = spi::read_snapshot_one(
        "SELECT EXISTS (SELECT FROM rag.domain WHERE collection_id IS NOT NULL AND id <> ALL ($1))",
        vec![uuids(domains.iter().copied()).into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Whether an administrator has added policies that may hide some rows of a domain from those who see it.
pub(crate) fn may_hide_rows() -> bool {
    [c"document", c"section", c"chunk"]
        .into_iter()
        .any(|table| relation::has_restrictive_policy(c"rag", table))
}

/// Whether an administrator has added policies that may hide documents from those who see their domain.
pub(crate) fn may_hide_documents() -> bool {
    relation::has_restrictive_policy(c"rag", c"document")
}

/// Whether an administrator has added policies on the tables that say who may see what.
pub(crate) fn has_added_policies_on_rights() -> bool {
    [c"domain", c"collection", c"collection_grant"]
        .into_iter()
        .any(|table| relation::has_restrictive_policy(c"rag", table))
}

/// Ids of the domains that policies show the caller.
pub(crate) fn shown_domains() -> Result<Vec<Id>> {
    spi::read_snapshot("SELECT d.id FROM rag.domain d", vec![], |row| row.require::<pgrx::Uuid>(1).map(id))
}

/// Ids of the collections that policies show the caller.
pub(crate) fn shown_collections() -> Result<Vec<Id>> {
    spi::read_snapshot("SELECT c.id FROM rag.collection c", vec![], |row| {
        row.require::<pgrx::Uuid>(1).map(id)
    })
}

/// Domain, principal and privilege of the grants that policies show the caller.
pub(crate) fn shown_grants() -> Result<Vec<(Id, String, String)>> {
    spi::read_snapshot(
        "SELECT g.domain_id, g.principal, g.privilege FROM rag.collection_grant g",
        vec![],
        |row| Ok((id(row.require(1)?), row.require(2)?, row.require(3)?)),
    )
}

/// A collection that the caller can name, whether or not they may read anything in it.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) model: String,
    pub(crate) language: String,
    pub(crate) shared: bool,
    pub(crate) options: serde_json::Value,
    pub(crate) is_own: bool,
    pub(crate) is_accepted: bool,
    /// Whether a grant lets the caller write.
    pub(crate) is_writable: bool,
    /// The embedding model to come, if it is to be changed; known to workers only.
    pub(crate) next_model: Option<String>,
}

const NAMED: &str = "SELECT c.id, c.name, c.owner, c.model, c.language, c.shared, c.options,
            c.owner = ANY ($1) AND rag.is_current(c.owner, c.owner_role),
            EXISTS (SELECT FROM rag.accepted_collection a JOIN rag.domain d ON d.id = a.domain_id
                    WHERE d.collection_id = c.id AND a.principal = ANY ($1)
                      AND rag.is_current(a.principal, a.principal_role)),
            EXISTS (SELECT FROM rag.collection_grant g WHERE g.collection_id = c.id AND g.privilege = 'write'
                      AND (g.principal = 'public' OR g.principal = ANY ($1) AND rag.is_current(g.principal, g.principal_role))),
            NULL::text
     FROM rag.collection c
     WHERE c.name = $2 AND ($3 IS NULL OR c.owner = $3)
       AND ((c.owner = ANY ($1) AND rag.is_current(c.owner, c.owner_role))
            OR EXISTS (SELECT FROM rag.collection_grant g WHERE g.collection_id = c.id
                         AND (g.principal = 'public' OR g.principal = ANY ($1) AND rag.is_current(g.principal, g.principal_role)))
            OR (c.id >= 'ffffffff-ffff-8000-8000-000000000000' AND rag.source_readable(c.id)))";

/// Collections of this name, and of this owner if one is given, that the caller owns or was granted. Under the
/// active snapshot.
pub(crate) fn named(name: &str, owner: Option<&str>) -> Result<Vec<Collection>> {
    spi::read_snapshot(NAMED, named_args(name, owner)?, collection_of_row)
}

/// [`named`], with what the transaction has just written. For triggers and functions that write.
pub(crate) fn named_latest(name: &str, owner: Option<&str>) -> Result<Vec<Collection>> {
    spi::read_latest(NAMED, named_args(name, owner)?, collection_of_row)
}

fn named_args(name: &str, owner: Option<&str>) -> Result<Vec<spi::Arg>> {
    Ok(vec![current_principals()?.into(), name.into(), owner.map(str::to_owned).into()])
}

fn collection_of_row(row: &spi::Row) -> Result<Collection> {
    Ok(Collection {
        id: id(row.require(1)?),
        name: row.require(2)?,
        owner: row.require(3)?,
        model: row.require(4)?,
        language: row.require(5)?,
        shared: row.require(6)?,
        options: row.require::<JsonB>(7)?.0,
        is_own: row.require(8)?,
        is_accepted: row.require(9)?,
        is_writable: row.require(10)?,
        next_model: row.get(11),
    })
}

/// The collection of a domain. Elevated.
pub(crate) fn of_domain(domain: Id) -> Result<Option<Collection>> {
    spi::read_latest_one(
        "SELECT c.id, c.name, c.owner, c.model, c.language, c.shared, c.options, false, false, false,
                (SELECT m.model FROM rag.model_change m WHERE m.collection_id = c.id)
         FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id WHERE d.id = $1",
        vec![uuid(domain).into()],
        collection_of_row,
    )
}

/// The collection of this name and owner, whose name still belongs to its role, or was set apart from its successor's.
/// Elevated.
pub(crate) fn of_owner(name: &str, owner: &str) -> Result<Option<Collection>> {
    spi::read_latest_one(
        "SELECT c.id, c.name, c.owner, c.model, c.language, c.shared, c.options, false, false, false, NULL::text
         FROM rag.collection c
         WHERE c.name = $1 AND c.owner = $2
           AND (rag.is_current(c.owner, c.owner_role) OR c.owner LIKE '%#' || c.owner_role::oid)",
        vec![name.into(), owner.into()],
        collection_of_row,
    )
}

/// Keeps a collection from the switch to another model and from other options until the transaction ends; false if others than
/// these hold by now, or it is gone. Its owner may pause or rename it meanwhile. Elevated.
pub(crate) fn lock_as_it_is(known: &Collection) -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT model, options FROM rag.collection WHERE id = $1 FOR KEY SHARE",
        vec![uuid(known.id).into()],
        |row| Ok(row.require::<String>(1)? == known.model && row.require::<JsonB>(2)?.0 == known.options),
    )?;
    Ok(found.unwrap_or(false))
}

/// Options of a collection, after whoever writes chunks of it or changes it is done; others wait until the transaction ends.
/// Before anything else of it is locked or changed: only so do they find the new ones. Elevated.
pub(crate) fn lock_options(collection: Id) -> Result<Option<serde_json::Value>> {
    spi::read_latest_one(
        "SELECT options FROM rag.collection WHERE id = $1 FOR UPDATE",
        vec![uuid(collection).into()],
        |row| Ok(row.require::<JsonB>(1)?.0),
    )
}

/// Changes a collection's options. Elevated, after [`lock_options`].
pub(crate) fn set_options(collection: Id, options: &serde_json::Value) -> Result<()> {
    spi::run(
        "UPDATE rag.collection SET options = $2 WHERE id = $1",
        vec![uuid(collection).into(), JsonB(options.clone()).into()],
    )
}

/// Creates a collection, unless its owner has one of this name. Elevated.
pub(crate) fn create(new: &Collection) -> Result<Option<Id>> {
    let role = role_of_owner(&new.owner)?;
    let created = spi::execute_one(
        "INSERT INTO rag.collection (id, name, owner, owner_role, model, language, shared, options)
         VALUES ($1, $2, $3, $4::oid::regrole, $5, $6, $7, $8)
         ON CONFLICT (owner, owner_role, name) DO NOTHING RETURNING id",
        vec![
            uuid(new.id).into(),
            new.name.clone().into(),
            new.owner.clone().into(),
            role_number(role).into(),
            new.model.clone().into(),
            new.language.clone().into(),
            new.shared.into(),
            JsonB(new.options.clone()).into(),
        ],
        |row| row.require::<pgrx::Uuid>(1),
    )?;
    Ok(created.map(id))
}

/// The domain of an owner in a collection, if it exists. As the caller.
pub(crate) fn find_domain(collection: Id, owner: &str) -> Result<Option<Id>> {
    let found = spi::read_latest_one(
        "SELECT d.id FROM rag.domain d
         WHERE d.collection_id = $1 AND d.owner = $2 AND rag.is_current(d.owner, d.owner_role)",
        vec![uuid(collection).into(), owner.into()],
        |row| row.require::<pgrx::Uuid>(1),
    )?;
    Ok(found.map(id))
}

/// Creates the domain of an owner in a collection under a given id, unless it exists; returns its id. Elevated.
pub(crate) fn ensure_domain(domain: Id, collection: Id, owner: &str) -> Result<Id> {
    let role = role_of_owner(owner)?;
    spi::run(
        "INSERT INTO rag.domain (id, collection_id, owner, owner_role) VALUES ($1, $2, $3, $4::oid::regrole)
         ON CONFLICT DO NOTHING",
        vec![uuid(domain).into(), uuid(collection).into(), owner.into(), role_number(role).into()],
    )?;
    let found = spi::read_latest_one(
        "SELECT id FROM rag.domain WHERE collection_id = $1 AND owner = $2 AND owner_role = $3::oid::regrole",
        vec![uuid(collection).into(), owner.into(), role_number(role).into()],
        |row| row.require::<pgrx::Uuid>(1),
    )?;
    found.map(id).ok_or_else(|| {
        Error::new(
            pgrx::PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "the collection was created by a concurrent transaction",
        )
        .hint("Retry the transaction.")
    })
}

/// A role's OID for SQL, which casts it to `oid`: as an `Oid`, 0 (for `public`) would become a null.
fn role_number(role: Oid) -> i64 {
    i64::from(role.to_u32())
}

fn role_of_owner(owner: &str) -> Result<Oid> {
    principal::existing_role(owner)
}

/// Adds or takes back a grant on the owner's domain. Elevated.
pub(crate) fn set_grant(
    collection: &Collection,
    domain: Id,
    principal_name: &str,
    privilege: &str,
    granted: bool,
) -> Result<()> {
    let owner_role = role_of_owner(&collection.owner)?;
    if granted {
        let role = principal::existing_role(principal_name)?;
        spi::run(
            "INSERT INTO rag.collection_grant AS g
                 (domain_id, collection_id, owner, owner_role, principal, principal_role, privilege, shared)
             VALUES ($1, $2, $3, $4::oid::regrole, $5, $6::oid::regrole, $7, $8)
             ON CONFLICT (domain_id, principal, privilege) DO UPDATE SET principal_role = excluded.principal_role",
            vec![
                uuid(domain).into(),
                uuid(collection.id).into(),
                collection.owner.clone().into(),
                role_number(owner_role).into(),
                principal_name.into(),
                role_number(role).into(),
                privilege.into(),
                collection.shared.into(),
            ],
        )
    } else {
        spi::run(
            "DELETE FROM rag.collection_grant WHERE domain_id = $1 AND principal = $2 AND privilege = $3",
            vec![uuid(domain).into(), principal_name.into(), privilege.into()],
        )
    }
}

/// Takes a domain into a principal's unnamed searches. Elevated.
pub(crate) fn accept(domain: Id, principal_name: &str) -> Result<()> {
    let role = principal::existing_role(principal_name)?;
    spi::run(
        "INSERT INTO rag.accepted_collection AS a (domain_id, principal, principal_role) VALUES ($1, $2, $3::oid::regrole)
         ON CONFLICT (domain_id, principal) DO UPDATE SET principal_role = excluded.principal_role",
        vec![uuid(domain).into(), principal_name.into(), role_number(role).into()],
    )
}

/// Collections that the caller owns; `everything` is for `rag_ext.all_domains`.
pub(crate) fn owned(everything: bool) -> Result<Vec<Id>> {
    spi::read_latest(
        "SELECT c.id FROM rag.collection c
         WHERE $2 OR c.owner = ANY ($1) AND rag.is_current(c.owner, c.owner_role)",
        vec![current_principals()?.into(), everything.into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )
}

/// The caller's own domains in collections of others; with an id, in this collection.
pub(crate) fn domains_elsewhere(collection: Option<Id>) -> Result<Vec<Id>> {
    spi::read_latest(
        "SELECT d.id FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE d.owner = ANY ($1) AND rag.is_current(d.owner, d.owner_role)
           AND NOT (c.owner = ANY ($1) AND rag.is_current(c.owner, c.owner_role))
           AND ($2 IS NULL OR c.id = $2)",
        vec![current_principals()?.into(), collection.map(uuid).into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )
}

/// The domain of a collection's owner in it. Elevated.
pub(crate) fn owners_domain(collection: Id) -> Result<Vec<Id>> {
    spi::read_latest(
        "SELECT d.id FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE c.id = $1 AND d.owner = c.owner AND d.owner_role = c.owner_role",
        vec![uuid(collection).into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )
}

/// Holds back, or lets go on, the work of collections and of single domains; returns how many changed. Elevated.
pub(crate) fn set_paused(collections: &[Id], domains: &[Id], paused: bool) -> Result<i64> {
    let changed = spi::execute(
        "WITH c AS (
             UPDATE rag.collection SET paused_at = CASE WHEN $3 THEN clock_timestamp() END
             WHERE id = ANY ($1) AND (paused_at IS NULL) = $3 RETURNING 1
         ), d AS (
             UPDATE rag.domain SET paused_at = CASE WHEN $3 THEN clock_timestamp() END
             WHERE id = ANY ($2) AND (paused_at IS NULL) = $3 RETURNING 1
         )
         SELECT 1 FROM c UNION ALL SELECT 1 FROM d",
        vec![
            super::uuids(collections.iter().copied()).into(),
            super::uuids(domains.iter().copied()).into(),
            paused.into(),
        ],
        |_| Ok(()),
    )?;
    Ok(changed.len() as i64)
}

/// Sets the place of a domain among those of its owner. Elevated.
pub(crate) fn set_priority(domain: Id, priority: i32) -> Result<()> {
    spi::run(
        "UPDATE rag.domain SET priority = $2 WHERE id = $1 AND priority <> $2",
        vec![uuid(domain).into(), priority.into()],
    )
}

/// Deletes a collection: what is in it is gone for everybody with the commit. Elevated.
pub(crate) fn delete(collection: Id) -> Result<()> {
    spi::run("DELETE FROM rag.collection WHERE id = $1", vec![uuid(collection).into()])
}
