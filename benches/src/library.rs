//! A database of one ordinary role with documents in it, ingested in the background as an application's are.
//!
//! Vectors kept from earlier runs are laid into the role's domain beforehand, as vectors of chunks that belong to
//! no document: ingestion then finds them, as it finds those of any equal text, and embeds only what is new.

use crate::{Document, KeptVectors, Key, timed};
use postgres::Transaction;
use rag_tests::{Cluster, Database, Session, literal};
use std::time::Duration;

/// Marks the chunks that hold kept vectors: no section has this id.
const NO_SECTION: &str = "00000000-0000-0000-0000-000000000000";

/// Rows of one statement.
const BATCH: usize = 500;

/// Between two looks at how far an ingestion has come, each of which counts what was done since the last.
const LOOK_SECONDS: u64 = 30;

/// Documents of a transaction are done at so many times, evenly spread over them.
const MOMENTS: i64 = 100;

/// What an ingestion came to.
#[derive(Debug, Clone)]
pub struct Ingested {
    documents: usize,
    /// Chunks of the documents.
    pub chunks: i64,
    /// Chunks whose vector was computed, not found.
    pub embedded: i64,
    /// From the commit of the documents until the last was done.
    pub time: Duration,
    /// When each hundredth of the documents was done, after the first.
    moments: Vec<Duration>,
}

impl Ingested {
    /// Documents per second between two hundredths of all; none where they were done at the same time.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        let begun = self.moments.get(from)?;
        let took = self.moments.get(to)?.checked_sub(*begun).filter(|took| !took.is_zero())?;
        Some(self.documents as f64 * (to - from) as f64 / MOMENTS as f64 / took.as_secs_f64())
    }
}

/// A database with rag_ext, and the role whose documents are in it.
pub struct Library<'a> {
    database: Database<'a>,
    role: String,
}

impl<'a> Library<'a> {
    /// An empty one, with an engine that answers.
    pub fn new(cluster: &'a Cluster, name: &str) -> Self {
        let database = cluster.database(name);
        let role = database.role("reader");
        cluster.running_engine();
        Self { database, role }
    }

    /// Its database.
    pub fn database(&self) -> &Database<'a> {
        &self.database
    }

    /// A session of the ordinary role.
    pub fn session(&self) -> Session {
        self.database.connect(&self.role)
    }

    /// A session of the superuser.
    pub fn admin(&self) -> Session {
        self.database.admin()
    }

    /// Name of the ordinary role.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// Ingests using kept vectors, and keeps the new ones.
    pub fn ingest_with(&self, kept: &mut KeptVectors, ingest: impl FnOnce() -> Ingested) -> Ingested {
        let ingested = self.ingest_beside(kept.iter(), ingest);
        for row in self.admin().rows("SELECT encode(c.sha256, 'hex'), e.vector::text FROM rag.chunk c JOIN rag.embedding e ON e.chunk_id = c.id") {
            let [Some(hash), Some(vector)] = &row[..] else { panic!("a chunk without a vector") };
            let key = std::array::from_fn(|at| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap());
            kept.put(key, serde_json::from_str(vector).unwrap());
        }
        kept.save();
        ingested
    }

    /// Ingests with these vectors at hand, each for the text of this digest: title or headings, line break, chunk.
    pub fn ingest_beside<'v>(
        &self,
        vectors: impl Iterator<Item = (&'v Key, &'v Vec<f32>)>,
        ingest: impl FnOnce() -> Ingested,
    ) -> Ingested {
        self.lay_in(vectors);
        let ingested = ingest();
        self.take_out();
        ingested
    }

    /// Ingests documents with plain INSERT statements and waits for the background.
    pub fn ingest(&self, documents: &[Document]) -> Ingested {
        self.ingest_by(documents.len(), |transaction| {
            for batch in documents.chunks(BATCH) {
                let column = |field: fn(&Document) -> &str| batch.iter().map(field).collect::<Vec<&str>>();
                transaction
                    .execute(
                        "INSERT INTO rag.document (uri, title, content) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])",
                        &[&column(|d| &d.id), &column(|d| &d.title), &column(|d| &d.text)],
                    )
                    .unwrap();
            }
        })
    }

    /// Ingests what `insert` puts into a transaction, so many documents, and waits for the background.
    pub fn ingest_by(&self, documents: usize, insert: impl FnOnce(&mut Transaction<'_>)) -> Ingested {
        let mut session = self.session();
        let before = chunks_of(&mut session);
        let mut transaction = session.client().transaction().unwrap();
        insert(&mut transaction);
        let (time, ()) = timed(|| {
            transaction.commit().unwrap();
            self.wait(documents);
        });
        let after = chunks_of(&mut session);
        let moments = self.moments(time);
        Ingested { documents, chunks: after.0 - before.0, embedded: after.1 - before.1, time, moments }
    }

    /// Waits until all is done, and says now and then how much of it is.
    fn wait(&self, documents: usize) {
        let mut session = self.session();
        let wait = format!("SELECT rag_wait(NULL, '{LOOK_SECONDS} s')");
        let (mut done, mut looked_at) = (0, session.value("SELECT now()"));
        while !session.holds(&wait) {
            let now = session.value("SELECT clock_timestamp()");
            done += session.count(&format!(
                "SELECT count(*) FROM rag.job
                 WHERE state = 'done' AND finished_at >= '{looked_at}' AND finished_at < '{now}'"
            ));
            looked_at = now;
            eprintln!("  {done} of {documents} documents done");
        }
        let failed = session.rows("SELECT uri, sqlstate, error FROM rag.failed_job LIMIT 3");
        assert!(failed.is_empty(), "documents failed: {failed:?}");
    }

    /// When each hundredth of what was done within the last `time` was.
    fn moments(&self, time: Duration) -> Vec<Duration> {
        let seconds = self.session().value(&format!(
            "SELECT coalesce(array_to_json(percentile_disc(ARRAY(SELECT generate_series(0, {MOMENTS}) / {MOMENTS}.0::float8))
                                 WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - s.since)::float8)), '[]')
             FROM rag.job, (SELECT now() - interval '{} s' AS since) s WHERE finished_at >= s.since",
            time.as_secs_f64()
        ));
        let seconds: Vec<f64> = serde_json::from_str(&seconds).unwrap();
        seconds.into_iter().map(Duration::from_secs_f64).collect()
    }

    /// Lays vectors into the role's domain. The first document makes domain and vector space.
    fn lay_in<'v>(&self, vectors: impl Iterator<Item = (&'v Key, &'v Vec<f32>)>) {
        self.session().ingest("The first document.", "first");
        let mut admin = self.admin();
        let place = admin.rows("SELECT vector_space_id, domain_id FROM rag.embedding");
        let (space, domain) = (place[0][0].clone().unwrap(), place[0][1].clone().unwrap());
        let rows: Vec<(String, String)> = vectors
            .map(|(key, vector)| {
                let hash = key.iter().map(|byte| format!("{byte:02x}")).collect();
                (hash, serde_json::to_string(vector).unwrap())
            })
            .collect();
        for batch in rows.chunks(BATCH) {
            let (hashes, vectors): (Vec<&str>, Vec<&str>) =
                batch.iter().map(|(h, v)| (&h[..], &v[..])).unzip();
            let statement = format!(
                "WITH kept AS MATERIALIZED (
                     SELECT gen_random_uuid() AS id, hash, v FROM unnest($1::text[], $2::text[]) AS k (hash, v)
                 ), chunks AS (
                     INSERT INTO rag.chunk (domain_id, id, document_id, section_id, ordinal, content, context, tokens,
                                            char_from, char_to, sha256)
                     SELECT '{domain}', id, id, '{NO_SECTION}', 0, '', '', 0, 0, 0, decode(hash, 'hex') FROM kept
                 )
                 INSERT INTO rag.embedding (vector_space_id, domain_id, chunk_id, vector)
                 SELECT '{space}', '{domain}', id, v::halfvec FROM kept"
            );
            admin.client().execute(&statement, &[&hashes, &vectors]).unwrap();
        }
        admin.run("ANALYZE rag.chunk; ANALYZE rag.embedding");
    }

    /// Takes out what was laid in, and its room on the disk.
    fn take_out(&self) {
        self.session().run("DELETE FROM rag.document WHERE uri = 'first'");
        let mut admin = self.admin();
        admin.run(&format!(
            "WITH kept AS (DELETE FROM rag.chunk WHERE section_id = {} RETURNING id)
             DELETE FROM rag.embedding e USING kept WHERE e.chunk_id = kept.id",
            literal(NO_SECTION)
        ));
        self.settle();
        for table in ["rag.chunk", "rag.embedding", "rag.document", "rag.segment"] {
            admin.run(&format!("VACUUM (FULL, ANALYZE) {table}"));
        }
    }

    /// Waits until no worker has anything to do, merges included.
    pub fn settle(&self) {
        let mut admin = self.admin();
        let workers = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = {} AND backend_type LIKE 'rag_ext%'",
            literal(self.database.name())
        );
        rag_tests::wait_until("the workers have left", Duration::from_secs(300), || {
            admin.count(&workers) == 0
        });
    }
}

/// Chunks of the role's documents, and how many of them had their vector computed.
fn chunks_of(session: &mut Session) -> (i64, i64) {
    let counted = session.rows("SELECT coalesce(sum(chunks), 0), coalesce(sum(embedded), 0) FROM rag.job");
    let number = |at: usize| counted[0][at].as_ref().unwrap().parse().unwrap();
    (number(0), number(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_between_hundredths() {
        // The first half takes 5 s, the second 20.
        let moment =
            |hundredth: u32| f64::from(hundredth.min(50)) / 10.0 + f64::from(hundredth.max(50) - 50) / 2.5;
        let moments = (0..=100).map(|hundredth| Duration::from_secs_f64(moment(hundredth))).collect();
        let time = Duration::from_secs(25);
        let ingested = Ingested { documents: 500, chunks: 500, embedded: 500, time, moments };
        assert_eq!(ingested.rate(0, 20), Some(50.0));
        assert_eq!(ingested.rate(80, 100), Some(12.5));
        assert_eq!(ingested.rate(0, 101), None);
        let at_once = Ingested { moments: vec![time; 101], ..ingested };
        assert_eq!(at_once.rate(0, 20), None);
    }
}
