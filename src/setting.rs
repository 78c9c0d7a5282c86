//! What a setting is, and how Postgres is told of it. Which there are stands in the table of `config.rs`.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use std::ffi::{CStr, CString};

pub(crate) type Switch = GucSetting<bool>;
pub(crate) type Integer = GucSetting<i32>;
pub(crate) type Real = GucSetting<f64>;
pub(crate) type Text = GucSetting<Option<CString>>;

/// One setting.
pub(crate) struct Setting {
    /// Full name, prefix included.
    pub(crate) name: &'static CStr,
    pub(crate) kind: Kind,
    pub(crate) context: Context,
    pub(crate) visibility: Visibility,
    /// One sentence.
    pub(crate) short: &'static CStr,
    /// What a person who changes it must know.
    pub(crate) long: &'static CStr,
}

/// Type and bounds; the default is that of the variable.
pub(crate) enum Kind {
    Switch { value: &'static Switch },
    Integer { value: &'static Integer, min: i32, max: i32, unit: Unit },
    Real { value: &'static Real, min: f64, max: f64 },
    Text { value: &'static Text },
}

/// Unit of an integer; a plain number is in this unit, `'2GB'` and the like are converted by Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    Megabytes,
    Milliseconds,
    Seconds,
}

/// Who may change a setting, and when it takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Anyone, at once.
    User,
    /// Superusers, at once.
    Superuser,
    /// The server's configuration, upon reload.
    Reload,
}

/// Who may read a setting, and from where it may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    Everyone,
    Superusers,
    /// Readable by everyone, not to be set by functions that run in a security-restricted operation.
    Identity,
}

impl Setting {
    /// Defines it in this process.
    pub(crate) fn register(&'static self) {
        let Self { name, short, long, .. } = *self;
        let (context, flags) = (self.guc_context(), self.guc_flags());
        match self.kind {
            Kind::Switch { value } => {
                GucRegistry::define_bool_guc(name, short, long, value, context, flags);
            }
            Kind::Integer { value, min, max, .. } => {
                GucRegistry::define_int_guc(name, short, long, value, min, max, context, flags);
            }
            Kind::Real { value, min, max } => {
                GucRegistry::define_float_guc(name, short, long, value, min, max, context, flags);
            }
            Kind::Text { value } => {
                GucRegistry::define_string_guc(name, short, long, value, context, flags);
            }
        }
    }

    fn guc_context(&self) -> GucContext {
        match self.context {
            Context::User => GucContext::Userset,
            Context::Superuser => GucContext::Suset,
            Context::Reload => GucContext::Sighup,
        }
    }

    fn guc_flags(&self) -> GucFlags {
        let visibility = match self.visibility {
            Visibility::Everyone => GucFlags::default(),
            Visibility::Superusers => GucFlags::SUPERUSER_ONLY,
            Visibility::Identity => GucFlags::NOT_WHILE_SEC_REST,
        };
        let unit = match self.kind {
            Kind::Integer { unit: Unit::Megabytes, .. } => GucFlags::UNIT_MB,
            Kind::Integer { unit: Unit::Milliseconds, .. } => GucFlags::UNIT_MS,
            Kind::Integer { unit: Unit::Seconds, .. } => GucFlags::UNIT_S,
            _ => GucFlags::default(),
        };
        visibility | unit
    }
}

/// Text of a concatenation that ends with a NUL.
pub(crate) const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        // Met by the compiler only: every use is a constant.
        Err(_) => panic!("a setting's name contains a NUL"),
    }
}
