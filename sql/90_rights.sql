-- Who may do what: nobody anything, until rag_enable.

-- As for the other views.
SET LOCAL search_path = pg_catalog, pg_temp;

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
CREATE FUNCTION rag.set_apart(collection_name text, owner_name text, document_uri text) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
BEGIN
    UPDATE rag.document d SET owner = owner_name || '#' || dm.owner_role::oid FROM rag.domain dm
    WHERE d.collection = collection_name AND d.owner = owner_name AND d.uri = document_uri AND dm.id = d.domain_id;
END $$;
COMMENT ON FUNCTION rag.set_apart(text, text, text) IS
    'Renames the owner of a document that belongs to another role of that name, such as one that was dropped: its uri is free then.';

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
        -- Others' documents in their collections say so.
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
    -- What was said again under the new name counts.
    DELETE FROM rag.feedback f USING rag.feedback o
    WHERE f.owner_role = found_role AND f.owner LIKE 'role:%' AND f.owner <> adopt_principal.principal
      AND o.owner_role = found_role AND o.owner LIKE 'role:%' AND o.owner <> f.owner
      AND (o.owner = adopt_principal.principal OR o.owner > f.owner)
      AND o.domain_id = f.domain_id AND o.document_id = f.document_id AND o.chunk_id = f.chunk_id
      AND o.query_sha256 = f.query_sha256;
    UPDATE rag.feedback f SET owner = adopt_principal.principal
    WHERE f.owner_role = found_role AND f.owner LIKE 'role:%' AND f.owner <> adopt_principal.principal;
    UPDATE rag.query_log l SET owner = adopt_principal.principal
    WHERE l.owner_role = found_role AND l.owner LIKE 'role:%' AND l.owner <> adopt_principal.principal;
    UPDATE rag.answer_log l SET owner = adopt_principal.principal
    WHERE l.owner_role = found_role AND l.owner LIKE 'role:%' AND l.owner <> adopt_principal.principal;
END $$;
COMMENT ON FUNCTION rag.adopt_principal(regrole, text) IS
    'Sets apart what belonged to another role of this name, and renames what belonged to this role under another name.';

-- Privileges that rag_enable knows of, as GRANT and REVOKE name them.
CREATE VIEW rag.allowed_privilege WITH (security_invoker = true) AS
    WITH member AS (
        SELECT m.classid, m.objid FROM pg_catalog.pg_depend m
        JOIN pg_catalog.pg_extension e ON m.refclassid = 'pg_catalog.pg_extension'::regclass AND m.refobjid = e.oid
        WHERE e.extname = 'rag_ext' AND m.deptype = 'e'
    )
    SELECT a.access, a.object, 'EXECUTE ON FUNCTION ' || p.oid::regprocedure AS privilege
    FROM rag.allowed a
    JOIN pg_catalog.pg_proc p ON p.proname = a.object
    JOIN member m ON m.classid = 'pg_catalog.pg_proc'::regclass AND m.objid = p.oid
    WHERE a.privilege = 'EXECUTE'
    UNION ALL
    SELECT a.access, a.object,
           a.privilege || CASE WHEN a.columns IS NULL THEN '' ELSE ' (' || c.columns || ')' END || ' ON ' || r.oid::regclass
    FROM rag.allowed a
    JOIN pg_catalog.pg_class r ON r.relname = a.object
    JOIN member m ON m.classid = 'pg_catalog.pg_class'::regclass AND m.objid = r.oid
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(t.attname), ', ' ORDER BY t.attnum) AS columns
        FROM pg_catalog.pg_attribute t
        WHERE t.attrelid = r.oid AND t.attnum > 0 AND NOT t.attisdropped
          AND (a.columns = '{*}' OR t.attname = ANY (a.columns))
    ) c
    WHERE a.privilege <> 'EXECUTE';
COMMENT ON VIEW rag.allowed_privilege IS 'rag.allowed in the words of GRANT, for each function and relation of the extension.';

-- NULL is no access.
CREATE FUNCTION rag.set_rights(role text, access text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role regrole;
    grantee text := 'PUBLIC';
    item record;
BEGIN
    PERFORM rag.require_superuser(CASE WHEN access IS NULL THEN 'rag_disable' ELSE 'rag_enable' END);
    IF role IS NULL THEN
        RAISE EXCEPTION 'role must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF access NOT IN ('read', 'write') THEN
        RAISE EXCEPTION 'unknown access "%"', left(access, 64)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'read or write.';
    END IF;
    IF role <> 'public' THEN
        found_role := to_regrole(quote_ident(role));
        IF found_role IS NULL THEN
            RAISE EXCEPTION 'role "%" does not exist', left(role, 64) USING ERRCODE = 'undefined_object';
        END IF;
        grantee := quote_ident(role);
        IF access IS NOT NULL THEN
            PERFORM rag.adopt_principal(found_role, 'role:' || role);
        END IF;
    END IF;

    -- Not while another session grants, or a worker makes a partition of rag.embedding: both change the same rows
    -- of the catalogs.
    LOCK TABLE rag.vector_space IN SHARE ROW EXCLUSIVE MODE;
    FOR item IN
        SELECT p.privilege, coalesce(set_rights.access IN ('write', p.access), false) AS is_granted
        FROM rag.allowed_privilege p
        UNION ALL
        SELECT 'USAGE ON SCHEMA rag', set_rights.access IS NOT NULL
    LOOP
        EXECUTE format(CASE WHEN item.is_granted THEN 'GRANT %s TO %s' ELSE 'REVOKE %s FROM %s' END,
                       item.privilege, grantee);
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.set_rights(text, text) IS 'What rag_enable and rag_disable do.';

-- The mark of a role that is enabled: it may execute rag.principals().
CREATE FUNCTION rag.renew_rights() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    enabled jsonb;
    item record;
BEGIN
    SELECT jsonb_object_agg(CASE WHEN u.grantee = 0 THEN 'public' ELSE r.rolname END,
                            CASE WHEN EXISTS (SELECT FROM pg_attribute c, aclexplode(c.attacl) g
                                              WHERE c.attrelid = 'rag.document'::regclass AND g.grantee = u.grantee
                                                AND g.privilege_type = 'INSERT')
                                 THEN 'write' ELSE 'read' END)
    INTO enabled
    FROM pg_proc p CROSS JOIN aclexplode(p.proacl) u LEFT JOIN pg_roles r ON r.oid = u.grantee
    WHERE p.oid = 'rag.principals()'::regprocedure AND u.grantee <> p.proowner AND (u.grantee = 0 OR r.oid IS NOT NULL);
    -- As set_rights does it, and before any right is changed: who waits for it holds nothing that another one waits for.
    LOCK TABLE rag.vector_space IN SHARE ROW EXCLUSIVE MODE;
    -- What everybody may execute by default.
    FOR item IN
        SELECT d.objid::regprocedure AS name FROM pg_depend d
        JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        WHERE e.extname = 'rag_ext' AND d.classid = 'pg_proc'::regclass
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', item.name);
    END LOOP;
    FOR item IN SELECT * FROM jsonb_each_text(enabled) LOOP
        PERFORM rag.set_rights(item.key, item.value);
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.renew_rights() IS
    'Gives each role that is enabled what its access has now, and nobody else anything. Creation ends with it, and each ALTER EXTENSION rag_ext is followed by it.';

-- After the command, and not by the upgrade's script, nor by a command in it: what an extension's own script grants, pg_dump
-- leaves out.
CREATE FUNCTION rag.extension_altered() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_event_trigger_ddl_commands() c
                   JOIN pg_extension e ON c.classid = 'pg_extension'::regclass AND c.objid = e.oid
                   WHERE e.extname = 'rag_ext' AND NOT c.in_extension) THEN
        RETURN;
    END IF;
    -- pg_upgrade makes the members one by one, and their rows come later.
    IF EXISTS (SELECT FROM rag.allowed) THEN
        PERFORM rag.renew_rights();
        PERFORM rag.wake_workers();
    END IF;
END $$;
COMMENT ON FUNCTION rag.extension_altered() IS 'Renews rights after an upgrade, and has workers take up what was queued meanwhile.';
CREATE EVENT TRIGGER rag_extension_altered ON ddl_command_end WHEN TAG IN ('ALTER EXTENSION')
    EXECUTE FUNCTION rag.extension_altered();
COMMENT ON EVENT TRIGGER rag_extension_altered IS 'Renews rights after an upgrade, and has workers take up what was queued meanwhile.';

SELECT rag.renew_rights();

-- Who has missed it finds out here, and not by waiting for what never comes.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM string_to_table(current_setting('shared_preload_libraries'), ',') l (name)
                   WHERE btrim(l.name, ' "') ~ '(^|/)rag_ext(\.so)?$') THEN
        RAISE WARNING 'rag_ext is not preloaded: nothing can be ingested, searched or answered'
            USING HINT = 'Add rag_ext to shared_preload_libraries and restart the server.';
    END IF;
END $$;
