//! How a parse child confines itself: resource limits, Landlock without any path, and a seccomp allow-list.
//!
//! After that it can read its standard input, compute, and write its standard output; nothing else. What the kernel
//! does not offer is left out under `auto`, and ends the child under `require`.

use super::child_message::{ChildReply, ChildRequest, Confinement};
use super::prepare::ask_child;
use crate::failure::{Explain, failure};
use crate::process;
use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use rag_wire::{Failure, FailureCode, ParseLimits};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Descriptors that a child may hold: its standard streams, and room for what sets the confinement up.
const DESCRIPTORS: u64 = 16;

/// Less memory than this parses nothing.
const MIN_MEMORY_MB: u32 = 16;

/// Calls that computing, memory and the standard streams need.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that are allowed unless they make memory executable, with the number of their protection argument.
const ALLOWED_UNLESS_EXECUTABLE: &[(libc::c_long, u8)] = &[(libc::SYS_mmap, 2), (libc::SYS_mprotect, 2)];

/// Applies everything, in this order, and says what is in force.
pub(super) fn confine(limits: &ParseLimits) -> Result<Vec<String>, Failure> {
    let require = match limits.sandbox.as_str() {
        "require" => true,
        "auto" | "off" | "" => false,
        other => {
            let message =
                format!("unknown parse sandbox setting \"{}\"", other.chars().take(64).collect::<String>());
            return Err(failure(FailureCode::InvalidArgument, message).hint("Use auto, require or off."));
        }
    };
    limit_resources(limits).map_err(|e| refused("resource limits", &e.to_string()))?;
    let mut in_force = vec!["rlimits".to_owned()];
    if limits.sandbox == "off" {
        return Ok(in_force);
    }
    prctl::set_no_new_privs().map_err(|e| refused("no_new_privs", &e.to_string()))?;
    for (name, outcome) in [("landlock", landlock()), ("seccomp", seccomp())] {
        match outcome {
            Ok(()) => in_force.push(name.to_owned()),
            Err(reason) if require => return Err(refused(name, &reason)),
            Err(_) => {}
        }
    }
    Ok(in_force)
}

fn refused(what: &str, reason: &str) -> Failure {
    failure(FailureCode::NotAllowed, format!("the parse child cannot be confined by {what}"))
        .detail(reason)
        .hint("rag_ext.parse_sandbox = auto does with what the kernel offers.")
}

/// Memory is counted on top of what the program itself maps, so that the limit means the document's share.
fn limit_resources(limits: &ParseLimits) -> nix::Result<()> {
    let memory = process::mapped_bytes() + (u64::from(limits.memory_mb.max(MIN_MEMORY_MB)) << 20);
    let cpu = u64::from(limits.cpu_seconds.max(1));
    let pairs = [
        (Resource::RLIMIT_AS, memory),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NOFILE, DESCRIPTORS),
        (Resource::RLIMIT_NPROC, 0),
    ];
    for (resource, limit) in pairs {
        setrlimit(resource, limit, limit)?;
    }
    // SIGXCPU at the soft limit, SIGKILL a second later.
    setrlimit(Resource::RLIMIT_CPU, cpu, cpu + 1)
}

/// No path may be opened, no port bound or connected, no outside process signalled.
fn landlock() -> Result<(), String> {
    const NEWEST: ABI = ABI::V6;
    let confined = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(|rules| rules.create())
        .and_then(|rules| rules.restrict_self())
        .map_err(|e| e.to_string())?;
    // Partly: an older kernel that knows files but not ports; seccomp stands before those.
    match confined.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("the kernel does not offer Landlock".into()),
    }
}

/// Every call that is not on the list fails with EPERM.
fn seccomp() -> Result<(), String> {
    let program = program().map_err(|e| e.to_string())?;
    seccompiler::apply_filter(&program).map_err(|e| e.to_string())
}

fn program() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    for (call, protection) in ALLOWED_UNLESS_EXECUTABLE {
        let executable = libc::PROT_EXEC as u64;
        let not_executable = SeccompCondition::new(
            *protection,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(executable),
            0,
        )?;
        rules.insert(*call, vec![SeccompRule::new(vec![not_executable])?]);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

/// Tries each forbidden act in this process; the names of those that succeeded.
pub(super) fn try_forbidden_acts() -> Vec<String> {
    let parent = nix::unistd::getppid();
    let acts: [(&str, &dyn Fn() -> bool); 5] = [
        ("open", &|| std::fs::File::open("/proc/self/status").is_ok() || std::fs::File::open("/").is_ok()),
        ("write", &|| std::fs::File::options().write(true).open("/dev/null").is_ok()),
        ("socket", &|| std::net::UdpSocket::bind("127.0.0.1:0").is_ok()),
        // Without arguments it writes to standard error alone; standard output is for the child's answer.
        ("exec", &|| std::process::Command::new("/proc/self/exe").status().is_ok()),
        ("kill", &|| nix::sys::signal::kill(parent, None).is_ok()),
    ];
    acts.iter().filter(|(_, act)| act()).map(|(name, _)| (*name).to_owned()).collect()
}

/// Runs a child that tries what is forbidden; in words, what confines it: `rlimits, landlock, seccomp`.
pub(crate) fn self_test(limits: &ParseLimits) -> Result<String, Failure> {
    let confinement = Confinement { limits: limits.clone() };
    let deadline = Instant::now() + Duration::from_secs(60);
    let answer = ask_child(&confinement, &ChildRequest::SelfTest, None, Some(deadline));
    match answer.map_err(|e| e.into_failure())? {
        ChildReply::Tested { in_force, possible } if possible.is_empty() => Ok(in_force.join(", ")),
        ChildReply::Tested { in_force, possible } => {
            Ok(format!("{} (not prevented: {})", in_force.join(", "), possible.join(", ")))
        }
        ChildReply::Failed(failure) => Err(failure),
        ChildReply::Parsed(_) => Err(crate::failure::internal("the self-test answered with a document")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_allow_list_compiles_and_holds_none_of_the_forbidden_calls() {
        assert!(!program().unwrap().is_empty());
        let forbidden = [
            libc::SYS_openat,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_execve,
            libc::SYS_clone,
            libc::SYS_kill,
            libc::SYS_tgkill,
            libc::SYS_ptrace,
            libc::SYS_ioctl,
            libc::SYS_prctl,
            libc::SYS_memfd_create,
            libc::SYS_mmap,
        ];
        assert!(forbidden.iter().all(|call| !ALLOWED.contains(call)));
    }
}
