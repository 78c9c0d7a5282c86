//! Rows that cannot be documents: each is noted as a document that has failed, and the others go on.

use super::follow::Follower;
use super::turn::without_values;
use crate::error::{Error, Result, sqlstate_text};
use crate::pg::{random, transaction};
use crate::storage::Id;
use crate::storage::attached_row::{self, NewRow, Refusal};
use crate::storage::source::Key;
use rag_core::hash::sha256;
use serde_json::json;

/// Classes of SQLSTATEs that are about more than the row at hand: syntax, missing objects and rights, transactions,
/// resources, operators, the system.
const NOT_OF_A_ROW: [&str; 8] = ["08", "25", "40", "42", "53", "55", "57", "58"];

impl Follower {
    /// Does `work` on keys. Where that fails for a reason of a row's own, the rows are halved until that row is found:
    /// it is noted, and the work is done for the others. Returns the sum of what `work` did.
    pub(super) fn each_apart(
        &mut self,
        keys: &[(String, Key)],
        work: impl Fn(&mut Self, &[(String, Key)]) -> Result<usize> + Copy,
    ) -> Result<usize> {
        if keys.is_empty() {
            return Ok(0);
        }
        let error = match transaction::attempt(|| work(self, keys)) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        // Some may have been made by what was undone.
        self.domains.clear();
        if NOT_OF_A_ROW.contains(&&sqlstate_text(error.code)[..2]) {
            return Err(error);
        }
        if let [(text, key)] = keys {
            return self.refuse(text, key, &error).map(|()| 1);
        }
        let (first, second) = keys.split_at(keys.len() / 2);
        Ok(self.each_apart(first, work)? + self.each_apart(second, work)?)
    }

    /// Notes why a row is no document. It is tried again when it has changed.
    fn refuse(&mut self, text: &str, key: &Key, error: &Error) -> Result<()> {
        // Who sees the row as it is sees what is wrong with it.
        let state = transaction::attempt(|| {
            self.as_owner(|source| {
                source.states(&[key], vec![String::new()]).map(|states| states.into_iter().next())
            })
        });
        let state = match state {
            Ok(state) => state,
            Err(error) if NOT_OF_A_ROW.contains(&&sqlstate_text(error.code)[..2]) => return Err(error),
            Err(_) => None,
        };
        let known = attached_row::of_keys(self.collection, &[text.to_owned()])?;
        attached_row::delete(&known.iter().map(|row| (row.domain, row.document)).collect::<Vec<_>>())?;
        let owner = self.owner.clone();
        let names = self.source.definition.key.iter().map(|column| column.name.clone());
        let key_columns: serde_json::Map<String, serde_json::Value> =
            names.zip(key.iter().map(|part| json!(part))).collect();
        let metadata =
            json!({ "source_row": { "table": self.source.relation.full_name, "key": key_columns } });
        let new = NewRow {
            domain: self.domain(&owner)?,
            document: Id::from_be_bytes(random::new_id()?),
            owner,
            key: text.to_owned(),
            key_columns: key_columns.into(),
            sha256: state.as_ref().and_then(|state| state.sha256.clone()).unwrap_or_default(),
            version: state.map(|state| state.version).unwrap_or_default(),
            title: None,
            uri: self.hashed_uri(text),
            media_type: None,
            content: Some(String::new()),
            file: None,
            content_sha256: sha256(b"").to_vec(),
            metadata,
            refusal: Some(Refusal {
                sqlstate: sqlstate_text(error.code),
                error: without_values(&error.message),
            }),
        };
        self.write(&[new], &[])
    }
}
