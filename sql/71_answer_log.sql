-- The log of answers. Answers write nothing: they leave notes in shared memory, which workers write.

CREATE TABLE rag.log_reader (
    role regrole PRIMARY KEY
);
COMMENT ON TABLE rag.log_reader IS 'Roles that read everybody''s rows of rag.answer_log, by rag_log_reader.';
-- No policy: superusers, and the function that policies ask.
ALTER TABLE rag.log_reader ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE FUNCTION rag.log_owners() RETURNS text[]
    AS 'MODULE_PATHNAME', 'log_owners_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.log_owners() IS 'Owners whose rows of rag.answer_log the caller may see: rag.principals(), or all that have some for roles of rag_log_reader.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'log_owners');

CREATE FUNCTION rag.sees_log(owner text, owner_role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_log_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL RESTRICTED COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_log(text, regrole) IS 'Whether the caller may see rows of rag.answer_log of this owner: rag.is_mine, or rag_log_reader lets them see all.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_log');

CREATE TABLE rag.answer_log (
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    id uuid NOT NULL DEFAULT rag.new_id(),
    answered_at timestamptz NOT NULL,
    question text NOT NULL,
    collection text,
    answer text NOT NULL,
    found boolean NOT NULL,
    reason text,
    method text NOT NULL,
    confidence double precision,
    citations jsonb NOT NULL,
    models jsonb NOT NULL,
    prompt_tokens integer,
    completion_tokens integer,
    milliseconds double precision NOT NULL,
    stages jsonb NOT NULL,
    shortened text[] NOT NULL,
    PRIMARY KEY (owner, owner_role, id)
);
-- For workers, who take away what is old.
CREATE INDEX answer_log_answered_at ON rag.answer_log (answered_at);
ALTER TABLE rag.answer_log
    ALTER owner SET STATISTICS 0, ALTER answered_at SET STATISTICS 0, ALTER question SET STATISTICS 0,
    ALTER collection SET STATISTICS 0, ALTER answer SET STATISTICS 0, ALTER found SET STATISTICS 0, ALTER reason SET STATISTICS 0,
    ALTER method SET STATISTICS 0, ALTER confidence SET STATISTICS 0, ALTER citations SET STATISTICS 0,
    ALTER models SET STATISTICS 0, ALTER prompt_tokens SET STATISTICS 0, ALTER completion_tokens SET STATISTICS 0,
    ALTER milliseconds SET STATISTICS 0, ALTER stages SET STATISTICS 0, ALTER shortened SET STATISTICS 0;
COMMENT ON TABLE rag.answer_log IS 'Answers, while rag_ext.answer_log is on. For those who asked and for roles of rag_log_reader, until rag_ext.answer_log_retention. Not dumped.';
COMMENT ON COLUMN rag.answer_log.owner IS 'Principal who asked.';
COMMENT ON COLUMN rag.answer_log.owner_role IS 'The role behind the owner.';
COMMENT ON COLUMN rag.answer_log.question IS 'Its first 2,000 characters.';
COMMENT ON COLUMN rag.answer_log.collection IS 'As it was named; NULL: all that are the caller''s.';
COMMENT ON COLUMN rag.answer_log.reason IS 'Why there is no answer, as rag_answer says it.';
COMMENT ON COLUMN rag.answer_log.citations IS 'An object per citation, as rag_answer has them, with domain_id, sha256 (of the document as it was, NULL while a change waited to be processed) and own (whether it was of the owner''s own documents). rag.answer_citation has them as rows.';
COMMENT ON COLUMN rag.answer_log.models IS '{"chat": who wrote it, "reranker": who measured support, "embedding": who embedded}; NULL where none did.';
COMMENT ON COLUMN rag.answer_log.prompt_tokens IS 'Tokens that the chat model read, where its provider says so.';
COMMENT ON COLUMN rag.answer_log.completion_tokens IS 'Tokens that it wrote.';
COMMENT ON COLUMN rag.answer_log.stages IS 'An object per stage, as diagnostics of rag_answer has them.';
COMMENT ON COLUMN rag.answer_log.shortened IS 'What was left out, because it was too large: question, quotes, stages, headings, answer, citations. Empty: nothing.';
CREATE POLICY answer_log_read ON rag.answer_log FOR SELECT USING (rag.sees_log(owner, owner_role));
CREATE POLICY answer_log_delete ON rag.answer_log FOR DELETE USING (rag.is_mine(owner, owner_role));
ALTER TABLE rag.answer_log ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'answer_log'), ('write', 'DELETE', 'answer_log');

CREATE FUNCTION rag.citation_is_stale(owner text, owner_role regrole, answer_id uuid, n integer) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citation_is_stale_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.citation_is_stale(text, regrole, uuid, integer) IS
    'Whether the document of a citation in rag.answer_log has changed since or is gone. NULL where that is not known: the caller does not see it, or there is no such citation.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'citation_is_stale');

CREATE FUNCTION rag_log_reader(role text, reads boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role regrole := to_regrole(quote_ident(role));
BEGIN
    PERFORM rag.require_superuser('rag_log_reader');
    IF num_nulls(role, reads) > 0 THEN
        RAISE EXCEPTION 'role and reads must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF found_role IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', left(role, 64) USING ERRCODE = 'undefined_object';
    END IF;
    IF NOT reads THEN
        DELETE FROM rag.log_reader r WHERE r.role = found_role;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM rag.gateway g WHERE g.role = found_role) THEN
        RAISE EXCEPTION 'role "%" is a gateway, whose users see their own rows alone', left(role, 64)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name a role that speaks for itself.';
    END IF;
    INSERT INTO rag.log_reader VALUES (found_role) ON CONFLICT ON CONSTRAINT log_reader_pkey DO NOTHING;
END $$;
COMMENT ON FUNCTION rag_log_reader(text, boolean) IS
    'Superuser: lets a role, and who inherits from it, read everybody''s rows of rag.answer_log and its views, or with reads false no longer. The role must be enabled by rag_enable as well. Errors: 42501, 42704 no such role, 22023 a gateway.';

CREATE FUNCTION rag_answer_many(
    questions text[], collection text DEFAULT NULL, filter jsonb DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        n integer, question text, answer text, found boolean, reason text, method text, confidence double precision,
        citations integer, result jsonb, sqlstate text, error text)
    AS 'MODULE_PATHNAME', 'rag_answer_many_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10 COST 1000000;
COMMENT ON FUNCTION rag_answer_many(text[], text, jsonb, jsonb) IS
    'rag_answer for many questions, a row for each in their order; result is what rag_answer returns. A question that cannot be asked or answered has sqlstate and error in its row (classes 22, 54 and 58), and the others go on. At most 1000 questions.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer_many');
