-- Who sees what became of an attached table: whoever may read the source row now, under the table's own
-- policies and column privileges. Restrictive policies, on top of those for all domains, that cost an ordinary
-- row one comparison with a constant.

CREATE FUNCTION rag.source_readable(collection_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'source_readable_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.source_readable(uuid) IS
    'Whether the caller owns this attached collection, or has SELECT on each column of its table that it uses.';

CREATE FUNCTION rag.attached_source(collection_id uuid) RETURNS regclass
    AS 'MODULE_PATHNAME', 'attached_source_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.attached_source(uuid) IS
    'The table behind this attached collection; NULL unless rag.source_readable.';

CREATE FUNCTION rag.attached_domain_readable(collection_id uuid, owner text, owner_role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'attached_domain_readable_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.attached_domain_readable(uuid, text, regrole) IS
    'Whether the caller may read the source of this attached collection and, where its rows have owners, acts as this one.';

CREATE FUNCTION rag.row_visible(domain_id uuid, document_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'row_visible_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION rag.row_visible(uuid, uuid) IS
    'Whether the caller sees, now and under its table''s own policies, the source row that this document was made of, unchanged. Policies of another''s table run only for a collection that the caller has accepted, or names in the call.';

CREATE FUNCTION rag.chunk_visible(domain_id uuid, chunk_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'chunk_visible_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION rag.chunk_visible(uuid, uuid) IS
    'rag.row_visible for an embedding; true for all of a table that the caller reads without row-level security.';

ALTER TABLE rag.attachment ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
-- Positions, counts and errors are about all rows, so they are the owner's alone.
CREATE POLICY attachment_read ON rag.attachment FOR SELECT USING (EXISTS (
    SELECT FROM rag.collection c
    WHERE c.id = attachment.collection_id
      AND c.owner = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(c.owner, c.owner_role)));

ALTER TABLE rag.attached_row ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY attached_row_read ON rag.attached_row FOR SELECT USING (rag.row_visible(domain_id, document_id));

-- No policy: workers and triggers alone.
ALTER TABLE rag.attached_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY collection_read_attached ON rag.collection FOR SELECT
    USING (id >= 'ffffffff-ffff-8000-8000-000000000000');
CREATE POLICY collection_attached ON rag.collection AS RESTRICTIVE FOR SELECT
    USING (id < 'ffffffff-ffff-8000-8000-000000000000' OR rag.source_readable(id));
CREATE POLICY domain_read_attached ON rag.domain FOR SELECT
    USING (id >= 'ffffffff-ffff-8000-8000-000000000000');
CREATE POLICY domain_attached ON rag.domain AS RESTRICTIVE FOR SELECT
    USING (id < 'ffffffff-ffff-8000-8000-000000000000'
           OR rag.attached_domain_readable(collection_id, owner, owner_role));

-- Documents of attached tables change with their rows, and not otherwise.
CREATE POLICY document_insert_attached ON rag.document AS RESTRICTIVE FOR INSERT
    WITH CHECK (domain_id < 'ffffffff-ffff-8000-8000-000000000000');
CREATE POLICY document_update_attached ON rag.document AS RESTRICTIVE FOR UPDATE
    USING (domain_id < 'ffffffff-ffff-8000-8000-000000000000');
CREATE POLICY document_delete_attached ON rag.document AS RESTRICTIVE FOR DELETE
    USING (domain_id < 'ffffffff-ffff-8000-8000-000000000000');

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['document', 'metadata_value', 'section', 'chunk', 'job'] LOOP
        EXECUTE format('CREATE POLICY %I ON rag.%I AS RESTRICTIVE FOR SELECT USING (domain_id < ''ffffffff-ffff-8000-8000-000000000000'' OR rag.row_visible(domain_id, %I))',
                       t || '_attached_read', t, CASE t WHEN 'document' THEN 'id' ELSE 'document_id' END);
    END LOOP;
    -- Dictionaries and counts are about all rows: read only by functions that have made sure.
    FOREACH t IN ARRAY ARRAY['segment', 'tombstone'] LOOP
        EXECUTE format('CREATE POLICY %I ON rag.%I AS RESTRICTIVE FOR SELECT USING (domain_id < ''ffffffff-ffff-8000-8000-000000000000'')',
                       t || '_attached', t);
    END LOOP;
END $$;
CREATE POLICY embedding_attached ON rag.embedding AS RESTRICTIVE FOR SELECT
    USING (domain_id < 'ffffffff-ffff-8000-8000-000000000000' OR rag.chunk_visible(domain_id, chunk_id));
