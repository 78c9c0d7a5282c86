-- Who may do what: nobody anything, until rag_enable.

CREATE FUNCTION rag.require_superuser(what text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'permission denied for %', what
            USING ERRCODE = 'insufficient_privilege', HINT = 'Must be superuser.';
    END IF;
END $$;
COMMENT ON FUNCTION rag.require_superuser(text) IS 'Raises 42501 unless the current role is a superuser.';

-- Documents belong to names, rights to roles: keeps the two together when roles come, go and are renamed.
-- The triggers of rag.document are off meanwhile: names change, domains stay.
CREATE FUNCTION rag.adopt_principal(found_role regrole, principal text) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
DECLARE
    stale record;
BEGIN
    FOR stale IN SELECT * FROM (
        SELECT c.owner AS old_name, c.owner || '#' || c.owner_role::oid AS new_name, c.owner_role AS of_role
        FROM rag.collection c WHERE c.owner = principal AND c.owner_role <> found_role
        UNION
        SELECT d.owner, d.owner || '#' || d.owner_role::oid, d.owner_role
        FROM rag.domain d WHERE d.owner = principal AND d.owner_role <> found_role
        UNION
        SELECT r.owner, r.owner || '#' || r.owner_role::oid, r.owner_role
        FROM rag.metadata_rule r WHERE r.owner = principal AND r.owner_role <> found_role
        UNION
        SELECT r.owner, principal, r.owner_role
        FROM rag.metadata_rule r WHERE r.owner_role = found_role AND r.owner <> principal AND r.owner LIKE 'role:%'
        UNION
        SELECT c.owner, principal, c.owner_role
        FROM rag.collection c WHERE c.owner_role = found_role AND c.owner <> principal AND c.owner LIKE 'role:%'
        UNION
        SELECT d.owner, principal, d.owner_role
        FROM rag.domain d WHERE d.owner_role = found_role AND d.owner <> principal AND d.owner LIKE 'role:%'
        -- What is set apart makes room for what gets the name.
        ) names ORDER BY of_role = found_role
    LOOP
        -- Others' documents in his collections say so.
        UPDATE rag.document d SET collection = stale.new_name || '/' || c.name
        FROM rag.domain dm JOIN rag.collection c ON c.id = dm.collection_id
        WHERE dm.id = d.domain_id AND c.owner = stale.old_name AND c.owner_role = stale.of_role
          AND d.collection = stale.old_name || '/' || c.name;
        UPDATE rag.collection SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
        UPDATE rag.collection_grant SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
        UPDATE rag.document d SET owner = stale.new_name FROM rag.domain dm
        WHERE dm.id = d.domain_id AND dm.owner = stale.old_name AND dm.owner_role = stale.of_role;
        UPDATE rag.metadata_rule SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
        UPDATE rag.domain SET owner = stale.new_name WHERE owner = stale.old_name AND owner_role = stale.of_role;
    END LOOP;
    UPDATE rag.collection_grant g SET principal = adopt_principal.principal
    WHERE g.principal_role = found_role AND g.principal LIKE 'role:%' AND g.principal <> adopt_principal.principal;
    UPDATE rag.accepted_collection a SET principal = adopt_principal.principal
    WHERE a.principal_role = found_role AND a.principal LIKE 'role:%' AND a.principal <> adopt_principal.principal;
END $$;
COMMENT ON FUNCTION rag.adopt_principal(regrole, text) IS
    'Sets apart what belonged to another role of this name, and renames what belonged to this role under another name.';

CREATE FUNCTION rag.set_rights(role text, allowed boolean) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role regrole;
    grantee text := 'PUBLIC';
    command text := CASE WHEN allowed THEN 'GRANT' ELSE 'REVOKE' END;
    direction text := CASE WHEN allowed THEN 'TO' ELSE 'FROM' END;
    item record;
BEGIN
    PERFORM rag.require_superuser(CASE WHEN allowed THEN 'rag_enable' ELSE 'rag_disable' END);
    IF role IS NULL THEN
        RAISE EXCEPTION 'role must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF role <> 'public' THEN
        found_role := to_regrole(quote_ident(role));
        IF found_role IS NULL THEN
            RAISE EXCEPTION 'role "%" does not exist', left(role, 64) USING ERRCODE = 'undefined_object';
        END IF;
        grantee := quote_ident(role);
        IF allowed THEN
            PERFORM rag.adopt_principal(found_role, 'role:' || role);
        END IF;
    END IF;

    -- Not while another session grants, or a worker makes a partition of rag.embedding: both change the same rows
    -- of the catalogs.
    LOCK TABLE rag.space IN SHARE ROW EXCLUSIVE MODE;
    EXECUTE format('%s USAGE ON SCHEMA rag %s %s', command, direction, grantee);
    FOR item IN
        SELECT p.oid::regprocedure AS name
        FROM pg_depend d
        JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
        WHERE e.extname = 'rag_ext' AND p.prorettype <> 'trigger'::regtype
          AND p.proname <> ALL (ARRAY['rag_enable', 'rag_disable', 'rag_register_gateway', 'rag_unregister_gateway',
                                      'set_rights', 'adopt_principal', 'require_superuser', 'forget_documents', 'process_documents', 'watch_source', 'unwatch_source',
                                      'rag_add_policy', 'rag_drop_policy', 'rag_record_policy', 'rag_restore_policies',
                                      'policy_table', 'policy_statement', 'present_policies', 'policies_apart'])
    LOOP
        EXECUTE format('%s EXECUTE ON FUNCTION %s %s %s', command, item.name, direction, grantee);
    END LOOP;
    FOR item IN
        SELECT c.oid::regclass AS name
        FROM pg_depend d
        JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
        WHERE e.extname = 'rag_ext' AND c.relkind IN ('r', 'p', 'v')
          AND c.relname NOT IN ('gateway', 'embedding', 'space', 'added_policy', 'builtin_policy', 'merge_failure')
    LOOP
        EXECUTE format('%s SELECT ON %s %s %s', command, item.name, direction, grantee);
    END LOOP;
    -- By column: a privilege on the whole table is one to lock it, too.
    FOR item IN
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns, attrelid::regclass AS name
        FROM pg_attribute
        WHERE attrelid IN ('rag.document'::regclass, 'rag.document_in'::regclass) AND attnum > 0 AND NOT attisdropped
        GROUP BY attrelid
    LOOP
        EXECUTE format('%s INSERT (%s) ON %s %s %s', command, item.columns, item.name, direction, grantee);
        IF item.name = 'rag.document'::regclass THEN
            EXECUTE format('%s UPDATE (%s) ON %s %s %s', command, item.columns, item.name, direction, grantee);
        END IF;
    END LOOP;
    EXECUTE format('%s INSERT (id, name, owner, collection, key, kind, source, pattern, value, words, minimum, type, multiple, enabled, ordinal) ON rag.metadata_rule %s %s',
                   command, direction, grantee);
    EXECUTE format('%s UPDATE (name, collection, key, kind, source, pattern, value, words, minimum, type, multiple, enabled, ordinal) ON rag.metadata_rule %s %s',
                   command, direction, grantee);
    EXECUTE format('%s DELETE ON rag.metadata_rule, rag.document, rag.collection, rag.accepted_collection %s %s', command, direction, grantee);
END $$;
COMMENT ON FUNCTION rag.set_rights(text, boolean) IS 'What rag_enable and rag_disable do.';

DO $$
DECLARE
    item record;
BEGIN
    FOR item IN
        SELECT p.oid::regprocedure AS name
        FROM pg_depend d
        JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
        WHERE e.extname = 'rag_ext'
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', item.name);
    END LOOP;
END $$;

-- Who has missed it finds out here, and not by waiting for what never comes.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM string_to_table(current_setting('shared_preload_libraries'), ',') l (name)
                   WHERE btrim(l.name, ' "') ~ '(^|/)rag_ext(\.so)?$') THEN
        RAISE WARNING 'rag_ext is not preloaded: nothing can be ingested, searched or answered'
            USING HINT = 'Add rag_ext to shared_preload_libraries and restart the server.';
    END IF;
END $$;
