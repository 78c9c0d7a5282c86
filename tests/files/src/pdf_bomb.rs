//! PDF files that are small and ask for much, or go in circles.

use crate::pdf::{Pdf, pages, shown};
use crate::zip::repeated_deflate;
use crate::{TestFile, file};

const WORDS: &str = "The bittern booms in the reeds.";

pub(crate) fn files() -> Vec<TestFile> {
    let mut files = streams();
    files.extend(circles());
    files.extend(structures());
    files
}

/// A page with this content stream, described by more entries of its dictionary.
fn page_of(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let mut pdf = Pdf::default();
    let font = pdf.font();
    let contents = pdf.stream(entries, bytes);
    let root = pdf.one_page(contents, &format!("/Font << /F1 {font} 0 R >>"));
    pdf.finish(root)
}

/// A page whose content repeats `block` for a gigabyte when it is unpacked.
fn unfolding(block: &str) -> Vec<u8> {
    let block = block.repeat((1 << 20) / block.len());
    let deflate = repeated_deflate(b"BT /F1 1 Tf ", block.as_bytes(), 1024, b" ET");
    // The header of zlib; the checksum at the end is missing, which readers forgive.
    page_of("/Filter /FlateDecode", &[b"\x78\xda".to_vec(), deflate, vec![0; 4]].concat())
}

fn streams() -> Vec<TestFile> {
    let words = shown(WORDS);
    let chain = format!("/Filter [{}]", "/FlateDecode ".repeat(2_000));
    let hexadecimal = format!("/Filter [{}]", "/ASCIIHexDecode ".repeat(500));
    // A length byte of 129 repeats the next byte 128 times.
    let runs = b"\x81 ".repeat(200_000);
    let predictor =
        "/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 2147483647 /Colors 2147483647 >>";
    vec![
        file("bomb of spaces.pdf", unfolding(" ")),
        file("bomb of words.pdf", unfolding("(word) Tj ")),
        file("bomb of operators.pdf", unfolding("q ")),
        file("bomb of numbers.pdf", unfolding("1 ")),
        file("bomb of nesting.pdf", unfolding("[")),
        file("chain of filters.pdf", page_of(&chain, words.as_bytes())),
        file("chain of digits.pdf", page_of(&hexadecimal, b"41>")),
        file("runs.pdf", page_of("/Filter /RunLengthDecode", &runs)),
        file("predictor.pdf", page_of(predictor, b"\x78\xda\x03\0\0\0\0\x01")),
        file("lzw noise.pdf", page_of("/Filter /LZWDecode", &[0x80; 4000])),
        file("unknown filter.pdf", page_of("/Filter /NoSuchDecode", words.as_bytes())),
        file("broken operators.pdf", page_of("", b"BT /F1 Tf Tj (open ET ] >> Td [[( Tm 1e999 -- .. <4 ET")),
        file(
            "huge numbers.pdf",
            page_of(
                "",
                b"BT /F1 1e38 Tf 1e38 0 0 1e38 1e38 1e38 Tm (x) Tj 99999999999999999999 Tc (y) Tj ET",
            ),
        ),
        file("unbalanced.pdf", page_of("", &b"Q ".repeat(100_000))),
        file("nested text.pdf", page_of("", &[b"BT ".repeat(100_000), b"(x) Tj".to_vec()].concat())),
        file("inline image.pdf", page_of("", b"BI /W 2147483647 /H 2147483647 /BPC 8 ID \0\0\0\0 (no end")),
        file(
            "shifts.pdf",
            page_of(
                "",
                &[b"BT /F1 9 Tf 1 0 0 1 9 9 Tm ".to_vec(), b"1e9 1e9 Td () Tj ".repeat(50_000)].concat(),
            ),
        ),
    ]
}

fn circles() -> Vec<TestFile> {
    let tree = |tree: &str| {
        let mut pdf = Pdf::default();
        pdf.add(tree);
        let root = pdf.add("<< /Type /Catalog /Pages 1 0 R >>");
        pdf.finish(root)
    };
    let long_tree = {
        let mut pdf = Pdf::default();
        (1..100_000).for_each(|n| {
            pdf.add(format!("<< /Type /Pages /Kids [{} 0 R] /Count 1 >>", n + 1));
        });
        pdf.add("<< /Type /Pages /Kids [] /Count 0 >>");
        let root = pdf.add("<< /Type /Catalog /Pages 1 0 R >>");
        pdf.finish(root)
    };
    // Each form shows the next one twice: two to the power of their number.
    let doubling = |forms: usize| {
        let mut pdf = Pdf::default();
        let font = pdf.font();
        for n in 0..forms {
            let next = pdf_number(font, n + 1);
            let content = if n + 1 < forms { "/X Do /X Do".to_owned() } else { shown(WORDS) };
            pdf.stream(
                &format!(
                    "/Type /XObject /Subtype /Form /BBox [0 0 595 842] \
                     /Resources << /Font << /F1 {font} 0 R >> /XObject << /X {next} 0 R >> >>"
                ),
                content.as_bytes(),
            );
        }
        let contents = pdf.stream("", b"/X Do");
        let root = pdf.one_page(contents, &format!("/XObject << /X {} 0 R >>", font + 1));
        pdf.finish(root)
    };
    let itself = {
        let mut pdf = Pdf::default();
        pdf.stream(
            "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 1 0 R >> >>",
            b"/X Do",
        );
        let contents = pdf.stream("", b"/X Do");
        let root = pdf.one_page(contents, "/XObject << /X 1 0 R >>");
        pdf.finish(root)
    };
    let length = {
        let mut pdf = Pdf::default();
        pdf.add("<< /Length 1 0 R >>\nstream\nBT (x) Tj ET\nendstream");
        let root = pdf.one_page(1, "");
        pdf.finish(root)
    };
    let references = {
        let mut pdf = Pdf::default();
        pdf.add("2 0 R");
        pdf.add("1 0 R");
        let root = pdf.one_page(1, "/Font 2 0 R");
        pdf.finish(root)
    };
    let previous = {
        let sound = pages(&[WORDS], false);
        let text = String::from_utf8_lossy(&sound).into_owned();
        let start: usize =
            text.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
        let mut pdf = Pdf::default();
        pdf.trailer = format!("/Prev {start} ");
        let font = pdf.font();
        let contents = pdf.stream("", shown(WORDS).as_bytes());
        let root = pdf.one_page(contents, &format!("/Font << /F1 {font} 0 R >>"));
        pdf.finish(root)
    };
    let outline = {
        let mut pdf = Pdf::default();
        let font = pdf.font();
        let contents = pdf.stream("", shown(WORDS).as_bytes());
        pdf.one_page(contents, &format!("/Font << /F1 {font} 0 R >>"));
        let item = 6;
        pdf.add(format!(
            "<< /Title (Round and round) /Parent {item} 0 R /Next {item} 0 R /First {item} 0 R /Last {item} 0 R /Dest [3 0 R /Fit] >>"
        ));
        let root = pdf.add(format!("<< /Type /Catalog /Pages 4 0 R /Outlines {item} 0 R >>"));
        pdf.finish(root)
    };
    vec![
        file("tree of itself.pdf", tree("<< /Type /Pages /Kids [1 0 R 1 0 R] /Count 2 /Parent 1 0 R >>")),
        file("tree that lies.pdf", tree("<< /Type /Pages /Kids [] /Count 2147483647 >>")),
        file("tree of nothing.pdf", tree("<< /Type /Pages /Kids [9 0 R 10 0 R null (x)] /Count -5 >>")),
        file("long tree.pdf", long_tree),
        file("doubling forms.pdf", doubling(40)),
        file("form of itself.pdf", itself),
        file("length of itself.pdf", length),
        file("references in a circle.pdf", references),
        file("previous table.pdf", previous),
        file("outline in a circle.pdf", outline),
    ]
}

/// The number of the object that is added `after` further ones behind `last`.
fn pdf_number(last: usize, after: usize) -> usize {
    last + 1 + after
}

fn structures() -> Vec<TestFile> {
    let catalog = |object: String| {
        let mut pdf = Pdf::default();
        pdf.add(object);
        let root = pdf.one_page(1, "");
        pdf.finish(root)
    };
    let encrypted = {
        let mut pdf = Pdf::default();
        let key = "00".repeat(32);
        let guard =
            pdf.add(format!("<< /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <{key}> /U <{key}> >>"));
        pdf.trailer = format!("/Encrypt {guard} 0 R /ID [<{0}> <{0}>]", "11".repeat(16));
        let font = pdf.font();
        let contents = pdf.stream("", b"\x8a\x1f\x22secret\x90");
        let root = pdf.one_page(contents, &format!("/Font << /F1 {font} 0 R >>"));
        pdf.finish(root)
    };
    let scan = {
        let mut pdf = Pdf::default();
        let image = pdf.stream(
            "/Type /XObject /Subtype /Image /Width 8 /Height 8 /BitsPerComponent 8 /ColorSpace /DeviceGray",
            &[200; 64],
        );
        let contents = pdf.stream("", b"q 595 0 0 842 0 0 cm /I Do Q");
        let root = pdf.one_page(contents, &format!("/XObject << /I {image} 0 R >>"));
        pdf.finish(root)
    };
    let font_with_map = |map: &str| {
        let mut pdf = Pdf::default();
        let map = pdf.stream("", map.as_bytes());
        let font = pdf.add(format!("<< /Type /Font /Subtype /Type1 /BaseFont /Odd /ToUnicode {map} 0 R /FirstChar 0 /LastChar 2147483647 /Widths [] >>"));
        let contents = pdf.stream("", shown(WORDS).as_bytes());
        let root = pdf.one_page(contents, &format!("/Font << /F1 {font} 0 R >>"));
        pdf.finish(root)
    };
    let objects = {
        let mut pdf = Pdf::default();
        pdf.packed("/Type /ObjStm /N 2147483647 /First 4", b"1 0 << /Type /ObjStm >>");
        let root = pdf.one_page(1, "");
        pdf.finish(root)
    };
    let many_pages = {
        let mut pdf = Pdf::default();
        let font = pdf.font();
        let contents = pdf.stream("", b"");
        let page = pdf.add(format!("<< /Type /Page /MediaBox [0 0 9 9] /Contents {contents} 0 R /Resources << /Font << /F1 {font} 0 R >> >> >>"));
        let kids = format!("{page} 0 R ").repeat(300_000);
        let tree = pdf.add(format!("<< /Type /Pages /Kids [{kids}] /Count 300000 >>"));
        let root = pdf.add(format!("<< /Type /Catalog /Pages {tree} 0 R >>"));
        pdf.finish(root)
    };
    let sound = pages(&[WORDS], true);
    let text = String::from_utf8_lossy(&sound).into_owned();
    let end = text.rfind("startxref").unwrap();
    let far = format!("{}startxref\n99999999999999999999\n%%EOF", &text[..end]);
    let table = "xref\n0 4294967295\n".repeat(1000);
    vec![
        file("nested arrays.pdf", catalog("[".repeat(1_000_000))),
        file("nested dictionaries.pdf", catalog("<< /A ".repeat(500_000))),
        file("nested strings.pdf", catalog(format!("({}", "(".repeat(1_000_000)))),
        file("encrypted.pdf", encrypted),
        file("scan.pdf", scan),
        file("object stream that lies.pdf", objects),
        file("many pages.pdf", many_pages),
        file(
            "wide map.pdf",
            font_with_map(
                "1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange 1 beginbfrange <00000000> <FFFFFFFF> <0000> endbfrange",
            ),
        ),
        file(
            "broken map.pdf",
            font_with_map("99999999 beginbfchar <0> <> <zz> <D800> endbfrange [[[[ <01> <00> ["),
        ),
        file("table far away.pdf", far),
        file(
            "table that lies.pdf",
            format!("%PDF-1.4\n{table}trailer << /Size 4294967295 /Root 1 0 R >>\nstartxref\n9\n%%EOF"),
        ),
        file("header alone.pdf", "%PDF-1.7"),
        file("no catalog.pdf", Pdf::default().finish(77)),
    ]
}
