//! Grants: what others may do with a collection, and what stays as if there were none.

use super::{VECTORS, assert_sees, own_something};
use rag_tests::{Database, Session};

fn ingest_into(session: &mut Session, collection: &str, text: &str) -> Result<(), rag_tests::Failure> {
    session.try_run(&format!(
        "SELECT rag_ingest('{text}', collection => '{collection}', options => '{{\"sync\": true}}')"
    ))
}

fn found(session: &mut Session, collection: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT content FROM rag_search('owned', k => 100, collection => '{collection}') ORDER BY 1"
    ))
}

#[test]
fn a_read_grant_shows_and_an_acceptance_takes_into_unnamed_searches() {
    let database = Database::new("read_grant");
    let (ann, bob, eve) = (database.role("ann"), database.role("bob"), database.role("eve"));
    let [mut a, mut b, mut e] = [&ann, &bob, &eve].map(|role| database.connect(role));
    a.run("SELECT rag_create_collection('plans')");
    ingest_into(&mut a, "plans", "A plan owned by ann.").unwrap();
    own_something(&mut a, "ann privately");
    own_something(&mut b, "bob");
    let name = format!("role:{ann}/plans");
    b.refuses("42704", &format!("SELECT * FROM rag_search('owned', collection => '{name}')"));
    b.refuses("42704", &format!("SELECT rag_accept('role:{ann}', 'plans')"));

    a.run(&format!("SELECT rag_grant('plans', 'role:{bob}', 'read')"));
    assert_eq!(found(&mut b, &name), ["A plan owned by ann."]);
    assert_eq!(b.count("SELECT count(*) FROM rag_search('owned', k => 100)"), 1, "sharing is not imposed");
    assert_eq!(b.count("SELECT count(*) FROM rag.document"), 2, "plain SQL shows what may be read");
    e.refuses("42704", &format!("SELECT * FROM rag_search('owned', collection => '{name}')"));

    b.run(&format!("SELECT rag_accept('role:{ann}', 'plans')"));
    assert_eq!(b.count("SELECT count(*) FROM rag_search('owned', k => 100)"), 2);
    b.run("DELETE FROM rag.accepted_collection");
    assert_eq!(b.count("SELECT count(*) FROM rag_search('owned', k => 100)"), 1);
    b.run(&format!("SELECT rag_accept('role:{ann}', 'plans')"));

    let failure = ingest_into(&mut b, &name, "Written by bob.").unwrap_err();
    assert_eq!(failure.code, "42501", "{failure}");
    b.run("UPDATE rag.document SET title = 'changed' WHERE owner <> rag.current_owner()");
    b.run("DELETE FROM rag.document WHERE owner <> rag.current_owner()");
    assert_eq!(a.count("SELECT count(*) FROM rag.document WHERE title IS NULL"), 2);
    b.refuses("42501", &format!("SELECT rag_grant('{name}', 'role:{eve}', 'read')"));
    e.refuses("42704", &format!("SELECT rag_grant('{name}', 'role:{eve}', 'read')"));

    a.run(&format!("SELECT rag_revoke('plans', 'role:{bob}', 'read')"));
    b.refuses("42704", &format!("SELECT * FROM rag_search('owned', collection => '{name}')"));
    assert_sees(&mut b, &[&format!("role:{bob}")]);
    a.run(&format!("SELECT rag_revoke('plans', 'role:{bob}', 'read')"));
}

#[test]
fn a_write_grant_into_a_shared_collection_writes_into_its_owners_domain() {
    let database = Database::new("shared_write");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let [mut a, mut b] = [&ann, &bob].map(|role| database.connect(role));
    a.run("SELECT rag_create_collection('wiki', shared => true)");
    a.run(&format!(
        "SELECT rag_grant('wiki', 'role:{bob}', 'read'), rag_grant('wiki', 'role:{bob}', 'write')"
    ));
    let name = format!("role:{ann}/wiki");
    ingest_into(&mut b, &name, "A page owned by the wiki.").unwrap();
    assert_eq!(found(&mut a, "wiki"), ["A page owned by the wiki."]);
    assert_eq!(found(&mut b, &name), ["A page owned by the wiki."]);
    assert_eq!(a.value("SELECT owner FROM rag.document"), format!("role:{ann}"));
    b.run("UPDATE rag.document SET content = 'A page owned and changed.'");
    b.settle();
    a.settle();
    assert_eq!(found(&mut a, "wiki"), ["A page owned and changed."]);
    a.run(&format!("SELECT rag_revoke('wiki', 'role:{bob}', 'write')"));
    assert_eq!(ingest_into(&mut b, &name, "Too late.").unwrap_err().code, "42501");
    assert_eq!(found(&mut b, &name).len(), 1);
}

#[test]
fn a_write_grant_alone_into_a_collection_that_is_not_shared_makes_documents_of_ones_own() {
    let database = Database::new("own_write");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let [mut a, mut b] = [&ann, &bob].map(|role| database.connect(role));
    a.run("SELECT rag_create_collection('inbox')");
    ingest_into(&mut a, "inbox", "A letter owned by ann.").unwrap();
    a.run(&format!("SELECT rag_grant('inbox', 'role:{bob}', 'write')"));
    let name = format!("role:{ann}/inbox");
    ingest_into(&mut b, &name, "A letter owned by bob.").unwrap();
    assert_eq!(found(&mut b, &name), ["A letter owned by bob."]);
    assert_eq!(found(&mut a, "inbox"), ["A letter owned by ann."]);
    assert_sees(&mut a, &[&format!("role:{ann}")]);
    let listed = b.count(&format!("SELECT count(*) FROM rag.document WHERE collection = '{name}'"));
    assert_eq!(listed, 1);
}

/// Every call that takes a collection's name, with `$` for it.
const BY_NAME: [&str; 14] = [
    "SELECT * FROM rag_search('owned', collection => '$')",
    "SELECT rag_answer('What is owned?', collection => '$')",
    "SELECT rag_wait('$')",
    "SELECT rag_ingest('Owned by chance.', collection => '$')",
    "INSERT INTO rag.document (collection, content) VALUES ('$', 'Owned by chance.')",
    "UPDATE rag.document SET collection = '$'",
    "SELECT rag_extract_metadata('Owned by chance.', collection => '$')",
    "SELECT rag_reextract('$')",
    "SELECT rag_retry('$')",
    "SELECT rag_cancel('$')",
    "SELECT rag_pause('$')",
    "SELECT rag_set_priority('$', 1)",
    "SELECT rag_grant('$', 'public', 'read')",
    "SELECT rag_drop_collection('$')",
];

#[test]
fn a_bare_name_means_ones_own_or_what_one_has_accepted() {
    let database = Database::new("bare_names");
    let [ann, eve, bob, stranger] = ["ann", "eve", "bob", "stranger"].map(|name| database.role(name));
    let [mut a, mut e, mut b, mut s] = [&ann, &eve, &bob, &stranger].map(|role| database.connect(role));
    for (owner, session) in [("ann", &mut a), ("eve", &mut e)] {
        session.run("SELECT rag_create_collection('reports', shared => true)");
        ingest_into(session, "reports", &format!("A report owned by {owner}.")).unwrap();
        for privilege in ["read", "write"] {
            session.run(&format!("SELECT rag_grant('reports', 'role:{bob}', '{privilege}')"));
        }
    }
    for session in [&mut b, &mut s] {
        own_something(session, "himself");
    }
    for call in BY_NAME {
        let granted = b.refuses("42704", &call.replace('$', "reports"));
        let hint = format!(
            "Another owner's collection is written \"role:{ann}/reports\" or \"role:{eve}/reports\"; \
             SELECT rag_accept('role:{ann}', 'reports') lets its bare name mean it."
        );
        assert_eq!(granted.hint, hint, "{call}");
        // Nobody learns of a name by which they were granted nothing.
        let hidden = s.refuses("42704", &call.replace('$', "reports"));
        let missing = s.refuses("42704", &call.replace('$', "riports"));
        assert_eq!(hidden.message, missing.message.replace("riports", "reports"), "{call}");
        assert_eq!(hidden.hint, missing.hint, "{call}");
    }
    assert_eq!(found(&mut a, "reports"), ["A report owned by ann."]);
    assert_eq!(found(&mut b, &format!("role:{ann}/reports")), ["A report owned by ann."]);

    // Accepted, it has its bare name, whatever namesakes others grant.
    b.run(&format!("SELECT rag_accept('role:{ann}', 'reports')"));
    assert_eq!(found(&mut b, "reports"), ["A report owned by ann."]);
    ingest_into(&mut b, "reports", "A report owned by ann, written by bob.").unwrap();
    assert_eq!(found(&mut a, "reports").len(), 2);
    assert_eq!(found(&mut e, "reports").len(), 1);
    b.refuses("42501", "SELECT rag_drop_collection('reports')");
    // What is read of a shared collection can be written again as it is.
    b.run(&format!(
        "INSERT INTO rag.document (collection, owner, uri, content) VALUES ('reports', 'role:{ann}', 'x', 'Owned again.')"
    ));
    assert_eq!(a.count("SELECT count(*) FROM rag.document"), 3);

    // A revoke does not pass the name on to a namesake.
    for privilege in ["read", "write"] {
        a.run(&format!("SELECT rag_revoke('reports', 'role:{bob}', '{privilege}')"));
    }
    for call in BY_NAME {
        let refused = b.refuses("42704", &call.replace('$', "reports"));
        assert!(refused.hint.contains(&eve) && !refused.hint.contains(&ann), "{call}: {refused}");
    }
    b.run("SELECT rag_create_collection('reports')");
    ingest_into(&mut b, "reports", "A report owned by bob.").unwrap();
    assert_eq!(found(&mut b, "reports"), ["A report owned by bob."]);
    b.run(&format!("SELECT rag_accept('role:{eve}', 'reports')"));
    assert_eq!(found(&mut b, "reports"), ["A report owned by bob."]);
    assert_eq!(found(&mut e, "reports").len(), 1);
    // A superuser's bare names are no exception.
    let mut admin = database.admin();
    admin.run(&format!("SELECT rag_grant('role:{eve}/reports', 'public', 'read')"));
    for call in BY_NAME.iter().filter(|call| !call.starts_with("UPDATE")) {
        admin.refuses("42704", &call.replace('$', "reports"));
    }
}

#[test]
fn two_accepted_namesakes_are_told_apart_by_their_owners() {
    let database = Database::new("namesakes");
    let [ann, eve, bob] = ["ann", "eve", "bob"].map(|name| database.role(name));
    let mut b = database.connect(&bob);
    for role in [&ann, &eve] {
        let mut session = database.connect(role);
        session.run("SELECT rag_create_collection('plans')");
        ingest_into(&mut session, "plans", &format!("A plan owned by {role}.")).unwrap();
        session.run(&format!("SELECT rag_grant('plans', 'role:{bob}', 'read')"));
        b.run(&format!("SELECT rag_accept('role:{role}', 'plans')"));
    }
    let refused = b.refuses("22023", "SELECT * FROM rag_search('owned', collection => 'plans')");
    assert!(refused.detail.contains(&ann) && refused.detail.contains(&eve), "{refused}");
    assert_eq!(found(&mut b, &format!("role:{eve}/plans")), [format!("A plan owned by {eve}.")]);
    // Everyone has a default of their own, which no accepted one stands for.
    let mut a = database.connect(&ann);
    own_something(&mut a, "ann");
    a.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    b.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
    assert!(found(&mut b, "default").is_empty());
    assert_eq!(found(&mut b, &format!("role:{ann}/default")).len(), 1);
}

#[test]
fn public_grants_need_a_superuser_and_reach_users_of_gateways() {
    let database = Database::new("public_grant");
    let mut ann = database.user("ann");
    let gateway = database.gateway("gateway");
    ann.run("SELECT rag_create_collection('handbook')");
    ingest_into(&mut ann, "handbook", "A rule owned by everybody.").unwrap();
    ann.refuses("42501", "SELECT rag_grant('handbook', 'public', 'read')");
    let name = format!("role:{}/handbook", database.role_name("ann"));
    let mut app = database.connect(&gateway);
    app.run("SET rag_ext.user_id = '3'");
    app.refuses("42704", &format!("SELECT * FROM rag_search('owned', collection => '{name}')"));
    database.admin().run(&format!("SELECT rag_grant('{name}', 'public', 'read')"));
    assert_eq!(found(&mut app, &name), ["A rule owned by everybody."]);
    assert_eq!(app.count("SELECT count(*) FROM rag_search('owned', k => 100)"), 0, "not accepted");
    let mut stranger = database.user("stranger");
    assert_eq!(found(&mut stranger, &name).len(), 1);

    ann.run(&format!(
        "SELECT rag_create_collection('private'), rag_grant('private', 'user:{gateway}/3', 'read')"
    ));
    ingest_into(&mut ann, "private", "A secret owned with user three.").unwrap();
    let private = name.replace("handbook", "private");
    assert_eq!(found(&mut app, &private).len(), 1);
    app.run("SET rag_ext.user_id = '4'");
    app.refuses("42704", &format!("SELECT * FROM rag_search('owned', collection => '{private}')"));
    app.run("RESET rag_ext.user_id");
    // Nobody is not everybody.
    for hidden in [&private, &name] {
        app.refuses("42704", &format!("SELECT * FROM rag_search('owned', collection => '{hidden}')"));
    }
    for table in ["collection", "domain", "document", "chunk", "collection_grant"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
}

#[test]
fn deleting_a_collection_takes_everything_and_only_its_own() {
    let database = Database::new("delete_collection");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    ann.run("SELECT rag_create_collection('old')");
    ingest_into(&mut ann, "old", "Old and owned.").unwrap();
    own_something(&mut ann, "ann");
    own_something(&mut bob, "bob");
    bob.run("DELETE FROM rag.collection WHERE name = 'old'");
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 2);
    ann.run("DELETE FROM rag.collection WHERE name = 'old'");
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 1);
    for table in ["rag.chunk", "rag.section", "rag.segment", VECTORS] {
        assert_eq!(ann.count(&format!("SELECT count(*) FROM {table}")), 1, "{table}");
    }
    assert_eq!(bob.count("SELECT count(*) FROM rag_search('owned', k => 10)"), 1);
    ann.refuses("42704", "SELECT * FROM rag_search('owned', collection => 'old')");
}
