-- Looking at the graph.

CREATE FUNCTION rag_related(subject text, collection text DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (kind text, name text, relation text, direction text, strength double precision, depth integer,
                   document_id uuid, title text, uri text, chunk_id uuid)
    AS 'MODULE_PATHNAME', 'rag_related_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 50 COST 1000;
COMMENT ON FUNCTION rag_related(text, text, jsonb) IS
    'What the caller''s documents relate to a document (by id or uri) or an entity (by name), the strongest first, each with the chunk that says so. options: k (1 to 1000, 50), depth (1 or 2, 2). See docs/graph.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_related');
