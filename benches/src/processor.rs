//! Time that processes have had on a processor.

use rag_tests::{Process, processes_below};
use std::time::Duration;

/// Time of a process, of those below it, and of those that have ended there and were waited for.
pub fn processor_time(root: i32) -> Duration {
    processes_below(root).iter().filter_map(Process::processor_time).sum()
}
