//! `rag_search` in vector mode beside the same search written plainly: the SQL that a user of pgvector would write, with
//! the question's vector as a constant, by the superuser and without any policy. Several owners share the tables.

use crate::report::{Line, Report};
use rag_benches::{Library, Times};
use rag_tests::{Cluster, Session};

/// Chunks of each owner.
const SIZES: [usize; 3] = [1_000, 10_000, 50_000];
const RUNS: usize = 40;
const WARM_UP: usize = 5;

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let library = Library::new(cluster, "plain");
    // Chunks are put in beside the keyword index, which is not asked here.
    library.database().leave_damaged();
    let mut admin = library.admin();
    let owners: Vec<(usize, String)> =
        SIZES.into_iter().map(|size| (size, library.database().role(&format!("owner_{size}")))).collect();
    for (size, owner) in &owners {
        library.database().connect(owner).ingest("The first of many notes.", "first");
        fill(&mut admin, owner, *size);
    }
    admin.run("VACUUM ANALYZE");
    for (size, owner) in &owners {
        let mut session = library.database().connect(owner);
        let place = admin.rows(&format!(
            "SELECT s.id, d.id FROM rag.vector_space s, rag.domain d WHERE d.owner = 'role:{owner}'"
        ));
        let [Some(space), Some(domain)] = &place[0][..] else { panic!("no domain of {owner}") };
        // The engine knows the answer by the second time.
        let question = "How many notes are there?";
        let vector = session.value(&format!("SELECT rag_embed('{question}')::text"));
        let vector = vector.replace('{', "[").replace('}', "]");
        let search = format!("SELECT chunk_id FROM rag_search('{question}', k => 10, mode => 'vector')");
        let plain = format!(
            "SELECT chunk_id FROM rag.embedding WHERE vector_space_id = '{space}' AND domain_id = '{domain}'
             ORDER BY vector <=> '{vector}'::halfvec, chunk_id LIMIT 10"
        );
        let [mut searching, mut plainly] = std::array::from_fn(|_| Times::default());
        for run in 0..WARM_UP + RUNS {
            if run == WARM_UP {
                (searching, plainly) = (Times::default(), Times::default());
            }
            let found = searching.take(|| session.column(&search));
            let wanted = plainly.take(|| admin.column(&plain));
            assert_eq!(found, wanted, "both find the same");
        }
        let most = 1.5 * plainly.p50() + 1.0;
        report.add(Line {
            what: format!("rag_search, vector, k = 10, {size} chunks among {}", SIZES.iter().sum::<usize>()),
            found: searching.shown(),
            beside: format!("the same SQL with a constant {}", plainly.shown()),
            ratio: format!("{:.2} ×", searching.p50() / plainly.p50()),
            target: format!("≤ 1.5 × + 1 ms = {most:.3} ms"),
            reached: Some(searching.p50() <= most),
        });
    }
}

/// Gives an owner so many chunks with random vectors, 100 to a document, without the engine.
fn fill(admin: &mut Session, owner: &str, chunks: usize) {
    let documents = chunks / 100;
    admin.run(&format!(
        "CREATE TEMP TABLE made AS
             SELECT rag.new_id() AS id, d.id AS domain_id, d.owner, n
             FROM rag.domain d, generate_series(1, {documents}) n WHERE d.owner = 'role:{owner}';
         INSERT INTO rag.document (id, owner, uri, content, text, status, chunks, domain_id, updated_at)
             SELECT id, owner, 'bulk ' || n, 'made', 'made', 'done', 100, domain_id, '2020-01-01' FROM made;
         INSERT INTO rag.section (domain_id, id, document_id, ordinal, header_path, char_from, char_to)
             SELECT domain_id, id, id, 0, '{{}}', 0, 4 FROM made;
         INSERT INTO rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens, char_from, char_to, sha256)
             SELECT domain_id, gen_random_uuid(), id, id, c, 'made', '', 1, 0, 4, '' FROM made, generate_series(0, 99) c;
         INSERT INTO rag.embedding (vector_space_id, domain_id, chunk_id, vector)
             SELECT s.id, k.domain_id, k.id,
                    l2_normalize((SELECT array_agg(random() - 0.5 + 0 * (k.ordinal + g)) FROM generate_series(1, s.dimension) g)::real[]::halfvec)
             FROM rag.vector_space s, rag.chunk k JOIN made m ON m.id = k.document_id;
         DROP TABLE made"
    ));
}
