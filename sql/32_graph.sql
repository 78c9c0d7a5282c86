-- The graph: what documents name, how they relate it, and to which documents they point. Each row belongs to one document
-- and comes and goes with it; an entity is what mentions have in common, so no row is about two documents.

CREATE TABLE rag.entity_mention (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    weight real NOT NULL,
    by_chat boolean NOT NULL DEFAULT false,
    PRIMARY KEY (domain_id, document_id, chunk_id, key)
);
CREATE INDEX entity_mention_key ON rag.entity_mention (domain_id, key, document_id, chunk_id);
-- Of the many that name a number, those that are called by it.
CREATE INDEX entity_mention_title ON rag.entity_mention (domain_id, key, document_id) WHERE weight >= 1;
ALTER TABLE rag.entity_mention ALTER key SET STATISTICS 0, ALTER kind SET STATISTICS 0, ALTER name SET STATISTICS 0;
COMMENT ON TABLE rag.entity_mention IS
    'Which chunk names which entity: a setting, an error, a product, a person and the like. An entity is what mentions of one key have in common, among those that the caller sees.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'entity_mention');
COMMENT ON COLUMN rag.entity_mention.key IS 'By which names are compared: in small letters, without marks at the ends.';
COMMENT ON COLUMN rag.entity_mention.kind IS 'error, document_code, configuration, file, software, hardware, organisation, person, command or term.';
COMMENT ON COLUMN rag.entity_mention.weight IS 'How much the chunk is about it: 1 in the title, 0.9 in the heading, 0.8 at the start of a line, else 0.4, and 0.1 more for each repetition, up to 0.8.';
COMMENT ON COLUMN rag.entity_mention.by_chat IS 'Whether the chat model says so, and no rule does.';

CREATE TABLE rag.entity_relation (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    subject text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    by_chat boolean NOT NULL DEFAULT false,
    PRIMARY KEY (domain_id, document_id, chunk_id, subject, relation, object)
);
CREATE INDEX entity_relation_subject ON rag.entity_relation (domain_id, subject, document_id, chunk_id);
CREATE INDEX entity_relation_object ON rag.entity_relation (domain_id, object, document_id, chunk_id);
ALTER TABLE rag.entity_relation ALTER subject SET STATISTICS 0, ALTER relation SET STATISTICS 0, ALTER object SET STATISTICS 0;
COMMENT ON TABLE rag.entity_relation IS 'What a chunk says of two entities.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'entity_relation');
COMMENT ON COLUMN rag.entity_relation.subject IS 'Key of the entity that does it.';
COMMENT ON COLUMN rag.entity_relation.relation IS 'depends_on, requires, configures, connects_to, is_part_of, replaces, causes or uses.';
COMMENT ON COLUMN rag.entity_relation.object IS 'Key of the entity to which it is done.';
COMMENT ON COLUMN rag.entity_relation.by_chat IS 'Whether the chat model says so, and no rule does.';

CREATE TABLE rag.document_link (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    kind text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    section text,
    strength real NOT NULL,
    PRIMARY KEY (domain_id, document_id, chunk_id, kind, target)
);
CREATE INDEX document_link_target ON rag.document_link (domain_id, kind, target);
ALTER TABLE rag.document_link ALTER kind SET STATISTICS 0, ALTER target SET STATISTICS 0, ALTER section SET STATISTICS 0;
COMMENT ON TABLE rag.document_link IS
    'What a chunk says of another document, as it is written there. Which document that is, is decided when somebody looks, among those that they see.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'document_link');
COMMENT ON COLUMN rag.document_link.kind IS 'address: a hyperlink or a path; code: a document''s number; title: a title in quotes.';
COMMENT ON COLUMN rag.document_link.target IS 'The address, resolved from the document''s uri, without query and fragment; the key of the number; or the title.';
COMMENT ON COLUMN rag.document_link.section IS 'Number of the section that is meant; NULL where none is named.';
COMMENT ON COLUMN rag.document_link.strength IS '0.9 where the reader is sent to a number or title, 0.8 for a hyperlink or path, 0.6 for a number that is merely named.';

CREATE TABLE rag.graph_job (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'skipped', 'failed')),
    tries integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    error text,
    worker_pid integer,
    worker_start timestamptz,
    PRIMARY KEY (domain_id, document_id, chunk_id)
);
CREATE INDEX graph_job_queued ON rag.graph_job (domain_id, due_at, document_id, chunk_id) WHERE state = 'queued';
CREATE INDEX graph_job_running ON rag.graph_job (domain_id) WHERE state = 'running';
ALTER TABLE rag.graph_job ALTER error SET STATISTICS 0;
COMMENT ON TABLE rag.graph_job IS 'Chunks of collections with option graph chat: whether the chat model was asked about each.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'graph_job');
COMMENT ON COLUMN rag.graph_job.state IS 'queued, running, done; skipped: two replies could not be used; failed: cancelled, or given up after rag_ext.max_tries.';
COMMENT ON COLUMN rag.graph_job.tries IS 'Tries that failed, for whatever reason.';
COMMENT ON COLUMN rag.graph_job.due_at IS 'Not before: later than now while a failed try backs off.';
COMMENT ON COLUMN rag.graph_job.error IS 'Why the last try failed, or why the chunk was skipped.';
