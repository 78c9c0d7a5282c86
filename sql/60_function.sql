-- The functions that people call. Signatures are final: growth goes into options, whose unknown keys are
-- refused with 22023. Reading functions run with the caller's rights.

-- Collections and rights ------------------------------------------------------------------------------

CREATE FUNCTION rag_create_collection(
    name text, model text DEFAULT NULL, language text DEFAULT 'english', shared boolean DEFAULT false,
    options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_create_collection_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_create_collection(text, text, text, boolean, jsonb) IS
    'Creates a collection of the caller''s and returns its id; shared: one domain for all who may write. options: chunking (an object with method, unit, size, overlap, min_size and context), feedback_boost, graph (rules or chat), remote. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_create_collection');

CREATE FUNCTION rag_grant(collection text, principal text, privilege text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_grant_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_grant(text, text, text) IS
    'Lets a principal (role:NAME, user:GATEWAY/ID or public) read or write a collection of the caller''s. Public needs a superuser. Errors: 42704 no such collection or role, 22023 bad principal or privilege, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_grant');

CREATE FUNCTION rag_revoke(collection text, principal text, privilege text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_revoke_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_revoke(text, text, text) IS 'Takes back what rag_grant gave. Revoking what was not granted does nothing.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_revoke');

CREATE FUNCTION rag_accept(owner text, collection text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_accept_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_accept(text, text) IS
    'Takes another owner''s collection, which the caller may read, into the caller''s searches that name no collection, and lets its bare name mean it where the caller has none of that name. To undo: DELETE FROM rag.accepted_collection. Error: 42704 no such collection, or none that the caller may see.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_accept');

CREATE FUNCTION rag_enable(role text, access text DEFAULT 'write') RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF access IS NULL THEN
        RAISE EXCEPTION 'access must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    PERFORM rag.set_rights(role, access);
END $$;
COMMENT ON FUNCTION rag_enable(text, text) IS
    'Superuser: lets a role, or ''public'', use rag_ext. Access ''read'' is to search, ask and accept collections, and to write nothing; it takes the rest back. See docs/security.md.';

CREATE FUNCTION rag_disable(role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rag.set_rights(role, NULL);
END $$;
COMMENT ON FUNCTION rag_disable(text) IS 'Superuser: takes back what rag_enable gave.';

CREATE FUNCTION rag_register_gateway(role text, local_only boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role regrole := to_regrole(quote_ident(role));
BEGIN
    PERFORM rag.require_superuser('rag_register_gateway');
    IF found_role IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', left(role, 64) USING ERRCODE = 'undefined_object';
    END IF;
    IF local_only IS NULL THEN
        RAISE EXCEPTION 'local_only must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    INSERT INTO rag.gateway AS g VALUES (found_role, rag_register_gateway.local_only)
    ON CONFLICT ON CONSTRAINT gateway_pkey DO UPDATE SET local_only = excluded.local_only;
END $$;
COMMENT ON FUNCTION rag_register_gateway(text, boolean) IS
    'Superuser: this role speaks for application users, as user:ROLE/ID with the ID of rag_ext.user_id, and for nobody while that is unset. With local_only, a value that is not SET LOCAL is refused (42501). See docs/security.md.';

CREATE FUNCTION rag_unregister_gateway(role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rag.require_superuser('rag_unregister_gateway');
    DELETE FROM rag.gateway g WHERE g.role = to_regrole(quote_ident(rag_unregister_gateway.role));
END $$;
COMMENT ON FUNCTION rag_unregister_gateway(text) IS 'Superuser: makes a gateway an ordinary role again.';

-- Ingestion -------------------------------------------------------------------------------------------

CREATE FUNCTION rag_ingest(
    content text, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    metadata jsonb DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_ingest_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_ingest(text, text, text, text, jsonb, jsonb) IS
    'Stores a text (plain, Markdown or HTML), or updates the document of the same uri, and returns its id; the rest is done in the background, see rag_wait. options: media_type, priority (-100 to 100, 0), sync (boolean: process in this transaction). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_ingest');

CREATE FUNCTION rag_ingest_bytes(
    content bytea, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    metadata jsonb DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_ingest_bytes_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_ingest_bytes(bytea, text, text, text, jsonb, jsonb) IS
    'As rag_ingest, for the bytes of a file; its media type is found by content, or given in options.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_ingest_bytes');

CREATE FUNCTION rag_ingest_file(
    path text, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    metadata jsonb DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_ingest_file_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_ingest_file(text, text, text, text, jsonb, jsonb) IS
    'As rag_ingest_bytes, for a file of the server''s machine, which members of pg_read_server_files may read. The path is absolute, or from the data directory; uri is file:// and the absolute path, unless given. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_ingest_file');

CREATE FUNCTION rag_wait(collection text DEFAULT NULL, timeout interval DEFAULT '10 min') RETURNS boolean
    AS 'MODULE_PATHNAME', 'rag_wait_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_wait(text, interval) IS
    'Waits until all documents of the caller''s (in one collection, or all) are done or failed. True: all are done; false, with a notice that says which: some have failed, only paused work is left, or time is up. See docs/reference.md.';

CREATE FUNCTION rag_wait(document_id uuid, timeout interval DEFAULT '10 min') RETURNS boolean
    AS 'MODULE_PATHNAME', 'rag_wait_document_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_wait(uuid, interval) IS
    'Waits for one document that the caller sees: as rag_wait(collection). Errors: 55000, 42704.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_wait');

-- Search ----------------------------------------------------------------------------------------------

CREATE FUNCTION rag_search(
    query text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, k integer DEFAULT 10,
    mode text DEFAULT 'hybrid', options jsonb DEFAULT '{}')
    RETURNS TABLE (
        rank integer, document_id uuid, section_id uuid, chunk_id uuid, collection text, title text, uri text,
        header_path text[], page_from integer, page_to integer, char_from integer, char_to integer, snippet text,
        content text, score double precision, keyword_rank integer, keyword_score double precision,
        vector_rank integer, vector_score double precision, rerank_score double precision, metadata jsonb,
        details jsonb)
    AS 'MODULE_PATHNAME', 'rag_search_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 10000;
COMMENT ON FUNCTION rag_search(text, text, jsonb, integer, text, jsonb) IS
    'The k best chunks that the caller may see. options: fusion, keyword_weight, rrf_k, candidates, min_score, min_similarity, min_rerank_score, near_duplicates, source_boost, feedback_boost, context, context_window, context_tokens, rerank, rerank_model, rerank_limit, rerank_top_n, snippet_length, acronyms, spelling, rewrite, decompose, hyde, graph, hops, next_hop. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_search');

CREATE FUNCTION rag_rerank(query text, documents text[], options jsonb DEFAULT '{}')
    RETURNS TABLE (index integer, score double precision)
    AS 'MODULE_PATHNAME', 'rag_rerank_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 100000;
COMMENT ON FUNCTION rag_rerank(text, text[], jsonb) IS
    'Orders up to 1000 texts by relevance to the query with a cross-encoder: 1-based index and score from 0 to 1, in falling order. options: model, k, raw (boolean: logits as scores). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_rerank');

CREATE FUNCTION rag_rerank_chunks(query text, chunk_ids uuid[], options jsonb DEFAULT '{}')
    RETURNS TABLE (chunk_id uuid, score double precision)
    AS 'MODULE_PATHNAME', 'rag_rerank_chunks_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 100000;
COMMENT ON FUNCTION rag_rerank_chunks(text, uuid[], jsonb) IS
    'As rag_rerank, for chunks by id. Ids that do not exist or that the caller may not see are left out alike.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_rerank_chunks');

CREATE FUNCTION rag_vectors(chunk_ids uuid[])
    RETURNS TABLE (chunk_id uuid, model text, vector real[])
    AS 'MODULE_PATHNAME', 'rag_vectors_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 1000;
COMMENT ON FUNCTION rag_vectors(uuid[]) IS
    'Embeddings of chunks, L2-normalised, by id: one row per chunk and model. Ids that do not exist or that the caller may not see are left out alike; rag.embedding itself is for superusers, since distances to others'' vectors tell of their texts. Errors: 22004 null, 54000 more than 10000 ids.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_vectors');

-- Answers ---------------------------------------------------------------------------------------------

CREATE FUNCTION rag_answer(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}') RETURNS jsonb
    AS 'MODULE_PATHNAME', 'rag_answer_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION rag_answer(text, text, jsonb, jsonb, jsonb) IS
    'Answers from the caller''s documents, as one JSON object with answer, found, citations and more. options: k, context_limit, mode, min_support (0 to 1), max_sentences (1 to 10, 3), sentence_limit (1 to 200, 16), generate (boolean), policy (strict, cited or free), temperature, top_p, max_tokens, context_budget, on_failure, those of rag_search but context. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer');

CREATE FUNCTION rag.answer_parts(question text, collection text, filter jsonb, history jsonb, options jsonb)
    RETURNS SETOF jsonb
    AS 'MODULE_PATHNAME', 'answer_parts_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000000 ROWS 100;
COMMENT ON FUNCTION rag.answer_parts(text, text, jsonb, jsonb, jsonb) IS 'The rows of rag_answer_stream.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'answer_parts');

-- STABLE, so that the planner puts its body in its place in FROM, where the rows of other functions are collected first.
CREATE FUNCTION rag_answer_stream(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}') RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100
    BEGIN ATOMIC
        SELECT rag.answer_parts(question, collection, filter, history, options);
    END;
COMMENT ON FUNCTION rag_answer_stream(text, text, jsonb, jsonb, jsonb) IS
    'rag_answer while it is written, one row at a time: {"delta": text} for each part, which is not checked yet, and at last the checked answer, as rag_answer returns it, with "done": true. A cursor or a driver''s single-row mode shows each as it comes. options: those of rag_answer.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer_stream');

CREATE FUNCTION rag_answer_text(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}') RETURNS text
    AS 'MODULE_PATHNAME', 'rag_answer_text_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION rag_answer_text(text, text, jsonb, jsonb, jsonb) IS
    'rag_answer for people: the answer, then its numbered sources with quotes.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer_text');

CREATE FUNCTION rag_cite(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}')
    RETURNS TABLE (
        answer text, found boolean, confidence double precision, n integer, document_id uuid, title text, uri text,
        header_path text[], page_from integer, page_to integer, quote text, support double precision)
    AS 'MODULE_PATHNAME', 'rag_cite_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 3 COST 1000000;
COMMENT ON FUNCTION rag_cite(text, text, jsonb, jsonb, jsonb) IS
    'rag_answer as rows, one per citation; one row with n NULL where there is none. confidence and support are NULL where no model measured them.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_cite');

-- Models and status -----------------------------------------------------------------------------------

CREATE FUNCTION rag.embed(input text, model text) RETURNS real[]
    AS 'MODULE_PATHNAME', 'embed_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000;
COMMENT ON FUNCTION rag.embed(text, text) IS 'rag_embed as an array.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'embed');

CREATE FUNCTION rag_embed(input text, model text DEFAULT NULL) RETURNS vector LANGUAGE sql STABLE PARALLEL RESTRICTED COST 100000
    RETURN rag.embed(input, model)::vector;
COMMENT ON FUNCTION rag_embed(text, text) IS
    'The L2-normalised embedding of a text as a query (with the model''s query prefix). model NULL: rag_ext.embedding_model. Errors: 22004, 42704 no such model, 54000 beyond the model''s limit, 55000 not loaded, 58000 engine down.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_embed');

CREATE FUNCTION rag_status() RETURNS text
    AS 'MODULE_PATHNAME', 'rag_status_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag_status() IS 'What works and what does not, in words, a line each.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_status');

CREATE FUNCTION rag.engine_state() RETURNS jsonb
    AS 'MODULE_PATHNAME', 'engine_state_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.engine_state() IS 'The row of rag.engine_status. Counters are about all users together and shown to superusers and members of pg_monitor; the last error may name paths and is shown to superusers.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'engine_state');

CREATE FUNCTION rag.models() RETURNS jsonb
    AS 'MODULE_PATHNAME', 'models_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.models() IS 'Rows of rag.model, as an array. endpoint, where the model of a remote endpoint is, and whether a model is loaded are shown to superusers and members of pg_monitor.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'models');
