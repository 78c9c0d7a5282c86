//! PDF files (ISO 32000-1), as small as their readers allow.

use crate::{Original, file};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

pub(crate) fn originals() -> Vec<Original> {
    let original = |name: &str, bytes, says| Original { file: file(name, bytes), says };
    vec![
        original("plain.pdf", pages(&[PAGE_1, PAGE_2], false), "bittern"),
        original("packed.pdf", pages(&[PAGE_1, PAGE_2], true), "bittern"),
    ]
}

const PAGE_1: &str = "The bittern booms in the reeds before the sun is up and long after it has gone down.";
const PAGE_2: &str = "Nobody sees it, for it stands with its bill to the sky whenever somebody comes near.";

/// A file of numbered objects.
#[derive(Debug, Default)]
pub(crate) struct Pdf {
    objects: Vec<Vec<u8>>,
    /// More of the trailer's dictionary.
    pub(crate) trailer: String,
}

impl Pdf {
    /// Adds an object and says its number.
    pub(crate) fn add(&mut self, object: impl Into<Vec<u8>>) -> usize {
        self.objects.push(object.into());
        self.objects.len()
    }

    /// Adds a stream with more entries of its dictionary.
    pub(crate) fn stream(&mut self, entries: &str, bytes: &[u8]) -> usize {
        let head = format!("<< /Length {} {entries} >>\nstream\n", bytes.len());
        self.add([head.as_bytes(), bytes, b"\nendstream"].concat())
    }

    /// Adds a stream that is packed.
    pub(crate) fn packed(&mut self, entries: &str, bytes: &[u8]) -> usize {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        let packed = encoder.finish().unwrap();
        self.stream(&format!("/Filter /FlateDecode {entries}"), &packed)
    }

    /// The file, whose catalog is object `root`.
    pub(crate) fn finish(&self, root: usize) -> Vec<u8> {
        let mut file = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", self.objects.len() + 1);
        for (number, object) in self.objects.iter().enumerate() {
            table += &format!("{:010} 00000 n \n", file.len());
            file.extend(format!("{} 0 obj\n", number + 1).bytes());
            file.extend(object);
            file.extend(b"\nendobj\n");
        }
        let start = file.len();
        let (size, more) = (self.objects.len() + 1, &self.trailer);
        file.extend(table.bytes());
        file.extend(
            format!("trailer\n<< /Size {size} /Root {root} 0 R {more} >>\nstartxref\n{start}\n%%EOF\n")
                .bytes(),
        );
        file
    }

    /// Adds Helvetica.
    pub(crate) fn font(&mut self) -> usize {
        self.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    }

    /// Adds a page tree of one page that shows a content stream with these resources, and its catalog.
    pub(crate) fn one_page(&mut self, contents: usize, resources: &str) -> usize {
        let tree = self.objects.len() + 2;
        let page = self.add(format!(
            "<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 595 842] /Contents {contents} 0 R /Resources << {resources} >> >>"
        ));
        self.add(format!("<< /Type /Pages /Kids [{page} 0 R] /Count 1 >>"));
        self.add(format!("<< /Type /Catalog /Pages {tree} 0 R >>"))
    }
}

/// Operators that show a text in lines of about eighty characters.
pub(crate) fn shown(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if lines.last().unwrap().len() + word.len() > 80 {
            lines.push(String::new());
        }
        let line = lines.last_mut().unwrap();
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    let lines: String = lines.iter().map(|line| format!("({line}) Tj T*\n")).collect();
    format!("BT\n/F1 12 Tf\n14 TL\n72 760 Td\n{lines}ET\n")
}

/// A file with a page for each text.
pub(crate) fn pages(texts: &[&str], are_packed: bool) -> Vec<u8> {
    let mut pdf = Pdf::default();
    let font = pdf.font();
    let tree = font + 2 * texts.len() + 1;
    let mut kids = String::new();
    for text in texts {
        let contents = shown(text);
        let contents = if are_packed {
            pdf.packed("", contents.as_bytes())
        } else {
            pdf.stream("", contents.as_bytes())
        };
        let page = pdf.add(format!(
            "<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 595 842] /Contents {contents} 0 R \
             /Resources << /Font << /F1 {font} 0 R >> >> >>"
        ));
        kids += &format!("{page} 0 R ");
    }
    pdf.add(format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", texts.len()));
    let root = pdf.add(format!("<< /Type /Catalog /Pages {tree} 0 R >>"));
    pdf.finish(root)
}
