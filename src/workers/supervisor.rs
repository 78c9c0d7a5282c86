//! The worker "rag_ext engine": starts the engine, feeds it its settings, passes its log lines on, and starts it
//! anew when it ends. It never crashes with it, and leaves no process behind when it ends itself.

use crate::pg::child::{self, Child, Ended};
use crate::pg::worker::{self, Termination, Woken};
use crate::pg::{server, shared};
use crate::workers::engine_settings;
use crate::{config, engine};
use pgrx::{PgLogLevel, PgSqlErrorCode};
use rag_wire::Settings;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Before the first restart after a crash; doubles with each crash.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// An engine that ran so long is healthy: the next crash counts as the first.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long the engine may take to end when asked to.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks for a missing model folder.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Longest line that is passed on; the rest of a longer one is dropped.
const LINE_BYTES: usize = 4096;
/// Most lines passed on per [`LINE_PERIOD`], so that a broken engine does not fill the disk.
const LINES: u32 = 200;
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// What the engine and its libraries take for their user's home, in the folder of the cache.
const HOME: &str = "pg_stat_tmp/rag_ext/home";

/// The engine's process, for the exit callback; 0 if there is none.
static ENGINE: AtomicI32 = AtomicI32::new(0);

/// Supervises until the server or an administrator ends it, or the server dies.
pub(super) fn run() {
    worker::handle_signals(Termination::Request);
    if let Err(error) = child::become_subreaper() {
        warn(format!("rag_ext cannot become a child subreaper: {error}"), None);
    }
    worker::at_exit(at_exit);
    let mut supervisor = Supervisor::new();
    loop {
        if worker::stop_requested() {
            // The exit callback ends the engine.
            worker::exit_for_restart();
        }
        if worker::reload_configuration() {
            supervisor.reload();
        }
        let at_most = supervisor.step();
        let descriptor =
            supervisor.engine.as_ref().and_then(|engine| engine.errors.as_ref()).map(AsFd::as_fd);
        if worker::wait_as_supervisor(descriptor, at_most) == Woken::ByServerDeath {
            worker::exit_for_restart();
        }
    }
}

fn at_exit() {
    end_engine();
    // Nobody listens there any more. An engine that comes next would remove it as well, should it be left.
    let _ = std::fs::remove_file(engine::SOCKET);
    shared::engine_down(server::now() + micros(worker::RESTART_DELAY));
}

fn end_engine() {
    let pid = ENGINE.swap(0, Ordering::Relaxed);
    if pid != 0 {
        child::end(pid, PATIENCE);
    }
}

struct Supervisor {
    engine: Option<Engine>,
    retry_at: Instant,
    delay: Duration,
    /// How the engine ended last, if by itself.
    crash: String,
    /// What was warned of last, so that it is said once.
    warned: Vec<String>,
}

struct Engine {
    pid: i32,
    input: File,
    /// `None` once the engine has closed it.
    errors: Option<File>,
    lines: Lines,
    program: PathBuf,
    settings: Settings,
    started: Instant,
    /// When to look again for a model folder that was missing at the start.
    look_at: Option<Instant>,
}

impl Supervisor {
    fn new() -> Self {
        Self {
            engine: None,
            retry_at: Instant::now(),
            delay: FIRST_DELAY,
            crash: String::new(),
            warned: Vec::new(),
        }
    }

    /// Does what is due. Returns how long nothing is, unless something happens.
    fn step(&mut self) -> Duration {
        if let Some(engine) = &mut self.engine {
            engine.pass_on_lines();
        }
        while let Some(ended) = child::reap() {
            if self.engine.as_ref().is_some_and(|engine| engine.pid == ended.pid) {
                self.ended(ended);
            }
        }
        if let Some(engine) = &mut self.engine
            && engine.look_at.is_some_and(|at| at <= Instant::now())
        {
            engine.look_at = Some(Instant::now() + LOOK_AGAIN);
            if missing_folder(&engine.settings).is_none() {
                self.stop();
                self.retry_at = Instant::now();
            }
        }
        if self.engine.is_none() && self.retry_at <= Instant::now() {
            self.start();
        }
        let at = match &self.engine {
            Some(engine) => engine.look_at,
            None => Some(self.retry_at),
        };
        at.map_or(LOOK_AGAIN, |at| at.saturating_duration_since(Instant::now())).min(LOOK_AGAIN)
    }

    fn start(&mut self) {
        let (settings, mut problems) = engine_settings::read();
        let program = config::engine_path();
        let missing = missing_folder(&settings);
        problems.extend(missing.clone());
        match spawn(&program, &settings) {
            Ok(Child { pid, input, errors }) => {
                ENGINE.store(pid, Ordering::Relaxed);
                shared::engine_started(pid);
                shared::engine_error(problems.first().unwrap_or(&self.crash));
                self.warn_once(problems);
                self.engine = Some(Engine {
                    pid,
                    input,
                    errors: Some(errors),
                    lines: Lines::new(),
                    program,
                    settings,
                    started: Instant::now(),
                    look_at: missing.map(|_| Instant::now() + LOOK_AGAIN),
                });
            }
            Err(error) => {
                let problem = format!("engine program \"{}\" cannot be started: {error}", program.display());
                shared::engine_error(&problem);
                problems.insert(0, problem);
                self.warn_once(problems);
                self.retry_in(LONGEST_DELAY);
            }
        }
    }

    /// The engine ended by itself.
    fn ended(&mut self, ended: Ended) {
        let Some(mut engine) = self.engine.take() else { return };
        ENGINE.store(0, Ordering::Relaxed);
        child::end_orphans();
        engine.pass_on_lines();
        engine.lines.finish();
        if engine.started.elapsed() >= HEALTHY {
            self.delay = FIRST_DELAY;
        }
        let how = describe(ended.status, &engine.settings);
        log(
            PgLogLevel::LOG,
            format!("rag_ext engine (PID {}) {how}; it is started again in {:?}", ended.pid, self.delay),
            None,
        );
        self.crash = format!("the engine {how}");
        shared::engine_error(&self.crash);
        let delay = self.delay;
        self.delay = (delay * 2).min(LONGEST_DELAY);
        self.retry_in(delay);
    }

    /// Takes on changed settings, if need be by a new engine.
    fn reload(&mut self) {
        let Some(engine) = &mut self.engine else {
            // Whatever was wrong may be right now.
            self.warned.clear();
            self.delay = FIRST_DELAY;
            self.retry_at = Instant::now();
            return;
        };
        let (settings, problems) = engine_settings::read();
        if engine.program == config::engine_path() && engine.settings == settings {
            return;
        }
        let told = engine.program == config::engine_path()
            && !engine_settings::need_restart(&engine.settings, &settings)
            && engine.tell(&settings).is_ok();
        if told {
            engine.settings = settings;
            shared::engine_error(problems.first().unwrap_or(&self.crash));
            self.warn_once(problems);
        } else {
            log(PgLogLevel::LOG, "rag_ext engine is started again with its new settings".to_owned(), None);
            self.stop();
            self.crash.clear();
            self.retry_at = Instant::now();
        }
    }

    fn stop(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            end_engine();
            engine.pass_on_lines();
            engine.lines.finish();
        }
    }

    fn retry_in(&mut self, delay: Duration) {
        self.retry_at = Instant::now() + delay;
        shared::engine_down(server::now() + micros(delay));
    }

    fn warn_once(&mut self, problems: Vec<String>) {
        for problem in problems.iter().filter(|problem| !self.warned.contains(problem)) {
            let hint =
                "Correct the setting or install what is missing; the server's configuration can be reloaded.";
            warn(format!("rag_ext: {problem}"), Some(hint));
        }
        self.warned = problems;
    }
}

impl Engine {
    /// Sends settings. A pipe that is full, or closed, belongs to an engine that does not read.
    fn tell(&mut self, settings: &Settings) -> io::Result<()> {
        send_settings(&mut self.input, settings)
    }

    fn pass_on_lines(&mut self) {
        let Some(errors) = &mut self.errors else { return };
        let mut piece = [0; LINE_BYTES];
        loop {
            match errors.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => self.lines.take(&piece[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        self.errors = None;
    }
}

fn spawn(program: &Path, settings: &Settings) -> io::Result<Child> {
    let home = std::env::current_dir()?.join(HOME);
    DirBuilder::new().recursive(true).mode(0o700).create(&home)?;
    let mut child = child::spawn(program, &["serve"], &environment(&home))?;
    // An engine that ends before it reads is told of when it is reaped.
    let _ = send_settings(&mut child.input, settings);
    Ok(child)
}

/// All that the engine finds in its environment. The libraries in it keep caches and temporary files where these
/// names say, and look into the home of the server's user where they say nothing.
fn environment(home: &Path) -> Vec<(&'static str, OsString)> {
    let mut environment = vec![
        ("LC_ALL", "C.UTF-8".into()),
        // ONNX Runtime reads it while it is loaded, before its interface can be told the same.
        ("ORT_DISABLE_TELEMETRY", "1".into()),
    ];
    let folders = ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
    environment.extend(folders.map(|name| (name, home.as_os_str().to_owned())));
    environment
}

fn send_settings(to: &mut File, settings: &Settings) -> io::Result<()> {
    let frame = rag_wire::encode(settings).map_err(|error| io::Error::other(error.to_string()))?;
    to.write_all(&frame)
}

fn missing_folder(settings: &Settings) -> Option<String> {
    let found = settings.model_folders.iter().any(|folder| Path::new(folder).is_dir());
    (!found).then(|| format!("model folder \"{}\" does not exist", settings.model_folders.join(":")))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2)
}

fn describe(status: ExitStatus, settings: &Settings) -> String {
    match (status.signal(), status.code()) {
        (_, Some(rag_wire::OVER_MEMORY_LIMIT)) => format!(
            "ended itself, for it held more memory than rag_ext.engine_memory_limit allows, {} MB",
            settings.memory_limit_mb
        ),
        (Some(libc::SIGKILL), _) => {
            "was killed (signal 9), by somebody or for want of memory on this machine".to_owned()
        }
        (Some(signal), _) => format!("was terminated by signal {signal}"),
        (_, Some(code)) => format!("exited with status {code}"),
        _ => "ended".to_owned(),
    }
}

/// The engine's log, cut into lines: `LEVEL: message`.
struct Lines {
    line: Vec<u8>,
    passed_on: u32,
    dropped: u32,
    since: Instant,
}

impl Lines {
    fn new() -> Self {
        Self { line: Vec::new(), passed_on: 0, dropped: 0, since: Instant::now() }
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.pass_on();
            } else if self.line.len() < LINE_BYTES {
                self.line.push(byte);
            }
        }
    }

    /// Passes on what came without a line's end, once no more can come.
    fn finish(&mut self) {
        self.pass_on();
        self.tell_of_dropped();
    }

    fn pass_on(&mut self) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        if self.since.elapsed() >= LINE_PERIOD {
            self.tell_of_dropped();
            (self.passed_on, self.since) = (0, Instant::now());
        }
        if self.passed_on >= LINES {
            self.dropped += 1;
            return;
        }
        self.passed_on += 1;
        // An error of the engine's is a warning here: at the server's own level it would end this worker.
        let levels = [
            ("LOG: ", PgLogLevel::LOG),
            ("DEBUG: ", PgLogLevel::DEBUG1),
            ("WARNING: ", PgLogLevel::WARNING),
            ("ERROR: ", PgLogLevel::WARNING),
        ];
        let (level, message) = levels
            .iter()
            .find_map(|(word, level)| Some((*level, line.strip_prefix(word)?)))
            .unwrap_or((PgLogLevel::WARNING, &line));
        log(level, format!("rag-engine: {message}"), None);
    }

    fn tell_of_dropped(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            warn(format!("rag-engine: {dropped} further lines were dropped"), None);
        }
    }
}

fn warn(message: String, hint: Option<&str>) {
    log(PgLogLevel::WARNING, message, hint);
}

fn log(level: PgLogLevel, message: String, hint: Option<&str>) {
    let code = match level {
        PgLogLevel::WARNING => PgSqlErrorCode::ERRCODE_WARNING,
        _ => PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
    };
    worker::log(level, code, message, hint);
}
