//! What the process does to itself before it serves: leave the server's process group, die with its parent, keep
//! no descriptor and no dump, and be the first to go when memory runs out.

use crate::log;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{getppid, setsid};

/// Added to the chance of being chosen by the kernel when memory runs out; 1000 would be "always first".
const OOM_SCORE: &str = "500";

/// Descriptors that a full house of connections takes.
const DESCRIPTORS: u64 = 4096;

/// Ends the process with a status, at once.
///
/// Not `std::process::exit`: that runs ONNX Runtime's destructors beside threads that still compute, and a crash
/// there would look like a killed child to the server.
#[allow(unsafe_code)]
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` takes any status, touches no memory of this program and does not return.
    unsafe { libc::_exit(status) }
}

/// Detaches from the server's process group and ties the process to its parent's life. Call it first, while there
/// is one thread.
///
/// Descriptors from 3 on are closed. A step that the system refuses is logged and left out, except that a parent
/// that is already gone ends the process with status 0.
pub(crate) fn detach() {
    close_inherited();
    forbid_telemetry();
    umask(Mode::from_bits_truncate(0o077));
    note("descriptor limit", raise_descriptor_limit());
    hide_panics();
    let parent = getppid();
    // The supervisor's child is a session's leader already.
    if nix::unistd::getsid(None) != Ok(nix::unistd::getpid()) {
        note("setsid", setsid());
    }
    // At parent death: SIGTERM, which ends the process with status 0. A child that dies of a signal and is
    // then reaped by a postmaster as PID 1 would make it restart the cluster.
    end_on_signals();
    note("parent-death signal", prctl::set_pdeathsig(Signal::SIGTERM));
    if getppid() != parent {
        exit_now(0);
    }
    note("child subreaper", prctl::set_child_subreaper(true));
    note("oom_score_adj", std::fs::write("/proc/self/oom_score_adj", OOM_SCORE));
    // Last: it takes the files under /proc away from a process that is not root.
    note("no core dumps", prctl::set_dumpable(false));
}

/// ONNX Runtime asks for its collector's address as soon as it is loaded, unless it finds this name. The supervisor
/// sets it; whoever starts the engine in another way need not know of it. Call it while there is one thread.
#[allow(unsafe_code)]
pub(crate) fn forbid_telemetry() {
    // SAFETY: there is one thread, as is demanded above, so nobody reads the environment meanwhile.
    #[allow(clippy::disallowed_methods, reason = "before there is any other thread")]
    unsafe {
        std::env::set_var("ORT_DISABLE_TELEMETRY", "1")
    };
}

/// Makes the termination signals end the process with status 0.
///
/// A handler and no thread, so that a process may confine itself afterwards with nothing running beside it.
#[allow(unsafe_code)]
pub(crate) fn end_on_signals() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let action = SigAction::new(SigHandler::Handler(end), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler only calls `_exit`, which may be called in a signal handler.
        note("signal handler", unsafe { sigaction(signal, &action) });
    }
}

extern "C" fn end(_signal: i32) {
    exit_now(0);
}

/// Each connection takes a descriptor, and another while it waits; many systems allow 1,024 unless asked.
fn raise_descriptor_limit() -> nix::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(DESCRIPTORS.min(hard)), hard)
}

/// A panic is logged by its place alone: its message may quote what was being worked on.
fn hide_panics() {
    std::panic::set_hook(Box::new(|panic| match panic.location() {
        Some(place) => log::error(format_args!("panic at {}:{}", place.file(), place.line())),
        None => log::error("panic"),
    }));
}

pub(crate) fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let inherited: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // The descriptor of the listing itself is closed by now: EBADF for that one.
        let _ = nix::unistd::close(fd);
    }
}

fn note<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) {
    if let Err(error) = result {
        log::warning(format_args!("{what}: {error}"));
    }
}

/// Resident memory of this process in bytes; 0 where `/proc` does not say.
pub(crate) fn resident_bytes() -> u64 {
    memory_bytes(1)
}

/// Address space of this process in bytes; 0 where `/proc` does not say.
pub(crate) fn mapped_bytes() -> u64 {
    memory_bytes(0)
}

/// A field of `/proc/self/statm`, which counts pages.
fn memory_bytes(field: usize) -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_ascii_whitespace().nth(field).and_then(|n| n.parse().ok()).unwrap_or(0);
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
    pages * page as u64
}
