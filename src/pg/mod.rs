//! L0: everything that touches Postgres' C interface. The only folder with `unsafe` and `pg_sys`.

pub(crate) use pgrx::pg_sys::panic::ErrorReport;
pub(crate) use pgrx::pg_sys::{FunctionCallInfo, Oid, TransactionId};

pub(crate) mod cache_file;
pub(crate) mod call_cache;
pub(crate) mod call_state;
pub(crate) mod child;
pub(crate) mod circumstances;
pub(crate) mod closing;
pub(crate) mod database;
pub(crate) mod denied;
pub(crate) mod elevation;
pub(crate) mod explain;
pub(crate) mod index_condition;
pub(crate) mod interrupts;
pub(crate) mod locking;
pub(crate) mod planner;
pub(crate) mod principal;
pub(crate) mod random;
pub(crate) mod relation;
pub(crate) mod server;
pub(crate) mod server_file;
pub(crate) mod shared;
pub(crate) mod socket;
pub(crate) mod spi;
pub(crate) mod statement;
pub(crate) mod statistics;
pub(crate) mod stored_jsonb;
pub(crate) mod stored_size;
pub(crate) mod table;
pub(crate) mod table_watch;
pub(crate) mod transaction;
pub(crate) mod transition;
pub(crate) mod user_id;
pub(crate) mod utility;
pub(crate) mod work_queue;
pub(crate) mod worker;
