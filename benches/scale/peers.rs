//! Keyword search beside others on the same rows: BM25 of pg_textsearch and of pg_search, and `tsvector` with a GIN index and
//! `ts_rank_cd`, each in a database of its own, asked by the superuser without any policy; and beside tantivy alone. Then all
//! of them once more, where the rows are those of a hundred owners who see their own.
//!
//! All rank texts with any of the words, and all are asked in plain statements, `rag_search` too: each is planned anew.
//! `rag_search` counts titles three times and rewards words that stand together, so its ten best chunks are not quite theirs.
//!
//! `RAG_BENCH_PEERS` names the `pg_config` of a Postgres that has the two extensions. A peer that does not start or that fails
//! is named, and the bench goes on.

use crate::figures::Figures;
use crate::made::Source;
use crate::owner::{Owner, SEGMENT_CHUNKS};
use crate::questions::Questions;
use crate::searches::{SEARCHES, Search};
use crate::tenants::Tenants;
use crate::{codes, quiet, tantivy_alone};
use rag_benches::{Library, best_times, timed};
use rag_bm25::{Entry, Language};
use rag_tests::{Cluster, Installation, Session, literal};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// What figures call `rag_search` where it is asked as the peers are, by the large owner.
pub(crate) const OURS: &str = "rag_search";

/// Another way of ranking the same rows, which stand in a table `t (id, chunk_id, owner, body)`.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Where it is not a part of Postgres.
    extension: Option<&'static str>,
    /// Above so many chunks it is left out.
    most_chunks: usize,
    /// Makes the index.
    build: &'static str,
    /// A statement for the ten best chunks of a query.
    pub(crate) ask: fn(&str) -> String,
}

pub(crate) const PEERS: [Peer; 3] = [
    Peer {
        name: "pg_textsearch",
        extension: Some("pg_textsearch"),
        most_chunks: usize::MAX,
        build: "CREATE INDEX t_bm ON t USING bm25 (body) WITH (text_config = 'english')",
        ask: |query| {
            format!(
                "SELECT chunk_id FROM t ORDER BY body <@> to_bm25query({}, 't_bm') LIMIT 10",
                literal(query)
            )
        },
    },
    Peer {
        name: "pg_search",
        extension: Some("pg_search"),
        most_chunks: usize::MAX,
        build: r#"CREATE INDEX t_bm ON t USING bm25 (id, body, owner) WITH (key_field = 'id',
                      text_fields = '{"body": {"tokenizer": {"type": "default", "stemmer": "English"}},
                                      "owner": {"fast": true, "tokenizer": {"type": "keyword"}}}')"#,
        ask: |query| {
            format!(
                "SELECT chunk_id FROM t WHERE body ||| {} ORDER BY paradedb.score(id) DESC LIMIT 10",
                literal(query)
            )
        },
    },
    Peer {
        name: "tsvector",
        extension: None,
        // With more, one query takes seconds.
        most_chunks: 100_000,
        build:
            "ALTER TABLE t ADD COLUMN v tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED;
                CREATE INDEX t_v ON t USING gin (v)",
        ask: |query| {
            let any = query.split_whitespace().collect::<Vec<_>>().join(" or ");
            format!(
                "SELECT chunk_id FROM t, websearch_to_tsquery('english', {}) q
                 WHERE v @@ q ORDER BY ts_rank_cd(v, q) DESC LIMIT 10",
                literal(&any)
            )
        },
    },
];

pub(crate) fn measure(figures: &mut Figures, source: &Source, questions: &Questions, sizes: &[usize]) {
    let cluster = quiet(Cluster::builder("ours")).setting("rag_ext.merge_enabled", "off").start();
    let pg_config = std::env::var_os("RAG_BENCH_PEERS");
    let server =
        pg_config.and_then(|pg_config| attempt("the peers' server", || start_server(pg_config.into())));
    for size in sizes {
        let library = Library::new(&cluster, &format!("ours_{size}"));
        library.database().leave_damaged();
        codes::hold_workers(&library);
        figures.begin(*size);
        let mut large = Owner::new(&library, library.role(), "large");
        large.fill(&library, source, *size);
        let mib = library.admin().float("SELECT pg_total_relation_size('rag.segment') / 1048576.0");
        figures.add("disk: index", OURS, "MiB", mib);
        let rows = rows_of(&library);
        build_ours(figures, &rows);
        time_ours(figures, &mut large.session, questions);
        tantivy_alone::measure(figures, &rows, &mut large, questions);
        let servers = || {
            PEERS.iter().filter(|peer| *size <= peer.most_chunks).filter_map(|peer| {
                match (peer.extension, &server) {
                    (None, _) => Some((peer, &cluster)),
                    (Some(_), Some(server)) => Some((peer, server)),
                    (Some(_), None) => {
                        println!("{} is not measured: its server does not run", peer.name);
                        None
                    }
                }
            })
        };
        for (peer, server) in servers() {
            attempt(peer.name, || peer.measure(figures, server, &library, &mut large, questions));
        }
        let mut tenants = Tenants::fill(&cluster, source, *size);
        tenants.measure(figures, questions);
        for (peer, server) in servers() {
            attempt(peer.name, || {
                let mut session = peer.filled(server, tenants.library());
                session.run(peer.build);
                tenants.compare(figures, peer, server, &mut session, questions);
            });
        }
    }
}

/// What others do may fail for reasons of theirs, which the harness says in a panic.
fn attempt<T>(what: &str, call: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(call)).ok();
    if done.is_none() {
        println!("{what} failed, as said above");
    }
    done
}

fn start_server(pg_config: PathBuf) -> Cluster {
    quiet(Cluster::builder("peers"))
        .installation(Installation::of(pg_config))
        .without_preload()
        .setting("shared_preload_libraries", "pg_search,pg_textsearch")
        .start()
}

pub(crate) fn keyword_searches() -> impl Iterator<Item = &'static Search> {
    SEARCHES.iter().filter(|search| search.mode == "keyword")
}

/// Builds segments of the rows, as a merge leaves them: what indexing costs besides writing the rows of these.
fn build_ours(figures: &mut Figures, rows: &[(String, String)]) {
    let (building, ()) = timed(|| {
        for part in rows.chunks(SEGMENT_CHUNKS) {
            let entries =
                part.iter().zip(0..).map(|((_, body), id)| Entry { id, title: "", body: body.as_str() });
            rag_bm25::build(Language::English, entries).unwrap();
        }
    });
    figures.add("building the index", OURS, "s", building.as_secs_f64());
}

fn time_ours(figures: &mut Figures, session: &mut Session, questions: &Questions) {
    for search in keyword_searches() {
        let queries = questions.of_form(search.form);
        let [times] = best_times(queries.len(), |_, at| drop(session.rows(&ours(&queries[at], "{}"))));
        figures.add_times(search.name, OURS, &times);
    }
}

/// A statement of ours for the ten best chunks of a query.
pub(crate) fn ours(query: &str, options: &str) -> String {
    format!(
        "SELECT chunk_id FROM rag_search({}, k => 10, mode => 'keyword', options => {})",
        literal(query),
        literal(options)
    )
}

impl Peer {
    fn measure(
        &self,
        figures: &mut Figures,
        server: &Cluster,
        library: &Library<'_>,
        large: &mut Owner,
        questions: &Questions,
    ) {
        let mut session = self.filled(server, library);
        let before = session.float(SIZE);
        let (building, ()) = timed(|| session.run(self.build));
        session.run("VACUUM ANALYZE t");
        figures.add("building the index", self.name, "s", building.as_secs_f64());
        figures.add("disk: index", self.name, "MiB", session.float(SIZE) - before);
        // One processor for each query, as ours has.
        session.run("SET max_parallel_workers_per_gather = 0");
        for search in keyword_searches() {
            self.compare(
                figures,
                search.name,
                &mut session,
                &mut large.session,
                questions.of_form(search.form),
            );
        }
    }

    /// A new database of its name, with the rows of all chunks of another.
    fn filled(&self, server: &Cluster, library: &Library<'_>) -> Session {
        let mut session = self.database(server);
        let mut admin = library.admin();
        let mut from = admin.client().copy_out(&format!("COPY ({ROWS}) TO STDOUT")).unwrap();
        let mut into = session.client().copy_in("COPY t FROM STDIN").unwrap();
        io::copy(&mut from, &mut into).unwrap();
        into.finish().unwrap();
        session.run("VACUUM ANALYZE t");
        session
    }

    /// A new database of its name.
    fn database(&self, server: &Cluster) -> Session {
        let mut admin = server.connect("postgres", "postgres");
        admin.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        admin.run(&format!("CREATE DATABASE {}", self.name));
        let mut session = server.connect("postgres", self.name);
        if let Some(extension) = self.extension {
            session.run(&format!("CREATE EXTENSION {extension}"));
        }
        session.run(
            // Of the collation of names, without which no index serves the comparison with current_user.
            r#"CREATE TABLE t (id bigint PRIMARY KEY, chunk_id uuid NOT NULL, owner text COLLATE "C" NOT NULL, body text NOT NULL)"#,
        );
        session
    }

    /// Adds its times, those of ours taken in turn by them, and how many of our hits it finds.
    fn compare(
        &self,
        figures: &mut Figures,
        name: &str,
        theirs: &mut Session,
        large: &mut Session,
        queries: &[String],
    ) {
        let (mut common, mut all) = (0, 0);
        for query in queries {
            let found = theirs.column(&(self.ask)(query));
            // Whatever is alike counts here.
            let hits = large.column(&ours(query, r#"{"near_duplicates": "keep"}"#));
            common += hits.iter().filter(|hit| found.contains(hit)).count();
            all += hits.len();
        }
        let [our_times, their_times] = best_times(queries.len(), |way, at| {
            drop(match way {
                0 => large.rows(&ours(&queries[at], "{}")),
                _ => theirs.rows(&(self.ask)(&queries[at])),
            });
        });
        figures.add_times(name, self.name, &their_times);
        figures.add(&format!("{name}, ours / theirs"), self.name, "×", our_times.ratio_to(&their_times));
        figures.add(&format!("{name}, of our top 10"), self.name, "share", common as f64 / all as f64);
    }
}

/// The table, its indexes and what is stored beside it.
const SIZE: &str = "SELECT pg_total_relation_size('t') / 1048576.0";

/// What chunks are found by, and whose they are.
const ROWS: &str =
    "SELECT row_number() OVER (), c.id, d.owner_role::regrole, concat_ws(E'\\n', c.context, c.content)
     FROM rag.chunk c JOIN rag.domain d ON d.id = c.domain_id";

/// Chunks of a database, by id, and what they are found by.
fn rows_of(library: &Library<'_>) -> Vec<(String, String)> {
    let mut admin = library.admin();
    let rows =
        admin.client().query(&format!("SELECT id::text, body FROM ({ROWS}) r (n, id, owner, body)"), &[]);
    rows.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}
