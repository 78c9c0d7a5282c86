//! Drawings: the text boxes, charts and diagrams in them, and what they say of pictures.

use super::DocxReader;
use super::paragraph::Paragraph;
use crate::ParseError;
use crate::office::block::Block;
use crate::office::text::Style;
use crate::office::{chart, picture};
use crate::xml::{Piece, Xml};

impl DocxReader<'_> {
    /// Reads a drawing: its text boxes, charts and diagrams, and what it says of a picture.
    pub(super) fn drawing(&mut self, xml: &mut Xml<'_>, paragraph: &mut Paragraph) -> Result<(), ParseError> {
        let mut open = 1usize;
        self.apart += 1;
        while open > 0 {
            match xml.next()? {
                Some(Piece::Start(element)) => match element.name() {
                    "txbxContent" => {
                        // The fields of the text around a box are not its own.
                        let fields = std::mem::take(&mut self.fields);
                        let carried = self.carried.take();
                        self.blocks(xml, &mut paragraph.after)?;
                        self.end_carried(&mut paragraph.after);
                        (self.fields, self.carried) = (fields, carried);
                    }
                    // The same once more for older programs.
                    "Fallback" => xml.skip()?,
                    name => {
                        if name == "docPr"
                            && let Some(description) =
                                element.attribute("descr").as_deref().and_then(picture::described)
                        {
                            paragraph.text.push(&description, Style::default(), None);
                        }
                        let named = chart::named_by(&element, self.archive, self.links)?;
                        self.count_blocks(named.iter().map(Block::size).sum())?;
                        paragraph.after.extend(named);
                        open += 1;
                    }
                },
                Some(Piece::End) => open -= 1,
                Some(Piece::Text(_)) => {}
                None => break,
            }
        }
        self.apart -= 1;
        Ok(())
    }
}
