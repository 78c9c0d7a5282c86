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
            "rag.tombstone",
            "rag.metadata_value",
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
    session.run("SET rag_ext.user_id = '5'");
    assert_sees(&mut session, &[&format!("role:{member}")]);
    session.run(&format!("SET ROLE {gateway}"));
    assert_sees(&mut session, &[&format!("user:{gateway}/5")]);
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
        assert_eq!(session.value("SELECT uri FROM rag_search('owned', 100)"), format!("note of {id}"));
    }
}
