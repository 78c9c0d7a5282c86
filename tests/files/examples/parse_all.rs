//! Parses every file in this process and prints what comes of it, what it takes and how much text it makes: for whoever
//! works on a parser. `cargo run --release -p rag_test_files --example parse_all [PART OF A NAME…]`
//!
//! The name is printed before the parser runs, since a file may take the whole process with it; in a server that is one
//! child.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a table for people")]

use rag_parse::DocumentContent;
use rag_test_files::{TestFile, bombs, damaged, originals, wrong_types};
use std::io::Write;
use std::time::Instant;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let originals = originals();
    let sound: Vec<TestFile> = originals.iter().map(|original| original.file.clone()).collect();
    let all = [sound, damaged(&originals), wrong_types(&originals), bombs()].concat();
    std::panic::set_hook(Box::new(|panic| print!("PANIC at {} ", panic.location().unwrap())));
    for file in
        all.iter().filter(|file| wanted.is_empty() || wanted.iter().any(|part| file.name.contains(part)))
    {
        print!("{:>9} bytes, {}: ", file.bytes.len(), file.name);
        std::io::stdout().flush().unwrap();
        // 5 sets the mark of the highest resident memory back.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let began = Instant::now();
        let outcome = std::panic::catch_unwind(|| {
            rag_parse::parse(DocumentContent::Bytes(&file.bytes), file.media_type)
        });
        let milliseconds = began.elapsed().as_millis();
        let said = match outcome {
            Ok(Ok(parsed)) => format!("{}, {} bytes of text", parsed.media_type, parsed.text.len()),
            Ok(Err(error)) => format!("{:?}: {error}", error.kind),
            Err(_) => String::new(),
        };
        println!("{milliseconds} ms, {} MiB, {said}", most_memory() >> 10);
    }
}

/// The highest resident memory since the mark was set back, in KiB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
