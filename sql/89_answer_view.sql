-- Answers as data: views over rag.answer_log, for dashboards. All are security_invoker.

-- As for the other views.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.answer_citation WITH (security_invoker = true) AS
SELECT l.owner, l.id AS answer_id, l.answered_at, l.question, l.collection, c.n, c.document_id, c.chunk_id, c.title, c.uri,
       c.header_path, c.page_from, c.page_to, c.quote, c.char_from, c.char_to, c.support, decode(c.sha256, 'hex') AS sha256,
       rag.citation_is_stale(l.owner, l.owner_role, l.id, c.n) AS stale
FROM rag.answer_log l
CROSS JOIN LATERAL jsonb_to_recordset(l.citations) AS c (
    n integer, document_id uuid, chunk_id uuid, title text, uri text, header_path text[], page_from integer, page_to integer,
    quote text, char_from integer, char_to integer, support double precision, sha256 text);
COMMENT ON VIEW rag.answer_citation IS
    'Citations of logged answers. stale: the document has changed since, or is gone; NULL where that is not known, as of a document that the caller does not see.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'answer_citation');

CREATE VIEW rag.answers_per_day WITH (security_invoker = true) AS
SELECT l.answered_at::date AS day, count(*) FILTER (WHERE l.found) AS answers, count(*) FILTER (WHERE NOT l.found) AS refusals,
       avg(l.confidence) FILTER (WHERE l.found) AS mean_confidence, avg(l.milliseconds) AS mean_milliseconds
FROM rag.answer_log l
GROUP BY 1;
COMMENT ON VIEW rag.answers_per_day IS
    'Logged answers and refusals by day of the session''s time zone. mean_confidence is of answers whose support was measured, mean_milliseconds of answers and refusals.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'answers_per_day');

CREATE VIEW rag.stage_latency WITH (security_invoker = true) AS
SELECT s.stage, count(*) AS runs,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY s.ms) AS p50_milliseconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY s.ms) AS p95_milliseconds
FROM rag.answer_log l
CROSS JOIN LATERAL jsonb_to_recordset(l.stages) AS s (stage text, ms double precision)
GROUP BY s.stage;
COMMENT ON VIEW rag.stage_latency IS 'How long the stages of logged answers took, in milliseconds. A stage that ran more than once for an answer counts as often.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'stage_latency');

CREATE VIEW rag.cited_document WITH (security_invoker = true) AS
SELECT c.document_id, (array_agg(c.title ORDER BY l.answered_at DESC))[1] AS title,
       (array_agg(c.uri ORDER BY l.answered_at DESC))[1] AS uri, count(*) AS citations, count(DISTINCT (l.owner, l.owner_role, l.id)) AS answers,
       max(l.answered_at) AS last_cited_at
FROM rag.answer_log l
CROSS JOIN LATERAL jsonb_to_recordset(l.citations) AS c (document_id uuid, title text, uri text)
GROUP BY c.document_id;
COMMENT ON VIEW rag.cited_document IS 'Documents by how often logged answers cite them, with title and uri as they were cited last.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'cited_document');
