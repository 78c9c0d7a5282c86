//! How the process confines itself before it reads a model: it may open that one file, and no network, program or other process.
//!
//! A GGUF file comes from elsewhere, and the questions hold documents. What the kernel does not offer is left out.

use crate::{failure, not_loaded};
use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use rag_wire::{Failure, FailureCode};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Calls that computing has no use for. Files are Landlock's matter; threads are needed.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
];

/// Applies all of it, and says what is in force. Call it while there is one thread: others would not be confined.
pub(crate) fn confine(file: &str) -> Result<Vec<String>, Failure> {
    let refused = |e: nix::Error| failure(FailureCode::NotLoaded, format!("rag-llm cannot be confined: {e}"));
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(refused)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0).map_err(refused)?;
    prctl::set_no_new_privs().map_err(refused)?;
    let file = PathFd::new(file).map_err(|e| not_loaded(&e.to_string()))?;
    let mut in_force = vec!["rlimits".to_owned()];
    if landlock(file).is_some_and(|status| status != RulesetStatus::NotEnforced) {
        in_force.push("landlock".to_owned());
    }
    if program().is_some_and(|program| seccompiler::apply_filter(&program).is_ok()) {
        in_force.push("seccomp".to_owned());
    }
    Ok(in_force)
}

fn landlock(file: PathFd) -> Option<RulesetStatus> {
    const NEWEST: ABI = ABI::V6;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(|rules| rules.create())
        .and_then(|rules| rules.add_rule(PathBeneath::new(file, AccessFs::ReadFile)))
        .and_then(|rules| rules.restrict_self());
    rules.ok().map(|confined| confined.ruleset)
}

fn program() -> Option<BpfProgram> {
    let rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into().ok()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).ok()?.try_into().ok()
}
