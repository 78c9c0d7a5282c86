//! Two databases that differ only in what others have: nothing that a caller can look at tells them apart. Rows,
//! estimates, plans, errors, locks, counters, and the rows that the executor went over.
//!
//! Conditions are drawn at random from the leakproof operators that Postgres has, for those are the ones that it may
//! try before a policy; values are those of hidden rows, for a guess that hits is what must not show.

use super::own_something;
use rag_tests::{Database, Random, Session, literal};
use std::fmt::Write;

/// Tables that ordinary roles may read.
const TABLES: [&str; 22] = [
    "document",
    "chunk",
    "section",
    "metadata_value",
    "acronym",
    "mined_acronym",
    "job",
    "segment",
    "deletion_count",
    "domain",
    "collection",
    "collection_grant",
    "accepted_collection",
    "metadata_rule",
    "attached_row",
    "entity_mention",
    "entity_relation",
    "document_link",
    "feedback",
    "query_log",
    "answer_log",
    "graph_job",
];

/// Ways of reading a table that a caller may ask the planner for.
const PLANS: [&str; 5] = [
    "SET LOCAL enable_seqscan = on",
    "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off",
    "SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off",
    "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off",
    "SET LOCAL jit = on; SET LOCAL jit_above_cost = 0; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL min_parallel_index_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2",
];

/// Two databases, copies of one. In both ann has the same, to the last id; bob has a note in one of them, and much in the
/// other.
struct Worlds<'a> {
    original: Database<'a>,
    few: String,
    many: String,
}

impl<'a> Worlds<'a> {
    fn new() -> Self {
        let original = Database::new("side_channels");
        let (ann, bob, carol) = (original.role("ann"), original.role("bob"), original.role("carol"));
        let mut session = original.connect(&ann);
        own_something(&mut session, "ann");
        session.run(
            "INSERT INTO rag.document (title, uri, content, metadata)
             SELECT 'Title ' || n, 'uri ' || n, '# Head ' || n || E'\\n\\nText: log_level needs log_file, see FC-001-23' || n, '{\"key\": 1}' FROM generate_series(1, 5) n",
        );
        session.settle();
        session.run("SELECT rag_feedback('which head', id, 1) FROM rag.chunk");
        own_something(&mut original.connect(&bob), "bob");
        drop(session);
        for (role, count) in [(&ann, 3), (&bob, 1)] {
            original.admin().run(&logged(role, count));
        }
        let [few, many] = ["few", "many"].map(|name| format!("{}_{name}", original.name()));
        let mut admin = original.cluster().connect("postgres", "postgres");
        for copy in [&few, &many] {
            admin.run(&format!("CREATE DATABASE {copy} TEMPLATE {}", original.name()));
        }
        let worlds = Self { original, few, many };
        let mut session = worlds.among(&bob);
        session.run(
            "SELECT rag_create_collection('plans'); SELECT rag_create_collection('open', shared => true)",
        );
        session.run(&format!(
            "INSERT INTO rag.document (title, uri, content, metadata)
             SELECT 'Secret ' || n, 'secret ' || n, '# Merger ' || n || E'\\n\\nText: log_level needs merge_file, see FC-009-23' || n, '{{\"project\": \"secret\"}}' FROM generate_series(1, {HIDDEN}) n"
        ));
        session.run("INSERT INTO rag.document (collection, content) SELECT 'plans', 'Plan ' || n FROM generate_series(1, 5) n");
        session
            .run("INSERT INTO rag.metadata_rule (name, key, pattern) VALUES ('secret', 'secret', 'merger')");
        session.run(&format!("SELECT rag_grant('plans', 'role:{carol}', 'read')"));
        worlds.among(&carol).run(&format!("SELECT rag_accept('role:{bob}', 'plans')"));
        session.settle();
        session.run("DELETE FROM rag.document WHERE uri = 'secret 1'");
        session.run("SELECT rag_feedback('which merger', id, -1) FROM rag.chunk");
        worlds.among("postgres").run(&logged(&bob, HIDDEN));
        worlds.alone("postgres").run("VACUUM ANALYZE");
        worlds.among("postgres").run("VACUUM ANALYZE");
        worlds
    }

    /// A session where others have next to nothing.
    fn alone(&self, role: &str) -> Session {
        self.original.cluster().connect(role, &self.few)
    }

    /// A session where others have much.
    fn among(&self, role: &str) -> Session {
        self.original.cluster().connect(role, &self.many)
    }
}

impl Drop for Worlds<'_> {
    fn drop(&mut self) {
        let mut admin = self.original.cluster().connect("postgres", "postgres");
        for copy in [&self.few, &self.many] {
            admin.try_run(&format!("DROP DATABASE {copy} WITH (FORCE)")).ok();
        }
    }
}

/// Writes calls of a role to the log, as workers do.
fn logged(role: &str, count: usize) -> String {
    format!(
        "INSERT INTO rag.query_log (owner, owner_role, searched_at, query, mode, k, hits, milliseconds, chunk_ids, stages)
         SELECT 'role:{role}', '{role}'::regrole, '2026-01-01', 'a query of {role}, ' || n, 'keyword', 10, 0, 1, '{{}}', '[]'
         FROM generate_series(1, {count}) n;
         INSERT INTO rag.answer_log (owner, owner_role, answered_at, question, answer, found, method, citations, models, milliseconds, stages, shortened)
         SELECT 'role:{role}', '{role}'::regrole, '2026-01-01', 'a question of {role}, ' || n, 'x', true, 'extractive', '[]', '{{}}', 1, '[]', '{{}}'
         FROM generate_series(1, {count}) n"
    )
}

/// Documents that ann does not see.
const HIDDEN: usize = 60;

/// A condition on a column, by a leakproof operator, with a value that a hidden row has.
struct Guess {
    table: &'static str,
    condition: String,
}

fn guesses(admin: &mut Session, random: &mut Random, count: usize) -> Vec<Guess> {
    let names = TABLES.map(literal).join(", ");
    let operators = admin.rows(&format!(
        "SELECT c.relname, quote_ident(a.attname), o.oprname, format_type(o.oprright, NULL)
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         JOIN pg_operator o ON o.oprleft = a.atttypid AND o.oprright = a.atttypid AND o.oprresult = 'boolean'::regtype
         JOIN pg_proc p ON p.oid = o.oprcode AND p.proleakproof
         WHERE c.relnamespace = 'rag'::regnamespace AND c.relname IN ({names})
         ORDER BY 1, 2, 3, 4"
    ));
    assert!(operators.len() > 200, "{} leakproof operators", operators.len());
    (0..count)
        .map(|_| {
            let picked = random.pick(&operators);
            let [table, column, operator, kind] = std::array::from_fn(|i| picked[i].clone().unwrap());
            let values = admin.column(&format!(
                "SELECT {column}::text FROM rag.{table} WHERE {column} IS NOT NULL ORDER BY md5({column}::text) LIMIT 50"
            ));
            let value = if values.is_empty() { None } else { Some(random.pick(&values)) };
            let condition = match value {
                Some(value) if random.below(8) > 0 => {
                    format!("{column} {operator} {}::{kind}", literal(value))
                }
                _ => format!("{column} IS {}NULL", ["", "NOT "][random.below(2)]),
            };
            let table = TABLES.into_iter().find(|name| *name == table).unwrap();
            Guess { table, condition }
        })
        .collect()
}

/// All that a caller sees of a statement, from within a transaction that is rolled back.
fn seen(session: &mut Session, plan: &str, sql: &str) -> String {
    let mut seen = String::new();
    // What earlier transactions have counted is handed over only now and then.
    session.run("SELECT pg_stat_force_next_flush()");
    // Triggers' plans are as old as the last message about a table, and were made under the settings of then.
    session.run("DISCARD PLANS");
    session.run(&format!("BEGIN; {plan}"));
    let mut look = |what: &str, sql: &str| {
        session.run("SAVEPOINT look");
        let outcome = match session.try_rows(sql) {
            Ok(mut rows) => {
                // Where rows lie is the table's, and a bitmap has the caller's own dead ones, too.
                rows.retain(|row| {
                    let line = row.first().cloned().flatten().unwrap_or_default();
                    !["Heap Blocks", "Heap Fetches", "Index Searches", "Bitmap Index Scan on"]
                        .iter()
                        .any(|of_layout| line.contains(of_layout) && !line.contains("cost="))
                });
                format!("{rows:?}")
            }
            Err(failure) => format!("{failure}"),
        };
        session.run("ROLLBACK TO look");
        writeln!(seen, "{what}: {outcome}").unwrap();
    };
    look("plan", &format!("EXPLAIN {sql}"));
    look("counts", &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) {sql}"));
    look("rows", sql);
    // Not undone: savepoints take back neither locks of the outer transaction nor what was counted.
    session.try_run(sql).ok();
    // By table: which of its indexes a trigger's kept plan uses is nobody's row. In an index there is also what the
    // caller's own changes that were undone have left. Records of policies are the same for everybody, and are read again
    // whenever the server says anything of a table, as after it was vacuumed.
    for row in session.rows(
        "SELECT 'lock', l.relation::regclass::text, l.mode, NULL FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
         WHERE l.pid = pg_backend_pid() AND c.relnamespace = 'rag'::regnamespace AND c.relkind <> 'i'
               AND c.relname NOT IN ('added_policy', 'builtin_policy')
         UNION ALL
         SELECT 'count', coalesce(i.indrelid, c.oid)::regclass::text,
                sum(CASE WHEN c.relkind = 'r' THEN pg_stat_get_xact_tuples_returned(c.oid) END)::text,
                sum(pg_stat_get_xact_tuples_fetched(c.oid))::text
         FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
         WHERE c.relnamespace = 'rag'::regnamespace AND c.relname NOT LIKE 'embedding%'
               AND coalesce(i.indrelid, c.oid)::regclass NOT IN ('rag.added_policy', 'rag.builtin_policy')
         GROUP BY 2
         ORDER BY 1, 2, 3",
    ) {
        writeln!(seen, "{row:?}").unwrap();
    }
    session.run("ROLLBACK");
    seen
}

/// Statements whose number of rows is the caller's own business.
fn statements(guess: &Guess) -> Vec<String> {
    let Guess { table, condition } = guess;
    let mut statements = vec![
        format!("SELECT count(*) FROM rag.{table} WHERE {condition}"),
        format!("SELECT count(*) FROM rag.{table} t JOIN (VALUES (1)) v (n) ON {condition}"),
    ];
    // Not of a collection: what its foreign keys go over, Postgres counts as it does for any table.
    if matches!(
        *table,
        "document" | "metadata_rule" | "accepted_collection" | "feedback" | "query_log" | "answer_log"
    ) {
        statements.push(format!("DELETE FROM rag.{table} WHERE {condition}"));
    }
    if *table == "document" {
        statements.push(format!("UPDATE rag.document SET title = 'x' WHERE {condition}"));
        statements.push(format!(
            "SELECT count(*) FROM (SELECT FROM rag.document WHERE {condition} FOR UPDATE SKIP LOCKED) x"
        ));
    }
    statements
}

#[test]
fn what_others_have_shows_in_nothing_that_a_caller_can_look_at() {
    let mut random = Random::announced("side_channels");
    let worlds = Worlds::new();
    let name = worlds.original.role_name("ann");
    let (mut alone, mut among) = (worlds.alone(&name), worlds.among(&name));
    let guesses = guesses(&mut worlds.among("postgres"), &mut random, 60);
    // First as an ordinary role, then as one that may look at counters: the executor goes over the same rows, too.
    for may_count in [false, true] {
        if may_count {
            worlds.original.admin().run(&format!("GRANT pg_read_all_stats TO {name}"));
        }
        for guess in &guesses {
            let plan = random.pick(&PLANS);
            for sql in statements(guess) {
                let [one, other] = [&mut alone, &mut among].map(|session| seen(session, plan, &sql));
                let difference: Vec<_> =
                    one.lines().zip(other.lines()).filter(|(one, other)| one != other).collect();
                assert!(one == other, "{plan}, counting: {may_count}\n{sql}\n{difference:#?}");
                assert_eq!(one.contains("permission denied to count"), !may_count, "{sql}\n{one}");
            }
        }
    }
}

/// Neither by what a query goes over, nor by what its policies read of rag.domain and others to decide.
#[test]
fn reading_counts_nothing_for_whoever_may_not_count() {
    let database = Database::new("uncounted");
    let mut ann = database.user("ann");
    own_something(&mut ann, "ann");
    let counted = "SELECT c.relname || ' returned ' || pg_stat_get_xact_tuples_returned(c.oid) || ', fetched '
                          || pg_stat_get_xact_tuples_fetched(c.oid)
                   FROM pg_class c
                   WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'i')
                     AND pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid) > 0";
    for table in TABLES {
        for plan in PLANS {
            ann.run("SELECT pg_stat_force_next_flush()");
            ann.run(&format!("BEGIN; {plan}"));
            let query = format!("SELECT count(*) FROM rag.{table}");
            ann.run(&format!("EXPLAIN {query}; {query}; PREPARE query AS {query}; EXECUTE query"));
            // Roles come and go in other sessions, and with them what is known of this one's rights.
            database.admin().run(&format!("ALTER ROLE {} CONNECTION LIMIT -1", database.role_name("ann")));
            ann.run("EXECUTE query; DEALLOCATE query");
            assert_eq!(ann.column(counted), Vec::<String>::new(), "rag.{table}, {plan}");
            ann.run("ROLLBACK");
        }
    }
}

/// Policies read these tables themselves, when they have to: more often where others change something meanwhile.
#[test]
fn what_policies_read_leaves_the_callers_own_counters_alone() {
    let database = Database::new("counters");
    let role = database.role("ann");
    own_something(&mut database.connect(&role), "ann");
    database.admin().run(&format!("GRANT pg_read_all_stats TO {role}"));
    for table in ["domain", "collection"] {
        let mut ann = database.connect(&role);
        ann.run(&format!("PREPARE query AS SELECT count(*) FROM rag.{table}; BEGIN"));
        let fetched = format!(
            "SELECT sum(pg_stat_get_xact_tuples_fetched(i.indexrelid)) + pg_stat_get_xact_tuples_fetched(i.indrelid)
             FROM pg_index i WHERE i.indrelid = 'rag.{table}'::regclass GROUP BY i.indrelid"
        );
        // The first one is planned, and finds the lists known from that.
        let counts: Vec<i64> = (0..4)
            .map(|_| {
                let before = ann.count(&fetched);
                assert_eq!(ann.value("EXECUTE query"), "1");
                ann.count(&fetched) - before
            })
            .collect();
        assert!(counts[0] > 0 && counts.iter().all(|count| *count == counts[0]), "rag.{table}: {counts:?}");
    }
}

#[test]
fn samples_and_places_on_the_disk_tell_nothing() {
    let database = Database::new("places");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    own_something(&mut bob, "bob");
    own_something(&mut ann, "ann");
    for table in ["document", "chunk", "collection"] {
        let sampled = format!("SELECT count(*) FROM rag.{table} TABLESAMPLE SYSTEM (100)");
        ann.refuses("0A000", &sampled);
        // Hidden or empty: the same answer, and by the same way.
        let place = format!(
            "SELECT count(*) FROM rag.{table} WHERE ctid = ANY (ARRAY['(0,1)', '(0,2)', '(9,9)']::tid[])"
        );
        assert!(ann.count(&place) <= 1);
        let plan = ann.column(&format!("EXPLAIN {place}")).join("\n");
        assert!(!plan.contains("Tid Scan") && plan.contains("Index"), "{plan}");
    }
    ann.run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM rag.document; FETCH c");
    ann.run("UPDATE rag.document SET title = 'by cursor' WHERE CURRENT OF c; COMMIT");
    assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE title = 'by cursor'"), 1);
}

#[test]
fn a_cursor_does_not_outlive_the_role_that_it_was_opened_by() {
    let database = Database::new("cursors");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    for name in [&ann, &bob] {
        let mut session = database.connect(name);
        for n in 0..3 {
            session.ingest(&format!("Note {n} of {name}."), &format!("note {n}"));
        }
    }
    database.admin().run(&format!("GRANT {ann}, {bob} TO {}", database.role("both")));
    let mut session = database.connect(&database.role_name("both"));
    session.run(&format!("SET ROLE {ann}; BEGIN; DECLARE c CURSOR FOR SELECT owner FROM rag.document"));
    assert_eq!(session.column("FETCH 1 FROM c"), [format!("role:{ann}")]);
    session.run(&format!("SET LOCAL ROLE {bob}"));
    // Planned and opened for ann, whose rows are not bob's: nothing comes of it any more.
    assert_eq!(session.column("FETCH ALL FROM c"), Vec::<String>::new());
    session.run("ROLLBACK");
}
