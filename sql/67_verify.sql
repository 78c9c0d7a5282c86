-- Whether what was made of documents agrees with them.

CREATE FUNCTION rag_verify(collection text DEFAULT NULL, repair boolean DEFAULT false)
    RETURNS TABLE (kind text, collection text, object uuid, problem text, repaired boolean)
    AS 'MODULE_PATHNAME', 'rag_verify_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 COST 1000000;
COMMENT ON FUNCTION rag_verify(text, boolean) IS
    'Compares what was made of the caller''s documents (in one collection, or all) with them, and returns a row for each thing that does not agree: none means that all is well. repair: it is mended in the caller''s transaction, or queued. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_verify');
