//! One connection, with the few calls that make tests read as SQL and its outcome.

use postgres::error::DbError;
use postgres::{Client, NoTls, SimpleQueryMessage};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// SQLSTATE, or `closed` where the connection broke.
    pub code: String,
    /// The message.
    pub message: String,
    /// DETAIL, empty if none.
    pub detail: String,
    /// HINT, empty if none.
    pub hint: String,
}

impl Failure {
    fn of(error: &postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => error.into(),
            None => Self {
                code: "closed".into(),
                message: error.to_string(),
                detail: String::new(),
                hint: String::new(),
            },
        }
    }
}

impl From<&DbError> for Failure {
    fn from(error: &DbError) -> Self {
        Self {
            code: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().unwrap_or_default().to_owned(),
            hint: error.hint().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} DETAIL {} HINT {}", self.code, self.message, self.detail, self.hint)
    }
}

/// A connection as one role to one database. Every call that is not named `try_…` or `error` panics with
/// the statement when it fails.
pub struct Session {
    client: Client,
    notices: Arc<Mutex<Vec<Failure>>>,
    pid: i32,
}

impl Session {
    /// Connects through the socket in `folder`.
    pub(crate) fn open(folder: &Path, port: u16, role: &str, database: &str) -> Result<Self, Failure> {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&notices);
        let mut client = postgres::Config::new()
            .host_path(folder)
            .port(port)
            .user(role)
            .dbname(database)
            .connect_timeout(std::time::Duration::from_secs(20))
            .notice_callback(move |notice| seen.lock().unwrap().push(Failure::from(&notice)))
            .connect(NoTls)
            .map_err(|e| Failure::of(&e))?;
        let row = client.query_one("SELECT pg_backend_pid()", &[]).map_err(|e| Failure::of(&e))?;
        Ok(Self { pid: row.get(0), client, notices })
    }

    /// The backend's process id, in the server's own PID namespace.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Runs statements. Several in one text are one transaction, unless they say otherwise.
    #[track_caller]
    pub fn run(&mut self, sql: &str) {
        if let Err(failure) = self.try_run(sql) {
            panic!("{failure}\nin: {}", shortened(sql));
        }
    }

    /// Runs statements that may fail.
    pub fn try_run(&mut self, sql: &str) -> Result<(), Failure> {
        self.client.batch_execute(sql).map_err(|e| Failure::of(&e))
    }

    /// Runs statements that must fail, and says how they did.
    #[track_caller]
    pub fn error(&mut self, sql: &str) -> Failure {
        match self.try_rows(sql) {
            Ok(rows) => panic!("no error but {} rows from: {}", rows.len(), shortened(sql)),
            Err(failure) => failure,
        }
    }

    /// Runs statements that must fail with this SQLSTATE.
    #[track_caller]
    pub fn refuses(&mut self, code: &str, sql: &str) -> Failure {
        let failure = self.error(sql);
        assert_eq!(failure.code, code, "{failure}\nin: {}", shortened(sql));
        failure
    }

    /// All rows, as text; NULL is `None`.
    pub fn try_rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let messages = self.client.simple_query(sql).map_err(|e| Failure::of(&e))?;
        Ok(messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
                }
                _ => None,
            })
            .collect())
    }

    /// All rows, as text; NULL is `None`.
    #[track_caller]
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.try_rows(sql).unwrap_or_else(|failure| panic!("{failure}\nin: {}", shortened(sql)))
    }

    /// The first column of all rows; NULL is `NULL`.
    #[track_caller]
    pub fn column(&mut self, sql: &str) -> Vec<String> {
        self.rows(sql)
            .into_iter()
            .map(|mut row| row.swap_remove(0).unwrap_or_else(|| "NULL".into()))
            .collect()
    }

    /// The one value of the one row; NULL is `NULL`.
    #[track_caller]
    pub fn value(&mut self, sql: &str) -> String {
        let mut values = self.column(sql);
        assert_eq!(values.len(), 1, "one row wanted from: {}", shortened(sql));
        values.swap_remove(0)
    }

    /// The one value as a whole number.
    #[track_caller]
    pub fn count(&mut self, sql: &str) -> i64 {
        let value = self.value(sql);
        value.parse().unwrap_or_else(|_| panic!("no whole number but {value:?} from: {}", shortened(sql)))
    }

    /// The one value as a float: every bit of it, since Postgres prints the shortest text that reads back.
    #[track_caller]
    pub fn float(&mut self, sql: &str) -> f64 {
        let value = self.value(sql);
        value.parse().unwrap_or_else(|_| panic!("no number but {value:?} from: {}", shortened(sql)))
    }

    /// The one value as JSON.
    #[track_caller]
    pub fn json(&mut self, sql: &str) -> serde_json::Value {
        let value = self.value(sql);
        serde_json::from_str(&value).unwrap_or_else(|e| panic!("no JSON ({e}): {value}"))
    }

    /// Whether the one value is true.
    #[track_caller]
    pub fn holds(&mut self, sql: &str) -> bool {
        match self.value(sql).as_str() {
            "t" => true,
            "f" => false,
            other => panic!("no boolean but {other:?} from: {}", shortened(sql)),
        }
    }

    /// Waits until the background has done all of the caller's work.
    #[track_caller]
    pub fn settle(&mut self) {
        assert!(self.settles("SELECT rag_wait(NULL, '10 min')"), "work is still pending after ten minutes");
    }

    /// Whether nothing of the caller's is left to do after this call of `rag_wait`. What has failed is for the test to look at.
    #[track_caller]
    pub fn settles(&mut self, wait: &str) -> bool {
        self.holds(wait)
            || self.count("SELECT count(*) FROM rag.job WHERE state IN ('queued', 'running')") == 0
    }

    /// Ingests in the caller's transaction and returns the document's id.
    #[track_caller]
    pub fn ingest(&mut self, content: &str, uri: &str) -> String {
        self.value(&format!(
            "SELECT rag_ingest({}, uri => {}, options => '{{\"sync\": true}}')",
            literal(content),
            literal(uri)
        ))
    }

    /// Ingests a document of many short sections, each of them a chunk; how many is returned. They are in one segment, which is
    /// large enough for codes of vectors: how many documents share one depends on how long they take.
    #[track_caller]
    pub fn ingest_book(&mut self) -> usize {
        let sections = (1..=100).map(|n| format!("# Lamp {n}\n\nIt stands on tower {}.\n\n", n % 7));
        let id = self.ingest(&sections.collect::<String>(), "book.md");
        let chunks = self.count(&format!("SELECT count(*) FROM rag.chunk WHERE document_id = '{id}'"));
        usize::try_from(chunks).unwrap_or_default()
    }

    /// Has a superuser's session told the plan of each statement, also within functions, with what its nodes did: as notices.
    #[track_caller]
    pub fn explain(&mut self) {
        self.run(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
             SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off; SET client_min_messages = log;
             SET log_min_messages = fatal",
        );
    }

    /// Warnings and notices since the last call.
    pub fn notices(&mut self) -> Vec<Failure> {
        std::mem::take(&mut *self.notices.lock().unwrap())
    }

    /// For parameters, copying, cancelling.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Whether the server still answers on this connection.
    pub fn lives(&mut self) -> bool {
        self.client.simple_query("").is_ok()
    }
}

/// A text as an SQL literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn shortened(sql: &str) -> String {
    if sql.chars().count() <= 600 { sql.to_owned() } else { sql.chars().take(600).chain(['…']).collect() }
}
