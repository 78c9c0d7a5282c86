-- Row-level security: forced on every table, so that it holds for the owner as well.
--
-- Order of dependence, without a circle: collection_grant ← domain, collection ← everything else. The lists
-- of domains are computed once per query (ARRAY(SELECT …) is an InitPlan), so each policy is an index
-- condition on domain_id. On the small tables that the lists are made of, IN (SELECT …) is hashed instead: a
-- caller may see many thousands of domains.

CREATE FUNCTION rag.is_mine(principal text, role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_mine_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION rag.is_mine(text, regrole) IS 'Whether the caller acts as this principal, and its name still belongs to this role.';

ALTER TABLE rag.collection_grant ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY collection_grant_read ON rag.collection_grant FOR SELECT USING (
    principal = 'public'
    OR (principal = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(principal, principal_role))
    OR (owner = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(owner, owner_role)));

ALTER TABLE rag.collection ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY collection_read ON rag.collection FOR SELECT USING (
    (owner = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(owner, owner_role))
    OR id IN (SELECT g.collection_id FROM rag.collection_grant g));
CREATE POLICY collection_delete ON rag.collection FOR DELETE USING (
    owner = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(owner, owner_role));

ALTER TABLE rag.domain ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY domain_read ON rag.domain FOR SELECT USING (
    collection_id IS NOT NULL
    AND ((owner = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(owner, owner_role))
         OR id IN (SELECT g.domain_id FROM rag.collection_grant g WHERE g.privilege = 'read' OR g.shared)));

ALTER TABLE rag.accepted_collection ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY accepted_collection_read ON rag.accepted_collection FOR SELECT USING (
    principal = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(principal, principal_role));
CREATE POLICY accepted_collection_delete ON rag.accepted_collection FOR DELETE USING (
    principal = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(principal, principal_role));

-- No policy: superusers alone.
ALTER TABLE rag.gateway ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Domains that the caller's next insert would create. A row whose domain is made by the same statement must
-- already pass WITH CHECK and RETURNING, though the statement's snapshot is older than the domain.
CREATE FUNCTION rag.future_domains() RETURNS SETOF uuid LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT rag.derived_domain(NULL, p) FROM unnest(rag.principals()) p
    UNION ALL
    -- A collection of a role that the caller inherits: his documents there are his own.
    SELECT rag.derived_domain(c.id, p)
    FROM rag.collection c, unnest(rag.principals()) p
    WHERE c.owner = ANY (rag.principals()) AND c.owner <> p AND NOT c.shared
    UNION ALL
    SELECT rag.derived_domain(g.collection_id, p)
    FROM rag.collection_grant g, unnest(rag.principals()) p
    WHERE g.privilege = 'write' AND NOT g.shared AND (g.principal = 'public' OR rag.is_mine(g.principal, g.principal_role));
END;
COMMENT ON FUNCTION rag.future_domains() IS 'Ids of the domains that inserts of the caller would create.';

CREATE FUNCTION rag.readable_domains() RETURNS SETOF uuid LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT d.id FROM rag.domain d WHERE d.collection_id IS NOT NULL
    UNION ALL
    SELECT f FROM rag.future_domains() f;
END;
COMMENT ON FUNCTION rag.readable_domains() IS 'Domains whose rows the caller may see.';

-- Policies of several tables meet in one statement, and several statements in one call: asked for as one value,
-- the list is made once per call. It is an InitPlan even so, for no policy may run it per row.
CREATE FUNCTION rag.readable_domain_ids() RETURNS uuid[]
    AS 'MODULE_PATHNAME', 'readable_domain_ids_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.readable_domain_ids() IS 'rag.readable_domains as one array.';

CREATE FUNCTION rag.writable_domains() RETURNS SETOF uuid LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT d.id FROM rag.domain d
    WHERE d.owner = ANY ((SELECT rag.principals())::text[]) AND rag.is_current(d.owner, d.owner_role)
      AND d.collection_id IS NOT NULL
    UNION ALL
    SELECT g.domain_id FROM rag.collection_grant g
    WHERE g.privilege = 'write' AND g.shared AND (g.principal = 'public' OR rag.is_mine(g.principal, g.principal_role))
    UNION ALL
    SELECT f FROM rag.future_domains() f;
END;
COMMENT ON FUNCTION rag.writable_domains() IS 'Domains whose documents the caller may change.';

ALTER TABLE rag.document ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY document_read ON rag.document FOR SELECT USING (domain_id = ANY ((SELECT rag.readable_domain_ids())::uuid[]));
CREATE POLICY document_insert ON rag.document FOR INSERT WITH CHECK (domain_id = ANY (ARRAY(SELECT d FROM rag.writable_domains() d)));
CREATE POLICY document_update ON rag.document FOR UPDATE USING (domain_id = ANY (ARRAY(SELECT d FROM rag.writable_domains() d)));
CREATE POLICY document_delete ON rag.document FOR DELETE USING (domain_id = ANY (ARRAY(SELECT d FROM rag.writable_domains() d)));

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['metadata_value', 'section', 'chunk', 'embedding', 'segment', 'tombstone', 'job'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR SELECT USING (domain_id = ANY ((SELECT rag.readable_domain_ids())::uuid[]))',
                       t || '_read', t);
    END LOOP;
END $$;

ALTER TABLE rag.space ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY space_read ON rag.space FOR SELECT USING (model IN (SELECT c.model FROM rag.collection c));
