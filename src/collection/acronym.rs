//! Acronyms that the owner of a collection gives.

use super::name::candidates;
use super::rights::own_collection;
use crate::error::{Error, Result, excerpt};
use crate::pg::elevation::elevated;
use crate::storage::acronym;
use rag_core::acronym::{Acronym, MAX_LONG_CHARS, MAX_SHORT_CHARS, long_key};

/// Most acronyms that are given for one collection.
const MOST: i64 = 10_000;

/// Says what a short form stands for. 22023: no form. 54000: the collection has as many as it may.
pub(crate) fn set(collection: &str, short: &str, long: &str) -> Result<()> {
    let short = checked(short, "short_form", MAX_SHORT_CHARS)?;
    if short.contains(char::is_whitespace) {
        return Err(Error::invalid(format!("short_form \"{}\" has more than one word", excerpt(short)))
            .hint("A short form is one word, as \"WAL\". Give several words as the long form."));
    }
    let long = checked(long, "long_form", MAX_LONG_CHARS)?;
    if long_key(long) == long_key(short) {
        return Err(Error::invalid(format!("\"{}\" stands for itself", excerpt(short)))
            .hint("Give the words that the short form stands for."));
    }
    let visible = candidates(collection)?;
    let chosen = own_collection(&visible, collection)?;
    let acronym = Acronym { short: short.to_owned(), long: long.to_owned(), is_given: true };
    if elevated(|| acronym::set(chosen.id, &acronym, MOST))? {
        Ok(())
    } else {
        Err(Error::limit(format!(
            "collection \"{}\" has {MOST} acronyms, and more are not allowed",
            excerpt(collection)
        ))
        .hint("Take back those that are not needed with rag_drop_acronym."))
    }
}

/// Takes back the meanings of a short form, or one of them; returns how many.
pub(crate) fn drop_set(collection: &str, short: &str, long: Option<&str>) -> Result<i64> {
    let visible = candidates(collection)?;
    let chosen = own_collection(&visible, collection)?;
    elevated(|| acronym::drop_set(chosen.id, short.trim(), long))
}

fn checked<'a>(form: &'a str, argument: &str, most: usize) -> Result<&'a str> {
    let form = form.trim();
    let chars = form.chars().count();
    if chars > most {
        return Err(Error::invalid(format!("{argument} has {chars} characters, more than {most}"))
            .hint(format!("Give at most {most} characters.")));
    }
    if !form.contains(char::is_alphanumeric) || form.contains(char::is_control) {
        return Err(Error::invalid(format!("{argument} \"{}\" is no word", excerpt(form)))
            .hint("Give at least one letter or digit, and no control characters."));
    }
    Ok(form)
}
