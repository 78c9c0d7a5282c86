//! The examples of docs/clients.md, run in the order of the page by the clients that it is about.
//!
//! Each section goes on in a database and a folder of its own, as the role `app`. There, a block in a programming language is
//! written to the file that its first line names in a comment, a block marked `sql` is run by psql, and one marked `sh` by a
//! shell, which finds the clients of scripts/fetch-clients.sh and the server by libpq's variables. What an unmarked block right
//! behind it shows is the end of what it prints.

use super::page::{Fence, Page};
use super::{run, shown, trimmed};
use rag_tests::{Database, repository, shared, wait_until};
use regex::Regex;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

pub(super) const PAGE: &str = "docs/clients.md";

/// Where a Postgres of a distribution listens, which the page's configuration of PgBouncer names.
const USUAL_SOCKET: &str = "/var/run/postgresql";

/// In a section's folder.
const BACKGROUND_LOG: &str = "background.log";

/// A section's database and folder, and what runs there in the background.
struct Place {
    database: Database<'static>,
    folder: PathBuf,
    background: Vec<Child>,
}

impl Place {
    fn new(name: &str) -> Self {
        let database = Database::new(name);
        role_of_the_page();
        database.admin().run("SELECT rag_enable('app')");
        let folder = shared().subfolder(database.name());
        std::os::unix::fs::symlink(clients().join("node_modules"), folder.join("node_modules")).unwrap();
        Self { database, folder, background: Vec::new() }
    }

    fn follow(&mut self, section: &Page) {
        let fences = section.fences();
        for (index, block) in fences.iter().enumerate() {
            let place = format!("{}:{}", section.name, block.line);
            let shown = shown(fences.get(index + 1));
            match block.language.as_str() {
                "" => (),
                "sql" => run(shared(), self.database.name(), "app", &place, &block.body, shown),
                "sh" => self.call(&place, &block.body, shown),
                _ => self.write(block, &place),
            }
        }
    }

    /// Writes a file that a block shows.
    fn write(&self, block: &Fence, place: &str) {
        let named = Regex::new(r"^(?:#|//|;|\{#|--) *([\w./]+\.\w+)\b").unwrap();
        let name = named.captures(&block.body).unwrap_or_else(|| panic!("{place} names no file"));
        let path = self.folder.join(&name[1]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let socket = shared().environment()[0].1.clone();
        std::fs::write(path, block.body.replace(USUAL_SOCKET, &socket) + "\n").unwrap();
    }

    /// Runs what a shell is told. A line that ends in `&` is left running until the section's end.
    fn call(&mut self, place: &str, lines: &str, shown: Option<&str>) {
        if let Some(program) = lines.trim_end().strip_suffix('&') {
            return self.leave_running(program);
        }
        let mut shell = self.in_folder(Command::new("sh"));
        let output = shell.args(["-e", "-c", lines]).output().unwrap();
        let (printed, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{place}: {lines}\n{printed}\n{errors}");
        if let Some(shown) = shown {
            assert!(trimmed(&printed).ends_with(&trimmed(shown)), "{place} prints\n{printed}\n{errors}");
        }
    }

    /// As the server's user, since a pooler refuses to be root's; until it listens.
    fn leave_running(&mut self, program: &str) {
        let shell = shared().installation().command("/bin/sh");
        let log =
            || File::options().create(true).append(true).open(self.folder.join(BACKGROUND_LOG)).unwrap();
        let mut command = self.in_folder(shell);
        command.args(["-c", &format!("exec {program}")]).stdout(log()).stderr(log());
        let child = command.spawn().unwrap();
        self.background.push(child);
        wait_until(&format!("{program} listens"), Duration::from_secs(30), || {
            let files = std::fs::read_dir(&self.folder).unwrap();
            files.flatten().any(|file| file.file_type().unwrap().is_socket())
        });
    }

    /// Gives a program the section's folder, the page's role, and nothing else but paths.
    fn in_folder(&self, mut program: Command) -> Command {
        let server = shared().installation().path("--bindir");
        let inherited = PathBuf::from(std::env::var_os("PATH").unwrap());
        let own = ["python/bin", "node/bin", "pgbouncer/usr/sbin"].map(|folder| clients().join(folder));
        let path: Vec<PathBuf> =
            own.into_iter().chain([server]).chain(std::env::split_paths(&inherited)).collect();
        program.env_clear().env("PATH", std::env::join_paths(path).unwrap());
        program.env("HOME", &self.folder).env("LC_ALL", "C.UTF-8").current_dir(&self.folder);
        program.envs(shared().environment()).env("PGUSER", "app").env("PGDATABASE", self.database.name());
        program.stdin(Stdio::null());
        program
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for child in &mut self.background {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let said = std::fs::read_to_string(self.folder.join(BACKGROUND_LOG)).unwrap_or_default();
            eprintln!("--- what ran in the background said ---\n{said}");
        }
    }
}

/// What scripts/fetch-clients.sh has set up.
///
/// Panics if nobody says where: a test that cannot run has failed.
fn clients() -> &'static Path {
    static CLIENTS: OnceLock<PathBuf> = OnceLock::new();
    CLIENTS.get_or_init(|| {
        let folder = std::env::var_os("RAG_TEST_CLIENTS").unwrap_or_else(|| {
            panic!("RAG_TEST_CLIENTS is not set: RAG_TEST_CLIENTS=$(scripts/fetch-clients.sh)")
        });
        PathBuf::from(folder)
    })
}

/// Sections are tested at the same time, and the role is one for all databases.
fn role_of_the_page() {
    static ROLE: OnceLock<()> = OnceLock::new();
    ROLE.get_or_init(|| shared().connect("postgres", "postgres").run("CREATE ROLE app LOGIN CREATEDB"));
}

fn section(title: &str) -> Page {
    Page::read(PAGE).part(title)
}

/// Follows a section of the page to its end.
fn follow(title: &str, database: &str) -> Place {
    let mut place = Place::new(database);
    place.follow(&section(title));
    place
}

#[test]
fn examples_of_psql_run() {
    follow("psql", "psql");
}

#[test]
fn examples_of_psycopg_run() {
    follow("psycopg", "psycopg");
}

#[test]
fn examples_of_sqlalchemy_run() {
    follow("SQLAlchemy", "sqlalchemy");
}

#[test]
fn examples_of_django_run() {
    follow("Django", "django");
}

#[test]
fn examples_of_node_postgres_and_drizzle_run() {
    follow("node-postgres and Drizzle", "node");
}

#[test]
fn examples_of_streaming_run() {
    follow("Streaming", "streaming");
}

#[test]
fn examples_of_pgbouncer_run() {
    follow("PgBouncer", "pgbouncer");
}

/// Rendered by jinja2 and wrapped as Superset does it, with stand-ins for Superset's own macros.
#[test]
fn a_data_set_of_superset_renders_and_has_typed_columns() {
    let mut place = follow("Superset", "superset");
    std::fs::copy(repository().join("tests/clients/superset.py"), place.folder.join("superset.py")).unwrap();
    place.call(
        "tests/clients/superset.py",
        "PGUSER=dashboard python superset.py dataset.sql",
        Some("all as expected"),
    );
}

#[test]
fn every_section_with_examples_is_run() {
    let own_text = std::fs::read_to_string(repository().join("tests/tests/docs/clients.rs")).unwrap();
    for (title, section) in Page::read(PAGE).sections(2) {
        let is_followed = own_text.contains(&format!("follow(\"{title}\""));
        assert_eq!(is_followed, !section.fences().is_empty(), "{PAGE}, {title}");
    }
}
