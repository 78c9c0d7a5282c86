-- Steering the background work. Everyone steers what is theirs: a collection's owner all of it, somebody else who
-- writes to it their own documents there. What is hidden and what is missing give the same 42704.

CREATE FUNCTION rag_pause(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_pause_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_pause(text) IS
    'Holds back background work on a collection of the caller''s, or on all that are theirs, until rag_resume; of another owner''s collection, on the caller''s own documents in it. Returns how many were not paused yet. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_pause');

CREATE FUNCTION rag_resume(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_resume_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_resume(text) IS 'Ends what rag_pause began, and returns how many were paused. Errors: as rag_pause.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_resume');

CREATE FUNCTION rag_set_priority(collection text, priority integer) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_priority_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_priority(text, integer) IS
    'Orders the caller''s own work: whenever it is their turn, documents of their collection with the highest priority (-100 to 100, at first 0) come first. It takes no turn from anybody else. Errors: 22023, 42704, 42501 nothing in it is the caller''s.';

CREATE FUNCTION rag_set_priority(document_id uuid, priority integer) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_document_priority_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_priority(uuid, integer) IS
    'Has a document processed before (or after) the others of its collection and owner. Errors: 22023, 42704 no such document, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_set_priority');

CREATE FUNCTION rag_cancel(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_cancel_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_cancel(text) IS
    'Cancels the queued and running work on documents that the caller may change, and returns how many. Their status is failed, with SQLSTATE 57014; an earlier form stays searchable; rag_retry queues them again. Error: 42704.';

CREATE FUNCTION rag_cancel(document_id uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_cancel_document_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_cancel(uuid) IS 'Cancels the work on one document: 1, or 0 if there is none. Errors: 42704 no such document, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_cancel');

CREATE FUNCTION rag_retry(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_retry_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_retry(text) IS
    'Queues the failed documents that the caller may change once more, cancelled ones too, and returns how many. Error: 42704.';

CREATE FUNCTION rag_retry(document_id uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_retry_document_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_retry(uuid) IS
    'Queues one failed document once more: 1, or 0 if it has not failed. Errors: 42704 no such document, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_retry');

CREATE FUNCTION rag_drop_collection(collection text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_drop_collection_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_drop_collection(text) IS
    'Deletes a collection of the caller''s with all documents in it, those of others too, as DELETE FROM rag.collection does. They are gone with the commit, and workers clear the rows away. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_drop_collection');
