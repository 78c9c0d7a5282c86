-- Attached tables: who knows of one, and of its rows.

CREATE FUNCTION rag.source_readable(collection_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'source_readable_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.source_readable(uuid) IS
    'Whether the caller owns this attached collection, or has SELECT on each column of its table that it uses.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'source_readable');

CREATE FUNCTION rag.attached_source(collection_id uuid) RETURNS regclass
    AS 'MODULE_PATHNAME', 'attached_source_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.attached_source(uuid) IS
    'The table behind this attached collection; NULL unless rag.source_readable.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'attached_source');

ALTER TABLE rag.attachment ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
-- Positions, counts and errors are about all rows, so they are the owner's alone.
CREATE POLICY attachment_read ON rag.attachment FOR SELECT USING (rag.owns_collection(collection_id));

ALTER TABLE rag.attached_row ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY attached_row_read ON rag.attached_row FOR SELECT USING (rag.sees_part(domain_id, document_id));

-- No policy: workers and triggers alone.
ALTER TABLE rag.attached_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
