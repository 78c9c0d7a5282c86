//! `rag_parse`, `rag_chunk` and `rag_chunk_bytes`: what ingestion would do.

use super::sections;
use rag_tests::{Database, literal};

#[test]
fn a_preview_shows_what_ingestion_stores() {
    let database = Database::new("preview_same");
    let mut ann = database.user("ann");
    let text = format!("Ünïcode before 🦉.\n\n{}", sections(&["owl", "crow", "jay"]));
    ann.run("SELECT rag_create_collection('small', language => 'german', options => '{\"chunking\": {\"size\": 16, \"overlap\": 4}}')");
    ann.run(&format!(
        "SELECT rag_ingest({}, title => 'Birds', collection => 'small', options => '{{\"sync\": true}}')",
        literal(&text)
    ));
    let stored = ann.rows(
        "SELECT c.ordinal, d.chunks, s.ordinal, s.char_from, s.char_to, s.header_path, c.page_from, c.page_to, c.char_from, c.char_to, c.tokens,
                c.sha256, c.context, c.content
         FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id JOIN rag.section s ON s.id = c.section_id
         ORDER BY c.ordinal",
    );
    let shown = ann.rows(&format!(
        "SELECT ordinal, total, parent, parent_from, parent_to, header_path, page_from, page_to, char_from, char_to, tokens, sha256, context, content
         FROM rag_chunk({}, '{{\"size\": 16, \"overlap\": 4, \"title\": \"Birds\", \"language\": \"german\"}}') ORDER BY ordinal",
        literal(&text)
    ));
    assert!(shown.len() > 4, "{shown:?}");
    assert_eq!(shown, stored);
    assert_eq!(
        ann.rows(&format!(
            "SELECT content FROM rag_chunk_bytes(convert_to({0}, 'UTF8'))
             EXCEPT SELECT content FROM rag_chunk({0})",
            literal(&text)
        )),
        Vec::<Vec<Option<String>>>::new()
    );
}

#[test]
fn a_parsed_file_is_one_row() {
    let database = Database::new("preview_parse");
    let mut ann = database.user("ann");
    let page = "<html lang=\"en\"><head><title>Bees &amp; ants</title></head><body><h1>Bées</h1><p>They fly.</p><h2>Ants</h2><p>They walk.</p></body></html>";
    let parsed = format!("rag_parse(convert_to({}, 'UTF8'))", literal(page));
    assert_eq!(ann.value(&format!("SELECT media_type FROM {parsed}")), "text/html");
    assert_eq!(ann.value(&format!("SELECT title FROM {parsed}")), "Bees & ants");
    assert_eq!(ann.value(&format!("SELECT pages IS NULL AND page_starts IS NULL FROM {parsed}")), "t");
    assert_eq!(
        ann.column(&format!(
            "SELECT concat_ws(' ', h->>'level', h->>'title', substr(p.text, (h->>'char_from')::int + 1, (h->>'char_to')::int - (h->>'char_from')::int))
             FROM {parsed} p, jsonb_array_elements(p.headings) WITH ORDINALITY AS e (h, n) ORDER BY n"
        )),
        ["1 Bées # Bées", "2 Ants ## Ants"]
    );
    assert_eq!(ann.value(&format!("SELECT jsonb_typeof(metadata) FROM {parsed}")), "object");
    assert_eq!(
        ann.column(&format!("SELECT c.content FROM {parsed} p, rag_chunk(p.text) c ORDER BY c.ordinal")),
        ["# Bées\n\nThey fly.", "## Ants\n\nThey walk."]
    );
}

#[test]
fn previews_refuse_what_ingestion_would_refuse_and_store_nothing() {
    let database = Database::new("preview_refusals");
    let mut ann = database.user("ann");
    ann.refuses("22004", "SELECT * FROM rag_chunk(NULL)");
    ann.refuses("22004", "SELECT * FROM rag_chunk('x', NULL)");
    ann.refuses("22004", "SELECT * FROM rag_parse(NULL)");
    let failure = ann.refuses("22023", "SELECT * FROM rag_chunk('x', '{\"sise\": 5}')");
    assert!(failure.message.contains("sise") && failure.hint.contains("\"size\""), "{failure}");
    ann.refuses("22023", "SELECT * FROM rag_chunk('x', '{\"size\": 5}')");
    ann.refuses("22023", "SELECT * FROM rag_chunk('x', '{\"language\": \"klingon\"}')");
    ann.refuses("42704", "SELECT * FROM rag_chunk('x', '{\"model\": \"no-such-model\"}')");
    ann.refuses("22023", "SELECT * FROM rag_parse('x', NULL, '{\"a\": 1}')");
    ann.refuses("0A000", "SELECT * FROM rag_parse('\\x7f454c4602010100', 'application/x-elf')");
    assert_eq!(ann.count("SELECT count(*) FROM rag_chunk('')"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag_chunk('One.')"), 1);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
    let outsider = database.outsider("eve", "");
    database.connect(&outsider).refuses("42501", "SELECT * FROM rag_chunk('One.')");

    ann.run("BEGIN READ ONLY");
    assert_eq!(ann.count("SELECT count(*) FROM rag_chunk('One.')"), 1);
    ann.run("COMMIT");
}
