//! Prompts that a superuser has given a collection, or all that have none of their own.

use super::name::candidates;
use super::rights::own_collection;
use crate::error::{Error, Result};
use crate::pg::elevation::elevated;
use crate::pg::server;
use crate::storage::prompt_template;
use rag_core::answer::prompt::{Example, PromptTemplate};
use rag_core::option::{OptionError, OptionReader};
use serde_json::Value;

const OWNER: &str = "rag_set_prompt";

/// Most characters of what a prompt begins with, of its tone, of its language, and of each text of an example.
const MAX_SYSTEM_CHARS: usize = 8_000;
const MAX_TONE_CHARS: usize = 2_000;
const MAX_LANGUAGE_CHARS: usize = 100;
const MAX_EXAMPLE_CHARS: usize = 4_000;

/// Most examples, and most passages of each.
const MAX_EXAMPLES: usize = 8;
const MAX_PASSAGES: usize = 8;

/// Says what a collection's prompts are, or those of all collections without their own; an empty template takes that back.
/// 42501: no superuser. 22023: no template. 54000: it is too long.
pub(crate) fn set(collection: Option<&str>, template: &Value) -> Result<()> {
    if !server::user_is_superuser() {
        return Err(Error::forbidden(format!("permission denied for {OWNER}")).hint("Must be superuser."));
    }
    let template = template_of(template)?;
    let collection = collection
        .map(|name| {
            let visible = candidates(name)?;
            own_collection(&visible, name).map(|collection| collection.id)
        })
        .transpose()?;
    elevated(|| match template == PromptTemplate::default() {
        true => prompt_template::remove(collection),
        false => prompt_template::set(collection, &template),
    })
}

fn template_of(template: &Value) -> Result<PromptTemplate> {
    let mut reader = OptionReader::new(template, OWNER)?;
    let mut text = |key, most| Ok::<_, OptionError>(reader.text(key, most)?.map(str::to_owned));
    let system = text("system", MAX_SYSTEM_CHARS)?;
    let tone = text("tone", MAX_TONE_CHARS)?;
    let language = text("language", MAX_LANGUAGE_CHARS)?;
    let examples = reader.value("examples");
    reader.finish()?;
    let examples = examples.map(examples_of).transpose()?.unwrap_or_default();
    Ok(PromptTemplate { system, tone, language, examples })
}

fn examples_of(examples: &Value) -> Result<Vec<Example>> {
    let list = list(examples, "examples", MAX_EXAMPLES)?;
    list.iter()
        .map(|example| {
            let mut reader = OptionReader::new(example, "an example of rag_set_prompt")?;
            let question = reader.text("question", MAX_EXAMPLE_CHARS)?.map(str::to_owned);
            let answer = reader.text("answer", MAX_EXAMPLE_CHARS)?.unwrap_or_default().to_owned();
            let passages = reader.value("passages");
            reader.finish()?;
            let missing = || Error::invalid("an example of rag_set_prompt has no question").hint(HINT);
            let passages = match passages {
                Some(passages) => texts(passages)?,
                None => Vec::new(),
            };
            Ok(Example { passages, question: question.ok_or_else(missing)?, answer })
        })
        .collect()
}

const HINT: &str =
    "examples is [{\"passages\": [text, …], \"question\": text, \"answer\": \"Text. [1]\"}, …].";

fn texts(passages: &Value) -> Result<Vec<String>> {
    list(passages, "passages", MAX_PASSAGES)?
        .iter()
        .map(|text| match text.as_str() {
            Some(text) if text.chars().count() <= MAX_EXAMPLE_CHARS => Ok(text.to_owned()),
            Some(_) => Err(Error::limit(format!(
                "a passage of rag_set_prompt has more than {MAX_EXAMPLE_CHARS} characters"
            ))),
            None => Err(Error::invalid("passages of rag_set_prompt must be texts").hint(HINT)),
        })
        .collect()
}

fn list<'a>(value: &'a Value, key: &str, most: usize) -> Result<&'a Vec<Value>> {
    match value.as_array() {
        Some(list) if list.len() <= most => Ok(list),
        Some(list) => Err(Error::limit(format!(
            "option \"{key}\" of {OWNER} has {} elements, but the limit is {most}",
            list.len()
        ))),
        None => Err(Error::invalid(format!("option \"{key}\" of {OWNER} must be an array")).hint(HINT)),
    }
}
