//! Options of a collection, read from jsonb.

use crate::chunking::ChunkOptions;
use crate::graph::Extraction;
use crate::option::{OptionError, OptionReader};
use serde_json::Value;

/// What a collection's owner says of it.
#[derive(Debug, Clone)]
pub struct CollectionOptions {
    /// How its documents are cut.
    pub chunking: ChunkOptions,
    /// The default of the search option of this name, for its chunks; 0 to 1.
    pub feedback_boost: Option<f64>,
    /// By what the graph of its documents is found.
    pub graph: Extraction,
    /// Whether their text may go to chat and reranking endpoints beyond this machine, where the server's settings allow it.
    pub remote: bool,
}

impl CollectionOptions {
    /// Those that do not say how documents are cut.
    const NOT_ABOUT_CUTTING: [&'static str; 2] = ["feedback_boost", "remote"];

    /// Reads them. Errors: an unknown option, or a value out of its range.
    pub fn from_json(options: &Value) -> Result<Self, OptionError> {
        let mut reader = OptionReader::new(options, "rag_create_collection")?;
        let chunking = match reader.object("chunking")? {
            Some(chunking) => ChunkOptions::from_json(chunking)?,
            None => ChunkOptions::default(),
        };
        let feedback_boost = reader.number("feedback_boost", 0.0..=1.0)?;
        let graph = reader.choice("graph")?.unwrap_or_default();
        let remote = reader.boolean("remote")?.unwrap_or(true);
        reader.finish()?;
        Ok(Self { chunking, feedback_boost, graph, remote })
    }
}

/// A collection's options where some are given anew: these take the place of those of the same names; none at all take all
/// back. With whether they may say how documents are cut.
pub fn altered(former: &Value, given: &Value) -> (Value, bool) {
    let (Some(former), Some(given)) = (former.as_object(), given.as_object()) else {
        return (given.clone(), true);
    };
    if given.is_empty() {
        return (Value::Object(given.clone()), true);
    }
    let mut altered = former.clone();
    altered.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
    let cuts = given.keys().any(|name| !CollectionOptions::NOT_ABOUT_CUTTING.contains(&name.as_str()));
    (Value::Object(altered), cuts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_read_and_refused() {
        let read = |options| CollectionOptions::from_json(&options).map(|read| read.feedback_boost);
        assert_eq!(read(json!({})), Ok(None));
        assert_eq!(read(json!({ "feedback_boost": 0.25, "chunking": { "size": 100 } })), Ok(Some(0.25)));
        assert!(read(json!({ "feedback_boost": 1.5 })).is_err());
        assert!(read(json!({ "boost": 1 })).is_err());
        assert!(read(json!({ "remote": "no" })).is_err());
        let remote = |options| CollectionOptions::from_json(&options).map(|read| read.remote);
        assert_eq!((remote(json!({})), remote(json!({ "remote": false }))), (Ok(true), Ok(false)));
        assert!(read(json!({ "chunking": { "size": -1 } })).is_err());
    }

    #[test]
    fn options_that_are_given_take_the_place_of_the_former_ones() {
        let former = json!({ "chunking": { "size": 100 }, "feedback_boost": 0.5 });
        let check = |given: Value, expected: Value, cuts: bool| {
            assert_eq!(altered(&former, &given), (expected, cuts));
        };
        check(json!({}), json!({}), true);
        check(
            json!({ "feedback_boost": 0.1 }),
            json!({ "chunking": { "size": 100 }, "feedback_boost": 0.1 }),
            false,
        );
        check(
            json!({ "remote": false }),
            json!({ "chunking": { "size": 100 }, "feedback_boost": 0.5, "remote": false }),
            false,
        );
        check(json!({ "chunking": {} }), json!({ "chunking": {}, "feedback_boost": 0.5 }), true);
        check(
            json!({ "chunking": {}, "feedback_boost": 0 }),
            json!({ "chunking": {}, "feedback_boost": 0 }),
            true,
        );
    }
}
