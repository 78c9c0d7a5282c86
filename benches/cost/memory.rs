//! Memory of a backend's own that searching adds.
//!
//! Segments are mapped from files that all backends share; a second backend has them open meanwhile, as on any
//! server with more than one session, so their pages count as shared.

use crate::report::{Line, Report};
use rag_benches::{Library, Texts, own_mib};
use rag_tests::Session;

const SEARCHES: usize = 200;
const MOST_MIB: f64 = 30.0;

pub(crate) fn measure(report: &mut Report, library: &Library<'_>, texts: &Texts) {
    let mut other = library.session();
    search(&mut other, texts, "keyword", 3);
    let mut session = library.session();
    session.run("SELECT count(*) FROM rag.document");
    let before = own_mib(session.pid());
    search(&mut session, texts, "keyword", SEARCHES);
    let keyword = own_mib(session.pid()) - before;
    search(&mut session, texts, "vector", SEARCHES);
    search(&mut session, texts, "hybrid", SEARCHES);
    let all = own_mib(session.pid()) - before;
    report.add(Line {
        what: format!("memory that a backend adds, {SEARCHES} searches of each mode"),
        found: format!("{all:.1} MiB of its own (keyword alone {keyword:.1})"),
        beside: format!("before the first search {before:.1} MiB"),
        ratio: String::new(),
        target: format!("≤ {MOST_MIB} MiB"),
        reached: Some(all <= MOST_MIB),
    });
}

fn search(session: &mut Session, texts: &Texts, mode: &str, count: usize) {
    let client = session.client();
    let statement = client.prepare("SELECT * FROM rag_search($1, k => 10, mode => $2)").unwrap();
    for query in texts.queries.iter().take(count) {
        client.query(&statement, &[query, &mode]).unwrap();
    }
}
