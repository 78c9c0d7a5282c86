//! What is asked: three sets of questions, each over documents of its own.

use rag_benches::{
    Corpus, Document, Ingested, KeptVectors, Library, digest, eval_data, model_digest, set_by_make,
};
use rag_tests::{Cluster, Session};
use serde::Deserialize;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Names of the sets, in the order in which they are asked.
pub(crate) const NAMES: [&str; 3] = ["clapnq", "xquad-en", "manual"];

/// Part, kind, page, words that the answer must hold, question. The first and second half were written before anything was tuned,
/// the others afterwards; those without a page have no answer.
const MANUAL_QUESTIONS: &str = include_str!("manual-questions.tsv");

/// Questions of XQuAD that are asked where nobody says how many.
const DEFAULT_QUESTIONS: usize = 200;

/// Stands before ids in uris. What follows names no file, so a document is known by its title.
const SCHEME: &str = "set://";

/// A part of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// To which weights are fitted.
    First,
    /// By which they are judged.
    Second,
    /// Written later, by somebody who had not seen an answer; what was wrong of them has been looked at.
    Third,
    /// The same, and nothing was changed because of them.
    Fourth,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::First, Self::Second, Self::Third, Self::Fourth];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "first half",
            Self::Second => "second half",
            Self::Third => "third",
            Self::Fourth => "fourth",
        }
    }

    /// By the last bit of the digest: ids are no numbers everywhere.
    fn of(id: &str) -> Self {
        if digest(id.as_bytes())[31] & 1 == 1 { Self::First } else { Self::Second }
    }
}

/// A question and what is known of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// What sort it is, as its set has it.
    pub(crate) kind: String,
    pub(crate) part: Part,
    /// Uris of the documents that answer it; none where there is no answer.
    pub(crate) documents: HashSet<String>,
    /// Uris of documents that are not to be seen when it is asked.
    pub(crate) hidden: Vec<String>,
    pub(crate) gold: Gold,
}

/// What an answer must hold, one of them.
#[derive(Debug, Clone)]
pub(crate) enum Gold {
    /// There is no answer.
    Nothing,
    /// Sentences of the document that support the answer: a quote must be or hold one.
    Sentences(Vec<String>),
    /// Texts that the answer must hold.
    Texts(Vec<String>),
}

impl Question {
    pub(crate) fn is_answerable(&self) -> bool {
        !matches!(self.gold, Gold::Nothing)
    }

    /// The filter that it is asked with.
    pub(crate) fn filter(&self) -> serde_json::Value {
        match &self.hidden[..] {
            [] => serde_json::json!({}),
            hidden => serde_json::json!({ "uri": { "nin": hidden } }),
        }
    }
}

/// A set of questions in a database with its documents.
pub(crate) struct Asked<'a> {
    pub(crate) name: &'static str,
    pub(crate) questions: Vec<Question>,
    pub(crate) session: Session,
    pub(crate) library: Library<'a>,
}

/// Reads a set and ingests its documents, with the vectors that were kept.
pub(crate) fn ingest<'a>(cluster: &'a Cluster, name: &'static str) -> Asked<'a> {
    eprintln!("{name}: ingesting");
    let library = Library::new(cluster, &format!("answers_{}", name.replace('-', "_")));
    let mut kept = KeptVectors::open(&format!("{name}.vectors"), &model_digest());
    let (questions, ingested) = match name {
        "manual" => {
            let folder = set_by_make("RAG_BENCH_MANUAL");
            (
                manual_questions(),
                library.ingest_with(&mut kept, || ingest_manual(&library, Path::new(&folder))),
            )
        }
        _ => {
            let data = eval_data()
                .unwrap_or_else(|| panic!("RAG_EVAL_DATA is not set: it names the folder with {name}"));
            let corpus = Corpus::read(&data, name);
            let questions = if name == "clapnq" {
                clapnq_questions(&data.join(name), &corpus)
            } else {
                xquad_questions(&corpus)
            };
            let documents: Vec<Document> = corpus
                .documents
                .iter()
                .map(|document| Document { id: format!("{SCHEME}{}", document.id), ..document.clone() })
                .collect();
            (questions, library.ingest_with(&mut kept, || library.ingest(&documents)))
        }
    };
    println!(
        "{name}: {} questions, {} chunks ingested in {:.1} s, of which {} were embedded anew",
        questions.len(),
        ingested.chunks,
        ingested.time.as_secs_f64(),
        ingested.embedded,
    );
    Asked { name, questions, session: library.session(), library }
}

/// All pages but the index of the book, which is a list of links.
fn ingest_manual(library: &Library<'_>, folder: &Path) -> Ingested {
    let mut pages: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "html"))
        .filter(|path| path.file_stem().is_none_or(|name| name != "bookindex"))
        .collect();
    pages.sort();
    library.ingest_by(pages.len(), |transaction| {
        for page in &pages {
            let uri = page.file_name().unwrap().to_str().unwrap();
            let html = fs::read_to_string(page).unwrap();
            transaction
                .execute(
                    "INSERT INTO rag.document (uri, media_type, content) VALUES ($1, 'text/html', $2)",
                    &[&uri, &html],
                )
                .unwrap();
        }
    })
}

fn manual_questions() -> Vec<Question> {
    MANUAL_QUESTIONS
        .lines()
        .skip(1)
        .enumerate()
        .map(|(row, line)| {
            let [part, kind, page, holds, text] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("manual-questions.tsv, row {row}: five columns are wanted")
            };
            Question {
                text: text.to_owned(),
                kind: kind.to_owned(),
                part: match part {
                    "1" => Part::First,
                    "2" => Part::Second,
                    "3" => Part::Third,
                    "4" => Part::Fourth,
                    _ => panic!("manual-questions.tsv, row {row}: there is no part {part}"),
                },
                documents: [page].into_iter().filter(|page| !page.is_empty()).map(str::to_owned).collect(),
                hidden: Vec::new(),
                gold: if page.is_empty() { Gold::Nothing } else { Gold::Texts(vec![holds.to_owned()]) },
            }
        })
        .collect()
}

/// A question of ClapNQ with the sentences that support its answer.
#[derive(Deserialize)]
struct Supported {
    id: String,
    input: String,
    passages: Vec<Passage>,
    output: Vec<Output>,
}

#[derive(Deserialize)]
struct Passage {
    text: String,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    selected_sentences: Vec<String>,
}

/// The questions of ClapNQ, those with an answer first.
pub(crate) fn clapnq_texts(folder: &Path) -> Vec<String> {
    let of_file = |file: &str| -> Vec<String> {
        let lines = fs::read_to_string(folder.join(file)).unwrap();
        lines.lines().map(|line| serde_json::from_str::<Supported>(line).unwrap().input).collect()
    };
    ["answerable.jsonl", "unanswerable.jsonl"].into_iter().flat_map(of_file).collect()
}

fn clapnq_questions(folder: &Path, corpus: &Corpus) -> Vec<Question> {
    let mut questions = Vec::new();
    for (file, is_answerable) in [("answerable.jsonl", true), ("unanswerable.jsonl", false)] {
        for line in fs::read_to_string(folder.join(file)).unwrap().lines() {
            let Supported { id, input, passages, output } = serde_json::from_str(line).unwrap();
            let texts: Vec<String> = passages.into_iter().map(|passage| passage.text).collect();
            let of_passage = corpus.documents.iter().filter(|document| texts.contains(&document.text));
            let documents = of_passage.map(|document| format!("{SCHEME}{}", document.id)).collect();
            let sentences = output.into_iter().flat_map(|output| output.selected_sentences).collect();
            questions.push(Question {
                part: Part::of(&id),
                text: input,
                kind: if is_answerable { "answerable" } else { "unanswerable" }.to_owned(),
                documents: if is_answerable { documents } else { HashSet::new() },
                hidden: Vec::new(),
                gold: if is_answerable { Gold::Sentences(sentences) } else { Gold::Nothing },
            });
        }
    }
    questions
}

/// Each question twice: once of all paragraphs, once without the one that answers it.
fn xquad_questions(corpus: &Corpus) -> Vec<Question> {
    let all = corpus.judged_queries().count();
    let wanted =
        std::env::var("RAG_BENCH_QUESTIONS").map_or(DEFAULT_QUESTIONS, |count| count.parse().unwrap());
    let step = all.checked_div(wanted).unwrap_or(1).max(1);
    let mut questions = Vec::new();
    for query in corpus.judged_queries().step_by(step) {
        let documents: HashSet<String> = query.relevant.iter().map(|id| format!("{SCHEME}{id}")).collect();
        let answerable = Question {
            text: query.text.clone(),
            kind: "answerable".to_owned(),
            part: Part::of(&query.id),
            documents: documents.clone(),
            hidden: Vec::new(),
            gold: Gold::Texts(query.answers.clone()),
        };
        questions.push(Question {
            kind: "without its paragraph".to_owned(),
            documents: HashSet::new(),
            hidden: documents.into_iter().collect(),
            gold: Gold::Nothing,
            ..answerable.clone()
        });
        questions.push(answerable);
    }
    questions
}
