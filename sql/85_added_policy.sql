-- Policies that an administrator adds to the extension's tables. pg_dump leaves the policies of an extension's tables
-- out. So they are recorded in a table that it takes along, from which they are made again; and where the records and
-- the catalog are apart, searches refuse: a row that is to be hidden is never shown because its policy was lost.

CREATE TABLE rag.added_policy (
    table_name text NOT NULL,
    name text NOT NULL,
    permissive boolean NOT NULL,
    command text NOT NULL CHECK (command IN ('all', 'select', 'insert', 'update', 'delete')),
    roles text[] NOT NULL,
    using_expression text,
    check_expression text,
    PRIMARY KEY (table_name, name)
);
COMMENT ON TABLE rag.added_policy IS
    'Policies that an administrator has added to tables of rag_ext, by rag_add_policy or rag_record_policy. A dump takes them along here, and a restore makes them again.';
COMMENT ON COLUMN rag.added_policy.table_name IS 'Table of the schema rag.';
COMMENT ON COLUMN rag.added_policy.roles IS 'Names of the roles that it is for; public: all. In the order of the names.';
COMMENT ON COLUMN rag.added_policy.using_expression IS 'As the server prints it, with all names in full.';

CREATE TABLE rag.builtin_policy (
    table_name text NOT NULL,
    name text NOT NULL,
    permissive boolean NOT NULL,
    command text NOT NULL,
    PRIMARY KEY (table_name, name)
);
COMMENT ON TABLE rag.builtin_policy IS 'Policies that came with the extension.';

-- No policy: superusers alone.
ALTER TABLE rag.added_policy ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rag.builtin_policy ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT pg_extension_config_dump('rag.added_policy', '');

-- To print an expression opens the tables that it names, and waits for whoever holds one. Searches come here, so tables
-- without added policies must not be opened.
CREATE FUNCTION rag.present_policies()
    RETURNS TABLE (table_name text, name text, permissive boolean, command text, roles text[], using_expression text,
                   check_expression text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.relname::text, p.polname::text, p.polpermissive,
           CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN 'delete'
                ELSE 'all' END,
           ARRAY(SELECT CASE r WHEN 0 THEN 'public' ELSE pg_get_userbyid(r)::text END
                 FROM unnest(p.polroles) r ORDER BY 1),
           CASE WHEN b.name IS NULL THEN pg_get_expr(p.polqual, p.polrelid) END,
           CASE WHEN b.name IS NULL THEN pg_get_expr(p.polwithcheck, p.polrelid) END
    FROM pg_policy p
    JOIN pg_class c ON c.oid = p.polrelid
    LEFT JOIN rag.builtin_policy b ON b.table_name = c.relname::text AND b.name = p.polname::text
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
         AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid
    WHERE e.extname = 'rag_ext'
$$;
COMMENT ON FUNCTION rag.present_policies() IS
    'The policies that tables of the extension have, with all names in full. Expressions are those of added policies alone.';

CREATE FUNCTION rag.policies_apart()
    RETURNS TABLE (table_name text, name text, is_present boolean, is_recorded boolean, is_builtin boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH present AS MATERIALIZED (SELECT * FROM rag.present_policies())
    SELECT coalesce(a.table_name, p.table_name), coalesce(a.name, p.name), p.name IS NOT NULL, a.name IS NOT NULL, false
    FROM rag.added_policy a
    FULL JOIN (
        SELECT * FROM present p
        WHERE NOT EXISTS (SELECT FROM rag.builtin_policy b WHERE (b.table_name, b.name) = (p.table_name, p.name))) p
        ON a.table_name = p.table_name AND a.name = p.name
    WHERE (a.permissive, a.command, a.roles, a.using_expression, a.check_expression)
          IS DISTINCT FROM (p.permissive, p.command, p.roles, p.using_expression, p.check_expression)
    UNION ALL
    SELECT b.table_name, b.name, false, false, true FROM rag.builtin_policy b
    WHERE NOT EXISTS (
        SELECT FROM present p
        WHERE (p.table_name, p.name, p.permissive, p.command) = (b.table_name, b.name, b.permissive, b.command))
    ORDER BY 1, 2
$$;
COMMENT ON FUNCTION rag.policies_apart() IS
    'Policies of the extension''s tables that are not as rag.added_policy and rag.builtin_policy say. While there is one, searches refuse with 55000.';

CREATE FUNCTION rag.policy_statement(policy rag.added_policy) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE POLICY %I ON rag.%I AS %s FOR %s TO %s', policy.name, policy.table_name,
                  CASE WHEN policy.permissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END, upper(policy.command),
                  (SELECT string_agg(CASE r WHEN 'public' THEN 'PUBLIC' ELSE quote_ident(r) END, ', ')
                   FROM unnest(policy.roles) r))
           || coalesce(' USING (' || policy.using_expression || ')', '')
           || coalesce(' WITH CHECK (' || policy.check_expression || ')', '')
$$;
COMMENT ON FUNCTION rag.policy_statement(rag.added_policy) IS 'The statement that makes a policy.';

-- A restore inserts rows whose policies are not there yet. One that cannot be made, for want of a role perhaps, must
-- not take the others along: its row stays, and while it is alone searches refuse.
CREATE FUNCTION rag.added_policy_before() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made record;
BEGIN
    IF EXISTS (SELECT FROM pg_policy p
               WHERE p.polrelid = to_regclass('rag.' || quote_ident(NEW.table_name)) AND p.polname = NEW.name) THEN
        RETURN NEW;
    END IF;
    BEGIN
        EXECUTE rag.policy_statement(NEW);
        SELECT * INTO STRICT made FROM rag.present_policies() p
        WHERE p.table_name = NEW.table_name AND p.name = NEW.name;
        -- Another version of Postgres may print the same in another way.
        NEW.using_expression := made.using_expression;
        NEW.check_expression := made.check_expression;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'policy "%" of rag.% cannot be made: %', left(NEW.name, 64), left(NEW.table_name, 64), SQLERRM
            USING ERRCODE = SQLSTATE,
                  HINT = 'Searches refuse until it is there: mend the cause, then SELECT rag_restore_policies();';
    END;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rag.added_policy_before() IS 'Makes a recorded policy that the table does not have, as after a restore.';
CREATE TRIGGER added_policy_before BEFORE INSERT ON rag.added_policy
    FOR EACH ROW EXECUTE FUNCTION rag.added_policy_before();

CREATE FUNCTION rag.added_policy_changed() RETURNS trigger
    AS 'MODULE_PATHNAME', 'added_policy_changed_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.added_policy_changed() IS 'Has every session compare policies with their records again.';
CREATE TRIGGER added_policy_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON rag.added_policy
    FOR EACH STATEMENT EXECUTE FUNCTION rag.added_policy_changed();
-- On a logical subscriber as well.
ALTER TABLE rag.added_policy
    ENABLE ALWAYS TRIGGER added_policy_before, ENABLE ALWAYS TRIGGER added_policy_changed;

CREATE FUNCTION rag.policy_table(relation regclass, what text) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found text;
BEGIN
    PERFORM rag.require_superuser(what);
    SELECT c.relname INTO found
    FROM pg_class c
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'rag_ext'
    WHERE c.oid = relation AND c.relrowsecurity AND c.relname NOT IN ('added_policy', 'builtin_policy');
    IF found IS NULL THEN
        RAISE EXCEPTION '% is no table of rag_ext with policies', coalesce(left(relation::text, 64), 'null')
            USING ERRCODE = 'wrong_object_type', HINT = 'Name a table such as rag.document.';
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION rag.policy_table(regclass, text) IS
    'Name of a table of the extension that may have added policies: 42809 for another one, 42501 for who is no superuser.';

CREATE FUNCTION rag_record_policy("table" regclass, name text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named constant text := rag.policy_table("table", 'rag_record_policy');
BEGIN
    IF EXISTS (SELECT FROM rag.builtin_policy b WHERE b.table_name = named AND b.name = rag_record_policy.name) THEN
        RAISE EXCEPTION 'policy "%" of rag.% came with the extension', left(name, 64), named
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM rag.added_policy a WHERE a.table_name = named AND a.name = rag_record_policy.name;
    INSERT INTO rag.added_policy
    SELECT p.* FROM rag.present_policies() p WHERE p.table_name = named AND p.name = rag_record_policy.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'policy "%" of rag.% does not exist', left(name, 64), named USING ERRCODE = 'undefined_object';
    END IF;
END $$;
COMMENT ON FUNCTION rag_record_policy(regclass, text) IS
    'Superuser: records a policy that CREATE POLICY or ALTER POLICY has made on a table of rag_ext, as it is now, so that a dump takes it along and searches no longer refuse. Errors: 42501, 42704 no such policy, 42809 no table of rag_ext, 22023 a policy of the extension itself.';

-- The expressions are read under the caller's search path.
CREATE FUNCTION rag_add_policy(
    "table" regclass, name text, using_expression text DEFAULT NULL, check_expression text DEFAULT NULL,
    command text DEFAULT 'all', permissive boolean DEFAULT false, roles text[] DEFAULT '{public}') RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    named constant text := rag.policy_table("table", 'rag_add_policy');
BEGIN
    IF pg_catalog.num_nulls(name, command, permissive, roles) > 0 THEN
        RAISE EXCEPTION 'name, command, permissive and roles must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF pg_catalog.lower(command) NOT IN ('all', 'select', 'insert', 'update', 'delete') THEN
        RAISE EXCEPTION 'command must be all, select, insert, update or delete, not "%"', pg_catalog."left"(command, 64)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF pg_catalog.cardinality(roles) = 0 THEN
        RAISE EXCEPTION 'roles must name at least one role, or public' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE rag.policy_statement(
        ROW(named, name, permissive, pg_catalog.lower(command), roles, using_expression, check_expression)::rag.added_policy);
    PERFORM @extschema@.rag_record_policy("table", name);
END $$;
COMMENT ON FUNCTION rag_add_policy(regclass, text, text, text, text, boolean, text[]) IS
    'Superuser: adds a policy to a table of rag_ext, as CREATE POLICY does, and records it, so that a dump takes it along. A policy made by CREATE POLICY alone is lost in a dump, so while there is one searches refuse with 55000. See docs/reference.md.';

CREATE FUNCTION rag_drop_policy("table" regclass, name text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named constant text := rag.policy_table("table", 'rag_drop_policy');
    is_present boolean;
    is_recorded boolean;
BEGIN
    IF EXISTS (SELECT FROM rag.builtin_policy b WHERE b.table_name = named AND b.name = rag_drop_policy.name) THEN
        RAISE EXCEPTION 'policy "%" of rag.% came with the extension', left(name, 64), named
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    is_present := EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = "table" AND p.polname = rag_drop_policy.name);
    IF is_present THEN
        EXECUTE format('DROP POLICY %I ON rag.%I', name, named);
    END IF;
    DELETE FROM rag.added_policy a WHERE a.table_name = named AND a.name = rag_drop_policy.name;
    is_recorded := FOUND;
    IF NOT is_present AND NOT is_recorded THEN
        RAISE EXCEPTION 'policy "%" of rag.% does not exist', left(name, 64), named USING ERRCODE = 'undefined_object';
    END IF;
END $$;
COMMENT ON FUNCTION rag_drop_policy(regclass, text) IS
    'Superuser: drops a policy that was added to a table of rag_ext, and its record. Errors: 42501, 42704 no such policy, 42809 no table of rag_ext, 22023 a policy of the extension itself.';

CREATE FUNCTION rag_restore_policies() RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    policy rag.added_policy;
    made bigint := 0;
BEGIN
    PERFORM rag.require_superuser('rag_restore_policies');
    FOR policy IN
        SELECT a.* FROM rag.added_policy a JOIN rag.policies_apart() p USING (table_name, name) ORDER BY a.table_name, a.name
    LOOP
        IF EXISTS (SELECT FROM rag.present_policies() p WHERE p.table_name = policy.table_name AND p.name = policy.name) THEN
            EXECUTE format('DROP POLICY %I ON rag.%I', policy.name, policy.table_name);
        END IF;
        EXECUTE rag.policy_statement(policy);
        PERFORM @extschema@.rag_record_policy(to_regclass('rag.' || quote_ident(policy.table_name)), policy.name);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
COMMENT ON FUNCTION rag_restore_policies() IS
    'Superuser: makes the policies of rag.added_policy that tables do not have, or have in another form, and returns how many. A restore does so by itself; where a role or function was missing then, call it when that is there.';

INSERT INTO rag.builtin_policy
SELECT p.table_name, p.name, p.permissive, p.command FROM rag.present_policies() p;
