-- Views, most of them to watch the work with. All are security_invoker: each caller sees their own rows.

-- A view keeps the functions and operators that it found when it was made: none of a schema that somebody else may write to.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.job_status WITH (security_invoker = true) AS
SELECT d.collection, d.owner, j.document_id, d.title, d.uri, j.state, j.tries, j.chunks, j.embedded,
       j.queued_at, j.started_at, j.finished_at, j.due_at AS next_try_at, j.sqlstate, j.error, j.priority,
       dm.paused_at IS NOT NULL OR c.paused_at IS NOT NULL AS paused
FROM rag.job j
JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
JOIN rag.domain dm ON dm.id = j.domain_id
JOIN rag.collection c ON c.id = dm.collection_id;
COMMENT ON VIEW rag.job_status IS 'The latest work on each document: queued, running, done or failed. While paused, what is queued is not begun.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'job_status');

CREATE VIEW rag.failed_job WITH (security_invoker = true) AS
SELECT d.collection, d.owner, j.document_id, d.title, d.uri, j.tries, j.finished_at AS failed_at, j.sqlstate, j.error
FROM rag.job j
JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
JOIN rag.domain dm ON dm.id = j.domain_id
WHERE j.state = 'failed' AND dm.collection_id IS NOT NULL;
COMMENT ON VIEW rag.failed_job IS 'Documents that could not be processed, or whose processing was cancelled (57014), with the reason. rag_retry() queues them again.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'failed_job');

CREATE VIEW rag.collection_status WITH (security_invoker = true) AS
WITH work AS (
    SELECT dm.collection_id, dm.paused_at IS NOT NULL AS paused, d.documents, d.done, d.pending, d.failed, d.chunks,
           r.running, j.recent, j.recent_chunks, j.recent_since
    FROM rag.domain dm
    CROSS JOIN LATERAL (
        SELECT count(*) AS documents,
               count(*) FILTER (WHERE status = 'done') AS done,
               count(*) FILTER (WHERE status = 'pending') AS pending,
               count(*) FILTER (WHERE status = 'failed') AS failed,
               coalesce(sum(chunks), 0) AS chunks
        FROM rag.document WHERE domain_id = dm.id) d
    CROSS JOIN LATERAL (
        SELECT count(*) AS running FROM rag.job WHERE domain_id = dm.id AND state = 'running') r
    CROSS JOIN LATERAL (
        SELECT count(*) AS recent, coalesce(sum(chunks), 0) AS recent_chunks, min(started_at) AS recent_since
        FROM rag.job WHERE domain_id = dm.id AND state = 'done' AND finished_at > now() - interval '1 min') j
), progress AS (
    SELECT c.id, c.name, c.owner, c.shared, c.model, c.language,
           c.paused_at IS NOT NULL OR coalesce(bool_and(w.paused), false) AS paused,
           coalesce(sum(w.documents), 0)::bigint AS documents,
           coalesce(sum(w.done), 0)::bigint AS done,
           coalesce(sum(w.pending), 0)::bigint AS pending,
           coalesce(sum(w.failed), 0)::bigint AS failed,
           coalesce(sum(w.running), 0)::bigint AS running,
           coalesce(sum(w.chunks), 0)::bigint AS chunks,
           coalesce(sum(w.recent), 0)::bigint AS recent,
           coalesce(sum(w.recent_chunks), 0)::bigint AS recent_chunks,
           -- Work that began ten seconds ago has a rate of ten seconds, not one of a minute.
           least(60.0, extract(epoch FROM now() - min(w.recent_since))::float8) AS recent_s
    FROM rag.collection c LEFT JOIN work w ON w.collection_id = c.id
    GROUP BY c.id, c.name, c.owner, c.shared, c.model, c.language, c.paused_at
)
SELECT p.id AS collection_id, p.name AS collection, p.owner, p.shared, p.model, p.language, p.documents,
       p.done AS documents_done, p.pending AS documents_pending, p.failed AS documents_failed, p.chunks,
       p.recent AS documents_last_minute, p.recent_chunks AS chunks_last_minute,
       CASE WHEN p.pending = 0 THEN interval '0'
            WHEN p.recent > 0 AND NOT p.paused
                THEN p.pending::float8 * greatest(p.recent_s, 0.001) / p.recent::float8 * interval '1 s'
       END AS estimated_time_left,
       p.running AS documents_running, p.paused
FROM progress p;
COMMENT ON VIEW rag.collection_status IS
    'Progress per collection, of the documents that the caller sees: documents by state (pending ones are waiting or running), chunks, what the last minute brought, and time left at that rate: NULL while unknown or paused.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'collection_status');

CREATE VIEW rag.model_change_status WITH (security_invoker = true) AS
SELECT c.id AS collection_id, c.name AS collection, c.owner, c.model AS from_model, m.model AS to_model, m.requested_at,
       w.chunks, w.embedded, m.error, m.due_at AS next_try_at
FROM rag.model_change m
JOIN rag.collection c ON c.id = m.collection_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(n.chunks), 0)::bigint AS chunks, coalesce(sum(rag.embedded_chunks(d.id, m.model)), 0)::bigint AS embedded
    FROM rag.domain d
    CROSS JOIN LATERAL (SELECT count(*) AS chunks FROM rag.chunk k WHERE k.domain_id = d.id) n
    WHERE d.collection_id = c.id) w;
COMMENT ON VIEW rag.model_change_status IS
    'Progress of changes of the embedding model, of the chunks that the caller sees: chunks in all, and those embedded by the model to come.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'model_change_status');

CREATE VIEW rag.attachment_status WITH (security_invoker = true) AS
SELECT a.source, c.name AS collection, c.owner, a.state, a.pass, a.rows_read, d.rows, d.done, d.pending, d.failed,
       a.filled_at, a.sqlstate, a.error
FROM rag.attachment a
JOIN rag.collection c ON c.id = a.collection_id
CROSS JOIN LATERAL (
    SELECT count(*) AS rows,
           count(*) FILTER (WHERE t.status = 'done') AS done,
           count(*) FILTER (WHERE t.status = 'pending') AS pending,
           count(*) FILTER (WHERE t.status = 'failed') AS failed
    FROM rag.domain m JOIN rag.document t ON t.domain_id = m.id
    WHERE m.collection_id = a.collection_id) d;
COMMENT ON VIEW rag.attachment_status IS
    'Progress per attached table whose collection the caller owns: its state, rows read by the current or last pass over it, and documents by state.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attachment_status');

CREATE VIEW rag.attached_document WITH (security_invoker = true) AS
SELECT r.document_id, rag.attached_source(r.collection_id) AS source, r.key_columns AS key, c.name AS collection, c.owner
FROM rag.attached_row r
JOIN rag.collection c ON c.id = r.collection_id;
COMMENT ON VIEW rag.attached_document IS
    'The source row of each document of an attached table that the caller sees: its table, and its key columns by name, as in key->>''id''.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attached_document');

-- Functions give objects, and views their types: a version may add columns without taking a view away that others use.
CREATE VIEW rag.engine_status WITH (security_invoker = true) AS
SELECT * FROM jsonb_to_record(rag.engine_state()) AS s (
    running boolean, pid integer, started_at timestamptz, restarts integer, last_error text, version text,
    onnxruntime text, device text, device_note text, parse_sandbox text, chat text, queued integer,
    served bigint, failed bigint, texts_embedded bigint, tokens_embedded bigint, pairs_scored bigint,
    cache_hits bigint, cache_misses bigint, cache_bytes bigint, resident_bytes bigint);
COMMENT ON VIEW rag.engine_status IS 'The engine process: one row, also while it is down.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'engine_status');

CREATE VIEW rag.model WITH (security_invoker = true) AS
SELECT * FROM jsonb_to_recordset(rag.models()) AS m (
    name text, kind text, is_default boolean, dimension integer, max_tokens integer, pooling text,
    query_prefix text, passage_prefix text, loaded boolean, license text, problem text, languages text[],
    endpoint text, answer_threshold double precision);
COMMENT ON VIEW rag.model IS 'Models that the engine found, with the reason where one cannot be used.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'model');

-- COPY FROM is not for tables with row-level security, but for views with such a trigger.
CREATE VIEW rag.document_in WITH (security_invoker = true) AS
SELECT collection, owner, title, uri, media_type, content, file, metadata FROM rag.document;
COMMENT ON VIEW rag.document_in IS
    'For COPY: rows written here are rows of rag.document, and replace those of the same collection, owner and uri. A column that is left out, or NULL, has its default.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'document_in', NULL), ('write', 'INSERT', 'document_in', '{*}');

CREATE FUNCTION rag.document_in_insert() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO rag.document AS d (collection, owner, title, uri, media_type, content, file, metadata)
    VALUES (coalesce(NEW.collection, 'default'), coalesce(NEW.owner, rag.current_owner()), NEW.title, NEW.uri,
            NEW.media_type, NEW.content, NEW.file, coalesce(NEW.metadata, '{}'))
    ON CONFLICT (collection, owner, uri) DO UPDATE
    SET title = excluded.title, media_type = excluded.media_type, content = excluded.content, file = excluded.file,
        metadata = excluded.metadata;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rag.document_in_insert() IS 'Writes a row of rag.document_in to rag.document, as the caller.';
CREATE TRIGGER document_in_insert INSTEAD OF INSERT ON rag.document_in
    FOR EACH ROW EXECUTE FUNCTION rag.document_in_insert();

CREATE VIEW rag.feedback_query WITH (security_invoker = true) AS
SELECT DISTINCT encode(f.query_sha256, 'hex') AS id, f.query FROM rag.feedback f;
COMMENT ON VIEW rag.feedback_query IS 'Queries that the caller gave feedback on, as rag_evaluate reads them.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'feedback_query');

CREATE VIEW rag.feedback_judgement WITH (security_invoker = true) AS
SELECT encode(f.query_sha256, 'hex') AS query_id, coalesce(d.uri, d.id::text) AS document,
       (sum(f.verdict) > 0)::integer AS relevance, array_agg(DISTINCT d.collection ORDER BY d.collection) AS collections
FROM rag.feedback f
JOIN rag.document d ON d.domain_id = f.domain_id AND d.id = f.document_id
GROUP BY 1, 2;
COMMENT ON VIEW rag.feedback_judgement IS 'The caller''s feedback as judgements of documents that they see, as rag_evaluate reads them: relevant where more was said for its chunks than against.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'feedback_judgement');

CREATE VIEW rag.feedback_chunk_judgement WITH (security_invoker = true) AS
SELECT encode(f.query_sha256, 'hex') AS query_id, c.id AS document, (sum(f.verdict) > 0)::integer AS relevance
FROM rag.feedback f
JOIN rag.chunk c ON c.domain_id = f.domain_id AND c.id = f.chunk_id
GROUP BY 1, 2;
COMMENT ON VIEW rag.feedback_chunk_judgement IS 'The same of chunks that are still there, for the level chunk of rag_evaluate.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'feedback_chunk_judgement');
