-- Measuring and explaining searches. Tables of queries and judgements are the caller's, and are read as the caller.

CREATE FUNCTION rag_evaluate(
    collection text, queries regclass, judgements regclass, modes text[] DEFAULT '{keyword,vector,hybrid}',
    k integer DEFAULT 10, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        collection text, variant text, mode text, query_id text, queries integer, recall double precision,
        "precision" double precision, mrr double precision, ndcg double precision, milliseconds double precision,
        details jsonb)
    AS 'MODULE_PATHNAME', 'rag_evaluate_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 3 COST 1000000;
COMMENT ON FUNCTION rag_evaluate(text, regclass, regclass, text[], integer, jsonb) IS
    'Recall@k, precision@k, MRR and nDCG@10 of ways of searching, by queries (id, query) and judgements (query_id, document, relevance) that the caller may read. options: level (document or chunk), per_query (boolean), variants (array of objects), those of rag_search but context. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_evaluate');

CREATE FUNCTION rag_explain(
    query text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, k integer DEFAULT 10,
    mode text DEFAULT 'hybrid', options jsonb DEFAULT '{}')
    RETURNS TABLE (
        kind text, stage text, input bigint, output bigint, milliseconds double precision, method text, fallback text,
        reason text, rank integer, score double precision, document_id uuid, chunk_id uuid, title text, uri text,
        keyword_rank integer, keyword_score double precision, vector_rank integer, vector_score double precision,
        fusion_rank integer, fusion_score double precision, rerank_rank integer, rerank_score double precision,
        dropped text, details jsonb)
    AS 'MODULE_PATHNAME', 'rag_explain_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 10000;
COMMENT ON FUNCTION rag_explain(text, text, jsonb, integer, text, jsonb) IS
    'How rag_search with these arguments comes to its rows: a row of kind stage for each stage, and on request one of kind candidate for each chunk that a retriever found. options: per_candidate (boolean), those of rag_search but context. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_explain');

CREATE FUNCTION rag_evaluate_answers(collection text, questions regclass, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        question_id text, questions integer, answered double precision, refused double precision,
        correct double precision, quoted double precision, first_citation double precision,
        citation_precision double precision, citation_recall double precision, faithfulness double precision,
        exact double precision, confidence double precision, milliseconds double precision, details jsonb)
    AS 'MODULE_PATHNAME', 'rag_evaluate_answers_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 COST 1000000;
COMMENT ON FUNCTION rag_evaluate_answers(text, regclass, jsonb) IS
    'How good answers are, by questions (id, question; answer, quote, document, answerable where known) that the caller may read: a row for all, and with option per_question one for each. options: per_question (boolean), those of rag_answer. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_evaluate_answers');
