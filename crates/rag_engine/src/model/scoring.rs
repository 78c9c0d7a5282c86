//! How a reranker on this machine makes a score of a pair, as `rag_model.json` says, and the tokens that it names.

use super::folder::ModelFolder;
use serde::Deserialize;
use tokenizers::Tokenizer;

/// What a reranker's graph computes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scoring {
    /// A cross-encoder: one logit for query and passage, read together.
    #[default]
    CrossEncoder,
    /// A decoder that is asked whether the passage answers the query.
    YesNo(YesNo),
    /// An encoder of query and passage apart, whose token vectors are compared.
    LateInteraction(LateInteraction),
}

/// What a decoder is asked, and which two tokens are its answers. Defaults are those of Qwen3-Reranker (Zhang et al., 2025).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct YesNo {
    /// What comes before the body, special tokens included.
    pub prefix: String,
    /// The body, with `{query}`, `{document}` and, if wanted, `{instruction}`; special tokens in it are plain text.
    pub body: String,
    /// What comes after the body, special tokens included.
    pub suffix: String,
    /// What counts as an answer.
    pub instruction: String,
    /// The token of one that does.
    pub yes: String,
    /// The token of one that does not.
    pub no: String,
}

impl Default for YesNo {
    fn default() -> Self {
        Self {
            prefix: "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n".into(),
            body: "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}".into(),
            suffix: "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n".into(),
            instruction: "Given a web search query, retrieve relevant passages that answer the query".into(),
            yes: "yes".into(),
            no: "no".into(),
        }
    }
}

/// How texts become token vectors: ColBERT (Khattab and Zaharia, 2020) and its descendants. Defaults are those of ColBERTv2
/// but for its markers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LateInteraction {
    /// Tokens of a query, special ones included: a longer one is cut, a shorter one filled up with `mask`.
    pub query_length: usize,
    /// The token behind the first one of a query; empty for none.
    pub query_marker: String,
    /// The same of a document.
    pub document_marker: String,
    /// The token that fills up a query, and whose vectors count like those of its words; none leaves it short.
    pub mask: Option<String>,
    /// Whether other tokens attend to the mask.
    pub attend_to_mask: bool,
    /// Words of one token whose vectors do not count in a document.
    pub skip: Vec<String>,
}

impl Default for LateInteraction {
    fn default() -> Self {
        let punctuation = (b'!'..=b'~').filter(u8::is_ascii_punctuation);
        Self {
            query_length: 32,
            query_marker: String::new(),
            document_marker: String::new(),
            mask: Some("[MASK]".into()),
            attend_to_mask: false,
            skip: punctuation.map(|sign| char::from(sign).to_string()).collect(),
        }
    }
}

impl Scoring {
    /// What a folder says; in words what is wrong with it.
    pub(super) fn read(
        yes_no: Option<YesNo>,
        late_interaction: Option<LateInteraction>,
    ) -> Result<Self, &'static str> {
        match (yes_no, late_interaction) {
            (None, None) => Ok(Self::CrossEncoder),
            (Some(_), Some(_)) => Err("a model has yes_no or late_interaction, not both"),
            (Some(yes_no), None) => {
                let has = |part: &str| yes_no.body.matches(part).count() == 1;
                if !has("{query}") || !has("{document}") {
                    return Err("yes_no.body needs {query} and {document}, each once");
                }
                Ok(Self::YesNo(yes_no))
            }
            (None, Some(late)) if !(4..=512).contains(&late.query_length) => {
                Err("late_interaction.query_length is from 4 to 512")
            }
            (None, Some(late)) => Ok(Self::LateInteraction(late)),
        }
    }
}

/// The tokenizer of a folder, with its baked-in padding and truncation taken off.
pub(crate) fn vocabulary(folder: &ModelFolder) -> Result<Tokenizer, String> {
    let mut tokenizer =
        Tokenizer::from_file(&folder.tokenizer).map_err(|e| format!("tokenizer.json: {e}"))?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
    Ok(tokenizer)
}

/// The id of a token by its text.
pub(crate) fn token(tokenizer: &Tokenizer, text: &str) -> Result<u32, String> {
    tokenizer.token_to_id(text).ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        format!("the tokenizer has no token {shown:?}")
    })
}

/// Ids of the words that are one token each; others are left out, for no single vector stands for them.
pub(crate) fn single_tokens(tokenizer: &Tokenizer, words: &[String]) -> Result<Vec<u32>, String> {
    let mut ids = Vec::new();
    for word in words {
        let encoding = tokenizer.encode_fast(word.as_str(), false).map_err(|e| e.to_string())?;
        if let [id] = encoding.get_ids() {
            ids.push(*id);
        }
    }
    Ok(ids)
}
