//! Changes of a collection's embedding model: asking for one, the work on it, and the switch.

use super::embedding::VectorSpace;
use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;

/// A change that a worker has taken on.
#[derive(Debug, Clone)]
pub(crate) struct ModelChange {
    pub(crate) collection: Id,
    /// The collection's owner.
    pub(crate) owner: String,
    /// The model to come.
    pub(crate) model: String,
}

/// Asks for a change, or puts another model in place of one that was asked for. Elevated.
pub(crate) fn request(collection: Id, model: &str) -> Result<()> {
    spi::run(
        "INSERT INTO rag.model_change (collection_id, model) VALUES ($1, $2)
         ON CONFLICT (collection_id) DO UPDATE SET model = excluded.model, requested_at = now(), due_at = now(), error = NULL",
        vec![uuid(collection).into(), model.into()],
    )
}

/// Withdraws a change. What was embedded for it is cleared away later. Elevated.
pub(crate) fn withdraw(collection: Id) -> Result<()> {
    spi::run("DELETE FROM rag.model_change WHERE collection_id = $1", vec![uuid(collection).into()])
}

/// Takes on a change that is due and that no living worker has. For workers.
pub(crate) fn claim() -> Result<Option<ModelChange>> {
    spi::execute_one(
        "UPDATE rag.model_change m
         SET worker_pid = pg_backend_pid(),
             worker_start = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())
         FROM rag.collection c
         WHERE c.id = m.collection_id
           AND m.collection_id = (
               SELECT f.collection_id FROM rag.model_change f JOIN rag.collection fc ON fc.id = f.collection_id
               WHERE f.due_at <= clock_timestamp() AND fc.paused_at IS NULL
                 AND (f.worker_pid = pg_backend_pid()
                      OR NOT EXISTS (SELECT FROM pg_stat_activity a
                                     WHERE a.pid = f.worker_pid AND a.backend_start = f.worker_start))
               ORDER BY f.requested_at, f.collection_id LIMIT 1 FOR UPDATE OF f SKIP LOCKED)
         RETURNING m.collection_id, c.owner, m.model",
        vec![],
        |row| Ok(ModelChange { collection: id(row.require(1)?), owner: row.require(2)?, model: row.require(3)? }),
    )
}

/// Puts a change off after a failure. For workers.
pub(crate) fn put_off(collection: Id, error: &str, delay_s: f64) -> Result<()> {
    spi::run(
        "UPDATE rag.model_change
         SET error = $2, due_at = clock_timestamp() + $3 * interval '1 second', worker_pid = NULL, worker_start = NULL
         WHERE collection_id = $1",
        vec![uuid(collection).into(), error.into(), delay_s.into()],
    )
}

/// Seconds until a change is due; `None` if there is none. For workers.
pub(crate) fn seconds_until_due() -> Result<Option<f64>> {
    let due = spi::read_latest_one(
        "SELECT extract(epoch FROM min(due_at) - clock_timestamp())::float8 FROM rag.model_change",
        vec![],
        |row| Ok(row.get::<f64>(1)),
    )?;
    Ok(due.flatten())
}

/// As [`collection::lock_as_it_is`](super::collection::lock_as_it_is), of whatever model and options, and waits for nobody:
/// `false` if the collection is being changed or deleted, or is gone. For workers.
pub(crate) fn try_lock_model(collection: Id) -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT true FROM rag.collection WHERE id = $1 FOR KEY SHARE SKIP LOCKED",
        vec![uuid(collection).into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Locks a collection against everyone who writes chunks of it; false if the change was withdrawn or altered.
/// For workers.
pub(crate) fn lock_for_switch(change: &ModelChange) -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT m.model = $2 FROM rag.collection c JOIN rag.model_change m ON m.collection_id = c.id
         WHERE c.id = $1 FOR UPDATE OF c, m",
        vec![uuid(change.collection).into(), change.model.clone().into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// A chunk that the model to come has not embedded.
pub(crate) struct MissingChunk {
    pub(crate) domain: Id,
    pub(crate) id: Id,
    pub(crate) document: Id,
    /// What is embedded.
    pub(crate) text: String,
}

/// Chunks of a collection that have no vector in a space (`None`: there is no such space yet), after one of them
/// in the order of domain and id. For workers.
pub(crate) fn missing(
    collection: Id,
    space: Option<VectorSpace>,
    after: (Id, Id),
    limit: i64,
) -> Result<Vec<MissingChunk>> {
    spi::read_latest(
        "SELECT k.domain_id, k.id, k.document_id,
                CASE WHEN k.context = '' THEN k.content ELSE k.context || E'\\n' || k.content END
         FROM rag.chunk k
         WHERE k.domain_id IN (SELECT d.id FROM rag.domain d WHERE d.collection_id = $1)
           AND (k.domain_id, k.id) > ($3, $4)
           AND NOT EXISTS (SELECT FROM rag.embedding e
                           WHERE e.vector_space_id = $2 AND e.domain_id = k.domain_id AND e.chunk_id = k.id)
         ORDER BY k.domain_id, k.id LIMIT $5",
        vec![
            uuid(collection).into(),
            space.map(|space| uuid(space.id)).into(),
            uuid(after.0).into(),
            uuid(after.1).into(),
            limit.into(),
        ],
        |row| {
            Ok(MissingChunk {
                domain: id(row.require(1)?),
                id: id(row.require(2)?),
                document: id(row.require(3)?),
                text: row.require(4)?,
            })
        },
    )
}

/// Which of these chunks are still there; they stay until the transaction ends. For workers.
pub(crate) fn lock_chunks(domain: Id, chunks: &[Id]) -> Result<Vec<Id>> {
    spi::read_latest(
        "SELECT id FROM rag.chunk WHERE domain_id = $1 AND id = ANY ($2) ORDER BY id FOR KEY SHARE",
        vec![uuid(domain).into(), uuids(chunks.iter().copied()).into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )
}

/// Makes the model to come the collection's model. For workers, after [`lock_for_switch`].
pub(crate) fn switch(change: &ModelChange) -> Result<()> {
    spi::run(
        "UPDATE rag.collection SET model = $2 WHERE id = $1",
        vec![uuid(change.collection).into(), change.model.clone().into()],
    )?;
    withdraw(change.collection)
}

/// Deletes up to `limit` vectors of models that their collections do not use (any more); returns how many. For
/// workers.
pub(crate) fn delete_unused_vectors(limit: i64) -> Result<i64> {
    let unused = spi::read_latest(
        "SELECT s.id, d.id
         FROM rag.vector_space s CROSS JOIN rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE c.model <> s.model
           AND NOT EXISTS (SELECT FROM rag.model_change m WHERE m.collection_id = c.id AND m.model = s.model)
           AND EXISTS (SELECT FROM rag.embedding e WHERE e.vector_space_id = s.id AND e.domain_id = d.id)
           AND (SELECT count(*) FROM rag.vector_space) > 1
         LIMIT 16",
        vec![],
        |row| Ok((row.require::<pgrx::Uuid>(1)?, row.require::<pgrx::Uuid>(2)?)),
    )?;
    let mut deleted = 0;
    for (space, domain) in unused {
        let rows = spi::execute(
            "DELETE FROM rag.embedding WHERE vector_space_id = $1 AND domain_id = $2 AND chunk_id = ANY (ARRAY(
                 SELECT e.chunk_id FROM rag.embedding e WHERE e.vector_space_id = $1 AND e.domain_id = $2 LIMIT $3
                 FOR UPDATE SKIP LOCKED))
             RETURNING 1",
            vec![space.into(), domain.into(), (limit - deleted).into()],
            |_| Ok(()),
        )?;
        deleted += rows.len() as i64;
        if deleted >= limit {
            break;
        }
    }
    Ok(deleted)
}
