//! Sound files after an accident: cut off, with bytes flipped, blocks lost, doubled or exchanged; and files that are
//! not what they are said to be.

use crate::package::Package;
use crate::{Original, Random, TestFile, epub, file, office};

/// Sizes to which each file is cut, as shares of a hundred.
const CUTS: [usize; 6] = [1, 10, 35, 60, 90, 99];

/// Damaged copies of each original, and packages that were damaged before they were packed.
pub fn damaged(originals: &[Original]) -> Vec<TestFile> {
    let mut random = Random::seeded(7);
    let mut files = Vec::new();
    for Original { file: sound, .. } in originals {
        for share in CUTS {
            let length = (sound.bytes.len() * share / 100).max(1);
            files.push(file(format!("cut at {share}% of {}", sound.name), &sound.bytes[..length]));
        }
        for (kind, damage) in KINDS {
            let mut bytes = sound.bytes.clone();
            damage(&mut bytes, &mut random);
            files.push(file(format!("{kind} {}", sound.name), bytes));
        }
    }
    let packages: [(&str, Package); 4] = [
        ("minutes.docx", office::docx("<w:p><w:r><w:t>The wagtail bobs its tail.</w:t></w:r></w:p>")),
        ("talk.pptx", office::pptx()),
        ("counts.xlsx", office::xlsx("<row r=\"1\"><c r=\"A1\"><v>1</v></c></row>")),
        ("book.epub", epub::epub(&[("c1", "<p>The moorhen builds.</p>")], &["c1"])),
    ];
    for (name, package) in packages {
        files.extend(damaged_parts(name, &package, &mut random));
    }
    files
}

/// Each part of a package lost, emptied, cut and with bytes flipped. The one that says what the package is stays.
fn damaged_parts(name: &str, package: &Package, random: &mut Random) -> Vec<TestFile> {
    let mut files = Vec::new();
    for (part, bytes) in &package.parts {
        let mut flipped = bytes.clone();
        flip_bytes(&mut flipped, random);
        let half = bytes[..bytes.len() / 2].to_vec();
        files.push(file(format!("without {part}, {name}"), package.clone().without(part).zip()));
        for (kind, damaged) in [("empty", Vec::new()), ("half of", half), ("flipped", flipped)] {
            let package = package.clone().with(part, damaged);
            files.push(file(format!("{kind} {part}, {name}"), package.zip()));
        }
    }
    files
}

type Damage = fn(&mut Vec<u8>, &mut Random);

const KINDS: [(&str, Damage); 6] = [
    ("flipped", |bytes, random| flip_bytes(bytes, random)),
    ("zeroed", |bytes, random| {
        let (from, to) = block(bytes, random);
        bytes[from..to].fill(0);
    }),
    ("shortened", |bytes, random| {
        let (from, to) = block(bytes, random);
        bytes.drain(from..to);
    }),
    ("doubled", |bytes, random| {
        let (from, to) = block(bytes, random);
        let copy = bytes[from..to].to_vec();
        bytes.splice(from..from, copy);
    }),
    ("swapped", |bytes, random| {
        let middle = bytes.len() / 2;
        let length = (1 + random.below(64)).min(middle);
        let (first, second) = bytes.split_at_mut(middle);
        first[..length].swap_with_slice(&mut second[..length]);
    }),
    ("noisy", |bytes, random| {
        let (from, to) = block(bytes, random);
        bytes[from..to].iter_mut().for_each(|byte| *byte = random.bits() as u8);
    }),
];

fn flip_bytes(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + bytes.len() / 200 {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
}

/// Some part of a file, up to an eighth of it.
fn block(bytes: &[u8], random: &mut Random) -> (usize, usize) {
    let from = random.below(bytes.len());
    (from, (from + 1 + random.below(bytes.len() / 8 + 1)).min(bytes.len()))
}

/// Files that are something else than they seem or are said to be, or nothing at all.
pub fn wrong_types(originals: &[Original]) -> Vec<TestFile> {
    let mut random = Random::seeded(11);
    let mut noise = |length: usize| (0..length).map(|_| random.bits() as u8).collect::<Vec<u8>>();
    let mut files = vec![
        file("empty.txt", ""),
        file("only a byte order mark.txt", "\u{feff}"),
        file("one byte.bin", [0]),
        file("zeros.bin", vec![0; 5000]),
        file("noise.bin", noise(5000)),
        file("noise after a header.pdf", [b"%PDF-1.7\n".to_vec(), noise(3000)].concat()),
        file("noise after a header.docx", [b"PK\x03\x04".to_vec(), noise(3000)].concat()),
        file("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"),
        file("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01"),
        file("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0"),
        file("packed.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0"),
        file("old.doc", [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), vec![0; 504]].concat()),
        file("letter.rtf", "{\\rtf1\\ansi The letter.\\par}"),
        file("sound.mp3", b"ID3\x04\0\0\0\0\0\0\xff\xfb\x90"),
        file("film.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom"),
        file("data.sqlite", b"SQLite format 3\0\x10\0\x01\x01\0"),
        file("cut.utf16", b"\xff\xfeT\0e\0x\0t"),
        file("odd.utf16", b"\xff\xfeT\0e\0x"),
        file("surrogates.utf16", b"\xff\xfe\x00\xd8\x00\xd8\x00\xdc\x00\xdcA\0"),
        file(
            "overlong.txt",
            b"over\xc0\xaflong \xe0\x80\xaf \xf0\x80\x80\xaf \xed\xa0\x80 and \xf4\x90\x80\x80 beyond",
        ),
        file("nul.txt", "text with \0 within\n"),
        file("controls.txt", "bell \x07 escape \x1b[31m backspace \x08 delete \x7f\n"),
        file("nonsense", "x").said_to_be("application/x-nonsense"),
        file("type with a type", "x").said_to_be("text/plain; charset=\"; charset=nothing; charset"),
        file("unknown charset.txt", "plain").said_to_be("text/plain; charset=klingon"),
        file("broken.xml", "<?xml version=\"1.0\"?><a><b></a></b>"),
        file("encrypted.docx", encrypted_office()),
    ];
    let types = ["text/plain", "text/html", "application/pdf", WORD, "message/rfc822", "text/csv"];
    for Original { file, .. } in originals {
        let said = *random.pick(&types);
        let name = format!("said to be {}, {}", said.rsplit(['/', '.']).next().unwrap(), file.name);
        files.push(TestFile { name, ..file.clone() }.said_to_be(said));
    }
    files
}

const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// The beginning of a file that Word has encrypted: a compound file with an entry of that name.
fn encrypted_office() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[..8].copy_from_slice(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes[1024..1024 + name.len()].copy_from_slice(&name);
    bytes
}
