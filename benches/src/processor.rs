//! Time that processes have had on a processor.

use rag_tests::processes_below;
use std::time::Duration;

/// Clock ticks per second in `/proc`, as Linux reports them to programs.
const TICKS: u64 = 100;

/// Time of a process, of those below it, and of those that have ended there and were waited for.
pub fn processor_time(root: i32) -> Duration {
    let ticks: u64 = processes_below(root).iter().filter_map(|process| ticks_of(process.pid)).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

fn ticks_of(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Of itself in its program and in the kernel, and of its ended children likewise.
    let fields = stat[stat.rfind(')')? + 2..].split(' ').skip(11).take(4);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}
