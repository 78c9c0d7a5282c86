//! A child process of a background worker: started with nothing of the server's, ended and reaped with all of
//! its own children.
//!
//! The process that uses this becomes a child subreaper, so that a grandchild whose parent dies is handed to it
//! and not to the postmaster, which would take an unknown child's death for a crash of the server.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running child: it leads a session and a process group of its own.
pub(crate) struct Child {
    pub(crate) pid: i32,
    /// Its standard input; does not block. Closing it tells the child that its parent is gone.
    pub(crate) input: File,
    /// Its standard error; does not block.
    pub(crate) errors: File,
}

/// How a child ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) pid: i32,
    pub(crate) status: ExitStatus,
}

/// Has orphaned grandchildren handed to this process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: this call takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Starts a program with this environment and nothing of the server's, default signal handling and no descriptor but
/// its standard ones.
///
/// The server's death or that of this process ends it with SIGTERM, should it not notice its input's end.
pub(crate) fn spawn(
    program: &Path,
    arguments: &[&str],
    environment: &[(&str, OsString)],
) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let parent = std::process::id();
    // SAFETY: the closure makes system calls only, allocates nothing and takes no locks, as it must between
    // fork and exec.
    unsafe { command.pre_exec(move || detach(parent)) };
    let mut child = with_signals_blocked(|| command.spawn())?;
    let (Some(input), Some(errors)) = (child.stdin.take(), child.stderr.take()) else {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    };
    let (input, errors) = (File::from(OwnedFd::from(input)), File::from(OwnedFd::from(errors)));
    // Closing or dropping `child` neither ends nor reaps it: `reap` does.
    let pid = child.id() as i32;
    set_nonblocking(&input)?;
    set_nonblocking(&errors)?;
    Ok(Child { pid, input, errors })
}

/// What the child does to itself before it becomes the program.
fn detach(parent: u32) -> io::Result<()> {
    // SAFETY: system calls on this process alone; the signal set is initialised before it is used.
    unsafe {
        // Handlers are reset by exec; ignored signals would stay ignored.
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        check(libc::setsid())?;
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0))?;
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        close_descriptors_at_exec();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()))?;
    }
    Ok(())
}

/// Marks everything from descriptor 3 on. At once by the kernel since Linux 5.11, else one by one.
fn close_descriptors_at_exec() {
    // SAFETY: takes numbers only; a descriptor that is not open is refused.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        for descriptor in 3..limit.rlim_cur.min(65_536) as i32 {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Runs `start` with all signals held back, so that no handler of the server's runs in the new process.
fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised before they are read, and the mask is put back as it was.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}

fn set_nonblocking(pipe: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, and no memory is passed.
    unsafe {
        let flags = check(libc::fcntl(pipe.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)).map(drop)
    }
}

/// Takes the next child, or grandchild handed to this process, that has ended. `None` if there is none now.
pub(crate) fn reap() -> Option<Ended> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (pid > 0).then(|| Ended { pid, status: ExitStatus::from_raw(status) })
}

/// Asks a child to end, then kills it and all that it leaves, and reaps them. Takes `patience` at most for the
/// first; SIGKILL needs little more.
pub(crate) fn end(pid: i32, patience: Duration) {
    signal(pid, libc::SIGTERM);
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        while let Some(ended) = reap() {
            if ended.pid == pid {
                end_orphans();
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(-pid, libc::SIGKILL);
    signal(pid, libc::SIGKILL);
    end_orphans();
}

/// Kills and reaps every child that this process has, until none is left; gives up on one that the kernel
/// does not let die within two seconds.
pub(crate) fn end_orphans() {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        while reap().is_some() {}
        let children = children();
        if children.is_empty() || Instant::now() > deadline {
            return;
        }
        for child in children {
            signal(child, libc::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// This process's children, zombies included.
fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let pid = name.to_str()?.parse::<i32>().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // `pid (name) state parent …`; a name may hold anything, parentheses too.
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.to_owned();
            (parent == own).then_some(pid)
        })
        .collect()
}

/// Sends a signal; a negative number is a process group. A process that is gone is none to worry about.
pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: takes numbers only.
    unsafe { libc::kill(pid, signal) };
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
