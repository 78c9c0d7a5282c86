//! Whether vector search finds the nearest chunks: those that plain SQL finds by comparing all of them.

use crate::figures::Figures;
use crate::owner::Owner;
use crate::questions::{Form, Questions};
use crate::searches::{Filter, SEARCHES};
use rag_benches::{Library, uuid};
use rag_tests::{Session, literal};

/// Neighbours that are looked for.
const NEIGHBOURS: usize = 10;

/// Queries that are asked.
const QUERIES: usize = 50;

pub(crate) fn measure(
    figures: &mut Figures,
    library: &Library<'_>,
    owner: &mut Owner,
    questions: &Questions,
) {
    let mut admin = library.admin();
    for search in SEARCHES.iter().filter(|search| search.mode == "vector") {
        let filter = search.filter.map_or_else(|| "NULL".into(), |filter| literal(filter.json));
        let (mut found, mut wanted) = (0, 0);
        for query in questions.of_form(search.form).iter().take(QUERIES) {
            // Whatever is alike counts here.
            let hits = owner.session.column(&format!(
                "SELECT chunk_id FROM rag_search({}, filter => {filter}, k => {NEIGHBOURS}, mode => 'vector',
                                                 options => '{{\"near_duplicates\": \"keep\"}}')",
                literal(query)
            ));
            let vector = vector_of(&mut owner.session, query);
            let nearest = admin.column(&nearest(owner, &vector, search.filter));
            wanted += nearest.len();
            found += nearest.iter().filter(|chunk| hits.contains(chunk)).count();
        }
        // A small owner may have nothing that passes the filter.
        if wanted > 0 {
            let share = found as f64 / wanted as f64;
            figures.add(&format!("recall@10, {}", search.name), owner.name, "share", share);
        }
    }
}

/// A query's vector, as pgvector reads it.
pub(crate) fn vector_of(session: &mut Session, query: &str) -> String {
    let vector = session.value(&format!("SELECT rag_embed({})::text", literal(query)));
    vector.replace('{', "[").replace('}', "]")
}

/// Vectors of sentences, in their order.
pub(crate) fn query_vectors(session: &mut Session, questions: &Questions) -> Vec<String> {
    questions.of_form(Form::Sentence).iter().map(|query| vector_of(session, query)).collect()
}

/// A statement for the nearest chunks of an owner, of documents that a filter lets through.
pub(crate) fn nearest(owner: &Owner, vector: &str, filter: Option<Filter>) -> String {
    let (from, condition) = match filter {
        None => ("rag.embedding e", "true"),
        Some(filter) => (
            "rag.embedding e JOIN rag.chunk c ON c.id = e.chunk_id JOIN rag.document d ON d.id = c.document_id",
            filter.condition,
        ),
    };
    // No index serves the second key.
    format!(
        "SELECT e.chunk_id FROM {from}
         WHERE e.vector_space_id = '{}' AND e.domain_id = '{}' AND {condition}
         ORDER BY e.vector <=> '{vector}'::halfvec, e.chunk_id LIMIT {NEIGHBOURS}",
        uuid(owner.space),
        uuid(owner.place.domain)
    )
}
