//! Short constructors for [`Failure`], so that messages stand where the failure is found.

use rag_wire::{Failure, FailureCode};

/// A failure without detail or hint.
pub(crate) fn failure(code: FailureCode, message: impl Into<String>) -> Failure {
    Failure { code, message: message.into(), detail: None, hint: None }
}

/// Adds facts and advice to a failure.
pub(crate) trait Explain {
    /// Adds a DETAIL.
    fn detail(self, detail: impl Into<String>) -> Failure;
    /// Adds a HINT.
    fn hint(self, hint: impl Into<String>) -> Failure;
}

impl Explain for Failure {
    fn detail(mut self, detail: impl Into<String>) -> Failure {
        self.detail = Some(detail.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

/// The failure of a request whose deadline has passed.
pub(crate) fn deadline_passed() -> Failure {
    failure(FailureCode::Deadline, "the engine did not answer before the deadline")
}

/// The failure of a request that met a bug.
pub(crate) fn internal(message: impl Into<String>) -> Failure {
    failure(FailureCode::Internal, message)
}
