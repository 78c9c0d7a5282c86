//! One connection, and the few things that are asked of the server.

use crate::LoadError;
use postgres::Client;
use std::collections::HashMap;

/// A document that is there already.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) sha256: Vec<u8>,
}

/// One connection.
pub(crate) struct Session {
    client: Client,
}

/// What is sent of one file.
pub(crate) struct Sent<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) uri: &'a str,
    pub(crate) collection: &'a str,
    pub(crate) metadata: &'a str,
    pub(crate) media_type: Option<&'a str>,
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The file's fault; the next one may do better.
    File(String),
    /// Every file would fail so.
    All(String),
    /// The connection is gone.
    Connection(String),
}

impl Session {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Whether rag_ext is there and the collection may be written to; the most bytes that a document may have.
    pub(crate) fn check(&mut self, collection: &str) -> Result<u64, LoadError> {
        let failed =
            |what: &str, error: &postgres::Error| LoadError::new(format!("{what}: {}", reason(error)));
        let installed = self
            .client
            .query_opt("SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'rag_ext'", &[])
            .map_err(|error| failed("cannot look for rag_ext", &error))?;
        if installed.is_none() {
            return Err(LoadError::new("this database has no rag_ext: CREATE EXTENSION rag_ext CASCADE"));
        }
        let limit =
            "SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('rag_ext.max_document_size'))";
        let limit = self
            .client
            .query_one(limit, &[])
            .map_err(|error| failed("cannot read the server's limit", &error))?;
        // Says 42704 for a collection that is not there, and 42501 for a role that may not use rag_ext.
        self.client
            .query("SELECT rag_wait($1, '0 s')", &[&collection])
            .map_err(|error| failed("collection", &error))?;
        Ok(u64::try_from(limit.get::<_, i64>(0)).unwrap_or(0))
    }

    /// Those of the addresses that the collection has documents of, where the caller may change them.
    pub(crate) fn known(
        &mut self,
        collection: &str,
        uris: &[&str],
    ) -> Result<HashMap<String, Known>, Failure> {
        let (owner, bare) = match collection.rsplit_once('/') {
            Some((owner, bare)) => (Some(owner), bare),
            None => (None, collection),
        };
        let rows = self
            .client
            .query(
                "SELECT d.uri, d.id::text, d.sha256 FROM rag.document d
                 JOIN rag.domain m ON m.id = d.domain_id JOIN rag.collection c ON c.id = m.collection_id
                 WHERE d.uri = ANY ($1) AND c.name = $2 AND ($3::text IS NULL OR c.owner = $3)
                   AND d.domain_id = ANY (rag.writable_domain_ids()) AND d.owner IN (rag.current_owner(), c.owner)",
                &[&uris, &bare, &owner],
            )
            .map_err(Failure::of)?;
        let known = |row: &postgres::Row| {
            (
                row.get(0),
                Known { id: row.get(1), sha256: row.get::<_, Option<Vec<u8>>>(2).unwrap_or_default() },
            )
        };
        Ok(rows.iter().map(known).collect())
    }

    /// Stores a file, in a transaction of its own, and returns the document's id.
    pub(crate) fn ingest(&mut self, sent: &Sent<'_>) -> Result<String, Failure> {
        let options = match sent.media_type {
            Some(media_type) => serde_json::json!({ "media_type": media_type }).to_string(),
            None => "{}".to_owned(),
        };
        let row = self
            .client
            .query_one(
                "SELECT rag_ingest_bytes($1, NULL, $2, $3, $4::text::jsonb, $5::text::jsonb)::text",
                &[&sent.content, &sent.uri, &sent.collection, &sent.metadata, &options],
            )
            .map_err(Failure::of)?;
        Ok(row.get(0))
    }

    /// State and error of those of the documents that are not pending; `gone` for those that are no more.
    pub(crate) fn finished(
        &mut self,
        ids: &[&str],
    ) -> Result<Vec<(String, String, Option<String>)>, Failure> {
        let rows = self
            .client
            .query(
                "SELECT w.id, coalesce(d.status, 'gone'), d.error
                 FROM unnest($1::text[]) w (id) LEFT JOIN rag.document d ON d.id = w.id::uuid
                 WHERE d.status IS DISTINCT FROM 'pending'",
                &[&ids],
            )
            .map_err(Failure::of)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }
}

impl Failure {
    fn of(error: postgres::Error) -> Self {
        let text = reason(&error);
        let Some(server) = error.as_db_error() else {
            return if error.is_closed() { Self::Connection(text) } else { Self::File(text) };
        };
        match server.code().code() {
            // No rights, no such collection or function, an ambiguous name: the next file would hear the same.
            "42501" | "42704" | "42883" | "25006" | "0A000" | "3F000" => Self::All(text),
            code if code.starts_with("57P") || code.starts_with("08") => Self::Connection(text),
            _ => Self::File(text),
        }
    }
}

/// An error of the server in one line: message, detail, hint and code.
pub(crate) fn reason(error: &postgres::Error) -> String {
    let Some(server) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        return text;
    };
    let mut text = server.message().to_owned();
    for more in [server.detail(), server.hint()].into_iter().flatten() {
        text = format!("{text}. {}", more.trim_end_matches('.'));
    }
    format!("{} [{}]", text.replace(['\n', '\r'], " "), server.code().code())
}
