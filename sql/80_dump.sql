-- pg_dump takes the rows of these tables along. Partitions of rag.embedding are ordinary tables, made when a
-- model is first used, and are dumped as such.

SELECT pg_extension_config_dump('rag.collection', '');
SELECT pg_extension_config_dump('rag.domain', '');
SELECT pg_extension_config_dump('rag.collection_grant', '');
SELECT pg_extension_config_dump('rag.accepted_collection', '');
SELECT pg_extension_config_dump('rag.gateway', '');
SELECT pg_extension_config_dump('rag.document', '');
SELECT pg_extension_config_dump('rag.metadata_value', '');
SELECT pg_extension_config_dump('rag.metadata_rule', 'WHERE NOT builtin');
SELECT pg_extension_config_dump('rag.acronym', '');
SELECT pg_extension_config_dump('rag.prompt', '');
SELECT pg_extension_config_dump('rag.mined_acronym', '');
SELECT pg_extension_config_dump('rag.section', '');
SELECT pg_extension_config_dump('rag.chunk', '');
SELECT pg_extension_config_dump('rag.vector_space', '');
SELECT pg_extension_config_dump('rag.segment', '');
SELECT pg_extension_config_dump('rag.deletion_count', '');
SELECT pg_extension_config_dump('rag.job', '');
SELECT pg_extension_config_dump('rag.attachment', '');
SELECT pg_extension_config_dump('rag.attached_row', '');
SELECT pg_extension_config_dump('rag.attached_change', '');
SELECT pg_extension_config_dump('rag.model_change', '');
SELECT pg_extension_config_dump('rag.entity_mention', '');
SELECT pg_extension_config_dump('rag.entity_relation', '');
SELECT pg_extension_config_dump('rag.document_link', '');
SELECT pg_extension_config_dump('rag.graph_job', '');
-- Not of a role that is gone: its number may be another's where the dump is restored.
SELECT pg_extension_config_dump('rag.log_reader', 'WHERE role::oid IN (SELECT r.oid FROM pg_catalog.pg_roles r)');

-- Foreign keys of an extension's tables are there before its rows, and pg_restore with several jobs loads tables in any
-- order. What it loads was whole when it was dumped, so it is not checked again row by row. Nothing but pg_restore is
-- meant: not psql, which loads tables in the order of their keys, and not a superuser's function that somebody else
-- calls. A SET clause would end the setting with the function.
CREATE FUNCTION rag.restore_unchecked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT pg_catalog.bool_and(r.rolsuper) FROM pg_catalog.pg_roles r
        WHERE r.rolname OPERATOR(pg_catalog.=) session_user OR r.rolname OPERATOR(pg_catalog.=) current_user) THEN
        PERFORM pg_catalog.set_config('session_replication_role', 'replica', true);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.restore_unchecked() IS
    'Lets pg_restore, run by a superuser, load the extension''s tables in any order: without checks of foreign keys, and without triggers, until its transaction ends.';
DO $$
DECLARE
    child regclass;
BEGIN
    FOR child IN
        SELECT DISTINCT k.conrelid::regclass FROM pg_constraint k
        WHERE k.contype = 'f' AND k.connamespace = 'rag'::regnamespace
    LOOP
        EXECUTE format('CREATE TRIGGER restore_unchecked BEFORE INSERT ON %s FOR EACH STATEMENT
                        WHEN (current_setting(''application_name'') = ''pg_restore'')
                        EXECUTE FUNCTION rag.restore_unchecked()', child);
    END LOOP;
END $$;

-- Scripts of pg_dump switch row security off, and hardly anybody else who creates the extension does. Until all of a dump is
-- there, workers would take vectors for stray ones whose chunks are missing, and make what the dump brings along.
CREATE UNLOGGED TABLE rag.restore (
    pid integer PRIMARY KEY,
    backend_start timestamptz NOT NULL
);
COMMENT ON TABLE rag.restore IS 'The session in which a script of pg_dump has created the extension, until a worker finds that the restore is over. Not dumped.';
-- No policy: workers and superusers.
ALTER TABLE rag.restore ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO rag.restore
    SELECT a.pid, a.backend_start FROM pg_stat_get_activity(pg_backend_pid()) a WHERE current_setting('row_security') = 'off';
