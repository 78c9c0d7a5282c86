-- What is made of documents: sections, chunks, embeddings and keyword segments.

CREATE TABLE rag.section (
    domain_id uuid NOT NULL,
    id uuid NOT NULL,
    document_id uuid NOT NULL,
    ordinal integer NOT NULL,
    header_path text[] NOT NULL,
    char_from integer NOT NULL,
    char_to integer NOT NULL,
    page_from integer,
    page_to integer,
    PRIMARY KEY (id),
    UNIQUE (domain_id, id)
);
CREATE INDEX section_document ON rag.section (domain_id, document_id, ordinal);
ALTER TABLE rag.section ALTER header_path SET STATISTICS 0;
COMMENT ON TABLE rag.section IS 'Parents: a heading with its text up to the next heading, or what chunking makes of that: several short ones, or a part of a long one. What answers read around a chunk.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'section');
COMMENT ON COLUMN rag.section.header_path IS 'Headings from the outermost to this one; empty before the first heading.';
COMMENT ON COLUMN rag.section.char_from IS 'Characters of the document''s text before the section.';
COMMENT ON COLUMN rag.section.char_to IS 'Characters of the document''s text before the section''s end.';

CREATE TABLE rag.chunk (
    domain_id uuid NOT NULL,
    id uuid NOT NULL,
    document_id uuid NOT NULL,
    section_id uuid NOT NULL,
    ordinal integer NOT NULL,
    content text NOT NULL,
    context text NOT NULL,
    tokens integer NOT NULL,
    char_from integer NOT NULL,
    char_to integer NOT NULL,
    page_from integer,
    page_to integer,
    sha256 bytea NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (domain_id, id)
);
-- With the id: what a filter lets through is listed without the chunks themselves, where their pages are all-visible.
CREATE INDEX chunk_document ON rag.chunk (domain_id, document_id, ordinal) INCLUDE (id);
CREATE INDEX chunk_sha256 ON rag.chunk (domain_id, sha256);
ALTER TABLE rag.chunk ALTER content SET STATISTICS 0, ALTER context SET STATISTICS 0, ALTER sha256 SET STATISTICS 0;
COMMENT ON TABLE rag.chunk IS 'Children: what is embedded and searched.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'chunk');
COMMENT ON COLUMN rag.chunk.ordinal IS 'Position in the document, from 0.';
COMMENT ON COLUMN rag.chunk.content IS 'Equals substr(document.text, char_from + 1, char_to - char_from).';
COMMENT ON COLUMN rag.chunk.context IS 'Put before the content when it is embedded: title and headings; on two more lines header row and delimiter row of the table within which the content begins.';
COMMENT ON COLUMN rag.chunk.tokens IS 'Tokens of the content by the embedding model''s tokenizer.';
COMMENT ON COLUMN rag.chunk.sha256 IS 'SHA-256 of what was embedded; equal texts of a domain share one computation.';

CREATE TABLE rag.vector_space (
    id uuid PRIMARY KEY DEFAULT rag.new_id(),
    model text NOT NULL UNIQUE,
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE rag.vector_space IS 'Vector spaces: one per embedding model, each with a partition of rag.embedding.';

CREATE TABLE rag.embedding (
    vector_space_id uuid NOT NULL,
    domain_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    vector halfvec NOT NULL
) PARTITION BY LIST (vector_space_id);
COMMENT ON TABLE rag.embedding IS 'L2-normalised embeddings of chunks. Partitions are made when a model is first used.';

CREATE TABLE rag.segment (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    id uuid NOT NULL,
    part integer NOT NULL,
    parts integer NOT NULL,
    language text NOT NULL,
    analyser_version integer NOT NULL,
    entries integer NOT NULL,
    bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (domain_id, id, part)
);
ALTER TABLE rag.segment ALTER data SET STORAGE EXTERNAL, ALTER data SET STATISTICS 0, ALTER sha256 SET STATISTICS 0;
ALTER TABLE rag.segment SET (toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE rag.segment IS 'Immutable tantivy segments (BM25), in parts of at most 4 MB.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'segment');
COMMENT ON COLUMN rag.segment.entries IS 'Chunks in the segment, deleted ones included until the next merge.';
COMMENT ON COLUMN rag.segment.bytes IS 'Bytes of all parts.';
COMMENT ON COLUMN rag.segment.sha256 IS 'SHA-256 of all parts.';

CREATE TABLE rag.segment_codes (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    segment_id uuid NOT NULL,
    part integer NOT NULL,
    vector_space_id uuid NOT NULL,
    bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (domain_id, segment_id, part)
);
ALTER TABLE rag.segment_codes ALTER data SET STORAGE EXTERNAL, ALTER data SET STATISTICS 0, ALTER sha256 SET STATISTICS 0;
ALTER TABLE rag.segment_codes SET (toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 1000);
-- No policy: workers, superusers, and functions that have made sure. What is near to what tells of texts.
ALTER TABLE rag.segment_codes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE rag.segment_codes IS 'One-bit codes of the vectors of a segment''s chunks, in the order of its entries, in parts of at most 4 MB: what vector search goes over before it compares. Workers make them from rag.embedding. Not dumped.';
COMMENT ON COLUMN rag.segment_codes.bytes IS 'Bytes of all parts.';
COMMENT ON COLUMN rag.segment_codes.sha256 IS 'SHA-256 of all parts.';

CREATE TABLE rag.merge_failure (
    domain_id uuid PRIMARY KEY,
    tries integer NOT NULL DEFAULT 1,
    due_at timestamptz NOT NULL,
    sqlstate text NOT NULL,
    error text NOT NULL
);
-- No policy: workers and superusers alone.
ALTER TABLE rag.merge_failure ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE rag.merge_failure IS 'Domains whose keyword segments could not be merged, as where one is damaged, and when that is tried again. Not dumped.';

CREATE TABLE rag.deletion_count (
    domain_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT rag.new_id(),
    chunks integer NOT NULL,
    PRIMARY KEY (domain_id, id)
);
COMMENT ON TABLE rag.deletion_count IS 'Counts of chunks deleted since their domain''s segments were last merged.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'deletion_count');
