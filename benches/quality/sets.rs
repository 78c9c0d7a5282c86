//! What is searched: the test collections, and each in a database of its own.

use rag_benches::{
    Corpus, Document, Engine, KeptVectors, Library, Outcome, Query, digest, eval_data, model_digest,
};
use rag_tests::{Cluster, Session};
use rag_wire::{Lane, TextRole};
use std::collections::HashMap;

/// Rows of a search: four chunks for each of 25 documents, as `rag_evaluate` asks for.
const K: i32 = 100;

/// Kept vectors that are computed anew, to see that the engine still makes the same.
const SAMPLE: usize = 12;

/// Bytes of a text that the model surely takes whole: the engine refuses a longer one, which only ingestion cuts.
const SHORT: usize = 1_500;

/// Stands before ids in uris. What follows names no file, so a document is known by its title.
const SCHEME: &str = "set://";

/// A test collection and how it is searched.
pub(crate) struct Set {
    pub(crate) corpus: Corpus,
    /// As tables call it.
    pub(crate) title: &'static str,
    /// Whether it stands for languages that no model knows.
    pub(crate) is_rotated: bool,
    /// What its collection says it is in.
    language: &'static str,
}

/// Folder, title, whether letters are rotated, language of the collection.
const SETS: [(&str, &str, bool, &str); 7] = [
    ("scifact", "SciFact", false, "english"),
    ("cranfield", "Cranfield", false, "english"),
    ("xquad-en", "XQuAD en", false, "english"),
    ("xquad-de", "XQuAD de", false, "german"),
    ("clapnq", "ClapNQ", false, "english"),
    ("xquad-en", "XQuAD en, letters rotated", true, "english"),
    ("xquad-en", "XQuAD en, letters rotated, said to be Russian", true, "russian"),
];

/// Names of the folders, each once.
pub(crate) fn folders() -> Vec<&'static str> {
    let mut names: Vec<&str> = SETS.iter().map(|(folder, ..)| *folder).collect();
    names.dedup();
    names
}

/// Reads the sets of these folders, or all; of each a part where `documents` says how many SciFact and Cranfield have,
/// the others a third of that. `None` where nothing says where they are.
pub(crate) fn read(chosen: &[String], documents: Option<usize>) -> Option<Vec<Set>> {
    let data = eval_data()?;
    let wanted = |folder: &str| chosen.is_empty() || chosen.iter().any(|name| name == folder);
    let read = |(folder, title, is_rotated, language): (&'static str, _, _, _)| {
        let whole = Corpus::read(&data, folder);
        let corpus = match (documents, folder) {
            (None, _) => whole,
            (Some(count), "scifact" | "cranfield") => whole.limited_to(count),
            (Some(count), _) => whole.limited_to(count / 3),
        };
        let corpus = if is_rotated { corpus.rotated() } else { corpus };
        Set { corpus, title, is_rotated, language }
    };
    Some(SETS.into_iter().filter(|(folder, ..)| wanted(folder)).map(read).collect())
}

impl Set {
    fn kept_vectors(&self) -> KeptVectors {
        let suffix = if self.is_rotated { "-rotated" } else { "" };
        KeptVectors::open(&format!("{}{suffix}.vectors", self.corpus.name), &model_digest())
    }
}

/// A set in a database, and what was found out there.
pub(crate) struct Searched<'a> {
    pub(crate) set: &'a Set,
    session: Session,
    known: HashMap<(String, String), Outcome>,
    // Dropped last.
    _library: Library<'a>,
}

impl<'a> Searched<'a> {
    /// Ingests a set, with the vectors that were kept.
    pub(crate) fn ingest(cluster: &'a Cluster, set: &'a Set) -> Self {
        eprintln!("{}: ingesting", set.title);
        let mut kept = set.kept_vectors();
        drop_stale(&set.corpus, &mut kept);
        let library = Library::new(cluster, &set.corpus.name.replace('-', "_"));
        let mut session = library.session();
        session.run(&format!("SELECT rag_create_collection('default', language => '{}')", set.language));
        let documents: Vec<Document> = set
            .corpus
            .documents
            .iter()
            .map(|document| Document { id: format!("{SCHEME}{}", document.id), ..document.clone() })
            .collect();
        let ingested = library.ingest_with(&mut kept, || library.ingest(&documents));
        println!(
            "{}: {} documents, {} questions, {} chunks ingested in {:.1} s, of which {} were embedded anew",
            set.title,
            documents.len(),
            set.corpus.judged_queries().count(),
            ingested.chunks,
            ingested.time.as_secs_f64(),
            ingested.embedded,
        );
        Self { set, session, known: HashMap::new(), _library: library }
    }

    /// What a search comes to on all questions that have a judgement. The same search is not made twice.
    pub(crate) fn outcome(&mut self, mode: &str, options: &str) -> Outcome {
        let key = (mode.to_owned(), options.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let questions: Vec<&Query> = self.set.corpus.judged_queries().collect();
        let outcome = self.outcome_on(&questions, mode, options);
        self.known.insert(key, outcome.clone());
        outcome
    }

    /// What a search comes to on some questions. One that is to rerank and did not is an end of it all.
    pub(crate) fn outcome_on(&mut self, questions: &[&Query], mode: &str, options: &str) -> Outcome {
        eprintln!("{}: {} questions, {mode} {options}", self.set.title, questions.len());
        let client = self.session.client();
        let search = client
            .prepare(&format!(
                "SELECT uri, rerank_score FROM rag_search($1, k => {K}, mode => $2, options => $3::text::jsonb)
                 ORDER BY rank"
            ))
            .unwrap();
        let reranks = options.contains("rerank");
        Outcome::measure(questions.iter().copied(), |query| {
            let rows = client.query(&search, &[&query.text, &mode, &options]).unwrap();
            let is_reranked =
                rows.first().is_some_and(|row| row.get::<_, Option<f64>>("rerank_score").is_some());
            assert_eq!(is_reranked, reranks && !rows.is_empty(), "{}: the reranker", query.text);
            // A document stands where its first chunk stands.
            let mut ranked: Vec<String> = Vec::with_capacity(rows.len());
            for uri in rows.iter().map(|row| row.get::<_, &str>("uri")) {
                let id = uri.strip_prefix(SCHEME).unwrap();
                if ranked.iter().all(|known| known != id) {
                    ranked.push(id.to_owned());
                }
            }
            ranked
        })
    }
}

/// Forgets kept vectors if the engine makes others now.
fn drop_stale(corpus: &Corpus, kept: &mut KeptVectors) {
    // Most documents are one chunk, embedded with their title.
    let known: Vec<String> = corpus
        .documents
        .iter()
        .map(Document::titled_text)
        .filter(|text| text.len() <= SHORT && kept.get(&digest(text.as_bytes())).is_some())
        .collect();
    let sample: Vec<String> =
        known.iter().step_by((known.len() / SAMPLE).max(1)).take(SAMPLE).cloned().collect();
    if sample.is_empty() {
        kept.clear();
        return;
    }
    let vectors = Engine::start().connect().embed(Lane::Bulk, TextRole::Passage, sample.clone());
    let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let agrees = |text: &String, vector: &Vec<f32>| {
        // Kept ones were stored with half the precision, so they are not quite of length 1.
        let kept = kept.get(&digest(text.as_bytes())).unwrap();
        dot(kept, vector) / dot(kept, kept).sqrt() > 0.9999
    };
    if !sample.iter().zip(&vectors).all(|(text, vector)| agrees(text, vector)) {
        eprintln!(
            "{}: the engine makes other vectors than those that were kept: all are made anew",
            corpus.name
        );
        kept.clear();
    }
}
