-- Documents: the table that applications and ORMs write.

CREATE TABLE rag.document (
    id uuid NOT NULL DEFAULT rag.new_id(),
    collection text NOT NULL DEFAULT 'default',
    owner text NOT NULL DEFAULT rag.current_owner(),
    title text,
    uri text,
    media_type text,
    content text,
    file bytea,
    metadata jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'failed')),
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    version bigint NOT NULL DEFAULT 1,
    sha256 bytea,
    text text,
    chunks integer,
    parsed_title text,
    detected_type text,
    file_metadata jsonb NOT NULL DEFAULT '{}',
    extracted jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id),
    UNIQUE (domain_id, id),
    CONSTRAINT document_uri_key UNIQUE (collection, owner, uri),
    CONSTRAINT document_has_content CHECK (content IS NOT NULL OR file IS NOT NULL)
);
CREATE INDEX document_sha256 ON rag.document (domain_id, sha256);
CREATE INDEX document_uri ON rag.document (domain_id, uri);
-- Progress is counted without a look at the documents themselves.
CREATE INDEX document_progress ON rag.document (domain_id, status) INCLUDE (chunks);
-- Common values of these columns would show in planner estimates, whoever asks.
ALTER TABLE rag.document
    ALTER title SET STATISTICS 0, ALTER uri SET STATISTICS 0, ALTER content SET STATISTICS 0,
    ALTER file SET STATISTICS 0, ALTER metadata SET STATISTICS 0, ALTER error SET STATISTICS 0,
    ALTER sha256 SET STATISTICS 0, ALTER text SET STATISTICS 0, ALTER collection SET STATISTICS 0,
    ALTER owner SET STATISTICS 0, ALTER parsed_title SET STATISTICS 0, ALTER file_metadata SET STATISTICS 0,
    ALTER extracted SET STATISTICS 0;
COMMENT ON TABLE rag.document IS
    'What was ingested. INSERT, UPDATE, DELETE and ON CONFLICT (collection, owner, uri) are enough: chunks and indexes follow in the background, in one commit.';
INSERT INTO rag.allowed VALUES
    ('read', 'SELECT', 'document', NULL),
    ('write', 'INSERT', 'document', '{*}'),
    ('write', 'UPDATE', 'document', '{*}'),
    ('write', 'DELETE', 'document', NULL);
COMMENT ON COLUMN rag.document.collection IS 'Name of a collection; OWNER/NAME where it is not the document owner''s own. ''default'' is created by itself.';
COMMENT ON COLUMN rag.document.owner IS 'Principal that the document belongs to; in a shared collection its owner.';
COMMENT ON COLUMN rag.document.uri IS 'Key for upserts within collection and owner, which have at most 2,600 bytes together with it; shown with citations.';
COMMENT ON COLUMN rag.document.media_type IS 'Such as text/html; found by content when NULL.';
COMMENT ON COLUMN rag.document.content IS 'The document as text: plain text, Markdown or HTML.';
COMMENT ON COLUMN rag.document.file IS 'The document as a file; used when content is NULL.';
COMMENT ON COLUMN rag.document.status IS 'pending: not processed yet in its present form (an earlier form stays searchable); done; failed: see error.';
COMMENT ON COLUMN rag.document.version IS 'Counts changes; work on an older version is thrown away.';
COMMENT ON COLUMN rag.document.sha256 IS 'SHA-256 of content or file.';
COMMENT ON COLUMN rag.document.text IS 'The document as Markdown. char_from and char_to of chunks, sections and citations count its characters: substr(text, char_from + 1, char_to - char_from).';
COMMENT ON COLUMN rag.document.chunks IS 'Number of its chunks.';
COMMENT ON COLUMN rag.document.parsed_title IS 'Title found in the document; taken as title where none is given.';
COMMENT ON COLUMN rag.document.detected_type IS 'Media type by which it was parsed; taken as media_type where none is given.';
COMMENT ON COLUMN rag.document.metadata IS 'What its owner says about it. In filters it hides equal keys of extracted; a key that is null here has no value.';
COMMENT ON COLUMN rag.document.file_metadata IS 'What the parser found in the file: author, created, modified, …';
COMMENT ON COLUMN rag.document.extracted IS 'Metadata from file, text and address by the rules of rag.metadata_rule; see docs/filters.md.';
