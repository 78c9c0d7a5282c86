//! The titles that a table of contents gives to the parts of a book.

use super::{Package, target};
use crate::ParseError;
use crate::properties::one_line;
use crate::xml::{Piece, Xml};
use crate::zip::Archive;
use std::collections::HashMap;

/// Titles with their levels, by the part that they open.
#[derive(Default)]
pub(super) struct Contents {
    by_part: HashMap<String, (u8, String)>,
}

impl Contents {
    /// Reads the table of contents. One that is missing or damaged says nothing, or as much as could be read.
    pub(super) fn of(archive: &Archive<'_>, package: &Package) -> Self {
        let mut contents = Self::default();
        let new = package.items.iter().find(|item| item.is_contents);
        let old = package.old_contents.as_ref().and_then(|id| package.by_id.get(id));
        for part in new.into_iter().chain(old.map(|item| &package.items[*item])).map(|item| &item.part) {
            if let Ok(Some(text)) = archive.text(part) {
                let _ = contents.read(&text, part);
            }
        }
        contents
    }

    /// Level and title of a part.
    pub(super) fn get(&self, part: &str) -> Option<(u8, &str)> {
        self.by_part.get(part).map(|(level, title)| (*level, title.as_str()))
    }

    /// Links in nested lists, or points with a label and a content.
    fn read(&mut self, text: &str, part: &str) -> Result<(), ParseError> {
        let folder = part.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut xml = Xml::new(text, part);
        let mut open: Vec<bool> = Vec::new();
        let mut label = String::new();
        while let Some(piece) = xml.next()? {
            let element = match piece {
                Piece::Start(element) => element,
                Piece::End => {
                    open.pop();
                    continue;
                }
                Piece::Text(_) => continue,
            };
            let level = open.iter().filter(|is_level| **is_level).count().clamp(1, 6) as u8;
            match element.name() {
                "a" => {
                    let href = element.attribute("href");
                    let title = xml.text()?;
                    self.add(folder, href, level, &title);
                    continue;
                }
                "navLabel" => {
                    label = xml.text()?;
                    continue;
                }
                "content" => self.add(folder, element.attribute("src"), level, &label),
                _ => {}
            }
            open.push(matches!(element.name(), "ol" | "navPoint"));
        }
        Ok(())
    }

    /// Of several titles for a part the first counts.
    fn add(&mut self, folder: &str, href: Option<String>, level: u8, title: &str) {
        if let Some(href) = href
            && let (part, _) = target(folder, &href)
            && let Some(title) = one_line(title)
        {
            self.by_part.entry(part).or_insert((level, title));
        }
    }
}
