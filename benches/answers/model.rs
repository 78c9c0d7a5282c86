//! A chat model of this machine, asked a sample of ClapNQ's second half, beside answers extracted from the same passages.
//!
//! `RAG_BENCH_LLM=FOLDER` has the model's `model.gguf`; without it, the small one of the tests answers.

use crate::asked::{self, Found, Reply};
use crate::sets::{self, Part, Question};
use crate::table;
use rag_benches::{Table, Times};
use rag_tests::Cluster;
use serde_json::Value;
use std::path::PathBuf;

/// Questions with an answer, and without one.
const WITH_ANSWER: usize = 20;
const WITHOUT: usize = 10;

/// Tokens that it writes at most.
const MAX_TOKENS: u32 = 160;

/// A model, and where its folder lies.
pub(crate) struct LocalModel {
    pub(crate) name: String,
    pub(crate) parent: String,
}

/// The model that the environment names, or the small one.
pub(crate) fn wanted() -> LocalModel {
    let folder = match std::env::var("RAG_BENCH_LLM") {
        Ok(folder) => PathBuf::from(folder),
        Err(_) => PathBuf::from(rag_benches::set_by_make("RAG_TEST_MODELS")).join("SmolLM2-135M-Instruct"),
    };
    LocalModel {
        name: format!("local/{}", folder.file_name().unwrap().display()),
        parent: folder.parent().unwrap().to_str().unwrap().to_owned(),
    }
}

/// A server whose chat model it is, and that waits for it.
pub(crate) fn cluster(name: &str) -> Cluster {
    let model = wanted();
    Cluster::builder(name)
        .setting("rag_ext.model_path", &format!("$sharedir/rag_ext/models:{}", model.parent))
        .setting("rag_ext.llm_model", &model.name)
        .setting("rag_ext.llm_timeout", "10min")
        .setting("rag_ext.llm_deadline", "10min")
        .setting("rag_ext.query_deadline", "10min")
        .setting("rag_ext.cache_lifetime", "0")
        .start()
}

/// Prints a table, and with `lists` what is not right; false where a quote or a number is not true.
pub(crate) fn measure(options: &str, lists: bool) -> bool {
    let cluster = cluster("answers_model");
    let mut set = sets::ingest(&cluster, "clapnq");
    let second: Vec<Question> =
        set.questions.drain(..).filter(|question| question.part == Part::Second).collect();
    let of = |answerable: bool, count: usize| {
        let all: Vec<&Question> = second.iter().filter(|q| q.is_answerable() == answerable).collect();
        let step = (all.len() / count).max(1);
        all.into_iter().step_by(step).take(count).cloned().collect::<Vec<_>>()
    };
    set.questions = [of(true, WITH_ANSWER), of(false, WITHOUT)].concat();

    let mut options: Value = serde_json::from_str(options).unwrap();
    options["max_tokens"] = MAX_TOKENS.into();
    let mut measured = Vec::new();
    for (way, generate) in [("extracted", false), ("by the model", true)] {
        options["generate"] = generate.into();
        let (replies, times) = asked::ask(&mut set, &options.to_string(), Found::AsTold);
        if lists {
            table::list(way, &replies);
        }
        measured.push((way, replies, times));
    }
    println!("\n{}", wanted().name);
    print(&measured);
    table::are_true(&measured)
}

fn print(measured: &[(&str, Vec<Reply>, Times)]) {
    let mut table = Table::new(&[
        "answers",
        "answered",
        "first citation right",
        "gold sentence quoted",
        "refused without one",
        "quotes true",
        "numbers in a quote",
        "sentences left out",
        "p50 / p95",
    ]);
    for (way, replies, times) in measured {
        let count = |holds: &dyn Fn(&Reply) -> bool| replies.iter().filter(|reply| holds(reply)).count();
        let sum = |of: fn(&Reply) -> usize| replies.iter().map(of).sum::<usize>();
        let answered = count(&|reply| reply.is_answerable && reply.found);
        let (quotes, numbers) = (sum(|reply| reply.quotes), sum(|reply| reply.numbers));
        let dropped = sum(|reply| reply.dropped);
        table.row([
            (*way).to_owned(),
            format!("{answered} of {WITH_ANSWER}"),
            format!("{} of {answered}", count(&|r| r.is_answerable && r.found && r.cites_right_document)),
            format!("{} of {answered}", count(&|r| r.is_answerable && r.found && r.is_right)),
            format!("{} of {WITHOUT}", count(&|reply| !reply.is_answerable && !reply.found)),
            format!("{} of {quotes}", quotes - sum(|reply| reply.untrue_quotes)),
            format!("{} of {numbers}", numbers - sum(|reply| reply.invented_numbers.len())),
            format!("{dropped} of {}", dropped + sum(|reply| reply.sentences)),
            times.shown(),
        ]);
    }
    table.print();
}
