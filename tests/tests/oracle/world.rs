//! The rights model, by brute force: who sees what, from lists of what was done and nothing else. Principals and
//! owners are kept as the text that was current when something was stored, with the role behind it.

use std::collections::BTreeSet;

/// A database role.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) name: String,
    /// Whether memberships that are granted to it are inherited.
    pub(crate) inherits: bool,
    pub(crate) is_gateway: bool,
    /// Roles that it is a member of.
    pub(crate) member_of: BTreeSet<usize>,
}

/// Who asks: a role, for a user if it is a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Caller {
    pub(crate) role: usize,
    pub(crate) user: Option<u8>,
}

/// A principal as it was stored. Without a role: everybody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Principal {
    pub(crate) text: String,
    pub(crate) role: Option<usize>,
}

/// A table that a collection follows.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// The role that has made it.
    pub(crate) owner: usize,
    pub(crate) readers: BTreeSet<usize>,
    /// What its own policy hides from all but the owner.
    pub(crate) hides: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) name: String,
    pub(crate) owner: Principal,
    pub(crate) is_shared: bool,
    pub(crate) table: Option<Table>,
    pub(crate) is_dropped: bool,
}

impl Collection {
    /// As anybody may write it.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner.text, self.name)
    }
}

/// Documents of one owner in one collection.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub(crate) collection: usize,
    pub(crate) owner: Principal,
}

#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) domain: usize,
    pub(crate) words: Vec<&'static str>,
    pub(crate) kind: &'static str,
    pub(crate) year: i32,
    pub(crate) is_deleted: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grant {
    pub(crate) collection: usize,
    pub(crate) principal: Principal,
    pub(crate) is_for_writing: bool,
}

/// What an administrator hides: documents of this kind, from these roles or from everybody.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) table: &'static str,
    pub(crate) role: Option<usize>,
    pub(crate) hides: &'static str,
}

/// What somebody said of a chunk, by the ids that the database gave them.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) owner: Principal,
    pub(crate) document: usize,
    pub(crate) document_id: String,
    pub(crate) chunk: String,
    pub(crate) query: String,
    /// -1 or 1; 0 takes back what was said.
    pub(crate) verdict: i32,
}

/// All that was done so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) roles: Vec<Role>,
    pub(crate) collections: Vec<Collection>,
    pub(crate) domains: Vec<Domain>,
    pub(crate) documents: Vec<Document>,
    pub(crate) grants: Vec<Grant>,
    /// Domain, and who has accepted it.
    pub(crate) accepted: Vec<(usize, Principal)>,
    pub(crate) policies: Vec<Policy>,
    pub(crate) said: Vec<Said>,
    /// Collections whose owner has given the acronym.
    pub(crate) acronyms: BTreeSet<usize>,
}

pub(crate) const PUBLIC: &str = "public";

/// What a name means to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Collection(usize),
    /// Their collection `default`, which is not there yet.
    NoDefault,
    Nothing,
    Ambiguous,
}

impl World {
    /// Roles whose rights a role has: itself, and what it inherits.
    pub(crate) fn acts_as(&self, role: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([role]);
        let mut open = vec![role];
        while let Some(role) = open.pop() {
            if self.roles[role].inherits {
                open.extend(self.roles[role].member_of.iter().copied().filter(|r| found.insert(*r)));
            }
        }
        found
    }

    /// All that a role is a member of, inherited or not.
    pub(crate) fn memberships(&self, role: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([role]);
        let mut open = vec![role];
        while let Some(role) = open.pop() {
            open.extend(self.roles[role].member_of.iter().copied().filter(|r| found.insert(*r)));
        }
        found
    }

    /// Whom a caller acts as.
    pub(crate) fn principals(&self, caller: Caller) -> Vec<Principal> {
        let named = |role: usize, text: String| Principal { text, role: Some(role) };
        if self.roles[caller.role].is_gateway {
            let gateway = &self.roles[caller.role].name;
            return caller
                .user
                .iter()
                .map(|user| named(caller.role, format!("user:{gateway}/{user}")))
                .collect();
        }
        let roles = self.acts_as(caller.role).into_iter();
        roles.map(|role| named(role, format!("role:{}", self.roles[role].name))).collect()
    }

    /// Owner of what they create.
    pub(crate) fn owner(&self, caller: Caller) -> Option<Principal> {
        self.principals(caller).into_iter().find(|p| p.role == Some(caller.role))
    }

    /// Whether something stored is one of the caller's principals, under the name that it still has.
    fn is_his(&self, caller: Caller, stored: &Principal) -> bool {
        self.principals(caller).contains(stored)
    }

    /// What they have said.
    pub(crate) fn own_words(&self, caller: Caller) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(move |said| self.is_his(caller, &said.owner))
    }

    /// The last word counts.
    pub(crate) fn hear(&mut self, new: Said) {
        let is_former =
            |said: &Said| (&said.owner, &said.chunk, &said.query) == (&new.owner, &new.chunk, &new.query);
        self.said.retain(|said| !is_former(said));
        if new.verdict != 0 {
            self.said.push(new);
        }
    }

    /// A document is deleted, and what was said of it with it.
    pub(crate) fn delete(&mut self, document: usize) {
        self.documents[document].is_deleted = true;
        self.said.retain(|said| said.document != document);
    }

    /// Whether a document's collection is gone.
    pub(crate) fn is_dropped(&self, document: usize) -> bool {
        self.collections[self.domains[self.documents[document].domain].collection].is_dropped
    }

    /// Collections of the domains that a search of a collection, or without a name, goes over.
    pub(crate) fn collections_in_scope(&self, caller: Caller, collection: Option<usize>) -> BTreeSet<usize> {
        let domains = (0..self.domains.len()).filter(|d| self.is_in_scope(caller, *d, collection));
        domains.map(|d| self.domains[d].collection).collect()
    }

    fn is_in_scope(&self, caller: Caller, domain: usize, collection: Option<usize>) -> bool {
        let within = self.domains[domain].collection;
        let is_attached = self.collections[within].table.is_some();
        let is_meant = match collection {
            Some(named) => named == within,
            None => {
                self.owns(caller, within)
                    || !is_attached && self.is_his(caller, &self.domains[domain].owner)
                    || self.has_accepted(caller, domain)
            }
        };
        is_meant && self.can_name(caller, within) && self.reads(caller, domain)
    }

    /// Whether the name still belongs to the role.
    pub(crate) fn is_current(&self, stored: &Principal) -> bool {
        let Some(role) = stored.role else { return true };
        let name = &self.roles[role].name;
        stored.text == format!("role:{name}") || stored.text.starts_with(&format!("user:{name}/"))
    }

    fn grants_to(&self, caller: Caller) -> impl Iterator<Item = &Grant> {
        let is_nobody = self.principals(caller).is_empty();
        self.grants.iter().filter(move |g| {
            let is_meant = g.principal.role.is_none() || self.is_his(caller, &g.principal);
            !is_nobody && is_meant && !self.collections[g.collection].is_dropped
        })
    }

    pub(crate) fn owns(&self, caller: Caller, collection: usize) -> bool {
        let collection = &self.collections[collection];
        !collection.is_dropped && self.is_his(caller, &collection.owner)
    }

    /// Whether they may read the table behind a collection, by the privileges of the database.
    fn may_read_table(&self, caller: Caller, table: &Table) -> bool {
        let acts_as = self.acts_as(caller.role);
        acts_as.contains(&table.owner) || !acts_as.is_disjoint(&table.readers)
    }

    /// Whether they can name a collection by its owner.
    pub(crate) fn can_name(&self, caller: Caller, collection: usize) -> bool {
        if self.principals(caller).is_empty() || self.collections[collection].is_dropped {
            return false;
        }
        let table = self.collections[collection].table.as_ref();
        self.owns(caller, collection)
            || self.grants_to(caller).any(|g| g.collection == collection)
            || table.is_some_and(|table| self.may_read_table(caller, table))
    }

    /// Whether a grant lets them write.
    pub(crate) fn is_granted_writing(&self, caller: Caller, collection: usize) -> bool {
        self.grants_to(caller).any(|g| g.collection == collection && g.is_for_writing)
    }

    fn is_owners_domain(&self, domain: usize) -> bool {
        let domain = &self.domains[domain];
        domain.owner == self.collections[domain.collection].owner
    }

    /// Whether they may read a domain at all.
    pub(crate) fn reads(&self, caller: Caller, domain: usize) -> bool {
        let collection = self.domains[domain].collection;
        if self.collections[collection].is_dropped || self.principals(caller).is_empty() {
            return false;
        }
        if self.collections[collection].table.is_some() {
            return self.can_name(caller, collection);
        }
        let is_shown = |g: &Grant| {
            g.collection == collection && (!g.is_for_writing || self.collections[collection].is_shared)
        };
        self.is_his(caller, &self.domains[domain].owner)
            || self.is_owners_domain(domain) && self.grants_to(caller).any(is_shown)
    }

    /// Whether they are told what is about all rows of a domain: nobody is where a policy may hide some from somebody.
    pub(crate) fn reads_whole(&self, caller: Caller, domain: usize) -> bool {
        let is_attached = self.collections[self.domains[domain].collection].table.is_some();
        self.policies.is_empty() && !is_attached && self.reads(caller, domain)
    }

    /// A domain by its collection and owner.
    pub(crate) fn domain_name(&self, domain: usize) -> String {
        let Domain { collection, owner } = &self.domains[domain];
        format!("{} of {}", self.collections[*collection].full_name(), owner.text)
    }

    /// Whether they may change documents of a domain.
    pub(crate) fn writes(&self, caller: Caller, domain: usize) -> bool {
        let collection = self.domains[domain].collection;
        let is_open = &self.collections[collection];
        if is_open.is_dropped || is_open.table.is_some() {
            return false;
        }
        self.is_his(caller, &self.domains[domain].owner)
            || is_open.is_shared
                && self.is_owners_domain(domain)
                && self.is_granted_writing(caller, collection)
    }

    fn has_accepted(&self, caller: Caller, domain: usize) -> bool {
        self.accepted.iter().any(|(accepted, who)| *accepted == domain && self.is_his(caller, who))
    }

    /// Whether policies of administrators on a table hide a document from them.
    fn is_hidden(&self, caller: Caller, table: &str, document: usize) -> bool {
        let acts_as = self.acts_as(caller.role);
        self.policies.iter().any(|p| {
            p.table == table
                && p.hides == self.documents[document].kind
                && p.role.is_none_or(|role| acts_as.contains(&role))
        })
    }

    /// Documents that plain SQL shows them in a table, or a search that has named their collection.
    fn shows(&self, caller: Caller, document: usize, is_named: bool) -> bool {
        let found = &self.documents[document];
        if found.is_deleted || !self.reads(caller, found.domain) {
            return false;
        }
        let collection = self.domains[found.domain].collection;
        let Some(table) = &self.collections[collection].table else { return true };
        let is_trusted = is_named || self.owns(caller, collection) || self.has_accepted(caller, found.domain);
        let is_table_owner = self.acts_as(caller.role).contains(&table.owner);
        is_trusted
            && self.may_read_table(caller, table)
            && (is_table_owner || table.hides != Some(found.kind))
    }

    /// Documents whose rows in a table of the extension they see: what was made of a document is hidden with it.
    pub(crate) fn shown_in(&self, caller: Caller, table: &str) -> BTreeSet<usize> {
        let is_hidden = |d: usize| self.is_hidden(caller, table, d) || self.is_hidden(caller, "document", d);
        (0..self.documents.len()).filter(|d| self.shows(caller, *d, false) && !is_hidden(*d)).collect()
    }

    /// Documents of whose chunks they may speak: those shown to them, of collections that they can name. One that they
    /// wrote stays theirs when the right to write is taken back, and with it goes the collection.
    pub(crate) fn spoken_of(&self, caller: Caller) -> BTreeSet<usize> {
        let mut shown = self.shown_in(caller, "chunk");
        shown.retain(|d| self.can_name(caller, self.domains[self.documents[*d].domain].collection));
        shown
    }

    /// Documents that a search of a collection, or without a name, may find.
    pub(crate) fn searched(&self, caller: Caller, collection: Option<usize>) -> BTreeSet<usize> {
        self.in_scope(caller, collection)
            .into_iter()
            .filter(|d| !self.is_hidden(caller, "chunk", *d))
            .collect()
    }

    /// Documents that they see of those that a search of a collection, or without a name, goes over.
    pub(crate) fn in_scope(&self, caller: Caller, collection: Option<usize>) -> BTreeSet<usize> {
        let all = 0..self.documents.len();
        all.filter(|d| {
            self.is_in_scope(caller, self.documents[*d].domain, collection)
                && self.shows(caller, *d, collection.is_some())
                && !self.is_hidden(caller, "document", *d)
        })
        .collect()
    }

    /// What a bare name means, or one behind its owner.
    pub(crate) fn meaning(&self, caller: Caller, owner: Option<&str>, name: &str) -> Meaning {
        let me = self.owner(caller);
        let rank = |index: usize| {
            let collection = &self.collections[index];
            let is_accepted = (0..self.domains.len())
                .any(|d| self.domains[d].collection == index && self.has_accepted(caller, d));
            match () {
                () if self.owns(caller, index) && Some(&collection.owner) == me.as_ref() => Some(0),
                () if self.owns(caller, index) => Some(1),
                () if is_accepted && name != "default" => Some(2),
                () => owner.map(|_| 3),
            }
        };
        let named = (0..self.collections.len()).filter(|c| {
            let collection = &self.collections[*c];
            collection.name == name
                && owner.is_none_or(|owner| owner == collection.owner.text)
                && self.can_name(caller, *c)
        });
        let mut ranked: Vec<_> = named.filter_map(|c| Some((rank(c)?, c))).collect();
        ranked.sort_unstable();
        let is_own = owner.is_none_or(|owner| self.principals(caller).iter().any(|p| p.text == owner));
        match &ranked[..] {
            [] if name == "default" && is_own => Meaning::NoDefault,
            [] => Meaning::Nothing,
            [(one, _), (other, _), ..] if one == other => Meaning::Ambiguous,
            [(_, first), ..] => Meaning::Collection(*first),
        }
    }

    /// The domain of an owner in a collection, made if it is not there.
    pub(crate) fn domain(&mut self, collection: usize, owner: &Principal) -> usize {
        let known = self.domains.iter().position(|d| d.collection == collection && d.owner == *owner);
        known.unwrap_or_else(|| {
            self.domains.push(Domain { collection, owner: owner.clone() });
            self.domains.len() - 1
        })
    }

    /// A new collection of somebody's, with their domain in it.
    pub(crate) fn create(
        &mut self,
        name: &str,
        owner: &Principal,
        is_shared: bool,
        table: Option<Table>,
    ) -> usize {
        self.collections.push(Collection {
            name: name.to_owned(),
            owner: owner.clone(),
            is_shared,
            table,
            is_dropped: false,
        });
        let collection = self.collections.len() - 1;
        self.domain(collection, owner);
        collection
    }
}
