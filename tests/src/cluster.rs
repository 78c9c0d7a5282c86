//! A Postgres server of a test's own: made, started, stopped, killed, copied, and gone at the end.

use crate::guardian::Guardian;
use crate::poll::{eventually, wait_until};
use crate::process::{Process, processes_below, processes_within};
use crate::{Database, Installation, Session};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Part of the socket's name in the cluster's own folder. Nobody listens on it, so no two clusters collide.
const PORT: u16 = 5432;

/// Durability is off: what is tested is a crash of the server, not of the machine.
const SETTINGS: &str = "
listen_addresses = ''
max_connections = 60
max_worker_processes = 24
fsync = off
shared_buffers = '64MB'
wal_level = replica
log_line_prefix = '%m [%p] %q%u@%d '
log_checkpoints = off
log_timezone = 'UTC'
timezone = 'UTC'
";

/// How a server is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions are ended, then a checkpoint.
    Fast,
    /// As if it had crashed.
    Immediate,
}

/// What a cluster is to be like.
#[derive(Debug, Clone)]
pub struct Builder {
    name: String,
    installation: Option<Installation>,
    preload: bool,
    pid_1: bool,
    offline: bool,
    settings: String,
}

impl Builder {
    /// Takes another Postgres than the one under test.
    #[must_use]
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = Some(installation);
        self
    }

    /// Adds a line to postgresql.conf.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings += &format!("{name} = '{}'\n", value.replace('\'', "''"));
        self
    }

    /// Leaves rag_ext out of shared_preload_libraries.
    #[must_use]
    pub fn without_preload(mut self) -> Self {
        self.preload = false;
        self
    }

    /// Runs the server as PID 1 of a PID namespace, as a container does.
    #[must_use]
    pub fn as_pid_1(mut self) -> Self {
        self.pid_1 = true;
        self
    }

    /// Runs the server in a network namespace of its own, in which nothing can be reached.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.offline = true;
        self
    }

    /// Makes the cluster and starts it.
    pub fn start(self) -> Cluster {
        let installation = self.installation.unwrap_or_else(Installation::from_env);
        let mut cluster = Cluster::empty(installation, &self.name, self.pid_1);
        cluster.offline = self.offline;
        cluster.call(
            cluster
                .installation
                .command("initdb")
                .args([
                    "--auth=trust",
                    "--username=postgres",
                    "--encoding=UTF8",
                    "--locale=C.UTF-8",
                    "--no-sync",
                ])
                .arg("-D")
                .arg(&cluster.data),
        );
        cluster.configure(SETTINGS);
        if self.preload {
            cluster.configure("shared_preload_libraries = 'rag_ext'\n");
        }
        cluster.configure(&self.settings);
        cluster.start();
        cluster
    }
}

/// A throw-away server. Dropping it stops it and removes its folder; if the test failed, the end of the
/// server's log is printed first.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    installation: Installation,
    folder: PathBuf,
    data: PathBuf,
    pid_1: bool,
    offline: bool,
    server: Mutex<Option<Child>>,
    guardian: Mutex<Guardian>,
}

impl Cluster {
    /// Begins to describe a cluster.
    pub fn builder(name: &str) -> Builder {
        Builder {
            name: name.into(),
            installation: None,
            preload: true,
            pid_1: false,
            offline: false,
            settings: String::new(),
        }
    }

    fn empty(installation: Installation, name: &str, pid_1: bool) -> Self {
        // The server's user must be able to enter it, and a socket's path has at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("rag_test_").tempdir_in("/var/tmp").unwrap().keep();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&folder, mode).unwrap();
        installation.hand_over(&folder);
        let guardian = Guardian::of(&folder);
        let cluster = Self {
            name: name.into(),
            installation,
            data: folder.join("data"),
            folder,
            pid_1,
            offline: false,
            server: Mutex::new(None),
            guardian: Mutex::new(guardian),
        };
        std::fs::create_dir(&cluster.data).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&cluster.data, private).unwrap();
        cluster.installation.hand_over(&cluster.data);
        cluster
    }

    /// Appends to postgresql.conf; takes effect at the next start or reload.
    pub fn configure(&self, lines: &str) {
        let path = self.data.join("postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        writeln!(file, "\n{lines}").unwrap();
    }

    /// Makes the server read its configuration again.
    pub fn reload(&self) {
        self.connect("postgres", "postgres").run("SELECT pg_reload_conf()");
    }

    /// Starts the server and waits until it lets somebody in.
    pub fn start(&self) {
        let mut server = self.server.lock().unwrap();
        assert!(server.is_none(), "{} runs already", self.name);
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = match (self.pid_1, self.offline) {
            (true, _) => self.installation.server_as_pid_1(),
            (false, true) => self.installation.server_offline(),
            (false, false) => self.installation.command("postgres"),
        };
        command.arg("-D").arg(&self.data).arg("-p").arg(PORT.to_string()).arg("-k").arg(&self.folder);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let ended = eventually("the server lets somebody in", START_LIMIT, || {
            if let Some(status) = child.try_wait().unwrap() {
                return Some(Some(status));
            }
            Session::open(&self.folder, PORT, "postgres", "postgres").ok().map(|_| None)
        });
        if let Some(status) = ended {
            panic!("{} did not start ({status})\n{}", self.name, self.log_tail());
        }
        *server = Some(child);
    }

    /// Stops the server and waits for its end.
    pub fn stop(&self, mode: Shutdown) {
        let signal = match mode {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        };
        self.end_server(signal);
    }

    /// Stops the server fast and starts it again.
    pub fn restart(&self) {
        self.stop(Shutdown::Fast);
        self.start();
    }

    /// Kills the postmaster with SIGKILL and waits until all its children are gone, the engine included.
    pub fn kill9(&self) {
        let tree = self.processes();
        self.end_server(Signal::KILL);
        wait_until_gone(&tree);
        // Whom it let in since the tree was read.
        wait_until_gone(&processes_within(&self.data));
    }

    /// The server's processes: postmaster, backends, workers, engine.
    pub fn processes(&self) -> Vec<Process> {
        processes_below(self.postmaster())
    }

    /// The engine process, as the operating system shows it.
    pub fn engine(&self) -> Option<Process> {
        self.processes().into_iter().find(|process| process.command.contains("rag-engine serve"))
    }

    /// The engine process, waiting for it to come up and to serve.
    #[track_caller]
    pub fn running_engine(&self) -> Process {
        let mut session = self.connect("postgres", "postgres");
        wait_until("the engine answers", Duration::from_secs(60), || {
            let databases = session.column(
                "SELECT datname FROM pg_database WHERE datallowconn AND datname <> 'postgres' ORDER BY oid DESC",
            );
            // Another test may be about to drop its own.
            databases.iter().any(|name| {
                let inside = self.try_connect("postgres", name);
                inside.is_ok_and(|mut inside| inside.try_rows("SELECT rag_embed('ready?')").is_ok())
            })
        });
        eventually("an engine process", Duration::from_secs(10), || self.engine())
    }

    /// The postmaster's process id outside of any namespace.
    pub fn postmaster(&self) -> i32 {
        let id = self.server.lock().unwrap().as_ref().expect("the server runs").id();
        let id = i32::try_from(id).unwrap();
        if !self.pid_1 {
            return id;
        }
        let inside = || processes_below(id).into_iter().find(|process| process.inner_pid == 1);
        eventually("the server in its namespace", START_LIMIT, inside).pid
    }

    fn end_server(&self, signal: Signal) {
        let postmaster = self.postmaster();
        let mut child = self.server.lock().unwrap().take().expect("the server runs");
        kill_process(Pid::from_raw(postmaster).unwrap(), signal).unwrap();
        wait_until("the server ends", STOP_LIMIT, || child.try_wait().unwrap().is_some());
    }

    /// A hot standby that streams from this server.
    pub fn standby(&self, name: &str) -> Cluster {
        let standby = Self::empty(self.installation.clone(), name, false);
        self.call(
            self.installation
                .command("pg_basebackup")
                .args([
                    "--write-recovery-conf",
                    "--wal-method=stream",
                    "--checkpoint=fast",
                    "--username=postgres",
                ])
                .arg("--host")
                .arg(&self.folder)
                .arg("--port")
                .arg(PORT.to_string())
                .arg("--pgdata")
                .arg(&standby.data),
        );
        standby.configure("hot_standby = on\n");
        standby.start();
        standby
    }

    /// Waits until a standby has replayed all that this server has written.
    #[track_caller]
    pub fn wait_for(&self, standby: &Cluster) {
        let written = self.connect("postgres", "postgres").value("SELECT pg_current_wal_lsn()");
        let mut session = standby.connect("postgres", "postgres");
        wait_until("the standby has caught up", Duration::from_secs(60), || {
            session.holds(&format!("SELECT pg_last_wal_replay_lsn() >= '{written}'"))
        });
    }

    /// Connects, or panics.
    #[track_caller]
    pub fn connect(&self, role: &str, database: &str) -> Session {
        self.try_connect(role, database)
            .unwrap_or_else(|failure| panic!("cannot connect to {database} as {role}: {failure}"))
    }

    /// Connects.
    pub fn try_connect(&self, role: &str, database: &str) -> Result<Session, crate::Failure> {
        Session::open(&self.folder, PORT, role, database)
    }

    /// A new database with the extension in it.
    pub fn database(&self, name: &str) -> Database<'_> {
        Database::create(self, name, None)
    }

    /// A client program of this Postgres, pointed at this server.
    pub fn program(&self, program: &str) -> Command {
        let mut command = self.installation.command(program);
        command.arg("--host").arg(&self.folder).arg("--port").arg(PORT.to_string());
        command.args(["--username", "postgres"]);
        command
    }

    /// Runs a program to its end and returns what it printed; panics if it fails.
    #[track_caller]
    pub fn call(&self, command: &mut Command) -> String {
        let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?} failed: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A file that the server's user may write, in the cluster's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        File::create(&path).unwrap();
        self.installation.hand_over(&path);
        path
    }

    /// A folder that the server's user may write, in the cluster's folder. What works in it ends with the cluster.
    pub fn subfolder(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::create_dir(&path).unwrap();
        self.installation.hand_over(&path);
        path
    }

    /// Where clients find the server, in libpq's variables.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        [("PGHOST", self.folder.display().to_string()), ("PGPORT", PORT.to_string())]
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The Postgres that it runs.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// All that the server has logged.
    pub fn log(&self) -> String {
        std::fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last lines of the log.
    pub fn log_tail(&self) -> String {
        self.log_tail_where(|_| true)
    }

    /// The last lines of the log that sessions of one database wrote.
    pub(crate) fn log_tail_of(&self, database: &str) -> String {
        let mark = format!("@{database} ");
        self.log_tail_where(|line| line.contains(&mark))
    }

    fn log_tail_where(&self, wanted: impl Fn(&str) -> bool) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().filter(|line| wanted(line)).collect();
        let tail = lines[lines.len().saturating_sub(40)..].join("\n");
        format!("--- end of the log of {} ---\n{tail}\n---", self.name)
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
        self.guardian.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).finish();
        let mut server = self.server.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(mut child) = server.take() {
            let _ = child.wait();
        }
    }
}

/// Waits until none of these processes is left.
#[track_caller]
pub(crate) fn wait_until_gone(processes: &[Process]) {
    let left = || processes.iter().filter(|process| process.runs()).collect::<Vec<_>>();
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !left().is_empty() {
        assert!(std::time::Instant::now() < deadline, "still there after the server's end: {:#?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}
