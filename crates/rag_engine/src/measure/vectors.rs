//! The vectors of a run in a file, and how far those of another run are from them.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// Vectors of the first texts, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SampleVectors {
    pub(super) model: String,
    pub(super) vectors: Vec<Vec<f32>>,
}

impl SampleVectors {
    pub(super) fn write(&self, file: &Path) -> Result<(), String> {
        let json = serde_json::to_vec(self).map_err(|e| e.to_string())?;
        std::fs::write(file, json).map_err(|e| format!("{}: {e}", file.display()))
    }

    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let shown = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let json = std::fs::read(file).map_err(|e| shown(&e))?;
        serde_json::from_slice(&json).map_err(|e| shown(&e))
    }

    /// The least cosine between vectors of the same text. Fails where there is nothing that can be compared.
    pub(super) fn least_cosine(&self, other: &Self) -> Result<f64, String> {
        if self.model != other.model {
            let [a, b] = [&self.model, &other.model].map(|name| name.chars().take(64).collect::<String>());
            return Err(format!("vectors of \"{a}\" cannot be compared with those of \"{b}\""));
        }
        let [a, b] = [self.vectors.len(), other.vectors.len()];
        if a != b || a == 0 {
            return Err(format!("{a} vectors cannot be compared with {b}"));
        }
        let pairs = self.vectors.iter().zip(&other.vectors);
        let cosines = pairs.map(|(a, b)| cosine(a, b).ok_or("two vectors have no cosine"));
        // One that is no number is none, so the least is one.
        Ok(cosines.collect::<Result<Vec<f64>, _>>()?.into_iter().fold(f64::INFINITY, f64::min))
    }
}

/// `None` where dimensions differ, or a vector is zero or not finite.
fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    (a.len() == b.len() && cosine.is_finite()).then_some(cosine)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(vectors: &[&[f32]]) -> SampleVectors {
        SampleVectors { model: "m".into(), vectors: vectors.iter().map(|vector| vector.to_vec()).collect() }
    }

    #[test]
    fn the_least_cosine_is_that_of_the_pair_that_differs_most() {
        let least = |a: &[&[f32]], b: &[&[f32]]| of(a).least_cosine(&of(b)).unwrap();
        assert!((least(&[&[3.0, 4.0], &[1.0, 0.0]], &[&[0.6, 0.8], &[2.0, 0.0]]) - 1.0).abs() < 1e-7);
        assert!((least(&[&[1.0, 0.0], &[1.0, 0.0]], &[&[1.0, 0.0], &[0.6, 0.8]]) - 0.6).abs() < 1e-7);
        assert!((least(&[&[1.0, 0.0]], &[&[-1.0, 0.0]]) + 1.0).abs() < 1e-7);
    }

    #[test]
    fn what_cannot_be_compared_fails() {
        let one = of(&[&[1.0, 0.0]]);
        for other in [
            of(&[]),
            of(&[&[1.0]]),
            of(&[&[0.0, 0.0]]),
            of(&[&[f32::NAN, 1.0]]),
            of(&[&[1.0, 0.0], &[1.0, 0.0]]),
            SampleVectors { model: "other".into(), ..of(&[&[1.0, 0.0]]) },
        ] {
            assert!(one.least_cosine(&other).is_err(), "{other:?}");
        }
        assert!(of(&[]).least_cosine(&of(&[])).is_err());
    }

    #[test]
    fn vectors_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vectors.json");
        let sample = of(&[&[0.1, -1e-7], &[1.0 / 3.0, 0.0]]);
        sample.write(&file).unwrap();
        assert_eq!(SampleVectors::read(&file).unwrap().vectors, sample.vectors);
        std::fs::write(&file, "{").unwrap();
        assert!(SampleVectors::read(&file).unwrap_err().contains("vectors.json"));
    }
}
