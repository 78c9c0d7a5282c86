//! Measures of a ranking against binary judgements.

/// Normalised discounted cumulative gain of the first ten, from 0 to 1.
///
/// `ranked` says of each hit, best first, whether it is relevant; `relevant` is how many there are in all.
/// Source: Järvelin and Kekäläinen, TOIS 2002, with gains of 0 and 1.
pub fn ndcg_at_10(ranked: &[bool], relevant: usize) -> f64 {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gained: f64 =
        ranked.iter().take(10).enumerate().filter(|(_, hit)| **hit).map(|(rank, _)| discount(rank)).sum();
    let ideal: f64 = (0..relevant.min(10)).map(discount).sum();
    if ideal > 0.0 { gained / ideal } else { 0.0 }
}

/// Share of the relevant documents among the hits, from 0 to 1.
pub fn recall(ranked: &[bool], relevant: usize) -> f64 {
    if relevant == 0 { 0.0 } else { ranked.iter().filter(|hit| **hit).count() as f64 / relevant as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_order_scores_one_and_a_later_place_less() {
        assert_eq!(ndcg_at_10(&[true, true, false], 2), 1.0);
        assert!((ndcg_at_10(&[false, true], 1) - 1.0 / 3f64.log2()).abs() < 1e-12);
        assert_eq!(ndcg_at_10(&[false; 12], 3), 0.0);
    }

    #[test]
    fn only_the_first_ten_places_count() {
        let mut ranked = [false; 11];
        ranked[10] = true;
        assert_eq!(ndcg_at_10(&ranked, 1), 0.0);
        assert_eq!(recall(&ranked, 2), 0.5);
    }

    #[test]
    fn more_than_ten_relevant_documents_can_still_be_ranked_perfectly() {
        assert!((ndcg_at_10(&[true; 10], 25) - 1.0).abs() < 1e-12);
    }
}
