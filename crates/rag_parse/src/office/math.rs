//! Formulas (Office Math) in the notation of LaTeX.

use crate::ParseError;
use crate::xml::{Piece, Xml};

/// The formula inside the element whose start was read last.
pub(crate) fn latex(xml: &mut Xml<'_>) -> Result<String, ParseError> {
    let mut out = String::new();
    parts(xml, &mut out)?;
    Ok(out.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What an element of a formula holds: its arguments by name, and its properties.
#[derive(Default)]
struct Arguments {
    by_name: Vec<(String, String)>,
    /// The character of an operator, accent or bar.
    character: Option<String>,
    begin: Option<String>,
    end: Option<String>,
    separator: Option<String>,
    hides_degree: bool,
    is_linear: bool,
    has_no_bar: bool,
}

impl Arguments {
    fn get(&self, name: &str) -> &str {
        self.by_name.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.trim())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.by_name.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.trim())
    }
}

/// Writes the children of the element whose start was read last.
fn parts(xml: &mut Xml<'_>, out: &mut String) -> Result<(), ParseError> {
    while let Some(piece) = xml.next()? {
        match piece {
            Piece::End => break,
            Piece::Text(_) => {}
            Piece::Start(element) => {
                let name = element.name().to_owned();
                match name.as_str() {
                    "t" => out.push_str(&xml.text()?),
                    "r" | "e" | "oMath" | "box" | "borderBox" | "phant" | "ins" | "fName" => parts(xml, out)?,
                    _ if name.ends_with("Pr") || name == "del" => xml.skip()?,
                    _ => {
                        let arguments = arguments(xml)?;
                        write(&name, &arguments, out);
                    }
                }
            }
        }
    }
    Ok(())
}

fn arguments(xml: &mut Xml<'_>) -> Result<Arguments, ParseError> {
    let mut arguments = Arguments::default();
    while let Some(element) = xml.child()? {
        let name = element.name().to_owned();
        match name.as_str() {
            "mr" => {
                let row = self::arguments(xml)?;
                let cells: Vec<_> = row.all("e").collect();
                arguments.by_name.push((name, cells.join(" & ")));
            }
            _ if name.ends_with("Pr") => {
                while let Some(property) = xml.child()? {
                    let value = property.attribute("val");
                    match property.name() {
                        "chr" => arguments.character = value,
                        "begChr" => arguments.begin = value,
                        "endChr" => arguments.end = value,
                        "sepChr" => arguments.separator = value,
                        "degHide" => arguments.hides_degree = property.is_on(),
                        "type" => {
                            arguments.is_linear = value.as_deref() == Some("lin");
                            arguments.has_no_bar = value.as_deref() == Some("noBar");
                        }
                        _ => {}
                    }
                    xml.skip()?;
                }
            }
            _ => {
                let mut value = String::new();
                parts(xml, &mut value)?;
                arguments.by_name.push((name, value));
            }
        }
    }
    Ok(arguments)
}

fn write(name: &str, of: &Arguments, out: &mut String) {
    let base = of.get("e");
    let text = match name {
        "f" if of.is_linear => format!("{}/{}", of.get("num"), of.get("den")),
        "f" if of.has_no_bar => format!("\\binom{{{}}}{{{}}}", of.get("num"), of.get("den")),
        "f" => format!("\\frac{{{}}}{{{}}}", of.get("num"), of.get("den")),
        "sSup" => format!("{base}^{{{}}}", of.get("sup")),
        "sSub" => format!("{base}_{{{}}}", of.get("sub")),
        "sSubSup" => format!("{base}_{{{}}}^{{{}}}", of.get("sub"), of.get("sup")),
        "sPre" => format!("{{}}_{{{}}}^{{{}}}{base}", of.get("sub"), of.get("sup")),
        "rad" if of.hides_degree || of.get("deg").is_empty() => format!("\\sqrt{{{base}}}"),
        "rad" => format!("\\sqrt[{}]{{{base}}}", of.get("deg")),
        "nary" => {
            let mut text = operator(of.character.as_deref().unwrap_or("∫")).to_owned();
            for (sign, name) in [("_", "sub"), ("^", "sup")] {
                if !of.get(name).is_empty() {
                    text.push_str(&format!("{sign}{{{}}}", of.get(name)));
                }
            }
            format!("{text} {base}")
        }
        "d" => {
            let inner: Vec<_> = of.all("e").collect();
            format!(
                "{}{}{}",
                of.begin.as_deref().unwrap_or("("),
                inner.join(of.separator.as_deref().unwrap_or("|")),
                of.end.as_deref().unwrap_or(")")
            )
        }
        "func" => format!("{} {base}", of.get("fName")),
        "acc" => match of.character.as_deref().unwrap_or("\u{302}") {
            "\u{302}" => format!("\\hat{{{base}}}"),
            "\u{303}" => format!("\\tilde{{{base}}}"),
            "\u{304}" | "\u{305}" => format!("\\bar{{{base}}}"),
            "\u{307}" => format!("\\dot{{{base}}}"),
            "\u{20d7}" => format!("\\vec{{{base}}}"),
            other => format!("{base}{other}"),
        },
        "bar" => format!("\\overline{{{base}}}"),
        "limLow" => format!("{base}_{{{}}}", of.get("lim")),
        "limUpp" => format!("{base}^{{{}}}", of.get("lim")),
        "m" => format!("\\begin{{matrix}}{}\\end{{matrix}}", of.all("mr").collect::<Vec<_>>().join(" \\\\ ")),
        "eqArr" => of.all("e").collect::<Vec<_>>().join(" \\\\ "),
        _ => of.by_name.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" "),
    };
    out.push_str(&text);
}

fn operator(character: &str) -> &str {
    match character {
        "∑" => "\\sum",
        "∏" => "\\prod",
        "∫" => "\\int",
        "∬" => "\\iint",
        "∮" => "\\oint",
        "⋃" => "\\bigcup",
        "⋂" => "\\bigcap",
        other => other,
    }
}
