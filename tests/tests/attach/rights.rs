//! Who sees a row's document: whoever sees the row.

use super::{indexed, settle};
use rag_tests::{Database, Session, wait_until};
use std::time::Duration;

/// Lets everybody see the rows of `notes` that are for all.
pub(super) const FOR_ALL: &str =
    "ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON notes USING (reader = 'all');
     GRANT SELECT ON notes TO public";

/// A table of ann's, and bob who may use rag_ext.
pub(super) fn owner_and_reader(database: &Database<'_>) -> (Session, Session, String) {
    let [ann, bob] = ["ann", "bob"].map(|name| database.role(name));
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    let mut owner = database.connect(&ann);
    owner.run(
        "CREATE TABLE notes (id int PRIMARY KEY, reader text, body text);
         INSERT INTO notes VALUES (1, 'all', 'The rope bridge hangs high.'), (2, 'none', 'The rope factory is closed.')",
    );
    owner.run("SELECT rag_attach('notes', content => ARRAY['body'])");
    settle(&mut owner, "notes");
    let reader = database.connect(&bob);
    (owner, reader, ann)
}

/// Chunks found by naming the collection, by each retriever.
fn found(session: &mut Session, owner: &str) -> Vec<String> {
    let mut all: Vec<Vec<String>> = ["keyword", "vector", "hybrid"]
        .iter()
        .map(|mode| {
            session.column(&format!(
                "SELECT content FROM rag_search('rope', k => 10, collection => 'role:{owner}/notes', mode => '{mode}') ORDER BY 1"
            ))
        })
        .collect();
    let last = all.pop().unwrap();
    assert!(all.iter().all(|found| *found == last), "the retrievers differ: {all:?} {last:?}");
    last
}

#[test]
fn a_reader_sees_rows_by_the_tables_own_policies_and_only_when_he_names_it() {
    let database = Database::new("policies");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    let search = format!("SELECT * FROM rag_search('rope', collection => 'role:{ann}/notes')");
    // Hidden and missing are the same.
    let hidden = reader.refuses("42704", &search);
    let missing = reader.refuses("42704", &search.replace("/notes", "/absent"));
    assert_eq!(hidden.message.replace("notes", "absent"), missing.message);

    owner.run("GRANT SELECT ON notes TO public");
    assert_eq!(found(&mut reader, &ann), ["The rope bridge hangs high.", "The rope factory is closed."]);
    assert_eq!(reader.count("SELECT count(*) FROM rag_search('rope')"), 0);
    assert_eq!(reader.count("SELECT count(*) FROM rag.chunk"), 0);

    owner.run("ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON notes USING (reader = 'all')");
    assert_eq!(found(&mut reader, &ann), ["The rope bridge hangs high."]);
    assert_eq!(found(&mut owner, &ann).len(), 2);
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'notes')"));
    assert_eq!(reader.column("SELECT content FROM rag_search('rope')"), ["The rope bridge hangs high."]);
    let vectors = "rag_vectors(ARRAY(SELECT id FROM rag.chunk))";
    for table in ["rag.document", "rag.chunk", "rag.section", "rag.attached_row", vectors] {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM {table}")), 1, "{table}");
    }
    for table in ["segment", "deletion_count", "attached_change"] {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
    assert!(owner.count("SELECT count(*) FROM rag.chunk") == 2);

    owner.run("DROP POLICY p ON notes; CREATE POLICY p ON notes USING (reader <> 'all')");
    assert_eq!(found(&mut reader, &ann), ["The rope factory is closed."]);
    owner.run("REVOKE SELECT ON notes FROM public");
    reader.refuses("42704", &search);
    assert_eq!(reader.count("SELECT count(*) FROM rag_search('rope')"), 0);
    assert_eq!(reader.count("SELECT count(*) FROM rag.chunk"), 0);
    owner.run("GRANT SELECT (id, body) ON notes TO public");
    owner.run("DROP POLICY p ON notes; CREATE POLICY p ON notes USING (id = 1)");
    assert_eq!(found(&mut reader, &ann), ["The rope bridge hangs high."]);
    owner.run("REVOKE SELECT (id) ON notes FROM public");
    reader.refuses("42704", &search);
    assert_eq!(indexed(&mut owner, "notes").len(), 2);
}

#[test]
fn hidden_rows_leave_no_trace_in_scores_or_counts() {
    let database = Database::new("traces");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    owner.run(
        "INSERT INTO notes VALUES (3, 'all', 'A rope is twisted of hemp.'), (4, 'all', 'Ferries need rope, and a bridge.')",
    );
    owner.run(FOR_ALL);
    settle(&mut owner, "notes");
    let search = |mode: &str| {
        format!(
            "SELECT content, score, keyword_rank, keyword_score, vector_score,
                    regexp_replace(details::text, '\"ms\": [0-9.]+', '', 'g')
             FROM rag_search('rope bridge', k => 10, collection => 'role:{ann}/notes', mode => '{mode}')"
        )
    };
    let before: Vec<_> =
        ["keyword", "vector", "hybrid"].iter().map(|mode| reader.rows(&search(mode))).collect();
    assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
    owner.run("INSERT INTO notes SELECT n, 'none', 'Rope and bridge and rope and bridge, number ' || n FROM generate_series(100, 160) n");
    settle(&mut owner, "notes");
    let after: Vec<_> =
        ["keyword", "vector", "hybrid"].iter().map(|mode| reader.rows(&search(mode))).collect();
    assert_eq!(before, after);
    // How far the work has come says how many rows there are.
    assert_eq!(reader.count("SELECT count(*) FROM rag.attachment_status"), 0);
}

#[test]
fn a_text_does_not_outlive_the_rights_that_came_with_it() {
    let database = Database::new("stale");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    owner.run(
        "GRANT SELECT ON notes TO public; ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON notes USING (reader = 'all')",
    );
    // No worker follows meanwhile.
    let mut admin = database.admin();
    admin.run("UPDATE rag.attachment SET due_at = now() + interval '1 day'");
    owner.run("UPDATE notes SET reader = 'all', body = 'The rope shop sells rope.' WHERE id = 2");
    assert_eq!(found(&mut reader, &ann), ["The rope bridge hangs high."]);
    owner.run("UPDATE notes SET id = 1 - id; UPDATE notes SET id = 3 - id");
    assert!(found(&mut reader, &ann).is_empty());
    owner.run("DELETE FROM notes");
    assert!(found(&mut owner, &ann).is_empty(), "not even to the owner");
    // A row with another's key and text of its own is not what was indexed.
    owner.run(
        "INSERT INTO notes VALUES (1, 'all', 'Something else.'), (2, 'all', 'The rope factory is closed.')",
    );
    assert_eq!(found(&mut reader, &ann), ["The rope factory is closed."]);
    admin.run("UPDATE rag.attachment SET due_at = now(); SELECT rag.wake_workers()");
    settle(&mut owner, "notes");
    assert_eq!(indexed(&mut owner, "notes"), ["Something else.", "The rope factory is closed."]);
}

#[test]
fn rows_with_owners_are_found_by_them_and_impose_nothing() {
    let database = Database::new("owners");
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| database.role(name));
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    let mut owner = database.connect(&ann);
    owner.run(&format!(
        "CREATE TABLE mail (id int PRIMARY KEY, whose text, body text); GRANT SELECT ON mail TO public;
         INSERT INTO mail VALUES (1, '{bob}', 'A rope for bob.'), (2, '{eve}', 'A rope for eve.'), (3, 'nobody', 'A rope for nobody.');
         SELECT rag_attach('mail', content => ARRAY['body'], options => '{{\"owner\": \"''role:'' || whose -- the reader\"}}')"
    ));
    settle(&mut owner, "mail");
    assert_eq!(owner.count("SELECT count(*) FROM rag_search('rope', collection => 'mail')"), 2);
    for (name, text) in [(&bob, "A rope for bob."), (&eve, "A rope for eve.")] {
        let mut session = database.connect(name);
        let search = format!("SELECT content FROM rag_search('rope', collection => 'role:{ann}/mail')");
        assert_eq!(session.column(&search), [text]);
        assert_eq!(session.count("SELECT count(*) FROM rag_search('rope')"), 0);
        assert_eq!(session.count("SELECT count(*) FROM rag.chunk"), 0);
        session.run(&format!("SELECT rag_accept('role:{ann}', 'mail')"));
        assert_eq!(session.column("SELECT content FROM rag_search('rope')"), [text]);
        assert_eq!(session.column("SELECT content FROM rag.chunk"), [text]);
    }
    owner.run(&format!("UPDATE mail SET whose = '{bob}' WHERE id = 2"));
    settle(&mut owner, "mail");
    let mut session = database.connect(&bob);
    assert_eq!(session.count("SELECT count(*) FROM rag_search('rope')"), 2);
    assert_eq!(database.connect(&eve).count("SELECT count(*) FROM rag_search('rope')"), 0);
}

#[test]
fn code_of_the_tables_owner_never_runs_with_anybody_elses_rights() {
    let database = Database::new("malice");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    let mut admin = database.admin();
    admin.run(
        "CREATE TABLE seen_by (who name, session name, restricted text); GRANT INSERT ON seen_by TO public",
    );
    owner.run(
        "CREATE FUNCTION spy(x text) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO public.seen_by VALUES (current_user, session_user, current_setting('transaction_read_only'));
             RETURN x;
         END $$;
         GRANT EXECUTE ON FUNCTION spy TO public;
         GRANT SELECT ON notes TO public;
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY p ON notes USING (spy(reader) = 'all');
         INSERT INTO notes VALUES (5, 'all', 'A rope of silk.');
         SELECT rag_attach('notes', content => ARRAY['body'], options => '{\"owner\": \"public.spy(''role:'' || current_user)\"}')",
    );
    settle(&mut owner, "notes");
    let runners = "SELECT DISTINCT who FROM seen_by ORDER BY 1";
    assert_eq!(admin.column(runners), std::slice::from_ref(&ann), "workers act as the owner");
    admin.run("TRUNCATE seen_by");
    // bob's own searches, and looks at the tables, run nothing of ann's.
    for statement in [
        "SELECT count(*) FROM rag_search('rope')",
        "SELECT count(*) FROM rag.chunk",
        "SELECT count(*) FROM rag.document",
        "SELECT count(*) FROM rag.attached_document",
        "SELECT count(*) FROM rag.attachment_status",
        "SELECT count(*) FROM rag.collection_status",
        "SELECT count(*) FROM rag.job_status",
    ] {
        reader.run(statement);
    }
    assert!(admin.column(runners).is_empty(), "{:?}", admin.column(runners));
    // Naming the collection is to run its policies, as oneself.
    reader.run(&format!("SELECT count(*) FROM rag_search('rope', collection => 'role:{ann}/notes')"));
    let ran = admin.column(runners);
    assert!(ran.iter().all(|who| !who.starts_with("postgres") && *who != ann), "{ran:?}");

    // The owner may swap the table: what has its name then is another relation, and is not read.
    owner.run(
        "ALTER TABLE notes RENAME TO old_notes;
         CREATE VIEW notes AS SELECT 1 AS id, 'all' AS reader, spy('The rope is a view.') AS body; GRANT SELECT ON notes TO public",
    );
    owner.run("INSERT INTO old_notes VALUES (9, 'all', 'A rope after the swap.')");
    admin.run("TRUNCATE seen_by");
    settle(&mut owner, "notes");
    assert!(indexed(&mut owner, "notes").contains(&"A rope after the swap.".to_owned()));
    assert!(!indexed(&mut owner, "notes").contains(&"The rope is a view.".to_owned()));
    assert!(admin.column(runners).iter().all(|who| *who == ann));
}

#[test]
fn policies_of_anothers_table_run_restricted_and_cannot_change_who_asks() {
    let database = Database::new("restricted");
    let (mut owner, _, ann) = owner_and_reader(&database);
    let mut admin = database.admin();
    let gateway = database.gateway("gateway");
    admin.run("CREATE TABLE tried (what text, who text, code text); GRANT INSERT ON tried TO public");
    owner.run(
        "CREATE FUNCTION try_all() RETURNS boolean LANGUAGE plpgsql AS $$
         DECLARE attempt text;
         BEGIN
             FOREACH attempt IN ARRAY ARRAY[
                 'SET rag_ext.user_id = ''8''', 'SET LOCAL rag_ext.user_id = ''8''', 'RESET rag_ext.user_id',
                 'SELECT set_config(''rag_ext.user_id'', ''8'', true)', 'SET ROLE NONE', 'RESET ROLE',
                 'CREATE TEMP TABLE notes (id int)', 'LISTEN notes'] LOOP
                 BEGIN
                     EXECUTE attempt;
                     INSERT INTO public.tried VALUES (attempt, current_setting('rag_ext.user_id'), '00000');
                 EXCEPTION WHEN OTHERS THEN
                     INSERT INTO public.tried VALUES (attempt, current_setting('rag_ext.user_id'), SQLSTATE);
                 END;
             END LOOP;
             PERFORM set_config('rag_ext.exact_search_limit', '1', false);
             RETURN true;
         END $$;
         GRANT EXECUTE ON FUNCTION try_all TO public; GRANT SELECT ON notes TO public;
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON notes USING (try_all())",
    );
    let mut app = database.connect(&gateway);
    app.run("BEGIN; SET LOCAL rag_ext.user_id = '7'");
    assert_eq!(found(&mut app, &ann).len(), 2);
    app.run(&format!("SELECT rag_accept('role:{ann}', 'notes')"));
    assert_eq!(app.count("SELECT count(*) FROM rag.chunk"), 2);
    assert_eq!(app.value("SHOW rag_ext.exact_search_limit"), "2000");
    assert_eq!(app.value("SELECT rag.current_owner()"), format!("user:{gateway}/7"));
    app.run("COMMIT");
    assert_eq!(
        admin.rows("SELECT count(DISTINCT what), min(who), max(who), min(code), max(code) FROM tried"),
        [["8", "7", "7", "42501", "42501"].map(|text| Some(text.to_owned()))]
    );
}

#[test]
fn a_trigger_on_a_table_that_is_not_attached_notes_nothing() {
    let database = Database::new("borrowed");
    let (mut owner, mut reader, _) = owner_and_reader(&database);
    let mut admin = database.admin();
    let bob = reader.value("SELECT current_user");
    admin.run(&format!("GRANT CREATE ON SCHEMA public TO {bob}"));
    reader.run("CREATE TABLE mine (id int PRIMARY KEY, body text)");
    // Whatever bob makes of our trigger function, it speaks of their own table alone, and that is not attached.
    let made = reader.try_run(
        "CREATE TRIGGER notes AFTER INSERT ON mine REFERENCING NEW TABLE AS new FOR EACH STATEMENT EXECUTE FUNCTION rag.attached_change()",
    );
    if made.is_ok() {
        reader.run("INSERT INTO mine VALUES (1, 'x')");
    }
    settle(&mut owner, "notes");
    assert_eq!(admin.count("SELECT count(*) FROM rag.attached_change"), 0);
    assert_eq!(indexed(&mut owner, "notes").len(), 2);
}

#[test]
fn a_table_that_is_passed_on_takes_nobodys_expressions_or_trust_along() {
    let database = Database::new("passed_on");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    let mut admin = database.admin();
    let bob = reader.value("SELECT current_user");
    admin.run("CREATE TABLE seen_by (who name); GRANT INSERT ON seen_by TO public");
    owner.run(
        "CREATE FUNCTION spy(x text) RETURNS text LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.seen_by VALUES (current_user); RETURN x; END $$;
         GRANT EXECUTE ON FUNCTION spy TO public; GRANT SELECT ON notes TO public",
    );
    owner.run(&format!(
        "SELECT rag_attach('notes', content => ARRAY['body'], options => '{{\"owner\": \"public.spy(''role:{ann}'')\"}}')"
    ));
    settle(&mut owner, "notes");
    assert_eq!(owner.count("SELECT count(*) FROM rag_search('rope')"), 2);
    admin
        .run(&format!("TRUNCATE seen_by; ALTER TABLE notes OWNER TO {bob}; GRANT SELECT ON notes TO public; GRANT CREATE ON SCHEMA public TO {bob}"));
    reader.run("UPDATE notes SET body = 'The rope is bob''s.' WHERE id = 1");
    wait_until("the attachment stops", Duration::from_secs(60), || {
        admin.value("SELECT state FROM rag.attachment") == "stopped"
    });
    let error = admin.value("SELECT error FROM rag.attachment");
    assert!(error.contains("another owner"), "{error}");
    assert_eq!(admin.count("SELECT count(*) FROM seen_by"), 0, "ann's function ran with bob's rights");
    // And bob's policies do not run as ann, unless she names the collection.
    reader.run(
        "CREATE FUNCTION spy_on(x text) RETURNS text LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.seen_by VALUES (current_user); RETURN x; END $$;
         GRANT EXECUTE ON FUNCTION spy_on TO public;
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON notes USING (spy_on(reader) = 'none')",
    );
    assert_eq!(owner.count("SELECT count(*) FROM rag_search('rope')"), 0);
    assert_eq!(owner.count("SELECT count(*) FROM rag.chunk"), 0);
    assert_eq!(admin.count("SELECT count(*) FROM seen_by"), 0);
    assert_eq!(owner.count("SELECT count(*) FROM rag_search('rope', collection => 'notes')"), 1);
    assert_eq!(admin.column("SELECT DISTINCT who FROM seen_by"), [ann]);
    // Whoever owns the table may end it.
    assert_eq!(reader.count("SELECT rag_detach('notes')"), 1);
    owner.refuses("42704", "SELECT * FROM rag_search('rope', collection => 'notes')");
}

#[test]
fn rights_that_come_and_go_by_roles_and_schemas_count_at_once() {
    let database = Database::new("roles");
    let (mut owner, mut reader, ann) = owner_and_reader(&database);
    let (mut admin, bob) = (database.admin(), database.role_name("bob"));
    let team = database.outsider("team", "");
    let search = format!("SELECT * FROM rag_search('rope', collection => 'role:{ann}/notes')");
    owner.run(&format!("GRANT SELECT ON notes TO {team}"));
    reader.refuses("42704", &search);
    admin.run(&format!("GRANT {team} TO {bob}"));
    assert_eq!(found(&mut reader, &ann).len(), 2);
    // Another role of the same session, and back.
    let outsider = database.role("outsider");
    admin.run(&format!("GRANT {outsider} TO {bob}"));
    admin.run(&format!("ALTER ROLE {outsider} NOINHERIT"));
    reader.run(&format!("SET ROLE {outsider}"));
    reader.refuses("42704", &search);
    reader.run("RESET ROLE");
    assert_eq!(found(&mut reader, &ann).len(), 2);
    admin.run(&format!("REVOKE {team} FROM {bob}"));
    reader.refuses("42704", &search);

    owner.run("GRANT SELECT ON notes TO public");
    assert_eq!(found(&mut reader, &ann).len(), 2);
    admin.run("CREATE SCHEMA closed; ALTER TABLE notes SET SCHEMA closed");
    reader.refuses("42704", &search);
    admin.run("GRANT USAGE ON SCHEMA closed TO public");
    assert_eq!(found(&mut reader, &ann).len(), 2);

    // A table that is attached later, and one that is dropped.
    owner.run("CREATE TABLE others (id int PRIMARY KEY, body text); GRANT SELECT ON others TO public");
    owner.run("INSERT INTO others VALUES (1, 'A rope of another table.'); SELECT rag_attach('others', content => ARRAY['body'])");
    settle(&mut owner, "others");
    let of_others = format!("SELECT content FROM rag_search('rope', collection => 'role:{ann}/others')");
    assert_eq!(reader.column(&of_others), ["A rope of another table."]);
    owner.run("DROP TABLE others");
    reader.refuses("42704", &of_others);
    assert_eq!(found(&mut reader, &ann).len(), 2);
}
