//! Times of searches, and what they leave in a backend's memory.

use crate::figures::Figures;
use crate::owner::Owner;
use crate::questions::{Form, Questions};
use postgres::Statement;
use rag_benches::{Library, Times, best_times, own_mib};
use rag_tests::Session;

/// A way of searching.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// What figures call it.
    pub(crate) name: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) form: Form,
    pub(crate) filter: Option<Filter>,
}

/// A filter, and the same as a condition on `rag.document d`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) json: &'static str,
    pub(crate) condition: &'static str,
}

/// Lets 1 % of the documents through: see [`crate::owner::PARTS`].
const FEW: Filter = Filter { json: r#"{"part": 71}"#, condition: "(d.metadata->>'part')::int = 71" };

/// Lets 30 % of the documents through.
const MANY: Filter = Filter { json: r#"{"part": {"lt": 30}}"#, condition: "(d.metadata->>'part')::int < 30" };

/// All that are measured of the large owner.
pub(crate) const SEARCHES: [Search; 9] = [
    Search { name: "keyword, 1 word", mode: "keyword", form: Form::Word, filter: None },
    Search { name: "keyword, 4 words", mode: "keyword", form: Form::Words, filter: None },
    Search { name: "keyword, sentence", mode: "keyword", form: Form::Sentence, filter: None },
    Search { name: "vector", mode: "vector", form: Form::Sentence, filter: None },
    Search { name: "vector, filter 1 %", mode: "vector", form: Form::Sentence, filter: Some(FEW) },
    Search { name: "vector, filter 30 %", mode: "vector", form: Form::Sentence, filter: Some(MANY) },
    Search { name: "hybrid", mode: "hybrid", form: Form::Sentence, filter: None },
    Search { name: "hybrid, filter 1 %", mode: "hybrid", form: Form::Sentence, filter: Some(FEW) },
    Search { name: "hybrid, filter 30 %", mode: "hybrid", form: Form::Sentence, filter: Some(MANY) },
];

/// What figures call the small owner in the database of all, and in its own.
pub(crate) const BESIDE: &str = "small";
pub(crate) const ALONE: &str = "small, alone";

/// And how many times as long as alone they wait beside the others.
pub(crate) const RATIO: &str = "small / alone";

/// Times of all searches of the large owner, and the memory that a session of theirs has come to.
pub(crate) fn measure_large(
    figures: &mut Figures,
    library: &Library<'_>,
    large: &mut Owner,
    questions: &Questions,
) {
    embedding(figures, &mut large.session, questions);
    // Another backend looks at the same segments, as on any server with more than one session. It only searches, so its
    // memory is that of most sessions.
    let mut other = library.database().connect(library.role());
    let statement = prepared(&mut other);
    let before = own_mib(other.pid());
    for search in &SEARCHES {
        for query in questions.of_form(search.form) {
            run(&mut other, &statement, search, query);
        }
        let [times] = times_of(search, [&mut large.session], questions);
        figures.add_times(search.name, large.name, &times);
    }
    let after = own_mib(other.pid());
    figures.add("own memory, before", large.name, "MiB", before);
    figures.add("own memory, after", large.name, "MiB", after);
}

/// Times of the small owner beside the large one, and alone, in turn.
pub(crate) fn measure_small(
    figures: &mut Figures,
    beside: &mut Owner,
    alone: &mut Owner,
    questions: &Questions,
) {
    measure_beside(figures, beside, alone, [BESIDE, ALONE, RATIO], questions);
}

/// Times of an owner beside others, and of one alone, in turn; figures are called by these names, the last one that of the
/// ratio.
pub(crate) fn measure_beside(
    figures: &mut Figures,
    beside: &mut Owner,
    alone: &mut Owner,
    names: [&'static str; 3],
    questions: &Questions,
) {
    for search in SEARCHES.iter().filter(|search| search.filter.is_none()) {
        let times = times_of(search, [&mut beside.session, &mut alone.session], questions);
        for (owner, times) in names.into_iter().zip(&times) {
            figures.add_times(search.name, owner, times);
        }
        let [beside, alone] = times;
        figures.add(search.name, names[2], "×", beside.ratio_to(&alone));
    }
}

/// What the first search of a query in mode `vector` has to wait for, and none below.
fn embedding(figures: &mut Figures, session: &mut Session, questions: &Questions) {
    let embed = session.client().prepare("SELECT rag_embed($1)").unwrap();
    let mut times = Times::default();
    for query in questions.of_form(Form::Sentence) {
        times.take(|| session.client().query(&embed, &[&format!("{query} again")]).unwrap());
    }
    figures.add_times("embedding a query", "large", &times);
}

/// The best times of a search by several sessions, in turn.
fn times_of<const WAYS: usize>(
    search: &Search,
    mut sessions: [&mut Session; WAYS],
    questions: &Questions,
) -> [Times; WAYS] {
    let queries = questions.of_form(search.form);
    let statements = sessions.each_mut().map(|session| prepared(session));
    best_times(queries.len(), |way, at| run(sessions[way], &statements[way], search, &queries[at]))
}

fn prepared(session: &mut Session) -> Statement {
    session
        .client()
        .prepare(
            "SELECT rank, uri, title, score, snippet FROM rag_search($1, filter => $2::text::jsonb, k => 10, mode => $3)",
        )
        .unwrap()
}

fn run(session: &mut Session, statement: &Statement, search: &Search, query: &str) {
    let filter = search.filter.map(|filter| filter.json);
    session.client().query(statement, &[&query, &filter, &search.mode]).unwrap();
}
