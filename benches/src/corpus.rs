//! Test collections in the layout of BEIR: `corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`; and ClapNQ in its own:
//! `answerable.jsonl` and `unanswerable.jsonl`, whose passages are one collection.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// One text to be found.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its id in the collection.
    pub id: String,
    /// May be empty.
    pub title: String,
    /// Its text.
    pub text: String,
}

impl Document {
    /// Title, line break, text.
    pub fn titled_text(&self) -> String {
        format!("{}\n{}", self.title, self.text)
    }
}

/// One question.
#[derive(Debug, Clone)]
pub struct Query {
    /// Its id in the collection.
    pub id: String,
    /// As it is asked.
    pub text: String,
    /// Ids of the documents that people judged relevant; empty where there is no judgement.
    pub relevant: HashSet<String>,
    /// Answers as they stand in a relevant document, where the collection has them.
    pub answers: Vec<String>,
}

/// A test collection.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// Its folder's name.
    pub name: String,
    /// All texts.
    pub documents: Vec<Document>,
    /// All questions, judged or not.
    pub queries: Vec<Query>,
    /// Whether documents were left out, so that figures do not compare with published ones.
    pub is_partial: bool,
}

/// The folder that `RAG_EVAL_DATA` names, if it is set.
pub fn eval_data() -> Option<PathBuf> {
    std::env::var_os("RAG_EVAL_DATA").filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Corpus {
    /// Reads the collection in `data/name`.
    pub fn read(data: &Path, name: &str) -> Self {
        let folder = data.join(name);
        let (documents, queries) =
            if folder.join("answerable.jsonl").exists() { read_clapnq(&folder) } else { read_beir(&folder) };
        Self { name: name.to_owned(), documents, queries, is_partial: false }
    }

    /// The same collection with other letters: each of a to z is the 13th after it. A language that no model knows, and
    /// that is searched by words as well as the one it was.
    #[must_use]
    pub fn rotated(mut self) -> Self {
        for document in &mut self.documents {
            document.title = rotated(&document.title);
            document.text = rotated(&document.text);
        }
        for query in &mut self.queries {
            query.text = rotated(&query.text);
        }
        self
    }

    /// The questions with judgements.
    pub fn judged_queries(&self) -> impl Iterator<Item = &Query> {
        self.queries.iter().filter(|query| !query.relevant.is_empty())
    }

    /// Keeps `count` documents: the relevant ones of as many questions as two thirds of them hold, at most `count`, then
    /// others in their order. The other questions lose their judgements.
    #[must_use]
    pub fn limited_to(mut self, count: usize) -> Self {
        if self.documents.len() <= count {
            return self;
        }
        let mut relevant: HashSet<String> = HashSet::new();
        let mut asked = 0;
        for query in &mut self.queries {
            let more = query.relevant.difference(&relevant).count();
            if asked < count && relevant.len() + more <= count * 2 / 3 {
                relevant.extend(query.relevant.iter().cloned());
                asked += usize::from(!query.relevant.is_empty());
            } else {
                query.relevant.clear();
            }
        }
        let (mut kept, others): (Vec<Document>, Vec<Document>) = std::mem::take(&mut self.documents)
            .into_iter()
            .partition(|document| relevant.contains(&document.id));
        let room = count.saturating_sub(kept.len());
        kept.extend(others.into_iter().take(room));
        Self { documents: kept, is_partial: true, ..self }
    }
}

/// A line of `corpus.jsonl` or `queries.jsonl`.
#[derive(Deserialize)]
struct Record {
    _id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    answers: Vec<String>,
}

fn read_beir(folder: &Path) -> (Vec<Document>, Vec<Query>) {
    let mut judged = judgements(&folder.join("qrels/test.tsv"));
    let document = |Record { _id: id, title, text, .. }| Document { id, title, text };
    let mut query = |Record { _id: id, text, answers, .. }| {
        let relevant = judged.remove(&id).unwrap_or_default();
        Query { id, text, relevant, answers }
    };
    let documents = records(&folder.join("corpus.jsonl")).into_iter().map(document).collect();
    (documents, records(&folder.join("queries.jsonl")).into_iter().map(&mut query).collect())
}

/// A question of ClapNQ with the passage that was shown to whoever looked for an answer.
#[derive(Deserialize)]
struct Shown {
    id: String,
    input: String,
    passages: Vec<Passage>,
}

#[derive(Deserialize)]
struct Passage {
    title: String,
    text: String,
}

/// Passages of all questions, those without an answer too. The answerable questions are asked, and each one's passage
/// is what is relevant.
fn read_clapnq(folder: &Path) -> (Vec<Document>, Vec<Query>) {
    let mut documents: Vec<Document> = Vec::new();
    let mut queries = Vec::new();
    let mut ids: HashMap<String, String> = HashMap::new();
    for (file, is_asked) in [("answerable.jsonl", true), ("unanswerable.jsonl", false)] {
        for Shown { id, input, passages } in records(&folder.join(file)) {
            let mut relevant = HashSet::new();
            for Passage { title, text } in passages {
                let known = ids.entry(text.clone()).or_insert_with(|| {
                    let id = format!("p{}", documents.len());
                    documents.push(Document { id: id.clone(), title, text });
                    id
                });
                relevant.insert(known.clone());
            }
            if is_asked {
                queries.push(Query { id, text: input, relevant, answers: Vec::new() });
            }
        }
    }
    (documents, queries)
}

/// Each line.
fn records<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let record =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().filter(|line| !line.is_empty()).map(record).collect()
}

/// Each ASCII letter moved by 13 places.
fn rotated(text: &str) -> String {
    let turn = |c: char, first: u8| char::from((c as u8 - first + 13) % 26 + first);
    text.chars()
        .map(|c| match c {
            'a'..='z' => turn(c, b'a'),
            'A'..='Z' => turn(c, b'A'),
            _ => c,
        })
        .collect()
}

/// The relevant documents of each query. Grades count as relevant or not.
fn judgements(path: &Path) -> HashMap<String, HashSet<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut judged: HashMap<String, HashSet<String>> = HashMap::new();
    for line in text.lines().skip(1) {
        if let [query, document, grade] = line.split('\t').collect::<Vec<_>>()[..]
            && grade.trim().parse::<i32>().unwrap() > 0
        {
            judged.entry(query.to_owned()).or_default().insert(document.to_owned());
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_holds_every_document_that_its_questions_want() {
        let document = |id: usize| Document { id: id.to_string(), title: String::new(), text: String::new() };
        let query = |first: usize| Query {
            id: first.to_string(),
            text: String::new(),
            relevant: (first..first + 2).map(|id| id.to_string()).collect(),
            answers: Vec::new(),
        };
        let whole = Corpus {
            name: "test".into(),
            documents: (0..100).map(document).collect(),
            queries: (0..20).map(|n| query(n * 5)).collect(),
            is_partial: false,
        };
        let part = whole.clone().limited_to(12);
        assert!(part.is_partial);
        assert_eq!((part.documents.len(), part.judged_queries().count()), (12, 4));
        let kept: HashSet<&String> = part.documents.iter().map(|document| &document.id).collect();
        assert!(part.judged_queries().all(|query| query.relevant.iter().all(|id| kept.contains(id))));
        assert!(!whole.limited_to(100).is_partial);
    }
    #[test]
    fn rotated_twice_is_as_before() {
        assert_eq!(rotated("Zum Abend, 3 é!"), "Mhz Noraq, 3 é!");
        assert_eq!(rotated(&rotated("Zum Abend, 3 é!")), "Zum Abend, 3 é!");
    }

    #[test]
    fn passages_of_unanswerable_questions_are_to_be_found_too_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: &str, text: &str| {
            format!(
                r#"{{"id":"{id}","input":"q{id}","passages":[{{"title":"t","text":"{text}"}}],"output":[]}}"#
            )
        };
        let write = |name: &str, lines: &[String]| {
            fs::write(folder.path().join(name), lines.join("\n") + "\n").unwrap();
        };
        write("answerable.jsonl", &[line("1", "a"), line("2", "b")]);
        write("unanswerable.jsonl", &[line("3", "b"), line("4", "c")]);
        let corpus = Corpus::read(folder.path(), "");
        assert_eq!((corpus.documents.len(), corpus.judged_queries().count()), (3, 2));
        assert_eq!(corpus.queries[1].relevant, ["p1".to_owned()].into());
    }
}
