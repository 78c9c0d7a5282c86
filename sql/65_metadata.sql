-- Finding metadata: trying rules out, and applying changed ones to documents that are there already.

CREATE FUNCTION rag_extract_metadata(
    content text, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    options jsonb DEFAULT '{}') RETURNS jsonb
    AS 'MODULE_PATHNAME', 'rag_extract_metadata_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION rag_extract_metadata(text, text, text, text, jsonb) IS
    'What would be extracted from this text (Markdown) in this collection by the rules that the caller sees; nothing is stored. options: rules (an array of rules to use instead). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_extract_metadata');

CREATE FUNCTION rag_reextract(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_reextract_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_reextract(text) IS
    'Has metadata extracted anew from the documents that the caller may change (in one collection, or all), and returns how many. It is done in the background, see rag_wait; nothing is parsed or embedded again. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_reextract');
