//! The same search over a database that holds what one caller sees, and nothing else: the same scores, to the last bit.

use super::check::Verdict;
use super::step::WORDS;
use super::world::{Caller, World};
use rag_tests::{Database, Random, Session, literal};
use std::collections::BTreeMap;

/// By the document's words: the text says which it is, and scores do not depend on ids.
type Scores = BTreeMap<String, [Option<String>; 3]>;

fn scores(session: &mut Session, query: &str, mode: &str) -> Result<Scores, String> {
    let sql = format!(
        "SELECT content, score, keyword_score, vector_score FROM rag_search('{query}', k => 1000, mode => '{mode}')"
    );
    let rows = session.try_rows(&sql).map_err(|failure| format!("{sql}: {failure}"))?;
    Ok(rows
        .into_iter()
        .map(|mut row| {
            let text = row[0].take().unwrap_or_default();
            (text, std::array::from_fn(|i| row[i + 1].take()))
        })
        .collect())
}

/// Compares what the caller's searches give with what they give where there is nothing else.
pub(crate) fn check(session: &mut Session, world: &World, caller: Caller, random: &mut Random) -> Verdict {
    let visible = world.searched(caller, None);
    if visible.is_empty() {
        return Ok(());
    }
    let database = Database::new("alone");
    let mut alone = database.user("solo");
    for document in visible {
        let found = &world.documents[document];
        let text = super::step::text(document, &found.words, found.kind);
        alone.run(&format!("INSERT INTO rag.document (content) VALUES ({})", literal(&text)));
    }
    alone.settle();
    for mode in ["keyword", "vector", "hybrid"] {
        let query = [*random.pick(&WORDS), *random.pick(&WORDS)].join(" ");
        let (seen, expected) = (scores(session, &query, mode)?, scores(&mut alone, &query, mode)?);
        if seen != expected {
            return Err(format!("'{query}' in mode {mode}: {seen:#?}\nalone: {expected:#?}"));
        }
    }
    Ok(())
}
