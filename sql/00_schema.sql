-- The schema, and the functions that say who the caller is.
--
-- Everything that PUBLIC would get by default is taken back at the end (90_rights.sql): a role uses rag_ext
-- after a superuser has said rag_enable('role').

DO $$
BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'rag_ext needs a database with encoding UTF8, not %', getdatabaseencoding()
            USING ERRCODE = 'feature_not_supported',
                  DETAIL = 'Documents are kept, cut and counted in characters of Unicode.',
                  HINT = 'CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0 makes one.';
    END IF;
END $$;

CREATE SCHEMA rag;
COMMENT ON SCHEMA rag IS 'Tables and views of rag_ext: documents, chunks, keyword segments, embeddings and jobs.';

-- Beside each declaration stands what rag_enable grants of it. What is not named here is nobody's.
CREATE TABLE rag.allowed (
    access text NOT NULL CHECK (access IN ('read', 'write')),
    privilege text NOT NULL,
    object name NOT NULL,
    columns name[],
    PRIMARY KEY (object, privilege)
);
COMMENT ON TABLE rag.allowed IS 'What rag_enable grants: privileges on functions (EXECUTE, all of the name) and relations of the extension.';
COMMENT ON COLUMN rag.allowed.access IS 'From which access on: read, or write, which has both.';
COMMENT ON COLUMN rag.allowed.columns IS 'Only on these columns; {*} is each column, which is less than the table: it does not allow to lock it.';

CREATE FUNCTION rag.new_id() RETURNS uuid
    AS 'MODULE_PATHNAME', 'new_id_wrapper' LANGUAGE c VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION rag.new_id() IS 'A fresh UUID, version 7 (RFC 9562): ordered by time, otherwise random.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'new_id');

CREATE FUNCTION rag.principals() RETURNS text[]
    AS 'MODULE_PATHNAME', 'principals_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.principals() IS
    'What the caller acts as: ''role:NAME'' for the current role and each role whose privileges it inherits; for a registered gateway ''user:GATEWAY/ID'' alone. Empty while rag_ext.user_id is unset or a SECURITY DEFINER function is in between. 42501 where rag_ext.user_id is set and the role is no gateway.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'principals');

CREATE FUNCTION rag.current_owner() RETURNS text
    AS 'MODULE_PATHNAME', 'current_owner_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.current_owner() IS
    'Owner of what the caller creates: ''role:NAME'', or ''user:GATEWAY/ID'' behind a gateway. 42501 where a gateway has set no rag_ext.user_id, and where it is set and the role is no gateway.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'current_owner');

CREATE FUNCTION rag.principal_role(principal text) RETURNS regrole
    AS 'MODULE_PATHNAME', 'principal_role_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION rag.principal_role(text) IS
    'The role behind a principal: the role itself, or the gateway; 0 for ''public''; NULL when there is no such role.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'principal_role');

CREATE FUNCTION rag.is_current(principal text, role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_current_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION rag.is_current(text, regrole) IS
    'Whether the principal''s name still belongs to this role: a role that was dropped and created again inherits nothing.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'is_current');

CREATE FUNCTION rag.derived_domain(collection uuid, owner text) RETURNS uuid
    AS 'MODULE_PATHNAME', 'derived_domain_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.derived_domain(uuid, text) IS
    'Id that the domain of this owner in this collection has, or will have when its first document comes; a NULL collection stands for the owner''s collection ''default'', and is for those who act as the owner (42501).';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'derived_domain');

CREATE FUNCTION rag.wake_workers() RETURNS void
    AS 'MODULE_PATHNAME', 'wake_workers_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag.wake_workers() IS 'Lets the background workers look at this database when the transaction commits.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'wake_workers');
