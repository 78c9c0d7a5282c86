//! Statements that write many documents.

use rag_tests::Database;

/// Documents of the large statements here.
const DOCUMENTS: i64 = 400;

#[test]
fn the_plan_made_for_one_changed_document_does_not_compare_each_of_many_with_each() {
    let database = Database::new("many_changed");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run(&format!(
        "INSERT INTO rag.document (title, uri, content)
         SELECT 'Note ' || i, 'note/' || i, 'Note ' || i || ' is about otters.' FROM generate_series(1, {DOCUMENTS}) i"
    ));
    ann.settle();
    let mut admin = database.admin();
    admin.run(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
         SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off; SET client_min_messages = log;
         SET log_min_messages = fatal",
    );
    admin.run(&format!("SET SESSION AUTHORIZATION {role}"));
    let changes = [
        r#"metadata = '{"kind": "note"}'"#,
        "content = content || ' And beavers.'",
        "uri = 'moved/' || uri",
        "title = title || '!', created_at = '2020-02-02'",
    ];
    for change in changes {
        admin.run(&format!("UPDATE rag.document SET {change} WHERE title LIKE 'Note 1%' AND uri LIKE '%/1'"));
        admin.notices();
        admin.run(&format!("UPDATE rag.document SET {change}"));
        let plans: Vec<String> = admin.notices().into_iter().map(|notice| notice.message).collect();
        assert!(
            plans.iter().any(|plan| plan.contains("changed n")),
            "{change}: the trigger's plans are not seen"
        );
        for plan in &plans {
            let compared =
                plan.lines().filter_map(|line| line.trim().strip_prefix("Rows Removed by Join Filter: "));
            let most = compared.filter_map(|rows| rows.parse::<i64>().ok()).max().unwrap_or(0);
            assert!(most <= DOCUMENTS, "{change}\n{plan}");
        }
    }
    ann.settle();
    let found = "SELECT count(*) FROM rag.document d
         WHERE EXISTS (SELECT FROM rag.metadata_value m WHERE m.document_id = d.id AND m.key = 'kind' AND m.text_value = 'note')
           AND EXISTS (SELECT FROM rag.metadata_value m WHERE m.document_id = d.id AND m.key = 'title' AND m.text_value = d.title)
           AND EXISTS (SELECT FROM rag.metadata_value m WHERE m.document_id = d.id AND m.key = 'created_at' AND m.time_value = d.created_at)
           AND d.status = 'done' AND d.text LIKE '%beavers%'";
    assert_eq!(ann.count(found), DOCUMENTS);
    assert_eq!(ann.count("SELECT count(*) FROM rag.metadata_value WHERE key = 'title'"), DOCUMENTS);
}

#[test]
fn rows_of_a_statement_go_where_the_collection_is_when_they_come() {
    let database = Database::new("many_inserted");
    let mut ann = database.user("ann");
    ann.run(
        "SELECT rag_create_collection('notes');
         CREATE TEMP TABLE told (i integer);
         CREATE FUNCTION pg_temp.told(i integer, dropped integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO pg_temp.told VALUES (i);
             IF i = dropped THEN
                 PERFORM rag_drop_collection('notes');
             END IF;
             RETURN i;
         END $$",
    );
    let insert = |collection: &str, dropped: i32| {
        format!(
            "INSERT INTO rag.document (collection, title, content)
             SELECT {collection}, i, 'Note ' || i || ' is about otters.'
             FROM (SELECT pg_temp.told(i, {dropped}) AS i FROM generate_series(1, 8) i) t"
        )
    };
    ann.refuses("42704", &insert("'notes'", 3));
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
    ann.run(&insert("'notes'", 9));
    ann.settle();
    let titles = |collection: &str| {
        format!(
            "SELECT title FROM rag_search('otters', k => 20, collection => '{collection}') ORDER BY title"
        )
    };
    assert_eq!(ann.column(&titles("notes")), ["1", "2", "3", "4", "5", "6", "7", "8"]);
    // From one to another and back.
    ann.run("SELECT rag_create_collection('even'); SELECT rag_create_collection('odd')");
    ann.run(&insert("CASE i % 2 WHEN 0 THEN 'even' ELSE 'odd' END", 9));
    ann.settle();
    assert_eq!(ann.column(&titles("even")), ["2", "4", "6", "8"]);
    assert_eq!(ann.column(&titles("odd")), ["1", "3", "5", "7"]);
    // Another caller's rows are his own, and what a caller may not write to is refused though the row before was let in.
    let mut bob = database.user("bob");
    bob.run(
        "INSERT INTO rag.document (title, content) SELECT i, 'Note of otters' FROM generate_series(1, 3) i",
    );
    let theirs = format!("role:{}/notes", database.role_name("ann"));
    bob.refuses(
        "42704",
        &format!(
            "INSERT INTO rag.document (collection, content)
             SELECT CASE WHEN i < 3 THEN 'default' ELSE '{theirs}' END, 'Note' FROM generate_series(1, 3) i"
        ),
    );
    assert_eq!(bob.count("SELECT count(*) FROM rag.document"), 3);
}
