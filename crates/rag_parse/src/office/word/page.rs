//! Pages of a text document: those that Word last laid out, and breaks that the author has set.

use crate::ParseError;
use crate::xml::{Piece, Xml};
use std::collections::VecDeque;

/// Counts pages.
pub(crate) struct Pages {
    page: u32,
    /// Whether the document says anything of its pages.
    are_known: bool,
    /// A break that the author has set is not followed by text yet. Word marks the page that it leads to as well.
    is_fresh: bool,
    has_text: bool,
    /// For each section after the first, whether it begins on a page of its own; empty where Word has marked pages.
    sections: VecDeque<bool>,
}

impl Pages {
    /// Looks at a document for the first time. How a section begins is said at its end.
    pub(crate) fn of(text: &str, part: &str) -> Result<Self, ParseError> {
        let mut sections = VecDeque::new();
        if !text.contains("lastRenderedPageBreak") && text.matches("sectPr").take(3).count() == 3 {
            let mut xml = Xml::new(text, part);
            while let Some(piece) = xml.next()? {
                let Piece::Start(element) = piece else { continue };
                if element.name() != "sectPr" {
                    continue;
                }
                let mut begins_page = true;
                while let Some(property) = xml.child()? {
                    if property.name() == "type" {
                        begins_page = !matches!(
                            property.attribute("val").as_deref(),
                            Some("continuous" | "nextColumn")
                        );
                    }
                    xml.skip()?;
                }
                sections.push_back(begins_page);
            }
            sections.pop_front();
        }
        Ok(Self { page: 1, are_known: false, is_fresh: false, has_text: false, sections })
    }

    pub(crate) fn are_known(&self) -> bool {
        self.are_known
    }

    /// There is text.
    pub(crate) fn text(&mut self) {
        self.is_fresh = false;
        self.has_text = true;
    }

    /// Word began a page here.
    pub(crate) fn rendered(&mut self) -> Option<u32> {
        self.are_known = true;
        if std::mem::take(&mut self.is_fresh) { None } else { Some(self.next()) }
    }

    /// The author begins a page here.
    pub(crate) fn set(&mut self) -> u32 {
        self.are_known = true;
        self.is_fresh = true;
        self.next()
    }

    /// The author begins a page before this paragraph. At the start of the document there is one already.
    pub(crate) fn set_before(&mut self) -> Option<u32> {
        (self.has_text && !self.is_fresh).then(|| self.set())
    }

    /// A section ends here.
    pub(crate) fn section(&mut self) -> Option<u32> {
        let begins_page = self.sections.pop_front().unwrap_or_default();
        (begins_page && !self.is_fresh).then(|| self.set())
    }

    fn next(&mut self) -> u32 {
        self.page = self.page.saturating_add(1);
        self.page
    }
}
