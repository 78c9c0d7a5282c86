//! What the engine and its children hold at most, by looking again and again.

use rag_tests::processes_below;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often is looked. The kernel keeps each process's own highest mark, so only the last moments of a child are missed.
const GLANCE: Duration = Duration::from_millis(20);

/// Highest resident memory.
#[derive(Debug, Default)]
pub(crate) struct Most {
    pub(crate) engine_mib: u64,
    pub(crate) child_mib: u64,
    /// Children that were seen at all.
    pub(crate) children: usize,
}

/// A thread that looks.
pub(crate) struct MemoryWatch {
    ends: Arc<AtomicBool>,
    looks: JoinHandle<Most>,
}

impl MemoryWatch {
    /// Watches the engine below this process.
    pub(crate) fn below(postmaster: i32) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let looks = std::thread::spawn(move || {
            let mut most = Most::default();
            let mut children = HashSet::new();
            while !seen.load(Ordering::Relaxed) {
                for process in processes_below(postmaster) {
                    let Some(mib) = process.peak_resident_bytes().map(|bytes| bytes >> 20) else { continue };
                    if process.command.ends_with(" parse") {
                        most.child_mib = most.child_mib.max(mib);
                        children.insert(process.pid);
                    } else if process.command.ends_with(" serve") {
                        most.engine_mib = most.engine_mib.max(mib);
                    }
                }
                std::thread::sleep(GLANCE);
            }
            most.children = children.len();
            most
        });
        Self { ends, looks }
    }

    /// Stops looking.
    pub(crate) fn end(self) -> Most {
        self.ends.store(true, Ordering::Relaxed);
        self.looks.join().unwrap()
    }
}
