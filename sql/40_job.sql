-- Background work, and the triggers that ask for it.

CREATE TABLE rag.job (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    document_id uuid NOT NULL,
    version bigint NOT NULL,
    kind text NOT NULL DEFAULT 'process' CHECK (kind IN ('process', 'extract')),
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    tries integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    queued_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    chunks integer,
    embedded integer,
    sqlstate text,
    error text,
    worker_pid integer,
    worker_start timestamptz,
    priority integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    PRIMARY KEY (domain_id, document_id)
);
CREATE INDEX job_queued ON rag.job (domain_id, priority DESC, due_at, document_id) WHERE state = 'queued';
CREATE INDEX job_running ON rag.job (domain_id) WHERE state = 'running';
CREATE INDEX job_done ON rag.job (domain_id, finished_at) WHERE state = 'done';
CREATE INDEX job_failed ON rag.job (domain_id) WHERE state = 'failed';
ALTER TABLE rag.job ALTER error SET STATISTICS 0;
COMMENT ON TABLE rag.job IS 'The latest work on each document.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'job');
COMMENT ON COLUMN rag.job.version IS 'Version of the document that is to be, or was, processed.';
COMMENT ON COLUMN rag.job.kind IS 'process: all that is made of a document. extract: its metadata alone.';
COMMENT ON COLUMN rag.job.tries IS 'Tries that failed for a reason of the document''s own.';
COMMENT ON COLUMN rag.job.due_at IS 'Not before: later than now while a failed try backs off.';
COMMENT ON COLUMN rag.job.embedded IS 'Chunks whose vector was computed; the others were reused.';
COMMENT ON COLUMN rag.job.sqlstate IS 'SQLSTATE of the last failure; 57014 where the work was cancelled.';
COMMENT ON COLUMN rag.job.priority IS 'Order within its domain: higher ones first, then the oldest.';

-- BEFORE, as the caller: finds or makes the domain, checks rights, hashes.
CREATE FUNCTION rag.document_before() RETURNS trigger
    AS 'MODULE_PATHNAME', 'document_before_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.document_before() IS 'Resolves collection and owner to a domain under the caller''s rights; sets hash, version and status.';

-- Programs that write whole rows name all columns. Runs before the next trigger, by its name; a worker's columns are not
-- among those of a plain UPDATE, which does without it.
CREATE FUNCTION rag.document_accept() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        NEW.domain_id := OLD.domain_id;
        NEW.status := OLD.status;
        NEW.error := OLD.error;
        NEW.updated_at := OLD.updated_at;
        NEW.version := OLD.version;
        NEW.sha256 := OLD.sha256;
        NEW.text := OLD.text;
        NEW.chunks := OLD.chunks;
        NEW.parsed_title := OLD.parsed_title;
        NEW.detected_type := OLD.detected_type;
        NEW.file_metadata := OLD.file_metadata;
        NEW.extracted := OLD.extracted;
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rag.document_accept() IS 'Keeps the system columns as they are, whatever an UPDATE says of them.';

CREATE TRIGGER document_accept_update
    BEFORE UPDATE OF domain_id, status, error, updated_at, version, sha256, text, chunks, parsed_title, detected_type,
                     file_metadata, extracted ON rag.document
    FOR EACH ROW EXECUTE FUNCTION rag.document_accept();
CREATE TRIGGER document_before_insert BEFORE INSERT ON rag.document
    FOR EACH ROW EXECUTE FUNCTION rag.document_before();
CREATE TRIGGER document_before_update
    BEFORE UPDATE OF id, collection, owner, title, uri, media_type, content, file, metadata, created_at ON rag.document
    FOR EACH ROW EXECUTE FUNCTION rag.document_before();

-- Called by the definer's triggers alone: EXECUTE is granted to nobody.
CREATE FUNCTION rag.process_documents(document_ids uuid[]) RETURNS void
    AS 'MODULE_PATHNAME', 'process_documents_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag.process_documents(uuid[]) IS 'Processes documents in the transaction that has written them, as rag_ext.sync has it.';

-- Called by the definer's triggers alone: EXECUTE is granted to nobody. Keys have been checked by then, which waits for whoever
-- deletes the collection: as in any table, what refers to it is not written any more.
CREATE FUNCTION rag.require_collections(domain_ids uuid[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM rag.domain d WHERE d.id = ANY (domain_ids) AND d.collection_id IS NULL) THEN
        RAISE EXCEPTION 'the collection was deleted by another transaction'
            USING ERRCODE = 'undefined_object', HINT = 'SELECT rag_create_collection(name) creates one.';
    END IF;
END $$;
COMMENT ON FUNCTION rag.require_collections(uuid[]) IS 'Raises 42704 where one of these domains belongs to no collection any more.';

-- AFTER, with the extension's rights: only rows of the changed documents, by domain.
CREATE FUNCTION rag.document_after_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    -- A restored row keeps its old time of change: its job and metadata rows are restored as well.
    PERFORM rag.require_collections(ARRAY(
        SELECT DISTINCT n.domain_id FROM inserted n WHERE n.updated_at = transaction_timestamp()));
    INSERT INTO rag.job (domain_id, document_id, version)
    SELECT n.domain_id, n.id, n.version FROM inserted n
    WHERE n.status = 'pending' AND n.updated_at = transaction_timestamp();
    IF FOUND THEN
        PERFORM rag.wake_workers();
    END IF;
    -- What is extracted, and the document's own fields, join when it is done: it cannot be found before.
    INSERT INTO rag.metadata_value (domain_id, document_id, key, ordinal, text_value, number_value, boolean_value, time_value)
    SELECT n.domain_id, n.id, m.* FROM inserted n, rag.metadata_rows(n.metadata) m
    WHERE n.updated_at = transaction_timestamp() AND n.metadata <> '{}';
    IF current_setting('rag_ext.sync', true) = 'on' THEN
        PERFORM rag.process_documents(array_agg(n.id)) FROM inserted n
        WHERE n.status = 'pending' AND n.updated_at = transaction_timestamp();
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_insert() IS 'Queues new documents and writes their metadata rows.';
CREATE TRIGGER document_after_insert AFTER INSERT ON rag.document
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_insert();

-- Called by the definer's triggers alone: EXECUTE is granted to nobody. By index alone, as rag.forget_documents.
CREATE FUNCTION rag.forget_metadata(domain_ids uuid[], document_ids uuid[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    DELETE FROM rag.metadata_value m USING unnest(domain_ids, document_ids) AS g (domain_id, id)
    WHERE m.domain_id = g.domain_id AND m.document_id = g.id;
END $$;
COMMENT ON FUNCTION rag.forget_metadata(uuid[], uuid[]) IS 'Deletes metadata rows of documents.';

-- Called by the definer's triggers alone: EXECUTE is granted to nobody. By index alone, as rag.forget_documents.
CREATE FUNCTION rag.process_anew(domain_ids uuid[], document_ids uuid[]) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    UPDATE rag.job j
    SET state = 'queued', kind = 'process', tries = 0, due_at = clock_timestamp(), queued_at = clock_timestamp(),
        started_at = NULL, finished_at = NULL, worker_pid = NULL, worker_start = NULL
    FROM unnest(domain_ids, document_ids) AS g (domain_id, id)
    WHERE j.domain_id = g.domain_id AND j.document_id = g.id
      AND (j.state IN ('done', 'running') OR j.state = 'queued' AND j.kind <> 'process');
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION rag.process_anew(uuid[], uuid[]) IS 'Queues documents that were processed already; says whether there are any.';

CREATE FUNCTION rag.document_after_update() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
DECLARE
    left_domains uuid[];
    moved uuid[];
    queued_domains uuid[];
    queued uuid[];
    versions bigint[];
    renamed_domains uuid[];
    renamed uuid[];
    described_domains uuid[];
    described uuid[];
BEGIN
    -- FULL, though each row has its other: the plan is made for the first statement of a session and serves a million rows as
    -- well, and this join is never one of each row with each.
    WITH pair AS MATERIALIZED (
        SELECT o.domain_id AS left_domain, n.domain_id, n.id, n.version,
               n.domain_id <> o.domain_id AS moves,
               n.version > o.version AS queues,
               n.version = o.version AND n.uri IS DISTINCT FROM o.uri AS renames,
               n.domain_id <> o.domain_id
               OR (n.metadata, n.extracted, n.title, n.uri, n.media_type, n.collection, n.created_at)
                  IS DISTINCT FROM
                  (o.metadata, o.extracted, o.title, o.uri, o.media_type, o.collection, o.created_at) AS describes
        FROM changed n FULL JOIN original o ON o.id = n.id
    )
    SELECT array_agg(p.left_domain) FILTER (WHERE p.moves), array_agg(p.id) FILTER (WHERE p.moves),
           array_agg(p.domain_id) FILTER (WHERE p.queues), array_agg(p.id) FILTER (WHERE p.queues),
           array_agg(p.version) FILTER (WHERE p.queues),
           array_agg(p.domain_id) FILTER (WHERE p.renames), array_agg(p.id) FILTER (WHERE p.renames),
           array_agg(p.domain_id) FILTER (WHERE p.describes), array_agg(p.id) FILTER (WHERE p.describes)
    INTO left_domains, moved, queued_domains, queued, versions, renamed_domains, renamed, described_domains, described
    FROM pair p;

    IF moved IS NOT NULL THEN
        PERFORM rag.require_collections(ARRAY(SELECT DISTINCT n.domain_id FROM changed n WHERE n.id = ANY (moved)));
        PERFORM rag.forget_documents(left_domains, moved);
    END IF;
    IF queued IS NOT NULL THEN
        INSERT INTO rag.job AS j (domain_id, document_id, version)
        SELECT q.domain_id, q.id, q.version FROM unnest(queued_domains, queued, versions) AS q (domain_id, id, version)
        ON CONFLICT (domain_id, document_id) DO UPDATE
            SET version = excluded.version, kind = 'process', state = 'queued', tries = 0, due_at = excluded.due_at,
                queued_at = excluded.queued_at, started_at = NULL, finished_at = NULL, sqlstate = NULL,
                error = NULL, worker_pid = NULL, worker_start = NULL;
        PERFORM rag.wake_workers();
    END IF;
    -- A document's relative links start at its uri, and its file's name is one of its names.
    IF renamed IS NOT NULL AND current_setting('rag_ext.graph', true) = 'on' THEN
        IF rag.process_anew(renamed_domains, renamed) THEN
            PERFORM rag.wake_workers();
        END IF;
    END IF;
    IF described IS NOT NULL THEN
        PERFORM rag.forget_metadata(described_domains, described);
        WITH document AS MATERIALIZED (
            SELECT n.domain_id, n.id, n.metadata, n.extracted, n.title, n.uri, n.media_type, n.collection, n.created_at,
                   d.id IS NOT NULL AS is_described
            FROM changed n FULL JOIN unnest(described) AS d (id) ON d.id = n.id
        )
        INSERT INTO rag.metadata_value
            (domain_id, document_id, key, ordinal, text_value, number_value, boolean_value, time_value)
        SELECT d.domain_id, d.id, m.*
        FROM document d,
             rag.metadata_rows(d.metadata, d.extracted,
                               rag.document_fields(d.title, d.uri, d.media_type, d.collection, d.created_at)) m
        WHERE d.is_described;
    END IF;
    IF queued IS NOT NULL AND current_setting('rag_ext.sync', true) = 'on' THEN
        PERFORM rag.process_documents(queued);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_update() IS 'Queues changed documents, and takes away what was derived in a domain that a document has left.';

CREATE FUNCTION rag.document_after_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    PERFORM rag.forget_documents(array_agg(domain_id), array_agg(id)) FROM deleted;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_delete() IS 'Takes away what was derived from deleted documents.';

CREATE FUNCTION rag.document_after_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    TRUNCATE rag.metadata_value, rag.mined_acronym, rag.section, rag.chunk, rag.embedding, rag.segment, rag.segment_codes,
        rag.deletion_count, rag.merge_failure, rag.job, rag.attached_row, rag.feedback, rag.entity_mention,
        rag.entity_relation, rag.document_link, rag.graph_job;
    -- Rows of attached tables are still there, and become documents again.
    UPDATE rag.attachment
    SET state = 'filling', pass = 'scan', position = NULL, rows_read = 0, tries = 0, due_at = now(), filled_at = NULL
    WHERE state IN ('filling', 'current');
    PERFORM rag.wake_workers();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_truncate() IS 'Takes away everything that was derived from documents.';

-- Called by rag.forget_documents alone. Not counted: what others said of a document is theirs, and whoever deletes it can read
-- how many rows of which table that took along.
CREATE FUNCTION rag.forget_feedback(domain_ids uuid[], document_ids uuid[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET track_counts = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    -- Rows that somebody holds stay, and no view shows them: nobody holds up whoever deletes.
    DELETE FROM rag.feedback f
    WHERE f.ctid = ANY (ARRAY(
        SELECT o.ctid FROM rag.feedback o
        JOIN unnest(domain_ids, document_ids) AS g (domain_id, id) ON g.domain_id = o.domain_id AND g.id = o.document_id
        FOR UPDATE OF o SKIP LOCKED));
END $$;
COMMENT ON FUNCTION rag.forget_feedback(uuid[], uuid[]) IS 'Deletes feedback on documents.';

-- Called by the definer's triggers alone: EXECUTE is granted to nobody.
-- By index alone: who deletes a document can read how many rows that went over.
CREATE FUNCTION rag.forget_documents(domain_ids uuid[], document_ids uuid[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
DECLARE
    chunk_domains uuid[];
    chunk_ids uuid[];
BEGIN
    IF domain_ids IS NULL THEN
        RETURN;
    END IF;
    WITH chunks AS (
        DELETE FROM rag.chunk c USING unnest(domain_ids, document_ids) AS g (domain_id, id)
        WHERE c.domain_id = g.domain_id AND c.document_id = g.id
        RETURNING c.domain_id, c.id
    )
    SELECT array_agg(c.domain_id), array_agg(c.id) INTO chunk_domains, chunk_ids FROM chunks c;
    -- A statement of its own, which sees vectors that were committed while the chunks were waited for: who adds vectors
    -- of a model to come holds their chunks.
    DELETE FROM rag.embedding e USING unnest(chunk_domains, chunk_ids) AS c (domain_id, id)
    WHERE e.domain_id = c.domain_id AND e.chunk_id = c.id;
    WITH gone AS (
        SELECT domain_id, id FROM unnest(domain_ids, document_ids) AS g (domain_id, id)
    ), sections AS (
        DELETE FROM rag.section s USING gone g WHERE s.domain_id = g.domain_id AND s.document_id = g.id
    ), metadata AS (
        DELETE FROM rag.metadata_value m USING gone g WHERE m.domain_id = g.domain_id AND m.document_id = g.id
    ), acronyms AS (
        DELETE FROM rag.mined_acronym a USING gone g WHERE a.domain_id = g.domain_id AND a.document_id = g.id
    ), mentions AS (
        DELETE FROM rag.entity_mention m USING gone g WHERE m.domain_id = g.domain_id AND m.document_id = g.id
    ), relations AS (
        DELETE FROM rag.entity_relation r USING gone g WHERE r.domain_id = g.domain_id AND r.document_id = g.id
    ), links AS (
        DELETE FROM rag.document_link l USING gone g WHERE l.domain_id = g.domain_id AND l.document_id = g.id
    ), graph_jobs AS (
        DELETE FROM rag.graph_job j USING gone g WHERE j.domain_id = g.domain_id AND j.document_id = g.id
    ), jobs AS (
        DELETE FROM rag.job j USING gone g WHERE j.domain_id = g.domain_id AND j.document_id = g.id
    )
    INSERT INTO rag.deletion_count (domain_id, chunks)
    SELECT c.domain_id, count(*) FROM unnest(chunk_domains) AS c (domain_id)
    -- A domain that is being deleted takes its segments with it.
    WHERE EXISTS (SELECT FROM rag.domain d WHERE d.id = c.domain_id)
    GROUP BY c.domain_id;
    IF FOUND THEN
        PERFORM rag.wake_workers();
    END IF;
    PERFORM rag.forget_feedback(domain_ids, document_ids);
END $$;
COMMENT ON FUNCTION rag.forget_documents(uuid[], uuid[]) IS 'Deletes chunks, embeddings, sections, metadata rows, mined acronyms, graph, jobs and feedback of documents.';

CREATE FUNCTION rag.collection_before_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    DELETE FROM rag.accepted_collection a USING rag.domain d WHERE d.collection_id = OLD.id AND d.id = a.domain_id;
    RETURN OLD;
END $$;
COMMENT ON FUNCTION rag.collection_before_delete() IS 'Takes a collection that is being deleted out of everybody''s searches.';
CREATE TRIGGER collection_before_delete BEFORE DELETE ON rag.collection
    FOR EACH ROW EXECUTE FUNCTION rag.collection_before_delete();

-- Deleting collections is cheap: the foreign key has cut off their domains, workers do the rest.
CREATE FUNCTION rag.collection_after_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rag.wake_workers();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.collection_after_delete() IS 'Lets the background workers clear away what was in deleted collections.';
CREATE TRIGGER collection_after_delete AFTER DELETE ON rag.collection
    FOR EACH STATEMENT EXECUTE FUNCTION rag.collection_after_delete();

CREATE TRIGGER document_after_update AFTER UPDATE ON rag.document
    REFERENCING OLD TABLE AS original NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_update();
CREATE TRIGGER document_after_delete AFTER DELETE ON rag.document
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_delete();
CREATE TRIGGER document_after_truncate AFTER TRUNCATE ON rag.document
    FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_truncate();
