//! Policies that an administrator adds to the extension's tables: what they hide takes nothing from what is seen.

use rag_tests::{Database, Session};

/// Hits of searches by all retrievers, with everything that is told of them, but for the time that a stage took.
fn found(session: &mut Session) -> Vec<Vec<Vec<Option<String>>>> {
    let filter = r#", filter => '{"kind": {"in": ["log", "secret"]}}'"#;
    let calls = ["keyword", "vector", "hybrid"].into_iter().flat_map(|mode| [(mode, ""), (mode, filter)]);
    calls
        .map(|(mode, filter)| {
            session.rows(&format!(
                "SELECT rank, uri, score, keyword_rank, keyword_score, vector_rank, vector_score,
                        (SELECT jsonb_agg(stage - 'ms') FROM jsonb_array_elements(details -> 'stages') stage)
                 FROM rag_search('rope in the harbour', k => 10, mode => '{mode}'{filter}) ORDER BY rank"
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
    put(
        &mut owner,
        "log",
        12,
        "The weather was fine, and somebody bought a rope. By FC-001-234 rope_length requires rope_width. Page",
    );
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
    database.admin().run(&format!(
        "SELECT rag_add_policy('rag.document', 'no_secrets', command => 'select',
             using_expression => $$current_user <> '{bob}' OR metadata ->> 'kind' IS DISTINCT FROM 'secret'$$)"
    ));
    let before = found(&mut reader);
    assert!(before.iter().all(|rows| rows.len() == 10), "{before:?}");
    put(
        &mut owner,
        "secret",
        60,
        "Rope in the harbour, harbour of rope. By FC-001-234 rope_length requires rope_width. Rope",
    );
    assert_eq!(found(&mut reader), before);
    // Who is not meant by the policy finds what is more to the point.
    let own = found(&mut owner);
    assert!(
        own.iter().flatten().all(|row| row[1].as_deref().is_some_and(|uri| uri.starts_with("secret"))),
        "{own:?}"
    );
    assert!(!reader.value("SELECT rag_answer('What is in the harbour?')").contains("harbour of rope"));

    // Nor are they shown what was made of the documents: by one, by many, or all at once.
    let mut admin = database.admin();
    let secret = "SELECT id FROM rag.document WHERE metadata ->> 'kind' = 'secret'";
    let documents = admin.value(&format!("SELECT array_agg(id) FROM ({secret}) d"));
    let one = admin.value(&format!("{secret} LIMIT 1"));
    for table in
        ["section", "chunk", "metadata_value", "job", "entity_mention", "entity_relation", "document_link"]
    {
        let of = |condition: &str| format!("SELECT count(*) FROM rag.{table} WHERE document_id {condition}");
        assert_eq!(reader.count(&of(&format!("= '{one}'"))), 0, "rag.{table}");
        assert_eq!(reader.count(&of(&format!("= ANY ('{documents}')"))), 0, "rag.{table}");
        assert!(owner.count(&of(&format!("= ANY ('{documents}')"))) >= 60, "rag.{table}");
        let shown = format!("SELECT count(DISTINCT document_id) FROM rag.{table}");
        assert_eq!(reader.count(&shown), 12, "rag.{table}");
    }
    for table in ["segment", "deletion_count"] {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
    let chunks = admin.value(&format!("SELECT array_agg(id) FROM rag.chunk WHERE document_id IN ({secret})"));
    assert_eq!(reader.count(&format!("SELECT count(*) FROM rag_vectors('{chunks}')")), 0);
}

/// While the extension asks what added policies show, policies of attached tables run, and with them whatever their owners
/// have written.
#[test]
fn code_of_an_attached_table_is_shown_no_more_than_its_caller() {
    let database = Database::new("asked_meanwhile");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let mut admin = database.admin();
    admin.run(&format!("GRANT CREATE ON SCHEMA public TO {role}"));
    ann.ingest("The lamp is in the attic.", "lamp");
    admin.run(
        "SELECT rag_add_policy('rag.document', 'no_lamps', command => 'select', using_expression => $$uri <> 'lamp'$$);
         CREATE TABLE peeked (found bigint); GRANT INSERT ON peeked TO public",
    );
    let domain = admin.value("SELECT domain_id FROM rag.document WHERE uri = 'lamp'");
    ann.run(&format!(
        "CREATE FUNCTION peek() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.peeked SELECT count(*) FROM rag.chunk WHERE domain_id = '{domain}';
             RETURN true;
         END $$;
         CREATE TABLE notes (id int PRIMARY KEY, body text);
         INSERT INTO notes SELECT n, 'Note number ' || n FROM generate_series(1, 3) n;
         SELECT rag_attach('notes', content => ARRAY['body'])"
    ));
    ann.settles("SELECT rag_wait('notes')");
    ann.run(
        "ALTER TABLE notes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON notes USING (peek())",
    );
    for table in ["chunk", "section", "job", "attached_row"] {
        ann.run(&format!("SELECT count(*) FROM rag.{table}"));
    }
    assert!(admin.count("SELECT count(*) FROM peeked") > 0, "the policy was not run");
    assert_eq!(admin.count("SELECT max(found) FROM peeked"), 0);
}

/// What the function of a policy asks of its own tables is planned as in any statement, also while the extension looks rows up
/// one after the other.
#[test]
fn the_function_of_a_policy_has_the_plans_that_it_has_elsewhere() {
    let database = Database::new("plans_of_policies");
    let role = database.role("ann");
    database.connect(&role).ingest("The lamp is in the attic.", "lamp");
    database.admin().run(
        "CREATE TABLE room AS SELECT n FROM generate_series(1, 2000) n;
         CREATE TABLE guest AS TABLE room;
         ANALYZE room, guest;
         GRANT SELECT ON room, guest TO public;
         CREATE FUNCTION has_guests() RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN
             RETURN (SELECT count(*) FROM public.room r JOIN public.guest g ON g.n = r.n) > 0;
         END $$;
         SELECT rag_add_policy('rag.document', 'with_guests', command => 'select', using_expression => 'public.has_guests()')",
    );
    let mut explained = database.explained(&role);
    explained.notices();
    let found = explained.count("SELECT count(*) FROM rag_search('lamp', mode => 'keyword')");
    assert_eq!(found, 1);
    let plans: Vec<String> = explained.notices().into_iter().map(|notice| notice.message).collect();
    let of_function: Vec<&String> = plans.iter().filter(|plan| plan.contains("public.guest g")).collect();
    assert!(!of_function.is_empty(), "{plans:#?}");
    assert!(of_function.iter().all(|plan| plan.contains("Hash Join")), "{of_function:#?}");
}

/// Calls that read as the caller: searches and answers, and the tables themselves.
const READS: [&str; 5] = [
    "SELECT count(*) FROM rag_search('rope')",
    "SELECT count(*) FROM rag_search('rope', mode => 'keyword')",
    "SELECT rag_answer('rope')",
    "SELECT count(*) FROM rag.document",
    "SELECT count(*) FROM rag.chunk",
];

#[track_caller]
fn all_refuse(session: &mut Session, hint: &str) {
    for sql in READS {
        let failure = session.refuses("55000", sql);
        assert!(failure.hint.contains(hint), "{failure}");
    }
}

#[track_caller]
fn none_refuses(session: &mut Session) {
    for sql in READS {
        session.rows(sql);
    }
}

#[test]
fn reading_refuses_while_policies_and_records_are_apart() {
    let database = Database::new("policies_apart");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    ann.ingest("A rope in the harbour.", "rope");
    none_refuses(&mut ann);
    // The session is warm: what others commit counts at once, and what they roll back does not.
    for kind in ["RESTRICTIVE FOR SELECT", "PERMISSIVE FOR ALL", "RESTRICTIVE FOR UPDATE"] {
        admin.run(&format!("CREATE POLICY extra ON rag.chunk AS {kind} USING (ordinal >= 0)"));
        all_refuse(&mut ann, "rag_record_policy('rag.chunk', 'extra')");
        admin.run("SELECT rag_record_policy('rag.chunk', 'extra')");
        none_refuses(&mut ann);
        admin.run("ALTER POLICY extra ON rag.chunk USING (ordinal >= -1)");
        all_refuse(&mut ann, "rag_restore_policies()");
        assert_eq!(admin.count("SELECT rag_restore_policies()"), 1);
        none_refuses(&mut ann);
        assert!(admin.value("SELECT qual FROM pg_policies WHERE policyname = 'extra'").contains(">= 0"));
        admin.run("DROP POLICY extra ON rag.chunk");
        all_refuse(&mut ann, "rag_drop_policy('rag.chunk', 'extra')");
        assert_eq!(admin.count("SELECT rag_restore_policies()"), 1);
        none_refuses(&mut ann);
        admin.run("BEGIN; DELETE FROM rag.added_policy");
        admin.refuses("55000", READS[0]);
        admin.run("ROLLBACK");
        none_refuses(&mut ann);
        admin.run("DELETE FROM rag.added_policy");
        all_refuse(&mut ann, "rag_record_policy('rag.chunk', 'extra')");
        admin.run("SELECT rag_drop_policy('rag.chunk', 'extra')");
        none_refuses(&mut ann);
    }
    // One of the extension's own that is gone would show what it is to hide.
    let own =
        admin.rows("SELECT name, table_name FROM rag.builtin_policy WHERE NOT permissive ORDER BY 1 LIMIT 1");
    let [Some(name), Some(table)] = own[0].as_slice() else { panic!("{own:?}") };
    admin.run(&format!("BEGIN; DROP POLICY {name} ON rag.{table}"));
    assert!(admin.refuses("55000", READS[0]).message.contains(name));
    admin.run("ROLLBACK");
    none_refuses(&mut ann);
}

#[test]
fn policies_are_added_and_dropped_by_superusers_alone() {
    let database = Database::new("adding_policies");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    for sql in [
        "SELECT rag_add_policy('rag.chunk', 'p', 'true')",
        "SELECT rag_drop_policy('rag.chunk', 'p')",
        "SELECT rag_record_policy('rag.chunk', 'p')",
        "SELECT rag_restore_policies()",
        "SELECT * FROM rag.added_policy",
        "INSERT INTO rag.added_policy VALUES ('chunk', 'p', true, 'all', '{public}', 'true')",
    ] {
        ann.refuses("42501", sql);
    }
    for (code, sql) in [
        ("42809", "SELECT rag_add_policy('pg_class', 'p', 'true')"),
        ("42809", "SELECT rag_add_policy(NULL, 'p', 'true')"),
        ("22004", "SELECT rag_add_policy('rag.chunk', NULL, 'true')"),
        ("22023", "SELECT rag_add_policy('rag.chunk', 'p', 'true', command => 'truncate')"),
        ("22023", "SELECT rag_add_policy('rag.chunk', 'p', 'true', roles => '{}')"),
        ("42704", "SELECT rag_add_policy('rag.chunk', 'p', 'true', roles => '{nobody at all}')"),
        ("42703", "SELECT rag_add_policy('rag.chunk', 'p', 'no_such_column')"),
        ("42710", "SELECT rag_add_policy('rag.chunk', 'chunk_read', 'true')"),
        ("42704", "SELECT rag_drop_policy('rag.chunk', 'p')"),
        ("42704", "SELECT rag_record_policy('rag.chunk', 'p')"),
        ("22023", "SELECT rag_drop_policy('rag.chunk', 'chunk_read')"),
        ("22023", "SELECT rag_record_policy('rag.chunk', 'chunk_read')"),
    ] {
        admin.refuses(code, sql);
    }
    assert_eq!(admin.count("SELECT count(*) FROM rag.policies_apart()"), 0);
    let role = database.role_name("ann");
    admin.run(&format!(
        "SELECT rag_add_policy('rag.chunk', 'it''s \"one\"', 'ordinal >= 0', 'ordinal >= 0', 'ALL', true, '{{{role},postgres}}')"
    ));
    assert_eq!(
        admin.value(&format!(
            "SELECT (permissive, cmd, roles, qual, with_check) = ('PERMISSIVE', 'ALL', '{{{role},postgres}}'::name[], '(ordinal >= 0)', '(ordinal >= 0)')
             FROM pg_policies WHERE policyname = 'it''s \"one\"'"
        )),
        "t"
    );
    assert_eq!(admin.count("SELECT count(*) FROM rag.policies_apart()"), 0);
    admin.run("SELECT rag_drop_policy('rag.chunk', 'it''s \"one\"')");
    assert_eq!(admin.count("SELECT count(*) FROM rag.added_policy"), 0);
}

/// What is counted, tried again or cancelled are the documents that are shown.
#[test]
fn hidden_documents_are_neither_counted_nor_steered() {
    let database = Database::new("steered");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run(
        "INSERT INTO rag.document (uri, content, metadata)
         SELECT 'note ' || n, 'Note number ' || n, CASE WHEN n > 3 THEN '{\"draft\": true}'::jsonb ELSE '{}' END
         FROM generate_series(1, 5) n",
    );
    ann.settle();
    let embedded = "SELECT sum(rag.embedded_chunks(id, 'bge-small-en-v1.5')) FROM rag.domain";
    assert_eq!(ann.count(embedded), 5);
    let mut admin = database.admin();
    admin.run(
        "SELECT rag_add_policy('rag.document', 'no_drafts', command => 'select', using_expression => $$metadata->>'draft' IS NULL$$)",
    );
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 3);
    assert!(ann.holds(&format!("SELECT ({embedded}) IS NULL")));
    ann.run("SELECT rag_pause()");
    let untouched = "SELECT count(*) FROM rag.job j JOIN rag.document d ON d.id = j.document_id
                     WHERE d.metadata ? 'draft' AND j.state = 'done'";
    for (call, state) in [("rag_reextract", "queued"), ("rag_cancel", "failed"), ("rag_retry", "queued")] {
        assert_eq!(ann.count(&format!("SELECT {call}()")), 3, "{call}");
        assert_eq!(ann.count(&format!("SELECT count(*) FROM rag.job WHERE state = '{state}'")), 3, "{call}");
        assert_eq!(admin.count(untouched), 2, "{call}");
    }
    ann.run("SELECT rag_resume()");
    ann.settle();
}
