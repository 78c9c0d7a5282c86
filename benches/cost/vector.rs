//! `rag_search` in vector and hybrid mode by an ordinary role, beside what vector search cannot do without: embedding
//! the question and comparing it with every vector, both in SQL, the latter by the superuser without any policy.

use crate::report::{Line, Report};
use rag_benches::{Library, Texts, Times};

const RUNS: usize = 150;
const WARM_UP: usize = 15;

pub(crate) fn measure(report: &mut Report, library: &Library<'_>, texts: &Texts) {
    let (mut session, mut admin) = (library.session(), library.admin());
    let (client, bare) = (session.client(), admin.client());
    let search = client
        .prepare("SELECT rank, uri, title, score, snippet FROM rag_search($1, k => 10, mode => $2)")
        .unwrap();
    let embed = client.prepare("SELECT rag_embed($1)::text").unwrap();
    // The vector is read once, whatever plan is chosen.
    let compare = bare
        .prepare(
            "WITH q AS MATERIALIZED (SELECT $1::text::halfvec AS v)
             SELECT e.chunk_id, 1 - (e.vector <=> q.v) FROM rag.embedding e, q ORDER BY e.vector <=> q.v LIMIT 10",
        )
        .unwrap();
    let [mut vector, mut hybrid, mut embedding, mut comparing] = std::array::from_fn(|_| Times::default());
    // Each question is asked anew by each way, or the engine's cache would answer all but the first.
    let mut asked = 0;
    let mut anew = |text: &str| {
        asked += 1;
        format!("{text} {asked}")
    };
    for (run, text) in texts.queries.iter().cycle().take(WARM_UP + RUNS).enumerate() {
        if run == WARM_UP {
            for times in [&mut vector, &mut hybrid, &mut embedding, &mut comparing] {
                *times = Times::default();
            }
        }
        let (first, second, third) = (anew(text), anew(text), anew(text));
        vector.take(|| client.query(&search, &[&first, &"vector"]).unwrap());
        hybrid.take(|| client.query(&search, &[&second, &"hybrid"]).unwrap());
        let question: String = embedding.take(|| client.query_one(&embed, &[&third]).unwrap()).get(0);
        comparing.take(|| bare.query(&compare, &[&question]).unwrap());
    }
    let parts = embedding.p50() + comparing.p50();
    for (mode, times) in [("vector", &vector), ("hybrid", &hybrid)] {
        report.add(Line {
            what: format!("rag_search, {mode}, k = 10"),
            found: times.shown(),
            beside: format!("rag_embed {:.3} + comparing all {:.3} ms", embedding.p50(), comparing.p50()),
            ratio: format!("{:.2} ×, {:+.3} ms", times.p50() / parts, times.p50() - parts),
            target: String::new(),
            reached: None,
        });
    }
}
