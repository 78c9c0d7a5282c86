//! What became of each candidate of a search: where each stage put it, and why it was dropped. Kept where it is asked for,
//! by `rag_explain`; a search that nobody explains keeps nothing.

use crate::storage::Id;
use std::collections::HashMap;

/// Where a stage put a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) stage: &'static str,
    /// From 1.
    pub(crate) rank: usize,
    pub(crate) score: f64,
}

/// What is known of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// In the order of the stages.
    pub(crate) places: Vec<Place>,
    /// Why it is not among the hits: the first reason that was given.
    pub(crate) dropped: Option<String>,
}

impl Candidate {
    /// Where a stage put it; the first time, if it did so for several queries: for the caller's own.
    pub(crate) fn place(&self, stage: &str) -> Option<Place> {
        self.places.iter().find(|place| place.stage == stage).copied()
    }
}

/// The candidates by chunk.
#[derive(Debug, Default)]
pub(crate) struct Trail(pub(crate) HashMap<Id, Candidate>);

impl Trail {
    pub(super) fn ranked(&mut self, stage: &'static str, hits: impl Iterator<Item = (Id, f64)>) {
        for (index, (chunk, score)) in hits.enumerate() {
            self.0.entry(chunk).or_default().places.push(Place { stage, rank: index + 1, score });
        }
    }

    pub(super) fn extend(&mut self, other: Trail) {
        for (chunk, Candidate { places, dropped }) in other.0 {
            let known = self.0.entry(chunk).or_default();
            known.places.extend(places);
            known.dropped = known.dropped.take().or(dropped);
        }
    }

    pub(super) fn dropped(&mut self, chunk: Id, reason: String) {
        self.0.entry(chunk).or_default().dropped.get_or_insert(reason);
    }
}
