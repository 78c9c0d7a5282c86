//! Ways of searching beside each other, and the same model run by ONNX Runtime directly.

use crate::sets::{Searched, Set};
use rag_benches::{Document, Half, KeptVectors, Outcome, Table, as_query, digest, embed_all, model_digest};

/// Name, mode and options of the searches.
pub(crate) const WAYS: [(&str, &str, &str); 4] = [
    ("keyword", "keyword", "{}"),
    ("vector", "vector", "{}"),
    ("hybrid, RRF", "hybrid", r#"{"fusion": "rrf"}"#),
    ("hybrid, weighted (default)", "hybrid", "{}"),
];

const DIRECT: &str = "the model alone, by ONNX Runtime";

/// What nDCG@10 must reach: set, keyword, hybrid by default.
const LEAST: [(&str, f64, f64); 2] = [("SciFact", 0.70, 0.745), ("Cranfield", 0.40, 0.445)];

/// Most that hybrid search may be behind the better retriever.
const MOST_BEHIND: f64 = 0.005;

/// Most that the vector retriever may differ from the model run directly, either way.
const MOST_DIFFERENCE: f64 = 0.005;
/// The same over the fewer questions of a part.
const MOST_DIFFERENCE_OF_PART: f64 = 0.01;

/// What one set came to.
pub(crate) struct Measured {
    pub(crate) title: &'static str,
    pub(crate) is_partial: bool,
    /// In the order of [`WAYS`]; empty where only the model was asked for.
    pub(crate) ways: Vec<Outcome>,
    /// The vector retriever, and the model alone.
    direct: Option<(Outcome, Outcome)>,
}

/// Searches in each way, if these are wanted; `direct` is what the model alone came to.
pub(crate) fn measure(searched: &mut Searched<'_>, all: bool, direct: Option<Outcome>) -> Measured {
    let ways = if all { &WAYS[..] } else { &[] };
    Measured {
        title: searched.set.title,
        is_partial: searched.set.corpus.is_partial,
        ways: ways.iter().map(|(_, mode, options)| searched.outcome(mode, options)).collect(),
        // The model alone knows of no near-duplicates.
        direct: direct.map(|alone| (searched.outcome("vector", r#"{"near_duplicates": "keep"}"#), alone)),
    }
}

/// The model alone: title, line break and text as one input, every document compared. Its time is that of comparing.
pub(crate) fn measure_directly(set: &Set) -> Outcome {
    eprintln!("{}: the model alone", set.title);
    let mut kept = KeptVectors::open("direct.vectors", &model_digest());
    let texts: Vec<String> = set.corpus.documents.iter().map(Document::titled_text).collect();
    let documents = embed_all(&texts, &mut kept);
    let questions: Vec<String> = set.corpus.judged_queries().map(|query| as_query(&query.text)).collect();
    embed_all(&questions, &mut kept);
    Outcome::measure(set.corpus.judged_queries(), |query| {
        let question = kept.get(&digest(as_query(&query.text).as_bytes())).unwrap();
        let cosine = |vector: &[f32]| -> f32 { question.iter().zip(vector).map(|(a, b)| a * b).sum() };
        let mut ranked: Vec<(f32, &str)> = documents
            .iter()
            .zip(&set.corpus.documents)
            .map(|(vector, document)| (cosine(vector), &document.id[..]))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        ranked.into_iter().take(100).map(|(_, id)| id.to_owned()).collect()
    })
}

pub(crate) fn print(measured: &[Measured]) {
    let mut columns = vec!["set", "way"];
    columns.extend(Outcome::COLUMNS);
    let mut table = Table::new(&columns);
    let mut add = |set: &Measured, way: &str, outcome: &Outcome, has_time: bool| {
        let title = if set.is_partial { format!("{} (part)", set.title) } else { set.title.to_owned() };
        let mut cells = outcome.cells();
        if !has_time {
            cells[5] = "–".into();
        }
        table.add([title, way.to_owned()].into_iter().chain(cells).collect());
    };
    for set in measured {
        for ((way, ..), outcome) in WAYS.iter().zip(&set.ways) {
            add(set, way, outcome, true);
        }
        if let Some((vector, direct)) = &set.direct {
            if set.ways.is_empty() {
                add(set, WAYS[1].0, vector, true);
            }
            add(set, DIRECT, direct, false);
        }
    }
    println!();
    table.print();
}

/// Compares with the targets; true if all are reached. Of parts only what does not depend on the size is compared.
pub(crate) fn judge(measured: &[Measured]) -> bool {
    let mut checks = Vec::new();
    let mut check = |text: String, holds: bool| checks.push((text, holds));
    for set in measured {
        let title = set.title;
        if let Some((vector, direct)) = &set.direct {
            let most = if set.is_partial { MOST_DIFFERENCE_OF_PART } else { MOST_DIFFERENCE };
            let difference = vector.ndcg(Half::Both) - direct.ndcg(Half::Both);
            let text = format!("{title}, vector: {difference:+.4} from the model alone, at most ±{most}");
            check(text, difference.abs() <= most);
        }
        let ndcg: Vec<f64> = set.ways.iter().map(|outcome| outcome.ndcg(Half::Both)).collect();
        let [keyword, vector, _, hybrid] = ndcg[..] else { continue };
        if set.is_partial {
            continue;
        }
        let behind = hybrid - keyword.max(vector);
        let text =
            format!("{title}, hybrid: {behind:+.4} from the better retriever, at least −{MOST_BEHIND}");
        check(text, behind >= -MOST_BEHIND);
        if let Some((_, least_keyword, least_hybrid)) = LEAST.iter().find(|(name, ..)| *name == title) {
            let text =
                |way: &str, found: f64, least: f64| format!("{title}, {way}: {found:.4}, at least {least}");
            check(text("keyword", keyword, *least_keyword), keyword >= *least_keyword);
            check(text("hybrid", hybrid, *least_hybrid), hybrid >= *least_hybrid);
            check(format!("{title}, hybrid: {behind:+.4} from the better retriever, above 0"), behind > 0.0);
        }
    }
    for (text, holds) in &checks {
        println!("{} {text}", if *holds { "ok  " } else { "MISS" });
    }
    checks.iter().all(|(_, holds)| *holds)
}
