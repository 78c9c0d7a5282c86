-- From 0.1.0 to 0.2.0: all that has changed in the other files of sql/ since 0.1.0 was released, in the order in which it
-- can be done. Grows until 0.2.0 is released.
\echo Use "ALTER EXTENSION rag_ext UPDATE TO '0.2.0'" to load this file. \quit

-- The graph.

CREATE TABLE rag.entity_mention (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    weight real NOT NULL,
    PRIMARY KEY (domain_id, document_id, chunk_id, key)
);
CREATE INDEX entity_mention_key ON rag.entity_mention (domain_id, key, document_id, chunk_id);
ALTER TABLE rag.entity_mention ALTER key SET STATISTICS 0, ALTER kind SET STATISTICS 0, ALTER name SET STATISTICS 0;
COMMENT ON TABLE rag.entity_mention IS
    'Which chunk names which entity: a setting, an error, a product, a person and the like. An entity is what mentions of one key have in common, among those that the caller sees.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'entity_mention') ON CONFLICT DO NOTHING;
COMMENT ON COLUMN rag.entity_mention.key IS 'By which names are compared: in small letters, without marks at the ends.';
COMMENT ON COLUMN rag.entity_mention.kind IS 'error, document_code, configuration, file, software, hardware, organisation, person, command or term.';
COMMENT ON COLUMN rag.entity_mention.weight IS 'How much the chunk is about it: 1 in the title, 0.9 in the heading, 0.8 at the start of a line, else 0.4, and 0.1 more for each repetition, up to 0.8.';

CREATE TABLE rag.entity_relation (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    subject text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    PRIMARY KEY (domain_id, document_id, chunk_id, subject, relation, object)
);
CREATE INDEX entity_relation_subject ON rag.entity_relation (domain_id, subject, document_id, chunk_id);
CREATE INDEX entity_relation_object ON rag.entity_relation (domain_id, object, document_id, chunk_id);
ALTER TABLE rag.entity_relation ALTER subject SET STATISTICS 0, ALTER relation SET STATISTICS 0, ALTER object SET STATISTICS 0;
COMMENT ON TABLE rag.entity_relation IS 'What a sentence of a chunk says of two entities.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'entity_relation') ON CONFLICT DO NOTHING;
COMMENT ON COLUMN rag.entity_relation.subject IS 'Key of the entity that does it.';
COMMENT ON COLUMN rag.entity_relation.relation IS 'depends_on, requires, configures, connects_to, is_part_of, replaces, causes or uses.';
COMMENT ON COLUMN rag.entity_relation.object IS 'Key of the entity to which it is done.';

CREATE TABLE rag.document_link (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    kind text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    section text,
    strength real NOT NULL,
    PRIMARY KEY (domain_id, document_id, chunk_id, kind, target)
);
CREATE INDEX document_link_target ON rag.document_link (domain_id, kind, target);
ALTER TABLE rag.document_link ALTER kind SET STATISTICS 0, ALTER target SET STATISTICS 0, ALTER section SET STATISTICS 0;
COMMENT ON TABLE rag.document_link IS
    'What a chunk says of another document, as it is written there. Which document that is, is decided when somebody looks, among those that they see.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'document_link') ON CONFLICT DO NOTHING;
COMMENT ON COLUMN rag.document_link.kind IS 'address: a hyperlink or a path; code: a document''s number; title: a title in quotes.';
COMMENT ON COLUMN rag.document_link.target IS 'The address, resolved from the document''s uri, without query and fragment; the key of the number; or the title.';
COMMENT ON COLUMN rag.document_link.section IS 'Number of the section that is meant; NULL where none is named.';
COMMENT ON COLUMN rag.document_link.strength IS '0.9 where the reader is sent to a number or title, 0.8 for a hyperlink or path, 0.6 for a number that is merely named.';

-- What a document names and points to. A policy that was added to chunks hides what these say as well; the second policy
-- asks chunk by chunk only where there is one.
CREATE POLICY entity_mention_read ON rag.entity_mention FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY entity_mention_chunk ON rag.entity_mention AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = entity_mention.domain_id AND c.id = chunk_id));
CREATE POLICY entity_relation_read ON rag.entity_relation FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY entity_relation_chunk ON rag.entity_relation AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = entity_relation.domain_id AND c.id = chunk_id));
CREATE POLICY document_link_read ON rag.document_link FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY document_link_chunk ON rag.document_link AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = document_link.domain_id AND c.id = chunk_id));
ALTER TABLE rag.entity_mention ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rag.entity_relation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rag.document_link ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO rag.builtin_policy
SELECT p.table_name, p.name, p.permissive, p.command FROM rag.present_policies() p
WHERE p.table_name IN ('entity_mention', 'entity_relation', 'document_link')
ON CONFLICT DO NOTHING;
SELECT pg_extension_config_dump('rag.entity_mention', '');
SELECT pg_extension_config_dump('rag.entity_relation', '');
SELECT pg_extension_config_dump('rag.document_link', '');

CREATE OR REPLACE FUNCTION rag.document_after_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    TRUNCATE rag.metadata_value, rag.section, rag.chunk, rag.embedding, rag.segment, rag.deletion_count, rag.merge_failure,
        rag.job, rag.attached_row, rag.entity_mention, rag.entity_relation, rag.document_link;
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
    ), mentions AS (
        DELETE FROM rag.entity_mention m USING gone g WHERE m.domain_id = g.domain_id AND m.document_id = g.id
    ), relations AS (
        DELETE FROM rag.entity_relation r USING gone g WHERE r.domain_id = g.domain_id AND r.document_id = g.id
    ), links AS (
        DELETE FROM rag.document_link l USING gone g WHERE l.domain_id = g.domain_id AND l.document_id = g.id
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
COMMENT ON FUNCTION rag.forget_documents(uuid[], uuid[]) IS 'Deletes chunks, embeddings, sections, metadata rows, graph and jobs of documents.';

CREATE FUNCTION rag_related(subject text, collection text DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (kind text, name text, relation text, direction text, strength double precision, depth integer,
                   document_id uuid, title text, uri text, chunk_id uuid)
    AS 'MODULE_PATHNAME', 'rag_related_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 50 COST 1000;
COMMENT ON FUNCTION rag_related(text, text, jsonb) IS
    'What the caller''s documents relate to a document (by id or uri) or an entity (by name), the strongest first, each with the chunk that says so. options: k (1 to 1000, 50), depth (1 or 2, 2). See docs/graph.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_related') ON CONFLICT DO NOTHING;

COMMENT ON FUNCTION rag_search(text, text, jsonb, integer, text, jsonb) IS
    'The k best chunks that the caller may see: min(k, eligible) rows, best first, ties by chunk id. options: fusion (weighted or rrf), keyword_weight (0 to 1, 0.5), rrf_k (60), candidates (of each retriever), min_score (0 to 1), rerank (boolean), rerank_limit (pairs), snippet_length (characters), graph (off, on, auto), hops (1, 2). See docs/reference.md.';

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.graph_entity WITH (security_invoker = true) AS
SELECT d.collection, d.owner, m.key, mode() WITHIN GROUP (ORDER BY m.kind) AS kind,
       mode() WITHIN GROUP (ORDER BY m.name) AS name, count(DISTINCT m.document_id) AS documents, count(*) AS chunks
FROM rag.entity_mention m
JOIN rag.document d ON d.domain_id = m.domain_id AND d.id = m.document_id
GROUP BY m.domain_id, d.collection, d.owner, m.key;
COMMENT ON VIEW rag.graph_entity IS 'Entities by collection and owner, with the number of documents and chunks that name them, of those that the caller sees.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_entity') ON CONFLICT DO NOTHING;

CREATE VIEW rag.graph_relation WITH (security_invoker = true) AS
SELECT d.collection, d.owner, r.subject, r.relation, r.object, r.document_id, d.title, d.uri, r.chunk_id
FROM rag.entity_relation r
JOIN rag.document d ON d.domain_id = r.domain_id AND d.id = r.document_id;
COMMENT ON VIEW rag.graph_relation IS 'Relations of entities, with the chunk that states each.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_relation') ON CONFLICT DO NOTHING;

CREATE VIEW rag.graph_link WITH (security_invoker = true) AS
SELECT d.collection, d.owner, l.document_id, d.title, d.uri, l.kind, l.target, l.section, l.strength, l.chunk_id
FROM rag.document_link l
JOIN rag.document d ON d.domain_id = l.domain_id AND d.id = l.document_id;
COMMENT ON VIEW rag.graph_link IS 'Links of documents as they are written, with the chunk that has each. rag_related says which documents they mean.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_link') ON CONFLICT DO NOTHING;
