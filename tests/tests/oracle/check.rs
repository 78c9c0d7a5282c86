//! What a caller is shown, held against what the model says.

use super::step::{KINDS, WORDS};
use super::told;
use super::world::{Caller, Meaning, World};
use rag_tests::{Database, Random, Session, literal};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What does not agree, in words.
pub(crate) type Verdict = Result<(), String>;

/// Names of what the database has, as the model knows it. That is all that is taken from there.
pub(crate) struct Labels {
    documents: HashMap<String, usize>,
    chunks: Vec<String>,
    /// Id, id and label of the document, of chunks of collections that are there.
    pub(crate) live_chunks: Vec<(String, String, usize)>,
    domains: HashMap<String, String>,
}

/// A domain by its collection and owner.
const DOMAIN: &str = "c.owner || '/' || c.name || ' of ' || d.owner";

impl Labels {
    pub(crate) fn read(admin: &mut Session) -> Self {
        let rows = admin.rows("SELECT id, substring(content FROM 'doc([0-9]+)x') FROM rag.document");
        let documents = rows.into_iter().filter_map(|row| match &row[..] {
            [Some(id), Some(label)] => Some((id.clone(), label.parse().ok()?)),
            _ => None,
        });
        let domains = admin.rows(&format!(
            "SELECT d.id, {DOMAIN} FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id"
        ));
        let domains: HashMap<String, String> =
            domains.into_iter().filter_map(|row| Some((row[0].clone()?, row[1].clone()?))).collect();
        let documents: HashMap<String, usize> = documents.collect();
        let live = admin.rows(
            "SELECT c.id, c.document_id FROM rag.chunk c JOIN rag.domain d ON d.id = c.domain_id WHERE d.collection_id IS NOT NULL ORDER BY 1",
        );
        let live_chunks = live.into_iter().filter_map(|row| match &row[..] {
            [Some(chunk), Some(document)] => {
                Some((chunk.clone(), document.clone(), *documents.get(document)?))
            }
            _ => None,
        });
        let live_chunks = live_chunks.collect();
        Self { documents, chunks: admin.column("SELECT id FROM rag.chunk"), live_chunks, domains }
    }

    /// Whether a chunk is still there.
    pub(crate) fn is_live(&self, chunk: &str) -> bool {
        self.live_chunks.iter().any(|(live, ..)| live == chunk)
    }

    pub(crate) fn label(&self, id: &str) -> Result<usize, String> {
        self.documents.get(id).copied().ok_or_else(|| format!("document {id} is of no such world"))
    }
}

pub(crate) fn same<T: Ord + std::fmt::Debug>(
    what: &str,
    seen: &BTreeSet<T>,
    expected: &BTreeSet<T>,
) -> Verdict {
    if seen == expected {
        return Ok(());
    }
    let more: Vec<_> = seen.difference(expected).collect();
    let less: Vec<_> = expected.difference(seen).collect();
    Err(format!("{what}: shown, but not theirs: {more:?}; theirs, but not shown: {less:?}"))
}

/// Who looks, at what.
#[derive(Clone, Copy)]
pub(crate) struct Viewer<'a> {
    pub(crate) world: &'a World,
    pub(crate) labels: &'a Labels,
    pub(crate) caller: Caller,
}

impl Viewer<'_> {
    /// What a collection's name, bare or with its owner, means to them.
    fn meaning(self, name: &str) -> Meaning {
        let (owner, bare) = name.rsplit_once('/').map_or((None, name), |(owner, bare)| (Some(owner), bare));
        self.world.meaning(self.caller, owner, bare)
    }

    /// Which collection a search means, all of theirs without a name, or nothing; or how it is refused.
    pub(crate) fn collection(self, named: Option<&str>) -> Result<Option<Option<usize>>, &'static str> {
        let Some(named) = named else { return Ok(Some(None)) };
        match self.meaning(named) {
            Meaning::Collection(at) => Ok(Some(Some(at))),
            Meaning::NoDefault => Ok(None),
            Meaning::Nothing => Err("42704"),
            Meaning::Ambiguous => Err("22023"),
        }
    }

    /// Documents that a search may find; or how it is refused.
    pub(crate) fn scope(self, named: Option<&str>) -> Result<BTreeSet<usize>, &'static str> {
        let meant = self.collection(named)?;
        Ok(meant.map(|collection| self.world.searched(self.caller, collection)).unwrap_or_default())
    }
}

/// A session that acts for a caller.
pub(crate) fn connect(database: &Database<'_>, world: &World, caller: Caller) -> Session {
    let mut session = database.connect(&world.roles[caller.role].name);
    if let Some(user) = caller.user {
        session.run(&format!("SET rag_ext.user_id = '{user}'"));
    }
    session
}

/// Tables whose rows are about documents, and the column that says which.
const TABLES: [(&str, &str); 13] = [
    ("document", "id"),
    ("job", "document_id"),
    ("job_status", "document_id"),
    ("chunk", "document_id"),
    ("section", "document_id"),
    ("metadata_value", "document_id"),
    ("entity_mention", "document_id"),
    ("entity_relation", "document_id"),
    ("document_link", "document_id"),
    ("attached_row", "document_id"),
    ("mined_acronym", "document_id"),
    ("graph_relation", "document_id"),
    ("graph_link", "document_id"),
];

/// Everything that one caller may read without a search.
pub(crate) fn tables(session: &mut Session, viewer: Viewer<'_>) -> Verdict {
    let Viewer { world, labels, caller } = viewer;
    let mut sql: Vec<String> = TABLES
        .iter()
        .map(|(table, column)| format!("SELECT '{table}', {column}::text FROM rag.{table}"))
        .collect();
    let all = format!("'{{{}}}'::uuid[]", labels.chunks.join(","));
    sql.push(format!(
        "SELECT 'rag_vectors', c.document_id::text FROM rag_vectors({all}) v JOIN rag.chunk c ON c.id = v.chunk_id"
    ));
    sql.push(format!("SELECT 'vectors', count(*)::text FROM rag_vectors({all})"));
    sql.push("SELECT 'collection', owner || '/' || name FROM rag.collection".to_owned());
    sql.push(format!(
        "SELECT 'domain', {DOMAIN} FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id"
    ));
    sql.push("SELECT 'failed_job', document_id::text FROM rag.failed_job".to_owned());
    sql.push("SELECT 'segment', domain_id::text FROM rag.segment".to_owned());
    sql.push("SELECT 'deletion_count', domain_id::text FROM rag.deletion_count".to_owned());
    sql.push("SELECT 'attachment', source::text FROM rag.attachment".to_owned());
    sql.push(
        "SELECT 'attachment_status', source || ': ' || rows || ', ' || done FROM rag.attachment_status"
            .to_owned(),
    );
    sql.push(
        "SELECT 'collection_status', owner || '/' || collection || ': ' || documents || ', ' || documents_done
         FROM rag.collection_status"
            .to_owned(),
    );
    sql.push(
        "SELECT 'collection_grant', g.owner || ' to ' || g.principal || ' for ' || g.privilege || ' ' ||
                coalesce((SELECT name FROM rag.collection c WHERE c.id = g.collection_id), '?')
         FROM rag.collection_grant g"
            .to_owned(),
    );
    sql.push("SELECT 'accepted_collection', principal FROM rag.accepted_collection".to_owned());
    let rows = session.try_rows(&sql.join(" UNION ALL ")).map_err(|failure| failure.to_string())?;
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let [Some(table), Some(value)] = &row[..] else { return Err(format!("a null in {row:?}")) };
        seen.entry(table.clone()).or_default().insert(value.clone());
    }
    let mut take = |table: &str| seen.remove(table).unwrap_or_default();
    let is_attached = |d: &usize| {
        let collection = world.domains[world.documents[*d].domain].collection;
        world.collections[collection].table.is_some()
    };
    for (table, _) in TABLES.iter().chain(&[("rag_vectors", "")]) {
        let shown: BTreeSet<usize> =
            take(table).iter().map(|id| labels.label(id)).collect::<Result<_, _>>()?;
        let expected = match *table {
            "rag_vectors" | "entity_mention" | "entity_relation" | "document_link" | "graph_relation"
            | "graph_link" => world.shown_in(caller, "chunk"),
            // Which chunk defines one is not said, so where some may be hidden from somebody it is nobody's.
            "mined_acronym" if !world.policies.is_empty() => BTreeSet::new(),
            "mined_acronym" => world.shown_in(caller, "document"),
            "attached_row" => world.shown_in(caller, table).into_iter().filter(is_attached).collect(),
            // With names, which only who may know the collection is told.
            "job_status" => {
                let is_named =
                    |d: &usize| world.can_name(caller, world.domains[world.documents[*d].domain].collection);
                world.shown_in(caller, "document").into_iter().filter(is_named).collect()
            }
            table => world.shown_in(caller, table),
        };
        same(table, &shown, &expected)?;
    }
    let vectors = world.shown_in(caller, "chunk").len().to_string();
    same("number of rag_vectors", &take("vectors"), &BTreeSet::from([vectors]))?;
    let named: Vec<usize> = (0..world.collections.len()).filter(|c| world.can_name(caller, *c)).collect();
    let collections = named.iter().map(|c| world.collections[*c].full_name()).collect();
    same("collection", &take("collection"), &collections)?;
    let domains = (0..world.domains.len())
        .filter(|d| world.reads(caller, *d) && named.contains(&world.domains[*d].collection));
    same("domain", &take("domain"), &domains.map(|d| world.domain_name(d)).collect())?;
    same("failed_job", &take("failed_job"), &BTreeSet::new())?;
    // About all rows of a domain, for who sees all of them.
    let whole = (0..world.domains.len()).filter(|d| world.reads_whole(caller, *d));
    let whole: BTreeSet<String> = whole.map(|d| world.domain_name(d)).collect();
    let mut names = |table: &str| -> Result<BTreeSet<String>, String> {
        let name = |id: &String| {
            labels.domains.get(id).cloned().ok_or_else(|| format!("{table}: {id} is no domain"))
        };
        take(table).iter().map(name).collect()
    };
    // Of what is deleted, some may be there for a while.
    let live =
        world.documents.iter().filter(|d| !d.is_deleted).map(|d| world.domain_name(d.domain)).collect();
    let segments = names("segment")?;
    let expected = segments.union(&live).filter(|domain| whole.contains(*domain));
    same("segment", &segments, &expected.cloned().collect())?;
    let counts = names("deletion_count")?;
    same("deletion_count", &counts, &counts.intersection(&whole).cloned().collect())?;
    let tables = (0..world.collections.len()).filter(|c| world.owns(caller, *c)).filter_map(|c| {
        let table = world.collections[c].table.as_ref()?;
        let of_table = |d: &&usize| world.domains[world.documents[**d].domain].collection == c;
        Some((table.name.clone(), world.shown_in(caller, "document").iter().filter(of_table).count()))
    });
    let tables: Vec<(String, usize)> = tables.collect();
    same("attachment", &take("attachment"), &tables.iter().map(|(name, _)| name.clone()).collect())?;
    let status = tables.iter().map(|(name, count)| format!("{name}: {count}, {count}"));
    same("attachment_status", &take("attachment_status"), &status.collect())?;
    let documents = world.shown_in(caller, "document");
    let status = named.iter().map(|c| {
        let within = documents.iter().filter(|d| world.domains[world.documents[**d].domain].collection == *c);
        let count = within.count();
        format!("{}: {count}, {count}", world.collections[*c].full_name())
    });
    same("collection_status", &take("collection_status"), &status.collect())?;
    let principals = world.principals(caller);
    let grants = world.grants.iter().filter(|g| {
        !principals.is_empty()
            && (world.owns(caller, g.collection)
                || g.principal.role.is_none()
                || principals.contains(&g.principal))
    });
    let grants = grants.map(|g| {
        let (collection, privilege) =
            (&world.collections[g.collection], if g.is_for_writing { "write" } else { "read" });
        format!("{} to {} for {privilege} {}", collection.owner.text, g.principal.text, collection.name)
    });
    same("collection_grant", &take("collection_grant"), &grants.collect())?;
    let accepted = world.accepted.iter().filter(|(domain, who)| {
        principals.contains(who) && !world.collections[world.domains[*domain].collection].is_dropped
    });
    same(
        "accepted_collection",
        &take("accepted_collection"),
        &accepted.map(|(_, who)| who.text.clone()).collect(),
    )
}

/// What the report says of a caller's documents.
pub(crate) fn status(session: &mut Session, viewer: Viewer<'_>) -> Verdict {
    let Viewer { world, caller, .. } = viewer;
    let report = session.try_rows("SELECT rag_status()").map_err(|failure| failure.to_string())?;
    let report = report[0][0].clone().unwrap_or_default();
    let expected = format!("your documents: {}, of which 0 pending", world.in_scope(caller, None).len());
    if !report.contains(&expected) {
        return Err(format!("rag_status: {report}\n{expected:?} expected"));
    }
    let is_told = |collection: &usize| report.contains(&world.collections[*collection].full_name());
    match (0..world.collections.len()).find(is_told) {
        Some(told) => Err(format!("rag_status tells of collection {told}: {report}")),
        None => Ok(()),
    }
}

/// As one of the roles that they are a member of, in the same session, they see what that one does.
pub(crate) fn as_another(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { world, caller, .. } = viewer;
    let others: Vec<usize> =
        world.memberships(caller.role).into_iter().filter(|r| *r != caller.role).collect();
    if caller.user.is_some() || others.is_empty() {
        return Ok(());
    }
    let other = Caller { role: *random.pick(&others), user: None };
    let name = &world.roles[other.role].name;
    session.run(&format!("SET ROLE {name}"));
    let other = Viewer { caller: other, ..viewer };
    let seen = tables(session, other)
        .and_then(|()| told::tables(session, other))
        .and_then(|()| search(session, other, random))
        .and_then(|()| status(session, other));
    session.run("RESET ROLE");
    seen.map_err(|wrong| format!("as {name}: {wrong}"))
}

/// A condition on metadata, in the filter's words and in ours.
fn filter(random: &mut Random, world: &World) -> (String, impl Fn(usize) -> bool + use<>) {
    let kind = *random.pick(&KINDS);
    let year = 2000 + random.below(world.documents.len() + 1) as i32;
    let drawn = random.below(6);
    let text = match drawn {
        0 => format!(r#"{{"kind": "{kind}"}}"#),
        1 => format!(r#"{{"not": {{"kind": "{kind}"}}}}"#),
        2 => format!(r#"{{"year": {{"gte": {year}}}}}"#),
        3 => format!(r#"{{"or": [{{"kind": "{kind}"}}, {{"year": {{"lt": {year}}}}}]}}"#),
        _ => "{}".to_owned(),
    };
    let known: Vec<(&'static str, Option<i32>)> =
        world.documents.iter().map(|d| (d.kind, (d.year > 0).then_some(d.year))).collect();
    let lets_through = move |document: usize| {
        let (of_kind, of_year) = known[document];
        match drawn {
            0 => of_kind == kind,
            1 => of_kind != kind,
            2 => of_year.is_some_and(|of_year| of_year >= year),
            3 => of_kind == kind || of_year.is_some_and(|of_year| of_year < year),
            _ => true,
        }
    };
    (text, lets_through)
}

/// A search at random: who finds what, in which order, and how many.
pub(crate) fn search(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { world, labels, .. } = viewer;
    let named = name(random, world);
    let mode = *random.pick(&["keyword", "vector", "hybrid"]);
    let words: Vec<&str> = (0..1 + random.below(2)).map(|_| *random.pick(&WORDS)).collect();
    let (filter, lets_through) = filter(random, world);
    let collection = named.as_ref().map_or("NULL".to_owned(), |name| literal(name));
    let call = |k: usize| {
        format!(
            "SELECT document_id, score FROM rag_search('{}', {collection}, filter => '{filter}', k => {k}, mode => '{mode}')",
            words.join(" ")
        )
    };
    let scope = viewer.scope(named.as_deref());
    let wrong = |what: String| format!("{}: {what}", call(1000));
    let (scope, all) = match (scope, session.try_rows(&call(1000))) {
        (Ok(scope), Ok(rows)) => (scope, rows),
        (Err(code), Err(failure)) if failure.code == code => return Ok(()),
        (expected, seen) => {
            return Err(wrong(format!("{:?} expected, but {seen:?}", expected.map(|scope| scope.len()))));
        }
    };
    let eligible: BTreeSet<usize> = scope
        .into_iter()
        .filter(|d| {
            lets_through(*d)
                && (mode != "keyword" || world.documents[*d].words.iter().any(|word| words.contains(word)))
        })
        .collect();
    let found: BTreeSet<usize> = all
        .iter()
        .map(|row| labels.label(row[0].as_deref().unwrap_or_default()))
        .collect::<Result<_, _>>()
        .map_err(&wrong)?;
    same("found", &found, &eligible).map_err(&wrong)?;
    if all.len() != eligible.len() {
        return Err(wrong(format!("{} rows for {} documents", all.len(), eligible.len())));
    }
    let scores: Vec<f64> = all.iter().filter_map(|row| row[1].as_deref()?.parse().ok()).collect();
    if scores.len() != all.len() || scores.windows(2).any(|pair| pair[0] < pair[1]) {
        return Err(wrong(format!("scores {scores:?}")));
    }
    let k = 1 + random.below(eligible.len().max(1) + 2);
    let best = session.try_rows(&call(k)).map_err(|failure| wrong(failure.to_string()))?;
    if best.len() != k.min(eligible.len()) {
        return Err(wrong(format!("{} rows with k = {k}, of {} eligible", best.len(), eligible.len())));
    }
    // What fusion makes of the retrievers' scores depends on how many each was asked for.
    if mode != "hybrid" && best[..] != all[..best.len()] {
        return Err(wrong(format!("with k = {k} others come first: {best:?}, not {all:?}")));
    }
    Ok(())
}

/// Nothing, a bare name, or one with its owner, which the caller may know or not.
pub(crate) fn name(random: &mut Random, world: &World) -> Option<String> {
    match random.below(3) {
        0 => None,
        1 => Some((*random.pick(&["default", "plans", "wiki"])).to_owned()),
        _ if world.collections.is_empty() => None,
        _ => Some(random.pick(&world.collections).full_name()),
    }
}

/// What an answer cites is what a search may find.
pub(crate) fn answer(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { world, labels, caller } = viewer;
    let question = format!("What is the note about the {}?", random.pick(&WORDS));
    let sql = format!("SELECT rag_answer('{question}', options => '{{\"min_support\": 0}}')");
    let rows = session.try_rows(&sql).map_err(|failure| format!("{sql}: {failure}"))?;
    let text = rows[0][0].clone().unwrap_or_default();
    let answer: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("{sql}: {e}"))?;
    let scope = world.searched(caller, None);
    for citation in answer["citations"].as_array().into_iter().flatten() {
        let label = labels.label(citation["document_id"].as_str().unwrap_or_default())?;
        if !scope.contains(&label) {
            return Err(format!("{sql}: cites {label}, which is not theirs"));
        }
    }
    // Whatever is not theirs is nowhere in it.
    for label in (0..world.documents.len()).filter(|label| !scope.contains(label)) {
        if text.contains(&format!("doc{label}x")) {
            return Err(format!("{sql}: tells of {label}, which is not theirs"));
        }
    }
    Ok(())
}

/// Waiting tells nobody of others' work, nor of others' collections.
pub(crate) fn wait(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Some(named) = name(random, viewer.world) else { return Ok(()) };
    let expected = match viewer.meaning(&named) {
        Meaning::Collection(_) | Meaning::NoDefault => "t",
        Meaning::Nothing => "42704",
        Meaning::Ambiguous => "22023",
    };
    let sql = format!("SELECT rag_wait({}, '1 min')", literal(&named));
    let seen = match session.try_rows(&sql) {
        Ok(rows) => rows[0][0].clone().unwrap_or_default(),
        Err(failure) => failure.code,
    };
    if seen == expected { Ok(()) } else { Err(format!("{sql}: {seen}, not {expected}")) }
}
