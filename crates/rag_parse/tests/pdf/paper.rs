//! Writes small PDFs.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fmt::Write as _;
use std::io::Write as _;

/// Fonts of every page.
pub(crate) const PLAIN: &str = "F1";
pub(crate) const BOLD: &str = "F2";
pub(crate) const FIXED: &str = "F3";

/// A PDF in the making. Pages are 612 by 792 points; heights are counted from the lower edge, as in the file.
#[derive(Default)]
pub(crate) struct Paper {
    pages: Vec<String>,
    page_entries: String,
    bookmarks: Vec<(usize, &'static str, usize)>,
    objects: Vec<String>,
    resources: String,
    info: String,
    trailer: String,
    compressed: bool,
}

impl Paper {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Begins a page.
    pub(crate) fn page(mut self) -> Self {
        self.pages.push(String::new());
        self
    }

    /// Draws text on the last page.
    pub(crate) fn text(self, font: &str, size: f32, x: f32, y: f32, text: &str) -> Self {
        let text = text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        self.draw(&format!("BT /{font} {size} Tf {x} {y} Td ({text}) Tj ET\n"))
    }

    /// Draws lines of plain text of 10 points below each other.
    pub(crate) fn lines(mut self, x: f32, y: f32, lines: &[&str]) -> Self {
        for (index, line) in lines.iter().enumerate() {
            self = self.text(PLAIN, 10.0, x, y - 12.0 * index as f32, line);
        }
        self
    }

    /// Draws a straight line.
    pub(crate) fn rule(self, from: (f32, f32), to: (f32, f32)) -> Self {
        self.draw(&format!("{} {} m {} {} l S\n", from.0, from.1, to.0, to.1))
    }

    /// Adds operators to the last page.
    pub(crate) fn draw(mut self, operators: &str) -> Self {
        self.pages.last_mut().unwrap().push_str(operators);
        self
    }

    /// Adds a bookmark that leads to a page, counted from 0.
    pub(crate) fn bookmark(mut self, level: usize, title: &'static str, page: usize) -> Self {
        self.bookmarks.push((level, title, page));
        self
    }

    /// Adds an object and returns its number.
    pub(crate) fn object(&mut self, body: String) -> usize {
        self.objects.push(body);
        FIRST_OBJECT + self.objects.len() - 1
    }

    /// Adds entries to the resources of all pages, such as `/XObject << … >>`.
    pub(crate) fn resources(mut self, entries: &str) -> Self {
        self.resources.push_str(entries);
        self
    }

    pub(crate) fn page_entries(mut self, entries: &str) -> Self {
        self.page_entries.push_str(entries);
        self
    }

    pub(crate) fn info(mut self, entries: &str) -> Self {
        self.info.push_str(entries);
        self
    }

    pub(crate) fn trailer(mut self, entries: &str) -> Self {
        self.trailer.push_str(entries);
        self
    }

    pub(crate) fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut objects: Vec<Vec<u8>> = Vec::new();
        let first_page = FIRST_OBJECT + self.objects.len();
        let first_bookmark = first_page + 2 * self.pages.len();
        let outlines =
            if self.bookmarks.is_empty() { String::new() } else { format!("/Outlines {first_bookmark} 0 R") };
        let mut kids = String::new();
        for index in 0..self.pages.len() {
            let _ = write!(kids, "{} 0 R ", first_page + 2 * index);
        }
        objects.push(format!("<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) {outlines} >>").into());
        objects.push(format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", self.pages.len()).into());
        for name in ["Helvetica", "Helvetica-Bold", "Courier"] {
            let font =
                format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>");
            objects.push(font.into());
        }
        objects.push(format!("<< {} >>", self.info).into());
        objects.extend(self.objects.iter().map(|body| body.clone().into_bytes()));
        for (index, content) in self.pages.iter().enumerate() {
            let page = format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R {} \
                 /Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 5 0 R {} >> {} >> >>",
                first_page + 2 * index + 1,
                self.page_entries,
                self.fonts(),
                self.resources
            );
            objects.push(page.into());
            objects.push(stream("", content.as_bytes(), self.compressed));
        }
        self.write_outline(first_page, first_bookmark, &mut objects);
        let mut out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut places = Vec::new();
        for (index, body) in objects.iter().enumerate() {
            places.push(out.len());
            out.extend(format!("{} 0 obj\n", index + 1).as_bytes());
            out.extend(body);
            out.extend(b"\nendobj\n");
        }
        let start = out.len();
        out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).as_bytes());
        for place in &places {
            out.extend(format!("{place:010} 00000 n \n").as_bytes());
        }
        let count = places.len() + 1;
        let trailer = &self.trailer;
        out.extend(
            format!(
                "trailer\n<< /Size {count} /Root 1 0 R /Info 6 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n"
            )
            .as_bytes(),
        );
        out
    }

    /// Objects that are fonts, under the names `X7`, `X8` and so on.
    fn fonts(&self) -> String {
        let mut names = String::new();
        for (index, body) in self.objects.iter().enumerate() {
            if body.contains("/Type /Font ") {
                let number = FIRST_OBJECT + index;
                let _ = write!(names, "/X{number} {number} 0 R ");
            }
        }
        names
    }

    fn write_outline(&self, first_page: usize, first: usize, objects: &mut Vec<Vec<u8>>) {
        if self.bookmarks.is_empty() {
            return;
        }
        objects.push(format!("<< /Type /Outlines /First {} 0 R >>", first + 1).into());
        for (index, (level, title, page)) in self.bookmarks.iter().enumerate() {
            let rest = &self.bookmarks[index + 1..];
            let mut entries = String::new();
            let siblings = rest.iter().take_while(|next| next.0 >= *level).position(|next| next.0 == *level);
            if let Some(distance) = siblings {
                let _ = write!(entries, "/Next {} 0 R ", first + 2 + index + distance);
            }
            if rest.first().is_some_and(|next| next.0 > *level) {
                let _ = write!(entries, "/First {} 0 R ", first + 2 + index);
            }
            let target = first_page + 2 * page;
            objects.push(format!("<< /Title ({title}) /Dest [{target} 0 R /Fit] {entries} >>").into());
        }
    }
}

const FIRST_OBJECT: usize = 7;

/// A stream object.
pub(crate) fn stream(entries: &str, content: &[u8], compressed: bool) -> Vec<u8> {
    let (content, filter) =
        if compressed { (deflated(content), "/Filter /FlateDecode") } else { (content.to_vec(), "") };
    let mut out = format!("<< {entries} {filter} /Length {} >>\nstream\n", content.len()).into_bytes();
    out.extend(content);
    out.extend(b"\nendstream");
    out
}

pub(crate) fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
