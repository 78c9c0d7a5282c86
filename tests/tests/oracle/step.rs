//! What may happen in a world: drawn at random, done to the database, and told to the model, which says how it ends.
//!
//! A step names what it touches by numbers that are taken modulo what there is, so that a world makes sense without any
//! of its steps: those that a disagreement does not need are dropped.

use super::deed::{accept, attach, create, give_acronym, grant, put, rename};
use super::world::{Caller, Document, PUBLIC, Policy, Principal, Role, World};
use rag_tests::{Random, literal};

/// Words that documents may hold; none is another's stem.
pub(crate) const WORDS: [&str; 6] = ["rope", "lamp", "boat", "garden", "hammer", "violin"];
pub(crate) const KINDS: [&str; 3] = ["plain", "secret", "draft"];
/// What owners of collections may give a meaning.
pub(crate) const ACRONYM: &str = "OBX";
pub(super) const NAMES: [&str; 3] = ["default", "plans", "wiki"];

/// Roles 0 to 3 are plain, 4 is a gateway.
const PLAIN_ROLES: usize = 4;
pub(crate) const GATEWAY: usize = 4;

/// How a step ends: rows that it changed, or the SQLSTATE by which it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(u64),
    /// So many rows, and some of what is being cleared away at the time.
    Within(u64, u64),
    Refused(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create { who: usize, name: usize, is_shared: bool },
    Put { who: usize, collection: usize, word: usize, other: usize, kind: usize },
    Change { who: usize, document: usize, word: usize },
    Delete { who: usize, document: usize },
    Grant { who: usize, collection: usize, to: usize, is_for_writing: bool },
    Revoke { grant: usize },
    Accept { who: usize, collection: usize },
    Forget { who: usize },
    Join { member: usize, of: usize },
    Leave { member: usize, of: usize },
    Rename { role: usize },
    Register { role: usize },
    Hide { table: usize, from: usize, kind: usize },
    Unhide { policy: usize },
    Attach { role: usize, hides: bool },
    Open { table: usize, to: usize },
    Close { table: usize, to: usize },
    PutRow { table: usize, word: usize, kind: usize },
    DeleteRow { document: usize },
    Drop { who: usize, collection: usize },
    GiveAcronym { who: usize, collection: usize },
}

/// One statement and who runs it; `None`: a superuser.
pub(crate) struct Action {
    pub(crate) by: Option<Caller>,
    pub(crate) sql: String,
    pub(crate) outcome: Outcome,
}

/// Everybody who may ask.
pub(crate) fn callers(world: &World) -> Vec<Caller> {
    let mut callers = Vec::new();
    for (role, found) in world.roles.iter().enumerate() {
        callers.push(Caller { role, user: None });
        if found.is_gateway {
            callers.extend([1, 2].map(|user| Caller { role, user: Some(user) }));
        }
    }
    callers
}

/// Roles of a new world; the number keeps their names apart.
pub(crate) fn roles(random: &mut Random, number: u64) -> Vec<Role> {
    (0..=PLAIN_ROLES)
        .map(|role| Role {
            name: format!("w{number}_{}", ["ann", "bob", "eve", "team", "app"][role]),
            inherits: random.below(4) > 0,
            is_gateway: role == GATEWAY,
            member_of: Default::default(),
        })
        .collect()
}

/// Steps of a new world. A calm one neither changes nor deletes, so that its keyword statistics are of what is there.
pub(crate) fn steps(random: &mut Random, is_calm: bool) -> Vec<Step> {
    let count = 15 + random.below(30);
    (0..count).map(|_| step(random, is_calm)).collect()
}

fn step(random: &mut Random, is_calm: bool) -> Step {
    let any = 1 << 20;
    let drawn = random.below(100);
    let mut n = || random.below(any);
    match drawn {
        0..8 => Step::Create { who: n(), name: n(), is_shared: n() % 2 == 0 },
        8..40 => Step::Put { who: n(), collection: n(), word: n(), other: n(), kind: n() },
        40..44 if !is_calm => Step::Change { who: n(), document: n(), word: n() },
        44..48 if !is_calm => Step::Delete { who: n(), document: n() },
        40..62 => Step::Grant { who: n(), collection: n(), to: n(), is_for_writing: n() % 3 == 0 },
        62 => Step::GiveAcronym { who: n(), collection: n() },
        63..65 => Step::Revoke { grant: n() },
        65..71 => Step::Accept { who: n(), collection: n() },
        71 => Step::Forget { who: n() },
        72..76 => Step::Join { member: n(), of: n() },
        76 => Step::Leave { member: n(), of: n() },
        77..79 => Step::Rename { role: n() },
        79 => Step::Register { role: n() },
        80..83 => Step::Hide { table: n(), from: n(), kind: n() },
        83 => Step::Unhide { policy: n() },
        84..87 => Step::Attach { role: n(), hides: n() % 2 == 0 },
        87..90 => Step::Open { table: n(), to: n() },
        90 => Step::Close { table: n(), to: n() },
        91..97 => Step::PutRow { table: n(), word: n(), kind: n() },
        97 if !is_calm => Step::DeleteRow { document: n() },
        98 if !is_calm => Step::Drop { who: n(), collection: n() },
        99 => Step::GiveAcronym { who: n(), collection: n() },
        _ => Step::Put { who: n(), collection: n(), word: n(), other: n(), kind: n() },
    }
}

/// What a document says; its number tells it apart.
pub(crate) fn text(label: usize, words: &[&str], kind: &str) -> String {
    let graph = "By FC-001-234 log_level requires log_file, as a service level agreement (SLA) has it.";
    format!("Note doc{label}x of kind {kind} about {}. {graph}", words.join(" and "))
}

pub(super) fn picked<T>(from: &[T], number: usize) -> Option<&T> {
    if from.is_empty() { None } else { Some(&from[number % from.len()]) }
}

/// Numbers of the collections that are there, those of tables apart.
pub(super) fn collections(world: &World, are_attached: bool) -> Vec<usize> {
    let all = 0..world.collections.len();
    all.filter(|c| {
        let collection = &world.collections[*c];
        !collection.is_dropped && collection.table.is_some() == are_attached
    })
    .collect()
}

/// Does a step to the model, and says what is to be done to the database. Nothing where there is nothing to do it to.
pub(crate) fn apply(world: &mut World, step: &Step) -> Vec<Action> {
    let callers = callers(world);
    let caller = |who: usize| callers[who % callers.len()];
    let one = |by, sql: String, outcome| vec![Action { by, sql, outcome }];
    let admin = |sql: String| vec![Action { by: None, sql, outcome: Outcome::Done(0) }];
    match *step {
        Step::Create { who, name, is_shared } => create(world, caller(who), name, is_shared),
        Step::Put { who, collection, word, other, kind } => {
            let words = match other % 2 {
                0 => vec![WORDS[word % WORDS.len()]],
                _ => vec![WORDS[word % WORDS.len()], WORDS[other / 2 % WORDS.len()]],
            };
            put(world, caller(who), collection, words, KINDS[kind % KINDS.len()])
        }
        Step::Change { who, document, word } => {
            let who = caller(who);
            let Some(at) = live(world, document) else { return vec![] };
            let is_his = world.shown_in(who, "document").contains(&at);
            let found = &world.documents[at];
            let words = vec![WORDS[word % WORDS.len()]];
            let changes = is_his && world.writes(who, found.domain);
            let sql = format!(
                "UPDATE rag.document SET content = {} WHERE uri = 'doc{at}x'",
                literal(&text(at, &words, found.kind))
            );
            if changes {
                world.documents[at].words = words;
            }
            one(Some(who), sql, Outcome::Done(u64::from(changes)))
        }
        Step::Delete { who, document } => {
            let who = caller(who);
            let Some(at) = live(world, document) else { return vec![] };
            let is_his = world.shown_in(who, "document").contains(&at);
            let deletes = is_his && world.writes(who, world.documents[at].domain);
            if deletes {
                world.delete(at);
            }
            let sql = format!("DELETE FROM rag.document WHERE uri = 'doc{at}x'");
            one(Some(who), sql, Outcome::Done(u64::from(deletes)))
        }
        Step::Grant { who, collection, to, is_for_writing } => {
            grant(world, who, &callers, collection, to, is_for_writing)
        }
        Step::Revoke { grant } => {
            let Some(found) = picked(&world.grants, grant).cloned() else { return vec![] };
            let collection = &world.collections[found.collection];
            if collection.is_dropped || !world.is_current(&collection.owner) {
                return vec![];
            }
            world.grants.retain(|g| *g != found);
            let privilege = if found.is_for_writing { "write" } else { "read" };
            admin(format!(
                "SELECT rag_revoke({}, {}, '{privilege}')",
                literal(&collection.full_name()),
                literal(&found.principal.text)
            ))
        }
        Step::Accept { who, collection } => accept(world, caller(who), collection),
        Step::Forget { who } => {
            let who = caller(who);
            let mine = world.principals(who);
            let is_live = |(domain, _): &&(usize, Principal)| {
                !world.collections[world.domains[*domain].collection].is_dropped
            };
            let is_mine = |(_, p): &&(usize, Principal)| mine.contains(p);
            let all = world.accepted.iter().filter(is_mine).count() as u64;
            let live = world.accepted.iter().filter(is_mine).filter(is_live).count() as u64;
            world.accepted.retain(|(_, p)| !mine.contains(p));
            one(Some(who), "DELETE FROM rag.accepted_collection".to_owned(), Outcome::Within(live, all))
        }
        Step::Join { member, of } => {
            // Downwards only, so that nobody becomes a member of themselves.
            let (member, of) = (member % world.roles.len(), of % world.roles.len());
            if member == of || world.memberships(of).contains(&member) {
                return vec![];
            }
            world.roles[member].member_of.insert(of);
            admin(format!("GRANT {} TO {}", world.roles[of].name, world.roles[member].name))
        }
        Step::Leave { member, of } => {
            let member = member % world.roles.len();
            let known: Vec<usize> = world.roles[member].member_of.iter().copied().collect();
            let Some(of) = picked(&known, of) else { return vec![] };
            world.roles[member].member_of.remove(of);
            admin(format!("REVOKE {} FROM {}", world.roles[*of].name, world.roles[member].name))
        }
        Step::Rename { role } => rename(world, role % PLAIN_ROLES),
        Step::Register { role } => {
            // Of one who owns nothing yet: whether a role's former documents are a gateway's is not to be found out here.
            let role = role % PLAIN_ROLES;
            let owns =
                world.collections.iter().map(|c| &c.owner).chain(world.domains.iter().map(|d| &d.owner));
            if owns.into_iter().any(|p| p.role == Some(role)) {
                return vec![];
            }
            let name = world.roles[role].name.clone();
            world.roles[role].is_gateway ^= true;
            let call =
                if world.roles[role].is_gateway { "rag_register_gateway" } else { "rag_unregister_gateway" };
            admin(format!("SELECT {call}('{name}')"))
        }
        Step::Hide { table, from, kind } => {
            let policy = Policy {
                table: ["document", "chunk"][table % 2],
                role: Some(from % (world.roles.len() + 1)).filter(|r| *r < world.roles.len()),
                hides: KINDS[kind % KINDS.len()],
            };
            let roles = policy.role.map_or(PUBLIC, |role| &world.roles[role].name);
            let name = policy_name(&policy);
            if world.policies.iter().any(|p| policy_name(p) == name) {
                return vec![];
            }
            let condition = match policy.table {
                "document" => format!("metadata ->> 'kind' IS DISTINCT FROM '{}'", policy.hides),
                _ => format!("content !~ 'kind {}'", policy.hides),
            };
            let sql = format!(
                "SELECT rag_add_policy('rag.{}', '{name}', {}, command => 'select', roles => '{{{roles}}}')",
                policy.table,
                literal(&condition)
            );
            world.policies.push(policy);
            admin(sql)
        }
        Step::Unhide { policy } => {
            let Some(found) = picked(&world.policies, policy).cloned() else { return vec![] };
            let name = policy_name(&found);
            world.policies.retain(|p| policy_name(p) != name);
            admin(format!("SELECT rag_drop_policy('rag.{}', '{name}')", found.table))
        }
        Step::Attach { role, hides } => attach(world, role % PLAIN_ROLES, hides),
        Step::Open { table, to } | Step::Close { table, to } => {
            let Some(at) = picked(&collections(world, true), table).copied() else { return vec![] };
            let to = to % world.roles.len();
            let name = world.roles[to].name.clone();
            let Some(table) = &mut world.collections[at].table else { return vec![] };
            let opens = matches!(step, Step::Open { .. });
            let sql = match opens {
                true => format!("GRANT SELECT ON {} TO {name}", table.name),
                false => format!("REVOKE SELECT ON {} FROM {name}", table.name),
            };
            match opens {
                true => table.readers.insert(to),
                // The owner's own privilege is not taken from them here.
                false if to == table.owner => return vec![],
                false => table.readers.remove(&to),
            };
            admin(sql)
        }
        Step::PutRow { table, word, kind } => {
            let Some(at) = picked(&collections(world, true), table).copied() else { return vec![] };
            let (words, kind) = (vec![WORDS[word % WORDS.len()]], KINDS[kind % KINDS.len()]);
            let label = world.documents.len();
            let owner = world.collections[at].owner.clone();
            let domain = world.domain(at, &owner);
            let Some(table) = &world.collections[at].table else { return vec![] };
            let sql = format!(
                "INSERT INTO {} VALUES ({label}, '{kind}', {})",
                table.name,
                literal(&text(label, &words, kind))
            );
            world.documents.push(Document { domain, words, kind, year: 0, is_deleted: false });
            admin(sql)
        }
        Step::DeleteRow { document } => {
            let of_tables = |d: &usize| {
                let found = &world.documents[*d];
                !found.is_deleted && world.collections[world.domains[found.domain].collection].table.is_some()
            };
            let all: Vec<usize> = (0..world.documents.len()).filter(of_tables).collect();
            let Some(at) = picked(&all, document).copied() else { return vec![] };
            let collection = &world.collections[world.domains[world.documents[at].domain].collection];
            let Some(table) = collection.table.as_ref().filter(|_| !collection.is_dropped) else {
                return vec![];
            };
            let sql = format!("DELETE FROM {} WHERE id = {at}", table.name);
            world.delete(at);
            admin(sql)
        }
        Step::GiveAcronym { who, collection } => give_acronym(world, caller(who), collection),
        Step::Drop { who, collection } => {
            let who = caller(who);
            let Some(at) = picked(&collections(world, false), collection).copied() else { return vec![] };
            let found = &world.collections[at];
            let sql = format!(
                "DELETE FROM rag.collection WHERE owner = {} AND name = '{}'",
                literal(&found.owner.text),
                found.name
            );
            let is_own = world.owns(who, at);
            world.collections[at].is_dropped |= is_own;
            world.acronyms.retain(|given| !(is_own && *given == at));
            world.grants.retain(|g| !(is_own && g.collection == at));
            one(Some(who), sql, Outcome::Done(u64::from(is_own)))
        }
    }
}

pub(crate) fn policy_name(policy: &Policy) -> String {
    let role = policy.role.map_or(PUBLIC.to_owned(), |role| role.to_string());
    format!("hides_{}_{role}_{}", policy.table, policy.hides)
}

/// A document that is not one of a table's.
fn live(world: &World, document: usize) -> Option<usize> {
    let all: Vec<usize> = (0..world.documents.len())
        .filter(|d| {
            let found = &world.documents[*d];
            let collection = &world.collections[world.domains[found.domain].collection];
            !found.is_deleted && !collection.is_dropped && collection.table.is_none()
        })
        .collect();
    picked(&all, document).copied()
}
