-- What sessions keep of the tables that rights are read from, and of acronyms, is found anew after a write that concerns them. The triggers
-- fire in every session, also in one that replicates, and before the row is there.

CREATE FUNCTION rag.note_write() RETURNS trigger
    AS 'MODULE_PATHNAME', 'note_write_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.note_write() IS 'Notes in shared memory that this transaction writes rows about what stands in the columns that are its arguments; without arguments: about anything.';

CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.collection
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('id', 'owner');
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.domain
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('collection_id', 'owner');
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.collection_grant
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('principal');
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.accepted_collection
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('principal');
-- Whoever may see something of an attached table keeps nothing; others must learn that there is one.
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OF collection_id, source OR DELETE ON rag.attachment
    FOR EACH ROW EXECUTE FUNCTION rag.note_write();
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['collection', 'domain', 'collection_grant', 'accepted_collection', 'attachment'] LOOP
        EXECUTE format('CREATE TRIGGER note_truncate BEFORE TRUNCATE ON rag.%I FOR EACH STATEMENT EXECUTE FUNCTION rag.note_write()', t);
        EXECUTE format('ALTER TABLE rag.%I ENABLE ALWAYS TRIGGER note_write, ENABLE ALWAYS TRIGGER note_truncate', t);
    END LOOP;
END $$;
