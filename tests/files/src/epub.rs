//! Electronic books (EPUB 3).

use crate::package::Package;
use crate::{Original, file};

pub(crate) fn originals() -> Vec<Original> {
    let book = epub(&[("c1", CHAPTER)], &["c1"]);
    vec![Original { file: file("book.epub", book.zip()), says: "moorhen" }]
}

pub(crate) const CHAPTER: &str =
    "<h1>The pond</h1><p>The moorhen builds among the reeds, and its chicks swim at once.</p>";

/// A book of these chapters, read in the order of `spine`.
pub(crate) fn epub(chapters: &[(&str, &str)], spine: &[&str]) -> Package {
    let items: String = chapters
        .iter()
        .map(|(id, _)| {
            format!("<item id=\"{id}\" href=\"{id}.xhtml\" media-type=\"application/xhtml+xml\"/>")
        })
        .collect();
    let order: String = spine.iter().map(|id| format!("<itemref idref=\"{id}\"/>")).collect();
    let package = format!(
        "<?xml version=\"1.0\"?><package xmlns=\"http://www.idpf.org/2007/opf\" version=\"3.0\" unique-identifier=\"id\">\
         <metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:identifier id=\"id\">urn:test</dc:identifier>\
         <dc:title>Water birds</dc:title><dc:language>en</dc:language><dc:creator>A. Watcher</dc:creator></metadata>\
         <manifest>{items}</manifest><spine>{order}</spine></package>"
    );
    let mut book = Package::new(&[
        ("mimetype", "application/epub+zip"),
        (
            "META-INF/container.xml",
            "<?xml version=\"1.0\"?><container version=\"1.0\" xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\">\
             <rootfiles><rootfile full-path=\"OEBPS/book.opf\" media-type=\"application/oebps-package+xml\"/></rootfiles>\
             </container>",
        ),
        ("OEBPS/book.opf", &package),
    ]);
    for (id, body) in chapters {
        let page = format!(
            "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>{id}</title></head>\
             <body>{body}</body></html>"
        );
        book = book.with(&format!("OEBPS/{id}.xhtml"), page);
    }
    book
}
