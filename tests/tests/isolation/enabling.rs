//! What rag_enable grants: what is named in rag.allowed, and nothing that came by itself.

use rag_tests::{Database, literal};

/// What a role may do, as the catalogs have it.
fn granted(database: &Database<'_>, role: &str) -> Vec<String> {
    database.admin().column(&format!(
        "SELECT g.privilege_type || ' ' || p.oid::regprocedure FROM pg_proc p, aclexplode(p.proacl) g
         WHERE g.grantee = {role}::regrole
         UNION ALL
         SELECT g.privilege_type || ' ' || c.oid::regclass FROM pg_class c, aclexplode(c.relacl) g
         WHERE g.grantee = {role}::regrole
         UNION ALL
         SELECT g.privilege_type || ' ' || a.attrelid::regclass || ' ('
                || string_agg(a.attname, ', ' ORDER BY a.attname) || ')'
         FROM pg_attribute a, aclexplode(a.attacl) g
         WHERE g.grantee = {role}::regrole GROUP BY g.privilege_type, a.attrelid
         UNION ALL
         SELECT g.privilege_type || ' schema ' || n.nspname FROM pg_namespace n, aclexplode(n.nspacl) g
         WHERE g.grantee = {role}::regrole
         ORDER BY 1",
        role = literal(role)
    ))
}

/// A function that is new, or not to be granted any more, is a change of this list.
#[test]
fn a_role_is_granted_what_the_list_says() {
    let database = Database::new("granted");
    let write = granted(&database, &database.role("ann"));
    let reader = database.role("reader");
    database.admin().run(&format!("SELECT rag_enable('{reader}', 'read')"));
    let read = granted(&database, &reader);
    let mut found = String::new();
    for line in &write {
        let access = if read.contains(line) { "read" } else { "write" };
        found.push_str(&format!("{access} {line}\n"));
    }
    let only_read: Vec<_> = read.iter().filter(|line| !write.contains(line)).collect();
    assert!(only_read.is_empty(), "{only_read:?}");
    let expected = include_str!("../data/granted.txt");
    let differs = |of: &str, other: &str| -> Vec<String> {
        of.lines().filter(|line| !other.lines().any(|o| o == *line)).map(str::to_owned).collect()
    };
    let (more, less) = (differs(&found, expected), differs(expected, &found));
    assert!(
        found == expected,
        "tests/tests/data/granted.txt: granted beyond it {more:#?}, not granted {less:#?}"
    );
}

#[test]
fn all_that_is_allowed_is_there() {
    let database = Database::new("allowed");
    let missing = database.admin().column(
        "SELECT a.object FROM rag.allowed a
         WHERE NOT EXISTS (SELECT FROM rag.allowed_privilege p WHERE p.object = a.object)
            OR EXISTS (SELECT FROM unnest(a.columns) c (name)
                       WHERE c.name <> '*' AND NOT EXISTS (
                           SELECT FROM pg_attribute t
                           WHERE t.attrelid = to_regclass('rag.' || a.object) AND t.attname = c.name))",
    );
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn who_may_read_searches_and_asks_and_writes_nothing() {
    let database = Database::new("readers");
    let mut bob = database.user("bob");
    bob.run("SELECT rag_create_collection('open')");
    bob.run("SELECT rag_ingest('The harbour of the town is deep.', uri => 'a', collection => 'open')");
    bob.settle();
    let reader = database.role("reader");
    let mut admin = database.admin();
    bob.run(&format!("SELECT rag_grant('open', 'role:{reader}', 'read')"));
    // From write to read, and not only the other way.
    admin.run(&format!("SELECT rag_enable('{reader}', 'read')"));
    let mut session = database.connect(&reader);
    session.run(&format!("SELECT rag_accept('role:{}', 'open')", database.role_name("bob")));
    for mode in ["keyword", "vector", "hybrid"] {
        assert_eq!(
            session.count(&format!("SELECT count(*) FROM rag_search('deep harbour', mode => '{mode}')")),
            1
        );
    }
    assert!(session.value("SELECT rag_answer_text('How deep is the harbour?')").contains("deep"));
    assert_eq!(session.count("SELECT count(*) FROM rag.document"), 1);
    assert!(session.holds("SELECT rag_wait()") && session.value("SELECT rag_status()").contains("documents"));
    for view in
        ["job_status", "failed_job", "collection_status", "engine_status", "model", "attachment_status"]
    {
        session.run(&format!("SELECT * FROM rag.{view}"));
    }
    for sql in [
        "INSERT INTO rag.document (content) VALUES ('x')",
        "UPDATE rag.document SET title = 'x'",
        "DELETE FROM rag.document",
        "INSERT INTO rag.document_in (content) VALUES ('x')",
        "INSERT INTO rag.metadata_rule (name, key, pattern) VALUES ('x', 'x', 'x')",
        "DELETE FROM rag.collection",
        "SELECT rag_ingest('x')",
        "SELECT rag_create_collection('x')",
        "SELECT rag_alter_collection('open', model => 'x')",
        "SELECT rag_set_acronym('open', 'OB', 'owned by')",
        "SELECT rag_drop_acronym('open', 'OB')",
        "SELECT rag_verify()",
    ] {
        session.refuses("42501", sql);
    }
    session.run("DELETE FROM rag.accepted_collection");
    assert_eq!(session.count("SELECT count(*) FROM rag_search('deep harbour')"), 0);
    admin.run(&format!("SELECT rag_enable('{reader}')"));
    session.run("SELECT rag_ingest('x')");
    admin.run(&format!("SELECT rag_disable('{reader}')"));
    assert_eq!(granted(&database, &reader), Vec::<String>::new());
    admin.refuses("22023", &format!("SELECT rag_enable('{reader}', 'all')"));
    admin.refuses("22004", &format!("SELECT rag_enable('{reader}', NULL)"));
}

#[test]
fn what_an_upgrade_adds_is_nobodys_until_it_is_allowed() {
    let database = Database::new("upgraded");
    let (ann, reader) = (database.role("ann"), database.role("reader"));
    let mut admin = database.admin();
    admin.run(&format!("SELECT rag_enable('{reader}', 'read')"));
    let before = [&ann, &reader].map(|role| granted(&database, role));
    // As a step of an upgrade, after which rights are renewed.
    admin.run(
        "CREATE FUNCTION rag.added() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER EXTENSION rag_ext ADD FUNCTION rag.added()",
    );
    let mut session = database.connect(&ann);
    session.refuses("42501", "SELECT rag.added()");
    assert_eq!([&ann, &reader].map(|role| granted(&database, role)), before);
    admin.run("INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'added'); SELECT rag.renew_rights()");
    assert_eq!(session.value("SELECT rag.added()"), "1");
    database.connect(&reader).refuses("42501", "SELECT rag.added()");
    // Who was let into the schema by hand is not enabled by that.
    let outsider = database.outsider("outsider", "");
    admin.run(&format!("GRANT USAGE ON SCHEMA rag TO {outsider}; SELECT rag.renew_rights()"));
    assert_eq!(granted(&database, &outsider), ["USAGE schema rag"]);
    assert_eq!(granted(&database, &reader), before[1]);
    admin.run("ALTER EXTENSION rag_ext DROP FUNCTION rag.added(); DROP FUNCTION rag.added()");
}

/// A view keeps the functions that were found when it was made, and a superuser reads this one.
#[test]
fn functions_of_others_that_were_there_first_are_not_taken() {
    let database = Database::new("there_first");
    let name = format!("{}_second", database.name());
    let mut postgres = database.cluster().connect("postgres", "postgres");
    postgres.run(&format!("CREATE DATABASE {name}"));
    let mut admin = database.cluster().connect("postgres", &name);
    admin.run(
        "CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE plpgsql
         AS $$ BEGIN RAISE EXCEPTION 'somebody else''s code'; END $$;
         CREATE EXTENSION rag_ext CASCADE",
    );
    admin.run(&format!("SELECT rag_enable('{}')", database.role("ann")));
    let users = "SELECT count(*) FROM pg_depend WHERE refobjid = 'public.quote_ident(name)'::regprocedure";
    assert_eq!(admin.count(users), 0);
    drop(admin);
    postgres.run(&format!("DROP DATABASE {name} WITH (FORCE)"));
}
