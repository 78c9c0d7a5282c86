-- Attaching tables: the functions that people call, and the triggers that tell of changes.

CREATE FUNCTION rag_attach(
    source regclass, collection text DEFAULT NULL, content text[] DEFAULT NULL, title text DEFAULT NULL,
    uri text DEFAULT NULL, metadata text[] DEFAULT NULL, options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_attach_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_attach(regclass, text, text[], text, text, text[], jsonb) IS
    'Makes each row of a table of the caller''s a document of a collection and keeps the two in step; a chunk is visible to whoever may read its row. options: file (a bytea column), labels ({"column": "heading"}), owner (an SQL expression over the row), media_type, language, model, chunking, graph. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_attach');

CREATE FUNCTION rag_detach(source regclass, collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_detach_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_detach(regclass, text) IS
    'Ends what rag_attach began: deletes the collection (NULL: each that this table is attached to) with its documents, leaves the table as it is, and returns how many collections that were. For the owner of the table. Errors: 42501, 42704 not attached.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_detach');

-- Trusts the table that fires it, and nothing else.
CREATE FUNCTION rag.attached_change() RETURNS trigger
    AS 'MODULE_PATHNAME', 'attached_change_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.attached_change() IS 'Notes the keys of the rows that a statement has changed in an attached table.';

CREATE FUNCTION rag.watch_source(source regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part regclass;
    event record;
BEGIN
    FOR part IN
        SELECT source UNION
        SELECT t.relid FROM pg_partition_tree(source) t JOIN pg_class c ON c.oid = t.relid WHERE c.relkind IN ('r', 'p')
    LOOP
        FOR event IN
            SELECT * FROM (VALUES
                ('rag_attached_insert', 'INSERT', 'REFERENCING NEW TABLE AS new'),
                ('rag_attached_update', 'UPDATE', 'REFERENCING OLD TABLE AS old NEW TABLE AS new'),
                ('rag_attached_delete', 'DELETE', 'REFERENCING OLD TABLE AS old'),
                ('rag_attached_truncate', 'TRUNCATE', '')) e (name, command, tables)
            WHERE NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = part AND t.tgname = e.name)
        LOOP
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s FOR EACH STATEMENT EXECUTE FUNCTION rag.attached_change()',
                           event.name, event.command, part, event.tables);
            -- DROP EXTENSION takes them along.
            EXECUTE format('ALTER TRIGGER %I ON %s DEPENDS ON EXTENSION rag_ext', event.name, part);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.watch_source(regclass) IS 'Puts the triggers of an attached table on it and on its partitions.';

CREATE FUNCTION rag.unwatch_source(source regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT t.tgname AS name, t.tgrelid::regclass AS part FROM pg_trigger t
        WHERE t.tgfoid = 'rag.attached_change()'::regprocedure
          AND (t.tgrelid = source OR t.tgrelid IN (SELECT p.relid FROM pg_partition_tree(source) p))
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', found.name, found.part);
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.unwatch_source(regclass) IS 'Takes the triggers of an attached table away.';

-- Every DROP in the database comes here. One that takes no trigger of ours along touches no table of ours, and one
-- that does waits for nobody for long: what cannot be done at once is left to the workers.
CREATE FUNCTION rag.source_dropped() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    attached uuid[];
BEGIN
    IF NOT EXISTS (SELECT FROM pg_event_trigger_dropped_objects() o
                   WHERE o.object_type = 'trigger' AND o.address_names[3] LIKE 'rag\_attached\_%') THEN
        RETURN;
    END IF;
    PERFORM rag.wake_workers();
    SELECT array_agg(a.collection_id) INTO attached
    FROM rag.attachment a JOIN pg_event_trigger_dropped_objects() o ON a.source = o.objid
    WHERE o.classid = 'pg_class'::regclass AND o.objsubid = 0;
    -- As by rag_detach: the name is free at once, and workers clear the rows away.
    DELETE FROM rag.collection c WHERE c.id = ANY (attached);
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN;
END $$;
COMMENT ON FUNCTION rag.source_dropped() IS 'Lets go of attached tables that are dropped.';
CREATE EVENT TRIGGER rag_source_dropped ON sql_drop EXECUTE FUNCTION rag.source_dropped();
COMMENT ON EVENT TRIGGER rag_source_dropped IS 'Lets go of attached tables that are dropped.';

CREATE FUNCTION rag.source_altered() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attached record;
BEGIN
    FOR attached IN
        SELECT DISTINCT a.collection_id, a.source
        FROM pg_event_trigger_ddl_commands() c
        JOIN rag.attachment a
            ON a.source = c.objid OR a.source IN (SELECT p.relid FROM pg_partition_ancestors(c.objid) p)
        WHERE c.classid = 'pg_class'::regclass
    LOOP
        -- Partitions come and go, columns are renamed, the table may have been rewritten. A table without our
        -- triggers is being restored, and will get them back.
        IF (SELECT count(*) = 4 FROM pg_trigger t
            WHERE t.tgrelid = attached.source AND t.tgfoid = 'rag.attached_change()'::regprocedure) THEN
            PERFORM rag.watch_source(attached.source);
        END IF;
        INSERT INTO rag.attached_change (collection_id) VALUES (attached.collection_id);
        PERFORM rag.wake_workers();
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.source_altered() IS 'Has a worker look at attached tables that are altered, and at their new partitions.';
CREATE EVENT TRIGGER rag_source_altered ON ddl_command_end WHEN TAG IN ('ALTER TABLE', 'CREATE TABLE')
    EXECUTE FUNCTION rag.source_altered();
COMMENT ON EVENT TRIGGER rag_source_altered IS 'Has a worker look at attached tables that are altered, and at their new partitions.';
