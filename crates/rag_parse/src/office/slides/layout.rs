//! Layouts and masters: where a slide's placeholders stand and which of their paragraphs have bullets.

use super::shape::{Bounds, Placeholder, bounds};
use crate::ParseError;
use crate::office::package::Relationships;
use crate::xml::{Piece, Xml};
use crate::zip::Archive;
use std::collections::HashMap;
use std::rc::Rc;

/// Most placeholders of a layout; those beyond are passed over.
const MAX_PLACEHOLDERS: usize = 200;

/// Levels of a list.
pub(super) const LEVELS: usize = 9;

/// What stands before a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bullet {
    None,
    Sign,
    /// A scheme such as `arabicPeriod`, and the first number.
    Number(String, u32),
}

/// Bullets by level, as far as they are said.
pub(super) type ListStyle = [Option<Bullet>; LEVELS];

/// A layout or master.
#[derive(Default)]
pub(super) struct Layout {
    placeholders: Vec<LayoutPlaceholder>,
    /// Of the master's text in general.
    body: ListStyle,
    master: Option<Rc<Self>>,
}

/// A placeholder of a layout.
pub(super) struct LayoutPlaceholder {
    placeholder: Placeholder,
    pub(super) bounds: Option<Bounds>,
    pub(super) bullets: ListStyle,
}

impl Layout {
    /// The placeholders that one of a slide inherits from, the nearest first.
    pub(super) fn inherited_by<'a>(
        &'a self,
        of: &'a Placeholder,
    ) -> impl Iterator<Item = &'a LayoutPlaceholder> {
        let own = self.placeholders.iter().find(|one| one.placeholder.index == of.index);
        let own = own.or_else(|| self.placeholders.iter().find(|one| one.placeholder.is_like(of)));
        // A master has one placeholder of each kind.
        let masters = self.master.as_deref().into_iter();
        let of_master = masters
            .filter_map(move |master| master.placeholders.iter().find(|one| one.placeholder.is_like(of)));
        own.into_iter().chain(of_master)
    }

    /// Bullets of body text at a level, where no placeholder says.
    pub(super) fn body(&self, level: usize) -> Option<&Bullet> {
        self.master.as_deref().unwrap_or(self).body.get(level)?.as_ref()
    }
}

/// The layouts that have been read, by the names of their parts.
#[derive(Default)]
pub(super) struct Layouts {
    by_part: HashMap<String, Rc<Layout>>,
}

impl Layouts {
    /// The layout of a slide, with its master; `None` if it is missing.
    pub(super) fn of(
        &mut self,
        archive: &Archive<'_>,
        slide: &Relationships,
    ) -> Result<Option<Rc<Layout>>, ParseError> {
        let Some(part) = slide.part("slideLayout") else { return Ok(None) };
        if let Some(known) = self.by_part.get(part) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(text) = archive.text(part)? else { return Ok(None) };
        let links = Relationships::of(archive, part)?;
        let mut layout = read(&text, part)?;
        if let Some(master) = links.part("slideMaster") {
            layout.master = self.master(archive, master)?;
        }
        let layout = Rc::new(layout);
        self.by_part.insert(part.to_owned(), Rc::clone(&layout));
        Ok(Some(layout))
    }

    fn master(&mut self, archive: &Archive<'_>, part: &str) -> Result<Option<Rc<Layout>>, ParseError> {
        if let Some(known) = self.by_part.get(part) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(text) = archive.text(part)? else { return Ok(None) };
        let master = Rc::new(read(&text, part)?);
        self.by_part.insert(part.to_owned(), Rc::clone(&master));
        Ok(Some(master))
    }
}

fn read(text: &str, part: &str) -> Result<Layout, ParseError> {
    let mut layout = Layout::default();
    let mut xml = Xml::new(text, part);
    let mut placeholder: Option<LayoutPlaceholder> = None;
    while let Some(piece) = xml.next()? {
        let Piece::Start(element) = piece else { continue };
        match element.name() {
            "sp" => {
                layout.placeholders.extend(placeholder.take());
            }
            "ph" if layout.placeholders.len() < MAX_PLACEHOLDERS => {
                placeholder = Some(LayoutPlaceholder {
                    placeholder: Placeholder::of(&element),
                    bounds: None,
                    bullets: ListStyle::default(),
                });
            }
            "xfrm" => {
                let found = bounds(&mut xml)?;
                if let Some(placeholder) = &mut placeholder {
                    placeholder.bounds = placeholder.bounds.or(found);
                }
            }
            "lstStyle" => {
                let found = list_style(&mut xml)?;
                if let Some(placeholder) = &mut placeholder {
                    placeholder.bullets = found;
                }
            }
            "bodyStyle" => layout.body = list_style(&mut xml)?,
            _ => {}
        }
    }
    layout.placeholders.extend(placeholder);
    Ok(layout)
}

/// Reads the levels below the element whose start was read last.
pub(super) fn list_style(xml: &mut Xml<'_>) -> Result<ListStyle, ParseError> {
    let mut style = ListStyle::default();
    while let Some(element) = xml.child()? {
        let level = element.name().strip_prefix("lvl").and_then(|rest| rest.strip_suffix("pPr"));
        let level =
            level.and_then(|level| level.parse::<usize>().ok()).filter(|level| (1..=LEVELS).contains(level));
        let found = bullet(xml)?;
        if let Some(level) = level {
            style[level - 1] = found;
        }
    }
    Ok(style)
}

/// The bullet that the properties below the element whose start was read last name.
pub(super) fn bullet(xml: &mut Xml<'_>) -> Result<Option<Bullet>, ParseError> {
    let mut bullet = None;
    while let Some(element) = xml.child()? {
        match element.name() {
            "buNone" => bullet = Some(Bullet::None),
            "buChar" | "buBlip" => bullet = Some(Bullet::Sign),
            "buAutoNum" => {
                let scheme = element.attribute("type").unwrap_or_default();
                bullet = Some(Bullet::Number(scheme, element.number("startAt").unwrap_or(1)));
            }
            _ => {}
        }
        xml.skip()?;
    }
    Ok(bullet)
}
