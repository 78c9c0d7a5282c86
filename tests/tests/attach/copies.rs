//! An attached table in another place: restored from a dump, and on a standby.

use super::{indexed, settle, state};
use rag_tests::{Cluster, Database};

#[test]
fn a_restored_table_is_followed_on_though_its_columns_have_other_numbers() {
    let cluster = Cluster::builder("attach_dump").start();
    let database = cluster.database("before");
    let mut admin = database.admin();
    admin.run(
        "CREATE SCHEMA \"My Texts\"; CREATE TABLE \"My Texts\".notes (gone int, id int PRIMARY KEY, unused int, body text, title text);
         ALTER TABLE \"My Texts\".notes DROP COLUMN gone, DROP COLUMN unused;
         INSERT INTO \"My Texts\".notes VALUES (1, 'The first note.', 'One'), (2, 'The second note.', 'Two')",
    );
    admin.run("SELECT rag_attach('\"My Texts\".notes', content => ARRAY['body'], title => 'title')");
    settle(&mut admin, "notes");
    let dump = cluster.file("dump.sql");
    cluster.call(cluster.program("pg_dump").arg("--file").arg(&dump).arg(database.name()));
    admin.run("CREATE DATABASE restored_notes");
    cluster.call(
        cluster
            .program("psql")
            .args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname=restored_notes"])
            .arg("--file")
            .arg(&dump),
    );
    let mut restored = cluster.connect("postgres", "restored_notes");
    let texts = ["The first note.", "The second note."];
    settle(&mut restored, "notes");
    assert_eq!(indexed(&mut restored, "notes"), texts);
    assert_eq!(restored.count("SELECT count(*) FROM rag.job WHERE state <> 'done'"), 0);
    // What the numbers say now: the columns that were dropped are not there at all.
    assert_eq!(restored.value("SELECT attnum FROM pg_attribute WHERE attrelid = '\"My Texts\".notes'::regclass AND attname = 'id'"), "1");
    restored.run(
        "UPDATE \"My Texts\".notes SET body = 'The second note, changed.' WHERE id = 2; INSERT INTO \"My Texts\".notes VALUES (3, 'A third.', 'Three')",
    );
    settle(&mut restored, "notes");
    assert_eq!(
        indexed(&mut restored, "notes"),
        ["A third.", "The first note.", "The second note, changed."],
        "{:?}",
        state(&mut restored)
    );
    assert_eq!(restored.count("SELECT count(*) FROM rag_search('note', 'notes', k => 5)"), 3);
    admin.run("DROP DATABASE restored_notes WITH (FORCE)");
}

#[test]
fn a_standby_finds_rows_by_the_rights_of_its_callers() {
    let cluster = Cluster::builder("attach_primary").start();
    let database: Database<'_> = cluster.database("notes");
    let [ann, bob] = ["ann", "bob"].map(|name| database.role(name));
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    let mut owner = database.connect(&ann);
    owner.run(
        "CREATE TABLE notes (id int PRIMARY KEY, reader text, body text); GRANT SELECT ON notes TO public;
         INSERT INTO notes VALUES (1, 'all', 'The rope bridge hangs high.'), (2, 'none', 'The rope factory is closed.');
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON notes USING (reader = 'all');
         SELECT rag_attach('notes', content => ARRAY['body'])",
    );
    settle(&mut owner, "notes");
    let standby = cluster.standby("attach_standby");
    cluster.wait_for(&standby);
    standby.running_engine();
    let mut reader = standby.connect(&bob, database.name());
    for mode in ["keyword", "vector", "hybrid"] {
        let search = format!(
            "SELECT content FROM rag_search('rope', k => 10, collection => 'role:{ann}/notes', mode => '{mode}')"
        );
        assert_eq!(reader.column(&search), ["The rope bridge hangs high."], "{mode}");
    }
}
