//! Text, Markdown, HTML and separated values, in several encodings.

use crate::{Original, file};

const PLAIN: &str = "The heron stands still.\n\nIt waits in the shallow water for a fish, then strikes.\n";

const MARKDOWN: &str = "# Birds of the river\n\nThe **grebe** dives for its food.\n\n## Counts\n\n| Bird | Count |\n|---|---|\n\
    | Heron | 7 |\n| Grebe | 3 |\n\n- one\n- two\n\n```text\ncode\n```\n";

const HTML: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Swans</title></head><body>\
    <h1>Swans</h1><p>The <em>whooper</em> swan calls in flight &amp; on water.</p><table><tr><th>Bird</th><th>Count</th></tr>\
    <tr><td>Swan</td><td>4</td></tr></table><ul><li>one<ul><li>two</li></ul></li></ul><pre>code</pre></body></html>";

const CSV: &str =
    "Bird,Count,Place\nCurlew,5,\"Marsh, north\"\nSnipe,9,Meadow\nRuff,2,\"The \"\"long\"\" shore\"\n";

const UMLAUTS: &str =
    "Der Höckerschwan grüßt müde über das Gewässer, während die Möwen kreischen und früh schlafen.\n";

pub(crate) fn originals() -> Vec<Original> {
    let original = |name: &str, bytes: Vec<u8>, says| Original { file: file(name, bytes), says };
    let utf16 = |bom: &[u8], swap: bool| {
        let units = UMLAUTS.encode_utf16().flat_map(|u| if swap { u.to_be_bytes() } else { u.to_le_bytes() });
        bom.iter().copied().chain(units).collect::<Vec<u8>>()
    };
    let latin1 = UMLAUTS.chars().map(|c| c as u8).collect();
    vec![
        original("heron.txt", PLAIN.into(), "strikes"),
        original("bom.txt", [b"\xef\xbb\xbf", UMLAUTS.as_bytes()].concat(), "Höckerschwan"),
        original("latin1.txt", latin1, "Höckerschwan"),
        original("utf16le.txt", utf16(b"\xff\xfe", false), "Höckerschwan"),
        original("utf16be.txt", utf16(b"\xfe\xff", true), "Höckerschwan"),
        original("river.md", MARKDOWN.into(), "grebe"),
        original("swans.html", HTML.into(), "whooper"),
        original("marsh.csv", CSV.into(), "Curlew"),
    ]
}
