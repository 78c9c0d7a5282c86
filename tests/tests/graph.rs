//! The graph: what is stored of it, what a search makes of it, and that it shows nobody anything new.

#![allow(clippy::unwrap_used)]

#[path = "graph/bounds.rs"]
mod bounds;
#[path = "graph/chat.rs"]
mod chat;
#[path = "graph/links.rs"]
mod links;
#[path = "graph/questions.rs"]
mod questions;
#[path = "graph/rights.rs"]
mod rights;
#[path = "graph/searching.rs"]
mod searching;
#[path = "graph/storing.rs"]
mod storing;

use rag_tests::Session;

/// Notes of a plant: what is asked about the pump stands in the note on the valve, which does not name the pump.
const NOTES: [(&str, &str); 4] = [
    (
        "plant/pump.md",
        "# Coolant Pump\n\nThe Coolant Pump is connected to valve V-204 in the cellar. Care is described in FC-001-234, \
         and in [the plan](../plans/cellar.md).",
    ),
    (
        "plant/FC-001-234.md",
        "# Care by FC-001-234\n\nValve V-204 opens at nine bar and has a red wheel. It is oiled in March.",
    ),
    ("plans/cellar.md", "# Plan\n\nThe cellar has two doors and a ladder."),
    ("plant/canteen.md", "# Canteen\n\nSoup is served at noon. The menu is on the wall."),
];

fn write_notes(session: &mut Session) {
    for (uri, text) in NOTES {
        session.ingest(text, uri);
    }
}

/// The diagnostics of a search by stage: `[out, method or fallback]`.
fn stage(session: &mut Session, call: &str, name: &str) -> Option<(i64, String)> {
    let rows = session.rows(&format!(
        "SELECT s ->> 'out', coalesce(s ->> 'method', s ->> 'fallback') FROM {call} r, jsonb_array_elements(r.details -> 'stages') s
         WHERE r.rank = 1 AND s ->> 'stage' = '{name}'"
    ));
    rows.first().map(|row| (row[0].as_ref().unwrap().parse().unwrap(), row[1].clone().unwrap_or_default()))
}
