//! What was said moves chunks in one's own searches, and in nobody else's.

use super::{prepared, say};
use rag_tests::{Database, Session};

/// The uris that a search finds, in their order.
fn order(session: &mut Session, query: &str, options: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT uri FROM rag_search('{query}', 'default', mode => 'keyword', options => '{options}')"
    ))
}

const OFF: &str = "{}";
const ON: &str = r#"{"feedback_boost": 1}"#;

#[test]
fn what_was_said_moves_chunks_for_the_same_query_and_for_similar_ones() {
    let database = Database::new("boost");
    let mut ann = prepared(&database, "ann");
    let query = "boats in the harbour";
    let plain = order(&mut ann, query, OFF);
    assert_eq!(plain, ["crane.md", "ferry.md"]);
    assert_eq!(order(&mut ann, query, ON), plain, "nothing was said");
    say(&mut ann, query, "ferry.md", 1);
    say(&mut ann, query, "crane.md", -1);
    assert_eq!(order(&mut ann, query, OFF), plain, "off by default");
    assert_eq!(order(&mut ann, query, ON), ["ferry.md", "crane.md"]);
    // Two words of two, of three, of five.
    assert_eq!(order(&mut ann, "the harbour of the boat", ON)[0], "ferry.md");
    assert_eq!(order(&mut ann, "boats in a green harbour", ON)[0], "ferry.md");
    assert_eq!(order(&mut ann, "bread in the harbour", ON).len(), 3);
    assert_eq!(order(&mut ann, "how boats leave the night harbour by a crane", ON)[0], "crane.md");

    // Its stage, and where it put each candidate; in each mode.
    for mode in ["keyword", "vector", "hybrid"] {
        let stage = ann.rows(&format!(
            "SELECT input >= 2, output, fallback FROM rag_explain('{query}', mode => '{mode}', options => '{ON}')
             WHERE stage = 'feedback_boost'"
        ));
        assert_eq!(stage, [[Some("t".into()), Some("2".into()), None]], "{mode}");
    }
    let explain = |what: &str| {
        format!(
            "SELECT {what} FROM rag_explain('{query}', mode => 'keyword', options => '{{\"feedback_boost\": 1, \"per_candidate\": true}}')
             WHERE kind = 'candidate' ORDER BY rank"
        )
    };
    assert_eq!(ann.column(&explain("details->'feedback_boost'->>'rank'")), ["1", "2"]);
    assert_eq!(ann.column(&explain("keyword_rank")), ["2", "1"]);
    // Half for one vote: 1 for the best hit, less a half.
    assert_eq!(ann.column(&explain("score"))[1], "0.5");
    let score = |weight: f64| {
        format!(
            "SELECT score FROM rag_search('{query}', mode => 'keyword', options => '{{\"feedback_boost\": {weight}}}') WHERE uri = 'crane.md'"
        )
    };
    assert_eq!(ann.column(&score(0.5)), ["0.75"]);

    // A collection's own default, which a call goes before; nothing is cut anew for it.
    ann.run("SELECT rag_alter_collection('default', options => '{\"feedback_boost\": 1}')");
    let settled = "SELECT count(*) FROM rag.job WHERE state <> 'done'";
    assert_eq!(ann.count(settled), 0);
    assert_eq!(order(&mut ann, query, OFF), ["ferry.md", "crane.md"]);
    assert_eq!(order(&mut ann, query, r#"{"feedback_boost": 0}"#), plain);
    assert_eq!(
        ann.column(&format!("SELECT uri FROM rag_search('{query}', mode => 'keyword', k => 1)")),
        ["ferry.md"],
        "of a search of all collections"
    );
    ann.run("SELECT rag_alter_collection('default', options => '{}')");
    ann.settle();
    assert_eq!(order(&mut ann, query, OFF), plain);
    ann.refuses("22023", "SELECT rag_alter_collection('default', options => '{\"feedback_boost\": 2}')");
    ann.refuses("22023", "SELECT rag_search('x', options => '{\"feedback_boost\": -1}')");

    // Taken back.
    ann.run("DELETE FROM rag.feedback");
    assert_eq!(order(&mut ann, query, ON), plain);
}

/// Bob sees ann's documents, and each says the opposite.
#[test]
fn nobodys_order_depends_on_what_others_said() {
    let database = Database::new("boost_isolation");
    let mut ann = prepared(&database, "ann");
    let mut bob = database.user("bob");
    let bob_role = bob.value("SELECT current_user");
    let ann_role = ann.value("SELECT current_user");
    ann.run("SELECT rag_create_collection('open', shared => true, options => '{\"feedback_boost\": 1}')");
    for who in ["default", "open"] {
        ann.run(&format!("SELECT rag_grant('{who}', 'role:{bob_role}', 'read')"));
    }
    ann.run(&format!("SELECT rag_grant('open', 'role:{bob_role}', 'write')"));
    bob.run(&format!(
        "SELECT rag_accept('role:{ann_role}', 'default'), rag_accept('role:{ann_role}', 'open')"
    ));
    // Bob writes to ann's shared collection, and she to it.
    bob.run(&format!(
        "INSERT INTO rag.document (collection, uri, content) VALUES ('role:{ann_role}/open', 'bobs.md', 'A boat of bob in the harbour.')"
    ));
    ann.run("INSERT INTO rag.document (collection, uri, content) VALUES ('open', 'anns.md', 'A boat of ann in the harbour.')");
    ann.settle();
    bob.settle();
    let query = "boats in the harbour";
    let looks = |session: &mut Session| {
        ["keyword", "vector", "hybrid"].map(|mode| {
            session.rows(&format!(
                "SELECT uri, score, details->'stages'->0->>'out' FROM rag_search('{query}', mode => '{mode}', options => '{ON}')"
            ))
        })
    };
    let (anns, bobs) = (looks(&mut ann), looks(&mut bob));
    for (uri, verdict) in [("crane.md", -1), ("ferry.md", 1), ("anns.md", -1), ("bobs.md", 1)] {
        say(&mut bob, query, uri, verdict);
    }
    assert_eq!(looks(&mut ann), anns, "bob's word is bob's");
    let moved = looks(&mut bob);
    assert!(moved.iter().zip(&bobs).all(|(now, before)| now != before), "{moved:?}");
    for (uri, verdict) in [("crane.md", 1), ("ferry.md", -1), ("anns.md", 1), ("bobs.md", -1)] {
        say(&mut ann, query, uri, verdict);
    }
    assert_eq!(looks(&mut bob), moved, "ann's word is ann's");
    assert_ne!(looks(&mut ann), anns);

    // What a role that bob acts as has said, counts for bob as well; for a superuser, his own word alone.
    let mut admin = database.admin();
    let team = database.role("team");
    admin.run(&format!("GRANT {team} TO {bob_role}"));
    ann.run(&format!("SELECT rag_grant('default', 'role:{team}', 'read')"));
    let before = looks(&mut bob);
    bob.run(&format!("SET ROLE {team}"));
    say(&mut bob, query, "ferry.md", -1);
    bob.run("RESET ROLE");
    assert_ne!(looks(&mut bob), before);
    admin.run("SET rag_ext.all_domains = on");
    let stage = format!(
        "SELECT output FROM rag_explain('{query}', options => '{ON}') WHERE stage = 'feedback_boost'"
    );
    assert_eq!(admin.column(&stage), ["0"]);
}

#[test]
fn chunks_that_keep_their_ids_keep_what_was_said_of_them() {
    let database = Database::new("boost_following");
    let mut ann = prepared(&database, "ann");
    let text =
        |part: &str| format!("# Lamp\n\nThe lamp of the harbour shines all night.\n\n# Rope\n\n{part}\n");
    let long = "Ropes hold the boats of the harbour. ".repeat(20);
    ann.ingest(&text(&long), "long.md");
    let query = "harbour";
    let lamp = "SELECT c.id FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri = 'long.md' AND c.content LIKE '%lamp of%'";
    let chunk = ann.value(lamp);
    ann.run(&format!("SELECT rag_feedback('{query}', '{chunk}', 1)"));
    let pushed = format!(
        "SELECT output FROM rag_explain('{query}', mode => 'keyword', options => '{ON}') WHERE stage = 'feedback_boost'"
    );
    assert_eq!(ann.column(&pushed), ["1"]);
    // Its title changes, or another part of it.
    ann.run("UPDATE rag.document SET metadata = '{\"kind\": \"light\"}' WHERE uri = 'long.md'");
    ann.settle();
    assert_eq!((ann.value(lamp), ann.column(&pushed)), (chunk.clone(), vec!["1".to_owned()]));
    // What is said of a chunk that is gone counts for no other one; so does a document that goes elsewhere.
    ann.run("UPDATE rag.document SET content = '# Lamp\n\nThe lamp of the harbour is dark.' WHERE uri = 'long.md'");
    ann.settle();
    assert_ne!(ann.value(lamp.replace("lamp of", "dark").as_str()), chunk);
    assert_eq!(ann.column(&pushed), ["0"]);
    say(&mut ann, query, "long.md", 1);
    assert_eq!(ann.column(&pushed), ["1"]);
    ann.run("SELECT rag_create_collection('other'); UPDATE rag.document SET collection = 'other' WHERE uri = 'long.md'");
    ann.settle();
    assert_eq!(ann.column(&pushed), ["0"]);
    say(&mut ann, query, "long.md", 1);
    assert_eq!(ann.column(&pushed), ["1"]);
}

#[test]
fn a_search_goes_on_where_feedback_cannot_be_read() {
    let database = Database::new("boost_fault");
    let mut ann = prepared(&database, "ann");
    let query = "boats in the harbour";
    say(&mut ann, query, "ferry.md", 1);
    say(&mut ann, query, "crane.md", -1);
    let plain = order(&mut ann, query, OFF);
    let role = ann.value("SELECT current_user");
    let mut admin = database.admin();
    admin.run(&format!("REVOKE SELECT ON rag.feedback FROM {role}"));
    assert_eq!(order(&mut ann, query, ON), plain);
    let stage = ann.rows(&format!(
        "SELECT fallback, reason FROM rag_explain('{query}', options => '{ON}') WHERE stage = 'feedback_boost'"
    ));
    assert_eq!(stage[0][0].as_deref(), Some("order without feedback"));
    assert!(stage[0][1].as_deref().is_some_and(|reason| reason.contains("permission denied")), "{stage:?}");
    admin.run(&format!("SELECT rag_enable('{role}')"));
    assert_eq!(order(&mut ann, query, ON)[0], "ferry.md");
}
