//! Shapes of a slide: text boxes, placeholders, tables, charts, pictures and groups of them.

use super::layout::Layout;
use super::paragraph::Bullets;
use super::{Deck, order};
use crate::ParseError;
use crate::office::block::{Block, Cell, Grid, Kind, Row};
use crate::office::chart;
use crate::office::package::Relationships;
use crate::office::picture;
use crate::office::text::{Style, Text};
use crate::table::MAX_COLUMNS;
use crate::xml::{Element, Piece, Xml};

/// What a shape is to a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Role {
    Title,
    #[default]
    Content,
    /// Slide numbers, dates, headers and footers.
    Margin,
}

/// A shape with what it says.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) role: Role,
    /// Whether it is the placeholder for the body of a slide or notes page.
    pub(super) is_body: bool,
    pub(super) bounds: Option<Bounds>,
    pub(super) blocks: Vec<Block>,
}

/// Where a shape stands, in units of its slide or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) left: i64,
    pub(super) top: i64,
    pub(super) width: i64,
    pub(super) height: i64,
}

/// What a placeholder is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placeholder {
    kind: String,
    pub(super) index: Option<u32>,
}

impl Placeholder {
    pub(super) fn of(element: &Element<'_>) -> Self {
        Self {
            kind: element.attribute("type").unwrap_or_else(|| "obj".to_owned()),
            index: element.number("idx"),
        }
    }

    fn role(&self) -> Role {
        match self.kind.as_str() {
            "title" | "ctrTitle" => Role::Title,
            "dt" | "ftr" | "hdr" | "sldNum" | "sldImg" => Role::Margin,
            _ => Role::Content,
        }
    }

    /// Whether a master's placeholder is the one for both.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.general() == other.general()
    }

    fn general(&self) -> &str {
        match self.kind.as_str() {
            "ctrTitle" => "title",
            "obj" | "subTitle" | "tbl" | "chart" | "dgm" | "media" | "clipArt" | "pic" => "body",
            kind => kind,
        }
    }

    /// Whether its paragraphs are bullets where nothing says otherwise.
    pub(super) fn has_bullets(&self) -> bool {
        matches!(self.kind.as_str(), "body" | "obj")
    }
}

/// Reads the place inside an `xfrm` whose start was read last.
pub(super) fn bounds(xml: &mut Xml<'_>) -> Result<Option<Bounds>, ParseError> {
    let (mut place, mut size) = (None, None);
    while let Some(element) = xml.child()? {
        match element.name() {
            "off" => place = element.number("x").zip(element.number("y")),
            "ext" => size = element.number("cx").zip(element.number("cy")),
            _ => {}
        }
        xml.skip()?;
    }
    Ok(place.zip(size).map(|((left, top), (width, height))| Bounds { left, top, width, height }))
}

/// What the shapes of a slide are read with.
pub(super) struct Context<'a> {
    pub(super) links: &'a Relationships,
    pub(super) layout: Option<&'a Layout>,
}

impl Deck<'_> {
    /// The shapes of a slide or notes page that say something, in the order of the file.
    pub(super) fn shapes(
        &mut self,
        text: &str,
        part: &str,
        links: &Relationships,
        layout: Option<&Layout>,
    ) -> Result<Vec<Shape>, ParseError> {
        let mut xml = Xml::new(text, part);
        let context = Context { links, layout };
        let mut shapes = Vec::new();
        while let Some(piece) = xml.next()? {
            if let Piece::Start(element) = piece
                && element.name() == "spTree"
            {
                self.tree(&mut xml, &context, &mut shapes)?;
            }
        }
        Ok(shapes)
    }

    /// Reads the shapes below the element whose start was read last; the place of the group itself.
    fn tree(
        &mut self,
        xml: &mut Xml<'_>,
        context: &Context<'_>,
        shapes: &mut Vec<Shape>,
    ) -> Result<Option<Bounds>, ParseError> {
        let mut own = None;
        while let Some(element) = xml.child()? {
            let shape = match element.name() {
                "sp" => self.shape(xml, context)?,
                "pic" => picture_shape(xml, context)?,
                "graphicFrame" => self.frame(xml, context)?,
                "grpSp" => {
                    let mut inner = Vec::new();
                    let bounds = self.tree(xml, context, &mut inner)?;
                    // A title may stand in a group; it remains the slide's.
                    let (apart, content): (Vec<_>, Vec<_>) =
                        inner.into_iter().partition(|shape| shape.role != Role::Content);
                    shapes.extend(apart);
                    let inner = order::in_reading_order(content);
                    let blocks = inner.into_iter().flat_map(|shape| shape.blocks).collect();
                    Shape { bounds, blocks, ..Shape::default() }
                }
                "grpSpPr" => {
                    while let Some(property) = xml.child()? {
                        if property.name() == "xfrm" {
                            own = bounds(xml)?;
                        } else {
                            xml.skip()?;
                        }
                    }
                    continue;
                }
                "AlternateContent" => {
                    while let Some(alternative) = xml.child()? {
                        if matches!(alternative.name(), "Choice" | "Fallback") {
                            self.tree(xml, context, shapes)?;
                            xml.skip()?;
                            break;
                        }
                        xml.skip()?;
                    }
                    continue;
                }
                _ => {
                    xml.skip()?;
                    continue;
                }
            };
            if !shape.blocks.is_empty() {
                shapes.push(shape);
            }
        }
        Ok(own)
    }

    fn shape(&mut self, xml: &mut Xml<'_>, context: &Context<'_>) -> Result<Shape, ParseError> {
        let mut shape = Shape::default();
        let mut placeholder = None;
        let mut is_hidden = false;
        while let Some(element) = xml.child()? {
            match element.name() {
                "nvSpPr" => {
                    let named = Named::read(xml)?;
                    is_hidden = named.is_hidden;
                    placeholder = named.placeholder;
                }
                "spPr" => shape.bounds = bounds_in(xml)?,
                "txBody" => {
                    let bullets = Bullets::new(placeholder.as_ref(), context.layout);
                    shape.blocks = self.text_body(xml, context, bullets)?;
                }
                _ => xml.skip()?,
            }
        }
        if let Some(placeholder) = &placeholder {
            shape.role = placeholder.role();
            shape.is_body = placeholder.general() == "body";
            let inherited = context.layout.into_iter().flat_map(|layout| layout.inherited_by(placeholder));
            shape.bounds = shape.bounds.or_else(|| inherited.filter_map(|one| one.bounds).next());
        }
        if is_hidden {
            shape.blocks.clear();
        }
        Ok(shape)
    }

    /// Reads a frame around a table, chart or diagram.
    fn frame(&mut self, xml: &mut Xml<'_>, context: &Context<'_>) -> Result<Shape, ParseError> {
        let mut shape = Shape::default();
        let mut is_hidden = false;
        let mut open = 1usize;
        while open > 0 {
            match xml.next()? {
                Some(Piece::Start(element)) => match element.name() {
                    "nvGraphicFramePr" => is_hidden = Named::read(xml)?.is_hidden,
                    "xfrm" => shape.bounds = bounds(xml)?.or(shape.bounds),
                    "tbl" => shape.blocks.push(Block::Grid(self.table(xml, context)?)),
                    "Fallback" => xml.skip()?,
                    _ => {
                        let named = chart::named_by(&element, self.archive, context.links)?;
                        self.count_blocks(named.iter().map(Block::size).sum())?;
                        shape.blocks.extend(named);
                        open += 1;
                    }
                },
                Some(Piece::End) => open -= 1,
                Some(Piece::Text(_)) => {}
                None => break,
            }
        }
        if is_hidden {
            shape.blocks.clear();
        }
        Ok(shape)
    }

    fn table(&mut self, xml: &mut Xml<'_>, context: &Context<'_>) -> Result<Grid, ParseError> {
        let mut grid = Grid::default();
        while let Some(element) = xml.child()? {
            if element.name() != "tr" {
                xml.skip()?;
                continue;
            }
            self.count_blocks(1)?;
            let mut row = Row::default();
            while let Some(element) = xml.child()? {
                if element.name() != "tc" {
                    xml.skip()?;
                    continue;
                }
                self.count_blocks(1)?;
                let is_merged = ["hMerge", "vMerge"]
                    .iter()
                    .any(|name| matches!(element.attribute(name).as_deref(), Some("1" | "true")));
                let columns = element.number("gridSpan").unwrap_or(1).clamp(1, MAX_COLUMNS);
                let rows = element.number("rowSpan").unwrap_or(1).max(1);
                let mut blocks = Vec::new();
                while let Some(part) = xml.child()? {
                    if part.name() == "txBody" {
                        blocks = self.text_body(xml, context, Bullets::new(None, None))?;
                    } else {
                        xml.skip()?;
                    }
                }
                if !is_merged {
                    row.cells.push(Cell { blocks, columns, rows });
                }
            }
            grid.rows.push(row);
        }
        Ok(grid)
    }
}

/// What a shape says of itself apart from its text.
#[derive(Default)]
struct Named {
    is_hidden: bool,
    description: Option<String>,
    placeholder: Option<Placeholder>,
}

impl Named {
    /// Reads the properties below the element whose start was read last.
    fn read(xml: &mut Xml<'_>) -> Result<Self, ParseError> {
        let mut named = Self::default();
        let mut open = 1usize;
        while open > 0 {
            match xml.next()? {
                Some(Piece::Start(element)) => {
                    open += 1;
                    match element.name() {
                        "cNvPr" => {
                            named.is_hidden =
                                matches!(element.attribute("hidden").as_deref(), Some("1" | "true"));
                            named.description = element.attribute("descr");
                        }
                        "ph" => named.placeholder = Some(Placeholder::of(&element)),
                        _ => {}
                    }
                }
                Some(Piece::End) => open -= 1,
                Some(Piece::Text(_)) => {}
                None => break,
            }
        }
        Ok(named)
    }
}

/// The place in the properties below the element whose start was read last.
fn bounds_in(xml: &mut Xml<'_>) -> Result<Option<Bounds>, ParseError> {
    let mut found = None;
    while let Some(element) = xml.child()? {
        if element.name() == "xfrm" {
            found = bounds(xml)?;
        } else {
            xml.skip()?;
        }
    }
    Ok(found)
}

fn picture_shape(xml: &mut Xml<'_>, context: &Context<'_>) -> Result<Shape, ParseError> {
    let mut shape = Shape::default();
    while let Some(element) = xml.child()? {
        match element.name() {
            "nvPicPr" => {
                let named = Named::read(xml)?;
                if let Some(placeholder) = &named.placeholder {
                    let inherited =
                        context.layout.into_iter().flat_map(|layout| layout.inherited_by(placeholder));
                    shape.bounds = inherited.filter_map(|one| one.bounds).next();
                }
                if let Some(description) = named.description.as_deref().and_then(picture::described)
                    && !named.is_hidden
                {
                    let mut text = Text::default();
                    text.push(&description, Style::default(), None);
                    shape.blocks.push(Block::Paragraph(Kind::Body, text));
                }
            }
            "spPr" => shape.bounds = bounds_in(xml)?.or(shape.bounds),
            _ => xml.skip()?,
        }
    }
    Ok(shape)
}
