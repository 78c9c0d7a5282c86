//! The same written plainly, by the superuser, without any policy: `tsvector` with a GIN index and `ts_rank`, and all
//! vectors of the owner, or of the documents that a filter lets through, compared by pgvector.
//!
//! `websearch_to_tsquery` wants every word of the query, which few texts have, where `rag_search` ranks those that have
//! any: what asks for the same are the rows of one word, and those of a sentence with "or" between its words.

use crate::figures::Figures;
use crate::owner::Owner;
use crate::questions::{Form, Questions};
use crate::recall::{nearest, query_vectors};
use crate::searches::SEARCHES;
use rag_benches::{Library, best_times, uuid};
use rag_tests::{Session, literal};

/// What figures call it.
pub(crate) const PLAINLY: &str = "large, plainly";

/// The same of texts with any of the words.
pub(crate) const PLAINLY_ANY: &str = "large, plainly, any word";

pub(crate) fn measure(figures: &mut Figures, library: &Library<'_>, large: &Owner, questions: &Questions) {
    let mut admin = library.admin();
    let vectors = query_vectors(&mut admin, questions);
    for search in SEARCHES.iter().filter(|search| search.mode == "vector") {
        let [times] = best_times(vectors.len(), |_, at| {
            admin.rows(&nearest(large, &vectors[at], search.filter));
        });
        figures.add_times(search.name, PLAINLY, &times);
    }

    make_index(&mut admin, large);
    let mib = admin.float("SELECT pg_relation_size('plainly_v') / 1048576.0");
    figures.add("disk: GIN index of tsvector", PLAINLY, "MiB", mib);
    for (name, form, owner, tie) in [
        ("keyword, 1 word", Form::Word, PLAINLY, " "),
        ("keyword, 4 words", Form::Words, PLAINLY, " "),
        ("keyword, sentence", Form::Sentence, PLAINLY, " "),
        ("keyword, sentence", Form::Sentence, PLAINLY_ANY, " or "),
    ] {
        let queries = questions.of_form(form);
        let [times] = best_times(queries.len(), |_, at| {
            let query = queries[at].split_whitespace().collect::<Vec<_>>().join(tie);
            admin.rows(&format!(
                "SELECT id, ts_rank(v, q) FROM plainly, websearch_to_tsquery('english', {}) q
                 WHERE v @@ q ORDER BY 2 DESC LIMIT 10",
                literal(&query)
            ));
        });
        figures.add_times(name, owner, &times);
    }
}

fn make_index(admin: &mut Session, large: &Owner) {
    eprintln!("making a tsvector of each chunk");
    admin.run(&format!(
        "CREATE TABLE plainly AS
             SELECT id, setweight(to_tsvector('english', context), 'A') || to_tsvector('english', content) AS v
             FROM rag.chunk WHERE domain_id = '{}';
         CREATE INDEX plainly_v ON plainly USING gin (v)",
        uuid(large.place.domain)
    ));
    // Not in the same transaction as the table's making.
    admin.run("VACUUM ANALYZE plainly");
}
