//! All fuzz targets in one program: what it reads is decided by `RAG_FUZZ_TARGET`, so that coverage counters are built
//! once. `make fuzz SECONDS=60` runs each; `scripts/fuzz.sh` says how to run one.
//!
//! Parsers are called as the parse child calls them. What may not happen: a panic in our code, an overflow of the stack,
//! minutes or gigabytes for some kilobytes, and a result whose positions are wrong. A panic within a library ends as a
//! failed document in the child, and is let pass here.

#![no_main]

mod parser;
mod value;

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

type Target = fn(&[u8]);

/// Names and what they read. `scripts/fuzz.sh` finds the names here.
const TARGETS: &[(&str, Target)] = &[
    ("text", parser::text),
    ("markdown", parser::markdown),
    ("html", parser::html),
    ("csv", parser::csv),
    ("mail", parser::mail),
    ("archive", parser::archive),
    ("docx", parser::docx),
    ("pptx", parser::pptx),
    ("xlsx", parser::xlsx),
    ("epub", parser::epub),
    ("pdf", parser::pdf),
    ("frame", value::frame),
    ("json", value::json),
];

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("RAG_FUZZ_TARGET").unwrap_or_default();
        let known = TARGETS.iter().find(|(known, _)| *known == name);
        let Some((_, target)) = known else { panic!("RAG_FUZZ_TARGET names no target: {name:?}") };
        let _ = TARGET.set(*target);
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(|place| (place.file(), place.line())).unwrap_or_default();
            if !place.0.contains("/registry/src/") {
                eprintln!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
                std::process::abort();
            }
        }));
    },
    |data: &[u8]| {
        if let Some(target) = TARGET.get() {
            let _ = std::panic::catch_unwind(|| target(data));
        }
    }
);
