//! What somebody does in a world that may be refused, and what comes of it by the model.

use super::step::{ACRONYM, Action, KINDS, NAMES, Outcome, collections, picked, policy_name, text};
use super::world::{Caller, Document, Grant, Meaning, PUBLIC, Principal, Table, World};
use rag_tests::literal;

pub(super) fn create(world: &mut World, who: Caller, name: usize, is_shared: bool) -> Vec<Action> {
    let name = NAMES[name % NAMES.len()];
    let outcome = match world.owner(who) {
        None => Outcome::Refused("42501"),
        Some(me) => {
            let exists = world.collections.iter().any(|c| !c.is_dropped && c.owner == me && c.name == name);
            if exists {
                Outcome::Refused("42710")
            } else {
                world.create(name, &me, is_shared, None);
                Outcome::Done(1)
            }
        }
    };
    vec![Action {
        by: Some(who),
        sql: format!("SELECT rag_create_collection('{name}', shared => {is_shared})"),
        outcome,
    }]
}

pub(super) fn put(
    world: &mut World,
    who: Caller,
    number: usize,
    words: Vec<&'static str>,
    kind: &'static str,
) -> Vec<Action> {
    let me = world.owner(who);
    let all = collections(world, false);
    // Their own default, one of those that there are by its full name, or by its bare one.
    let (name, qualifier, bare) = match picked(&all, number / 3).filter(|_| number % 8 > 1) {
        None => ("default".to_owned(), None, "default".to_owned()),
        Some(at) => {
            let found = &world.collections[*at];
            if !world.is_current(&found.owner) {
                return vec![];
            }
            match number % 3 {
                0 => (found.name.clone(), None, found.name.clone()),
                _ => (found.full_name(), Some(found.owner.text.clone()), found.name.clone()),
            }
        }
    };
    let label = world.documents.len();
    let year = 2000 + label as i32;
    let sql = format!(
        "INSERT INTO rag.document (collection, uri, content, metadata)
         VALUES ({}, 'doc{label}x', {}, '{{\"kind\": \"{kind}\", \"year\": {year}}}')",
        literal(&name),
        literal(&text(label, &words, kind))
    );
    let outcome = match me {
        None => Err("42501"),
        Some(me) => target(world, who, &me, qualifier.as_deref(), &bare),
    };
    let outcome = match outcome {
        Ok(domain) => {
            world.documents.push(Document { domain, words, kind, year, is_deleted: false });
            Outcome::Done(1)
        }
        Err(code) => Outcome::Refused(code),
    };
    vec![Action { by: Some(who), sql, outcome }]
}

/// The domain that a document of `me` in a collection goes to.
fn target(
    world: &mut World,
    who: Caller,
    me: &Principal,
    qualifier: Option<&str>,
    bare: &str,
) -> Result<usize, &'static str> {
    let own = (0..world.collections.len()).find(|c| {
        let collection = &world.collections[*c];
        collection.name == bare && collection.owner == *me && !collection.is_dropped
    });
    let meant = match own.filter(|_| qualifier.is_none_or(|q| q == me.text)) {
        Some(own) => Meaning::Collection(own),
        // Everybody has a default of their own.
        None if bare == "default" && qualifier.is_none_or(|q| q == me.text) => Meaning::NoDefault,
        None => world.meaning(who, qualifier, bare),
    };
    match meant {
        Meaning::NoDefault if qualifier.is_none_or(|q| q == me.text) => {
            let made = world.create("default", me, false, None);
            Ok(world.domain(made, me))
        }
        Meaning::NoDefault | Meaning::Nothing => Err("42704"),
        Meaning::Ambiguous => Err("22023"),
        Meaning::Collection(at) => {
            let may_write = world.owns(who, at) || world.is_granted_writing(who, at);
            match () {
                () if !may_write => Err("42501"),
                () if world.collections[at].is_shared => {
                    let owner = world.collections[at].owner.clone();
                    Ok(world.domain(at, &owner))
                }
                () => Ok(world.domain(at, me)),
            }
        }
    }
}

pub(super) fn grant(
    world: &mut World,
    who: usize,
    callers: &[Caller],
    number: usize,
    to: usize,
    is_for_writing: bool,
) -> Vec<Action> {
    let Some(at) = picked(&collections(world, false), number).copied() else { return vec![] };
    let collection = world.collections[at].clone();
    if !world.is_current(&collection.owner) {
        return vec![];
    }
    // Somebody at random, but most often its owner; to everybody, a superuser.
    let owners: Vec<Caller> =
        callers.iter().copied().filter(|c| world.owner(*c).as_ref() == Some(&collection.owner)).collect();
    let by = match who % 4 {
        0 => callers[who / 4 % callers.len()],
        _ => match owners.first() {
            Some(owner) => *owner,
            None => return vec![],
        },
    };
    let others: Vec<Principal> = callers.iter().filter_map(|c| world.owner(*c)).collect();
    let is_public = to.is_multiple_of(12);
    let principal = match is_public {
        true => Principal { text: PUBLIC.to_owned(), role: None },
        false => others[to / 12 % others.len()].clone(),
    };
    let outcome = match () {
        () if is_public => Outcome::Done(1),
        () if world.owner(by).is_none() => Outcome::Refused("42501"),
        () if world.owns(by, at) => Outcome::Done(1),
        () if world.can_name(by, at) => Outcome::Refused("42501"),
        () => Outcome::Refused("42704"),
    };
    if outcome == Outcome::Done(1) {
        let grant = Grant { collection: at, principal: principal.clone(), is_for_writing };
        world.grants.retain(|g| *g != grant);
        world.grants.push(grant);
    }
    let privilege = if is_for_writing { "write" } else { "read" };
    vec![Action {
        by: (!is_public).then_some(by),
        sql: format!(
            "SELECT rag_grant({}, {}, '{privilege}')",
            literal(&collection.full_name()),
            literal(&principal.text)
        ),
        outcome,
    }]
}

pub(super) fn accept(world: &mut World, who: Caller, number: usize) -> Vec<Action> {
    let all: Vec<usize> =
        (0..world.collections.len()).filter(|c| !world.collections[*c].is_dropped).collect();
    let Some(at) = picked(&all, number).copied() else { return vec![] };
    let collection = world.collections[at].clone();
    let shown = (0..world.domains.len()).find(|d| {
        let domain = &world.domains[*d];
        domain.collection == at
            && domain.owner == collection.owner
            && world.reads(who, *d)
            && world.can_name(who, at)
            && !world.owns(who, at)
    });
    let outcome = match (world.owner(who), shown) {
        (None, _) => Outcome::Refused("42501"),
        (Some(_), None) => Outcome::Refused("42704"),
        (Some(me), Some(domain)) => {
            world.accepted.retain(|known| *known != (domain, me.clone()));
            world.accepted.push((domain, me));
            Outcome::Done(1)
        }
    };
    let sql = format!("SELECT rag_accept({}, '{}')", literal(&collection.owner.text), collection.name);
    vec![Action { by: Some(who), sql, outcome }]
}

pub(super) fn give_acronym(world: &mut World, who: Caller, number: usize) -> Vec<Action> {
    let Some(at) = picked(&collections(world, false), number).copied() else { return vec![] };
    let collection = world.collections[at].clone();
    if !world.is_current(&collection.owner) {
        return vec![];
    }
    let outcome = match () {
        () if world.owner(who).is_none() => Outcome::Refused("42501"),
        () if world.owns(who, at) => {
            world.acronyms.insert(at);
            Outcome::Done(1)
        }
        () if world.can_name(who, at) => Outcome::Refused("42501"),
        () => Outcome::Refused("42704"),
    };
    let name = literal(&collection.full_name());
    let sql = format!("SELECT rag_set_acronym({name}, '{ACRONYM}', 'ordinary box of xylem')");
    vec![Action { by: Some(who), sql, outcome }]
}

/// A role gets another name, and what was its under the old one follows when the administrator says so.
pub(super) fn rename(world: &mut World, role: usize) -> Vec<Action> {
    if world.roles[role].is_gateway {
        return vec![];
    }
    let old = world.roles[role].name.clone();
    let new = format!("{old}x");
    world.roles[role].name.clone_from(&new);
    let stored = (world.collections.iter_mut().map(|c| &mut c.owner))
        .chain(world.domains.iter_mut().map(|d| &mut d.owner))
        .chain(world.grants.iter_mut().map(|g| &mut g.principal))
        .chain(world.accepted.iter_mut().map(|(_, p)| p))
        .chain(world.said.iter_mut().map(|said| &mut said.owner));
    for principal in stored.filter(|p| p.text == format!("role:{old}")) {
        principal.text = format!("role:{new}");
    }
    // The record of a policy has its roles by name.
    let mut sql = format!("ALTER ROLE {old} RENAME TO {new}; SELECT rag_enable('{new}')");
    for policy in world.policies.iter().filter(|p| p.role == Some(role)) {
        sql += &format!("; SELECT rag_record_policy('rag.{}', '{}')", policy.table, policy_name(policy));
    }
    vec![Action { by: None, sql, outcome: Outcome::Done(0) }]
}

pub(super) fn attach(world: &mut World, role: usize, hides: bool) -> Vec<Action> {
    let who = Caller { role, user: None };
    let Some(me) = world.owner(who).filter(|_| !world.roles[role].is_gateway) else { return vec![] };
    let number = world.collections.len();
    let name = format!("t{number}_{}", world.roles[role].name);
    let hides = hides.then_some(KINDS[1]);
    let table = Table { name: name.clone(), owner: role, readers: Default::default(), hides };
    world.create(&name, &me, false, Some(table));
    let policy = match hides {
        None => String::new(),
        Some(kind) => format!(
            "; ALTER TABLE {name} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {name} USING (kind <> '{kind}')"
        ),
    };
    let sql = format!(
        "CREATE TABLE {name} (id int PRIMARY KEY, kind text, body text){policy};
         SELECT rag_attach('{name}', content => ARRAY['body'], metadata => ARRAY['kind'])"
    );
    vec![Action { by: Some(who), sql, outcome: Outcome::Done(0) }]
}
