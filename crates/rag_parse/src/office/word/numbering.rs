//! Lists of a text document: numbering definitions, and the numbers that paragraphs get by them.

use crate::ParseError;
use crate::office::number::formatted;
use crate::xml::{Element, Xml};
use std::collections::{HashMap, HashSet};

/// Most lists, and most definitions of lists; those beyond are passed over.
const MAX_LISTS: usize = 20_000;

/// Levels of a list.
const LEVELS: usize = 9;

/// Longest text of a number.
const MAX_NUMBER_CHARS: usize = 64;

/// One level of a list.
#[derive(Debug, Clone)]
struct Level {
    start: u32,
    format: String,
    /// Such as `%1.%2.`
    text: String,
    /// Numbers of all levels are written as digits.
    is_legal: bool,
    /// The level, from 1, whose items begin this one anew; 0 for none.
    restart: Option<usize>,
    /// The paragraph style that takes this level.
    style: Option<String>,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            start: 0,
            format: "decimal".to_owned(),
            text: String::new(),
            is_legal: false,
            restart: None,
            style: None,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Definition {
    levels: [Option<Level>; LEVELS],
    style_link: Option<String>,
}

#[derive(Debug, Default)]
struct List {
    definition: u32,
    starts: [Option<u32>; LEVELS],
    levels: [Option<Level>; LEVELS],
}

/// All lists of a document, and how far each has been counted.
#[derive(Default)]
pub(crate) struct Numbering {
    definitions: HashMap<u32, Definition>,
    lists: HashMap<u32, List>,
    /// Definitions by the name of the style that they define.
    by_style: HashMap<String, u32>,
    /// Lists share the counters of their definition, so that a list goes on after an interruption.
    counters: HashMap<u32, [Option<u32>; LEVELS]>,
    /// Lists that have begun, at a level, with a number of their own.
    begun: HashSet<(u32, usize)>,
}

/// The number of a paragraph.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) level: usize,
    /// As the document shows it; empty for a bullet.
    pub(crate) number: String,
    /// Neither bullet nor number stands before the paragraph: it goes on with the item before it.
    pub(crate) is_continued: bool,
    /// Paragraphs of one list share it.
    pub(crate) list: u32,
}

impl Numbering {
    /// Reads the part `word/numbering.xml`.
    pub(crate) fn read(text: &str, part: &str) -> Result<Self, ParseError> {
        let mut numbering = Self::default();
        let mut xml = Xml::new(text, part);
        if xml.child()?.is_none() {
            return Ok(numbering);
        }
        while let Some(element) = xml.child()? {
            match element.name() {
                "abstractNum" => {
                    let id = element.number("abstractNumId");
                    let mut definition = Definition::default();
                    let mut style = None;
                    while let Some(element) = xml.child()? {
                        match element.name() {
                            "lvl" => read_level(&mut xml, &element, &mut definition.levels)?,
                            "numStyleLink" => {
                                definition.style_link = element.attribute("val");
                                xml.skip()?;
                            }
                            "styleLink" => {
                                style = element.attribute("val");
                                xml.skip()?;
                            }
                            _ => xml.skip()?,
                        }
                    }
                    if let Some(id) = id
                        && numbering.definitions.len() < MAX_LISTS
                    {
                        numbering.by_style.extend(style.map(|style| (style, id)));
                        numbering.definitions.entry(id).or_insert(definition);
                    }
                }
                "num" => {
                    let id = element.number("numId");
                    let list = read_list(&mut xml)?;
                    if let Some(id) = id
                        && numbering.lists.len() < MAX_LISTS
                    {
                        numbering.lists.entry(id).or_insert(list);
                    }
                }
                _ => xml.skip()?,
            }
        }
        Ok(numbering)
    }

    /// Counts a paragraph of a list, and names its number. `level` is what the paragraph or its style says.
    ///
    /// `None` if there is no such list; list 0 is the way to say none.
    pub(crate) fn count(&mut self, list_id: u32, level: Option<u8>, style: Option<&str>) -> Option<Label> {
        let list = self.lists.get(&list_id)?;
        let definition_id = self.resolved(list.definition)?;
        let definition = self.definitions.get(&definition_id)?;
        let levels: [Option<&Level>; LEVELS] =
            std::array::from_fn(|at| list.levels[at].as_ref().or(definition.levels[at].as_ref()));
        let by_style = || {
            let style = style?;
            levels.iter().position(|level| level.is_some_and(|level| level.style.as_deref() == Some(style)))
        };
        let level = level.map(usize::from).or_else(by_style).unwrap_or_default().min(LEVELS - 1);
        let counters = self.counters.entry(definition_id).or_default();
        let start = |at: usize| list.starts[at].or(levels[at].map(|level| level.start)).unwrap_or(1);
        if list.starts[level].is_some() && self.begun.insert((list_id, level)) {
            counters[level] = None;
        }
        counters[level] = Some(counters[level].map_or(start(level), |number| number.saturating_add(1)));
        for deeper in level + 1..LEVELS {
            let restart = levels[deeper].and_then(|level| level.restart);
            if restart.is_none_or(|restart| restart > level) {
                counters[deeper] = None;
            }
        }
        let own = levels[level].cloned().unwrap_or_default();
        let number = if own.format == "bullet" {
            String::new()
        } else {
            let numbers = |at: usize| {
                let format = levels[at].map_or("decimal", |level| level.format.as_str());
                let format = if own.is_legal || format == "bullet" { "decimal" } else { format };
                formatted(counters[at].unwrap_or_else(|| start(at)), format)
            };
            fill(&own.text, numbers)
        };
        let is_continued = levels[level].is_some() && number.is_empty() && own.text.trim().is_empty();
        Some(Label { level, number, is_continued, list: list_id })
    }

    /// The definition itself, where one only names the style that another defines.
    fn resolved(&self, id: u32) -> Option<u32> {
        let linked = self.definitions.get(&id)?.style_link.as_ref();
        // One step: a definition that is linked to is not linked on.
        Some(linked.and_then(|style| self.by_style.get(style)).copied().unwrap_or(id))
    }
}

fn read_list(xml: &mut Xml<'_>) -> Result<List, ParseError> {
    let mut list = List::default();
    while let Some(element) = xml.child()? {
        match element.name() {
            "abstractNumId" => {
                list.definition = element.number("val").unwrap_or_default();
                xml.skip()?;
            }
            "lvlOverride" => {
                let level = element.number::<usize>("ilvl").filter(|level| *level < LEVELS);
                while let Some(element) = xml.child()? {
                    match (element.name(), level) {
                        ("startOverride", Some(level)) => {
                            list.starts[level] = element.number("val");
                            xml.skip()?;
                        }
                        ("lvl", _) => read_level(xml, &element, &mut list.levels)?,
                        _ => xml.skip()?,
                    }
                }
            }
            _ => xml.skip()?,
        }
    }
    Ok(list)
}

fn read_level(
    xml: &mut Xml<'_>,
    element: &Element<'_>,
    levels: &mut [Option<Level>; LEVELS],
) -> Result<(), ParseError> {
    let at = element.number::<usize>("ilvl").filter(|level| *level < LEVELS);
    let mut level = Level::default();
    while let Some(element) = xml.child()? {
        match element.name() {
            "start" => level.start = element.number("val").unwrap_or(1),
            "numFmt" => level.format = element.attribute("val").unwrap_or_default(),
            "lvlText" => level.text = element.attribute("val").unwrap_or_default(),
            "isLgl" => level.is_legal = element.is_on(),
            "lvlRestart" => level.restart = element.number("val"),
            "pStyle" => level.style = element.attribute("val"),
            _ => {}
        }
        xml.skip()?;
    }
    if let Some(at) = at {
        levels[at] = Some(level);
    }
    Ok(())
}

/// A level's text with numbers instead of `%1` to `%9`.
fn fill(text: &str, number: impl Fn(usize) -> String) -> String {
    let mut filled = String::new();
    let mut chars = text.chars().take(MAX_NUMBER_CHARS).peekable();
    while let Some(c) = chars.next() {
        let level = if c == '%' { chars.peek().and_then(|digit| digit.to_digit(10)) } else { None };
        match level {
            Some(level @ 1..=9) => {
                chars.next();
                filled.push_str(&number(level as usize - 1));
            }
            _ => filled.push(c),
        }
    }
    filled.trim().to_owned()
}
