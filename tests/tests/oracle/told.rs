//! What feedback, explanations, evaluations, the graph, acronyms and the log tell a caller, held against what the model
//! says.

use super::check::{Verdict, Viewer, name, same};
use super::step::{ACRONYM, WORDS};
use super::world::Said;
use rag_tests::{Random, Session, literal};
use std::collections::{BTreeMap, BTreeSet};

/// One or two words to look for.
fn query(random: &mut Random) -> String {
    let words: Vec<&str> = (0..1 + random.below(2)).map(|_| *random.pick(&WORDS)).collect();
    words.join(" ")
}

fn argument(named: Option<&str>) -> String {
    named.map_or("NULL".to_owned(), literal)
}

/// What is their own, and about what they see.
pub(crate) fn tables(session: &mut Session, viewer: Viewer<'_>) -> Verdict {
    let Viewer { world, labels, caller } = viewer;
    let sql = "SELECT 'feedback', owner || ' ' || document_id || ' ' || chunk_id || ' ' || verdict || ' ' || query FROM rag.feedback
         UNION ALL SELECT 'feedback_query', query FROM rag.feedback_query
         UNION ALL SELECT 'feedback_judgement', count(*) || ' ' || count(*) FILTER (WHERE relevance = 1) FROM rag.feedback_judgement
         UNION ALL SELECT 'feedback_chunk_judgement', document::text FROM rag.feedback_chunk_judgement
         UNION ALL SELECT 'acronym', c.owner || '/' || c.name FROM rag.acronym a JOIN rag.collection c ON c.id = a.collection_id
         UNION ALL SELECT 'acronyms', count(*)::text FROM rag.acronym
         UNION ALL SELECT 'query_log', owner FROM rag.query_log
         UNION ALL SELECT 'answer_log', owner FROM rag.answer_log
         UNION ALL SELECT 'graph_entity', coalesce(sum(documents), 0)::text FROM rag.graph_entity WHERE key = 'log_level'";
    let rows = session.try_rows(sql).map_err(|failure| failure.to_string())?;
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let [Some(table), Some(value)] = &row[..] else { return Err(format!("a null in {row:?}")) };
        seen.entry(table.clone()).or_default().insert(value.clone());
    }
    let mut take = |table: &str| seen.remove(table).unwrap_or_default();

    let own: Vec<&Said> = world.own_words(caller).collect();
    let told = |said: &Said| {
        let Said { owner, document_id, chunk, verdict, query, .. } = said;
        format!("{} {document_id} {chunk} {verdict} {query}", owner.text)
    };
    // What was said of a collection that is dropped may be there for a while.
    let of = |what: &dyn Fn(&Said) -> String, is_live: bool| -> BTreeSet<String> {
        own.iter()
            .filter(|said| !is_live || !world.is_dropped(said.document))
            .map(|said| what(said))
            .collect()
    };
    let between = |table: &str, seen: &BTreeSet<String>, what: &dyn Fn(&Said) -> String| {
        let (least, most) = (of(what, true), of(what, false));
        let expected = seen.intersection(&most).cloned().chain(least).collect();
        same(table, seen, &expected)
    };
    between("feedback", &take("feedback"), &told)?;
    between("feedback_query", &take("feedback_query"), &|said| said.query.clone())?;
    let documents = world.shown_in(caller, "document");
    let mut judged: BTreeMap<(&str, usize), i32> = BTreeMap::new();
    for said in own.iter().filter(|said| documents.contains(&said.document)) {
        *judged.entry((said.query.as_str(), said.document)).or_default() += said.verdict;
    }
    let relevant = judged.values().filter(|sum| **sum > 0).count();
    let judged = BTreeSet::from([format!("{} {relevant}", judged.len())]);
    same("feedback_judgement", &take("feedback_judgement"), &judged)?;
    let chunks = world.shown_in(caller, "chunk");
    let is_shown = |said: &&&Said| labels.is_live(&said.chunk) && chunks.contains(&said.document);
    let judged = own.iter().filter(is_shown).map(|said| said.chunk.clone()).collect();
    same("feedback_chunk_judgement", &take("feedback_chunk_judgement"), &judged)?;

    let given = world.acronyms.iter().filter(|c| world.can_name(caller, **c));
    let given: BTreeSet<String> = given.map(|c| world.collections[*c].full_name()).collect();
    same("number of acronyms", &take("acronyms"), &BTreeSet::from([given.len().to_string()]))?;
    same("acronym", &take("acronym"), &given)?;
    let principals: BTreeSet<String> = world.principals(caller).into_iter().map(|p| p.text).collect();
    for log in ["query_log", "answer_log"] {
        let logged = take(log);
        same(log, &logged, &logged.intersection(&principals).cloned().collect())?;
    }
    same("graph_entity", &take("graph_entity"), &BTreeSet::from([chunks.len().to_string()]))
}

/// They say something of a chunk, which may be hidden from them: what is new, and in place of what they said before.
pub(crate) fn say(
    session: &mut Session,
    viewer: Viewer<'_>,
    random: &mut Random,
) -> Result<Option<Said>, String> {
    let Viewer { world, labels, caller } = viewer;
    if labels.live_chunks.is_empty() {
        return Ok(None);
    }
    let (chunk, document_id, document) = random.pick(&labels.live_chunks).clone();
    let (query, verdict) = (query(random), random.below(3) as i32 - 1);
    let sql = format!("SELECT rag_feedback('{query}', '{chunk}', {verdict})");
    let owner = world.owner(caller);
    let is_shown = world.spoken_of(caller).contains(&document);
    match (owner, is_shown, session.try_run(&sql)) {
        (None, _, Err(failure)) if failure.code == "42501" => Ok(None),
        (Some(_), false, Err(failure)) if failure.code == "42704" => Ok(None),
        (Some(owner), true, Ok(())) => Ok(Some(Said { owner, document, document_id, chunk, query, verdict })),
        (owner, is_shown, outcome) => {
            Err(format!("{sql}: {outcome:?}, as {owner:?}, to whom it is shown: {is_shown}"))
        }
    }
}

/// Their own feedback, and nobody else's, moves what they find.
pub(crate) fn boosted(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { world, labels, caller } = viewer;
    let (named, query) = (name(random, world), query(random));
    let mode = *random.pick(&["keyword", "vector"]);
    let call = |boost: u8| {
        format!(
            "SELECT document_id, score FROM rag_search('{query}', {}, k => 1000, mode => '{mode}', options => '{{\"feedback_boost\": {boost}}}')",
            argument(named.as_deref())
        )
    };
    if viewer.scope(named.as_deref()).is_err() {
        return Ok(());
    }
    let mut scores = |boost: u8| -> Result<Vec<(usize, f64)>, String> {
        let rows = session.try_rows(&call(boost)).map_err(|failure| format!("{}: {failure}", call(boost)))?;
        let scored = rows.iter().map(|row| {
            let label = labels.label(row[0].as_deref().unwrap_or_default())?;
            Ok((label, row[1].as_deref().and_then(|score| score.parse().ok()).unwrap_or(f64::NAN)))
        });
        scored.collect()
    };
    let (plain, moved) = (scores(0)?, scores(1)?);
    let best = plain.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let scale = if best > 0.0 { best } else { 1.0 };
    let words: BTreeSet<&str> = query.split(' ').collect();
    let push = |document: usize| {
        let (mut verdicts, mut weight) = (0.0, 1.0);
        let is_of_it = |said: &&Said| said.document == document && labels.is_live(&said.chunk);
        for said in world.own_words(caller).filter(is_of_it) {
            let others: BTreeSet<&str> = said.query.split(' ').collect();
            let likeness = words.intersection(&others).count() as f64 / words.union(&others).count() as f64;
            let counted = if likeness >= 0.5 { likeness } else { 0.0 };
            verdicts += counted * f64::from(said.verdict);
            weight += counted;
        }
        verdicts / weight
    };
    let expected: BTreeMap<usize, f64> =
        plain.iter().map(|(document, score)| (*document, score / scale + push(*document))).collect();
    let agrees = |(document, score): &(usize, f64)| {
        expected.get(document).is_some_and(|expected| (expected - score).abs() < 1e-4)
    };
    let is_in_order = moved.windows(2).all(|pair| pair[0].1 >= pair[1].1);
    if moved.len() == plain.len() && is_in_order && moved.iter().all(agrees) {
        return Ok(());
    }
    Err(format!("{}: {moved:?}, not {expected:?}", call(1)))
}

/// An explanation has the hits of the search, and tells of no chunk that is not theirs.
pub(crate) fn explained(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { labels, .. } = viewer;
    let (named, query) = (name(random, viewer.world), query(random));
    let mode = *random.pick(&["keyword", "vector", "hybrid"]);
    let arguments = format!("'{query}', {}, k => 5, mode => '{mode}'", argument(named.as_deref()));
    let sql = format!(
        "SELECT rank, document_id, score FROM rag_explain({arguments}, options => '{{\"per_candidate\": true, \"graph\": \"on\", \"hops\": 2}}')
         WHERE kind = 'candidate' ORDER BY rank NULLS LAST"
    );
    let found = format!(
        "SELECT rank, document_id, score FROM rag_search({arguments}, options => '{{\"graph\": \"on\", \"hops\": 2}}') ORDER BY rank"
    );
    let (explained, hits) = match (viewer.scope(named.as_deref()), session.try_rows(&sql)) {
        (Err(code), Err(failure)) if failure.code == code => return Ok(()),
        (Ok(_), Ok(rows)) => {
            (rows, session.try_rows(&found).map_err(|failure| format!("{found}: {failure}"))?)
        }
        (scope, seen) => return Err(format!("{sql}: {seen:?}, where {scope:?} is expected")),
    };
    let scope = viewer.scope(named.as_deref()).unwrap_or_default();
    let told: BTreeSet<usize> = explained
        .iter()
        .map(|row| labels.label(row[1].as_deref().unwrap_or_default()))
        .collect::<Result<_, _>>()?;
    same(&sql, &told, &told.intersection(&scope).copied().collect())?;
    let of_hits: Vec<_> = explained.into_iter().filter(|row| row[0].is_some()).collect();
    if of_hits == hits { Ok(()) } else { Err(format!("{sql}: {of_hits:?}, but {hits:?} are found")) }
}

/// An evaluation knows of no chunk that is not theirs, whatever is judged.
pub(crate) fn evaluated(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { labels, .. } = viewer;
    if labels.live_chunks.is_empty() {
        return Ok(());
    }
    let named = name(random, viewer.world);
    let chunks: Vec<&str> = labels.live_chunks.iter().map(|(chunk, ..)| chunk.as_str()).collect();
    session.run(&format!(
        "DROP TABLE IF EXISTS pg_temp.asked, pg_temp.judged; CREATE TEMP TABLE asked AS SELECT 1 AS id, '{}'::text AS query;
         CREATE TEMP TABLE judged AS SELECT 1 AS query_id, unnest('{{{}}}'::uuid[]) AS document, 1 AS relevance",
        query(random),
        chunks.join(",")
    ));
    let sql = format!(
        "SELECT details->>'relevant', details->>'present', recall FROM rag_evaluate({}, 'pg_temp.asked', 'pg_temp.judged', '{{vector}}', 1000, '{{\"level\": \"chunk\"}}')",
        argument(named.as_deref())
    );
    let (present, row) = match (viewer.scope(named.as_deref()), session.try_rows(&sql)) {
        (Err(code), Err(failure)) if failure.code == code => return Ok(()),
        (Ok(scope), Ok(rows)) => (scope.len(), rows[0].clone()),
        (scope, seen) => return Err(format!("{sql}: {seen:?}, where {scope:?} is expected")),
    };
    let recall: f64 = row[2].as_deref().and_then(|recall| recall.parse().ok()).unwrap_or(f64::NAN);
    let counts = [chunks.len(), present].map(|count| Some(count.to_string()));
    let is_right = row[..2] == counts && (recall - present as f64 / chunks.len() as f64).abs() < 1e-9;
    if is_right { Ok(()) } else { Err(format!("{sql}: {row:?}, not {present} of {}", chunks.len())) }
}

/// What names an entity, and what is related to a document, is theirs to see.
pub(crate) fn related(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { labels, .. } = viewer;
    let named = name(random, viewer.world);
    let call = |subject: &str| {
        format!(
            "SELECT document_id FROM rag_related('{subject}', {}, '{{\"k\": 1000}}')",
            argument(named.as_deref())
        )
    };
    let entity = format!("{} WHERE kind = 'document'", call("log_level"));
    let (scope, rows) = match (viewer.scope(named.as_deref()), session.try_rows(&entity)) {
        (Err(code), Err(failure)) if failure.code == code => return Ok(()),
        (Ok(scope), Ok(rows)) => (scope, rows),
        (scope, seen) => return Err(format!("{entity}: {seen:?}, where {scope:?} is expected")),
    };
    let label = |row: &Vec<Option<String>>| labels.label(row[0].as_deref().unwrap_or_default());
    let naming = rows.iter().map(label).collect::<Result<BTreeSet<usize>, _>>()?;
    same(&entity, &naming, &scope)?;
    if labels.live_chunks.is_empty() {
        return Ok(());
    }
    let (_, document_id, document) = random.pick(&labels.live_chunks).clone();
    let sql = call(&document_id);
    let rows = session.try_rows(&sql).map_err(|failure| format!("{sql}: {failure}"))?;
    let found = rows.iter().map(label).collect::<Result<BTreeSet<usize>, _>>()?;
    let expected = if scope.contains(&document) {
        found.intersection(&scope).copied().collect()
    } else {
        BTreeSet::new()
    };
    same(&sql, &found, &expected)
}

/// Short forms get their long ones where a document says so that they see, or the owner of a collection that they search.
pub(crate) fn expanded(session: &mut Session, viewer: Viewer<'_>, random: &mut Random) -> Verdict {
    let Viewer { world, caller, .. } = viewer;
    let named = name(random, world);
    let Ok(collection) = viewer.collection(named.as_deref()) else { return Ok(()) };
    let Some(collection) = collection else { return Ok(()) };
    let sql = format!(
        "SELECT coalesce(sum(output), 0) FROM rag_explain('SLA {ACRONYM}', {}, mode => 'keyword') WHERE stage = 'acronyms'",
        argument(named.as_deref())
    );
    let rows = session.try_rows(&sql).map_err(|failure| format!("{sql}: {failure}"))?;
    let searched = world.collections_in_scope(caller, collection);
    let is_given = world.acronyms.iter().any(|c| searched.contains(c));
    let is_mined = world.policies.is_empty() && !world.in_scope(caller, collection).is_empty();
    let expected = (usize::from(is_given) + usize::from(is_mined)).to_string();
    if rows[0][0].as_deref() == Some(&expected) {
        Ok(())
    } else {
        Err(format!("{sql}: {rows:?}, not {expected}"))
    }
}
