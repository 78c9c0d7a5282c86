//! Links of every kind lead to their documents, and go along when documents are renamed, changed or deleted.

use rag_tests::{Database, Session};

/// Documents that a document points to, each with the strength.
fn targets(session: &mut Session, uri: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT uri || ' ' || strength FROM rag_related('{uri}') WHERE relation = 'links_to' AND direction = 'out' ORDER BY 1"
    ))
}

#[test]
fn links_of_every_kind_lead_to_their_documents() {
    let database = Database::new("graph_link_kinds");
    let mut ann = database.user("ann");
    for (uri, text) in [
        ("plans/my cellar.md", "Two doors and a ladder."),
        ("plans/roof.md", "One chimney."),
        ("guide.html", "<html><body><p>Some guidance.</p></body></html>"),
        ("https://example.org/care", "Care once a year."),
        ("codes/FC-001-234.md", "Opens at nine bar."),
        ("codes/FC-001-235.md", "Opens at ten bar."),
        ("codes/qa.md", "# QA-17-002\n\nHow quality is kept."),
        ("titled.md", "# Pump Care\n\nOil it."),
    ] {
        ann.ingest(text, uri);
    }
    for (uri, text, expected) in [
        ("a/md.md", "The [cellar](../plans/my%20cellar.md#doors) is below.", &["plans/my cellar.md 0.8"][..]),
        ("a/path.md", "Of the roof, see ../plans/roof.md.", &["plans/roof.md 0.8"]),
        ("a/url.md", "Care: https://example.org/care?lang=en.", &["https://example.org/care 0.8"]),
        (
            "page.html",
            "<html><body><p>Read <a href=\"guide.html#top\">the guidance</a> first.</p></body></html>",
            &["guide.html 0.8"],
        ),
        ("a/see.md", "Pressure: see document FC-001-234.", &["codes/FC-001-234.md 0.9"]),
        ("a/section.md", "As section 4.2 of FC-001-235 says, wait.", &["codes/FC-001-235.md 0.9"]),
        ("a/code.md", "QA-17-002 was passed in May.", &["codes/qa.md 0.6"]),
        ("a/title.md", "Refer to the manual “Pump Care”.", &["titled.md 0.9"]),
        ("a/gone.md", "See FC-999-999 and [this](nowhere.md).", &[]),
    ] {
        ann.ingest(text, uri);
        let found: Vec<String> = targets(&mut ann, uri)
            .into_iter()
            .map(|row| {
                let (uri, strength) = row.rsplit_once(' ').unwrap();
                format!("{uri} {:.1}", strength.parse::<f64>().unwrap())
            })
            .collect();
        assert_eq!(found, expected, "{uri}");
    }
    assert_eq!(ann.value("SELECT section FROM rag.graph_link WHERE uri = 'a/section.md'"), "4.2");
    // Two names in common, and each further one, make a link without anybody pointing.
    ann.ingest("max_wal_size and wal_level are set in May.", "shared/one.md");
    ann.ingest("Nobody sets wal_level, or max_wal_size.", "shared/two.md");
    let shared =
        "SELECT uri || ' ' || strength FROM rag_related('shared/one.md') WHERE relation = 'shares_entities'";
    assert_eq!(ann.column(shared), ["shared/two.md 0.5"]);
}

#[test]
fn links_follow_documents_that_change() {
    let database = Database::new("graph_link_changes");
    let mut ann = database.user("ann");
    ann.ingest("Two doors and a ladder.", "a/plan.md");
    ann.ingest("A door and two ladders.", "b/plan.md");
    ann.ingest("The [plan](plan.md) is old.", "a/notes.md");
    let of = |session: &mut Session, uri: &str| -> Vec<String> {
        targets(session, uri).into_iter().map(|row| row.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    assert_eq!(of(&mut ann, "a/notes.md"), ["a/plan.md"]);
    // A relative link starts where its document is.
    ann.run("UPDATE rag.document SET uri = 'b/notes.md' WHERE uri = 'a/notes.md'");
    assert_eq!(ann.value("SELECT status FROM rag.document WHERE uri = 'b/notes.md'"), "done");
    ann.settle();
    assert_eq!(of(&mut ann, "b/notes.md"), ["b/plan.md"]);
    // It leads to whatever has the name.
    ann.run("UPDATE rag.document SET uri = 'b/old.md' WHERE uri = 'b/plan.md'");
    assert!(of(&mut ann, "b/notes.md").is_empty());
    ann.run("UPDATE rag.document SET uri = 'b/plan.md' WHERE uri = 'a/plan.md'");
    assert_eq!(of(&mut ann, "b/notes.md"), ["b/plan.md"]);
    assert_eq!(ann.value("SELECT direction FROM rag_related('b/plan.md') WHERE uri = 'b/notes.md'"), "in");
    ann.run("DELETE FROM rag.document WHERE uri = 'b/plan.md'");
    assert!(of(&mut ann, "b/notes.md").is_empty());
    ann.ingest("Three doors.", "b/plan.md");
    assert_eq!(of(&mut ann, "b/notes.md"), ["b/plan.md"]);
    ann.ingest("The plan is gone.", "b/notes.md");
    assert!(of(&mut ann, "b/notes.md").is_empty());
    // A number is found by the name of the file, whatever that is by now.
    ann.ingest("See FC-001-234.", "c.md");
    ann.ingest("Opens at nine bar.", "codes/FC-001-234.md");
    assert_eq!(of(&mut ann, "c.md"), ["codes/FC-001-234.md"]);
    ann.run("UPDATE rag.document SET uri = 'codes/FC-001-235.md' WHERE uri = 'codes/FC-001-234.md'");
    ann.settle();
    assert!(of(&mut ann, "c.md").is_empty());
    ann.settle();
}
