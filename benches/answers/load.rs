//! How long extracted answers over two thousand chunks take: in one session, in eight at once, and beside a flood of documents
//! or of somebody else's questions.
//!
//! The chunks are passages of ClapNQ and XQuAD and abstracts of Cranfield, the questions those of ClapNQ, in an order that mixes
//! what has an answer with what has none. Each is asked once a session; the engine's caches are off.

use crate::sets;
use rag_benches::{Corpus, Document, KeptVectors, Library, Table, Times, eval_data, model_digest, timed};
use rag_tests::{Cluster, Session};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Documents of the corpus, each a chunk or a little more.
const DOCUMENTS: usize = 2_000;

/// Documents that arrive while questions are asked.
const FLOOD_DOCUMENTS: usize = 600;

/// Questions of a session.
const QUESTIONS: usize = 60;

/// Sessions at once.
const SESSIONS: usize = 8;

/// What is aimed at: milliseconds of one answer, throughput of all sessions beside one, and how much longer 95 of 100 answers
/// may take with all sessions, and beside a flood.
const MEDIAN_MS: f64 = 250.0;
const LEAST_THROUGHPUT: f64 = 1.6;
const MOST_WITH_SESSIONS: f64 = 8.0;
const MOST_WITH_FLOOD: f64 = 3.0;

/// Prints a table; false where something is missed.
pub(crate) fn measure(cluster: &Cluster) -> bool {
    let data =
        eval_data().unwrap_or_else(|| panic!("RAG_EVAL_DATA is not set: it names the folder of the sets"));
    let library = Library::new(cluster, "answers_load");
    let mut documents: Vec<Document> = Vec::new();
    for name in ["clapnq", "xquad-en", "cranfield"] {
        let named = |d: &Document| Document { id: format!("{name}/{}", d.id), ..d.clone() };
        documents.extend(Corpus::read(&data, name).documents.iter().map(named));
    }
    documents.truncate(DOCUMENTS);
    let mut kept = KeptVectors::open("load.vectors", &model_digest());
    let ingested = library.ingest_with(&mut kept, || library.ingest(&documents));
    println!("{} chunks of {} documents", ingested.chunks, documents.len());
    let questions = questions(&sets::clapnq_texts(&data.join("clapnq")));

    ask(&mut library.session(), &questions[..5]);
    let (alone_time, (alone, _)) = timed(|| ask(&mut library.session(), &questions));
    let (together_time, together) = timed(|| in_sessions(&library, &questions));
    let (times, answered) = together;
    let throughput = SESSIONS as f64 * alone_time.as_secs_f64() / together_time.as_secs_f64();

    let bulk = beside_documents(&library, &questions, &documents);
    let (crowd, crowd_asked) = beside_questions(&library, &questions);

    let mut table = Table::new(&["questions", "p50 / p95", "beside", "found", "aimed at", ""]);
    let mut is_reached = true;
    let mut row = |what: &str, times: &Times, beside: String, found: String, aim: String, holds: bool| {
        is_reached &= holds;
        let mark = if holds { "ok" } else { "missed" };
        table.row([what.to_owned(), times.shown(), beside, found, aim, mark.to_owned()]);
    };
    let ratio = |times: &Times| times.p95() / alone.p95();
    row(
        "one session",
        &alone,
        String::new(),
        format!("{:.0} ms", alone.p50()),
        format!("≤ {MEDIAN_MS:.0} ms"),
        alone.p50() <= MEDIAN_MS,
    );
    row(
        &format!("{SESSIONS} sessions, {answered} of {} answered or refused", SESSIONS * QUESTIONS),
        &times,
        "throughput of one session".to_owned(),
        format!("{throughput:.2} ×"),
        format!("≥ {LEAST_THROUGHPUT} ×"),
        throughput >= LEAST_THROUGHPUT && answered == SESSIONS * QUESTIONS,
    );
    row(
        &format!("{SESSIONS} sessions"),
        &times,
        "p50 of one session".to_owned(),
        format!("p95 {:.1} ×", times.p95() / alone.p50()),
        format!("≤ {MOST_WITH_SESSIONS} ×"),
        times.p95() / alone.p50() <= MOST_WITH_SESSIONS,
    );
    for (what, times) in [
        (format!("one session while {FLOOD_DOCUMENTS} documents are ingested"), &bulk),
        (format!("one session while another user asked {crowd_asked} in {SESSIONS} sessions"), &crowd),
    ] {
        let found = format!("p95 {:.1} ×", ratio(times));
        let aim = format!("≤ {MOST_WITH_FLOOD} ×");
        row(&what, times, "p95 of one session".to_owned(), found, aim, ratio(times) <= MOST_WITH_FLOOD);
    }
    table.print();
    is_reached
}

/// So many of the texts, from all over the list.
fn questions(texts: &[String]) -> Vec<String> {
    texts.iter().step_by((texts.len() / QUESTIONS).max(1)).take(QUESTIONS).cloned().collect()
}

/// Times, and how many came back.
fn ask(session: &mut Session, questions: &[String]) -> (Times, usize) {
    let client = session.client();
    let statement = client.prepare("SELECT rag_answer($1)::text").unwrap();
    let mut times = Times::default();
    let mut answered = 0;
    for question in questions {
        answered += usize::from(times.take(|| client.query_one(&statement, &[question])).is_ok());
    }
    (times, answered)
}

/// Each session asks all, beginning at another one.
fn in_sessions(library: &Library<'_>, questions: &[String]) -> (Times, usize) {
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| library.session()).collect();
    let mut times = Times::default();
    let mut answered = 0;
    std::thread::scope(|scope| {
        let running: Vec<_> = sessions
            .iter_mut()
            .enumerate()
            .map(|(number, session)| {
                let mut own = questions.to_vec();
                own.rotate_left(number * questions.len() / SESSIONS);
                scope.spawn(move || ask(session, &own))
            })
            .collect();
        for thread in running {
            let (of_session, came_back) = thread.join().unwrap();
            times.extend(&of_session);
            answered += came_back;
        }
    });
    (times, answered)
}

/// While another role's documents are ingested.
fn beside_documents(library: &Library<'_>, questions: &[String], documents: &[Document]) -> Times {
    let mut other = library.database().user("writer");
    let (uris, texts): (Vec<&str>, Vec<String>) = documents
        .iter()
        .rev()
        .take(FLOOD_DOCUMENTS)
        .map(|d| (&d.id[..], format!("Once more, and in other words: {}", d.text)))
        .unzip();
    other
        .client()
        .execute(
            "INSERT INTO rag.document (uri, content) SELECT * FROM unnest($1::text[], $2::text[])",
            &[&uris, &texts],
        )
        .unwrap();
    let (times, _) = ask(&mut library.session(), questions);
    let left = other.count("SELECT count(*) FROM rag.document WHERE status <> 'done'");
    eprintln!("{left} of {FLOOD_DOCUMENTS} documents were not done at the end");
    other.run("DELETE FROM rag.document");
    library.settle();
    times
}

/// While another role asks as much as it can, about documents of its own.
fn beside_questions(library: &Library<'_>, questions: &[String]) -> (Times, usize) {
    let mut other = library.database().user("asker");
    for (n, question) in questions.iter().enumerate() {
        other.ingest(&format!("It is often asked: {question} Nobody knows for sure."), &format!("asked-{n}"));
    }
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let role = library.database().role_name("asker");
    let mut crowd: Vec<Session> = (0..SESSIONS).map(|_| library.database().connect(&role)).collect();
    let times = std::thread::scope(|scope| {
        for session in &mut crowd {
            let (is_over, asked) = (&is_over, &asked);
            scope.spawn(move || {
                let until = Instant::now() + Duration::from_secs(300);
                for question in questions.iter().cycle() {
                    if is_over.load(Ordering::Acquire) || Instant::now() > until {
                        return;
                    }
                    ask(session, std::slice::from_ref(question));
                    asked.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
        let (times, _) = ask(&mut library.session(), questions);
        is_over.store(true, Ordering::Release);
        times
    });
    (times, asked.load(Ordering::Acquire))
}
