-- Previews: what parsing and chunking make of a document, without storing anything.

CREATE FUNCTION rag_parse(content bytea, media_type text DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        media_type text, title text, text text, pages integer, page_starts integer[], headings jsonb, metadata jsonb)
    AS 'MODULE_PATHNAME', 'rag_parse_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 COST 100000;
COMMENT ON FUNCTION rag_parse(bytea, text, jsonb) IS
    'What ingestion would read in a file, as one row: its text as Markdown, pages, headings and metadata. Nothing is stored. options: none.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_parse');

CREATE FUNCTION rag_chunk(content text, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        ordinal integer, total integer, parent integer, parent_from integer, parent_to integer, header_path text[],
        page_from integer, page_to integer, char_from integer, char_to integer, tokens integer, sha256 bytea, context text, content text)
    AS 'MODULE_PATHNAME', 'rag_chunk_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 100000;
COMMENT ON FUNCTION rag_chunk(text, jsonb) IS
    'The chunks that ingestion would make of a text, in order; nothing is stored. options: method, unit, size, overlap, min_size, context, breakpoint_percentile (these as in a collection''s chunking), model, title, media_type, language. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_chunk');

CREATE FUNCTION rag_chunk_bytes(content bytea, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        ordinal integer, total integer, parent integer, parent_from integer, parent_to integer, header_path text[],
        page_from integer, page_to integer, char_from integer, char_to integer, tokens integer, sha256 bytea, context text, content text)
    AS 'MODULE_PATHNAME', 'rag_chunk_bytes_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 100000;
COMMENT ON FUNCTION rag_chunk_bytes(bytea, jsonb) IS 'As rag_chunk, for the bytes of a file: page_from and page_to are known where the format has pages. Errors also: 22000 not parsable, 0A000 unknown type.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_chunk_bytes');
