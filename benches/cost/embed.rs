//! Embedding one question through SQL and through the engine's socket, beside ONNX Runtime in this process on as many
//! threads; and the throughput of eight sessions beside that of one. All texts differ, so that no cache answers.

use crate::report::{Line, Report};
use rag_benches::{Engine, Library, Model, Texts, Times, timed};
use rag_tests::{Cluster, Session};
use rag_wire::{Lane, TextRole};
use std::time::Duration;

/// Questions for each of the ways to embed one.
const QUESTIONS_EACH: usize = 600;
/// The ways take turns after so many. Each has the model's weights to itself, and the first few questions fill the
/// processor's caches with them.
const BLOCK: usize = 25;
const COLD: usize = 5;

const SESSIONS: usize = 8;
/// Questions of one session in one round, and rounds.
const QUESTIONS: usize = 20;
const ROUNDS: usize = 4;

/// Embeds one question.
type Way<'a> = Box<dyn FnMut(&String) + 'a>;

pub(crate) fn measure(report: &mut Report, cluster: &Cluster, texts: &Texts) {
    let library = Library::new(cluster, "embed");
    one(report, &library, &texts.queries[..QUESTIONS_EACH]);
    many(report, &library, texts);
}

fn one(report: &mut Report, library: &Library<'_>, questions: &[String]) {
    let mut model = Model::open();
    let engine = Engine::start();
    let mut client = engine.connect();
    let mut session = library.session();
    let statement = session.client().prepare("SELECT rag_embed($1)").unwrap();
    let mut ways: [(Times, Way<'_>); 3] = [
        (Times::default(), Box::new(|question| drop(model.embed_query(question)))),
        (
            Times::default(),
            Box::new(|question| {
                client.embed(Lane::Interactive, TextRole::Query, vec![question.clone()]);
            }),
        ),
        (
            Times::default(),
            Box::new(|question| drop(session.client().query_one(&statement, &[question]).unwrap())),
        ),
    ];
    for block in questions.chunks(BLOCK) {
        for (times, embed) in &mut ways {
            for (place, question) in block.iter().enumerate() {
                let (time, ()) = timed(|| embed(question));
                if place >= COLD {
                    times.push(time);
                }
            }
        }
    }
    let [direct, socket, sql] = ways.map(|(times, _)| times);
    let beside = format!("ONNX Runtime here, 1 thread {}", direct.shown());
    let mut line = |what: &str, found: &Times, target: Option<f64>| {
        let ratio = found.p50() / direct.p50();
        report.add(Line {
            what: what.to_owned(),
            found: found.shown(),
            beside: beside.clone(),
            ratio: format!("{ratio:.2} ×"),
            target: target.map_or(String::new(), |most| format!("≤ {most} ×")),
            reached: target.map(|most| ratio <= most),
        });
    };
    line("embedding one question, engine's socket", &socket, Some(1.3));
    line("embedding one question, SELECT rag_embed($1)", &sql, Some(1.3));
}

fn many(report: &mut Report, library: &Library<'_>, texts: &Texts) {
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| library.session()).collect();
    for session in &mut sessions {
        session.run("SELECT rag_embed('warm')");
    }
    // One session needs a text per question, eight need eight; where they run out, an ending makes them new.
    let mut unused =
        texts.queries[QUESTIONS_EACH..].iter().cycle().enumerate().map(|(n, text)| format!("{text} ({n})"));
    let mut take = |count: usize| -> Vec<String> { unused.by_ref().take(count).collect() };
    let (mut single, mut together) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let alone = take(QUESTIONS);
        single += timed(|| ask(&mut sessions[0], &alone)).0;
        let each: Vec<Vec<String>> = (0..SESSIONS).map(|_| take(QUESTIONS)).collect();
        together += timed(|| {
            std::thread::scope(|scope| {
                for (session, questions) in sessions.iter_mut().zip(&each) {
                    scope.spawn(|| ask(session, questions));
                }
            });
        })
        .0;
    }
    let rate = |questions: usize, time: Duration| (questions * ROUNDS) as f64 / time.as_secs_f64();
    let (one, eight) = (rate(QUESTIONS, single), rate(QUESTIONS * SESSIONS, together));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.add(Line {
        what: format!("questions embedded by {SESSIONS} sessions, {cores} cores"),
        found: format!("{eight:.1} /s"),
        beside: format!("1 session {one:.1} /s"),
        ratio: format!("{:.2} ×", eight / one),
        target: "≥ 1.5 ×".into(),
        reached: Some(eight / one >= 1.5),
    });
}

fn ask(session: &mut Session, questions: &[String]) {
    let statement = session.client().prepare("SELECT rag_embed($1)").unwrap();
    for question in questions {
        session.client().query_one(&statement, &[question]).unwrap();
    }
}
