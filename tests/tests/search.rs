//! What a search returns: modes, order, counts, names, user text, and what happens without the engine.

#![allow(clippy::unwrap_used)]

#[path = "search/advice.rs"]
mod advice;
#[path = "search/bundles.rs"]
mod bundles;
#[path = "search/calling.rs"]
mod calling;
#[path = "search/ranking.rs"]
mod ranking;
#[path = "search/refining.rs"]
mod refining;
#[path = "search/rerank_models.rs"]
mod rerank_models;
#[path = "search/reranking.rs"]
mod reranking;
#[path = "search/sizes.rs"]
mod sizes;
#[path = "search/thresholds.rs"]
mod thresholds;

use rag_tests::{Database, Session};

const TOPICS: [(&str, &str); 8] = [
    ("glacier", "A glacier moves downhill under its own weight and grinds the rock beneath it."),
    ("volcano", "A volcano erupts when molten rock rises through a vent in the crust."),
    ("espresso", "Espresso is brewed by forcing hot water through finely ground coffee."),
    ("sourdough", "Sourdough bread rises with wild yeast and lactic acid bacteria."),
    ("violin", "A violin has four strings that are tuned in fifths and played with a bow."),
    ("compass", "A compass needle aligns itself with the magnetic field of the earth."),
    ("beehive", "In a beehive the workers dance to tell each other where flowers bloom."),
    ("tide", "The tide follows the moon and raises the water of the sea twice a day."),
];

/// A user with a small corpus: eight topics, one document and one chunk each.
fn corpus(database: &Database<'_>, name: &str) -> Session {
    let mut session = database.user(name);
    for (uri, text) in TOPICS {
        session.ingest(text, uri);
    }
    session
}
