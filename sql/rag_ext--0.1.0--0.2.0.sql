-- From 0.1.0 to 0.2.0: all that has changed in the other files of sql/ since 0.1.0 was released, in the order in which it
-- can be done. Grows until 0.2.0 is released.
\echo Use "ALTER EXTENSION rag_ext UPDATE TO '0.2.0'" to load this file. \quit

-- Policies: comparing them opens no table without an added one.

-- To print an expression opens the tables that it names, and waits for whoever holds one. Searches come here, so tables
-- without added policies must not be opened.
CREATE OR REPLACE FUNCTION rag.present_policies()
    RETURNS TABLE (table_name text, name text, permissive boolean, command text, roles text[], using_expression text,
                   check_expression text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.relname::text, p.polname::text, p.polpermissive,
           CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN 'delete'
                ELSE 'all' END,
           ARRAY(SELECT CASE r WHEN 0 THEN 'public' ELSE pg_get_userbyid(r)::text END
                 FROM unnest(p.polroles) r ORDER BY 1),
           CASE WHEN b.name IS NULL THEN pg_get_expr(p.polqual, p.polrelid) END,
           CASE WHEN b.name IS NULL THEN pg_get_expr(p.polwithcheck, p.polrelid) END
    FROM pg_policy p
    JOIN pg_class c ON c.oid = p.polrelid
    LEFT JOIN rag.builtin_policy b ON b.table_name = c.relname::text AND b.name = p.polname::text
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
         AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid
    WHERE e.extname = 'rag_ext'
$$;
COMMENT ON FUNCTION rag.present_policies() IS
    'The policies that tables of the extension have, with all names in full. Expressions are those of added policies alone.';

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
-- A row does not say which chunk defines it: where a policy may hide some, it is nobody's.
CREATE POLICY mined_acronym_whole ON rag.mined_acronym AS RESTRICTIVE FOR SELECT USING (rag.sees_whole(domain_id));

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
CREATE FUNCTION rag_evaluate(
    collection text, queries regclass, judgements regclass, modes text[] DEFAULT '{keyword,vector,hybrid}',
    k integer DEFAULT 10, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        collection text, variant text, mode text, query_id text, queries integer, recall double precision,
        "precision" double precision, mrr double precision, ndcg double precision, milliseconds double precision,
        details jsonb)
    AS 'MODULE_PATHNAME', 'rag_evaluate_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 3 COST 1000000;
COMMENT ON FUNCTION rag_evaluate(text, regclass, regclass, text[], integer, jsonb) IS
    'Recall@k, precision@k, MRR and nDCG@10 of ways of searching, by queries (id, query) and judgements (query_id, document, relevance) that the caller may read. options: level (document or chunk), per_query (boolean), variants (array of objects), those of rag_search but context. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_evaluate') ON CONFLICT DO NOTHING;

CREATE FUNCTION rag_explain(
    query text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, k integer DEFAULT 10,
    mode text DEFAULT 'hybrid', options jsonb DEFAULT '{}')
    RETURNS TABLE (
        kind text, stage text, input bigint, output bigint, milliseconds double precision, method text, fallback text,
        reason text, rank integer, score double precision, document_id uuid, chunk_id uuid, title text, uri text,
        keyword_rank integer, keyword_score double precision, vector_rank integer, vector_score double precision,
        fusion_rank integer, fusion_score double precision, rerank_rank integer, rerank_score double precision,
        dropped text, details jsonb)
    AS 'MODULE_PATHNAME', 'rag_explain_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 10000;
COMMENT ON FUNCTION rag_explain(text, text, jsonb, integer, text, jsonb) IS
    'How rag_search with these arguments comes to its rows: a row of kind stage for each stage, and on request one of kind candidate for each chunk that a retriever found. options: per_candidate (boolean), those of rag_search but context. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_explain') ON CONFLICT DO NOTHING;

CREATE TABLE rag.feedback (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    query_sha256 bytea NOT NULL,
    query text NOT NULL,
    verdict integer NOT NULL CHECK (verdict IN (-1, 1)),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (domain_id, document_id, chunk_id, owner, owner_role, query_sha256)
);
-- For owners, who are planned for by their list of principals.
CREATE INDEX feedback_owner ON rag.feedback (owner, owner_role, query_sha256);
-- For searches that look up what their caller has said of some chunks.
CREATE INDEX feedback_chunk ON rag.feedback (owner, chunk_id);
ALTER TABLE rag.feedback
    ALTER owner SET STATISTICS 0, ALTER query_sha256 SET STATISTICS 0, ALTER query SET STATISTICS 0,
    ALTER verdict SET STATISTICS 0;
COMMENT ON TABLE rag.feedback IS 'What people said of chunks that searches showed them, by rag_feedback. For those who said it.';
COMMENT ON COLUMN rag.feedback.owner IS 'Principal who said it.';
COMMENT ON COLUMN rag.feedback.owner_role IS 'The role behind the owner.';
COMMENT ON COLUMN rag.feedback.query_sha256 IS 'SHA-256 of the query.';
COMMENT ON COLUMN rag.feedback.verdict IS '1: the chunk answers the query; -1: it does not.';
COMMENT ON COLUMN rag.feedback.created_at IS 'When it was said last.';
CREATE POLICY feedback_read ON rag.feedback FOR SELECT USING (rag.is_mine(owner, owner_role));
CREATE POLICY feedback_delete ON rag.feedback FOR DELETE USING (rag.is_mine(owner, owner_role));
ALTER TABLE rag.feedback ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT pg_extension_config_dump('rag.feedback', '');
CREATE TRIGGER restore_unchecked BEFORE INSERT ON rag.feedback FOR EACH STATEMENT
    WHEN (current_setting('application_name') = 'pg_restore') EXECUTE FUNCTION rag.restore_unchecked();
INSERT INTO rag.builtin_policy VALUES
    ('feedback', 'feedback_read', true, 'select'), ('feedback', 'feedback_delete', true, 'delete') ON CONFLICT DO NOTHING;

CREATE FUNCTION rag_feedback(query text, chunk_id uuid, verdict integer, options jsonb DEFAULT '{}') RETURNS void
    AS 'MODULE_PATHNAME', 'rag_feedback_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_feedback(text, uuid, integer, jsonb) IS
    'Notes whether a chunk that the caller sees answers a query: 1 it does, -1 it does not, 0 takes back what the caller said before. Errors: 22004, 22023, 42704 no such chunk, or none that the caller may see.';

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.feedback_query WITH (security_invoker = true) AS
SELECT DISTINCT encode(f.query_sha256, 'hex') AS id, f.query FROM rag.feedback f;
COMMENT ON VIEW rag.feedback_query IS 'Queries that the caller gave feedback on, as rag_evaluate reads them.';

CREATE VIEW rag.feedback_judgement WITH (security_invoker = true) AS
SELECT encode(f.query_sha256, 'hex') AS query_id, coalesce(d.uri, d.id::text) AS document,
       (sum(f.verdict) > 0)::integer AS relevance, array_agg(DISTINCT d.collection ORDER BY d.collection) AS collections
FROM rag.feedback f
JOIN rag.document d ON d.domain_id = f.domain_id AND d.id = f.document_id
GROUP BY 1, 2;
COMMENT ON VIEW rag.feedback_judgement IS 'The caller''s feedback as judgements of documents that they see, as rag_evaluate reads them: relevant where more was said for its chunks than against.';

CREATE VIEW rag.feedback_chunk_judgement WITH (security_invoker = true) AS
SELECT encode(f.query_sha256, 'hex') AS query_id, c.id AS document, (sum(f.verdict) > 0)::integer AS relevance
FROM rag.feedback f
JOIN rag.chunk c ON c.domain_id = f.domain_id AND c.id = f.chunk_id
GROUP BY 1, 2;
COMMENT ON VIEW rag.feedback_chunk_judgement IS 'The same of chunks that are still there, for the level chunk of rag_evaluate.';

SET LOCAL search_path = @extschema@, pg_temp;

INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'feedback'), ('write', 'DELETE', 'feedback'),
    ('write', 'EXECUTE', 'rag_feedback'),
    ('read', 'SELECT', 'feedback_query'),
    ('read', 'SELECT', 'feedback_judgement'),
    ('read', 'SELECT', 'feedback_chunk_judgement') ON CONFLICT DO NOTHING;

CREATE FUNCTION rag.set_apart(collection_name text, owner_name text, document_uri text) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
BEGIN
    UPDATE rag.document d SET owner = owner_name || '#' || dm.owner_role::oid FROM rag.domain dm
    WHERE d.collection = collection_name AND d.owner = owner_name AND d.uri = document_uri AND dm.id = d.domain_id;
END $$;
COMMENT ON FUNCTION rag.set_apart(text, text, text) IS
    'Renames the owner of a document that belongs to another role of that name, such as one that was dropped: its uri is free then.';

CREATE OR REPLACE FUNCTION rag.adopt_principal(found_role regrole, principal text) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
DECLARE
    stale record;
BEGIN
    FOR stale IN SELECT * FROM (
        SELECT c.owner AS old_name, c.owner || '#' || c.owner_role::oid AS new_name, c.owner_role AS of_role
        FROM rag.collection c WHERE c.owner = principal AND c.owner_role <> found_role
        UNION
        SELECT d.owner, d.owner || '#' || d.owner_role::oid, d.owner_role
        FROM rag.domain d WHERE d.owner = principal AND d.owner_role <> found_role
        UNION
        SELECT r.owner, r.owner || '#' || r.owner_role::oid, r.owner_role
        FROM rag.metadata_rule r WHERE r.owner = principal AND r.owner_role <> found_role
        UNION
        SELECT r.owner, principal, r.owner_role
        FROM rag.metadata_rule r WHERE r.owner_role = found_role AND r.owner <> principal AND r.owner LIKE 'role:%'
        UNION
        SELECT c.owner, principal, c.owner_role
        FROM rag.collection c WHERE c.owner_role = found_role AND c.owner <> principal AND c.owner LIKE 'role:%'
        UNION
        SELECT d.owner, principal, d.owner_role
        FROM rag.domain d WHERE d.owner_role = found_role AND d.owner <> principal AND d.owner LIKE 'role:%'
        -- What is set apart makes room for what gets the name.
        ) names ORDER BY of_role = found_role
    LOOP
        -- Others' documents in their collections say so.
        UPDATE rag.document d SET collection = stale.new_name || '/' || c.name
        FROM rag.domain dm JOIN rag.collection c ON c.id = dm.collection_id
        WHERE dm.id = d.domain_id AND c.owner = stale.old_name AND c.owner_role = stale.of_role
          AND d.collection = stale.old_name || '/' || c.name;
        UPDATE rag.collection SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
        UPDATE rag.collection_grant SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
        UPDATE rag.document d SET owner = stale.new_name FROM rag.domain dm
        WHERE dm.id = d.domain_id AND dm.owner = stale.old_name AND dm.owner_role = stale.of_role;
        UPDATE rag.metadata_rule SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
        UPDATE rag.domain SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
    END LOOP;
    UPDATE rag.collection_grant g SET principal = adopt_principal.principal
    WHERE g.principal_role = found_role AND g.principal LIKE 'role:%' AND g.principal <> adopt_principal.principal;
    UPDATE rag.accepted_collection a SET principal = adopt_principal.principal
    WHERE a.principal_role = found_role AND a.principal LIKE 'role:%' AND a.principal <> adopt_principal.principal;
    -- What was said again under the new name counts.
    DELETE FROM rag.feedback f USING rag.feedback o
    WHERE f.owner_role = found_role AND f.owner LIKE 'role:%' AND f.owner <> adopt_principal.principal
      AND o.owner_role = found_role AND o.owner LIKE 'role:%' AND o.owner <> f.owner
      AND (o.owner = adopt_principal.principal OR o.owner > f.owner)
      AND o.domain_id = f.domain_id AND o.document_id = f.document_id AND o.chunk_id = f.chunk_id
      AND o.query_sha256 = f.query_sha256;
    UPDATE rag.feedback f SET owner = adopt_principal.principal
    WHERE f.owner_role = found_role AND f.owner LIKE 'role:%' AND f.owner <> adopt_principal.principal;
    UPDATE rag.query_log l SET owner = adopt_principal.principal
    WHERE l.owner_role = found_role AND l.owner LIKE 'role:%' AND l.owner <> adopt_principal.principal;
    UPDATE rag.answer_log l SET owner = adopt_principal.principal
    WHERE l.owner_role = found_role AND l.owner LIKE 'role:%' AND l.owner <> adopt_principal.principal;
END $$;
-- The graph.

CREATE TABLE rag.entity_mention (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    weight real NOT NULL,
    by_chat boolean NOT NULL DEFAULT false,
    PRIMARY KEY (domain_id, document_id, chunk_id, key)
);
CREATE INDEX entity_mention_key ON rag.entity_mention (domain_id, key, document_id, chunk_id);
-- Of the many that name a number, those that are called by it.
CREATE INDEX entity_mention_title ON rag.entity_mention (domain_id, key, document_id) WHERE weight >= 1;
ALTER TABLE rag.entity_mention ALTER key SET STATISTICS 0, ALTER kind SET STATISTICS 0, ALTER name SET STATISTICS 0;
COMMENT ON TABLE rag.entity_mention IS
    'Which chunk names which entity: a setting, an error, a product, a person and the like. An entity is what mentions of one key have in common, among those that the caller sees.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'entity_mention') ON CONFLICT DO NOTHING;
COMMENT ON COLUMN rag.entity_mention.key IS 'By which names are compared: in small letters, without marks at the ends.';
COMMENT ON COLUMN rag.entity_mention.kind IS 'error, document_code, configuration, file, software, hardware, organisation, person, command or term.';
COMMENT ON COLUMN rag.entity_mention.weight IS 'How much the chunk is about it: 1 in the title, 0.9 in the heading, 0.8 at the start of a line, else 0.4, and 0.1 more for each repetition, up to 0.8.';
COMMENT ON COLUMN rag.entity_mention.by_chat IS 'Whether the chat model says so, and no rule does.';

CREATE TABLE rag.entity_relation (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    subject text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    by_chat boolean NOT NULL DEFAULT false,
    PRIMARY KEY (domain_id, document_id, chunk_id, subject, relation, object)
);
CREATE INDEX entity_relation_subject ON rag.entity_relation (domain_id, subject, document_id, chunk_id);
CREATE INDEX entity_relation_object ON rag.entity_relation (domain_id, object, document_id, chunk_id);
ALTER TABLE rag.entity_relation ALTER subject SET STATISTICS 0, ALTER relation SET STATISTICS 0, ALTER object SET STATISTICS 0;
COMMENT ON TABLE rag.entity_relation IS 'What a chunk says of two entities.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'entity_relation') ON CONFLICT DO NOTHING;
COMMENT ON COLUMN rag.entity_relation.subject IS 'Key of the entity that does it.';
COMMENT ON COLUMN rag.entity_relation.relation IS 'depends_on, requires, configures, connects_to, is_part_of, replaces, causes or uses.';
COMMENT ON COLUMN rag.entity_relation.object IS 'Key of the entity to which it is done.';
COMMENT ON COLUMN rag.entity_relation.by_chat IS 'Whether the chat model says so, and no rule does.';

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

CREATE INDEX job_failed ON rag.job (domain_id) WHERE state = 'failed';
DROP INDEX rag.metadata_value_key;

CREATE TABLE rag.graph_job (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'skipped', 'failed')),
    tries integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    error text,
    worker_pid integer,
    worker_start timestamptz,
    PRIMARY KEY (domain_id, document_id, chunk_id)
);
CREATE INDEX graph_job_queued ON rag.graph_job (domain_id, due_at, document_id, chunk_id) WHERE state = 'queued';
CREATE INDEX graph_job_running ON rag.graph_job (domain_id) WHERE state = 'running';
ALTER TABLE rag.graph_job ALTER error SET STATISTICS 0;
COMMENT ON TABLE rag.graph_job IS 'Chunks of collections with option graph chat: whether the chat model was asked about each.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_job') ON CONFLICT DO NOTHING;
COMMENT ON COLUMN rag.graph_job.state IS 'queued, running, done; skipped: two replies could not be used; failed: cancelled, or given up after rag_ext.max_tries.';
COMMENT ON COLUMN rag.graph_job.tries IS 'Tries that failed, for whatever reason.';
COMMENT ON COLUMN rag.graph_job.due_at IS 'Not before: later than now while a failed try backs off.';
COMMENT ON COLUMN rag.graph_job.error IS 'Why the last try failed, or why the chunk was skipped.';

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
CREATE POLICY graph_job_read ON rag.graph_job FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY graph_job_chunk ON rag.graph_job AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = graph_job.domain_id AND c.id = chunk_id));
ALTER TABLE rag.entity_mention ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rag.entity_relation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rag.document_link ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rag.graph_job ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO rag.builtin_policy
SELECT p.table_name, p.name, p.permissive, p.command FROM rag.present_policies() p
WHERE p.table_name IN ('entity_mention', 'entity_relation', 'document_link', 'graph_job')
ON CONFLICT DO NOTHING;
SELECT pg_extension_config_dump('rag.entity_mention', '');
SELECT pg_extension_config_dump('rag.entity_relation', '');
SELECT pg_extension_config_dump('rag.document_link', '');
SELECT pg_extension_config_dump('rag.graph_job', '');

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

CREATE OR REPLACE FUNCTION rag.document_after_insert() RETURNS trigger
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

-- Renamed documents are processed again, for their graph.
CREATE OR REPLACE FUNCTION rag.document_after_update() RETURNS trigger
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

CREATE OR REPLACE FUNCTION rag.document_after_truncate() RETURNS trigger
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

CREATE TABLE rag.query_log (
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    id uuid NOT NULL DEFAULT rag.new_id(),
    searched_at timestamptz NOT NULL,
    query text NOT NULL,
    collection text,
    mode text NOT NULL,
    k integer NOT NULL,
    hits integer NOT NULL,
    milliseconds double precision NOT NULL,
    chunk_ids uuid[] NOT NULL,
    stages jsonb NOT NULL,
    PRIMARY KEY (owner, owner_role, id)
);
-- For workers, who take away what is old.
CREATE INDEX query_log_searched_at ON rag.query_log (searched_at);
ALTER TABLE rag.query_log
    ALTER owner SET STATISTICS 0, ALTER query SET STATISTICS 0, ALTER collection SET STATISTICS 0, ALTER mode SET STATISTICS 0,
    ALTER k SET STATISTICS 0, ALTER hits SET STATISTICS 0, ALTER milliseconds SET STATISTICS 0,
    ALTER searched_at SET STATISTICS 0, ALTER chunk_ids SET STATISTICS 0, ALTER stages SET STATISTICS 0;
COMMENT ON TABLE rag.query_log IS 'Calls of rag_search and rag_answer, while rag_ext.query_log is on. For those who made them, until rag_ext.query_log_retention. Not dumped.';
COMMENT ON COLUMN rag.query_log.owner IS 'Principal who searched.';
COMMENT ON COLUMN rag.query_log.owner_role IS 'The role behind the owner.';
COMMENT ON COLUMN rag.query_log.query IS 'The first 400 characters of the query.';
COMMENT ON COLUMN rag.query_log.collection IS 'As it was named; NULL: all that are the caller''s.';
COMMENT ON COLUMN rag.query_log.mode IS 'As rag_search was told; answer: a call of rag_answer or one of its other shapes.';
COMMENT ON COLUMN rag.query_log.hits IS 'Rows of a search, citations of an answer.';
COMMENT ON COLUMN rag.query_log.chunk_ids IS 'Chunks of the first ten hits or citations, best first.';
COMMENT ON COLUMN rag.query_log.stages IS 'An object per stage, as details of rag_search has them.';
CREATE POLICY query_log_read ON rag.query_log FOR SELECT USING (rag.is_mine(owner, owner_role));
CREATE POLICY query_log_delete ON rag.query_log FOR DELETE USING (rag.is_mine(owner, owner_role));
ALTER TABLE rag.query_log ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO rag.builtin_policy VALUES
    ('query_log', 'query_log_read', true, 'select'), ('query_log', 'query_log_delete', true, 'delete') ON CONFLICT DO NOTHING;
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'query_log'), ('write', 'DELETE', 'query_log') ON CONFLICT DO NOTHING;

COMMENT ON FUNCTION rag_search(text, text, jsonb, integer, text, jsonb) IS
    'The k best chunks that the caller may see. options: fusion, keyword_weight, rrf_k, candidates, min_score, min_similarity, min_rerank_score, near_duplicates, source_boost, feedback_boost, context, context_window, context_tokens, rerank, rerank_model, rerank_limit, rerank_top_n, snippet_length, acronyms, spelling, rewrite, decompose, hyde, graph, hops, next_hop. See docs/reference.md.';

COMMENT ON FUNCTION rag_answer(text, text, jsonb, jsonb, jsonb) IS
    'Answers from the caller''s documents, as one JSON object with answer, found, citations and more. options: k, context_limit, mode, min_support (0 to 1), max_sentences (1 to 10, 3), sentence_limit (1 to 200, 16), generate (boolean), policy (strict, cited or free), temperature, top_p, max_tokens, context_budget, on_failure, those of rag_search but context. See docs/reference.md.';

COMMENT ON FUNCTION rag_chunk(text, jsonb) IS
    'The chunks that ingestion would make of a text, in order; nothing is stored. options: method, unit, size, overlap, min_size, context, breakpoint_percentile (these as in a collection''s chunking), model, title, media_type, language. See docs/reference.md.';

-- Feedback that counts in searches, sizes of stages, thresholds of models.
COMMENT ON COLUMN rag.collection.options IS '{"chunking": {"method": "recursive", "unit": "tokens", "size": 480, "overlap": 64}, "feedback_boost": 0}: see rag_create_collection.';

CREATE FUNCTION rag_related(subject text, collection text DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (kind text, name text, relation text, direction text, strength double precision, depth integer,
                   document_id uuid, title text, uri text, chunk_id uuid)
    AS 'MODULE_PATHNAME', 'rag_related_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 50 COST 1000;
COMMENT ON FUNCTION rag_related(text, text, jsonb) IS
    'What the caller''s documents relate to a document (by id or uri) or an entity (by name), the strongest first, each with the chunk that says so. options: k (1 to 1000, 50), depth (1 or 2, 2). See docs/graph.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_related') ON CONFLICT DO NOTHING;


-- Answers that are read while they are written.
CREATE FUNCTION rag.answer_parts(question text, collection text, filter jsonb, history jsonb, options jsonb)
    RETURNS SETOF jsonb
    AS 'MODULE_PATHNAME', 'answer_parts_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000000 ROWS 100;
COMMENT ON FUNCTION rag.answer_parts(text, text, jsonb, jsonb, jsonb) IS 'The rows of rag_answer_stream.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'answer_parts') ON CONFLICT DO NOTHING;

-- STABLE, so that the planner puts its body in its place in FROM, where the rows of other functions are collected first.
CREATE FUNCTION rag_answer_stream(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}') RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100
    BEGIN ATOMIC
        SELECT rag.answer_parts(question, collection, filter, history, options);
    END;
COMMENT ON FUNCTION rag_answer_stream(text, text, jsonb, jsonb, jsonb) IS
    'rag_answer while it is written, one row at a time: {"delta": text} for each part, which is not checked yet, and at last the checked answer, as rag_answer returns it, with "done": true. A cursor or a driver''s single-row mode shows each as it comes. options: those of rag_answer.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer_stream') ON CONFLICT DO NOTHING;

-- Option graph of a collection.
COMMENT ON FUNCTION rag_create_collection(text, text, text, boolean, jsonb) IS
    'Creates a collection of the caller''s and returns its id; shared: one domain for all who may write. options: chunking (an object with method, unit, size, overlap, min_size and context), feedback_boost, graph (rules or chat), remote. See docs/reference.md.';
COMMENT ON FUNCTION rag_alter_collection(text, text, jsonb) IS
    'Changes the model or the options of a collection of the caller''s, in the background; what is there is found meanwhile as before. options: those of rag_create_collection. See docs/reference.md.';
COMMENT ON FUNCTION rag_attach(regclass, text, text[], text, text, text[], jsonb) IS
    'Makes each row of a table of the caller''s a document of a collection and keeps the two in step; a chunk is visible to whoever may read its row. options: file (a bytea column), labels ({"column": "heading"}), owner (an SQL expression over the row), media_type, language, model, chunking, graph. See docs/reference.md.';

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE OR REPLACE VIEW rag.model WITH (security_invoker = true) AS
SELECT * FROM jsonb_to_recordset(rag.models()) AS m (
    name text, kind text, is_default boolean, dimension integer, max_tokens integer, pooling text,
    query_prefix text, passage_prefix text, loaded boolean, license text, problem text, languages text[],
    endpoint text, answer_threshold double precision);

CREATE VIEW rag.graph_entity WITH (security_invoker = true) AS
SELECT d.collection, d.owner, m.key, mode() WITHIN GROUP (ORDER BY m.kind) AS kind,
       mode() WITHIN GROUP (ORDER BY m.name) AS name, count(DISTINCT m.document_id) AS documents, count(*) AS chunks
FROM rag.entity_mention m
JOIN rag.document d ON d.domain_id = m.domain_id AND d.id = m.document_id
GROUP BY m.domain_id, d.collection, d.owner, m.key;
COMMENT ON VIEW rag.graph_entity IS 'Entities by collection and owner, with the number of documents and chunks that name them, of those that the caller sees.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_entity') ON CONFLICT DO NOTHING;

CREATE VIEW rag.graph_relation WITH (security_invoker = true) AS
SELECT d.collection, d.owner, r.subject, r.relation, r.object, r.document_id, d.title, d.uri, r.chunk_id, r.by_chat
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

CREATE VIEW rag.graph_status WITH (security_invoker = true) AS
SELECT d.collection, d.owner,
       count(*) FILTER (WHERE j.state = 'done') AS done,
       count(*) FILTER (WHERE j.state IN ('queued', 'running')) AS waiting,
       count(*) FILTER (WHERE j.state = 'skipped') AS skipped,
       count(*) FILTER (WHERE j.state = 'failed') AS failed,
       min(j.due_at) FILTER (WHERE j.state = 'queued') AS next_try_at,
       (array_agg(j.error ORDER BY coalesce(j.finished_at, j.due_at) DESC) FILTER (WHERE j.error IS NOT NULL))[1] AS error
FROM rag.graph_job j
JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
GROUP BY j.domain_id, d.collection, d.owner;
COMMENT ON VIEW rag.graph_status IS
    'How far the chat model is with collections of option graph chat, in chunks that the caller sees, by collection and owner. error: why one was skipped, failed or waits, the latest.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_status') ON CONFLICT DO NOTHING;

-- Answers as data: the log of answers, who reads it, and views over it.
SET LOCAL search_path = @extschema@, pg_temp;

CREATE TABLE rag.log_reader (
    role regrole PRIMARY KEY
);
COMMENT ON TABLE rag.log_reader IS 'Roles that read everybody''s rows of rag.answer_log, by rag_log_reader.';
-- No policy: superusers, and the function that policies ask.
ALTER TABLE rag.log_reader ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE FUNCTION rag.log_owners() RETURNS text[]
    AS 'MODULE_PATHNAME', 'log_owners_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.log_owners() IS 'Owners whose rows of rag.answer_log the caller may see: rag.principals(), or all that have some for roles of rag_log_reader.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'log_owners') ON CONFLICT DO NOTHING;

CREATE FUNCTION rag.sees_log(owner text, owner_role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_log_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL RESTRICTED COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_log(text, regrole) IS 'Whether the caller may see rows of rag.answer_log of this owner: rag.is_mine, or rag_log_reader lets them see all.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_log') ON CONFLICT DO NOTHING;

CREATE TABLE rag.answer_log (
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    id uuid NOT NULL DEFAULT rag.new_id(),
    answered_at timestamptz NOT NULL,
    question text NOT NULL,
    collection text,
    answer text NOT NULL,
    found boolean NOT NULL,
    reason text,
    method text NOT NULL,
    confidence double precision,
    citations jsonb NOT NULL,
    models jsonb NOT NULL,
    prompt_tokens integer,
    completion_tokens integer,
    milliseconds double precision NOT NULL,
    stages jsonb NOT NULL,
    shortened text[] NOT NULL,
    PRIMARY KEY (owner, owner_role, id)
);
-- For workers, who take away what is old.
CREATE INDEX answer_log_answered_at ON rag.answer_log (answered_at);
ALTER TABLE rag.answer_log
    ALTER owner SET STATISTICS 0, ALTER answered_at SET STATISTICS 0, ALTER question SET STATISTICS 0,
    ALTER collection SET STATISTICS 0, ALTER answer SET STATISTICS 0, ALTER found SET STATISTICS 0, ALTER reason SET STATISTICS 0,
    ALTER method SET STATISTICS 0, ALTER confidence SET STATISTICS 0, ALTER citations SET STATISTICS 0,
    ALTER models SET STATISTICS 0, ALTER prompt_tokens SET STATISTICS 0, ALTER completion_tokens SET STATISTICS 0,
    ALTER milliseconds SET STATISTICS 0, ALTER stages SET STATISTICS 0, ALTER shortened SET STATISTICS 0;
COMMENT ON TABLE rag.answer_log IS 'Answers, while rag_ext.answer_log is on. For those who asked and for roles of rag_log_reader, until rag_ext.answer_log_retention. Not dumped.';
COMMENT ON COLUMN rag.answer_log.owner IS 'Principal who asked.';
COMMENT ON COLUMN rag.answer_log.owner_role IS 'The role behind the owner.';
COMMENT ON COLUMN rag.answer_log.question IS 'Its first 2,000 characters.';
COMMENT ON COLUMN rag.answer_log.collection IS 'As it was named; NULL: all that are the caller''s.';
COMMENT ON COLUMN rag.answer_log.reason IS 'Why there is no answer, as rag_answer says it.';
COMMENT ON COLUMN rag.answer_log.citations IS 'An object per citation, as rag_answer has them, with domain_id, sha256 (of the document as it was, NULL while a change waited to be processed) and own (whether it was of the owner''s own documents). rag.answer_citation has them as rows.';
COMMENT ON COLUMN rag.answer_log.models IS '{"chat": who wrote it, "reranker": who measured support, "embedding": who embedded}; NULL where none did.';
COMMENT ON COLUMN rag.answer_log.prompt_tokens IS 'Tokens that the chat model read, where its provider says so.';
COMMENT ON COLUMN rag.answer_log.completion_tokens IS 'Tokens that it wrote.';
COMMENT ON COLUMN rag.answer_log.stages IS 'An object per stage, as diagnostics of rag_answer has them.';
COMMENT ON COLUMN rag.answer_log.shortened IS 'What was left out, because it was too large: question, quotes, stages, headings, answer, citations. Empty: nothing.';
CREATE POLICY answer_log_read ON rag.answer_log FOR SELECT USING (rag.sees_log(owner, owner_role));
CREATE POLICY answer_log_delete ON rag.answer_log FOR DELETE USING (rag.is_mine(owner, owner_role));
ALTER TABLE rag.answer_log ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO rag.builtin_policy VALUES
    ('answer_log', 'answer_log_read', true, 'select'), ('answer_log', 'answer_log_delete', true, 'delete') ON CONFLICT DO NOTHING;
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'answer_log'), ('write', 'DELETE', 'answer_log') ON CONFLICT DO NOTHING;

CREATE FUNCTION rag.citation_is_stale(owner text, owner_role regrole, answer_id uuid, n integer) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citation_is_stale_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.citation_is_stale(text, regrole, uuid, integer) IS
    'Whether the document of a citation in rag.answer_log has changed since or is gone. NULL where that is not known: the caller does not see it, or there is no such citation.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'citation_is_stale') ON CONFLICT DO NOTHING;

CREATE FUNCTION rag_log_reader(role text, reads boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role regrole := to_regrole(quote_ident(role));
BEGIN
    PERFORM rag.require_superuser('rag_log_reader');
    IF num_nulls(role, reads) > 0 THEN
        RAISE EXCEPTION 'role and reads must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF found_role IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', left(role, 64) USING ERRCODE = 'undefined_object';
    END IF;
    IF NOT reads THEN
        DELETE FROM rag.log_reader r WHERE r.role = found_role;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM rag.gateway g WHERE g.role = found_role) THEN
        RAISE EXCEPTION 'role "%" is a gateway, whose users see their own rows alone', left(role, 64)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name a role that speaks for itself.';
    END IF;
    INSERT INTO rag.log_reader VALUES (found_role) ON CONFLICT ON CONSTRAINT log_reader_pkey DO NOTHING;
END $$;
COMMENT ON FUNCTION rag_log_reader(text, boolean) IS
    'Superuser: lets a role, and who inherits from it, read everybody''s rows of rag.answer_log and its views, or with reads false no longer. The role must be enabled by rag_enable as well. Errors: 42501, 42704 no such role, 22023 a gateway.';

CREATE FUNCTION rag_answer_many(
    questions text[], collection text DEFAULT NULL, filter jsonb DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        n integer, question text, answer text, found boolean, reason text, method text, confidence double precision,
        citations integer, result jsonb, sqlstate text, error text)
    AS 'MODULE_PATHNAME', 'rag_answer_many_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10 COST 1000000;
COMMENT ON FUNCTION rag_answer_many(text[], text, jsonb, jsonb) IS
    'rag_answer for many questions, a row for each in their order; result is what rag_answer returns. A question that cannot be asked or answered has sqlstate and error in its row (classes 22, 54 and 58), and the others go on. At most 1000 questions.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer_many') ON CONFLICT DO NOTHING;
CREATE TABLE rag.prompt (
    collection_id uuid REFERENCES rag.collection ON DELETE CASCADE,
    template jsonb NOT NULL,
    UNIQUE NULLS NOT DISTINCT (collection_id)
);
ALTER TABLE rag.prompt ALTER template SET STATISTICS 0;
COMMENT ON TABLE rag.prompt IS 'What chat models are told for questions about a collection, by rag_set_prompt.';
COMMENT ON COLUMN rag.prompt.collection_id IS 'NULL: collections that have no row of their own, and questions about several.';
COMMENT ON COLUMN rag.prompt.template IS 'The template as rag_set_prompt was given it.';
-- No policy: superusers alone read what no answer tells.
ALTER TABLE rag.prompt ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE FUNCTION rag_set_prompt(collection text, template jsonb) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_prompt_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_prompt(text, jsonb) IS
    'Superuser: what chat models are told for questions about a collection, or with NULL about all that have no template of their own. template: system, tone, language, examples ([{passages, question, answer}]); an empty one takes it back. Errors: 22023 no template, 42501, 42704 no such collection, 54000 too long.';

CREATE FUNCTION rag_evaluate_answers(collection text, questions regclass, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        question_id text, questions integer, answered double precision, refused double precision,
        correct double precision, quoted double precision, first_citation double precision,
        citation_precision double precision, citation_recall double precision, faithfulness double precision,
        exact double precision, confidence double precision, milliseconds double precision, details jsonb)
    AS 'MODULE_PATHNAME', 'rag_evaluate_answers_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 COST 1000000;
COMMENT ON FUNCTION rag_evaluate_answers(text, regclass, jsonb) IS
    'How good answers are, by questions (id, question; answer, quote, document, answerable where known) that the caller may read: a row for all, and with option per_question one for each. options: per_question (boolean), those of rag_answer. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_evaluate_answers') ON CONFLICT DO NOTHING;
SELECT pg_extension_config_dump('rag.prompt', '');
CREATE TRIGGER restore_unchecked BEFORE INSERT ON rag.prompt FOR EACH STATEMENT
    WHEN (current_setting('application_name') = 'pg_restore') EXECUTE FUNCTION rag.restore_unchecked();
-- Not of a role that is gone: its number may be another's where the dump is restored.
SELECT pg_extension_config_dump('rag.log_reader', 'WHERE role::oid IN (SELECT r.oid FROM pg_catalog.pg_roles r)');

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.answer_citation WITH (security_invoker = true) AS
SELECT l.owner, l.id AS answer_id, l.answered_at, l.question, l.collection, c.n, c.document_id, c.chunk_id, c.title, c.uri,
       c.header_path, c.page_from, c.page_to, c.quote, c.char_from, c.char_to, c.support, decode(c.sha256, 'hex') AS sha256,
       rag.citation_is_stale(l.owner, l.owner_role, l.id, c.n) AS stale
FROM rag.answer_log l
CROSS JOIN LATERAL jsonb_to_recordset(l.citations) AS c (
    n integer, document_id uuid, chunk_id uuid, title text, uri text, header_path text[], page_from integer, page_to integer,
    quote text, char_from integer, char_to integer, support double precision, sha256 text);
COMMENT ON VIEW rag.answer_citation IS
    'Citations of logged answers. stale: the document has changed since, or is gone; NULL where that is not known, as of a document that the caller does not see.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'answer_citation') ON CONFLICT DO NOTHING;

CREATE VIEW rag.answers_per_day WITH (security_invoker = true) AS
SELECT l.answered_at::date AS day, count(*) FILTER (WHERE l.found) AS answers, count(*) FILTER (WHERE NOT l.found) AS refusals,
       avg(l.confidence) FILTER (WHERE l.found) AS mean_confidence, avg(l.milliseconds) AS mean_milliseconds
FROM rag.answer_log l
GROUP BY 1;
COMMENT ON VIEW rag.answers_per_day IS
    'Logged answers and refusals by day of the session''s time zone. mean_confidence is of answers whose support was measured, mean_milliseconds of answers and refusals.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'answers_per_day') ON CONFLICT DO NOTHING;

CREATE VIEW rag.stage_latency WITH (security_invoker = true) AS
SELECT s.stage, count(*) AS runs,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY s.ms) AS p50_milliseconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY s.ms) AS p95_milliseconds
FROM rag.answer_log l
CROSS JOIN LATERAL jsonb_to_recordset(l.stages) AS s (stage text, ms double precision)
GROUP BY s.stage;
COMMENT ON VIEW rag.stage_latency IS 'How long the stages of logged answers took, in milliseconds. A stage that ran more than once for an answer counts as often.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'stage_latency') ON CONFLICT DO NOTHING;

CREATE VIEW rag.cited_document WITH (security_invoker = true) AS
SELECT c.document_id, (array_agg(c.title ORDER BY l.answered_at DESC))[1] AS title,
       (array_agg(c.uri ORDER BY l.answered_at DESC))[1] AS uri, count(*) AS citations, count(DISTINCT (l.owner, l.owner_role, l.id)) AS answers,
       max(l.answered_at) AS last_cited_at
FROM rag.answer_log l
CROSS JOIN LATERAL jsonb_to_recordset(l.citations) AS c (document_id uuid, title text, uri text)
GROUP BY c.document_id;
COMMENT ON VIEW rag.cited_document IS 'Documents by how often logged answers cite them, with title and uri as they were cited last.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'cited_document') ON CONFLICT DO NOTHING;

-- Vector search goes over codes that are kept beside each keyword segment; workers make them of what is there.

CREATE TABLE rag.segment_codes (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    segment_id uuid NOT NULL,
    part integer NOT NULL,
    vector_space_id uuid NOT NULL,
    bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (domain_id, segment_id, part)
);
ALTER TABLE rag.segment_codes ALTER data SET STORAGE EXTERNAL, ALTER data SET STATISTICS 0, ALTER sha256 SET STATISTICS 0;
ALTER TABLE rag.segment_codes SET (toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 1000);
-- No policy: workers, superusers, and functions that have made sure. What is near to what tells of texts.
ALTER TABLE rag.segment_codes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE rag.segment_codes IS 'One-bit codes of the vectors of a segment''s chunks, in the order of its entries, in parts of at most 4 MB: what vector search goes over before it compares. Workers make them from rag.embedding. Not dumped.';
COMMENT ON COLUMN rag.segment_codes.bytes IS 'Bytes of all parts.';
COMMENT ON COLUMN rag.segment_codes.sha256 IS 'SHA-256 of all parts.';
CREATE TRIGGER restore_unchecked BEFORE INSERT ON rag.segment_codes FOR EACH STATEMENT
    WHEN (current_setting('application_name') = 'pg_restore') EXECUTE FUNCTION rag.restore_unchecked();
DO $$
DECLARE
    hnsw regclass;
BEGIN
    FOR hnsw IN
        SELECT c.oid::regclass FROM pg_inherits i JOIN pg_class t ON t.oid = i.inhrelid
        JOIN pg_index x ON x.indrelid = t.oid JOIN pg_class c ON c.oid = x.indexrelid
        WHERE i.inhparent = 'rag.embedding'::regclass AND c.relname = t.relname || '_hnsw'
    LOOP
        EXECUTE format('DROP INDEX %s', hnsw);
    END LOOP;
END $$;

-- What sessions keep of the tables that rights are read from, and of acronyms, is found anew after a write that concerns them. The triggers
-- fire in every session, also in one that replicates, and before the row is there.

CREATE FUNCTION rag.note_write() RETURNS trigger
    AS 'MODULE_PATHNAME', 'note_write_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.note_write() IS 'Notes in shared memory that this transaction writes rows about what stands in the columns that are its arguments; without arguments: about anything.';

CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.collection
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('id', 'owner');
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.domain
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('collection_id', 'owner');
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.collection_grant
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('principal');
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.accepted_collection
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('principal');
-- Whoever may see something of an attached table keeps nothing; others must learn that there is one.
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OF collection_id, source OR DELETE ON rag.attachment
    FOR EACH ROW EXECUTE FUNCTION rag.note_write();
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['collection', 'domain', 'collection_grant', 'accepted_collection', 'attachment'] LOOP
        EXECUTE format('CREATE TRIGGER note_truncate BEFORE TRUNCATE ON rag.%I FOR EACH STATEMENT EXECUTE FUNCTION rag.note_write()', t);
        EXECUTE format('ALTER TABLE rag.%I ENABLE ALWAYS TRIGGER note_write, ENABLE ALWAYS TRIGGER note_truncate', t);
    END LOOP;
END $$;

-- Which collections have some is found anew after a write, see rag.note_write().
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.acronym
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('collection_id');
CREATE TRIGGER note_truncate BEFORE TRUNCATE ON rag.acronym FOR EACH STATEMENT EXECUTE FUNCTION rag.note_write();
ALTER TABLE rag.acronym ENABLE ALWAYS TRIGGER note_write, ENABLE ALWAYS TRIGGER note_truncate;

CREATE UNLOGGED TABLE rag.restore (
    pid integer PRIMARY KEY,
    backend_start timestamptz NOT NULL
);
COMMENT ON TABLE rag.restore IS 'The session in which a script of pg_dump has created the extension, until a worker finds that the restore is over. Not dumped.';
ALTER TABLE rag.restore ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Last, and the old one dropped when the new one is there: nobody can read chunks from then on until this commits.
CREATE INDEX chunk_document_id ON rag.chunk (domain_id, document_id, ordinal) INCLUDE (id);
DROP INDEX rag.chunk_document;
ALTER INDEX rag.chunk_document_id RENAME TO chunk_document;
