//! Processes as `/proc` shows them: who descends from whom, and who is gone.

use crate::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// How long a process may take to stop.
const STOPPING: Duration = Duration::from_secs(60);

/// A process, told apart from a later one with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id here, outside of any namespace of its own.
    pub pid: i32,
    /// Its id in its own PID namespace.
    pub inner_pid: i32,
    /// Its command line, arguments separated by spaces.
    pub command: String,
    /// Clock ticks between the start of the machine and its own.
    started: u64,
    parent: i32,
    state: char,
}

impl Process {
    /// The process with this id, if there is one that still runs.
    pub fn find(pid: i32) -> Option<Self> {
        let fields = stat(Path::new(&format!("/proc/{pid}")))?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some(Self {
            pid,
            inner_pid: inner.split_whitespace().last()?.parse().ok()?,
            command: String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
        .filter(|process| !matches!(process.state, 'Z' | 'X'))
    }

    /// The process that started it, or has inherited it.
    pub fn parent(&self) -> Option<Self> {
        Self::find(self.parent)
    }

    /// Whether it, and not a successor with its id, still runs.
    pub fn runs(&self) -> bool {
        Self::find(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// The most memory that it has had resident so far, in bytes.
    pub fn peak_resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Sends a signal, if it still runs. After one that stops it none of its threads goes on: one of them has to be given
    /// a processor first, and on a busy machine others answer until then.
    pub fn signal(&self, signal: Signal) {
        if !self.runs() {
            return;
        }
        let _ = kill_process(Pid::from_raw(self.pid).unwrap(), signal);
        if signal == Signal::STOP {
            wait_until("all threads have stopped", STOPPING, || self.is_stopped() || !self.runs());
        }
    }

    fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let mut states = tasks.filter_map(|task| stat(&task.path())?.into_iter().next());
        states.all(|state| matches!(state.as_str(), "T" | "Z" | "X"))
    }

    /// Time that it has had on a processor, with its children that have ended and were waited for.
    pub fn processor_time(&self) -> Option<Duration> {
        // Clock ticks, of which Linux reports a hundred per second: in its program and in the kernel, and its children's.
        let ticks: Option<u64> = stat(Path::new(&format!("/proc/{}", self.pid)))?
            .get(11..15)?
            .iter()
            .map(|t| t.parse::<u64>().ok())
            .sum();
        ticks.map(|ticks| Duration::from_millis(10 * ticks))
    }
}

/// The fields of `stat` in a folder of `/proc`, from the state on: the name before it may hold anything.
fn stat(folder: &Path) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    Some(stat[stat.rfind(')')? + 2..].split(' ').map(str::to_owned).collect())
}

/// All descendants of a process, itself included.
pub fn processes_below(root: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        if let Some(process) =
            entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Process::find)
        {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found: Vec<Process> = Process::find(root).into_iter().collect();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let below = children.remove(&process.pid).unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found
}

/// Processes that work in a folder.
pub(crate) fn processes_within(folder: &Path) -> Vec<Process> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let within =
        all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder));
    within.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Process::find).collect()
}
