//! The methods of cutting, by collection: what is stored, found, and read by answers.

use super::{assert_spans_are_exact, work};
use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session, literal};

/// A collection that cuts in this way, with one document in it.
fn collection(session: &mut Session, name: &str, chunking: &str, text: &str) {
    session.run(&format!(
        "SELECT rag_create_collection({}, options => '{{\"chunking\": {chunking}}}')",
        literal(name)
    ));
    session.run(&format!(
        "SELECT rag_ingest({}, uri => {1}, collection => {1}, options => '{{\"sync\": true}}')",
        literal(text),
        literal(name)
    ));
}

/// A section of so many sentences, each with a word of its own.
fn prose(sentences: usize) -> String {
    (0..sentences)
        .map(|n| format!("Ledger line {n} tells of barrel b{n}x that came up the river. "))
        .collect()
}

fn table(rows: usize) -> String {
    (0..rows).fold("| Harbour | Depth |\n| --- | ---: |\n".to_owned(), |table, row| {
        format!("{table}| Quay q{row}x | {row} fathoms of muddy water |\n")
    })
}

#[test]
fn sections_of_a_thousand_tokens_have_chunks_that_fit_the_model() {
    let database = Database::new("by_section");
    let mut ann = database.user("ann");
    let text = format!("# Tiny\n\nOne line.\n\n# River\n\n{}\n\n# Last\n\nTwo lines.", prose(200));
    collection(&mut ann, "logs", "{\"method\": \"section\"}", &text);
    assert_spans_are_exact(&mut ann);
    let limit = ann.count("SELECT max_tokens FROM rag.model WHERE is_default AND kind = 'embedding'");
    assert!(
        ann.holds(&format!("SELECT max(tokens) < {limit} FROM rag.chunk")),
        "nothing is embedded truncated"
    );
    let sections = ann.count("SELECT count(*) FROM rag.section");
    let chunks = ann.count("SELECT count(*) FROM rag.chunk");
    assert!(
        (3..=8).contains(&sections) && chunks >= 2 * sections - 2,
        "{sections} sections, {chunks} chunks"
    );
    // Sections of one heading overlap by about 15 %, and none is as short as the first and last heading's.
    let overlaps = ann.column(
        "SELECT s.char_to - lead(s.char_from) OVER (ORDER BY s.ordinal) FROM rag.section s ORDER BY s.ordinal",
    );
    assert!(
        overlaps.iter().filter(|o| *o != "NULL" && o.parse::<i64>().unwrap() > 100).count() >= 2,
        "{overlaps:?}"
    );
    assert!(ann.holds("SELECT min(char_to - char_from) > 200 FROM rag.section"));
    for word in ["b0x", "b99x", "b199x"] {
        assert!(
            ann.count(&format!("SELECT count(*) FROM rag_search('{word}', mode => 'keyword')")) >= 1,
            "{word}"
        );
    }
}

#[test]
fn paragraphs_are_found_and_their_sections_are_known() {
    let database = Database::new("by_paragraph");
    let mut ann = database.user("ann");
    let text = "# Farm\n\nThe rooster crows before the sun is up and wakes the whole farm with his noise.\n\n\
                The goose guards the gate and hisses at every stranger who comes near the yard.\n\n\
                # Pond\n\nThe newt hides below the stones of the pond until the heron has flown away.\n";
    collection(&mut ann, "farm", "{\"method\": \"parent_child\", \"min_size\": 8}", text);
    assert_spans_are_exact(&mut ann);
    assert_eq!((ann.count("SELECT count(*) FROM rag.section"), work(&mut ann, "farm").0), (2, 3));
    let hit = ann.rows("SELECT content, header_path FROM rag_search('goose', mode => 'keyword')");
    assert_eq!(hit.len(), 1);
    assert!(
        hit[0][0].as_ref().unwrap().starts_with("The goose") && hit[0][1].as_deref() == Some("{Farm}"),
        "{hit:?}"
    );
    assert_eq!(
        ann.column(
            "SELECT substr(d.text, s.char_from + 1, s.char_to - s.char_from) LIKE '%rooster%goose%'
             FROM rag_search('goose', mode => 'keyword') h JOIN rag.section s ON s.id = h.section_id
             JOIN rag.document d ON d.id = h.document_id"
        ),
        ["t"]
    );
}

#[test]
fn sentences_of_one_matter_are_a_chunk_and_the_preview_shows_them() {
    let database = Database::new("by_matter");
    let mut ann = database.user("ann");
    let glacier = "The glacier moves slowly down the mountain valley. Crevasses open where the ice of the glacier bends. Meltwater runs in tunnels below the glacier. ";
    let bread = "The baker kneads the dough for the bread before dawn. Yeast makes the bread dough rise in a warm kitchen. The crust of the bread turns brown in the oven. ";
    let text = format!("# Notes\n\n{}{}", glacier.repeat(3), bread.repeat(3));
    collection(&mut ann, "notes", "{\"method\": \"semantic\", \"min_size\": 0}", &text);
    assert_spans_are_exact(&mut ann);
    let stored = ann.column("SELECT content FROM rag.chunk ORDER BY ordinal");
    assert_eq!((stored.len(), ann.count("SELECT count(*) FROM rag.section")), (2, 1), "{stored:#?}");
    assert!(stored[0].starts_with("# Notes") && !stored[0].contains("oven") && !stored[1].contains("valley"));
    let preview = |options: &str| {
        format!("SELECT content FROM rag_chunk({}, '{options}') ORDER BY ordinal", literal(&text))
    };
    assert_eq!(ann.column(&preview("{\"method\": \"semantic\", \"min_size\": 0}")), stored);
    let finer = "{\"method\": \"semantic\", \"min_size\": 0, \"breakpoint_percentile\": 50}";
    assert!(ann.column(&preview(finer)).len() > stored.len());
    ann.refuses("22023", &preview("{\"breakpoint_percentile\": 50}"));
}

#[test]
fn characters_can_be_counted_instead_of_tokens() {
    let database = Database::new("by_character");
    let mut ann = database.user("ann");
    let chunking = "{\"unit\": \"characters\", \"size\": 500, \"overlap\": 100}";
    collection(&mut ann, "letters", chunking, &prose(60));
    assert_spans_are_exact(&mut ann);
    assert!(ann.holds(
        "SELECT max(length(content)) <= 500 AND min(length(content)) > 50 AND count(*) > 8 FROM rag.chunk"
    ));
    assert!(ann.holds(
        "SELECT bool_and(before - char_from BETWEEN 20 AND 100)
         FROM (SELECT char_from, lag(char_to) OVER (ORDER BY ordinal) AS before FROM rag.chunk) c WHERE before IS NOT NULL"
    ));
}

#[test]
fn rows_far_down_a_table_know_its_header() {
    let database = Database::new("table_header");
    let mut ann = database.user("ann");
    collection(&mut ann, "quays", "{\"size\": 80, \"overlap\": 0}", &format!("# Coast\n\n{}", table(60)));
    assert_spans_are_exact(&mut ann);
    assert!(ann.holds("SELECT count(*) > 8 FROM rag.chunk"));
    assert!(
        ann.holds(
            "SELECT bool_and(content LIKE '%| Harbour | Depth |%' OR context LIKE E'Coast\\n| Harbour | Depth |\\n| --- | ---: |')
             FROM rag.chunk"
        ),
        "{:?}",
        ann.column("SELECT context FROM rag.chunk")
    );
    assert!(
        ann.holds("SELECT bool_and(content ~ '^(#|\\|)' AND content ~ '\\|$') FROM rag.chunk"),
        "rows are whole"
    );
    // The columns' names are searched with every part of the table, also after the index was built anew.
    let by_both = "SELECT content LIKE '%q57x%' FROM rag_search('harbour q57x', k => 1, mode => 'keyword')";
    assert!(ann.holds(by_both));
    let all = ann.count("SELECT count(*) FROM rag.chunk");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('harbour', k => 1000, mode => 'keyword')"), all);
}

#[test]
fn one_changed_word_in_a_long_text_without_headings_costs_few_embeddings() {
    let database = Database::new("long_text");
    let mut ann = database.user("ann");
    let text = prose(300);
    collection(&mut ann, "long", "{\"size\": 120, \"overlap\": 16}", &text);
    let (all, embedded) = work(&mut ann, "long");
    assert!(all > 40 && embedded == all, "{embedded} of {all}");
    let changed =
        text.replace("barrel b30x that", "barrel b30x, which smelled of old herring and pitch, that");
    ann.run(&format!(
        "SELECT rag_ingest({}, uri => 'long', collection => 'long', options => '{{\"sync\": true}}')",
        literal(&changed)
    ));
    let (all, embedded) = work(&mut ann, "long");
    assert!((1..=12).contains(&embedded), "{embedded} of {all}");
    assert_spans_are_exact(&mut ann);
    assert_eq!(ann.count("SELECT count(DISTINCT id) FROM rag.chunk"), all);
}

#[test]
fn a_chat_model_reads_the_section_around_a_paragraph() {
    let stub = ChatStub::start(ChatReply::Message("The goose guards the gate [1].".into()));
    let cluster = Cluster::builder("parents")
        .setting("rag_ext.llm_url", &stub.url())
        .setting("rag_ext.llm_model", "stub")
        .start();
    let database = cluster.database("parents");
    let mut ann = database.user("ann");
    let text = "# Farm\n\nThe rooster crows before the sun is up and wakes the whole farm with his noise.\n\n\
                The goose guards the gate and hisses at every stranger who comes near the yard.\n";
    collection(&mut ann, "farm", "{\"method\": \"parent_child\", \"min_size\": 8}", text);
    let answer =
        ann.json("SELECT rag_answer('Who guards the gate?', options => '{\"k\": 1, \"mode\": \"keyword\"}')");
    assert_eq!(answer["found"], true, "{answer:#}");
    let request = stub.requests().pop().expect("the endpoint was asked");
    let prompt: String =
        request["messages"].as_array().unwrap().iter().filter_map(|m| m["content"].as_str()).collect();
    assert!(prompt.contains("The goose guards") && prompt.contains("The rooster crows"), "{prompt}");
    let citation = &answer["citations"][0];
    let (from, to) = (citation["char_from"].as_i64().unwrap(), citation["char_to"].as_i64().unwrap());
    assert_eq!(
        ann.value(&format!("SELECT substr(text, {from} + 1, {to} - {from}) FROM rag.document")),
        citation["quote"].as_str().unwrap()
    );
}
