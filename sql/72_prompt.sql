-- What chat models are told for answers: a superuser's to say.

CREATE TABLE rag.prompt (
    collection_id uuid REFERENCES rag.collection ON DELETE CASCADE,
    template jsonb NOT NULL,
    UNIQUE NULLS NOT DISTINCT (collection_id)
);
ALTER TABLE rag.prompt ALTER template SET STATISTICS 0;
COMMENT ON TABLE rag.prompt IS 'What chat models are told for questions about a collection, by rag_set_prompt.';
COMMENT ON COLUMN rag.prompt.collection_id IS 'NULL: collections that have no row of their own, and questions about several.';
COMMENT ON COLUMN rag.prompt.template IS 'The template as rag_set_prompt was given it.';
-- No policy: superusers alone read what no answer tells.
ALTER TABLE rag.prompt ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE FUNCTION rag_set_prompt(collection text, template jsonb) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_prompt_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_prompt(text, jsonb) IS
    'Superuser: what chat models are told for questions about a collection, or with NULL about all that have no template of their own. template: system, tone, language, examples ([{passages, question, answer}]); an empty one takes it back. Errors: 22023 no template, 42501, 42704 no such collection, 54000 too long.';
