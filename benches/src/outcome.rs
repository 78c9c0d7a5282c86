//! What one way of searching came to, question by question.

use crate::{Query, Times, digest, ndcg_at_10, recall};
use rag_core::evaluate::{RESAMPLES, paired_bootstrap};
use std::time::Instant;

/// Decides which questions the bootstrap draws.
const SEED: u64 = 8;

/// Some of the questions: what was tuned was tuned on those with odd ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// All of them.
    Both,
    /// Those with odd ids.
    Odd,
    /// Those with even ids.
    Even,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    is_odd: bool,
    ndcg: f64,
    recall_at_25: f64,
    reciprocal_rank: f64,
}

/// Measures and times of a way of searching, in the order of the questions.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    questions: Vec<Measured>,
    times: Times,
}

/// How two outcomes on the same questions differ.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// Of the means of nDCG@10: positive where the first is better.
    pub ndcg: f64,
    /// The paired bootstrap's p value.
    pub p: f64,
}

impl Outcome {
    /// Ranks document ids for each question, best first, and measures.
    pub fn measure<'a>(
        questions: impl IntoIterator<Item = &'a Query>,
        mut rank: impl FnMut(&Query) -> Vec<String>,
    ) -> Self {
        let mut outcome = Self::default();
        for query in questions {
            let since = Instant::now();
            let ids = rank(query);
            outcome.times.push(since.elapsed());
            let ranked: Vec<bool> = ids.iter().map(|id| query.relevant.contains(id)).collect();
            outcome.questions.push(Measured {
                is_odd: is_odd(&query.id),
                ndcg: ndcg_at_10(&ranked, query.relevant.len()),
                recall_at_25: recall(&ranked[..ranked.len().min(25)], query.relevant.len()),
                reciprocal_rank: ranked.iter().position(|hit| *hit).map_or(0.0, |at| 1.0 / (at + 1) as f64),
            });
        }
        outcome
    }

    /// Mean of nDCG@10.
    pub fn ndcg(&self, half: Half) -> f64 {
        mean(self.questions.iter().filter(|q| half.has(q.is_odd)).map(|q| q.ndcg))
    }

    /// Mean of the share of relevant documents that are among the first 25.
    pub fn recall_at_25(&self) -> f64 {
        mean(self.questions.iter().map(|q| q.recall_at_25))
    }

    /// Mean of 1 / rank of the first relevant document.
    pub fn reciprocal_rank(&self) -> f64 {
        mean(self.questions.iter().map(|q| q.reciprocal_rank))
    }

    /// Median of the times.
    pub fn milliseconds(&self) -> f64 {
        self.times.p50()
    }

    /// How many questions were asked.
    pub fn count(&self) -> usize {
        self.questions.len()
    }

    /// This one less another on the same questions.
    pub fn beyond(&self, other: &Self) -> Difference {
        assert_eq!(self.count(), other.count(), "the same questions");
        let differences: Vec<f64> =
            self.questions.iter().zip(&other.questions).map(|(a, b)| a.ndcg - b.ndcg).collect();
        let p = paired_bootstrap(&differences, RESAMPLES, SEED);
        Difference { ndcg: mean(differences.into_iter()), p }
    }

    /// Figures of a table: nDCG@10 of all questions, of those with odd and with even ids, recall@25, MRR, milliseconds.
    pub fn cells(&self) -> [String; 6] {
        let ndcg = |half| format!("{:.4}", self.ndcg(half));
        [
            ndcg(Half::Both),
            ndcg(Half::Odd),
            ndcg(Half::Even),
            format!("{:.3}", self.recall_at_25()),
            format!("{:.3}", self.reciprocal_rank()),
            format!("{:.1}", self.milliseconds()),
        ]
    }

    /// Headings of these figures.
    pub const COLUMNS: [&'static str; 6] =
        ["nDCG@10", "odd ids", "even ids", "recall@25", "MRR", "ms per query"];
}

impl Half {
    fn has(self, is_odd: bool) -> bool {
        match self {
            Self::Both => true,
            Self::Odd => is_odd,
            Self::Even => !is_odd,
        }
    }
}

impl Difference {
    /// Whether it is larger than what a default must add, and no chance.
    pub fn is_worth_it(self) -> bool {
        self.ndcg >= 0.005 && self.p < 0.05
    }

    /// The difference with its p value.
    pub fn shown(self) -> String {
        let p = if self.p < 0.001 { "p < 0.001".into() } else { format!("p = {:.3}", self.p) };
        format!("{:+.4}, {p}", self.ndcg)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

/// Whether an id is an odd number; for others, whether the last byte of its digest is.
fn is_odd(id: &str) -> bool {
    id.parse::<u64>().map_or_else(|_| digest(id.as_bytes())[31] % 2 == 1, |number| number % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(id: &str) -> Query {
        Query { id: id.into(), text: String::new(), relevant: [format!("d{id}")].into(), answers: Vec::new() }
    }

    #[test]
    fn halves_are_of_odd_and_even_ids() {
        let queries = [query("1"), query("2"), query("3")];
        let odd_only =
            Outcome::measure(&queries, |q| vec![if q.id == "2" { "x".into() } else { format!("d{}", q.id) }]);
        assert_eq!((odd_only.ndcg(Half::Odd), odd_only.ndcg(Half::Even)), (1.0, 0.0));
        assert!((odd_only.ndcg(Half::Both) - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(odd_only.beyond(&odd_only).shown(), "+0.0000, p = 1.000");
    }

    #[test]
    fn recall_looks_at_25_documents() {
        let rank = |place: usize| {
            move |q: &Query| {
                (1..40).map(|at| if at == place { format!("d{}", q.id) } else { at.to_string() }).collect()
            }
        };
        assert_eq!(Outcome::measure(&[query("1")], rank(25)).recall_at_25(), 1.0);
        let late = Outcome::measure(&[query("1")], rank(26));
        assert_eq!((late.recall_at_25(), late.ndcg(Half::Both)), (0.0, 0.0));
        assert!((late.reciprocal_rank() - 1.0 / 26.0).abs() < 1e-9);
    }
}
