-- From 0.1.0 to 0.2.0: all that has changed in the other files of sql/ since 0.1.0 was released, in the order in which it
-- can be done. Grows until 0.2.0 is released.
\echo Use "ALTER EXTENSION rag_ext UPDATE TO '0.2.0'" to load this file. \quit

COMMENT ON FUNCTION rag_search(text, text, jsonb, integer, text, jsonb) IS
    'The k best chunks that the caller may see: min(k, eligible) rows, best first, ties by chunk id. options: fusion (weighted or rrf), keyword_weight (0 to 1, 0.5), rrf_k (60), candidates (of each retriever), min_score (0 to 1), rerank (boolean), rerank_model (implies rerank), rerank_limit (pairs), snippet_length (characters). See docs/reference.md.';

COMMENT ON FUNCTION rag_chunk(text, jsonb) IS
    'The chunks that ingestion would make of a text, in order; nothing is stored. options: method, unit, size, overlap, min_size, context, breakpoint_percentile (these as in a collection''s chunking), model, title, media_type, language. See docs/reference.md.';
