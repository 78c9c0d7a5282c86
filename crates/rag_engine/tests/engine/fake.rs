//! A backend without a model, for tests: the same tokens give the same numbers on every machine.

use rag_engine::backend::{Backend, Conditions, Input, Limits, refuse_too_long};
use rag_engine::device::Device;
use rag_wire::{Chat, Completion, Failure, FailureCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers of a vector.
pub(crate) const DIMENSION: usize = 8;

/// Computes from tokens alone, one input after the other.
pub(crate) struct FakeBackend {
    pub(crate) max_tokens: usize,
    /// Inputs computed so far.
    pub(crate) computed: Arc<AtomicUsize>,
}

impl FakeBackend {
    /// A number from −1 to 1 that depends on all tokens, their order, and `seed`.
    fn number(input: &Input, seed: u64) -> f32 {
        let hash = input.row.ids.iter().fold(seed.wrapping_add(0xcbf2_9ce4_8422_2325), |hash, id| {
            (hash ^ u64::from(*id)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
        });
        (hash >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn vector(input: &Input) -> Vec<f32> {
        let raw: Vec<f32> = (0..DIMENSION as u64).map(|seed| Self::number(input, seed)).collect();
        let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        raw.into_iter().map(|x| x / length).collect()
    }

    fn each<T>(
        &self,
        inputs: &[&Input],
        conditions: &Conditions<'_>,
        compute: impl Fn(&Input) -> T,
    ) -> Result<Vec<T>, Failure> {
        refuse_too_long("fake", self.max_tokens, inputs)?;
        let compute_one = |input: &&Input| {
            conditions.check()?;
            self.computed.fetch_add(1, Ordering::SeqCst);
            // Stands in for what breaks a model: an id that is in no vocabulary.
            if input.row.ids.contains(&u32::MAX) {
                let message = "model \"fake\" failed".to_owned();
                return Err(Failure { code: FailureCode::Internal, message, detail: None, hint: None });
            }
            Ok(compute(input))
        };
        inputs.iter().map(compute_one).collect()
    }
}

impl Backend for FakeBackend {
    fn limits(&self) -> Limits {
        Limits { one_by_one: true, ..Limits::new(Some(Device::Cpu), self.max_tokens) }
    }

    fn health(&self, _allow_remote: bool) -> Result<(), String> {
        Ok(())
    }

    fn embed(&self, texts: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        self.each(texts, conditions, Self::vector)
    }

    fn score(&self, pairs: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<f32>, Failure> {
        self.each(pairs, conditions, |pair| 10.0 * Self::number(pair, 1))
    }

    fn generate(&self, request: &Chat, conditions: &Conditions<'_>) -> Result<Completion, Failure> {
        conditions.check()?;
        self.computed.fetch_add(1, Ordering::SeqCst);
        let text = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
        Ok(Completion { text, model: "fake".into(), ..Completion::default() })
    }
}
