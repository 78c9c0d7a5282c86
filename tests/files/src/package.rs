//! A document that is an archive of parts, before it is packed, so that single parts can be replaced.

use crate::zip::{Archive, Packed};
use crate::{epub, office};

/// Parts in the order of the archive.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) parts: Vec<(String, Vec<u8>)>,
}

impl Package {
    pub(crate) fn new(parts: &[(&str, &str)]) -> Self {
        Self {
            parts: parts.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect(),
        }
    }

    /// The same with one part replaced, or added at the end.
    pub(crate) fn with(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        match self.parts.iter_mut().find(|(known, _)| known == name) {
            Some(part) => part.1 = bytes,
            None => self.parts.push((name.to_owned(), bytes)),
        }
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.parts.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn zip(&self) -> Vec<u8> {
        self.zip_with(&[])
    }

    /// Packs it with some parts replaced by what is packed already.
    pub(crate) fn zip_with(&self, packed: &[(&str, Packed)]) -> Vec<u8> {
        let mut archive = Archive::default();
        for (name, bytes) in &self.parts {
            match packed.iter().find(|(known, _)| known == name) {
                Some((_, packed)) => archive.add(name, packed),
                // EPUB wants the first entry to be readable where it stands.
                None if name == "mimetype" => archive.add(name, &Packed::stored(bytes)),
                None => archive.add(name, &Packed::deflated(bytes)),
            };
        }
        for (name, packed) in
            packed.iter().filter(|(name, _)| self.parts.iter().all(|(known, _)| known != name))
        {
            archive.add(name, packed);
        }
        archive.finish()
    }
}

/// Formats that are packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    /// Word.
    Docx,
    /// PowerPoint.
    Pptx,
    /// Excel.
    Xlsx,
    /// An electronic book.
    Epub,
}

impl PackageKind {
    fn sound(self) -> Package {
        match self {
            Self::Docx => office::docx(office::WORDS),
            Self::Pptx => office::pptx(),
            Self::Xlsx => office::xlsx(office::ROWS),
            Self::Epub => epub::epub(&[("c1", epub::CHAPTER)], &["c1"]),
        }
    }

    /// The parts that matter most, in the order in which [`Self::around`] takes them.
    fn main_parts(self) -> &'static [&'static str] {
        match self {
            Self::Docx => &["word/document.xml", "word/styles.xml", "word/_rels/document.xml.rels"],
            Self::Pptx => {
                &["ppt/slides/slide1.xml", "ppt/presentation.xml", "ppt/_rels/presentation.xml.rels"]
            }
            Self::Xlsx => {
                &["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml", "xl/styles.xml"]
            }
            Self::Epub => &["OEBPS/c1.xhtml", "OEBPS/book.opf", "META-INF/container.xml"],
        }
    }

    /// A package whose main parts are these bytes, split at NUL characters; others are sound.
    pub fn around(self, parts: &[u8]) -> Vec<u8> {
        let replaced = self.main_parts().iter().zip(parts.splitn(self.main_parts().len(), |byte| *byte == 0));
        let package = replaced.fold(self.sound(), |package, (name, bytes)| package.with(name, bytes));
        let mut archive = Archive::default();
        for (name, bytes) in &package.parts {
            archive.add(name, &Packed::stored(bytes));
        }
        archive.finish()
    }

    /// The sound parts that [`Self::around`] takes.
    pub fn parts(self) -> Vec<u8> {
        let package = self.sound();
        let part = |name: &&str| package.parts.iter().find(|(known, _)| known == name).unwrap().1.clone();
        self.main_parts().iter().map(part).collect::<Vec<_>>().join(&0)
    }
}
