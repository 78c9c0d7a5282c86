//! Test collections in the layout of BEIR: `corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`.

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
        let mut judged = judgements(&folder.join("qrels/test.tsv"));
        let documents = records(&folder.join("corpus.jsonl"))
            .into_iter()
            .map(|mut fields| Document {
                id: fields.remove("_id").unwrap(),
                title: fields.remove("title").unwrap_or_default(),
                text: fields.remove("text").unwrap_or_default(),
            })
            .collect();
        let queries = records(&folder.join("queries.jsonl"))
            .into_iter()
            .map(|mut fields| {
                let id = fields.remove("_id").unwrap();
                let relevant = judged.remove(&id).unwrap_or_default();
                Query { id, text: fields.remove("text").unwrap_or_default(), relevant }
            })
            .collect();
        Self { name: name.to_owned(), documents, queries, is_partial: false }
    }

    /// The questions with judgements.
    pub fn judged_queries(&self) -> impl Iterator<Item = &Query> {
        self.queries.iter().filter(|query| !query.relevant.is_empty())
    }

    /// Keeps `count` documents: the relevant ones of as many questions as two thirds of them hold, then others in
    /// their order. The other questions lose their judgements.
    #[must_use]
    pub fn limited_to(mut self, count: usize) -> Self {
        if self.documents.len() <= count {
            return self;
        }
        let mut relevant: HashSet<String> = HashSet::new();
        for query in &mut self.queries {
            let more = query.relevant.difference(&relevant).count();
            if relevant.len() + more <= count * 2 / 3 {
                relevant.extend(query.relevant.iter().cloned());
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

/// The text fields of each line.
fn records(path: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let record = |line: &str| {
        let fields: HashMap<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        fields.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
    };
    text.lines().filter(|line| !line.is_empty()).map(record).collect()
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
}
