-- Collections, the domains in them, and who may see them.

CREATE TABLE rag.collection (
    id uuid PRIMARY KEY DEFAULT rag.new_id(),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 128 AND name !~ '[/[:cntrl:]]'),
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    model text NOT NULL,
    language text NOT NULL,
    shared boolean NOT NULL DEFAULT false,
    options jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    paused_at timestamptz,
    UNIQUE (owner, owner_role, name)
);
COMMENT ON TABLE rag.collection IS 'Named sets of documents with one embedding model, one language and one way of chunking.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'collection'), ('write', 'DELETE', 'collection');
COMMENT ON COLUMN rag.collection.name IS 'Unique per owner; no slash. Another owner''s collection is written OWNER/NAME, such as role:ann/manuals, unless it was accepted.';
COMMENT ON COLUMN rag.collection.owner IS 'Principal: role:NAME or user:GATEWAY/ID.';
COMMENT ON COLUMN rag.collection.owner_role IS 'The role behind the owner, by OID: a role created again under the same name inherits nothing.';
COMMENT ON COLUMN rag.collection.model IS 'Embedding model of all its chunks.';
COMMENT ON COLUMN rag.collection.language IS 'Language of the keyword analyser: english, german, …, or simple.';
COMMENT ON COLUMN rag.collection.shared IS 'Whether all its documents belong to its owner and form one domain, whoever writes them.';
COMMENT ON COLUMN rag.collection.paused_at IS 'Since when its owner holds back background work on all its documents; NULL: not held back.';
COMMENT ON COLUMN rag.collection.options IS '{"chunking": {"method": "recursive", "unit": "tokens", "size": 480, "overlap": 64}, "feedback_boost": 0}: see rag_create_collection.';

CREATE TABLE rag.domain (
    id uuid PRIMARY KEY,
    -- Deleting a collection costs the same whatever it holds: its domains are cut off, which hides all that is in
    -- them, and workers clear them away.
    collection_id uuid REFERENCES rag.collection ON DELETE SET NULL,
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    paused_at timestamptz,
    priority integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    UNIQUE (collection_id, owner, owner_role)
);
CREATE INDEX domain_owner ON rag.domain (owner, priority);
CREATE INDEX domain_dropped ON rag.domain (id) WHERE collection_id IS NULL;
COMMENT ON TABLE rag.domain IS 'A collection and an owner: the unit of isolation, of keyword statistics and of index storage.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'domain');
COMMENT ON COLUMN rag.domain.collection_id IS 'NULL: the collection was deleted, nobody sees the domain any more, and background workers clear it away.';
COMMENT ON COLUMN rag.domain.paused_at IS 'Since when its owner holds back background work on these documents; NULL: not held back.';
COMMENT ON COLUMN rag.domain.priority IS 'Order among the domains of one owner: work of higher ones is done first.';

CREATE TABLE rag.collection_grant (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES rag.collection ON DELETE CASCADE,
    owner text NOT NULL,
    owner_role regrole NOT NULL,
    principal text NOT NULL,
    principal_role regrole NOT NULL,
    privilege text NOT NULL CHECK (privilege IN ('read', 'write')),
    shared boolean NOT NULL,
    PRIMARY KEY (domain_id, principal, privilege)
);
CREATE INDEX collection_grant_principal ON rag.collection_grant (principal);
COMMENT ON TABLE rag.collection_grant IS
    'What owners let others do with their collections: read the owner''s documents, or write: into the owner''s domain of a shared collection, else documents of their own that only they see.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'collection_grant');

CREATE TABLE rag.accepted_collection (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    principal text NOT NULL,
    principal_role regrole NOT NULL,
    PRIMARY KEY (domain_id, principal)
);
CREATE INDEX accepted_collection_principal ON rag.accepted_collection (principal);
COMMENT ON TABLE rag.accepted_collection IS 'Others'' collections that a principal has taken into searches that name no collection, and under their bare names.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'accepted_collection'), ('read', 'DELETE', 'accepted_collection');

CREATE TABLE rag.gateway (
    role regrole PRIMARY KEY,
    local_only boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE rag.gateway IS 'Roles that speak for application users, by rag_ext.user_id.';
COMMENT ON COLUMN rag.gateway.local_only IS 'Whether only SET LOCAL tells for whom, so that no value is left to the next client of a pooled connection.';

