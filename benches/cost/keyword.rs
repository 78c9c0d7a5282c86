//! `rag_search` in keyword mode by an ordinary role, beside the index alone: the same segments, searched in this
//! process. And beside Postgres' own full-text search on the same texts.

use crate::report::{Line, Report};
use rag_benches::{Library, Texts, Times};
use rag_bm25::{Language, Query, Segment};

/// Runs of each.
const RUNS: usize = 400;
/// Runs before it counts: plans, caches, maps.
const WARM_UP: usize = 40;
const K: usize = 10;

pub(crate) fn measure(report: &mut Report, library: &Library<'_>, texts: &Texts) {
    make_vectors(library);
    let segments = segments(library);
    let mut session = library.session();
    let client = session.client();
    let one = client.prepare("SELECT 1").unwrap();
    let search = client
        .prepare("SELECT rank, uri, title, score, snippet FROM rag_search($1, k => 10, mode => 'keyword')")
        .unwrap();
    // Any of the words, as the other does it.
    let built_in = client
        .prepare(
            "WITH q AS MATERIALIZED (SELECT replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery AS q)
             SELECT uri, title, ts_rank_cd(v, q) FROM built_in, q WHERE v @@ q ORDER BY 3 DESC LIMIT 10",
        )
        .unwrap();

    let [mut round_trip, mut whole, mut alone] = std::array::from_fn(|_| Times::default());
    let (mut found, mut expected) = (0, 0);
    for (run, query) in texts.queries.iter().cycle().take(WARM_UP + RUNS).enumerate() {
        let into = counted(run);
        into(&mut round_trip, &mut || client.query(&one, &[]).unwrap().len());
        let rows = into(&mut whole, &mut || client.query(&search, &[&query]).unwrap().len());
        let hits = into(&mut alone, &mut || {
            let parsed = Query::parse(query, Language::English);
            rag_bm25::search(&segments, &parsed, K, None).unwrap().len()
        });
        (found, expected) = (found + rows, expected + hits);
    }
    assert_eq!(found, expected, "rag_search finds as many as the index");

    // By itself: what it does to the processor's caches is not the business of the two above.
    let [mut beside, mut peer] = std::array::from_fn(|_| Times::default());
    for (run, query) in texts.queries.iter().cycle().take(WARM_UP + RUNS).enumerate() {
        let into = counted(run);
        into(&mut beside, &mut || client.query(&search, &[&query]).unwrap().len());
        into(&mut peer, &mut || client.query(&built_in, &[&query]).unwrap().len());
    }

    let entries: u32 = segments.iter().map(Segment::len).sum();
    report.note(
        format!("keyword search, {entries} chunks in {} segments; a round trip (SELECT 1)", segments.len()),
        round_trip.shown(),
        "",
    );
    let added = whole.p50() - round_trip.p50();
    let most = 1.5 * alone.p50() + 0.5;
    report.add(Line {
        what: format!("rag_search, keyword, k = {K}, less the round trip"),
        found: format!("{added:.3} ms (with it {})", whole.shown()),
        beside: format!("rag_bm25 alone {}", alone.shown()),
        ratio: format!("{:.1} ×, {:+.3} ms", added / alone.p50(), added - alone.p50()),
        target: format!("≤ 1.5 × + 0.5 ms = {most:.3} ms"),
        reached: Some(added <= most),
    });
    report.add(Line {
        what: "the same beside tsvector + GIN + ts_rank_cd, top 10, no policies".into(),
        found: beside.shown(),
        beside: format!("built in {}", peer.shown()),
        ratio: format!("{:.2} ×", beside.p50() / peer.p50()),
        target: String::new(),
        reached: None,
    });
}

/// What takes the time of a call, unless the run is one of the first.
fn counted(run: usize) -> impl Fn(&mut Times, &mut dyn FnMut() -> usize) -> usize {
    move |times, call| if run >= WARM_UP { times.take(call) } else { call() }
}

/// The same texts as Postgres' own full-text search wants them.
fn make_vectors(library: &Library<'_>) {
    library.admin().run(&format!(
        "CREATE TABLE built_in AS
         SELECT d.uri, d.title,
                setweight(to_tsvector('english', coalesce(d.title, '')), 'B') || to_tsvector('english', c.content) AS v
         FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id;
         CREATE INDEX ON built_in USING gin (v);
         GRANT SELECT ON built_in TO {};
         ANALYZE built_in",
        library.role()
    ));
    // Not in the same transaction as the table's making.
    library.admin().run("VACUUM ANALYZE built_in");
}

fn segments(library: &Library<'_>) -> Vec<Segment> {
    let rows = library
        .admin()
        .client()
        .query(
            "SELECT string_agg(data, ''::bytea ORDER BY part) FROM rag.segment GROUP BY id ORDER BY id",
            &[],
        )
        .unwrap();
    rows.iter().map(|row| Segment::open(row.get::<_, Vec<u8>>(0)).unwrap()).collect()
}
