//! What stands beside the cells of a sheet: comments, text boxes and charts.

use super::super::block::Block;
use super::super::chart::chart;
use super::super::package::Relationships;
use crate::ParseError;
use crate::table::one_line;
use crate::xml::{Piece, Xml};
use crate::zip::Archive;
use std::collections::HashMap;

/// Most notes of a sheet.
const MAX_NOTES: usize = 10_000;

/// How the legacy twin of a threaded comment names its author.
const TWIN: &str = "tc=";

/// The names of people that comments refer to by id.
pub(super) fn people(
    archive: &Archive<'_>,
    workbook: &Relationships,
) -> Result<HashMap<String, String>, ParseError> {
    let mut people = HashMap::new();
    for part in workbook.parts("person") {
        let Some(text) = archive.text(part)? else { continue };
        let mut xml = Xml::new(&text, part);
        if xml.child()?.is_none() {
            continue;
        }
        while let Some(element) = xml.child()? {
            if let (Some(id), Some(name)) = (element.attribute("id"), element.attribute("displayName")) {
                people.insert(id, name);
            }
            xml.skip()?;
        }
    }
    Ok(people)
}

/// Comments, each as a line that names its cell and author.
pub(super) fn comments(
    archive: &Archive<'_>,
    sheet: &Relationships,
    people: &HashMap<String, String>,
) -> Result<Vec<String>, ParseError> {
    let mut lines = Vec::new();
    for part in sheet.parts("comments") {
        if let Some(text) = archive.text(part)? {
            read_comments(&text, part, &mut lines)?;
        }
    }
    for part in sheet.parts("threadedComment") {
        if let Some(text) = archive.text(part)? {
            read_threads(&text, part, people, &mut lines)?;
        }
    }
    Ok(lines)
}

fn add(cell: &str, author: &str, text: &str, lines: &mut Vec<String>) {
    let (cell, author, text) = (one_line(cell), one_line(author), one_line(text));
    // Excel begins a comment with its author's name.
    let text = match text.strip_prefix(&format!("{author}:")) {
        Some(rest) if !author.is_empty() => rest.trim(),
        _ => &text,
    };
    if text.is_empty() || lines.len() >= MAX_NOTES {
        return;
    }
    lines.push(match author.as_str() {
        "" => format!("Comment on {cell}: {text}"),
        author => format!("Comment on {cell} by {author}: {text}"),
    });
}

fn read_comments(text: &str, part: &str, lines: &mut Vec<String>) -> Result<(), ParseError> {
    let mut authors: Vec<String> = Vec::new();
    let mut xml = Xml::new(text, part);
    if xml.child()?.is_none() {
        return Ok(());
    }
    while let Some(element) = xml.child()? {
        match element.name() {
            "authors" => {
                while xml.child()?.is_some() {
                    authors.push(xml.text()?);
                }
            }
            "commentList" => {
                while let Some(element) = xml.child()? {
                    let cell = element.attribute("ref").unwrap_or_default();
                    let author = element.number::<usize>("authorId").and_then(|id| authors.get(id));
                    let author = author.map(String::as_str).unwrap_or_default();
                    let mut text = String::new();
                    super::shared::rich_text(&mut xml, &mut text)?;
                    // The thread itself is in a part of its own.
                    if !author.starts_with(TWIN) {
                        add(&cell, author, &text, lines);
                    }
                }
            }
            _ => xml.skip()?,
        }
    }
    Ok(())
}

fn read_threads(
    text: &str,
    part: &str,
    people: &HashMap<String, String>,
    lines: &mut Vec<String>,
) -> Result<(), ParseError> {
    let mut xml = Xml::new(text, part);
    if xml.child()?.is_none() {
        return Ok(());
    }
    while let Some(element) = xml.child()? {
        let cell = element.attribute("ref").unwrap_or_default();
        let date = element.attribute("dT");
        let author = element.attribute("personId").and_then(|id| people.get(&id).cloned());
        let mut text = String::new();
        while let Some(element) = xml.child()? {
            if element.name() == "text" {
                text.push_str(&xml.text()?);
            } else {
                xml.skip()?;
            }
        }
        let date = date.as_deref().and_then(|date| date.get(..10));
        let author = [author.as_deref(), date].into_iter().flatten().collect::<Vec<_>>().join(", ");
        add(&cell, &author, &text, lines);
    }
    Ok(())
}

/// The paragraphs of text boxes, and the charts.
pub(super) fn drawings(
    archive: &Archive<'_>,
    sheet: &Relationships,
) -> Result<(Vec<String>, Vec<Block>), ParseError> {
    let (mut lines, mut charts) = (Vec::new(), Vec::new());
    for part in sheet.parts("drawing") {
        let Some(text) = archive.text(part)? else { continue };
        read_paragraphs(&text, part, &mut lines)?;
        for part in Relationships::of(archive, part)?.parts("chart") {
            charts.extend(chart(archive, part)?);
        }
    }
    Ok((lines, charts))
}

/// The paragraphs of a drawing part, wherever they are.
fn read_paragraphs(text: &str, part: &str, lines: &mut Vec<String>) -> Result<(), ParseError> {
    let mut xml = Xml::new(text, part);
    let mut paragraph = String::new();
    let mut open = Vec::new();
    while let Some(piece) = xml.next()? {
        match piece {
            Piece::Start(element) => open.push(match element.name() {
                "t" => Kind::Text,
                "p" => Kind::Paragraph,
                _ => Kind::Other,
            }),
            Piece::Text(text) if open.last() == Some(&Kind::Text) => paragraph.push_str(&text),
            Piece::Text(_) => {}
            Piece::End => {
                if open.pop() == Some(Kind::Paragraph) {
                    let line = one_line(&std::mem::take(&mut paragraph));
                    if !line.is_empty() && lines.len() < MAX_NOTES {
                        lines.push(line);
                    }
                }
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Paragraph,
    Other,
}
