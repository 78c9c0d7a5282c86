//! Documents: chunks, limits, the confined child.

use crate::running::{Engine, patiently, settings};
use rag_core::chunking::{ChunkMethod, ChunkOptions, SizeUnit};
use rag_core::document::PreparedDocument;
use rag_wire::{Call, Content, Failure, FailureCode, Lane, Prepare, Reply, Settings, TextRole};

fn order(content: Content, media_type: Option<&str>) -> Prepare {
    Prepare {
        content,
        media_type: media_type.map(str::to_owned),
        title: None,
        model: None,
        language: None,
        chunking: ChunkOptions::default(),
    }
}

fn ask(engine: &Engine, prepare: Prepare) -> Result<PreparedDocument, Failure> {
    match engine.connect().bulk().ask(Call::Prepare(prepare))? {
        Reply::Prepared(document) => Ok(document),
        other => panic!("{other:?}"),
    }
}

fn page(paragraphs: usize) -> String {
    let body: String = (0..paragraphs)
        .map(|n| {
            format!("<h2>Part {n}</h2><p>{}</p>", format!("Sentence {n} says something of note. ").repeat(40))
        })
        .collect();
    format!("<html><head><title>Manual</title></head><body><h1>Manual</h1>{body}</body></html>")
}

#[test]
fn a_page_becomes_chunks_that_fit_the_model() {
    let engine = Engine::start();
    let document = ask(&engine, order(Content::Bytes(page(5).into_bytes()), None)).unwrap();
    assert_eq!(document.parsed.media_type, "text/html");
    assert_eq!(document.parsed.title.as_deref(), Some("Manual"));
    assert!(document.chunks.len() >= 5 && document.sections.len() >= 5);
    let texts: Vec<String> = document.chunks.iter().map(|chunk| document.embedded_text(chunk)).collect();
    assert!(texts.iter().all(|text| !text.contains('<')));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    engine.connect().embed(None, TextRole::Passage, &texts).unwrap();
}

#[test]
fn plain_text_needs_no_child_and_is_cut_in_the_same_way() {
    let engine = Engine::start();
    let text = "A plain paragraph of a few words.\n\n".repeat(200);
    let said = ask(&engine, order(Content::Text(text.clone()), Some("text/plain"))).unwrap();
    let found = ask(&engine, order(Content::Text(text), None)).unwrap();
    assert_eq!(said.chunks, found.chunks);
}

#[test]
fn what_is_no_document_is_refused_by_kind() {
    let engine = Engine::start();
    let cases = [
        (Content::Bytes(b"\x7fELF\x02\x01\x01\0\0\0\0".to_vec()), None),
        (Content::Text("x".into()), Some("application/x-nonsense")),
    ];
    for (content, media_type) in cases {
        assert_eq!(ask(&engine, order(content, media_type)).unwrap_err().code, FailureCode::Unsupported);
    }
    let failure = ask(&engine, order(Content::Text("a\0b".into()), None)).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotParsable);
}

#[test]
fn a_document_over_the_limit_is_refused_with_both_numbers() {
    let mut settings = settings();
    settings.parse.max_document_bytes = 1000;
    let failure = ask(&Engine::with(settings), order(Content::Text("x".repeat(1001)), None)).unwrap_err();
    assert_eq!(failure.code, FailureCode::LimitExceeded);
    assert!(failure.message.contains("1001") && failure.message.contains("1000"), "{}", failure.message);
}

#[test]
fn a_parser_that_needs_too_much_memory_fails_alone() {
    let mut settings = settings();
    settings.parse.memory_mb = 16;
    settings.parse.cpu_seconds = 120;
    let engine = Engine::with(settings);
    let text = "A line of plain text.\n".repeat(400_000);
    let failure = ask(&engine, order(Content::Bytes(text.into_bytes()), None)).unwrap_err();
    assert_eq!(failure.code, FailureCode::LimitExceeded, "{failure:?}");
    assert!(failure.message.contains("16 MiB"), "{failure:?}");
    ask(&engine, order(Content::Text("small".into()), None)).unwrap();
}

#[test]
fn a_parser_that_computes_too_long_fails_alone() {
    let mut settings = settings();
    settings.parse.cpu_seconds = 1;
    let engine = Engine::with(settings);
    // Takes minutes, the more so the larger it is.
    let nested = format!("%PDF-1.4\n1 0 obj\n{}", "<< /A ".repeat(2_000_000));
    let failure = ask(&engine, order(Content::Bytes(nested.into_bytes()), None)).unwrap_err();
    assert_eq!(failure.code, FailureCode::LimitExceeded, "{failure:?}");
    assert!(failure.message.contains("1 s of CPU"), "{failure:?}");
    ask(&engine, order(Content::Text("small".into()), None)).unwrap();
}

#[test]
fn the_child_is_confined_and_the_status_says_by_what() {
    let engine = Engine::start();
    let tested = |engine: &Engine| {
        patiently("the self-test", || {
            let found = engine.connect().status().parse_sandbox;
            (found != "not tested yet").then_some(found)
        })
    };
    let found = tested(&engine);
    assert!(found.starts_with("rlimits") && found.ends_with("seccomp"), "{found}");

    let mut off = settings();
    off.parse.sandbox = "off".into();
    let found = tested(&Engine::with(off));
    assert!(found.starts_with("rlimits (not prevented: open, write, socket"), "{found}");

    let mut odd = settings();
    odd.parse.sandbox = "perhaps".into();
    let engine = Engine::with(odd);
    assert!(tested(&engine).contains("unknown parse sandbox setting"));
    assert_eq!(
        ask(&engine, order(Content::Text("<p>x</p>".into()), None)).unwrap_err().code,
        FailureCode::InvalidArgument
    );
}

#[test]
fn documents_are_prepared_without_onnx_runtime() {
    let engine = Engine::with(Settings { onnxruntime: "/nonexistent".into(), ..settings() });
    assert_eq!(ask(&engine, order(Content::Text("# Title\n\ntext".into()), None)).unwrap().chunks.len(), 1);
}

#[test]
fn a_client_that_leaves_takes_its_child_with_it() {
    let engine = Engine::start();
    let children = || {
        let all_tasks = std::fs::read_dir(format!("/proc/{}/task", engine.child.id())).unwrap();
        let of_tasks =
            all_tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
        of_tasks.map(|children| children.split_whitespace().count()).sum::<usize>()
    };
    patiently("the self-test to end", || {
        (engine.connect().status().parse_sandbox != "not tested yet").then_some(())
    });
    patiently("no children", || (children() == 0).then_some(()));
    let mut leaver = engine.connect().bulk();
    leaver.send(Call::Prepare(order(Content::Bytes(page(8_000).into_bytes()), None)));
    patiently("a child", || (children() > 0).then_some(()));
    drop(leaver);
    patiently("the child to be gone", || (children() == 0).then_some(()));
}

/// The engine's parse children at this moment.
fn children(engine: &Engine) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", engine.child.id())).into_iter().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>())
        .collect()
}

fn kill(child: i32) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), nix::sys::signal::Signal::SIGKILL);
}

#[test]
fn a_killed_child_is_followed_by_one_that_is_alone_and_only_then_fails_its_document() {
    let engine = Engine::start();
    patiently("the self-test to end", || {
        (engine.connect().status().parse_sandbox != "not tested yet").then_some(())
    });
    let mut client = engine.connect();
    client.send(Call::Prepare(order(Content::Bytes(page(1_000).into_bytes()), None)));
    let first = patiently("a child", || children(&engine).first().copied());
    // In the other lane, for each has one large document at a time.
    let mut other = engine.connect().bulk();
    other.send(Call::Prepare(order(Content::Bytes(page(1_000).into_bytes()), None)));
    patiently("two children", || (children(&engine).len() == 2).then_some(()));
    kill(first);
    assert!(matches!(client.receive(), Reply::Prepared(_)), "the second try was let live");
    assert!(matches!(other.receive(), Reply::Prepared(_)));

    // Whatever begins is killed: the second kill ends it.
    client.send(Call::Prepare(order(Content::Bytes(page(1_000).into_bytes()), None)));
    let mut killed = Vec::new();
    patiently("two kills", || {
        for child in children(&engine) {
            if !killed.contains(&child) {
                kill(child);
                killed.push(child);
            }
        }
        (killed.len() == 2).then_some(())
    });
    match client.receive() {
        Reply::Failed(failure) => {
            assert_eq!(failure.code, FailureCode::Killed);
            assert!(failure.message.contains("signal 9"), "{}", failure.message);
        }
        other => panic!("{other:?}"),
    }
    ask(&engine, order(Content::Text("the next one".into()), None)).unwrap();
}

/// A page that is one image: what a scanner makes.
fn scan() -> Vec<u8> {
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</XObject<</I 4 0 R>>>>/Contents 5 0 R>>".to_owned(),
        "<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>stream\n0\nendstream".to_owned(),
        "<</Length 30>>stream\nq 612 0 0 792 0 0 cm /I Do Q   \nendstream".to_owned(),
    ];
    let mut pdf = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (number, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", pdf.len()));
        pdf.push_str(&format!("{} 0 obj{object}endobj\n", number + 1));
    }
    let start = pdf.len();
    pdf.push_str(&format!(
        "xref\n0 6\n0000000000 65535 f \n{places}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{start}\n%%EOF"
    ));
    pdf.into_bytes()
}

/// An engine with a shell script for OCR.
fn with_ocr(folder: &tempfile::TempDir, script: &str, seconds: u32) -> Engine {
    let path = folder.path().join("ocr.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut settings = settings();
    settings.parse.ocr =
        Some(rag_wire::OcrProgram { path: path.to_str().unwrap().to_owned(), memory_mb: 512, seconds });
    Engine::with(settings)
}

#[test]
fn a_scan_is_said_to_be_one_and_is_read_by_the_program_that_is_named() {
    let refused = ask(&Engine::start(), order(Content::Bytes(scan()), None)).unwrap_err();
    assert!(refused.message.contains("it seems to be scanned"), "{refused:?}");
    assert!(refused.hint.unwrap().contains("rag_ext.ocr_program"));
    let folder = tempfile::tempdir().unwrap();
    let engine =
        with_ocr(&folder, "head -c 5 | grep -q %PDF- && printf 'The first page.\\fThe second page.\\f'", 60);
    let read = ask(&engine, order(Content::Bytes(scan()), None)).unwrap();
    assert_eq!(read.parsed.text, "The first page.\n\nThe second page.");
    assert_eq!(read.parsed.pages.len(), 2);
    assert!(!read.chunks.is_empty());
}

#[test]
fn a_program_for_ocr_that_fails_or_never_ends_fails_one_document() {
    for (script, seconds, code, words) in [
        ("exit 3", 60, FailureCode::NotParsable, "failed with status 3"),
        ("cat > /dev/null; printf ' '", 60, FailureCode::NotParsable, "found no text"),
        ("sleep 600 & sleep 600", 1, FailureCode::LimitExceeded, "longer than 1 s"),
        ("kill -9 $$", 60, FailureCode::NotParsable, "was killed"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let engine = with_ocr(&folder, script, seconds);
        let started = std::time::Instant::now();
        let failed = ask(&engine, order(Content::Bytes(scan()), None)).unwrap_err();
        assert!(failed.code == code && failed.message.contains(words), "{script}: {failed:?}");
        assert!(started.elapsed() < std::time::Duration::from_secs(30), "{script}");
        assert_eq!(engine.connect().counters().queued, 0);
    }
}

/// Ten sentences about glaciers, then ten about bread.
fn two_matters() -> String {
    let glacier = [
        "The glacier moves slowly down the mountain valley.",
        "Ice at the bottom of the glacier melts under the pressure.",
        "Crevasses open where the glacier bends over the rock.",
        "Meltwater runs in tunnels below the ice of the glacier.",
        "In summer the glacier loses more ice than snow brings in winter.",
    ];
    let bread = [
        "The baker kneads the dough for the bread before dawn.",
        "Yeast makes the bread dough rise in a warm kitchen.",
        "Sourdough bread needs a long rest before it is baked.",
        "The crust of the bread turns brown in the hot oven.",
        "Fresh bread from the baker smells of flour and salt.",
    ];
    [glacier, glacier, bread, bread].map(|sentences| sentences.join(" ")).join(" ")
}

fn semantic() -> Prepare {
    let mut prepare = order(Content::Text(two_matters()), Some("text/plain"));
    prepare.chunking =
        ChunkOptions { min_size: 0, ..ChunkOptions::of(ChunkMethod::Semantic, SizeUnit::Tokens) };
    prepare
}

#[test]
fn sentences_of_one_matter_make_a_chunk_and_the_same_document_the_same_chunks() {
    let engine = Engine::start();
    let document = ask(&engine, semantic()).unwrap();
    assert_eq!(document.fallback, None);
    let texts: Vec<&str> = document.chunks.iter().map(|chunk| document.chunk_text(chunk)).collect();
    assert_eq!(texts.len(), 2, "{texts:#?}");
    assert!(texts[1].contains("The crust") && !texts[0].contains("The crust"), "{texts:#?}");
    let others = |text: &str, words: [&str; 2]| words.iter().filter(|word| text.contains(**word)).count();
    assert_eq!(
        others(texts[0], ["kitchen", "oven"]) + others(texts[1], ["valley", "Crevasses"]),
        0,
        "{texts:#?}"
    );
    let mut interactive = engine.connect();
    assert_eq!(interactive.lane, Lane::Interactive);
    let again = interactive.ask(Call::Prepare(semantic())).unwrap();
    assert_eq!(again, Reply::Prepared(document));
}

#[test]
fn without_its_model_a_preview_is_cut_by_size_and_says_so_and_background_work_fails() {
    let mut settings = settings();
    settings.onnxruntime = "/nonexistent".into();
    let engine = Engine::with(settings);
    let failure = ask(&engine, semantic()).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded, "{failure:?}");
    match engine.connect().ask(Call::Prepare(semantic())).unwrap() {
        Reply::Prepared(document) => {
            assert_eq!(document.chunks.len(), 1);
            assert!(document.fallback.is_some_and(|reason| reason.contains("not loaded")));
        }
        other => panic!("{other:?}"),
    }
}
