-- From 0.1.0 to 0.2.0: all that has changed in the other files of sql/ since 0.1.0 was released, in the order in which it
-- can be done. Grows until 0.2.0 is released.
\echo Use "ALTER EXTENSION rag_ext UPDATE TO '0.2.0'" to load this file. \quit

-- Acronyms: what short forms stand for, so that a search for one form finds the other.

CREATE TABLE rag.acronym (
    collection_id uuid NOT NULL REFERENCES rag.collection ON DELETE CASCADE,
    short_key text COLLATE "C" NOT NULL,
    long_key text COLLATE "C" NOT NULL,
    short_form text NOT NULL,
    long_form text NOT NULL,
    PRIMARY KEY (collection_id, short_key, long_key)
);
CREATE INDEX acronym_long ON rag.acronym (collection_id, long_key);
ALTER TABLE rag.acronym
    ALTER short_key SET STATISTICS 0, ALTER long_key SET STATISTICS 0, ALTER short_form SET STATISTICS 0,
    ALTER long_form SET STATISTICS 0;
COMMENT ON TABLE rag.acronym IS
    'Acronyms of a collection that its owner has given by rag_set_acronym. They come before those that were mined.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'acronym');
COMMENT ON COLUMN rag.acronym.short_key IS 'The short form in capitals.';
COMMENT ON COLUMN rag.acronym.long_key IS 'The words of the long form in lower case, without the plural''s s of the last one.';
COMMENT ON COLUMN rag.acronym.short_form IS 'Such as SLA.';
COMMENT ON COLUMN rag.acronym.long_form IS 'Such as service level agreement.';

CREATE TABLE rag.mined_acronym (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    short_key text COLLATE "C" NOT NULL,
    long_key text COLLATE "C" NOT NULL,
    short_form text NOT NULL,
    long_form text NOT NULL,
    PRIMARY KEY (domain_id, document_id, short_key, long_key)
);
CREATE INDEX mined_acronym_short ON rag.mined_acronym (domain_id, short_key, document_id);
CREATE INDEX mined_acronym_long ON rag.mined_acronym (domain_id, long_key, document_id);
ALTER TABLE rag.mined_acronym
    ALTER short_key SET STATISTICS 0, ALTER long_key SET STATISTICS 0, ALTER short_form SET STATISTICS 0,
    ALTER long_form SET STATISTICS 0;
COMMENT ON TABLE rag.mined_acronym IS
    'Acronyms that documents define, as "Full Name (FN)" or "FN (Full Name)": a row per document and pair. They come and go with their document, and are seen with it.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'mined_acronym');
COMMENT ON COLUMN rag.mined_acronym.short_key IS 'The short form in capitals.';
COMMENT ON COLUMN rag.mined_acronym.long_key IS 'The words of the long form in lower case, without the plural''s s of the last one.';

ALTER TABLE rag.acronym ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY acronym_read ON rag.acronym FOR SELECT USING (rag.sees_collection(collection_id));
ALTER TABLE rag.mined_acronym ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY mined_acronym_read ON rag.mined_acronym FOR SELECT USING (rag.sees_part(domain_id, document_id));

CREATE FUNCTION rag_set_acronym(collection text, short_form text, long_form text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_acronym_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_acronym(text, text, text) IS
    'Says what a short form stands for in a collection of the caller''s; a short form may have several meanings. Errors: 22023 a bad form, 42501, 42704 no such collection, 54000 too many. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_set_acronym');

CREATE FUNCTION rag_drop_acronym(collection text, short_form text, long_form text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_drop_acronym_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_drop_acronym(text, text, text) IS
    'Takes back what rag_set_acronym said of a short form, all its meanings unless one is given, and returns how many. What documents say stays. Errors: 42501, 42704 no such collection.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_drop_acronym');

INSERT INTO rag.builtin_policy
SELECT p.table_name, p.name, p.permissive, p.command FROM rag.present_policies() p
WHERE p.table_name IN ('acronym', 'mined_acronym');
SELECT pg_extension_config_dump('rag.acronym', '');
SELECT pg_extension_config_dump('rag.mined_acronym', '');
CREATE TRIGGER restore_unchecked BEFORE INSERT ON rag.acronym FOR EACH STATEMENT
    WHEN (current_setting('application_name') = 'pg_restore') EXECUTE FUNCTION rag.restore_unchecked();

CREATE OR REPLACE FUNCTION rag.document_after_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    TRUNCATE rag.metadata_value, rag.mined_acronym, rag.section, rag.chunk, rag.embedding, rag.segment, rag.deletion_count,
        rag.merge_failure, rag.job, rag.attached_row;
    -- Rows of attached tables are still there, and become documents again.
    UPDATE rag.attachment
    SET state = 'filling', pass = 'scan', position = NULL, rows_read = 0, tries = 0, due_at = now(), filled_at = NULL
    WHERE state IN ('filling', 'current');
    PERFORM rag.wake_workers();
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION rag.forget_documents(domain_ids uuid[], document_ids uuid[]) RETURNS void
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
END $$;
COMMENT ON FUNCTION rag.forget_documents(uuid[], uuid[]) IS 'Deletes chunks, embeddings, sections, metadata rows, mined acronyms and jobs of documents.';

COMMENT ON FUNCTION rag_search(text, text, jsonb, integer, text, jsonb) IS
    'The k best chunks that the caller may see: min(k, eligible) rows, best first, ties by chunk id. options: fusion (weighted or rrf), keyword_weight (0 to 1, 0.5), rrf_k (60), candidates (of each retriever), min_score (0 to 1), rerank (boolean), rerank_limit (pairs), snippet_length (characters), acronyms, spelling, rewrite, decompose, hyde (off, on or auto). See docs/reference.md.';
