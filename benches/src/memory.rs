//! Memory of a process's own.

/// Private pages of a process, clean and dirty, in MiB, by `/proc/PID/smaps_rollup`.
///
/// Segments are mapped from files that all backends share: their pages count as private where no other process has
/// looked at them.
pub fn private_mib(pid: i32) -> f64 {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}; run this as root"));
    let kib = |name: &str| -> f64 {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    };
    (kib("Private_Clean:") + kib("Private_Dirty:")) / 1024.0
}
