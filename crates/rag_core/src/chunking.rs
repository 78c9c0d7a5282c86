//! How a document is cut: the options. The cutting itself is in [`crate::chunk`].

use crate::choices;
use crate::option::{OptionError, OptionReader};
use serde::{Deserialize, Serialize};

/// Fewest units that [`ChunkOptions::size`] can ask for: below it a chunk carries no statement.
pub const MIN_SIZE: u32 = 16;

/// Most tokens that [`ChunkOptions::size`] can ask for: the longest input of the models in use.
pub const MAX_SIZE: u32 = 8_192;

/// Most characters that [`ChunkOptions::size`] can ask for.
pub const MAX_SIZE_CHARACTERS: u32 = 32_768;

/// How a collection's documents are cut into chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkOptions {
    /// The cutting method.
    pub method: ChunkMethod,
    /// What the sizes below count.
    pub unit: SizeUnit,
    /// Most units of a chunk's text; of a section's, where that is cut into chunks that fit the model.
    pub size: u32,
    /// Units that a piece repeats from the end of its predecessor in the same section.
    pub overlap: u32,
    /// What is shorter is joined with its neighbours: sections, or paragraphs with the method
    /// [`ChunkMethod::ParentChild`], or groups of sentences with [`ChunkMethod::Semantic`].
    pub min_size: u32,
    /// Whether title and headings are put before the text when it is embedded.
    pub context: bool,
    /// With the method [`ChunkMethod::Semantic`]: the percentile of the distances between sentences above which a chunk
    /// ends.
    pub breakpoint_percentile: u32,
}

choices! {
    /// The cutting methods.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ChunkMethod {
        /// Paragraph, line, sentence, word, character: the coarsest separator that fits.
        Recursive = "recursive",
        /// Sections of like size: short ones merged, long ones split at paragraphs.
        Section = "section",
        /// Sections as parents, paragraphs as children.
        ParentChild = "parent_child",
        /// Sentences in groups, until what is meant breaks away.
        Semantic = "semantic",
    }
}

choices! {
    /// What sizes count.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SizeUnit {
        /// Tokens of the embedding model, without special tokens.
        Tokens = "tokens",
        /// Unicode scalar values.
        Characters = "characters",
    }
}

impl Default for ChunkOptions {
    fn default() -> Self {
        Self::of(ChunkMethod::Recursive, SizeUnit::Tokens)
    }
}

impl ChunkOptions {
    /// The defaults of a method.
    pub fn of(method: ChunkMethod, unit: SizeUnit) -> Self {
        use ChunkMethod::{ParentChild, Recursive, Section, Semantic};
        use SizeUnit::{Characters, Tokens};
        let (size, overlap, min_size) = match (method, unit) {
            (Recursive, Tokens) => (480, 64, 0),
            (Recursive, Characters) => (500, 100, 0),
            (Section, Tokens) => (1_000, 150, 50),
            (Section, Characters) => (4_000, 600, 200),
            (ParentChild | Semantic, Tokens) => (480, 0, 32),
            (ParentChild | Semantic, Characters) => (2_000, 0, 128),
        };
        Self { method, unit, size, overlap, min_size, context: true, breakpoint_percentile: 95 }
    }

    /// Reads `{"method": "recursive", "unit": "tokens", "size": 480, "overlap": 64, "min_size": 0, "context": true}`;
    /// what is missing has the default of its method and unit.
    ///
    /// Without `overlap` or `min_size`, another `size` than the default gets its share of them, at most a quarter
    /// of `size`. Errors: [`crate::option::OptionErrorKind::Invalid`] for an unknown key, a `size` outside
    /// [`MIN_SIZE`] to [`MAX_SIZE`] ([`MAX_SIZE_CHARACTERS`]), or an `overlap` or `min_size` of more than half of
    /// `size`. The method `recursive` has no `min_size`, and `semantic` alone has `breakpoint_percentile` (1 to 99).
    pub fn from_json(value: &serde_json::Value) -> Result<Self, OptionError> {
        let mut reader = OptionReader::new(value, "chunking")?;
        let options = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(options)
    }

    /// [`ChunkOptions::from_json`] of an object that has other options as well.
    pub fn read(reader: &mut OptionReader<'_>) -> Result<Self, OptionError> {
        let method = reader.choice("method")?.unwrap_or(ChunkMethod::Recursive);
        let unit = reader.choice("unit")?.unwrap_or(SizeUnit::Tokens);
        let most = match unit {
            SizeUnit::Tokens => MAX_SIZE,
            SizeUnit::Characters => MAX_SIZE_CHARACTERS,
        };
        let default = Self::of(method, unit);
        let size = within_u32(reader.integer("size", MIN_SIZE.into()..=most.into())?, default.size);
        // The method's share of the size, as far as it is less than what the method has.
        let share = |of: u32| {
            let share = u64::from(of) * u64::from(size) / u64::from(default.size);
            match method {
                ChunkMethod::Recursive => of.min(size / 4),
                _ => u32::try_from(share).unwrap_or(of).min(size / 4),
            }
        };
        let half = 0..=i64::from(size / 2);
        let overlap = within_u32(reader.integer("overlap", half.clone())?, share(default.overlap));
        let min_size = match method {
            ChunkMethod::Recursive => 0,
            _ => within_u32(reader.integer("min_size", half)?, default.min_size.min(size / 4)),
        };
        let context = reader.boolean("context")?.unwrap_or(default.context);
        let percentile = match method {
            ChunkMethod::Semantic => reader.integer("breakpoint_percentile", 1..=99)?,
            _ => None,
        };
        let breakpoint_percentile = within_u32(percentile, default.breakpoint_percentile);
        Ok(Self { method, unit, size, overlap, min_size, context, breakpoint_percentile })
    }
}

fn within_u32(value: Option<i64>, default: u32) -> u32 {
    value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn missing_options_have_their_defaults() {
        assert_eq!(ChunkOptions::from_json(&json!({})).unwrap(), ChunkOptions::default());
        let small = ChunkOptions::from_json(&json!({"size": 40})).unwrap();
        assert_eq!((small.size, small.overlap), (40, 10));
        let given =
            ChunkOptions::from_json(&json!({"method": "recursive", "size": 200, "overlap": 0})).unwrap();
        assert_eq!((given.size, given.overlap), (200, 0));
    }

    #[test]
    fn each_method_and_unit_has_defaults_of_its_own() {
        let check = |options: serde_json::Value, expected: (u32, u32, u32)| {
            let read = ChunkOptions::from_json(&options).unwrap();
            assert_eq!((read.size, read.overlap, read.min_size), expected, "{options}");
        };
        check(json!({}), (480, 64, 0));
        check(json!({"unit": "characters"}), (500, 100, 0));
        check(json!({"method": "section"}), (1000, 150, 50));
        check(json!({"method": "section", "size": 2000}), (2000, 300, 50));
        check(json!({"method": "section", "size": 100}), (100, 15, 25));
        check(json!({"method": "section", "overlap": 0, "min_size": 0}), (1000, 0, 0));
        check(json!({"method": "section", "unit": "characters"}), (4000, 600, 200));
        check(json!({"method": "parent_child"}), (480, 0, 32));
        check(json!({"method": "semantic"}), (480, 0, 32));
        let semantic = |options| ChunkOptions::from_json(&options).unwrap().breakpoint_percentile;
        assert_eq!(semantic(json!({"method": "semantic"})), 95);
        assert_eq!(semantic(json!({"method": "semantic", "breakpoint_percentile": 80})), 80);
        assert!(!ChunkOptions::from_json(&json!({"context": false})).unwrap().context);
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_limit() {
        let cases = [
            (json!({"size": 15}), "option \"size\" of chunking is 15", "It must be between 16 and 8192."),
            (
                json!({"size": 40_000, "unit": "characters"}),
                "option \"size\" of chunking is 40000",
                "It must be between 16 and 32768.",
            ),
            (
                json!({"size": 100, "overlap": 51}),
                "option \"overlap\" of chunking is 51",
                "It must be between 0 and 50.",
            ),
            (
                json!({"method": "section", "size": 100, "min_size": 51}),
                "option \"min_size\" of chunking is 51",
                "It must be between 0 and 50.",
            ),
            (
                json!({"method": "fixed"}),
                "option \"method\" of chunking is \"fixed\"",
                "It can be \"recursive\", \"section\", \"parent_child\", \"semantic\".",
            ),
            (
                json!({"method": "semantic", "breakpoint_percentile": 100}),
                "option \"breakpoint_percentile\" of chunking is 100",
                "It must be between 1 and 99.",
            ),
            (
                json!({"unit": "words"}),
                "option \"unit\" of chunking is \"words\"",
                "It can be \"tokens\", \"characters\".",
            ),
            (
                json!({"min_size": 1}),
                "unknown option \"min_size\" of chunking",
                "Known options are \"method\", \"unit\", \"size\", \"overlap\", \"context\".",
            ),
        ];
        for (options, message, hint) in cases {
            let error = ChunkOptions::from_json(&options).unwrap_err();
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)));
        }
    }
}
