-- The log of searches. Searches write nothing: they leave notes in shared memory, which workers write.

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
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'query_log'), ('write', 'DELETE', 'query_log');
