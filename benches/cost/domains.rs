//! A caller who sees 10,000 domains of 10 chunks: collections of as many application users, each granted to them and
//! accepted. Rows and segments are made here and copied in, as ingestion would leave them.

use crate::profile;
use crate::report::{Line, Report};
use postgres::{Client, Statement, Transaction};
use rag_benches::{
    BulkDocument, BulkRows, Library, Place, Times, Words, copy, own_mib, timed, uuid, without_triggers,
};
use rag_tests::Cluster;
use std::fmt::Write as _;

/// `RAG_BENCH_DOMAINS` takes another number of domains.
const DOMAINS: u64 = 10_000;
const CHUNKS: u64 = 10;
const WORDS: usize = 60;

/// Filters, and how many of a hundred documents pass each.
const FILTERS: [(&str, u64); 2] = [(r#"{"part": 7}"#, 1), (r#"{"part": {"lt": 30}}"#, 30)];

const QUERIES: [&str; 5] =
    ["mor", "kes tov", "cordel jofim natris", "+gan hulba -lim", "ba cor del fim gan hul jo kes"];

/// Rounds of all queries.
const ROUNDS: usize = 4;

/// Searches after which all is cached that will be.
const UNTIL_WARM: usize = 40;

/// How long a search may take once warm, in the median.
const GOAL_MS: f64 = 30.0;

/// A search that takes longer is given up, and the table says so.
const LONGEST: &str = "2 min";

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let count = std::env::var("RAG_BENCH_DOMAINS").map_or(DOMAINS, |count| count.parse().unwrap());
    let library = Library::new(cluster, "domains");
    // Chunks have no vectors, which are not asked for here.
    library.database().leave_damaged();
    eprintln!("making {count} domains");
    fill(&library, count);

    let what = format!("keyword search over {count} domains of {CHUNKS} chunks");
    let mut session = library.session();
    session.run(&format!("SET statement_timeout = '{LONGEST}'"));
    let before = own_mib(session.pid());
    let pid = session.pid();
    let client = session.client();
    let search =
        client.prepare("SELECT rank, uri, score FROM rag_search($1, k => 10, mode => 'keyword')").unwrap();
    let (first, rows) = timed(|| client.query(&search, &[&QUERIES[0]]));
    let Ok(rows) = rows else {
        report.note(what, format!("given up after {LONGEST}: {:?}", rows.err()), "");
        return;
    };
    assert_eq!(rows.len(), 10, "ten of them have the word");
    // Each makes some of the bundles of small segments.
    for query in QUERIES.iter().cycle().take(UNTIL_WARM) {
        client.query(&search, &[query]).unwrap();
    }
    profile::begin(&library);
    let mut warm = Times::default();
    for query in QUERIES.iter().cycle().take(QUERIES.len() * ROUNDS) {
        warm.take(|| client.query(&search, &[query]).unwrap());
    }
    profile::print(&library, "search over many domains");
    let added = own_mib(pid) - before;
    let filtered = client
        .prepare("SELECT rank, uri, score FROM rag_search($1, k => 10, mode => 'keyword', filter => $2::text::jsonb)")
        .unwrap();
    let under_filters = FILTERS.map(|(filter, percent)| (percent, times_under(client, &filtered, filter)));
    report.add(Line {
        what,
        found: format!("{} once warm", warm.shown()),
        beside: format!(
            "first search of a session {:.0} ms, {added:.1} MiB of its own after all",
            first.as_secs_f64() * 1e3
        ),
        ratio: format!("{:.1} ×", warm.p50() / GOAL_MS),
        target: format!("≤ {GOAL_MS} ms"),
        reached: Some(warm.p50() <= GOAL_MS),
    });
    for (percent, shown) in under_filters {
        report.note(format!("the same, {percent} % pass a filter"), shown, "");
    }
}

/// Times of searches under a filter, once warm; or that one was given up.
fn times_under(client: &mut Client, search: &Statement, filter: &str) -> String {
    let mut times = Times::default();
    for (round, query) in (0..=ROUNDS).flat_map(|round| QUERIES.iter().map(move |query| (round, query))) {
        let (time, rows) = timed(|| client.query(search, &[query, &filter]));
        match rows {
            Ok(rows) => assert!(!rows.is_empty(), "{query} {filter}"),
            Err(error) => return format!("given up after {LONGEST}: {error:?}"),
        }
        if round > 0 {
            times.push(time);
        }
    }
    times.shown()
}

/// The n-th id of a kind.
fn id(kind: u64, n: u64) -> u128 {
    (u128::from(kind) << 96) | (0x7000_8000 << 64) | u128::from(n + 1)
}

fn fill(library: &Library<'_>, count: u64) {
    let gateway = library.database().gateway("gateway");
    let mut domains = Domains::default();
    let mut rows = BulkRows::default();
    let mut words = Words::seeded(3);
    for domain in 0..count {
        let place = domains.add(domain, library.role(), &gateway);
        add_documents(&mut rows, &place, domain, &mut words);
    }
    let mut admin = library.admin();
    let client = admin.client();
    let mut transaction = client.transaction().unwrap();
    without_triggers(&mut transaction);
    domains.copy(&mut transaction);
    rows.copy(&mut transaction);
    transaction
        .execute(
            "INSERT INTO rag.metadata_value (domain_id, document_id, key, ordinal, number_value)
             SELECT domain_id, id, 'part', 1, right(uri, 2)::int FROM rag.document",
            &[],
        )
        .unwrap();
    transaction.commit().unwrap();
    for table in [
        "collection",
        "domain",
        "collection_grant",
        "accepted_collection",
        "document",
        "section",
        "chunk",
        "segment",
        "metadata_value",
    ] {
        admin.run(&format!("VACUUM ANALYZE rag.{table}"));
    }
}

/// Documents of one chunk each, and their segment.
fn add_documents(rows: &mut BulkRows, place: &Place, domain: u64, words: &mut Words) {
    let documents: Vec<BulkDocument> = (0..CHUNKS)
        .map(|at| {
            let n = domain * CHUNKS + at;
            BulkDocument {
                id: id(3, n),
                title: words.text(6),
                uri: format!("u{n:02}"),
                metadata: "{}".into(),
                chunks: vec![(id(5, n), words.text(WORDS))],
            }
        })
        .collect();
    for document in &documents {
        rows.add_document(place, document);
    }
    rows.add_segment(place, id(6, domain), &documents);
}

/// Collections of application users, each granted to a role, which has accepted them: rows in the text format of COPY.
#[derive(Default)]
struct Domains {
    collections: String,
    domains: String,
    grants: String,
    accepted: String,
}

impl Domains {
    fn add(&mut self, n: u64, role: &str, gateway: &str) -> Place {
        let place = Place { domain: id(2, n), collection: "c".into(), owner: format!("user:{gateway}/{n}") };
        let (collection, domain, owner) = (uuid(id(1, n)), uuid(place.domain), &place.owner);
        writeln!(self.collections, "{collection}\tc\t{owner}\t{gateway}\tbge-small-en-v1.5\tenglish")
            .unwrap();
        writeln!(self.domains, "{domain}\t{collection}\t{owner}\t{gateway}").unwrap();
        writeln!(self.grants, "{domain}\t{collection}\t{owner}\t{gateway}\trole:{role}\t{role}\tread\tf")
            .unwrap();
        writeln!(self.accepted, "{domain}\trole:{role}\t{role}").unwrap();
        place
    }

    fn copy(&self, transaction: &mut Transaction<'_>) {
        for (table, rows) in [
            ("rag.collection (id, name, owner, owner_role, model, language)", &self.collections),
            ("rag.domain (id, collection_id, owner, owner_role)", &self.domains),
            (
                "rag.collection_grant (domain_id, collection_id, owner, owner_role, principal, principal_role, privilege, shared)",
                &self.grants,
            ),
            ("rag.accepted_collection (domain_id, principal, principal_role)", &self.accepted),
        ] {
            copy(transaction, table, rows);
        }
    }
}
