//! Paragraphs of a slide's text, and the bullets and numbers before them.

use super::Deck;
use super::layout::{Bullet, LEVELS, Layout, ListStyle, bullet, list_style};
use super::shape::{Context, Placeholder};
use crate::ParseError;
use crate::office::block::{Block, Item, Kind};
use crate::office::math;
use crate::office::number::formatted;
use crate::office::package::Relationships;
use crate::office::text::{Style, Text, link_to};
use crate::office::word::is_mono;
use crate::xml::{Element, Xml};

/// What stands before the paragraphs of one text.
pub(super) struct Bullets {
    /// What is inherited, by level.
    inherited: ListStyle,
    /// Scheme and last number of the numbered items that are open, by level.
    open: [Option<(String, u32)>; LEVELS],
}

impl Bullets {
    pub(super) fn new(placeholder: Option<&Placeholder>, layout: Option<&Layout>) -> Self {
        let mut inherited = ListStyle::default();
        if let Some(placeholder) = placeholder {
            let of_layout: Vec<_> =
                layout.into_iter().flat_map(|layout| layout.inherited_by(placeholder)).collect();
            for (level, bullet) in inherited.iter_mut().enumerate() {
                *bullet = of_layout.iter().find_map(|one| one.bullets[level].clone());
                if bullet.is_none() && placeholder.has_bullets() {
                    let of_body = layout.map_or(Some(&Bullet::Sign), |layout| layout.body(level));
                    *bullet = of_body.cloned();
                }
            }
        }
        Self { inherited, open: Default::default() }
    }

    /// The text says so itself.
    fn set(&mut self, own: ListStyle) {
        for (inherited, own) in self.inherited.iter_mut().zip(own) {
            *inherited = own.or(inherited.take());
        }
    }

    /// What a paragraph is by what stands before it.
    fn kind(&mut self, level: usize, own: Option<Bullet>) -> Kind {
        let level = level.min(LEVELS - 1);
        let bullet = own.or_else(|| self.inherited[level].clone());
        for deeper in &mut self.open[level + 1..] {
            *deeper = None;
        }
        let number = match bullet {
            None | Some(Bullet::None) => {
                self.open[level] = None;
                return Kind::Body;
            }
            Some(Bullet::Sign) => {
                self.open[level] = None;
                String::new()
            }
            Some(Bullet::Number(scheme, first)) => {
                let number = match &self.open[level] {
                    Some((open, last)) if *open == scheme => last.saturating_add(1),
                    _ => first,
                };
                let text = numbered(&scheme, number);
                self.open[level] = Some((scheme, number));
                text
            }
        };
        Kind::Item(Item { level, list: u32::from(!number.is_empty()), number })
    }
}

/// A number in one of the schemes of `ST_TextAutonumberScheme`.
fn numbered(scheme: &str, number: u32) -> String {
    let format = match scheme {
        _ if scheme.starts_with("alphaLc") => "lowerLetter",
        _ if scheme.starts_with("alphaUc") => "upperLetter",
        _ if scheme.starts_with("romanLc") => "lowerRoman",
        _ if scheme.starts_with("romanUc") => "upperRoman",
        _ => "decimal",
    };
    let text = formatted(number, format);
    match scheme {
        _ if scheme.ends_with("ParenBoth") => format!("({text})"),
        _ if scheme.ends_with("ParenR") => format!("{text})"),
        _ => format!("{text}."),
    }
}

impl Deck<'_> {
    /// Reads the text body whose start was read last.
    pub(super) fn text_body(
        &mut self,
        xml: &mut Xml<'_>,
        context: &Context<'_>,
        mut bullets: Bullets,
    ) -> Result<Vec<Block>, ParseError> {
        let mut blocks = Vec::new();
        while let Some(element) = xml.child()? {
            match element.name() {
                "lstStyle" => bullets.set(list_style(xml)?),
                "p" => {
                    self.count_blocks(1)?;
                    let (mut text, level, own) = paragraph(xml, context.links)?;
                    // PowerPoint numbers no empty paragraph.
                    if !text.is_blank() {
                        text.tick();
                        let kind = match bullets.kind(level, own) {
                            Kind::Body if text.looks_like_code() => Kind::Code,
                            kind => kind,
                        };
                        blocks.push(Block::Paragraph(kind, text));
                    }
                }
                _ => xml.skip()?,
            }
        }
        Ok(blocks)
    }
}

/// Reads the paragraph whose start was read last: its text, its level and what it says of its bullet.
fn paragraph(xml: &mut Xml<'_>, links: &Relationships) -> Result<(Text, usize, Option<Bullet>), ParseError> {
    let mut text = Text::default();
    let mut level = 0;
    let mut own = None;
    while let Some(element) = xml.child()? {
        match element.name() {
            "pPr" => {
                level = element.number("lvl").unwrap_or_default();
                own = bullet(xml)?;
            }
            _ => inline(xml, &element, links, &mut text)?,
        }
    }
    Ok((text, level, own))
}

fn inline(
    xml: &mut Xml<'_>,
    element: &Element<'_>,
    links: &Relationships,
    text: &mut Text,
) -> Result<(), ParseError> {
    match element.name() {
        "r" => run(xml, links, text),
        "br" => {
            text.push_line_break();
            xml.skip()
        }
        // What a program fills in: numbers and dates of the slide.
        "fld" if matches!(element.attribute("type").as_deref(), Some(kind) if kind.starts_with("slidenum")) => {
            xml.skip()
        }
        "fld" => run(xml, links, text),
        "m" | "oMathPara" | "oMath" => {
            let formula = math::latex(xml)?;
            if !formula.is_empty() {
                text.push(&format!("${formula}$"), Style::default(), None);
            }
            Ok(())
        }
        "AlternateContent" => {
            while let Some(alternative) = xml.child()? {
                if matches!(alternative.name(), "Choice" | "Fallback") {
                    while let Some(element) = xml.child()? {
                        inline(xml, &element, links, text)?;
                    }
                    return xml.skip();
                }
                xml.skip()?;
            }
            Ok(())
        }
        _ => xml.skip(),
    }
}

fn run(xml: &mut Xml<'_>, links: &Relationships, text: &mut Text) -> Result<(), ParseError> {
    let mut style = Style::default();
    let mut link = None;
    while let Some(element) = xml.child()? {
        match element.name() {
            "rPr" => {
                let is = |name| matches!(element.attribute(name).as_deref(), Some("1" | "true"));
                style.bold = is("b");
                style.italic = is("i");
                style.strike =
                    matches!(element.attribute("strike").as_deref(), Some("sngStrike" | "dblStrike"));
                style.superscript = element.number::<i64>("baseline").is_some_and(|baseline| baseline > 0);
                while let Some(property) = xml.child()? {
                    match property.name() {
                        "hlinkClick" => {
                            let target = property.prefixed_attribute("id").and_then(|id| links.get(&id));
                            link =
                                target.filter(|link| link.is_external).and_then(|link| link_to(&link.target));
                        }
                        "latin" => {
                            style.code = property.attribute("typeface").is_some_and(|font| is_mono(&font));
                        }
                        _ => {}
                    }
                    xml.skip()?;
                }
            }
            "t" => text.push(&xml.text()?, style, link.as_ref()),
            _ => xml.skip()?,
        }
    }
    Ok(())
}
