-- Feedback: what people say of what searches show them. It is theirs alone, and becomes judgements for rag_evaluate.

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
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'feedback'), ('write', 'DELETE', 'feedback');

CREATE POLICY feedback_read ON rag.feedback FOR SELECT USING (rag.is_mine(owner, owner_role));
CREATE POLICY feedback_delete ON rag.feedback FOR DELETE USING (rag.is_mine(owner, owner_role));
ALTER TABLE rag.feedback ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT pg_extension_config_dump('rag.feedback', '');

CREATE FUNCTION rag_feedback(query text, chunk_id uuid, verdict integer, options jsonb DEFAULT '{}') RETURNS void
    AS 'MODULE_PATHNAME', 'rag_feedback_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_feedback(text, uuid, integer, jsonb) IS
    'Notes whether a chunk that the caller sees answers a query: 1 it does, -1 it does not, 0 takes back what the caller said before. Errors: 22004, 22023, 42704 no such chunk, or none that the caller may see.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_feedback');
