//! What an office document says about itself in its core properties (ECMA-376, part 2, 11).

use super::package::Relationships;
use crate::ParseError;
use crate::properties::{
    AUTHOR, CREATED, DESCRIPTION, KEYWORDS, LANGUAGE, MODIFIED, Properties, SUBJECT, TITLE,
};
use crate::xml::Xml;
use crate::zip::Archive;

/// Reads the core properties; none if the part is missing. The title is left out where a program has chosen it.
pub(crate) fn read(archive: &Archive<'_>) -> Result<Properties, ParseError> {
    let mut properties = Properties::default();
    let named = Relationships::of(archive, "")?.part("core-properties").map(str::to_owned);
    let name = named.unwrap_or_else(|| "docProps/core.xml".to_owned());
    let Some(text) = archive.text(&name)? else { return Ok(properties) };
    let mut xml = Xml::new(&text, &name);
    if xml.child()?.is_none() {
        return Ok(properties);
    }
    while let Some(element) = xml.child()? {
        let key = match element.name() {
            "title" => TITLE,
            "creator" => AUTHOR,
            "created" => CREATED,
            "modified" => MODIFIED,
            "language" => LANGUAGE,
            "subject" => SUBJECT,
            "keywords" => KEYWORDS,
            "description" => DESCRIPTION,
            "category" => "category",
            "lastModifiedBy" => "last_modified_by",
            _ => {
                xml.skip()?;
                continue;
            }
        };
        let value = xml.text()?;
        match key {
            TITLE if is_of_a_program(&value) => {}
            // Word parts several authors so.
            AUTHOR => value.split(';').for_each(|author| properties.add(AUTHOR, author)),
            _ => properties.set(key, &value),
        }
    }
    Ok(properties)
}

/// Whether a title is what a program puts where the author gave none.
fn is_of_a_program(title: &str) -> bool {
    let title = title.trim().to_lowercase();
    let title = title.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    title.starts_with("microsoft word - ")
        || title.starts_with("microsoft powerpoint - ")
        || PROGRAMS_TITLES.contains(&title)
}

const PROGRAMS_TITLES: &[&str] = &[
    "document",
    "dokument",
    "folie",
    "no slide title",
    "powerpoint presentation",
    "powerpoint-präsentation",
    "présentation powerpoint",
    "presentación de powerpoint",
    "presentazione standard di powerpoint",
    "presentation",
    "präsentation",
    "slide",
    "title",
    "untitled",
    "word document",
];
