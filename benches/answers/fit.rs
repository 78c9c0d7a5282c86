//! Fits the weights that tell whether there is an answer: logistic regression by gradient descent over four scores.

use crate::sets::Part;
use crate::table::Measured;

/// Scores of a question: best, window, next, heading.
pub(crate) const SIGNALS: usize = 4;

/// Steps of the descent, and their size: the scores are put on one scale first, so that few are enough.
const STEPS: usize = 20_000;
const RATE: f64 = 0.05;

/// How much the manual's questions count beside the others: they have no counterpart without an answer.
const MANUAL_WEIGHT: f64 = 0.3;

/// Share of the first half's questions with an answer that may be refused.
const WRONG: f64 = 0.08;

/// Prints weights fitted to the first half of the questions, such that a confidence of 0.5 refuses 8 % of them.
pub(crate) fn print(measured: &[Measured]) {
    let mut rows: Vec<([f64; SIGNALS], bool, f64)> = Vec::new();
    for (name, replies, _) in measured {
        let weight = if *name == "manual" { MANUAL_WEIGHT } else { 1.0 };
        let first_half = replies.iter().filter(|reply| reply.part == Part::First);
        rows.extend(first_half.filter_map(|reply| Some((reply.scores?, reply.is_answerable, weight))));
    }
    let of_class = |class: bool| rows.iter().filter(|row| row.1 == class).map(|row| row.2).sum::<f64>();
    let (with, without) = (of_class(true), of_class(false));
    if with == 0.0 || without == 0.0 {
        println!("\nnothing to fit: questions without an answer are in clapnq and xquad-en");
        return;
    }
    let all: f64 = rows.iter().map(|row| row.2).sum();
    let mean: Vec<f64> =
        (0..SIGNALS).map(|at| rows.iter().map(|row| row.2 * row.0[at]).sum::<f64>() / all).collect();
    let deviation: Vec<f64> = (0..SIGNALS)
        .map(|at| (rows.iter().map(|row| row.2 * (row.0[at] - mean[at]).powi(2)).sum::<f64>() / all).sqrt())
        .collect();
    let scaled = |scores: &[f64; SIGNALS]| -> [f64; SIGNALS] {
        std::array::from_fn(|at| (scores[at] - mean[at]) / deviation[at])
    };
    let (mut weights, mut bias) = ([0.0; SIGNALS], 0.0);
    for _ in 0..STEPS {
        let (mut slope, mut bias_slope) = ([0.0; SIGNALS], 0.0);
        for (scores, has_answer, weight) in &rows {
            let scores = scaled(scores);
            let logit: f64 = bias + (0..SIGNALS).map(|at| weights[at] * scores[at]).sum::<f64>();
            // Both classes count the same.
            let class = if *has_answer { with } else { without };
            let error = weight / class * (1.0 / (1.0 + (-logit).exp()) - f64::from(u8::from(*has_answer)));
            (0..SIGNALS).for_each(|at| slope[at] += error * scores[at]);
            bias_slope += error;
        }
        (0..SIGNALS).for_each(|at| weights[at] -= RATE * slope[at]);
        bias -= RATE * bias_slope;
    }
    let weights: Vec<f64> = (0..SIGNALS).map(|at| weights[at] / deviation[at]).collect();
    let logit = |scores: &[f64; SIGNALS]| (0..SIGNALS).map(|at| weights[at] * scores[at]).sum::<f64>();
    let mut answerable: Vec<f64> =
        rows.iter().filter(|row| row.1 && row.2 == 1.0).map(|row| logit(&row.0)).collect();
    answerable.sort_by(f64::total_cmp);
    let least = answerable[(answerable.len() as f64 * WRONG) as usize];
    println!(
        "\nfitted to the first half: \"answer_weights\": {{\"bias\": {:.2}, \"best\": {:.2}, \"window\": {:.2}, \"next\": {:.2}, \"heading\": {:.2}}}",
        -least, weights[0], weights[1], weights[2], weights[3]
    );
}
