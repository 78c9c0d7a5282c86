//! From a model's output to one vector per text: pooling and normalisation.

use super::folder::Pooling;

/// One text's vector from its token vectors, `width` numbers each. All tokens given are real ones, none is padding.
pub fn pool(tokens: &[f32], width: usize, pooling: Pooling) -> Vec<f32> {
    let mut rows = tokens.chunks_exact(width);
    match pooling {
        Pooling::Cls => rows.next().unwrap_or_default().to_vec(),
        Pooling::Last => rows.next_back().unwrap_or_default().to_vec(),
        Pooling::Mean => {
            let count = (tokens.len() / width.max(1)).max(1) as f32;
            let mut sum = vec![0.0f32; width];
            rows.for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value));
            sum.iter_mut().for_each(|value| *value /= count);
            sum
        }
        Pooling::Max => {
            let mut largest = vec![f32::NEG_INFINITY; width];
            rows.for_each(|row| largest.iter_mut().zip(row).for_each(|(a, b)| *a = a.max(*b)));
            largest
        }
    }
}

/// Scales a vector to length 1. `false` if it has no direction: zero, or not finite.
pub fn normalise(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return false;
    }
    vector.iter_mut().for_each(|v| *v = (f64::from(*v) / length) as f32);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pooling_of_three_tokens() {
        let tokens = [1.0, 2.0, 3.0, 8.0, 5.0, -1.0];
        let cases = [
            (Pooling::Cls, [1.0, 2.0]),
            (Pooling::Last, [5.0, -1.0]),
            (Pooling::Mean, [3.0, 3.0]),
            (Pooling::Max, [5.0, 8.0]),
        ];
        for (pooling, expected) in cases {
            assert_eq!(pool(&tokens, 2, pooling), expected, "{pooling:?}");
        }
    }

    #[test]
    fn a_normalised_vector_has_length_one() {
        let mut vector = [3.0, 4.0];
        assert!(normalise(&mut vector));
        assert_eq!(vector, [0.6, 0.8]);
    }

    #[test]
    fn a_vector_without_direction_is_refused() {
        for mut vector in [[0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0]] {
            assert!(!normalise(&mut vector));
        }
    }
}
