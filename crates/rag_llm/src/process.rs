//! What the process does to itself before it reads anything: die with its parent, keep no descriptor and no dump, be the
//! first to go when memory runs out, and say nothing on standard error.

use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::getppid;
use std::time::Duration;

/// More than the engine's own: a model is large, and the engine goes on without it.
const OOM_SCORE: &str = "700";

/// Ends the process at once, beside threads that still compute.
#[allow(unsafe_code)]
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` takes any status, touches no memory of this program and does not return.
    unsafe { libc::_exit(status) }
}

/// Ties the process to its parent's life; false if the parent is gone already. Call it first, while there is one thread.
///
/// The signal is SIGTERM, which ends the process with status 0: one that dies of a signal and is then reaped by a postmaster
/// as PID 1 would make it restart the cluster.
pub(crate) fn tie_to_parent() -> bool {
    close_inherited();
    std::panic::set_hook(Box::new(|_| {}));
    end_on_signals();
    let parent = getppid();
    let tied = prctl::set_pdeathsig(Signal::SIGTERM).is_ok();
    // Left out where the system refuses: the process is no worse than the engine then.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    tied && prctl::set_dumpable(false).is_ok() && getppid() == parent
}

#[allow(unsafe_code)]
fn end_on_signals() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let action = SigAction::new(SigHandler::Handler(end), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler only calls `_exit`, which may be called in a signal handler.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

extern "C" fn end(_signal: i32) {
    exit_now(0);
}

fn close_inherited() {
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

/// The time of cores that this process has taken; zero where the system does not say.
pub(crate) fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Whether the processor has what llama.cpp was compiled for.
pub(crate) fn computes_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("f16c")
        && std::arch::is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    true
}
