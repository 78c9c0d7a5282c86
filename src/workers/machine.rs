//! How much memory the machine, or the container that the server is in, has.

use std::path::Path;

/// Less than this holds no model and the work on it.
const LEAST_MB: u32 = 1024;

/// Half of the memory there is, in MiB, but not less than [`LEAST_MB`].
pub(super) fn half_of_memory_mb() -> u32 {
    let limits = [physical_bytes(), container_bytes("/proc/self/cgroup")];
    let bytes = limits.into_iter().flatten().min().unwrap_or(0);
    u32::try_from((bytes / 2) >> 20).unwrap_or(u32::MAX).max(LEAST_MB)
}

fn physical_bytes() -> Option<u64> {
    let words = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = words.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The least limit of the control groups that this process is in, of either version: a group's own, or that of one
/// around it. A file that is not there, or says `max`, sets none.
fn container_bytes(groups: &str) -> Option<u64> {
    let lines = std::fs::read_to_string(groups).ok()?;
    let limits = lines.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let around = Path::new(group).ancestors().filter_map(|group| group.strip_prefix("/").ok());
        around.filter_map(|group| read_bytes(&Path::new(root).join(group).join(file))).min()
    });
    limits.min()
}

fn read_bytes(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
