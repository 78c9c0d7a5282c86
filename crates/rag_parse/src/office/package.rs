//! Packages: parts, and the relationships by which they name each other (ECMA-376, part 2).

use crate::xml::Xml;
use crate::zip::{Archive, normalized};
use crate::{ParseError, ParseErrorKind};
use rag_core::option::quoted;
use std::collections::HashMap;

/// Most relationships of one part; those beyond are passed over.
const MAX_RELATIONSHIPS: usize = 100_000;

/// What one part says of others, by the id that its content uses.
#[derive(Default)]
pub(crate) struct Relationships {
    by_id: HashMap<String, Relationship>,
}

/// One part named by another.
pub(crate) struct Relationship {
    /// The last segment of the type's address, such as `styles`: the rest differs between dialects.
    pub(crate) kind: String,
    /// Name of the part in the archive; an address where the target is outside.
    pub(crate) target: String,
    pub(crate) is_external: bool,
}

impl Relationships {
    /// Reads the relationships of a part; none if it has none. `""` is the package itself.
    pub(crate) fn of(archive: &Archive<'_>, part: &str) -> Result<Self, ParseError> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let name = normalized(&format!("{folder}/_rels/{file}.rels"));
        let Some(text) = archive.text(&name)? else { return Ok(Self::default()) };
        let mut xml = Xml::new(&text, &name);
        let mut by_id = HashMap::new();
        if xml.child()?.is_none() {
            return Ok(Self::default());
        }
        while let Some(element) = xml.child()? {
            if element.name() == "Relationship"
                && by_id.len() < MAX_RELATIONSHIPS
                && let (Some(id), Some(kind), Some(target)) =
                    (element.attribute("Id"), element.attribute("Type"), element.attribute("Target"))
            {
                let is_external = element.attribute("TargetMode").as_deref() == Some("External");
                let target = match () {
                    () if is_external => target,
                    () if target.starts_with('/') => normalized(&target),
                    () => normalized(&format!("{folder}/{target}")),
                };
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                by_id.insert(id, Relationship { kind, target, is_external });
            }
            xml.skip()?;
        }
        Ok(Self { by_id })
    }

    /// The relationship of an id.
    pub(crate) fn get(&self, id: &str) -> Option<&Relationship> {
        self.by_id.get(id)
    }

    /// The parts of a kind, by name.
    pub(crate) fn parts(&self, kind: &str) -> Vec<&str> {
        let parts = self.by_id.values().filter(|found| found.kind == kind && !found.is_external);
        let mut parts: Vec<&str> = parts.map(|found| found.target.as_str()).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The part of a kind; of several, the one whose name comes first.
    pub(crate) fn part(&self, kind: &str) -> Option<&str> {
        let parts = self.by_id.values().filter(|found| found.kind == kind && !found.is_external);
        parts.map(|found| found.target.as_str()).min()
    }
}

/// The main part of a package: its name and text.
///
/// Errors: [`ParseErrorKind::NotParsable`] if it is missing.
pub(crate) fn main_part(archive: &Archive<'_>, usual: &str) -> Result<(String, String), ParseError> {
    let named = Relationships::of(archive, "")?.part("officeDocument").map(str::to_owned);
    let name = named.filter(|name| archive.has(name)).unwrap_or_else(|| usual.to_owned());
    match archive.text(&name)? {
        Some(text) => Ok((name, text)),
        None => Err(ParseError::new(
            ParseErrorKind::NotParsable,
            format!("document has no part {}", quoted(&name)),
            Some("The file is damaged."),
        )),
    }
}
