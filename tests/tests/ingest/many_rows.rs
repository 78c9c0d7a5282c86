//! Statements that write many documents.

use rag_tests::{Cluster, Database};

/// Documents of the large statements here.
const DOCUMENTS: i64 = 400;

/// What one line of a plan says that it read, or threw away, all its runs together.
fn rows_of(line: &str, loops: &mut f64) -> f64 {
    let number = |after: &str| {
        let (_, rest) = line.split_once(after)?;
        rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse::<f64>().ok()
    };
    if let (Some(rows), Some(runs)) = (number("actual rows="), number("loops=")) {
        *loops = runs;
        return if line.contains("Scan") { rows * runs } else { 0.0 };
    }
    ["Rows Removed by Filter: ", "Rows Removed by Join Filter: "]
        .iter()
        .find_map(|what| number(what))
        .map_or(0.0, |rows| rows * *loops)
}

/// The most that a node of a plan read, or threw away.
fn most_rows(plan: &str) -> f64 {
    let mut loops = 1.0;
    plan.lines().map(|line| rows_of(line, &mut loops)).fold(0.0, f64::max)
}

#[test]
fn what_is_about_one_document_does_not_go_over_all_of_a_collection() {
    let database = Database::new("one_of_many");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run(&format!(
        "INSERT INTO rag.document (title, uri, content)
         SELECT 'Note ' || i, CASE WHEN i % 2 = 0 THEN 'note/' || i END, 'Note ' || i || ' is about max_wal_size.'
         FROM generate_series(1, {DOCUMENTS}) i"
    ));
    ann.settle();
    let id = ann.value("SELECT id FROM rag.document WHERE title = 'Note 2'");
    let mut session = database.explained(&role);
    for call in [
        "SELECT rag_ingest('A note without address.')".to_owned(),
        "SELECT rag_ingest('Note 1 is about max_wal_size.')".to_owned(),
        "SELECT rag_ingest('A note with its address.', uri => 'note/4')".to_owned(),
        "SELECT rag_ingest('A note with its address.', uri => 'note/4')".to_owned(),
        format!("SELECT rag_set_priority('{id}'::uuid, 3)"),
        format!("SELECT rag_cancel('{id}'::uuid)"),
        format!("SELECT rag_retry('{id}'::uuid)"),
        "SELECT rag_answer('What is note 17 about?')".to_owned(),
        "SELECT rag_answer('Who ate the cake?')".to_owned(),
        format!("UPDATE rag.document SET uri = 'moved' WHERE id = '{id}'"),
        format!("DELETE FROM rag.document WHERE id = '{id}'"),
    ] {
        session.notices();
        session.run(&call);
        let plans = session.notices().into_iter().map(|notice| notice.message);
        // Few vectors are all compared.
        let is_ours = |plan: &String| {
            plan.contains(" rag.") && ![" pg_", " rag.embedding "].iter().any(|t| plan.contains(t))
        };
        let of_ours: Vec<String> = plans.filter(is_ours).collect();
        assert!(!of_ours.is_empty(), "{call}: no plan is seen");
        for plan in of_ours {
            assert!(most_rows(&plan) < DOCUMENTS as f64 / 3.0, "{call}\n{plan}");
        }
    }
    // Of what everybody names, the first places that the index has, and no bitmap of all.
    session.run(r#"SELECT count(*) FROM rag_search('max_wal_size', options => '{"graph": "on"}')"#);
    let plans: Vec<String> = session.notices().into_iter().map(|notice| notice.message).collect();
    let of_names: Vec<&String> =
        plans.iter().filter(|plan| plan.contains("using entity_mention_key")).collect();
    assert!(!of_names.is_empty(), "{plans:#?}");
    assert!(!plans.iter().any(|plan| plan.contains("Bitmap Index Scan on entity_mention_key")), "{plans:#?}");
}

#[test]
fn workers_that_began_with_empty_tables_do_not_go_over_all_for_one_document() {
    let mut builder = Cluster::builder("plans_of_workers").setting("rag_ext.merge_enabled", "off");
    for (name, value) in [
        ("shared_preload_libraries", "rag_ext, auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "off"),
    ] {
        builder = builder.setting(name, value);
    }
    let cluster = builder.start();
    let database = cluster.database("plans_of_workers");
    let role = database.role("ann");
    database.admin().run(&format!("CREATE SCHEMA desk AUTHORIZATION {role}"));
    let mut ann = database.connect(&role);
    ann.run("CREATE TABLE desk.ticket (id int PRIMARY KEY, body text NOT NULL)");
    let add = |from: i64, to: i64| {
        format!(
            "INSERT INTO rag.document (title, uri, content)
             SELECT 'Note ' || i, 'note/' || i, 'Note ' || i || ' is about max_wal_size.' FROM generate_series({from}, {to}) i;
             INSERT INTO rag.document (title, uri, content)
             SELECT 'Form', 'form/' || i, 'To be filled in.' FROM generate_series({from}, {to}) i;
             INSERT INTO desk.ticket SELECT i, 'Ticket ' || i || ' is about a jam.' FROM generate_series({from}, {to}) i"
        )
    };
    ann.run(&add(1, 1));
    ann.run("SELECT rag_attach('desk.ticket', 'body')");
    ann.settle();
    ann.run(&add(2, DOCUMENTS));
    ann.settle();
    let before = cluster.log().len();
    ann.run(
        "INSERT INTO rag.document (title, content) VALUES ('New', 'An otter.'), ('Form', 'To be filled in.')",
    );
    ann.run("UPDATE rag.document SET content = 'Note 2 is about beavers.' WHERE uri = 'note/2'");
    ann.run("UPDATE desk.ticket SET body = 'Ticket 3 is done.' WHERE id = 3");
    ann.run("DELETE FROM desk.ticket WHERE id = 4");
    ann.settle();
    let log = cluster.log();
    let entries: Vec<&str> = log[before..].split("LOG:  duration: ").skip(1).collect();
    for of_workers in [
        "UPDATE rag.job j",
        "unnest($2::bytea[]) h (sha256)",
        "UPDATE rag.document d",
        "DELETE FROM rag.attached_row",
        "DELETE FROM rag.metadata_value",
    ] {
        assert!(entries.iter().any(|plan| plan.contains(of_workers)), "no plan of {of_workers} is seen");
    }
    // Not what is about the catalog; nor what looks for vectors that went astray, some thousands at a time; nor what counts
    // segments, of which a slow machine has many without merges; nor what this test counts itself.
    let others = ["pg_class", "pg_depend", "l.place = l.total", "AS largest", "FROM rag.job WHERE state IN"];
    let is_ours = |plan: &&&str| plan.contains(" rag.") && !others.iter().any(|other| plan.contains(other));
    for plan in entries.iter().filter(is_ours) {
        assert!(most_rows(plan) < DOCUMENTS as f64 / 3.0, "{plan}");
    }
}

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
    let mut admin = database.explained(&role);
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
