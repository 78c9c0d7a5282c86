//! What a caller can set, create or provoke must not make the extension act for them with rights that they lack.

use super::{assert_sees, own_something};
use rag_tests::{Database, literal};

#[test]
fn functions_and_operators_of_a_callers_schema_are_not_run_with_other_rights() {
    let database = Database::new("search_path");
    let ann = database.role("ann");
    let mut admin = database.admin();
    admin.run(&format!("GRANT CREATE ON DATABASE {} TO {ann}", database.name()));
    let mut session = database.connect(&ann);
    session.run("CREATE SCHEMA evil; CREATE TABLE evil.ran (who name, what text); GRANT INSERT ON evil.ran TO PUBLIC; GRANT USAGE ON SCHEMA evil TO PUBLIC");
    let spy = |name: &str, arguments: &str, result: &str, value: &str| {
        format!(
            "CREATE FUNCTION evil.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO evil.ran VALUES (current_user, '{name}'); RETURN {value}; END $$;"
        )
    };
    session.run(&spy("same_uuid", "a uuid, b uuid", "boolean", "pg_catalog.uuid_eq(a, b)"));
    session.run(&spy("same_text", "a text, b text", "boolean", "pg_catalog.texteq(a, b)"));
    session.run(&spy("now", "", "timestamptz", "pg_catalog.now()"));
    session.run(&spy("length", "a text", "integer", "pg_catalog.length(a)"));
    session.run(&spy("coalesce_count", "a bigint", "bigint", "a"));
    session.run(&spy("to_regrole", "a text", "regrole", "pg_catalog.to_regrole(a)"));
    session.run("CREATE OPERATOR evil.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.same_uuid)");
    session.run("CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same_text)");
    session.run("SET search_path = evil, pg_catalog, public, pg_temp");
    for table in ["document", "chunk", "domain", "job"] {
        session.run(&format!("CREATE TEMP TABLE {table} (id uuid)"));
    }
    own_something(&mut session, "ann");
    session.run("INSERT INTO rag.document (uri, content) VALUES ('plain', 'Also owned.')");
    session.run("UPDATE rag.document SET title = 'changed'");
    session.run("SELECT public.rag_create_collection('more')");
    session.run("SELECT count(*) FROM public.rag_search('owned')");
    session.run("SELECT public.rag_answer('What is owned?')");
    session.run(&format!("SELECT public.rag_grant('more', 'role:{ann}', 'read')"));
    session.run("DELETE FROM rag.document");
    session.run("SELECT public.rag_wait()");
    assert_eq!(
        admin.column(&format!("SELECT DISTINCT who FROM evil.ran WHERE who <> '{ann}'")),
        Vec::<String>::new()
    );
    // The trap works: it is only that nobody else walks into it.
    session.run("SELECT length('x'), now()");
    assert!(session.count("SELECT count(*) FROM ran") >= 2);
}

/// A function that hides one of the catalog's, for whoever looks into its schema first, and notes who did.
fn hidden_unnest(schema: &str) -> String {
    format!(
        "CREATE TABLE {schema}.ran (who name); GRANT INSERT ON {schema}.ran TO PUBLIC;
         CREATE FUNCTION {schema}.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO {schema}.ran VALUES (current_user); RETURN QUERY SELECT pg_catalog.unnest($1); END $$"
    )
}

#[test]
fn an_owner_expression_cannot_choose_the_search_path_of_what_comes_after_it() {
    let database = Database::new("owner_path");
    let mallory = database.role("mallory");
    database.admin().run(&format!("GRANT CREATE ON DATABASE {} TO {mallory}", database.name()));
    let mut session = database.connect(&mallory);
    session.run("CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC");
    session.run(&hidden_unnest("evil"));
    session.run("CREATE TABLE evil.notes (id text PRIMARY KEY, body text)");
    session.run("INSERT INTO evil.notes VALUES ('a', 'A note about rope.'), ('b', 'Another one.')");
    let owner = format!("(SELECT 'role:{mallory}' FROM pg_catalog.set_config('search_path', 'evil', false))");
    let options = serde_json::json!({ "owner": owner }).to_string();
    session.run(&format!(
        "SELECT rag_attach('evil.notes', content => '{{body}}', options => {})",
        literal(&options)
    ));
    for change in
        ["SELECT 1", "UPDATE evil.notes SET body = body || ' More.'", "DELETE FROM evil.notes WHERE id = 'a'"]
    {
        session.run(change);
        session.settle();
    }
    assert_eq!(
        session.column("SELECT content FROM rag_search('one', k => 5, collection => 'notes')"),
        ["Another one. More."]
    );
    assert_eq!(
        session.column(&format!("SELECT DISTINCT who FROM evil.ran WHERE who <> '{mallory}'")),
        Vec::<String>::new()
    );
    // Nor does what it sets stay in the session of whoever calls.
    assert_eq!(session.value("SHOW search_path"), "\"$user\", public");
    session.run("SET search_path = evil, pg_catalog");
    session.run("SELECT unnest(ARRAY['x'])");
    assert_eq!(session.count("SELECT count(*) FROM ran"), 1, "the trap works");
}

#[test]
fn what_a_databases_owner_sets_for_its_sessions_is_not_for_workers() {
    let database = Database::new("database_settings");
    let mut admin = database.admin();
    admin.run(&hidden_unnest("public"));
    let ann = database.role("ann");
    for setting in ["search_path = public, pg_catalog", "default_transaction_read_only = on"] {
        admin.run(&format!("ALTER DATABASE {} SET {setting}", database.name()));
    }
    let mut ann = database.connect(&ann);
    ann.run("SET default_transaction_read_only = off");
    admin.run("CREATE SCHEMA notes");
    admin.run("CREATE TABLE notes.notes (id text PRIMARY KEY, body text); INSERT INTO notes.notes VALUES ('a', 'A note.')");
    admin.run("SELECT rag_attach('notes.notes', content => '{body}')");
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('a', 'The text of ann.')");
    ann.settle();
    admin.settle();
    assert_eq!(ann.column("SELECT uri FROM rag_search('text', k => 5)"), ["a"]);
    assert_eq!(
        admin.column("SELECT content FROM rag_search('note', k => 5, collection => 'notes')"),
        ["A note."]
    );
    assert_eq!(admin.column("SELECT DISTINCT who FROM public.ran"), Vec::<String>::new());
}

#[test]
fn parallel_workers_act_for_the_same_user() {
    let database = Database::new("parallel");
    let (gateway, ann) = (database.gateway("gateway"), database.role("ann"));
    let mut app = database.connect(&gateway);
    for user in ["1", "2"] {
        app.run(&format!("SET rag_ext.user_id = '{user}'"));
        own_something(&mut app, user);
    }
    let mut session = database.connect(&ann);
    own_something(&mut session, "ann");
    let force = if database.cluster().installation().major() >= 16 {
        "debug_parallel_query"
    } else {
        "force_parallel_mode"
    };
    for session in [&mut app, &mut session] {
        session.run(&format!(
            "SET {force} = on; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0"
        ));
    }
    assert_sees(&mut session, &[&format!("role:{ann}")]);
    for user in ["1", "2"] {
        app.run(&format!("SET rag_ext.user_id = '{user}'"));
        assert_sees(&mut app, &[&format!("user:{gateway}/{user}")]);
        assert_eq!(app.count("SELECT count(*) FROM rag.chunk"), 1);
    }
    app.run("RESET rag_ext.user_id");
    assert_sees(&mut app, &[]);
    let mut admin = database.admin();
    admin.run(&format!("SET {force} = on"));
    admin.run(&format!("SET ROLE {ann}"));
    assert_sees(&mut admin, &[&format!("role:{ann}")]);
}

#[test]
fn a_leaky_condition_is_not_shown_rows_of_others() {
    let database = Database::new("leaky");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    own_something(&mut ann, "ann");
    own_something(&mut bob, "bob");
    bob.run("CREATE FUNCTION pg_temp.peek(t text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE NOTICE 'seen: %', t; RETURN true; END $$");
    bob.notices();
    for sql in [
        "SELECT count(*) FROM rag.document WHERE pg_temp.peek(content)",
        "SELECT count(*) FROM rag.chunk WHERE pg_temp.peek(content)",
        "SELECT count(*) FROM rag.job_status WHERE pg_temp.peek(uri)",
        "SELECT count(*) FROM rag.collection_status WHERE pg_temp.peek(owner)",
        "SELECT count(*) FROM rag_search('owned') s WHERE pg_temp.peek(s.content)",
        "DELETE FROM rag.document WHERE pg_temp.peek(content) AND false",
    ] {
        bob.run(sql);
    }
    let seen = bob.notices();
    assert!(seen.iter().any(|notice| notice.message.contains("bob")), "{seen:?}");
    assert!(seen.iter().all(|notice| !notice.message.contains("ann")), "{seen:?}");
}

#[test]
fn an_error_in_the_middle_leaves_nobody_with_more_rights() {
    let database = Database::new("errors");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    own_something(&mut ann, "ann");
    own_something(&mut bob, "bob");
    let owner = format!("role:{}", database.role_name("bob"));
    bob.run(
        "CREATE FUNCTION pg_temp.try(sql text) RETURNS text LANGUAGE plpgsql AS
         $$ BEGIN EXECUTE sql; RETURN 'fine'; EXCEPTION WHEN OTHERS THEN RETURN sqlstate || ' ' || current_user; END $$"
    );
    for sql in [
        "SELECT rag_ingest_bytes(decode(''255044462d312e37'', ''hex''), options => ''{\"sync\": true}'')",
        "SELECT rag_ingest(''x'', collection => ''none'')",
        "SELECT rag_grant(''default'', ''role:nobody at all'', ''read'')",
        "SELECT rag_create_collection(''default'')",
        "INSERT INTO rag.document (uri, content) VALUES (''note of bob'', ''twice'')",
        "SELECT rag_search(''x'', k => 0)",
    ] {
        let outcome = bob.value(&format!("SELECT pg_temp.try('{sql}')"));
        assert!(outcome == "fine" || outcome.ends_with(&database.role_name("bob")), "{sql}: {outcome}");
        assert_sees(&mut bob, &[&owner]);
        bob.refuses("42501", "SELECT * FROM pg_authid");
        bob.run("BEGIN; SAVEPOINT s");
        bob.error(
            &sql.replace("''", "'")
                .replace("SELECT rag_search('x', k => 0)", "SELECT 1/0")
                .replace("rag_create_collection('default')", "1/0"),
        );
        bob.run("ROLLBACK TO s");
        assert_eq!(bob.value("SELECT current_user"), database.role_name("bob"));
        assert_eq!(bob.value("SHOW search_path"), "\"$user\", public");
        assert_sees(&mut bob, &[&owner]);
        bob.run("COMMIT");
    }
}

#[test]
fn a_policy_that_an_administrator_adds_holds_from_statement_to_statement() {
    const ROWS: [&str; 3] = ["rag.chunk", "rag.document", "rag_search('owned', mode => 'keyword')"];
    let database = Database::new("added_policy");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let mut owner = database.connect(&bob);
    own_something(&mut owner, "bob");
    owner.run(&format!("SELECT rag_grant('default', 'role:{ann}', 'read')"));
    let mut session = database.connect(&ann);
    session.run(&format!("SELECT rag_accept('role:{bob}', 'default')"));
    database.admin().run(
        "SELECT rag_add_policy('rag.collection_grant', 'only_while_shown', $$current_setting('app.shown', true) = 'yes'$$)",
    );
    let mut sees = |change: &str, expected: bool| {
        session.run(change);
        for rows in ROWS {
            let found = session.count(&format!("SELECT count(*) FROM {rows}"));
            assert_eq!(found > 0, expected, "{rows} after {change}: {found}");
        }
    };
    for _ in 0..2 {
        sees("SET app.shown = 'yes'", true);
        sees("SET app.shown = 'no'", false);
    }
    // Within one transaction, too, and back again with the savepoint.
    sees("BEGIN; SET LOCAL app.shown = 'yes'", true);
    sees("SAVEPOINT s; SET LOCAL app.shown = 'no'", false);
    sees("ROLLBACK TO s", true);
    sees("COMMIT", false);
}

#[test]
fn a_name_of_pg_restore_switches_no_trigger_off_for_ordinary_roles() {
    let database = Database::new("not_restoring");
    let mut ann = database.user("ann");
    ann.run("SET application_name = 'pg_restore'; BEGIN");
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('owned', 'Owned by ann.')");
    assert_eq!(ann.value("SHOW session_replication_role"), "origin");
    ann.run("COMMIT");
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('owned', mode => 'keyword')"), 1);
}
