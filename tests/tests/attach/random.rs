//! Any changes, from two sessions, some of them rolled back: afterwards there are exactly the chunks of the rows.

use super::state;
use rag_tests::{Database, Failure, Random, Session};

const TABLES: [&str; 4] = ["numbered", "paired", "keyless", "parted"];

const SCHEMA: &str = "
    CREATE TABLE numbered (id int PRIMARY KEY, other int, body text);
    CREATE TABLE paired (id int, other int, body text, PRIMARY KEY (id, other));
    CREATE TABLE keyless (id int, other int, body text);
    CREATE TABLE parted (id int, other int, body text, PRIMARY KEY (id, other)) PARTITION BY LIST (other);
    CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
    CREATE TABLE parted_rest PARTITION OF parted DEFAULT";

/// What the rows say, and what the chunks say: one document per row, or per different row without key.
fn rows(table: &str) -> String {
    let distinct = if table == "keyless" { "DISTINCT " } else { "" };
    format!("SELECT {distinct}trim(body) FROM {table} WHERE trim(body) <> '' ORDER BY 1")
}

fn chunks(table: &str) -> String {
    format!(
        "SELECT c.content FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id WHERE d.collection = '{table}' ORDER BY 1"
    )
}

fn change(random: &mut Random, table: &str) -> String {
    let (id, other) = (random.below(30), random.below(3));
    let text = match random.below(12) {
        0 => "NULL".to_owned(),
        1 => "'  '".to_owned(),
        n => format!("'Text {n} of {}'", random.below(40)),
    };
    let part = match (table, random.below(3)) {
        ("parted", 0) => "parted_0",
        _ => table,
    };
    let (target, conflict) = match table {
        "keyless" => ("", ""),
        "numbered" => ("(id)", "ON CONFLICT (id)"),
        _ => ("(id, other)", "ON CONFLICT (id, other)"),
    };
    let other_in = if part == "parted_0" { 0 } else { other };
    match random.below(14) {
        0..=4 if target.is_empty() => format!("INSERT INTO {part} VALUES ({id}, {other_in}, {text})"),
        0..=2 => format!("INSERT INTO {part} VALUES ({id}, {other_in}, {text}) {conflict} DO NOTHING"),
        3 | 4 => format!(
            "INSERT INTO {part} VALUES ({id}, {other_in}, {text}) {conflict} DO UPDATE SET body = excluded.body || ' again'"
        ),
        5 => format!(
            "INSERT INTO {table} SELECT n, {other}, 'Bulk ' || n FROM generate_series({id}, {}) n {}",
            id + 40,
            if target.is_empty() { String::new() } else { format!("{conflict} DO NOTHING") }
        ),
        6 | 7 => format!("UPDATE {part} SET body = {text} WHERE id = {id}"),
        8 => format!("UPDATE {table} SET body = body || '.' WHERE id % 7 = {}", id % 7),
        // May meet a row that is there: an error like any other.
        9 => format!("UPDATE {table} SET id = id + 100 WHERE id = {id}"),
        10 => format!("UPDATE {table} SET other = {other} WHERE id = {id}"),
        11 => format!("DELETE FROM {part} WHERE id = {id}"),
        12 => format!("DELETE FROM {table} WHERE id % 5 = {}", id % 5),
        _ if random.below(4) == 0 => format!("TRUNCATE {table}"),
        _ => format!("DELETE FROM {table} WHERE id > 60"),
    }
}

/// Errors that two sessions in each other's way may get; then the transaction is over.
fn is_expected(failure: &Failure) -> bool {
    ["23505", "40P01", "55P03", "25P02", "3B001"].contains(&failure.code.as_str())
}

fn try_all(session: &mut Session, statements: &[String]) {
    for statement in statements {
        if let Err(failure) = session.try_run(statement) {
            assert!(is_expected(&failure), "{failure} in {statement}");
        }
    }
}

#[test]
fn after_any_changes_there_are_exactly_the_chunks_of_the_rows() {
    let mut random = Random::announced("attach");
    let database = Database::new("random");
    let ann = database.role("ann");
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    let (mut one, mut two) = (database.connect(&ann), database.connect(&ann));
    one.run(SCHEMA);
    for table in TABLES {
        one.run(&format!("SELECT rag_attach('{table}', content => ARRAY['body'])"));
    }
    for session in [&mut one, &mut two] {
        session.run("SET lock_timeout = '200ms'");
    }
    for round in 0..4 {
        for _ in 0..25 {
            // Two transactions, statement by statement in turn.
            let mut plans: Vec<Vec<String>> = Vec::new();
            for _ in 0..2 {
                let mut plan = vec!["BEGIN".to_owned()];
                for _ in 0..1 + random.below(4) {
                    let table = *random.pick(&TABLES);
                    match random.below(5) {
                        0 => plan.extend([
                            "SAVEPOINT s".to_owned(),
                            change(&mut random, table),
                            "ROLLBACK TO s".to_owned(),
                            change(&mut random, table),
                        ]),
                        _ => plan.push(change(&mut random, table)),
                    }
                }
                plan.push(if random.below(3) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned());
                plans.push(plan);
            }
            for step in 0..plans.iter().map(Vec::len).max().unwrap() {
                for (session, plan) in [&mut one, &mut two].into_iter().zip(&plans) {
                    try_all(session, &plan[step.min(plan.len())..(step + 1).min(plan.len())]);
                }
            }
        }
        for table in TABLES {
            assert!(
                one.holds(&format!("SELECT rag_wait('{table}', '10 min')")),
                "{table}: {:?}",
                state(&mut one)
            );
            assert_eq!(one.column(&chunks(table)), one.column(&rows(table)), "{table} in round {round}");
        }
    }
}
