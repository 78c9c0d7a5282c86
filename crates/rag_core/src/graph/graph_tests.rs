//! Tests on sentences as manuals, reports and notes have them.

use super::link::LinkKind;
use super::*;
use crate::document::{CharSpan, Chunk, ParsedDocument, Section};
use crate::option::Choice;

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> =
        entities(text).into_iter().map(|entity| (entity.kind.name(), &text[entity.bytes])).collect();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn check_relations(text: &str, expected: &[(&str, &str, &str)]) {
    let found = entities(text);
    let name = |index: usize| &text[found[index].bytes.clone()];
    let stated: Vec<(&str, &str, &str)> = relations(text, &found)
        .into_iter()
        .map(|relation| (name(relation.subject), relation.verb.name(), name(relation.object)))
        .collect();
    assert_eq!(stated, expected, "{text}");
}

#[test]
fn settings_programs_and_files_are_told_apart() {
    check(
        "Set max_wal_size in postgresql.conf, or run pg_ctl reload with PGDATA_DIR set.",
        &[
            ("configuration", "max_wal_size"),
            ("file", "postgresql.conf"),
            ("software", "pg_ctl"),
            ("configuration", "PGDATA_DIR"),
        ],
    );
    check("The property spring.jpa.show_sql is read at start.", &[("configuration", "spring.jpa.show_sql")]);
    check("Call it with --no-owner (e.g. from cron), i.e. quietly.", &[("configuration", "--no-owner")]);
    check("Write to ann@example.org or look at https://example.org/a_b.html first.", &[]);
}

#[test]
fn errors_and_numbers_of_documents_are_codes() {
    check(
        "ORA-00942 came with SQLSTATE 42501 and HTTP 503, then fault code F-17 and E1234.",
        &[
            ("error", "ORA-00942"),
            ("error", "SQLSTATE 42501"),
            ("error", "HTTP 503"),
            ("error", "F-17"),
            ("error", "E1234"),
        ],
    );
    check("See FC-001-234 and RFC 5424.", &[("document_code", "FC-001-234"), ("document_code", "RFC 5424")]);
    check("A NullPointerException is no error of ours.", &[("error", "NullPointerException")]);
}

#[test]
fn devices_organisations_and_persons_are_found() {
    check(
        "The Coolant Pump feeds a heat exchanger by valve V-204.",
        &[("hardware", "Coolant Pump"), ("hardware", "V-204")],
    );
    check(
        "Siemens AG bought it from the University of Leeds.",
        &[("organisation", "Siemens AG"), ("organisation", "University of Leeds")],
    );
    check(
        "The report by Maria Keller names Dr. Jonas Weber.",
        &[("person", "Maria Keller"), ("person", "Jonas Weber")],
    );
    check("Documented by Default Settings and written by hand.", &[]);
}

#[test]
fn products_commands_and_acronyms_are_found() {
    check(
        "PostgreSQL 16.2 writes WAL before CREATE INDEX returns.",
        &[("software", "PostgreSQL 16.2"), ("term", "WAL"), ("command", "CREATE INDEX")],
    );
    check(
        "The Billing Gateway and the TimescaleDB extension.",
        &[("software", "Billing Gateway"), ("software", "TimescaleDB")],
    );
    check("NOTE that this IS NOT a command, AND nothing else.", &[]);
}

#[test]
fn long_and_strange_texts_cost_little() {
    let long = "A_".repeat(20_000) + &"Aa ".repeat(20_000) + &"a.".repeat(20_000);
    let start = std::time::Instant::now();
    assert!(entities(&long).iter().all(|entity| entity.bytes.len() <= MAX_NAME_BYTES));
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn verbs_relate_the_entities_beside_them() {
    check_relations("The Billing Gateway depends on Kafka.", &[("Billing Gateway", "depends_on", "Kafka")]);
    check_relations(
        "The Billing Gateway requires Kafka, Redis and OpenSSL.",
        &[
            ("Billing Gateway", "requires", "Kafka"),
            ("Billing Gateway", "requires", "Redis"),
            ("Billing Gateway", "requires", "OpenSSL"),
        ],
    );
    check_relations("`ORA-00942` is caused by `search_path`.", &[("search_path", "causes", "ORA-00942")]);
    check_relations(
        "The Coolant Pump is connected to valve V-204.",
        &[("Coolant Pump", "connects_to", "V-204")],
    );
    check_relations("FC-002-100 replaces FC-001-234.", &[("FC-002-100", "replaces", "FC-001-234")]);
    check_relations("Der Kessel hängt von V-204 ab. V-204 ersetzt V-203.", &[("V-204", "replaces", "V-203")]);
}

#[test]
fn what_is_negated_or_in_another_sentence_is_no_relation() {
    check_relations("The Billing Gateway does not depend on Kafka.", &[]);
    check_relations("The Billing Gateway starts. It depends on luck. Kafka is there.", &[]);
    check_relations("Kafka, Redis and OpenSSL.", &[]);
    check_relations("Kafka no longer uses Zookeeper.", &[]);
    check_relations("The SQL standard requires that SELECT ends.", &[]);
}

/// A document of these chunks, each with a section of its own.
fn prepared(chunks: &[(&str, &str)]) -> PreparedDocument {
    let mut document = PreparedDocument {
        parsed: ParsedDocument {
            media_type: "text/markdown".into(),
            title: None,
            text: String::new(),
            headings: Vec::new(),
            pages: Vec::new(),
            metadata_json: "{}".into(),
        },
        sections: Vec::new(),
        chunks: Vec::new(),
        fallback: None,
    };
    for (heading, text) in chunks {
        let start = document.parsed.text.len();
        document.parsed.text.push_str(text);
        document.parsed.text.push('\n');
        let (bytes, chars) = (start..start + text.len(), CharSpan::default());
        let header_path = vec![(*heading).to_owned()];
        document.sections.push(Section { header_path, bytes: bytes.clone(), chars, pages: None });
        let section = document.sections.len() - 1;
        document.chunks.push(Chunk { section, bytes, chars, pages: None, tokens: 1, context: String::new() });
    }
    document
}

fn links_of(chunks: &[(&str, &str)], origin: &Origin<'_>) -> Vec<(usize, LinkKind, String, f32)> {
    let graph = graph_of(&prepared(chunks), origin);
    graph.links.into_iter().map(|link| (link.chunk, link.kind, link.target, link.strength)).collect()
}

#[test]
fn weights_tell_title_heading_and_text_apart() {
    let document = prepared(&[
        ("Checkpoints", "Nothing is named here, but in the title."),
        ("max_wal_size", "It limits the log. Kafka is named once."),
        ("Others", "wal_level comes first.\nThen WAL, WAL and again WAL."),
    ]);
    let graph = graph_of(
        &document,
        &Origin { title: Some("About FC-001-234"), uri: Some("a/wal_guide.txt"), html: None },
    );
    let found: Vec<(usize, &str, f32)> =
        graph.mentions.iter().map(|m| (m.chunk, m.key.as_str(), (m.weight * 10.0).round() / 10.0)).collect();
    let expected = [
        (0, "fc-001-234", 1.0),
        (0, "wal_guide.txt", 1.0),
        (1, "max_wal_size", 0.9),
        (1, "kafka", 0.4),
        (2, "wal_level", 0.8),
        (2, "wal", 0.6),
    ];
    assert_eq!(found, expected);
}

#[test]
fn links_are_found_by_address_number_and_title() {
    let text = "See FC-001-234 and [the guide](../guide.md#start). QA-17-002 is older. Refer to the manual “Pump Care”.";
    let origin = Origin { uri: Some("docs/notes/a.md"), ..Origin::default() };
    let expected = [
        (0, LinkKind::Address, "docs/guide.md".to_owned(), 0.8),
        (0, LinkKind::Code, "fc-001-234".to_owned(), 0.9),
        (0, LinkKind::Code, "qa-17-002".to_owned(), 0.6),
        (0, LinkKind::Title, "Pump Care".to_owned(), 0.9),
    ];
    assert_eq!(links_of(&[("", text)], &origin), expected);
    let paths = "Care: see also ../plans/cellar.md, and refer to the report `q3.PDF`. It has 2.md pages; see e.g. pg_hba.conf.";
    let expected = [
        (0, LinkKind::Address, "docs/plans/cellar.md".to_owned(), 0.8),
        (0, LinkKind::Address, "docs/notes/q3.PDF".to_owned(), 0.8),
    ];
    assert_eq!(links_of(&[("", paths)], &origin), expected);
    let section = graph_of(&prepared(&[("", "As section 4.2 of FC-001-234 says.")]), &Origin::default());
    assert_eq!(section.links[0].section.as_deref(), Some("4.2"));
}

#[test]
fn a_document_does_not_link_to_itself() {
    let origin = Origin { title: Some("FC-001-234 Pumps"), uri: Some("docs/a.md"), html: None };
    assert!(links_of(&[("", "FC-001-234 is this one, [here](a.md#x).")], &origin).is_empty());
}

#[test]
fn hyperlinks_of_html_stand_where_their_words_are() {
    let html = "<a accesskey=\"p\" href=\"prev.html\">Prev</a><p>First see <a class=x href='wal.html#A'><code>wal_level</code></a>.</p>
                <p>Then <A HREF=\"sql-vacuum.html\">the VACUUM command</A>, or <a href=\"gone.html\">what is not there</a>.</p>";
    let chunks = [("", "First see `wal_level`."), ("", "Then the VACUUM command, or Prev.")];
    let origin = Origin { uri: Some("index.html"), html: Some(html), title: None };
    let expected = [
        (0, LinkKind::Address, "wal.html".to_owned(), 0.8),
        (1, LinkKind::Address, "sql-vacuum.html".to_owned(), 0.8),
    ];
    assert_eq!(links_of(&chunks, &origin), expected);
}

#[test]
fn questions_about_relations_are_told_from_others() {
    for question in [
        "Which settings depend on shared_buffers?",
        "What is connected to the Coolant Pump?",
        "How does Kafka relate to the Billing Gateway?",
        "Which module uses the setting wal_level?",
        "What does the command remove that vacuumdb is a wrapper around?",
        "What is the difference between WAL and a checkpoint",
        "Welche Teile hängen von V-204 ab?",
    ] {
        assert!(asks_for_relations(question), "{question}");
    }
    for question in
        ["What is the default of checkpoint_timeout?", "How long may the payload of NOTIFY be?", "parts list"]
    {
        assert!(!asks_for_relations(question), "{question}");
    }
}

#[test]
fn names_of_a_question_are_its_runs_of_words() {
    let names = names_in("Is the Coolant Pump of `wal_level`?");
    for name in ["coolant pump", "wal_level", "pump of wal_level"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|found| found == "is" || found == "the coolant pump"), "{names:?}");
    assert!(names_in(&"word ".repeat(1000)).len() <= 256);
}
