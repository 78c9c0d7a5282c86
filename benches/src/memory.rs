//! Memory of a process's own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A process's own memory in MiB, by `/proc/PID/smaps_rollup`: its anonymous pages, and its share of those that it still has in
/// common with the process that it was forked from.
///
/// Neither shared buffers nor segments, which are mapped from files that all backends share, belong to it, though their pages
/// count as private for as long as no other process has looked at them.
pub fn own_mib(pid: i32) -> f64 {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}; run this as root"));
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss_Anon:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
}

/// The most memory of its own that a process has while something runs, beyond what it has before, in MiB, by
/// `/proc/PID/status`: not what it maps of files, and not shared buffers. Looked at every millisecond.
pub fn peak_anonymous_mib<T>(pid: i32, run: impl FnOnce() -> T) -> (f64, T) {
    let before = anonymous_mib(pid).unwrap_or_default();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = before;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(anonymous_mib(pid).unwrap_or_default());
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let value = run();
        is_over.store(true, Ordering::Relaxed);
        (watcher.join().unwrap() - before, value)
    })
}

/// None once the process has ended.
fn anonymous_mib(pid: i32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok().map(|kib| kib / 1024.0)
}
