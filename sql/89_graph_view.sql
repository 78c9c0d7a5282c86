-- Views of the graph, security_invoker as all views.

-- As for the other views.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.graph_entity WITH (security_invoker = true) AS
SELECT d.collection, d.owner, m.key, mode() WITHIN GROUP (ORDER BY m.kind) AS kind,
       mode() WITHIN GROUP (ORDER BY m.name) AS name, count(DISTINCT m.document_id) AS documents, count(*) AS chunks
FROM rag.entity_mention m
JOIN rag.document d ON d.domain_id = m.domain_id AND d.id = m.document_id
GROUP BY m.domain_id, d.collection, d.owner, m.key;
COMMENT ON VIEW rag.graph_entity IS 'Entities by collection and owner, with the number of documents and chunks that name them, of those that the caller sees.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_entity');

CREATE VIEW rag.graph_relation WITH (security_invoker = true) AS
SELECT d.collection, d.owner, r.subject, r.relation, r.object, r.document_id, d.title, d.uri, r.chunk_id, r.by_chat
FROM rag.entity_relation r
JOIN rag.document d ON d.domain_id = r.domain_id AND d.id = r.document_id;
COMMENT ON VIEW rag.graph_relation IS 'Relations of entities, with the chunk that states each.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_relation');

CREATE VIEW rag.graph_link WITH (security_invoker = true) AS
SELECT d.collection, d.owner, l.document_id, d.title, d.uri, l.kind, l.target, l.section, l.strength, l.chunk_id
FROM rag.document_link l
JOIN rag.document d ON d.domain_id = l.domain_id AND d.id = l.document_id;
COMMENT ON VIEW rag.graph_link IS 'Links of documents as they are written, with the chunk that has each. rag_related says which documents they mean.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_link');

CREATE VIEW rag.graph_status WITH (security_invoker = true) AS
SELECT d.collection, d.owner,
       count(*) FILTER (WHERE j.state = 'done') AS done,
       count(*) FILTER (WHERE j.state IN ('queued', 'running')) AS waiting,
       count(*) FILTER (WHERE j.state = 'skipped') AS skipped,
       count(*) FILTER (WHERE j.state = 'failed') AS failed,
       min(j.due_at) FILTER (WHERE j.state = 'queued') AS next_try_at,
       (array_agg(j.error ORDER BY coalesce(j.finished_at, j.due_at) DESC) FILTER (WHERE j.error IS NOT NULL))[1] AS error
FROM rag.graph_job j
JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
GROUP BY j.domain_id, d.collection, d.owner;
COMMENT ON VIEW rag.graph_status IS
    'How far the chat model is with collections of option graph chat, in chunks that the caller sees, by collection and owner. error: why one was skipped, failed or waits, the latest.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_status');
