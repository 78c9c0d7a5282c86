-- Previews: what parsing and chunking make of a document, without storing anything.

CREATE FUNCTION rag_parse(content bytea, media_type text DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        media_type text, title text, text text, pages integer, page_starts integer[], headings jsonb, metadata jsonb)
    AS 'MODULE_PATHNAME', 'rag_parse_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 COST 100000;
COMMENT ON FUNCTION rag_parse(bytea, text, jsonb) IS
    'What ingestion would read in a file: one row. media_type: the given one, or found by content; text: the document as Markdown; pages: how many pages (slides, sheets), NULL where the format has none; page_starts: characters of the text before each page; headings: [{level (1 to 6), title, page, char_from, char_to}]; metadata: what the file says of itself. options: none. Nothing is stored. Errors: 22000 not parsable, 0A000 unknown type, 54000 over a limit, 58000 engine down.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_parse');

CREATE FUNCTION rag_chunk(content text, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        ordinal integer, total integer, parent integer, parent_from integer, parent_to integer, header_path text[],
        page_from integer, page_to integer, char_from integer, char_to integer, tokens integer, sha256 bytea, context text, content text)
    AS 'MODULE_PATHNAME', 'rag_chunk_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 100000;
COMMENT ON FUNCTION rag_chunk(text, jsonb) IS
    'The chunks that ingestion would make of a text, in order. ordinal and parent (its section) count from 0 as in rag.chunk and rag.section; parent_from and parent_to: where the section stands; tokens: of the content, by the embedding model''s tokenizer; sha256: of what is embedded, which is context, line break and content; char_from and char_to point into the text as rag_parse shows it, which is the given one unless it is HTML. options: method, unit, size, overlap, min_size, context (these as in a collection''s chunking), model, title, media_type, language. Nothing is stored. Errors: 22004, 22023 bad option, 42704 no such model, 54000 over a limit, 58000 engine down.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_chunk');

CREATE FUNCTION rag_chunk_bytes(content bytea, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        ordinal integer, total integer, parent integer, parent_from integer, parent_to integer, header_path text[],
        page_from integer, page_to integer, char_from integer, char_to integer, tokens integer, sha256 bytea, context text, content text)
    AS 'MODULE_PATHNAME', 'rag_chunk_bytes_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 100000;
COMMENT ON FUNCTION rag_chunk_bytes(bytea, jsonb) IS 'As rag_chunk, for the bytes of a file: page_from and page_to are known where the format has pages. Errors also: 22000 not parsable, 0A000 unknown type.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_chunk_bytes');
