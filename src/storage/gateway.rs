//! Gateways: roles that speak for application users.

use crate::error::Result;
use crate::pg::spi;

/// A gateway.
pub(crate) struct Gateway {
    pub(crate) role: String,
    /// Whether it speaks for a user in one transaction only.
    pub(crate) local_only: bool,
}

/// All gateways whose roles exist. Elevated.
pub(crate) fn all() -> Result<Vec<Gateway>> {
    spi::read_snapshot(
        "SELECT r.rolname::text, g.local_only FROM rag.gateway g JOIN pg_roles r ON r.oid = g.role ORDER BY r.rolname",
        vec![],
        |row| Ok(Gateway { role: row.require(1)?, local_only: row.require(2)? }),
    )
}
