//! What is shown of the replies.

use crate::asked::Reply;
use crate::sets::Part;
use rag_benches::{Table, Times};

/// A set's name, its replies, and how long they took.
pub(crate) type Measured = (&'static str, Vec<Reply>, Times);

/// Shares of wrong refusals at which the curve tells the right ones.
const WRONG: [f64; 6] = [0.02, 0.05, 0.08, 0.10, 0.15, 0.20];

fn share<'a>(replies: impl IntoIterator<Item = &'a Reply>, holds: impl Fn(&Reply) -> bool) -> String {
    let (mut held, mut all) = (0, 0);
    for reply in replies {
        all += 1;
        held += usize::from(holds(reply));
    }
    if all == 0 { "–".to_owned() } else { format!("{:.1} %", 100.0 * held as f64 / f64::from(all)) }
}

/// One row for each part of each set.
pub(crate) fn print(measured: &[Measured]) {
    let mut table = Table::new(&[
        "set",
        "part",
        "with an answer",
        "answered",
        "first citation right",
        "right",
        "right of those answered",
        "without one",
        "refused",
        "quotes true",
        "numbers in a quote",
        "quotes",
        "p50 / p95",
    ]);
    for (name, replies, times) in measured {
        let parts = Part::ALL.into_iter().filter(|part| replies.iter().any(|reply| reply.part == *part));
        for part in parts.map(Some).chain([None]) {
            let of_part = || replies.iter().filter(move |reply| part.is_none_or(|part| reply.part == part));
            let answerable = || of_part().filter(|reply| reply.is_answerable);
            let others = || of_part().filter(|reply| !reply.is_answerable);
            let answered = || answerable().filter(|reply| reply.found);
            let sum = |count: fn(&Reply) -> usize| of_part().map(count).sum::<usize>();
            let truth = |wrong: usize, all: usize| {
                if all == 0 {
                    "–".to_owned()
                } else {
                    format!("{:.2} % of {all}", 100.0 * (all - wrong) as f64 / all as f64)
                }
            };
            table.row([
                (*name).to_owned(),
                part.map_or("all", Part::name).to_owned(),
                answerable().count().to_string(),
                share(answerable(), |reply| reply.found),
                share(answerable(), |reply| reply.found && reply.cites_right_document),
                share(answerable(), |reply| reply.found && reply.is_right),
                share(answered(), |reply| reply.is_right),
                others().count().to_string(),
                share(others(), |reply| !reply.found),
                truth(sum(|reply| reply.untrue_quotes), sum(|reply| reply.quotes)),
                truth(sum(|reply| reply.invented_numbers.len()), sum(|reply| reply.numbers)),
                format!("{:.2}", sum(|reply| reply.quotes) as f64 / answered().count().max(1) as f64),
                if part.is_none() { times.shown() } else { String::new() },
            ]);
        }
    }
    println!("\nextracted answers");
    table.print();
    let mut kinds = Table::new(&["set", "kind", "part", "questions", "right"]);
    for (name, replies, _) in measured {
        let mut names: Vec<&str> =
            replies.iter().filter(|r| r.is_answerable).map(|reply| &reply.kind[..]).collect();
        names.sort_unstable();
        names.dedup();
        for kind in names.iter().filter(|_| names.len() > 1) {
            for part in Part::ALL {
                let of_part = || replies.iter().filter(move |r| r.kind == **kind && r.part == part);
                if of_part().next().is_some() {
                    kinds.row([
                        (*name).to_owned(),
                        (*kind).to_owned(),
                        part.name().to_owned(),
                        of_part().count().to_string(),
                        share(of_part(), |reply| reply.found && reply.is_right),
                    ]);
                }
            }
        }
    }
    println!();
    kinds.print();
}

/// Right refusals where so many questions with an answer were refused, by the confidence alone.
pub(crate) fn print_curve(measured: &[Measured]) {
    let mut table = Table::new(&["set", "part", "refused wrongly", "refused rightly", "at a confidence of"]);
    for (name, replies, _) in measured {
        if replies.iter().all(|reply| reply.is_answerable) {
            continue;
        }
        for part in
            Part::ALL.into_iter().filter(|part| replies.iter().any(|r| r.part == *part && !r.is_answerable))
        {
            let of = |answerable: bool| {
                let of_part = replies.iter().filter(|r| r.part == part && r.is_answerable == answerable);
                let mut found: Vec<f64> = of_part.map(|reply| reply.confidence).collect();
                found.sort_by(f64::total_cmp);
                found
            };
            let (answerable, others) = (of(true), of(false));
            for wrong in WRONG {
                let Some(least) = answerable.get((answerable.len() as f64 * wrong) as usize) else {
                    continue;
                };
                let right = others.iter().filter(|confidence| *confidence < least).count();
                table.row([
                    (*name).to_owned(),
                    part.name().to_owned(),
                    format!("{:.0} %", wrong * 100.0),
                    format!("{:.1} %", 100.0 * right as f64 / others.len().max(1) as f64),
                    format!("{least:.3}"),
                ]);
            }
        }
    }
    println!("\nwhat strictness costs");
    table.print();
}

/// The answers that are not right, with what they say.
pub(crate) fn list(name: &str, replies: &[Reply]) {
    for reply in replies {
        let is_right = if reply.is_answerable { reply.found && reply.is_right } else { !reply.found };
        if !is_right {
            println!(
                "{name}, {}, {}, {:.2}: {}\n    {}",
                reply.part.name(),
                reply.kind,
                reply.confidence,
                reply.question,
                reply.text
            );
        }
    }
}

/// Whether all quotes and numbers are; names those that are not.
pub(crate) fn are_true(measured: &[Measured]) -> bool {
    let mut are_true = true;
    for reply in measured.iter().flat_map(|(_, replies, _)| replies) {
        if reply.untrue_quotes > 0 || !reply.invented_numbers.is_empty() {
            are_true = false;
            println!(
                "not in its quotes: {:?} of: {}\n    {}",
                reply.invented_numbers, reply.question, reply.text
            );
        }
    }
    are_true
}
