//! The one error type of the extension: a SQLSTATE, a message, a detail and a hint.
//!
//! Functions of `api/` return `Result<T, ErrorReport>`, the only form in which pgrx keeps all four; `?`
//! converts. Messages are lower-case and name the value and the limit; at most 64 characters of a user's
//! value are repeated, see [`excerpt`].

use crate::pg::{ErrorReport, interrupts};
use pgrx::prelude::PgSqlErrorCode;
use rag_core::option::{OptionError, OptionErrorKind};
use rag_wire::{Failure, FailureCode};

/// Result of everything below `api/`.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in the terms of Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) code: PgSqlErrorCode,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    /// Whether the detail may name paths of the server or addresses of endpoints, which are for superusers.
    pub(crate) has_private_detail: bool,
    /// Raised by the server, and caught.
    pub(crate) is_servers: bool,
}

impl Error {
    pub(crate) fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            has_private_detail: false,
            is_servers: false,
        }
    }

    /// 22023: an argument makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// 22004: an argument must not be null.
    pub(crate) fn null(argument: &str) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, format!("{argument} must not be null"))
    }

    /// 42704: no such thing, or none that the caller may see.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT, message)
    }

    /// 42501: not allowed.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
    }

    /// 54000: over a limit.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
    }

    /// 55000: something that must be there first is not.
    pub(crate) fn not_ready(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
    }

    /// 55P03: somebody else holds it.
    pub(crate) fn locked(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, message)
    }

    /// 58000: the engine cannot be reached.
    pub(crate) fn engine_down(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_SYSTEM_ERROR, message)
    }

    /// XX001: stored bytes are damaged.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_DATA_CORRUPTED, message)
    }

    /// XX000: a bug.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message)
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Says first in the detail what the error is about.
    pub(crate) fn about(self, what: &str) -> Self {
        let detail = match &self.detail {
            Some(detail) => format!("It is about {what}. {detail}"),
            None => format!("It is about {what}."),
        };
        self.detail(detail)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether somebody, or a time-out of the caller's, has ended the statement. The server says so once.
    pub(crate) fn is_cancel(&self) -> bool {
        self.is_servers && self.code == PgSqlErrorCode::ERRCODE_QUERY_CANCELED
    }

    /// Whether a lock of somebody else's was in the way: no fault of what was to be done, which is for later.
    pub(crate) fn is_about_a_lock(&self) -> bool {
        matches!(
            self.code,
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE | PgSqlErrorCode::ERRCODE_T_R_DEADLOCK_DETECTED
        )
    }

    /// Whether a row of somebody else's table refers to what was to be deleted.
    pub(crate) fn is_about_a_reference(&self) -> bool {
        matches!(
            self.code,
            PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION | PgSqlErrorCode::ERRCODE_RESTRICT_VIOLATION
        )
    }

    /// Whether stored bytes are damaged: found by us, or by the server in a page or a value.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.code, PgSqlErrorCode::ERRCODE_DATA_CORRUPTED | PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED)
    }

    /// One line for a job's error column or a diagnostics row, which others than superusers read.
    pub(crate) fn one_line(&self) -> String {
        match &self.detail {
            Some(detail) if !self.has_private_detail => format!("{}: {detail}", self.message),
            _ => self.message.clone(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        let mut report = ErrorReport::new(error.code, error.message, "rag_ext");
        if let Some(detail) = error.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = error.hint {
            report = report.set_hint(hint);
        }
        report
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        use PgSqlErrorCode as Code;
        let code = match failure.code {
            FailureCode::InvalidArgument => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            FailureCode::UnknownModel => Code::ERRCODE_UNDEFINED_OBJECT,
            FailureCode::NotLoaded => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            FailureCode::Unsupported => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            FailureCode::NotParsable => Code::ERRCODE_DATA_EXCEPTION,
            FailureCode::LimitExceeded => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            FailureCode::QueueFull => Code::ERRCODE_INSUFFICIENT_RESOURCES,
            FailureCode::Deadline => Code::ERRCODE_QUERY_CANCELED,
            FailureCode::NotAllowed => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            FailureCode::Provider => Code::ERRCODE_SYSTEM_ERROR,
            FailureCode::Internal => Code::ERRCODE_INTERNAL_ERROR,
            FailureCode::Killed => Code::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
        };
        let has_private_detail = matches!(
            failure.code,
            FailureCode::UnknownModel
                | FailureCode::NotLoaded
                | FailureCode::Provider
                | FailureCode::NotAllowed
                | FailureCode::Internal
        );
        Self {
            code,
            message: failure.message,
            detail: failure.detail,
            hint: failure.hint,
            has_private_detail,
            is_servers: false,
        }
    }
}

impl From<OptionError> for Error {
    fn from(error: OptionError) -> Self {
        let code = match error.kind {
            OptionErrorKind::Invalid => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            OptionErrorKind::LimitExceeded => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        };
        Self {
            code,
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            has_private_detail: false,
            is_servers: false,
        }
    }
}

/// An interrupt that ended the work is raised here.
impl From<rag_bm25::Error> for Error {
    fn from(error: rag_bm25::Error) -> Self {
        if matches!(error, rag_bm25::Error::Interrupted) {
            interrupts::raise_held();
            return Self::new(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, "the work was interrupted");
        }
        if let rag_bm25::Error::File(_) = error {
            return Self::new(PgSqlErrorCode::ERRCODE_IO_ERROR, error.to_string());
        }
        Self::damaged(format!("keyword segment cannot be used: {error}"))
    }
}

impl From<rag_vector::Error> for Error {
    fn from(error: rag_vector::Error) -> Self {
        if error == rag_vector::Error::Interrupted {
            interrupts::raise_held();
            return Self::new(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, "the work was interrupted");
        }
        Self::damaged(format!("vector codes cannot be used: {error}"))
    }
}

/// What work came to that stops at no lock of somebody else's: `None` if there was one, and the work is for later.
pub(crate) fn unless_locked<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_about_a_lock() => Ok(None),
        Err(error) => Err(error),
    }
}

/// At most 64 characters of a user's value, for an error message.
pub(crate) fn excerpt(value: &str) -> String {
    match value.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// The five characters of a SQLSTATE: six bits each, from the lowest.
pub(crate) fn sqlstate_text(code: PgSqlErrorCode) -> String {
    let mut packed = code as i32;
    (0..5)
        .map(|_| {
            let digit = (packed & 0x3f) as u8;
            packed >>= 6;
            char::from(digit + b'0')
        })
        .collect()
}
