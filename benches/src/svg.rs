//! Pictures of measurements, as SVG that browsers and printers show alike.

use std::fmt::{self, Write as _};
use std::fs;

/// One colour for each of what is compared: of unequal lightness, so that they differ in grey, too.
pub const COLOURS: [&str; 6] = ["#9db4c8", "#5b8db8", "#e0a458", "#b5472f", "#6a9a5b", "#4a4458"];
/// Of lines behind what is shown.
pub const GRID: &str = "#ddd";
/// Of the axes.
pub const AXIS: &str = "#888";

/// Where a text stands beside its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A drawing on white, in pixels from the upper left corner.
#[derive(Debug, Clone)]
pub struct Drawing {
    width: f64,
    height: f64,
    parts: String,
}

impl Drawing {
    /// An empty one.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, parts: String::new() }
    }

    /// Writes it to a file of the repository's folder `docs`, and says so.
    pub fn save(&self, path: &str) {
        let path = rag_tests::repository().join("docs").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, self.to_string()).unwrap();
        println!("drawn: {}", path.display());
    }

    /// A filled rectangle by its upper left corner.
    pub fn bar(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], colour: &str) {
        writeln!(
            self.parts,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        )
        .unwrap();
    }

    /// A straight line.
    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], colour: &str, width: f64) {
        writeln!(
            self.parts,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="{width}"/>"#
        )
        .unwrap();
    }

    /// Points that lines connect.
    pub fn curve(&mut self, points: &[[f64; 2]], colour: &str) {
        let path: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        writeln!(
            self.parts,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
            path.join(" ")
        )
        .unwrap();
        for [x, y] in points {
            writeln!(self.parts, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#).unwrap();
        }
    }

    /// A text with its base line at the point.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, size: f64, text: &str) {
        self.styled(x, y, anchor, size, "#222", text);
    }

    /// A text of less weight.
    pub fn faint_text(&mut self, [x, y]: [f64; 2], anchor: Anchor, size: f64, text: &str) {
        self.styled(x, y, anchor, size, "#666", text);
    }

    fn styled(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(
            self.parts,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{text}</text>"#
        )
        .unwrap();
    }
}

impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, parts } = self;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">"#
        )?;
        writeln!(f, r##"<rect width="{width}" height="{height}" fill="#fff"/>"##)?;
        writeln!(f, "{parts}</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_close_a_tag() {
        let mut drawing = Drawing::new(10.0, 20.0);
        drawing.text([1.0, 2.0], Anchor::End, 12.0, "a < b & c");
        let shown = drawing.to_string();
        assert!(shown.contains("a &lt; b &amp; c</text>") && shown.ends_with("</svg>\n"), "{shown}");
    }
}
