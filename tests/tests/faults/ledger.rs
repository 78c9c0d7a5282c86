//! What was acknowledged, and what may or may not have come to be.

use std::collections::BTreeMap;

/// A document's text, or that there is none.
type State = Option<String>;

/// By uri: what may be stored. More than one where the last answer did not arrive.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    states: BTreeMap<String, Vec<State>>,
    statements: usize,
}

impl Ledger {
    /// A statement is about to be sent that leaves the document so.
    pub(crate) fn begins(&mut self, uri: &str, after: State) {
        self.states.entry(uri.to_owned()).or_insert_with(|| vec![None]).push(after);
    }

    /// It has committed.
    pub(crate) fn acknowledged(&mut self, uri: &str) {
        self.statements += 1;
        let states = self.states.get_mut(uri).unwrap();
        states.drain(..states.len() - 1);
    }

    /// It has not, for sure.
    pub(crate) fn refused(&mut self, uri: &str) {
        self.states.get_mut(uri).unwrap().pop();
    }

    pub(crate) fn statements(&self) -> usize {
        self.statements
    }

    /// Fails if something that was acknowledged is not there as it was. From here on what is there is known.
    pub(crate) fn compare(&mut self, stored: &BTreeMap<String, String>) {
        for (uri, states) in &mut self.states {
            let now = stored.get(uri).cloned();
            assert!(states.contains(&now), "{uri} is {now:?}, and may be {states:?}");
            *states = vec![now];
        }
        let unknown: Vec<_> = stored.keys().filter(|uri| !self.states.contains_key(*uri)).collect();
        assert!(unknown.is_empty(), "nobody wrote {unknown:?}");
    }
}
