-- Whether what was made of documents agrees with them.

CREATE FUNCTION rag_verify(collection text DEFAULT NULL, repair boolean DEFAULT false)
    RETURNS TABLE (kind text, collection text, object uuid, problem text, repaired boolean)
    AS 'MODULE_PATHNAME', 'rag_verify_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 COST 1000000;
COMMENT ON FUNCTION rag_verify(text, boolean) IS
    'Compares what was made of the caller''s documents (of one collection, or all that are his) with them, and returns a row for what does not agree: none means that all is well. kind: text (a document''s chunks are what stands in its text, and have sections), vector (each chunk has its vector, each vector its chunk), segment (each keyword segment can be read, each chunk is in one), cache (files are copies of segments), counter. object: a document, a segment, or a domain. repair: what does not agree is mended in the caller''s transaction, the keyword index of a domain being made anew from rag.chunk; documents that lack chunks or vectors are queued to be processed again, see rag_wait. repaired: whether that was done. Superusers with rag_ext.all_domains = on: everybody''s. It reads all rows and takes time with their number. Errors: 42704, 42501 nothing there is the caller''s, or added policies may hide rows from him; 55006 the index is written to all the time.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_verify');
