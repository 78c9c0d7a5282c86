//! Charts and diagrams as tables and lists: what they say, not how they look.

use super::block::{Block, Cell, Grid, Item, Kind, Row};
use super::package::Relationships;
use super::text::{Style, Text};
use crate::ParseError;
use crate::xml::{Element, Piece, Xml};
use crate::zip::Archive;
use std::collections::BTreeMap;

/// Most points of a series, and most series.
const MAX_POINTS: usize = 2_000;
const MAX_SERIES: usize = 50;

/// The list of all diagrams' nodes.
const DIAGRAM_LIST: u32 = u32::MAX - 1;

/// One series of a chart.
#[derive(Default)]
struct Series {
    name: String,
    categories: BTreeMap<u32, String>,
    values: BTreeMap<u32, String>,
}

/// What an element of a drawing stands for, if it names a chart or diagram in another part.
pub(crate) fn named_by(
    element: &Element<'_>,
    archive: &Archive<'_>,
    links: &Relationships,
) -> Result<Vec<Block>, ParseError> {
    let part = |name| {
        let id = element.prefixed_attribute(name)?;
        links.get(&id).filter(|link| !link.is_external).map(|link| link.target.as_str())
    };
    match element.name() {
        "chart" => part("id").map_or_else(|| Ok(Vec::new()), |part| chart(archive, part)),
        "relIds" => part("dm").map_or_else(|| Ok(Vec::new()), |part| diagram(archive, part)),
        _ => Ok(Vec::new()),
    }
}

/// A chart: its title, and a table of the values that its file keeps. Nothing if the part is missing.
pub(crate) fn chart(archive: &Archive<'_>, part: &str) -> Result<Vec<Block>, ParseError> {
    let Some(text) = archive.text(part)? else { return Ok(Vec::new()) };
    let mut xml = Xml::new(&text, part);
    let mut title = String::new();
    let mut all: Vec<Series> = Vec::new();
    while let Some(piece) = xml.next()? {
        let Piece::Start(element) = piece else { continue };
        match element.name() {
            // Titles of axes come after the plot's first series; the chart's own comes first.
            "title" if title.is_empty() && all.is_empty() => title = words(&mut xml)?,
            "ser" => {
                let series = series(&mut xml)?;
                if all.len() < MAX_SERIES {
                    all.push(series);
                }
            }
            "externalData" | "extLst" | "txPr" | "spPr" => xml.skip()?,
            _ => {}
        }
    }
    let mut blocks = Vec::new();
    if !title.is_empty() {
        blocks.push(paragraph(&title));
    }
    all.retain(|series| !series.values.is_empty());
    if !all.is_empty() {
        blocks.push(Block::Grid(grid(&all)));
    }
    Ok(blocks)
}

fn grid(all: &[Series]) -> Grid {
    let head = std::iter::once(String::new()).chain(all.iter().map(|series| series.name.clone()));
    let mut rows = vec![row(head, true)];
    let mut points: BTreeMap<u32, &str> = BTreeMap::new();
    for series in all {
        points.extend(series.values.keys().map(|point| (*point, "")));
    }
    for series in all.iter().rev() {
        points.extend(series.categories.iter().map(|(point, name)| (*point, name.as_str())));
    }
    for (point, name) in points {
        let values = all.iter().map(|series| series.values.get(&point).cloned().unwrap_or_default());
        rows.push(row(std::iter::once(name.to_owned()).chain(values), false));
    }
    Grid { rows }
}

fn row(cells: impl Iterator<Item = String>, is_head: bool) -> Row {
    let cells = cells.map(|text| Cell { blocks: vec![paragraph(&text)], columns: 1, rows: 1 });
    Row { is_head, cells: cells.collect() }
}

fn paragraph(words: &str) -> Block {
    let mut text = Text::default();
    text.push(words, Style::default(), None);
    Block::Paragraph(Kind::Body, text)
}

fn series(xml: &mut Xml<'_>) -> Result<Series, ParseError> {
    let mut series = Series::default();
    while let Some(element) = xml.child()? {
        match element.name() {
            "tx" => series.name = words(xml)?,
            "cat" | "xVal" => series.categories = points(xml)?,
            "val" | "yVal" => series.values = points(xml)?,
            _ => xml.skip()?,
        }
    }
    Ok(series)
}

/// The points below the element whose start was read last.
fn points(xml: &mut Xml<'_>) -> Result<BTreeMap<u32, String>, ParseError> {
    let mut points = BTreeMap::new();
    let mut point = None;
    let mut open = 1usize;
    while open > 0 {
        match xml.next()? {
            Some(Piece::Start(element)) => match element.name() {
                "v" => {
                    let value = xml.text()?;
                    if let Some(point) = point
                        && points.len() < MAX_POINTS
                    {
                        points.insert(point, value);
                    }
                }
                // The formula that the values came from.
                "f" => xml.skip()?,
                name => {
                    if name == "pt" {
                        point = element.number("idx");
                    }
                    open += 1;
                }
            },
            Some(Piece::End) => open -= 1,
            Some(Piece::Text(_)) => {}
            None => break,
        }
    }
    Ok(points)
}

/// The text below the element whose start was read last, whether it is rich text or a cell's value.
fn words(xml: &mut Xml<'_>) -> Result<String, ParseError> {
    let mut words = String::new();
    let mut open = 1usize;
    while open > 0 {
        match xml.next()? {
            Some(Piece::Start(element)) => match element.name() {
                "t" | "v" => words.push_str(&xml.text()?),
                "f" => xml.skip()?,
                name => {
                    if name == "p" && !words.is_empty() {
                        words.push(' ');
                    }
                    open += 1;
                }
            },
            Some(Piece::End) => open -= 1,
            Some(Piece::Text(_)) => {}
            None => break,
        }
    }
    Ok(words)
}

/// A diagram (SmartArt): the texts of its nodes as a list. Nothing if the part is missing.
fn diagram(archive: &Archive<'_>, part: &str) -> Result<Vec<Block>, ParseError> {
    let Some(text) = archive.text(part)? else { return Ok(Vec::new()) };
    let mut xml = Xml::new(&text, part);
    let mut blocks = Vec::new();
    while let Some(piece) = xml.next()? {
        let Piece::Start(element) = piece else { continue };
        if element.name() == "pt" {
            // Points of other types stand for the drawing and its transitions.
            let is_node = matches!(element.attribute("type").as_deref(), None | Some("node" | "asst"));
            let words = words(&mut xml)?;
            if is_node && !words.trim().is_empty() {
                let mut text = Text::default();
                text.push(&words, Style::default(), None);
                let item = Item { level: 0, list: DIAGRAM_LIST, number: String::new() };
                blocks.push(Block::Paragraph(Kind::Item(item), text));
            }
        }
    }
    Ok(blocks)
}
