//! Gateways: one database role that speaks for many application users.

use super::{VECTORS, assert_sees, own_something};
use rag_tests::Database;

#[test]
fn the_same_user_id_behind_two_gateways_is_two_users() {
    let database = Database::new("two_gateways");
    let (one, two) = (database.gateway("one"), database.gateway("two"));
    for gateway in [&one, &two] {
        let mut session = database.connect(gateway);
        session.run("SET rag_ext.user_id = '42'");
        own_something(&mut session, gateway);
    }
    for gateway in [&one, &two] {
        let mut session = database.connect(gateway);
        session.run("SET rag_ext.user_id = '42'");
        assert_sees(&mut session, &[&format!("user:{gateway}/42")]);
        session.run("SET rag_ext.user_id = '43'");
        assert_sees(&mut session, &[]);
    }
}

#[test]
fn without_a_user_a_gateway_sees_nothing_and_writes_nothing() {
    let database = Database::new("no_user");
    let gateway = database.gateway("gateway");
    let mut session = database.connect(&gateway);
    session.run("SET rag_ext.user_id = '42'");
    own_something(&mut session, "42");
    let owner = format!("user:{gateway}/42");
    assert_sees(&mut session, &[&owner]);
    for unset in
        ["SET rag_ext.user_id = ''", "RESET rag_ext.user_id", "SET rag_ext.user_id TO DEFAULT", "DISCARD ALL"]
    {
        session.run("SET rag_ext.user_id = '42'");
        session.run(unset);
        assert_sees(&mut session, &[]);
        for table in [
            "rag.chunk",
            "rag.section",
            "rag.segment",
            "rag.job",
            "rag.domain",
            "rag.collection",
            "rag.deletion_count",
            "rag.metadata_value",
            "rag.mined_acronym",
            "rag.acronym",
            VECTORS,
        ] {
            assert_eq!(session.count(&format!("SELECT count(*) FROM {table}")), 0, "{unset}: {table}");
        }
        for sql in [
            "INSERT INTO rag.document (content) VALUES ('x')",
            "SELECT rag_ingest('x')",
            "SELECT rag_create_collection('x')",
            "SELECT rag.current_owner()",
        ] {
            session.refuses("42501", sql);
        }
        session.run("UPDATE rag.document SET title = 'x'");
        session.run("DELETE FROM rag.document");
    }
    session.run("SET rag_ext.user_id = '42'");
    assert_sees(&mut session, &[&owner]);
    assert_eq!(session.count("SELECT count(*) FROM rag.document WHERE title IS NULL"), 1);
}

#[test]
fn set_local_ends_with_its_transaction() {
    let database = Database::new("set_local");
    let gateway = database.gateway("gateway");
    let mut session = database.connect(&gateway);
    for end in ["COMMIT", "ROLLBACK"] {
        session.run("BEGIN; SET LOCAL rag_ext.user_id = '7'");
        own_something(&mut session, "7");
        assert_sees(&mut session, &[&format!("user:{gateway}/7")]);
        session.run(end);
        assert_sees(&mut session, &[]);
    }
    session.run("SET rag_ext.user_id = '8'; BEGIN; SET LOCAL rag_ext.user_id = '7'");
    assert_sees(&mut session, &[&format!("user:{gateway}/7")]);
    session.run("SAVEPOINT s; SET LOCAL rag_ext.user_id = '9'");
    assert_sees(&mut session, &[]);
    session.run("ROLLBACK TO s");
    assert_sees(&mut session, &[&format!("user:{gateway}/7")]);
    session.run("COMMIT");
    assert_sees(&mut session, &[]);
}

#[test]
fn a_gateway_does_not_act_as_its_role_nor_the_role_as_a_gateway_once_unregistered() {
    let database = Database::new("not_role");
    let role = database.role("app");
    let mut session = database.connect(&role);
    own_something(&mut session, "the role itself");
    let mut admin = database.admin();
    admin.run(&format!("SELECT rag_register_gateway('{role}')"));
    session.run("SET rag_ext.user_id = '1'");
    assert_sees(&mut session, &[]);
    own_something(&mut session, "user 1");
    assert_sees(&mut session, &[&format!("user:{role}/1")]);
    admin.run(&format!("SELECT rag_unregister_gateway('{role}')"));
    session.refuses("42501", "SELECT * FROM rag_search('owned')");
    session.run("RESET rag_ext.user_id");
    assert_sees(&mut session, &[&format!("role:{role}")]);
    session.refuses("42501", &format!("SELECT rag_register_gateway('{role}')"));
    session.refuses("42501", &format!("SELECT rag_unregister_gateway('{role}')"));
    admin.refuses("42704", "SELECT rag_register_gateway('nobody at all')");
}

#[test]
fn a_member_of_a_gateway_is_himself_and_a_gateway_reached_by_set_role_is_the_gateway() {
    let database = Database::new("member");
    let (gateway, member) = (database.gateway("gateway"), database.role("member"));
    database.admin().run(&format!("GRANT {gateway} TO {member}"));
    let mut app = database.connect(&gateway);
    app.run("SET rag_ext.user_id = '5'");
    own_something(&mut app, "5");
    let mut session = database.connect(&member);
    own_something(&mut session, "member");
    assert_sees(&mut session, &[&format!("role:{member}")]);
    session.run("SET rag_ext.user_id = '5'");
    session.refuses("42501", "SELECT * FROM rag_search('owned')");
    session.run(&format!("SET ROLE {gateway}"));
    assert_sees(&mut session, &[&format!("user:{gateway}/5")]);
}

/// What a role that is no gateway can neither read nor write by while it names a user.
const REFUSED: [&str; 12] = [
    "SELECT * FROM rag.document",
    "SELECT * FROM rag.chunk",
    "UPDATE rag.document SET title = 'x'",
    "DELETE FROM rag.document",
    "INSERT INTO rag.document (content) VALUES ('Owned by whom?')",
    "SELECT rag_ingest('Owned by whom?')",
    "SELECT * FROM rag_search('owned')",
    "SELECT rag_answer('Who owns this?')",
    "SELECT rag_create_collection('whose')",
    "SELECT rag_wait()",
    "SELECT rag.principals()",
    "SELECT rag.current_owner()",
];

#[test]
fn a_role_that_is_no_gateway_is_refused_while_it_names_a_user() {
    let database = Database::new("forgotten");
    let (gateway, ann) = (database.gateway("gateway"), database.role("ann"));
    let mut admin = database.admin();
    admin.run(&format!("GRANT {ann} TO {gateway}"));
    let mut session = database.connect(&ann);
    let id = own_something(&mut session, "ann");
    session.run("SET rag_ext.user_id = '7'");
    for sql in REFUSED {
        let refused = session.refuses("42501", sql);
        assert!(refused.hint.contains(&format!("rag_register_gateway('{ann}')")), "{sql}: {refused}");
    }
    session.refuses(
        "42501",
        &format!("SELECT * FROM rag_rerank_chunks('owned', ARRAY(SELECT id FROM rag.chunk WHERE document_id = '{id}'))"),
    );
    // Nothing is shown either where a policy had nothing to decide.
    let relations = admin.column(
        "SELECT relname FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p', 'v')
           AND relname NOT IN ('engine_status', 'model', 'metadata_rule')",
    );
    for relation in relations {
        match session.try_rows(&format!("SELECT * FROM rag.{relation}")) {
            Ok(rows) => assert!(rows.is_empty(), "rag.{relation}: {rows:?}"),
            Err(failure) => assert_eq!(failure.code, "42501", "rag.{relation}: {failure}"),
        }
    }
    let status = session.value("SELECT rag_status()");
    assert!(status.lines().any(|line| line.starts_with("PROBLEM") && line.contains("rag_register_gateway")));
    session.run("RESET rag_ext.user_id");
    assert_sees(&mut session, &[&format!("role:{ann}")]);

    // A superuser is no exception, nor is a role that a gateway takes.
    admin.run("SET rag_ext.user_id = '7'");
    admin.refuses("42501", "SELECT rag_ingest('Owned by whom?')");
    admin.refuses("42501", "SELECT * FROM rag_search('owned')");
    admin.run("RESET rag_ext.user_id");
    let mut app = database.connect(&gateway);
    app.run("SET rag_ext.user_id = '7'");
    assert_sees(&mut app, &[]);
    app.run(&format!("SET ROLE {ann}"));
    app.refuses("42501", "SELECT * FROM rag_search('owned')");

    // Workers speak for nobody, whatever is set for the database.
    admin.run(&format!("ALTER DATABASE {} SET rag_ext.user_id = '9'", database.name()));
    let mut app = database.connect(&gateway);
    app.run("INSERT INTO rag.document (content) VALUES ('This is owned by user nine.')");
    app.settle();
    assert_sees(&mut app, &[&format!("user:{gateway}/9")]);
}

#[test]
fn the_status_names_gateways_to_those_who_monitor() {
    let database = Database::new("named_gateways");
    let (one, two) = (database.gateway("one"), database.role("two"));
    let mut admin = database.admin();
    let line = |status: String| status.lines().find(|line| line.contains("gateways:")).map(str::to_owned);
    admin.run(&format!("SELECT rag_register_gateway('{two}', local_only => true)"));
    let expected = format!("ok       gateways: {one}, {two} (SET LOCAL only)");
    assert_eq!(line(admin.value("SELECT rag_status()")), Some(expected));
    let mut ann = database.user("ann");
    assert_eq!(line(ann.value("SELECT rag_status()")), None);
    admin.run(&format!("GRANT pg_monitor TO {}", database.role_name("ann")));
    assert!(line(ann.value("SELECT rag_status()")).is_some());
    admin.run(&format!("SELECT rag_unregister_gateway('{one}'), rag_unregister_gateway('{two}')"));
    assert_eq!(line(admin.value("SELECT rag_status()")), Some("ok       gateways: none".to_owned()));
}

#[test]
fn a_gateway_may_be_held_to_set_local() {
    let database = Database::new("local_only");
    let role = database.role("app");
    let mut admin = database.admin();
    admin.refuses("22004", &format!("SELECT rag_register_gateway('{role}', NULL)"));
    let register = format!("SELECT rag_register_gateway('{role}', local_only => true)");
    admin.run(&register);
    let mut app = database.connect(&role);
    let owner = |user: &str| format!("user:{role}/{user}");
    for set in ["SET LOCAL rag_ext.user_id = '7'", "SELECT set_config('rag_ext.user_id', '8', true)"] {
        app.run(&format!("BEGIN; {set}"));
        let user = app.value("SHOW rag_ext.user_id");
        own_something(&mut app, &user);
        assert_sees(&mut app, &[&owner(&user)]);
        app.run("COMMIT");
    }
    // What would be left to the next client is refused where it is set, or else at the commit.
    for set in [
        "SET rag_ext.user_id = '7'",
        "SELECT set_config('rag_ext.user_id', '7', false)",
        "BEGIN; SET rag_ext.user_id = '7'; COMMIT",
        "BEGIN; SET rag_ext.user_id = '7'; SET LOCAL rag_ext.user_id = '8'; COMMIT",
        "BEGIN; SAVEPOINT s; SET rag_ext.user_id = '7'; RELEASE s; COMMIT",
        "BEGIN; SET rag_ext.user_id = '7'; SELECT * FROM rag_search('owned')",
        "BEGIN; SET rag_ext.user_id = '7'; INSERT INTO rag.document (content) VALUES ('x')",
    ] {
        let refused = app.refuses("42501", set);
        assert!(refused.hint.contains("SET LOCAL"), "{set}: {refused}");
        app.run("ROLLBACK");
        assert_eq!(app.value("SHOW rag_ext.user_id"), "", "{set}");
    }
    app.run("BEGIN; SET LOCAL rag_ext.user_id = '7'; SAVEPOINT s; SET LOCAL rag_ext.user_id = '8'");
    assert_sees(&mut app, &[&owner("8")]);
    app.run("ROLLBACK TO s");
    assert_sees(&mut app, &[&owner("7")]);
    app.run("SET LOCAL rag_ext.user_id = '8'; RELEASE s; COMMIT");
    assert_eq!(app.value("SHOW rag_ext.user_id"), "");

    // Parallel workers are told the value, and take it for what it is.
    let parallel = if database.cluster().installation().major() < 16 {
        "force_parallel_mode"
    } else {
        "debug_parallel_query"
    };
    app.run(&format!(
        "BEGIN; SET LOCAL rag_ext.user_id = '7'; SET LOCAL {parallel} = on; SET LOCAL parallel_setup_cost = 0"
    ));
    assert_eq!(app.column("SELECT DISTINCT owner FROM rag.document"), [owner("7")]);
    assert_eq!(app.value("SELECT rag.current_owner()"), owner("7"));
    app.run("COMMIT");

    // A function's own setting ends with it.
    admin.run(&format!(
        "CREATE FUNCTION of_seven() RETURNS SETOF text LANGUAGE sql SET rag_ext.user_id = '7' AS $$ SELECT owner FROM rag.document $$;
         GRANT EXECUTE ON FUNCTION of_seven() TO {role}"
    ));
    assert_eq!(app.column("SELECT of_seven()"), [owner("7")]);

    // A value that is there already, of an earlier registration or of the configuration, counts no more.
    admin.run(&format!("SELECT rag_register_gateway('{role}')"));
    app.run("SET rag_ext.user_id = '7'");
    assert_sees(&mut app, &[&owner("7")]);
    admin.run(&register);
    app.refuses("42501", "SELECT * FROM rag.document");
    app.run("RESET rag_ext.user_id");
    admin.run(&format!("ALTER ROLE {role} SET rag_ext.user_id = '7'"));
    let mut app = database.connect(&role);
    app.refuses("42501", "SELECT * FROM rag_search('owned')");
    app.run("BEGIN; SET LOCAL rag_ext.user_id = '8'");
    assert_sees(&mut app, &[&owner("8")]);
    app.run("COMMIT");
    app.run(&format!("BEGIN; SET LOCAL {parallel} = on"));
    app.refuses("42501", "SELECT count(*) FROM rag.document");
}

#[test]
fn a_user_of_a_gateway_that_was_made_anew_is_another() {
    let database = Database::new("gateway_anew");
    let mut admin = database.admin();
    let write = |gateway: &str| {
        let mut app = database.connect(gateway);
        app.run("SET rag_ext.user_id = '7'");
        app.run("INSERT INTO rag.document (uri, content) VALUES ('page', 'Owned by user 7.')");
        app.settle();
        assert_eq!(
            app.column("SELECT owner || ' ' || uri FROM rag.document"),
            [format!("user:{gateway}/7 page")]
        );
        assert_eq!(app.count("SELECT count(*) FROM rag_search('owned', mode => 'keyword')"), 1);
    };
    let gateway = database.gateway("gateway");
    write(&gateway);
    admin.run(&format!("SELECT rag_unregister_gateway('{gateway}'), rag_disable('{gateway}')"));
    admin.run(&format!("DROP OWNED BY {gateway}; DROP ROLE {gateway}"));
    assert_eq!(database.gateway("gateway"), gateway);
    write(&gateway);
    let owners = admin.column("SELECT split_part(owner, '#', 2) <> '' FROM rag.document ORDER BY 1");
    assert_eq!(owners, ["f", "t"], "the former user's is set apart");
}

/// Texts would be cut within their characters in one, and not be read again.
#[test]
fn a_database_of_another_encoding_is_refused() {
    let database = Database::new("encodings");
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = format!("{}_{}", database.name(), encoding.to_lowercase());
        database
            .admin()
            .run(&format!("CREATE DATABASE {name} ENCODING {encoding} LOCALE 'C' TEMPLATE template0"));
        let mut admin = database.cluster().connect("postgres", &name);
        let refusal = admin.refuses("0A000", "CREATE EXTENSION rag_ext CASCADE");
        assert!(refusal.message.contains(encoding) && !refusal.hint.is_empty(), "{refusal:?}");
        assert_eq!(
            admin.count("SELECT count(*) FROM pg_extension WHERE extname IN ('rag_ext', 'vector')"),
            0
        );
        drop(admin);
        database.admin().run(&format!("DROP DATABASE {name} WITH (FORCE)"));
    }
}

/// As one may be that has the extension since a version which did not refuse it.
#[test]
fn ids_that_another_encoding_would_confuse_are_refused() {
    let database = Database::new("encoded_ids");
    let gateway = database.gateway("gateway");
    let name = format!("{}_latin", database.name());
    database.admin().run(&format!("CREATE DATABASE {name} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0"));
    let mut admin = database.cluster().connect("postgres", &name);
    admin.run(&format!(
        "CREATE EXTENSION rag_ext VERSION '0.1.0' CASCADE; ALTER EXTENSION rag_ext UPDATE;
         SELECT rag_enable('{gateway}'), rag_register_gateway('{gateway}')"
    ));
    let mut app = database.cluster().connect(&gateway, &name);
    for id in ["\u{e9}", "\u{fc}"] {
        app.run(&format!("SET rag_ext.user_id = '{id}'"));
        app.refuses("22021", "SELECT rag.current_owner()");
        app.refuses("22021", "INSERT INTO rag.document (content) VALUES ('Owned by whom?')");
    }
    app.run("SET rag_ext.user_id = 'e'");
    assert_eq!(app.value("SELECT rag.current_owner()"), format!("user:{gateway}/e"));
    drop((admin, app));
    database.admin().run(&format!("DROP DATABASE {name} WITH (FORCE)"));
}

#[test]
fn odd_user_ids_stay_apart() {
    let database = Database::new("odd_ids");
    let gateway = database.gateway("gateway");
    let mut session = database.connect(&gateway);
    let ids = ["a", "A", "a/b", "a%", "_", "ä", "1", "01", " 1", "role:postgres", "public"];
    for id in ids {
        session.run(&format!("SET rag_ext.user_id = '{id}'"));
        own_something(&mut session, id);
    }
    for id in ids {
        session.run(&format!("SET rag_ext.user_id = '{id}'"));
        assert_eq!(session.count("SELECT count(*) FROM rag.document"), 1, "{id:?}");
        assert_eq!(session.value("SELECT uri FROM rag_search('owned', k => 100)"), format!("note of {id}"));
    }
}
