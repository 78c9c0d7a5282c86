-- Row-level security: forced on every table, so that it holds for the owner as well.
--
-- Each policy is one function, leakproof and next to free: so it comes before every condition of a caller's, whose
-- leakproof operators would else be tried on hidden rows first. What it answers is decided once per statement, as lists
-- of ids that are read without a look at what others have. The planner gets an index condition of it (support function
-- rag.policy_support), and ordinary roles are planned for by no other index: see src/pg/planner.rs.

CREATE FUNCTION rag.policy_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'policy_support_wrapper' LANGUAGE c STRICT;
COMMENT ON FUNCTION rag.policy_support(internal) IS 'Tells the planner by which list of ids the rows that a policy lets through are found in an index.';

CREATE FUNCTION rag.readable_domain_ids() RETURNS uuid[]
    AS 'MODULE_PATHNAME', 'readable_domain_ids_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.readable_domain_ids() IS 'Domains whose rows the caller may see, those that their next insert would create included.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'readable_domain_ids');

CREATE FUNCTION rag.writable_domain_ids() RETURNS uuid[]
    AS 'MODULE_PATHNAME', 'writable_domain_ids_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.writable_domain_ids() IS 'Domains whose documents the caller may change, those that their next insert would create included.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'writable_domain_ids');

CREATE FUNCTION rag.visible_collection_ids() RETURNS uuid[]
    AS 'MODULE_PATHNAME', 'visible_collection_ids_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.visible_collection_ids() IS 'Collections that the caller can name: their own, and those that were granted to them.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'visible_collection_ids');

CREATE FUNCTION rag.own_collection_ids() RETURNS uuid[]
    AS 'MODULE_PATHNAME', 'own_collection_ids_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.own_collection_ids() IS 'Collections that the caller owns.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'own_collection_ids');

CREATE FUNCTION rag.granted_domain_ids() RETURNS uuid[]
    AS 'MODULE_PATHNAME', 'granted_domain_ids_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.granted_domain_ids() IS 'Domains with a grant that the caller gave or got.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'granted_domain_ids');

CREATE FUNCTION rag.principals_and_public() RETURNS text[]
    AS 'MODULE_PATHNAME', 'principals_and_public_wrapper' LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION rag.principals_and_public() IS 'rag.principals(), and ''public''.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'principals_and_public');

CREATE FUNCTION rag.sees(domain_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees(uuid) IS 'Whether the caller may see rows of this domain.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees');

CREATE FUNCTION rag.sees_document(domain_id uuid, document_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_document_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL RESTRICTED COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_document(uuid, uuid) IS
    'Whether the caller may see this document, but for policies that were added. Of an attached table: whether they see, now and under the table''s own policies, the source row, unchanged; policies of another''s table run only for a collection that they have accepted, or names in the call.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_document');

CREATE FUNCTION rag.sees_part(domain_id uuid, document_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_part_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL RESTRICTED COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_part(uuid, uuid) IS
    'Whether the caller may see what was made of this document: rag.sees_document, and no policy that was added to rag.document hides it.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_part');

CREATE FUNCTION rag.sees_whole(domain_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_whole_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_whole(uuid) IS
    'Whether the caller may see what was made of all rows of this domain: rag.sees, and no policy that was added to documents, sections or chunks may hide some.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_whole');

CREATE FUNCTION rag.may_write(domain_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'may_write_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.may_write(uuid) IS 'Whether the caller may change documents of this domain. Those of attached tables change with their rows, and not otherwise.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'may_write');

CREATE FUNCTION rag.sees_collection(collection_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_collection_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_collection(uuid) IS 'Whether the caller can name this collection: it is their own, or was granted to them.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_collection');

CREATE FUNCTION rag.owns_collection(collection_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'owns_collection_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.owns_collection(uuid) IS 'Whether the caller owns this collection.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'owns_collection');

CREATE FUNCTION rag.sees_grant(domain_id uuid, owner text, owner_role regrole, principal text, principal_role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sees_grant_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.sees_grant(uuid, text, regrole, text, regrole) IS 'Whether the caller gave or got this grant.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'sees_grant');

CREATE FUNCTION rag.is_mine(principal text, role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_mine_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.is_mine(text, regrole) IS 'Whether the caller acts as this principal, and its name still belongs to this role.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'is_mine');

CREATE FUNCTION rag.is_mine_or_public(principal text, role regrole) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_mine_or_public_wrapper' LANGUAGE c STABLE STRICT LEAKPROOF PARALLEL SAFE COST 0.0001 SUPPORT rag.policy_support;
COMMENT ON FUNCTION rag.is_mine_or_public(text, regrole) IS 'rag.is_mine, or the principal is ''public''.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'is_mine_or_public');

CREATE POLICY collection_read ON rag.collection FOR SELECT USING (rag.sees_collection(id));
CREATE POLICY collection_delete ON rag.collection FOR DELETE USING (rag.owns_collection(id));
CREATE POLICY domain_read ON rag.domain FOR SELECT USING (rag.sees(id));
CREATE POLICY collection_grant_read ON rag.collection_grant FOR SELECT
    USING (rag.sees_grant(domain_id, owner, owner_role, principal, principal_role));
CREATE POLICY accepted_collection_read ON rag.accepted_collection FOR SELECT USING (rag.is_mine(principal, principal_role));
CREATE POLICY accepted_collection_delete ON rag.accepted_collection FOR DELETE USING (rag.is_mine(principal, principal_role));

CREATE POLICY metadata_rule_read ON rag.metadata_rule FOR SELECT USING (rag.is_mine_or_public(owner, owner_role));
CREATE POLICY metadata_rule_insert ON rag.metadata_rule FOR INSERT WITH CHECK (rag.is_mine(owner, owner_role));
CREATE POLICY metadata_rule_update ON rag.metadata_rule FOR UPDATE USING (rag.is_mine(owner, owner_role));
CREATE POLICY metadata_rule_delete ON rag.metadata_rule FOR DELETE USING (rag.is_mine(owner, owner_role));

CREATE POLICY document_read ON rag.document FOR SELECT USING (rag.sees_document(domain_id, id));
CREATE POLICY document_insert ON rag.document FOR INSERT WITH CHECK (rag.may_write(domain_id));
CREATE POLICY document_update ON rag.document FOR UPDATE USING (rag.may_write(domain_id));
CREATE POLICY document_delete ON rag.document FOR DELETE USING (rag.may_write(domain_id));

CREATE POLICY metadata_value_read ON rag.metadata_value FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY section_read ON rag.section FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY chunk_read ON rag.chunk FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY job_read ON rag.job FOR SELECT USING (rag.sees_part(domain_id, document_id));

-- What a document names and points to. A policy that was added to chunks hides what these say as well; the second policy
-- asks chunk by chunk only where there is one.
CREATE POLICY entity_mention_read ON rag.entity_mention FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY entity_mention_chunk ON rag.entity_mention AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = entity_mention.domain_id AND c.id = chunk_id));
CREATE POLICY entity_relation_read ON rag.entity_relation FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY entity_relation_chunk ON rag.entity_relation AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = entity_relation.domain_id AND c.id = chunk_id));
CREATE POLICY document_link_read ON rag.document_link FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY document_link_chunk ON rag.document_link AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = document_link.domain_id AND c.id = chunk_id));
CREATE POLICY graph_job_read ON rag.graph_job FOR SELECT USING (rag.sees_part(domain_id, document_id));
CREATE POLICY graph_job_chunk ON rag.graph_job AS RESTRICTIVE FOR SELECT
    USING (rag.sees_whole(domain_id) OR (SELECT true FROM rag.chunk c WHERE c.domain_id = graph_job.domain_id AND c.id = chunk_id));

-- Dictionaries and counts are about all rows of a domain: those of attached tables are read only by functions that
-- have made sure.
CREATE POLICY segment_read ON rag.segment FOR SELECT USING (rag.sees_whole(domain_id));
CREATE POLICY segment_attached ON rag.segment AS RESTRICTIVE FOR SELECT USING (domain_id < 'ffffffff-ffff-8000-8000-000000000000');
CREATE POLICY deletion_count_read ON rag.deletion_count FOR SELECT USING (rag.sees_whole(domain_id));
CREATE POLICY deletion_count_attached ON rag.deletion_count AS RESTRICTIVE FOR SELECT USING (domain_id < 'ffffffff-ffff-8000-8000-000000000000');

-- Without a policy: superusers, workers, and functions that have made sure. Distances to others' vectors would tell of
-- their texts; rag.vector_space of their models.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['collection', 'domain', 'collection_grant', 'accepted_collection', 'gateway', 'metadata_rule', 'document',
                             'metadata_value', 'section', 'chunk', 'job', 'segment', 'deletion_count', 'embedding', 'vector_space',
                             'entity_mention', 'entity_relation', 'document_link', 'graph_job'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
    END LOOP;
END $$;
