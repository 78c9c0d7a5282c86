//! What the policies of an attached table cost a search: somebody whom they show half of its rows, beside its owner.

use crate::report::{Line, Report};
use rag_benches::{Times, timed};
use rag_tests::Cluster;

const ROWS: usize = 3_000;

const SEARCHES: usize = 20;

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let database = cluster.database("policies");
    let [owner, reader] = ["owner", "reader"].map(|name| database.role(name));
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {owner}"));
    let mut sessions = [database.connect(&owner), database.connect(&reader)];
    sessions[0].run(&format!(
        "CREATE TABLE notes (id int PRIMARY KEY, is_shown boolean, body text);
         INSERT INTO notes SELECT n, n % 2 = 0, 'Rope number ' || n || ' hangs over bridge ' || n % 97 FROM generate_series(1, {ROWS}) n;
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY shown ON notes USING (is_shown); GRANT SELECT ON notes TO public;
         SELECT rag_attach('notes', content => ARRAY['body'])"
    ));
    eprintln!("ingesting {ROWS} rows");
    assert!(sessions[0].holds("SELECT rag_wait('notes', '10 min')"), "not ingested within 10 minutes");
    for mode in ["keyword", "vector", "hybrid"] {
        let search = format!(
            "SELECT count(*) FROM rag_search('rope bridge 7', k => 10, collection => 'role:{owner}/notes', mode => '{mode}')"
        );
        let mut times = [Times::default(), Times::default()];
        for round in 0..=SEARCHES {
            for (session, times) in sessions.iter_mut().zip(&mut times) {
                let (time, found) = timed(|| session.count(&search));
                assert_eq!(found, 10);
                // The first search of a session reads catalogs, and embeds.
                if round > 0 {
                    times.push(time);
                }
            }
        }
        let [of_owner, of_reader] = times;
        report.add(Line {
            what: format!("{mode} search of an attached table, {ROWS} rows of which policies show half"),
            found: of_reader.shown(),
            beside: format!("its owner, who sees all {}", of_owner.shown()),
            ratio: format!("{:.2} ×", of_reader.p50() / of_owner.p50()),
            target: String::new(),
            reached: None,
        });
    }
}
