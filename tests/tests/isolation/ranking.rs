//! Other people's rows change neither a score nor a count.

use rag_tests::{Database, Session};

/// Every number and id of a search, exactly as printed, which is enough to tell every bit.
fn numbers(session: &mut Session, mode: &str) -> Vec<Vec<Option<String>>> {
    session.rows(&format!(
        "SELECT chunk_id, rank, score, keyword_rank, keyword_score, vector_rank, vector_score FROM rag_search('zebra stripes', k => 1000, mode => '{mode}')"
    ))
}

#[test]
fn scores_are_the_same_to_the_last_bit_after_another_owner_adds_200_documents() {
    let database = Database::new("scores");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    for (uri, text) in [
        ("one", "A zebra has stripes."),
        ("two", "The zebra crossing is painted with white stripes on the road."),
        ("three", "No two animals look alike. Stripes differ."),
        ("four", "Horses are related to the zebra and to the donkey."),
        ("five", "A sentence about boats and nothing else."),
    ] {
        ann.ingest(text, uri);
    }
    let before: Vec<_> = ["keyword", "vector", "hybrid"].iter().map(|mode| numbers(&mut ann, mode)).collect();
    assert_eq!(before[0].len(), 4);
    bob.run(
        "INSERT INTO rag.document (uri, content)
         SELECT 'z' || n, 'Zebra number ' || n || ' shows its zebra stripes to the other zebra.' FROM generate_series(1, 200) n",
    );
    bob.settle();
    assert_eq!(bob.count("SELECT count(*) FROM rag_search('zebra', k => 1000, mode => 'keyword')"), 200);
    let after: Vec<_> = ["keyword", "vector", "hybrid"].iter().map(|mode| numbers(&mut ann, mode)).collect();
    assert_eq!(before, after);
    let mut admin = database.admin();
    admin.run("VACUUM ANALYZE");
    let analysed: Vec<_> =
        ["keyword", "vector", "hybrid"].iter().map(|mode| numbers(&mut ann, mode)).collect();
    assert_eq!(before, analysed);
    bob.run("DELETE FROM rag.document");
    assert_eq!(before[0], numbers(&mut ann, "keyword"));
}

/// Gives the only document of this session's role `copies` more chunks, all with its own vector.
fn multiply_chunks(database: &Database<'_>, document: &str, copies: usize) {
    database.leave_damaged();
    let mut admin = database.admin();
    admin.run(&format!(
        "WITH model AS (SELECT c.*, e.vector_space_id, e.vector FROM rag.chunk c JOIN rag.embedding e ON e.chunk_id = c.id WHERE c.document_id = '{document}'),
              copies AS MATERIALIZED (SELECT m.*, rag.new_id() AS new_id, n FROM model m, generate_series(1, {copies}) n),
              chunks AS (INSERT INTO rag.chunk SELECT domain_id, new_id, document_id, section_id, ordinal + n, content, context, tokens,
                                                      char_from, char_to, page_from, page_to, sha256 FROM copies)
         INSERT INTO rag.embedding (vector_space_id, domain_id, chunk_id, vector) SELECT vector_space_id, domain_id, new_id, vector FROM copies"
    ));
}

#[test]
fn fifty_far_chunks_come_in_full_beside_20_000_near_ones_of_another() {
    let database = Database::new("fifty");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let near = bob.ingest("The lighthouse keeper lights the lamp of the lighthouse.", "near");
    multiply_chunks(&database, &near, 20_000);
    for n in 0..100 {
        bob.ingest(&format!("Lighthouse lamp number {n} of the lighthouse keeper."), &format!("lamp{n}"));
    }
    let recipes = ["soup", "bread", "salad", "roast", "cake"];
    for n in 0..50 {
        let dish = recipes[n % recipes.len()];
        ann.ingest(
            &format!("Recipe {n}: a {dish} with onions, served in a lighthouse."),
            &format!("recipe{n}"),
        );
    }
    database.admin().run("ANALYZE");
    let query = "lighthouse lamp";
    for (mode, method) in [
        ("keyword", ""),
        ("vector", ""),
        ("hybrid", ""),
        ("vector", "SET rag_ext.exact_search_limit = 10"),
        ("hybrid", "SET rag_ext.exact_search_limit = 10"),
    ] {
        ann.run(if method.is_empty() { "RESET rag_ext.exact_search_limit" } else { method });
        for k in [1, 10, 50, 1000] {
            let rows = ann.rows(&format!(
                "SELECT s.chunk_id, d.owner FROM rag_search('{query}', k => {k}, mode => '{mode}') s LEFT JOIN rag.document d ON d.id = s.document_id"
            ));
            assert_eq!(rows.len(), k.min(50), "{mode} {method} {k}");
            let owner = format!("role:{}", database.role_name("ann"));
            assert!(rows.iter().all(|row| row[1].as_deref() == Some(owner.as_str())), "{mode} {method}");
        }
    }
    ann.run("RESET rag_ext.exact_search_limit");
    let exact = ann.column(&format!("SELECT chunk_id FROM rag_search('{query}', k => 50, mode => 'vector')"));
    ann.run("SET rag_ext.exact_search_limit = 10");
    let forced =
        ann.column(&format!("SELECT chunk_id FROM rag_search('{query}', k => 50, mode => 'vector')"));
    assert_eq!(exact, forced);
    let ranks = ann
        .rows(&format!("SELECT count(keyword_rank), count(vector_rank) FROM rag_search('{query}', k => 50)"));
    assert_eq!(ranks[0], [Some("50".into()), Some("50".into())]);
}

#[test]
fn codes_find_what_comparing_all_vectors_finds_whoever_looks_and_whatever_is_filtered() {
    let database = Database::new("codes");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    bob.run(
        "INSERT INTO rag.document (uri, content, metadata)
         SELECT 'lamp' || n, 'Lamp ' || n || ' of lighthouse ' || n % 7, jsonb_build_object('n', n % 10)
         FROM generate_series(1, 300) n",
    );
    ann.run(
        "INSERT INTO rag.document (uri, content)
         SELECT 'tip' || n, 'Gardening tip ' || n || ': water the tomatoes.' FROM generate_series(1, 30) n",
    );
    let book = bob.ingest_book();
    bob.settle();
    ann.settle();
    // Some are gone, and still in the segments.
    bob.run("DELETE FROM rag.document WHERE uri IN ('lamp7', 'lamp70')");
    let codes = database.admin().count("SELECT count(*) FROM rag.segment_codes");
    assert!(codes > 0, "no segment is large enough");
    let search = |session: &mut Session, filter: &str, k: usize| {
        session.rows(&format!(
            "SELECT uri, score, details -> 'stages' FROM rag_search('the lamp of a lighthouse', k => {k}, mode => 'vector',
                 filter => {filter}, options => '{{\"near_duplicates\": \"keep\"}}')"
        ))
    };
    let methods = |rows: &[Vec<Option<String>>]| rows[0][2].clone().unwrap();
    for (session, all, tenth, gone) in [(&mut bob, 298 + book, 30, 1), (&mut ann, 30, 0, 0)] {
        // What a filter lets through is listed, or asked about.
        for (filter, listed, there) in [
            ("NULL", 0, all),
            ("'{\"n\": 3}'", 10_000, tenth),
            ("'{\"n\": 3}'", 0, tenth),
            ("'{\"n\": {\"gt\": 3}}'", 0, 6 * tenth - gone),
        ] {
            session.run(&format!("SET rag_ext.filter_list_limit = {listed}"));
            for k in [1, 5, 30, 1000] {
                session.run("SET rag_ext.exact_search_limit = 100000");
                let exact = search(session, filter, k);
                session.run("SET rag_ext.exact_search_limit = 0");
                let coded = search(session, filter, k);
                let hits =
                    |rows: &[Vec<Option<String>>]| rows.iter().map(|r| r[..2].to_vec()).collect::<Vec<_>>();
                assert_eq!(coded.len(), k.min(there), "{filter} {listed} {k}");
                assert_eq!(hits(&coded), hits(&exact), "{filter} {listed} {k}");
                if there > 0 {
                    assert!(methods(&exact).contains("\"exact\""), "{}", methods(&exact));
                    assert!(methods(&coded).contains("\"rabitq\""), "{}", methods(&coded));
                }
            }
        }
    }
}
