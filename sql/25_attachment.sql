-- Existing tables as collections: what is attached, which row became which document, and what has changed.
--
-- Ids of attached collections and their domains lie above all others, so that a policy tells them from ordinary
-- ones by comparing with a constant.

CREATE TABLE rag.attachment (
    collection_id uuid PRIMARY KEY REFERENCES rag.collection ON DELETE CASCADE
        CHECK (collection_id >= 'ffffffff-ffff-8000-8000-000000000000'),
    source regclass,
    source_name text NOT NULL,
    origin text NOT NULL,
    definition jsonb NOT NULL,
    state text NOT NULL DEFAULT 'filling' CHECK (state IN ('filling', 'current', 'stopped', 'detached')),
    pass text CHECK (pass IN ('scan', 'sweep')) DEFAULT 'scan',
    position text,
    rows_read bigint NOT NULL DEFAULT 0,
    tries integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    sqlstate text,
    error text,
    attached_at timestamptz NOT NULL DEFAULT now(),
    filled_at timestamptz,
    running_since timestamptz,
    worker_pid integer,
    worker_start timestamptz,
    lost integer NOT NULL DEFAULT 0
);
CREATE INDEX attachment_source ON rag.attachment (source);
ALTER TABLE rag.attachment
    ALTER source_name SET STATISTICS 0, ALTER definition SET STATISTICS 0, ALTER position SET STATISTICS 0,
    ALTER error SET STATISTICS 0;
COMMENT ON TABLE rag.attachment IS 'Tables whose rows are the documents of a collection; made by rag_attach. For the owners of the collections.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attachment');
COMMENT ON COLUMN rag.attachment.source IS 'The table; NULL once it was dropped.';
COMMENT ON COLUMN rag.attachment.source_name IS 'The table''s name when a worker last looked.';
COMMENT ON COLUMN rag.attachment.origin IS 'Cluster, database and table that column numbers and row versions are of; elsewhere, as after a restore, columns are found by name.';
COMMENT ON COLUMN rag.attachment.definition IS 'Columns by number and name, and how they are used.';
COMMENT ON COLUMN rag.attachment.state IS 'filling: the first pass over the table is not done; current: changes follow as they are committed; stopped: see error; detached: the table is gone.';
COMMENT ON COLUMN rag.attachment.pass IS 'scan: reading the table; sweep: looking for documents whose row is gone; NULL: neither.';
COMMENT ON COLUMN rag.attachment.position IS 'Key after which the pass goes on.';
COMMENT ON COLUMN rag.attachment.running_since IS 'Since when a worker is at it; written before any code of the table''s owner runs, so that what ends a worker is not run again at once.';
COMMENT ON COLUMN rag.attachment.lost IS 'Workers in a row that ended while they were at it.';
COMMENT ON COLUMN rag.attachment.rows_read IS 'Rows that the current or last scan has read.';

-- Keys may be longer than what an index holds.
CREATE FUNCTION rag.key_hash(key text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.sha256(pg_catalog.convert_to(key, 'UTF8'));
COMMENT ON FUNCTION rag.key_hash(text) IS 'SHA-256 of a key, by which it is looked up.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'key_hash');

CREATE TABLE rag.attached_row (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    document_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    key text NOT NULL,
    key_columns jsonb NOT NULL,
    sha256 bytea NOT NULL,
    row_version text NOT NULL,
    PRIMARY KEY (domain_id, document_id)
);
CREATE UNIQUE INDEX attached_row_key ON rag.attached_row (collection_id, rag.key_hash(key));
ALTER TABLE rag.attached_row
    ALTER key SET STATISTICS 0, ALTER key_columns SET STATISTICS 0, ALTER sha256 SET STATISTICS 0,
    ALTER row_version SET STATISTICS 0;
COMMENT ON TABLE rag.attached_row IS 'Which row of an attached table is which document.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attached_row');
COMMENT ON COLUMN rag.attached_row.key IS 'The key as text, a JSON array of texts for several columns; of a table without key the SHA-256 of the used columns in hexadecimal, so that equal rows are one document.';
COMMENT ON COLUMN rag.attached_row.key_columns IS 'Key columns by name with their values; empty for a table without key.';
COMMENT ON COLUMN rag.attached_row.sha256 IS 'SHA-256 of the used columns as they were indexed.';
COMMENT ON COLUMN rag.attached_row.row_version IS 'xmin of the row when it was indexed or last compared.';

-- Written by triggers on users' tables: a row per statement, with nothing but keys.
CREATE TABLE rag.attached_change (
    collection_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT rag.new_id(),
    size integer NOT NULL DEFAULT 1,
    keys text[],
    from_key bigint,
    to_key bigint,
    PRIMARY KEY (collection_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE rag.attached_change ALTER keys SET STATISTICS 0;
COMMENT ON TABLE rag.attached_change IS 'Changed rows of attached tables that a worker has not looked at yet.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attached_change');
COMMENT ON COLUMN rag.attached_change.size IS 'Number of keys; 1 for a range.';
COMMENT ON COLUMN rag.attached_change.keys IS 'Keys of changed rows; NULL with from_key NULL: anything may have changed.';
COMMENT ON COLUMN rag.attached_change.from_key IS 'Smallest key of a range of inserted rows.';
COMMENT ON COLUMN rag.attached_change.to_key IS 'Largest key of the range.';
