//! How the columns of an attached table make documents.

use crate::error::{Error, Result};
use pgrx::JsonB;
use serde::{Deserialize, Serialize};

/// A column of an attached table. Its number finds it again after a renaming, its name after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) number: i16,
    pub(crate) name: String,
    /// Heading above its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
}

/// How the columns of a table make documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    /// Empty: rows are told apart by what is in them.
    pub(crate) key: Vec<Column>,
    /// OIDs of the types that all stored keys are texts of; empty while that is not sure.
    #[serde(default)]
    pub(crate) key_types: Vec<u32>,
    pub(crate) content: Vec<Column>,
    pub(crate) title: Option<Column>,
    pub(crate) uri: Option<Column>,
    /// Whether a unique index keeps the column for the URI free of duplicates.
    #[serde(default)]
    pub(crate) is_uri_unique: bool,
    pub(crate) metadata: Vec<Column>,
    /// A document as bytes, instead of content.
    pub(crate) file: Option<Column>,
    /// SQL over the row for the principal that it belongs to; by a column's number where it is just that.
    pub(crate) owner: Option<String>,
    pub(crate) owner_column: Option<Column>,
    pub(crate) media_type: Option<String>,
}

impl Definition {
    /// Columns of which documents are made: those that a reader must be allowed to read, besides the key.
    pub(crate) fn used(&self) -> Vec<&Column> {
        let parts = self.content.iter().chain(&self.title).chain(&self.uri).chain(&self.metadata);
        parts.chain(&self.file).collect()
    }

    /// Names of columns as documents have them: once one is renamed, all are to be written anew.
    pub(crate) fn names_in_metadata(&self) -> Vec<&str> {
        self.key.iter().chain(&self.metadata).map(|column| column.name.as_str()).collect()
    }

    /// Numbers of all columns that a reader must be allowed to read.
    pub(crate) fn read_columns(&self) -> Vec<i16> {
        let mut numbers: Vec<i16> =
            self.used().into_iter().chain(&self.key).map(|column| column.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// All columns, to be found again.
    pub(crate) fn columns_mut(&mut self) -> impl Iterator<Item = &mut Column> {
        self.key
            .iter_mut()
            .chain(&mut self.content)
            .chain(&mut self.title)
            .chain(&mut self.uri)
            .chain(&mut self.metadata)
            .chain(&mut self.file)
            .chain(&mut self.owner_column)
    }

    /// Whether rows belong to principals.
    pub(crate) fn has_owners(&self) -> bool {
        self.owner.is_some()
    }

    /// As it is stored.
    pub(super) fn to_json(&self) -> Result<JsonB> {
        serde_json::to_value(self)
            .map(JsonB)
            .map_err(|e| Error::internal(format!("a definition cannot be stored: {e}")))
    }

    /// As it was stored.
    pub(super) fn from_json(value: JsonB) -> Result<Self> {
        serde_json::from_value(value.0).map_err(|e| {
            Error::damaged("the definition of an attached table cannot be read").detail(e.to_string())
        })
    }
}
