//! The Postgres under test: where its programs are, and which user may run its server.
//!
//! Installing rag_ext into it is left to `make install`.

use std::path::PathBuf;
use std::process::Command;

/// A Postgres, and the user who runs its servers.
#[derive(Debug, Clone)]
pub struct Installation {
    pg_config: PathBuf,
    bin: PathBuf,
    /// User and group ids, where this process is root: a server refuses to run as root.
    server_user: Option<(u32, u32)>,
}

impl Installation {
    /// The Postgres that `RAG_TEST_PG_CONFIG` names.
    ///
    /// Panics if it is not set: a test that cannot run has failed.
    pub fn from_env() -> Self {
        let pg_config = std::env::var_os("RAG_TEST_PG_CONFIG").map(PathBuf::from).unwrap_or_else(|| {
            panic!("RAG_TEST_PG_CONFIG is not set: run `make test`, which installs rag_ext and sets it")
        });
        Self::of(pg_config)
    }

    /// The Postgres of this `pg_config`.
    pub fn of(pg_config: PathBuf) -> Self {
        let bin = PathBuf::from(ask(&pg_config, "--bindir"));
        let root = rustix::process::geteuid().is_root();
        Self { pg_config, bin, server_user: root.then(unprivileged_user) }
    }

    /// The major version, such as 18.
    pub fn major(&self) -> u32 {
        let version = ask(&self.pg_config, "--version");
        let digits: String =
            version.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("no version in {version:?}"))
    }

    /// What `pg_config` answers to an option such as `--pkglibdir`.
    pub fn path(&self, option: &str) -> PathBuf {
        PathBuf::from(ask(&self.pg_config, option))
    }

    /// A program of this Postgres, to be run as the server's user with an empty environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        clean(&mut command);
        if let Some((uid, gid)) = self.server_user {
            use std::os::unix::process::CommandExt;
            command.uid(uid).gid(gid);
        }
        command
    }

    /// The server as PID 1 of a PID namespace, as in a container.
    pub(crate) fn server_as_pid_1(&self) -> Command {
        self.server_in_namespaces(&["--pid", "--fork", "--mount-proc", "--kill-child"], &[])
    }

    /// The server in a network of its own, in which nothing can be reached. Where this process is root, the home of
    /// the server's user is empty and the server's alone.
    pub(crate) fn server_offline(&self) -> Command {
        let home = self.server_home().display().to_string();
        match self.server_user {
            Some(_) => self.server_in_namespaces(
                &["--net", "--mount"],
                &["sh", "-c", "{ [ ! -d \"$0\" ] || mount -t tmpfs tmpfs \"$0\"; } && exec \"$@\"", &home],
            ),
            None => self.server_in_namespaces(&["--net"], &[]),
        }
    }

    /// The server by way of `unshare` with these options and of another program, if one is named.
    fn server_in_namespaces(&self, options: &[&str], by_way_of: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        clean(&mut command);
        command.args(options);
        match self.server_user {
            Some((uid, gid)) => {
                command.args(by_way_of);
                command.arg("setpriv").arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
                command.arg("--clear-groups");
            }
            None => {
                command.args(["--user", "--map-current-user"]);
            }
        }
        command.arg(self.bin.join("postgres"));
        command
    }

    /// Home folder of the user who runs servers.
    pub fn server_home(&self) -> PathBuf {
        let uid = self.server_user.map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid);
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let of_user = fields.filter(|fields| fields.get(2) == Some(&uid.to_string().as_str()));
        of_user.map(|fields| PathBuf::from(fields[5])).next().expect("the server's user in /etc/passwd")
    }

    /// Gives a file or folder to the server's user.
    pub(crate) fn hand_over(&self, path: &std::path::Path) {
        if let Some((uid, gid)) = self.server_user {
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
        }
    }
}

fn clean(command: &mut Command) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("LC_ALL", "C.UTF-8").env("HOME", "/nonexistent");
    command.current_dir("/");
}

fn ask(pg_config: &std::path::Path, option: &str) -> String {
    let output = Command::new(pg_config)
        .arg(option)
        .output()
        .unwrap_or_else(|e| panic!("RAG_TEST_PG_CONFIG: cannot run {}: {e}", pg_config.display()));
    assert!(output.status.success(), "{} {option} failed", pg_config.display());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// `postgres`, whom the packages of every distribution create, else `nobody`.
fn unprivileged_user() -> (u32, u32) {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let find = |name: &str| {
        passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.first() == Some(&name)).then(|| (fields[2].parse().unwrap(), fields[3].parse().unwrap()))
        })
    };
    find("postgres").or_else(|| find("nobody")).expect("neither postgres nor nobody in /etc/passwd")
}
