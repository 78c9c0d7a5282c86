//! Policies that an administrator adds to the extension's tables: what they hide takes nothing from what is seen.

use rag_tests::{Database, Session};

/// Hits of searches by all arms, with everything that is told of them, but for the time that a stage took.
fn found(session: &mut Session) -> Vec<Vec<Vec<Option<String>>>> {
    let filter = r#", filter => '{"kind": {"in": ["log", "secret"]}}'"#;
    let calls = ["keyword", "vector", "hybrid"].into_iter().flat_map(|mode| [(mode, ""), (mode, filter)]);
    calls
        .map(|(mode, filter)| {
            session.rows(&format!(
                "SELECT rank, uri, score, keyword_rank, keyword_score, vector_rank, vector_score,
                        (SELECT jsonb_agg(stage - 'ms') FROM jsonb_array_elements(details -> 'stages') stage)
                 FROM rag_search('rope in the harbour', 10, mode => '{mode}'{filter}) ORDER BY rank"
            ))
        })
        .collect()
}

#[test]
fn hidden_documents_cost_no_result_and_change_no_score() {
    let database = Database::new("added_policies");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
    let put = |session: &mut Session, kind: &str, count: usize, text: &str| {
        session.run(&format!(
            "INSERT INTO rag.document (uri, content, metadata)
             SELECT '{kind} ' || n, '{text} ' || n, '{{\"kind\": \"{kind}\"}}' FROM generate_series(1, {count}) n"
        ));
        session.settle();
    };
    // More than are wanted, and less to the point than what is to be hidden.
    put(&mut owner, "log", 12, "The weather was fine, and somebody bought a rope. Page");
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
    database.admin().run(&format!(
        "CREATE POLICY no_secrets ON rag.document AS RESTRICTIVE FOR SELECT
         USING (current_user <> '{bob}' OR metadata ->> 'kind' IS DISTINCT FROM 'secret')"
    ));
    let before = found(&mut reader);
    assert!(before.iter().all(|rows| rows.len() == 10), "{before:?}");
    put(&mut owner, "secret", 60, "Rope in the harbour, harbour of rope. Rope");
    assert_eq!(found(&mut reader), before);
    // Who is not meant by the policy finds what is more to the point.
    let own = found(&mut owner);
    assert!(
        own.iter().flatten().all(|row| row[1].as_deref().is_some_and(|uri| uri.starts_with("secret"))),
        "{own:?}"
    );
    assert!(!reader.value("SELECT rag_answer('What is in the harbour?')").contains("harbour of rope"));
}
