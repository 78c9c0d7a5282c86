//! Roles, memberships, functions and views in between, and roles that are no longer who they were.

use super::{assert_sees, own_something, owners_found};
use rag_tests::{Database, Session};

/// Runs all eight executions through one prepared statement, so that generic plans come into play.
fn prepared_owners(session: &mut Session) -> Vec<String> {
    session.column("EXECUTE owners")
}

const PREPARE: &str =
    "PREPARE owners AS SELECT DISTINCT d.owner FROM rag_search('owned', k => 1000, mode => 'keyword') s
                       JOIN rag.document d ON d.id = s.document_id ORDER BY 1";

#[test]
fn membership_counts_only_where_privileges_are_inherited() {
    let database = Database::new("membership");
    let mut admin = database.admin();
    let team = database.role("team");
    let (inheriting, distant) = (database.role("inheriting"), database.role("distant"));
    admin.run(&format!("GRANT {team} TO {inheriting}"));
    if database.cluster().installation().major() >= 16 {
        admin.run(&format!("GRANT {team} TO {distant} WITH INHERIT FALSE"));
    } else {
        admin.run(&format!("ALTER ROLE {distant} NOINHERIT; GRANT {team} TO {distant}"));
    }
    own_something(&mut database.connect(&team), "team");
    own_something(&mut database.connect(&inheriting), "inheriting");
    own_something(&mut database.connect(&distant), "distant");
    let [team, inheriting, distant] = [team, inheriting, distant].map(|role| format!("role:{role}"));

    assert_sees(&mut database.connect(&team[5..]), &[&team]);
    assert_sees(&mut database.connect(&inheriting[5..]), &[&team, &inheriting]);
    let mut session = database.connect(&distant[5..]);
    assert_sees(&mut session, &[&distant]);
    session.run(&format!("SET ROLE {}", &team[5..]));
    assert_sees(&mut session, &[&team]);
    session.run("RESET ROLE");
    assert_sees(&mut session, &[&distant]);

    admin.run(&format!("REVOKE {} FROM {}", &team[5..], &inheriting[5..]));
    assert_sees(&mut database.connect(&inheriting[5..]), &[&inheriting]);
}

#[test]
fn a_prepared_statement_follows_the_role_of_each_execution() {
    let database = Database::new("generic");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    own_something(&mut database.connect(&ann), "ann");
    own_something(&mut database.connect(&bob), "bob");
    let gateway = database.gateway("gateway");
    let mut admin = database.admin();
    for mode in ["force_generic_plan", "force_custom_plan", "auto"] {
        admin.run(&format!("SET plan_cache_mode = {mode}; DEALLOCATE ALL"));
        admin.run(PREPARE);
        admin.run("PREPARE shown AS SELECT DISTINCT owner FROM rag.document ORDER BY 1");
        for _ in 0..4 {
            for role in [&ann, &bob] {
                admin.run(&format!("SET ROLE {role}"));
                assert_eq!(prepared_owners(&mut admin), [format!("role:{role}")], "{mode}");
                assert_eq!(admin.column("EXECUTE shown"), [format!("role:{role}")], "{mode}");
                admin.run("RESET ROLE");
            }
        }
    }
    let mut app = database.connect(&gateway);
    for user in ["1", "2"] {
        app.run(&format!("SET rag_ext.user_id = '{user}'"));
        own_something(&mut app, user);
    }
    app.run("SET plan_cache_mode = force_generic_plan");
    app.run(PREPARE);
    app.run("PREPARE shown AS SELECT DISTINCT owner FROM rag.document ORDER BY 1");
    for user in ["1", "2", "", "2", "1"] {
        app.run(&format!("SET rag_ext.user_id = '{user}'"));
        let expected: Vec<String> =
            if user.is_empty() { vec![] } else { vec![format!("user:{gateway}/{user}")] };
        assert_eq!(prepared_owners(&mut app), expected);
        assert_eq!(app.column("EXECUTE shown"), expected);
    }
}

#[test]
fn a_definer_function_acts_as_its_owner() {
    let database = Database::new("definer");
    let (ann, bob, gateway) = (database.role("ann"), database.role("bob"), database.gateway("gateway"));
    own_something(&mut database.connect(&ann), "ann");
    own_something(&mut database.connect(&bob), "bob");
    let mut app = database.connect(&gateway);
    app.run("SET rag_ext.user_id = '42'");
    own_something(&mut app, "42");

    let mut admin = database.admin();
    let body = "RETURNS SETOF text LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS
        $$ SELECT DISTINCT d.owner FROM rag_search('owned', k => 1000, mode => 'keyword') s JOIN rag.document d ON d.id = s.document_id ORDER BY 1 $$";
    let shown = "RETURNS SETOF text LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS
        $$ SELECT DISTINCT owner FROM rag.document ORDER BY 1 $$";
    for (owner, name) in [(&ann, "as_ann"), (&gateway, "as_gateway")] {
        admin.run(&format!(
            "CREATE FUNCTION {name}() {body}; ALTER FUNCTION {name}() OWNER TO {owner}; GRANT EXECUTE ON FUNCTION {name}() TO PUBLIC;
             CREATE FUNCTION {name}_table() {shown}; ALTER FUNCTION {name}_table() OWNER TO {owner}"
        ));
    }
    let ann_owner = format!("role:{ann}");
    let mut session = database.connect(&bob);
    assert_eq!(session.column("SELECT as_ann()"), [ann_owner.as_str()]);
    assert_eq!(session.column("SELECT as_ann_table()"), [ann_owner.as_str()]);
    assert_eq!(app.column("SELECT as_ann()"), [ann_owner.as_str()], "owned by another role");
    // Whoever calls it sets rag_ext.user_id as they like: behind a definer function it must not count.
    session.run("SET rag_ext.user_id = '42'");
    let other = database.gateway("other");
    let mut other = database.connect(&other);
    other.run("SET rag_ext.user_id = '42'");
    for sql in ["SELECT as_gateway()", "SELECT as_gateway_table()"] {
        assert_eq!(session.column(sql), Vec::<String>::new(), "{sql}: a definer function is in between");
        assert_eq!(other.column(sql), Vec::<String>::new(), "{sql}: called by another gateway");
    }
    session.refuses("42501", "SELECT * FROM rag_search('owned')");
    assert_eq!(owners_found(&mut app), [format!("user:{gateway}/42")]);
}

#[test]
fn a_view_shows_its_owners_rows_unless_it_is_an_invokers() {
    let database = Database::new("view");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    own_something(&mut database.connect(&ann), "ann");
    own_something(&mut database.connect(&bob), "bob");
    let mut admin = database.admin();
    for (name, invoker) in [("definer_view", false), ("invoker_view", true)] {
        admin.run(&format!(
            "CREATE VIEW {name} WITH (security_invoker = {invoker}) AS SELECT DISTINCT owner FROM rag.document;
             ALTER VIEW {name} OWNER TO {ann}; GRANT SELECT ON {name} TO {bob}"
        ));
    }
    let mut session = database.connect(&bob);
    assert_eq!(session.column("SELECT owner FROM invoker_view"), [format!("role:{bob}")]);
    // RLS of a view owner's table applies the owner's policies, but current_user stays the caller: the
    // caller's principals decide, so nothing of the owner's leaks.
    let through_definer = session.column("SELECT owner FROM definer_view");
    assert!(through_definer.iter().all(|owner| *owner == format!("role:{bob}")), "{through_definer:?}");
    let insecure = admin.column(
        "SELECT c.oid::regclass FROM pg_class c WHERE relnamespace = 'rag'::regnamespace AND relkind = 'v'
           AND NOT coalesce(reloptions @> '{security_invoker=true}', false)",
    );
    assert!(insecure.is_empty(), "views with their owner's rights: {insecure:?}");
}

#[test]
fn row_security_off_is_an_error_and_not_a_way_around() {
    let database = Database::new("row_security");
    let mut ann = database.user("ann");
    own_something(&mut ann, "ann");
    ann.run("SET row_security = off");
    for table in [
        "document",
        "chunk",
        "section",
        "segment",
        "job",
        "metadata_value",
        "mined_acronym",
        "entity_mention",
        "document_link",
        "graph_job",
        "domain",
        "collection",
    ] {
        ann.refuses("42501", &format!("SELECT * FROM rag.{table}"));
    }
    for sql in ["SELECT * FROM rag_search('owned')", "SELECT * FROM rag_search('owned', mode => 'vector')"] {
        match ann.try_rows(sql) {
            Ok(rows) => assert_eq!(rows.len(), 1, "no more than with row security"),
            Err(failure) => assert_eq!(failure.code, "42501", "{failure}"),
        }
    }
}

#[test]
fn a_role_created_again_inherits_nothing() {
    let database = Database::new("recreated");
    let mut admin = database.admin();
    let ann = database.role("ann");
    own_something(&mut database.connect(&ann), "the first ann");
    admin.run(&format!(
        "SELECT rag_disable('{ann}'); DROP OWNED BY {ann}; DROP ROLE {ann}; CREATE ROLE {ann} LOGIN"
    ));
    admin.run("SELECT rag_enable('public')");
    let mut second = database.connect(&ann);
    let mut nobody = Vec::<&str>::new();
    assert_sees(&mut second, &nobody);
    admin.run(&format!("SELECT rag_enable('{ann}')"));
    assert_sees(&mut second, &nobody);
    own_something(&mut second, "the second ann");
    let owner = format!("role:{ann}");
    nobody.push(&owner);
    assert_sees(&mut second, &nobody);
    assert_eq!(second.count("SELECT count(*) FROM rag.document"), 1);
    assert_eq!(
        admin.count("SELECT count(*) FROM rag.document"),
        2,
        "the first one's documents are still there"
    );
    // Under a name of their own, by which a superuser deletes them.
    let apart = admin.value("SELECT owner || '/' || name FROM rag.collection WHERE owner LIKE '%#%'");
    second.refuses("42704", &format!("SELECT rag_drop_collection('{apart}')"));
    admin.run(&format!("SELECT rag_drop_collection('{apart}')"));
    assert_eq!(admin.column("SELECT owner FROM rag.collection"), [owner]);
    admin.run("SELECT rag_disable('public')");
}

#[test]
fn a_role_created_again_has_its_own_uris_also_where_a_group_enables_it() {
    let database = Database::new("recreated_member");
    let mut admin = database.admin();
    let (group, ann) = (database.role("group"), database.role("ann"));
    let write = |text: &str| {
        let mut session = database.connect(&ann);
        session.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('page', '{text}')"));
        session.column("SELECT content FROM rag.document")
    };
    assert_eq!(write("Of the first."), ["Of the first."]);
    admin.run(&format!(
        "SELECT rag_disable('{ann}'); DROP OWNED BY {ann}; DROP ROLE {ann}; CREATE ROLE {ann} LOGIN IN ROLE {group}"
    ));
    assert_eq!(write("Of the second."), ["Of the second."]);
    assert_eq!(admin.count("SELECT count(DISTINCT owner) FROM rag.document"), 2);
}

#[test]
fn a_renamed_role_keeps_its_documents() {
    let database = Database::new("renamed");
    let mut admin = database.admin();
    let ann = database.role("ann");
    own_something(&mut database.connect(&ann), "ann");
    let (anna, bob) = (database.role_name("anna"), database.role("bob"));
    // Somebody else keeps documents of their own in a collection of hers.
    let give = format!("SELECT rag_create_collection('inbox'), rag_grant('inbox', 'role:{bob}', 'write')");
    database.connect(&ann).run(&give);
    let mut writer = database.connect(&bob);
    let write = |session: &mut Session, owner: &str, text: &str| {
        session.run(&format!(
            "INSERT INTO rag.document (collection, uri, content) VALUES ('role:{owner}/inbox', 'letter', '{text}')
             ON CONFLICT (collection, owner, uri) DO UPDATE SET content = excluded.content"
        ));
    };
    write(&mut writer, &ann, "A letter owned by bob.");
    admin.run(&format!("ALTER ROLE {ann} RENAME TO {anna}; SELECT rag_enable('{anna}')"));
    let owner = format!("role:{anna}");
    assert_sees(&mut database.connect(&anna), &[&owner]);
    write(&mut writer, &anna, "A longer letter owned by bob.");
    let letters = "SELECT collection || ': ' || content FROM rag.document ORDER BY 1";
    assert_eq!(writer.column(letters), [format!("role:{anna}/inbox: A longer letter owned by bob.")]);

    let newcomer = database.role("ann");
    assert_eq!(newcomer, ann);
    assert_sees(&mut database.connect(&newcomer), &[]);
    database.connect(&newcomer).run(&give);
    write(&mut writer, &ann, "A letter to another.");
    assert_eq!(writer.count("SELECT count(*) FROM rag.document"), 2);

    // The names are exchanged: what is set apart makes room for what gets the name.
    admin.run(&format!(
        "ALTER ROLE {ann} RENAME TO {ann}_was; ALTER ROLE {anna} RENAME TO {ann}; SELECT rag_enable('{ann}')"
    ));
    let owner = format!("role:{ann}");
    assert_sees(&mut database.connect(&ann), &[&owner]);
    let collections =
        writer.column("SELECT split_part(collection, '#', 1) FROM rag.document ORDER BY collection");
    assert_eq!(collections, [format!("role:{ann}"), format!("role:{ann}/inbox")]);
    admin.run(&format!("SELECT rag_enable('{ann}_was')"));
    let collections = writer.column("SELECT collection FROM rag.document ORDER BY 1");
    assert_eq!(collections, [format!("role:{ann}/inbox"), format!("role:{ann}_was/inbox")]);
}

#[test]
fn a_superuser_searches_as_himself_unless_he_asks_for_all() {
    let database = Database::new("superuser");
    let mut ann = database.user("ann");
    own_something(&mut ann, "ann");
    let mut admin = database.admin();
    assert_eq!(owners_found(&mut admin), Vec::<String>::new());
    own_something(&mut admin, "postgres");
    assert_eq!(owners_found(&mut admin), ["role:postgres"]);
    let answer = admin.json("SELECT rag_answer('What is owned by ann?', options => '{\"min_support\": 0}')");
    assert!(!answer.to_string().contains("note of ann"), "{answer:#}");
    let hidden = ann.value("SELECT id FROM rag.chunk");
    let rerank = format!("SELECT count(*) FROM rag_rerank_chunks('owned', ARRAY['{hidden}']::uuid[])");
    assert_eq!(admin.count(&rerank), 0);
    admin.run(
        "SELECT rag_create_collection('second');
         INSERT INTO rag.document (collection, content) VALUES ('second', 'What a second note of postgres says.')",
    );
    admin.settle();
    assert_eq!(admin.count(&rerank), 0, "of several domains, none is ann's");
    assert_eq!(admin.count(&format!("SELECT count(*) FROM rag_vectors('{{{hidden}}}')")), 0);
    admin.refuses("42704", &format!("SELECT rag_feedback('owned', '{hidden}', 1)"));
    admin.run("SET rag_ext.all_domains = on");
    assert_eq!(owners_found(&mut admin).len(), 2);
    ann.refuses("42501", "SET rag_ext.all_domains = on");

    let bypassing = database.outsider("bypassing", "BYPASSRLS");
    admin.run(&format!("SELECT rag_enable('{bypassing}')"));
    let mut session = database.connect(&bypassing);
    assert_eq!(owners_found(&mut session), Vec::<String>::new(), "BYPASSRLS alone does not widen a search");
    assert_eq!(session.count("SELECT count(*) FROM rag.document"), 3, "plain SQL is Postgres's own affair");
}
