-- Changing the embedding model of a collection.

CREATE TABLE rag.model_change (
    collection_id uuid PRIMARY KEY REFERENCES rag.collection ON DELETE CASCADE,
    model text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    worker_pid integer,
    worker_start timestamptz,
    due_at timestamptz NOT NULL DEFAULT now(),
    error text
);
COMMENT ON TABLE rag.model_change IS
    'Collections that are to get another embedding model. Background workers embed their chunks anew; meanwhile the old model is searched, and all chunks of the collection switch in one transaction.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'model_change');
COMMENT ON COLUMN rag.model_change.model IS 'The model to come.';
COMMENT ON COLUMN rag.model_change.error IS 'Why the work stopped last; it is tried again at due_at.';

ALTER TABLE rag.model_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY model_change_read ON rag.model_change FOR SELECT USING (rag.sees_collection(collection_id));

CREATE FUNCTION rag_alter_collection(collection text, model text DEFAULT NULL, options jsonb DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_alter_collection_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_alter_collection(text, text, jsonb) IS
    'Changes the model or the options of a collection of the caller''s, in the background; what is there is found meanwhile as before. options: those of rag_create_collection. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_alter_collection');

CREATE FUNCTION rag.embedded_chunks(domain_id uuid, model text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'embedded_chunks_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.embedded_chunks(uuid, text) IS
    'Chunks of a domain that have a vector of this model; NULL for a domain that the caller does not see as a whole.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'embedded_chunks');
