//! Who reads everybody's rows of the log of answers: roles that `rag_log_reader` has named, and who inherits from them.

use crate::error::Result;
use crate::pg::principal;
use crate::pg::table::{self, Condition};

/// Whether the caller does. Never behind a gateway: its users share one role.
pub(crate) fn reads_all_answers() -> Result<bool> {
    let principals = principal::current_principals()?;
    let roles = principals.iter().filter(|name| name.starts_with("role:"));
    let is_named = |role| {
        !table::rows(c"log_reader", c"log_reader_pkey", &Condition::Oid(c"role", role), |_| Some(()))
            .is_empty()
    };
    Ok(roles.filter_map(|name| principal::role_of(name)).any(is_named))
}
