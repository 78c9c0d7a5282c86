-- The schema, and the functions that say who the caller is.
--
-- Everything that PUBLIC would get by default is taken back at the end (90_rights.sql): a role uses rag_ext
-- after a superuser has said rag_enable('role').

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
COMMENT ON COLUMN rag.collection.options IS '{"chunking": {"method": "recursive", "unit": "tokens", "size": 480, "overlap": 64}}: see rag_create_collection.';

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
-- Metadata: typed rows for filters, and the rules by which it is found in documents.

CREATE TABLE rag.metadata_value (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    ordinal integer NOT NULL,
    text_value text COLLATE "C",
    number_value double precision,
    boolean_value boolean,
    time_value timestamptz,
    PRIMARY KEY (domain_id, document_id, key, ordinal)
);
CREATE INDEX metadata_value_key ON rag.metadata_value (domain_id, key, document_id);
CREATE INDEX metadata_value_text ON rag.metadata_value (domain_id, key, text_value, document_id) WHERE text_value IS NOT NULL;
CREATE INDEX metadata_value_number ON rag.metadata_value (domain_id, key, number_value, document_id) WHERE number_value IS NOT NULL;
CREATE INDEX metadata_value_boolean ON rag.metadata_value (domain_id, key, boolean_value, document_id) WHERE boolean_value IS NOT NULL;
CREATE INDEX metadata_value_time ON rag.metadata_value (domain_id, key, time_value, document_id) WHERE time_value IS NOT NULL;
ALTER TABLE rag.metadata_value
    ALTER key SET STATISTICS 0, ALTER text_value SET STATISTICS 0, ALTER number_value SET STATISTICS 0,
    ALTER time_value SET STATISTICS 0;
COMMENT ON TABLE rag.metadata_value IS
    'Metadata of documents as typed rows, for filters: leakproof comparisons use indexes under row-level security. Of each key there is what the document''s metadata says, else what was extracted, else the document''s own field (title, uri, media_type, collection, created_at).';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'metadata_value');
COMMENT ON COLUMN rag.metadata_value.text_value IS 'A text, at most 256 characters; longer ones have no row.';
COMMENT ON COLUMN rag.metadata_value.time_value IS 'The same text as a point in time, where it is a date or a time in ISO 8601 form; a date is its first moment in UTC.';

CREATE FUNCTION rag.metadata_rows(metadata jsonb, extracted jsonb DEFAULT '{}', fields jsonb DEFAULT '{}')
    RETURNS TABLE (key text, ordinal integer, text_value text, number_value double precision, boolean_value boolean,
                   time_value timestamptz)
    AS 'MODULE_PATHNAME', 'metadata_rows_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION rag.metadata_rows(jsonb, jsonb, jsonb) IS
    'Scalars of metadata objects as typed rows; nested keys are joined by dots, an array gives a row per element. Of each key only the first object that has it counts.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'metadata_rows');

CREATE FUNCTION rag.document_fields(title text, uri text, media_type text, collection text, created_at timestamptz)
    RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE
    RETURN jsonb_build_object('title', title, 'uri', uri, 'media_type', media_type,
                              'collection', substring(collection FROM '[^/]*$'),
                              'created_at', created_at AT TIME ZONE 'UTC');
COMMENT ON FUNCTION rag.document_fields(text, text, text, text, timestamptz) IS 'A document''s own fields that filters know.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'document_fields');

CREATE TABLE rag.metadata_rule (
    id uuid PRIMARY KEY DEFAULT rag.new_id(),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 64),
    owner text NOT NULL DEFAULT rag.current_owner(),
    owner_role regrole NOT NULL,
    collection text CHECK (collection <> '' AND length(collection) <= 128),
    key text NOT NULL,
    kind text NOT NULL DEFAULT 'pattern',
    source text NOT NULL DEFAULT 'text',
    pattern text,
    value text CHECK (length(value) <= 256),
    words text[] NOT NULL DEFAULT '{}',
    minimum integer NOT NULL DEFAULT 1,
    type text NOT NULL DEFAULT 'text',
    multiple boolean NOT NULL DEFAULT false,
    enabled boolean NOT NULL DEFAULT true,
    ordinal integer NOT NULL DEFAULT 100,
    builtin boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX metadata_rule_name ON rag.metadata_rule (owner, owner_role, coalesce(collection, ''), name, builtin);
COMMENT ON TABLE rag.metadata_rule IS
    'Rules by which metadata is found in documents: those of the collection''s owner and those of ''public''. Of equal names only the most special one counts (collection, owner, public, built in). rag_extract_metadata tries rules; rag_reextract applies changed ones.';
INSERT INTO rag.allowed VALUES
    ('read', 'SELECT', 'metadata_rule', NULL),
    ('write', 'INSERT', 'metadata_rule',
     '{id, name, owner, collection, key, kind, source, pattern, value, words, minimum, type, multiple, enabled, ordinal}'),
    ('write', 'UPDATE', 'metadata_rule',
     '{name, collection, key, kind, source, pattern, value, words, minimum, type, multiple, enabled, ordinal}'),
    ('write', 'DELETE', 'metadata_rule', NULL);
COMMENT ON COLUMN rag.metadata_rule.name IS 'A more special rule of the same name replaces this one.';
COMMENT ON COLUMN rag.metadata_rule.owner IS 'Principal; ''public'' (superusers alone may write such): for everybody.';
COMMENT ON COLUMN rag.metadata_rule.collection IS 'Name of one collection of the owner''s; NULL: all of them.';
COMMENT ON COLUMN rag.metadata_rule.key IS 'Key of what is found: letters, digits, _ and -.';
COMMENT ON COLUMN rag.metadata_rule.kind IS 'pattern: a regular expression; keyword: words that stand for a topic; date, company, name: what looks like one.';
COMMENT ON COLUMN rag.metadata_rule.source IS 'Where it looks: text (the first 256 KB), title, uri or file_name.';
COMMENT ON COLUMN rag.metadata_rule.pattern IS 'In the syntax of Rust''s regex crate. Found is value as a template ($1, ${name}), else the group called value, else the first group, else the whole match.';
COMMENT ON COLUMN rag.metadata_rule.value IS 'kind pattern: template of what is found; kind keyword: what is found where the words occur.';
COMMENT ON COLUMN rag.metadata_rule.words IS 'kind keyword: words and phrases in any case; * at either end stands for any letters.';
COMMENT ON COLUMN rag.metadata_rule.minimum IS 'kind keyword: occurrences that it takes.';
COMMENT ON COLUMN rag.metadata_rule.type IS 'text, number, date (ISO 8601 from any form that kind date knows) or boolean. What is none is not found.';
COMMENT ON COLUMN rag.metadata_rule.multiple IS 'Whether all values count (an array, at most 50), or only the first.';
COMMENT ON COLUMN rag.metadata_rule.ordinal IS 'Order of rules: of those of one key that are not multiple, the first to find something wins. Built-in rules begin at 1000.';
COMMENT ON COLUMN rag.metadata_rule.builtin IS 'Whether it came with the extension. Such rows are not dumped and not to be changed: a rule of the same name replaces one.';

CREATE FUNCTION rag.check_metadata_rule(rule jsonb) RETURNS void
    AS 'MODULE_PATHNAME', 'check_metadata_rule_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION rag.check_metadata_rule(jsonb) IS
    'Raises 22023 for a rule that makes no sense, such as a pattern that is no regular expression, and 54000 for one that is too large.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'check_metadata_rule');

CREATE FUNCTION rag.metadata_rule_before() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most constant integer := 200;
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.builtin THEN
        RAISE EXCEPTION 'built-in metadata rule "%" cannot be changed', OLD.name
            USING ERRCODE = 'feature_not_supported', HINT = 'Insert a rule of the same name: it replaces the built-in one.';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.builtin THEN
            -- The same in every database, as what a dump leaves out must be.
            NEW.id := md5('rag_ext built-in metadata rule ' || NEW.name)::uuid;
        END IF;
        -- A row that knows its role is being restored.
        NEW.owner_role := coalesce(NEW.owner_role, CASE WHEN NEW.owner = 'public' THEN 0 ELSE rag.principal_role(NEW.owner) END);
        IF NEW.owner_role IS NULL THEN
            RAISE EXCEPTION 'the role of principal "%" does not exist', left(NEW.owner, 64) USING ERRCODE = 'undefined_object';
        END IF;
        IF (SELECT count(*) FROM rag.metadata_rule r
            WHERE r.owner = NEW.owner AND r.owner_role = NEW.owner_role AND NOT r.builtin) >= most THEN
            RAISE EXCEPTION '"%" has % metadata rules, and more are not allowed', left(NEW.owner, 64), most
                USING ERRCODE = 'program_limit_exceeded';
        END IF;
    END IF;
    PERFORM rag.check_metadata_rule(jsonb_build_object(
        'key', NEW.key, 'kind', NEW.kind, 'source', NEW.source, 'pattern', NEW.pattern, 'value', NEW.value,
        'words', NEW.words, 'minimum', NEW.minimum, 'type', NEW.type, 'multiple', NEW.multiple));
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rag.metadata_rule_before() IS 'Checks a metadata rule before it is stored.';
CREATE TRIGGER metadata_rule_before BEFORE INSERT OR UPDATE ON rag.metadata_rule
    FOR EACH ROW EXECUTE FUNCTION rag.metadata_rule_before();

INSERT INTO rag.metadata_rule (name, owner, owner_role, key, kind, source, pattern, type, multiple, ordinal, builtin) VALUES
    ('publication_id', 'public', 0, 'publication_id', 'pattern', 'file_name',
     '(?i)^(?:pub(?:lication)?[-_ ]?(?:id[-_ ]?)?|doc[-_ ]?|id[-_ ]?)?((?-i:[A-Z]{1,8})(?:(?:-[0-9]{1,8}){1,4}|_[0-9]{2,8})|[0-9]{3,5}|[0-9]{9,12}|[0-9]{4}\.[0-9]{4,5}(?:v[0-9]+)?)(?:[-_. ]|$)',
     'text', false, 1000, true),
    ('codes', 'public', 0, 'codes', 'pattern', 'text',
     '\b[A-Z]{2,8}(?:-[0-9]{2,8}){1,4}\b', 'text', true, 1010, true),
    ('date_in_file_name', 'public', 0, 'date', 'date', 'file_name', NULL, 'date', false, 1020, true),
    ('date_in_title', 'public', 0, 'date', 'date', 'title', NULL, 'date', false, 1021, true),
    ('date_in_text', 'public', 0, 'date', 'date', 'text', NULL, 'date', false, 1022, true),
    ('dates', 'public', 0, 'dates', 'date', 'text', NULL, 'date', true, 1030, true),
    ('companies', 'public', 0, 'companies', 'company', 'text', NULL, 'text', true, 1040, true),
    ('names', 'public', 0, 'names', 'name', 'text', NULL, 'text', true, 1050, true);

INSERT INTO rag.metadata_rule (name, owner, owner_role, key, kind, value, words, minimum, multiple, ordinal, builtin)
SELECT 'topic_' || t.topic, 'public', 0, 'topics', 'keyword', t.topic, t.words, 3, true, 1100, true
FROM (VALUES
    ('finance', ARRAY['bank', 'banks', 'banking', 'loan*', 'interest rate*', 'invest*', 'revenue*', 'profit*', 'budget*',
        'dividend*', 'shareholder*', 'balance sheet', 'cash flow', 'invoice*', 'tax', 'taxes', 'taxation', 'accounting',
        'Kredit*', 'Zins*', 'Umsatz*', 'Gewinn*', 'Haushalt*', 'Bilanz*', 'Rechnung*', 'Steuer*', 'Aktionär*', 'Finanz*']),
    ('law', ARRAY['court', 'courts', 'plaintiff*', 'defendant*', 'lawsuit*', 'statute*', 'liability', 'contract*',
        'attorney*', 'jurisdiction', 'legislation', 'clause*', 'hereby', 'thereof', 'Gericht*', 'Kläger*', 'Beklagte*',
        'Urteil*', 'Gesetz*', 'Vertrag*', 'Haftung*', 'Rechtsanwalt*', 'Verordnung*', 'Paragraph*']),
    ('technology', ARRAY['software', 'hardware', 'database*', 'algorithm*', 'server*', 'network*', 'computer*', 'programming',
        'source code', 'API', 'encryption', 'machine learning', 'artificial intelligence', 'cloud computing', 'Datenbank*',
        'Rechner', 'Programmier*', 'Netzwerk*', 'Verschlüsselung*', 'künstliche* Intelligenz', 'Schnittstelle*']),
    ('health', ARRAY['patient*', 'clinical', 'disease*', 'therapy', 'therapies', 'diagnosis', 'hospital*', 'medicine*',
        'vaccine*', 'symptom*', 'treatment*', 'physician*', 'Patient*', 'Krankheit*', 'Therapie*', 'Diagnose*',
        'Krankenhaus*', 'Arzt', 'Ärzte*', 'Impf*', 'Behandlung*', 'Arznei*']),
    ('science', ARRAY['hypothesis', 'experiment*', 'laboratory', 'peer review*', 'theorem*', 'molecule*', 'quantum', 'physics',
        'chemistry', 'biology', 'empirical', 'statistically significant', 'Hypothese*', 'Versuch*', 'Labor*', 'Physik*',
        'Chemie*', 'Biologie*', 'Forschung*', 'Wissenschaft*']),
    ('environment', ARRAY['climate', 'emission*', 'carbon', 'pollution', 'biodiversity', 'sustainab*', 'recycling', 'ecosystem*',
        'greenhouse gas*', 'wastewater', 'Klima*', 'Emission*', 'Umwelt*', 'Nachhaltig*', 'Artenvielfalt', 'Abwasser*',
        'Treibhausgas*', 'Abfall*']),
    ('energy', ARRAY['electricity', 'power plant*', 'solar', 'wind turbine*', 'photovoltaic*', 'nuclear power', 'renewable*',
        'natural gas', 'grid operator*', 'megawatt*', 'kilowatt*', 'Strom', 'Kraftwerk*', 'Solar*', 'Windkraft*',
        'Photovoltaik*', 'Energie*', 'Erdgas*', 'Kernkraft*']),
    ('education', ARRAY['student*', 'teacher*', 'school*', 'university', 'universities', 'curriculum', 'classroom*', 'lecture*',
        'examination*', 'Schüler*', 'Lehrer*', 'Schule*', 'Universität*', 'Hochschule*', 'Unterricht*', 'Lehrplan*', 'Studier*']),
    ('personnel', ARRAY['employee*', 'employer*', 'recruit*', 'salary', 'salaries', 'payroll', 'human resources', 'trade union*',
        'working hours', 'Mitarbeiter*', 'Arbeitgeber*', 'Arbeitnehmer*', 'Gehalt*', 'Personal*', 'Gewerkschaft*', 'Arbeitszeit*']),
    ('security', ARRAY['vulnerabilit*', 'password*', 'authentication', 'authorization', 'malware', 'firewall*', 'data breach*',
        'cyber*', 'phishing', 'Sicherheitslücke*', 'Passwort*', 'Kennwort*', 'Authentifizierung*', 'Schadsoftware', 'Datenschutz*']),
    ('politics', ARRAY['parliament*', 'minister*', 'election*', 'senate', 'senator*', 'legislature', 'political part*', 'government*',
        'referendum*', 'Parlament*', 'Minister*', 'Wahl', 'Wahlen', 'Bundestag*', 'Regierung*', 'Partei', 'Parteien', 'Abgeordnete*']),
    ('transport', ARRAY['railway*', 'train', 'trains', 'airport*', 'aircraft*', 'shipping', 'freight', 'vehicle*', 'road traffic',
        'public transport', 'logistics', 'Bahn', 'Eisenbahn*', 'Zug', 'Züge', 'Flughafen*', 'Flugzeug*', 'Fahrzeug*', 'Verkehr*',
        'Logistik*'])
) AS t (topic, words);
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
CREATE INDEX chunk_document ON rag.chunk (domain_id, document_id, ordinal);
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
-- Background work, and the triggers that ask for it.

CREATE TABLE rag.job (
    domain_id uuid NOT NULL REFERENCES rag.domain ON DELETE CASCADE,
    document_id uuid NOT NULL,
    version bigint NOT NULL,
    kind text NOT NULL DEFAULT 'process' CHECK (kind IN ('process', 'extract')),
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    tries integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    queued_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    chunks integer,
    embedded integer,
    sqlstate text,
    error text,
    worker_pid integer,
    worker_start timestamptz,
    priority integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    PRIMARY KEY (domain_id, document_id)
);
CREATE INDEX job_queued ON rag.job (domain_id, priority DESC, due_at, document_id) WHERE state = 'queued';
CREATE INDEX job_running ON rag.job (domain_id) WHERE state = 'running';
CREATE INDEX job_done ON rag.job (domain_id, finished_at) WHERE state = 'done';
ALTER TABLE rag.job ALTER error SET STATISTICS 0;
COMMENT ON TABLE rag.job IS 'The latest work on each document.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'job');
COMMENT ON COLUMN rag.job.version IS 'Version of the document that is to be, or was, processed.';
COMMENT ON COLUMN rag.job.kind IS 'process: all that is made of a document. extract: its metadata alone.';
COMMENT ON COLUMN rag.job.tries IS 'Tries that failed for a reason of the document''s own.';
COMMENT ON COLUMN rag.job.due_at IS 'Not before: later than now while a failed try backs off.';
COMMENT ON COLUMN rag.job.embedded IS 'Chunks whose vector was computed; the others were reused.';
COMMENT ON COLUMN rag.job.sqlstate IS 'SQLSTATE of the last failure; 57014 where the work was cancelled.';
COMMENT ON COLUMN rag.job.priority IS 'Order within its domain: higher ones first, then the oldest.';

-- BEFORE, as the caller: finds or makes the domain, checks rights, hashes.
CREATE FUNCTION rag.document_before() RETURNS trigger
    AS 'MODULE_PATHNAME', 'document_before_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.document_before() IS 'Resolves collection and owner to a domain under the caller''s rights; sets hash, version and status.';

-- Programs that write whole rows name all columns. Runs before the next trigger, by its name; a worker's columns are not
-- among those of a plain UPDATE, which does without it.
CREATE FUNCTION rag.document_accept() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        NEW.domain_id := OLD.domain_id;
        NEW.status := OLD.status;
        NEW.error := OLD.error;
        NEW.updated_at := OLD.updated_at;
        NEW.version := OLD.version;
        NEW.sha256 := OLD.sha256;
        NEW.text := OLD.text;
        NEW.chunks := OLD.chunks;
        NEW.parsed_title := OLD.parsed_title;
        NEW.detected_type := OLD.detected_type;
        NEW.file_metadata := OLD.file_metadata;
        NEW.extracted := OLD.extracted;
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rag.document_accept() IS 'Keeps the system columns as they are, whatever an UPDATE says of them.';

CREATE TRIGGER document_accept_update
    BEFORE UPDATE OF domain_id, status, error, updated_at, version, sha256, text, chunks, parsed_title, detected_type,
                     file_metadata, extracted ON rag.document
    FOR EACH ROW EXECUTE FUNCTION rag.document_accept();
CREATE TRIGGER document_before_insert BEFORE INSERT ON rag.document
    FOR EACH ROW EXECUTE FUNCTION rag.document_before();
CREATE TRIGGER document_before_update
    BEFORE UPDATE OF id, collection, owner, title, uri, media_type, content, file, metadata, created_at ON rag.document
    FOR EACH ROW EXECUTE FUNCTION rag.document_before();

-- Called by the definer's triggers alone: EXECUTE is granted to nobody.
CREATE FUNCTION rag.process_documents(document_ids uuid[]) RETURNS void
    AS 'MODULE_PATHNAME', 'process_documents_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag.process_documents(uuid[]) IS 'Processes documents in the transaction that has written them, as rag_ext.sync has it.';

-- AFTER, with the extension's rights: only rows of the changed documents, by domain.
CREATE FUNCTION rag.document_after_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    -- A restored row keeps its old time of change: its job and metadata rows are restored as well.
    INSERT INTO rag.job (domain_id, document_id, version)
    SELECT n.domain_id, n.id, n.version FROM inserted n
    WHERE n.status = 'pending' AND n.updated_at = transaction_timestamp();
    IF FOUND THEN
        PERFORM rag.wake_workers();
    END IF;
    -- What is extracted, and the document's own fields, join when it is done: it cannot be found before.
    INSERT INTO rag.metadata_value (domain_id, document_id, key, ordinal, text_value, number_value, boolean_value, time_value)
    SELECT n.domain_id, n.id, m.* FROM inserted n, rag.metadata_rows(n.metadata) m
    WHERE n.updated_at = transaction_timestamp() AND n.metadata <> '{}';
    IF current_setting('rag_ext.sync', true) = 'on' THEN
        PERFORM rag.process_documents(array_agg(n.id)) FROM inserted n
        WHERE n.status = 'pending' AND n.updated_at = transaction_timestamp();
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_insert() IS 'Queues new documents and writes their metadata rows.';
CREATE TRIGGER document_after_insert AFTER INSERT ON rag.document
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_insert();

CREATE FUNCTION rag.document_after_update() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
DECLARE
    moved boolean;
    queued boolean;
BEGIN
    SELECT bool_or(o.domain_id <> n.domain_id), bool_or(n.version > o.version)
    INTO moved, queued
    FROM changed n JOIN original o ON o.id = n.id;

    IF moved THEN
        PERFORM rag.forget_documents(array_agg(o.domain_id), array_agg(o.id))
        FROM original o JOIN changed n ON n.id = o.id WHERE n.domain_id <> o.domain_id;
    END IF;
    IF queued THEN
        INSERT INTO rag.job AS j (domain_id, document_id, version)
        SELECT n.domain_id, n.id, n.version FROM changed n JOIN original o ON o.id = n.id
        WHERE n.version > o.version
        ON CONFLICT (domain_id, document_id) DO UPDATE
            SET version = excluded.version, kind = 'process', state = 'queued', tries = 0, due_at = excluded.due_at,
                queued_at = excluded.queued_at, started_at = NULL, finished_at = NULL, sqlstate = NULL,
                error = NULL, worker_pid = NULL, worker_start = NULL;
        PERFORM rag.wake_workers();
    END IF;

    DELETE FROM rag.metadata_value m USING changed n, original o
    WHERE o.id = n.id AND m.domain_id = n.domain_id AND m.document_id = n.id
      AND (n.metadata, n.extracted, n.title, n.uri, n.media_type, n.collection, n.created_at)
          IS DISTINCT FROM (o.metadata, o.extracted, o.title, o.uri, o.media_type, o.collection, o.created_at);
    INSERT INTO rag.metadata_value (domain_id, document_id, key, ordinal, text_value, number_value, boolean_value, time_value)
    SELECT n.domain_id, n.id, m.*
    FROM changed n JOIN original o ON o.id = n.id,
         rag.metadata_rows(n.metadata, n.extracted,
                           rag.document_fields(n.title, n.uri, n.media_type, n.collection, n.created_at)) m
    WHERE n.domain_id <> o.domain_id
       OR (n.metadata, n.extracted, n.title, n.uri, n.media_type, n.collection, n.created_at)
          IS DISTINCT FROM (o.metadata, o.extracted, o.title, o.uri, o.media_type, o.collection, o.created_at);
    IF queued AND current_setting('rag_ext.sync', true) = 'on' THEN
        PERFORM rag.process_documents(array_agg(n.id)) FROM changed n JOIN original o ON o.id = n.id
        WHERE n.version > o.version;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_update() IS 'Queues changed documents, and takes away what was derived in a domain that a document has left.';

CREATE FUNCTION rag.document_after_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    PERFORM rag.forget_documents(array_agg(domain_id), array_agg(id)) FROM deleted;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_delete() IS 'Takes away what was derived from deleted documents.';

CREATE FUNCTION rag.document_after_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    TRUNCATE rag.metadata_value, rag.section, rag.chunk, rag.embedding, rag.segment, rag.deletion_count, rag.merge_failure,
        rag.job, rag.attached_row;
    -- Rows of attached tables are still there, and become documents again.
    UPDATE rag.attachment
    SET state = 'filling', pass = 'scan', position = NULL, rows_read = 0, tries = 0, due_at = now(), filled_at = NULL
    WHERE state IN ('filling', 'current');
    PERFORM rag.wake_workers();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.document_after_truncate() IS 'Takes away everything that was derived from documents.';

-- Called by the definer's triggers alone: EXECUTE is granted to nobody.
-- By index alone: who deletes a document can read how many rows that went over.
CREATE FUNCTION rag.forget_documents(domain_ids uuid[], document_ids uuid[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
DECLARE
    chunk_domains uuid[];
    chunk_ids uuid[];
BEGIN
    IF domain_ids IS NULL THEN
        RETURN;
    END IF;
    WITH chunks AS (
        DELETE FROM rag.chunk c USING unnest(domain_ids, document_ids) AS g (domain_id, id)
        WHERE c.domain_id = g.domain_id AND c.document_id = g.id
        RETURNING c.domain_id, c.id
    )
    SELECT array_agg(c.domain_id), array_agg(c.id) INTO chunk_domains, chunk_ids FROM chunks c;
    -- A statement of its own, which sees vectors that were committed while the chunks were waited for: who adds vectors
    -- of a model to come holds their chunks.
    DELETE FROM rag.embedding e USING unnest(chunk_domains, chunk_ids) AS c (domain_id, id)
    WHERE e.domain_id = c.domain_id AND e.chunk_id = c.id;
    WITH gone AS (
        SELECT domain_id, id FROM unnest(domain_ids, document_ids) AS g (domain_id, id)
    ), sections AS (
        DELETE FROM rag.section s USING gone g WHERE s.domain_id = g.domain_id AND s.document_id = g.id
    ), metadata AS (
        DELETE FROM rag.metadata_value m USING gone g WHERE m.domain_id = g.domain_id AND m.document_id = g.id
    ), jobs AS (
        DELETE FROM rag.job j USING gone g WHERE j.domain_id = g.domain_id AND j.document_id = g.id
    )
    INSERT INTO rag.deletion_count (domain_id, chunks)
    SELECT c.domain_id, count(*) FROM unnest(chunk_domains) AS c (domain_id)
    -- A domain that is being deleted takes its segments with it.
    WHERE EXISTS (SELECT FROM rag.domain d WHERE d.id = c.domain_id)
    GROUP BY c.domain_id;
    IF FOUND THEN
        PERFORM rag.wake_workers();
    END IF;
END $$;
COMMENT ON FUNCTION rag.forget_documents(uuid[], uuid[]) IS 'Deletes chunks, embeddings, sections, metadata rows and jobs of documents.';

CREATE FUNCTION rag.collection_before_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = on AS $$
BEGIN
    DELETE FROM rag.accepted_collection a USING rag.domain d WHERE d.collection_id = OLD.id AND d.id = a.domain_id;
    RETURN OLD;
END $$;
COMMENT ON FUNCTION rag.collection_before_delete() IS 'Takes a collection that is being deleted out of everybody''s searches.';
CREATE TRIGGER collection_before_delete BEFORE DELETE ON rag.collection
    FOR EACH ROW EXECUTE FUNCTION rag.collection_before_delete();

-- Deleting collections is cheap: the foreign key has cut off their domains, workers do the rest.
CREATE FUNCTION rag.collection_after_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rag.wake_workers();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.collection_after_delete() IS 'Lets the background workers clear away what was in deleted collections.';
CREATE TRIGGER collection_after_delete AFTER DELETE ON rag.collection
    FOR EACH STATEMENT EXECUTE FUNCTION rag.collection_after_delete();

CREATE TRIGGER document_after_update AFTER UPDATE ON rag.document
    REFERENCING OLD TABLE AS original NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_update();
CREATE TRIGGER document_after_delete AFTER DELETE ON rag.document
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_delete();
CREATE TRIGGER document_after_truncate AFTER TRUNCATE ON rag.document
    FOR EACH STATEMENT EXECUTE FUNCTION rag.document_after_truncate();
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
                             'metadata_value', 'section', 'chunk', 'job', 'segment', 'deletion_count', 'embedding', 'vector_space'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
    END LOOP;
END $$;
-- Attached tables: who knows of one, and of its rows.

CREATE FUNCTION rag.source_readable(collection_id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'source_readable_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.source_readable(uuid) IS
    'Whether the caller owns this attached collection, or has SELECT on each column of its table that it uses.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'source_readable');

CREATE FUNCTION rag.attached_source(collection_id uuid) RETURNS regclass
    AS 'MODULE_PATHNAME', 'attached_source_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100;
COMMENT ON FUNCTION rag.attached_source(uuid) IS
    'The table behind this attached collection; NULL unless rag.source_readable.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'attached_source');

ALTER TABLE rag.attachment ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
-- Positions, counts and errors are about all rows, so they are the owner's alone.
CREATE POLICY attachment_read ON rag.attachment FOR SELECT USING (rag.owns_collection(collection_id));

ALTER TABLE rag.attached_row ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY attached_row_read ON rag.attached_row FOR SELECT USING (rag.sees_part(domain_id, document_id));

-- No policy: workers and triggers alone.
ALTER TABLE rag.attached_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
-- The functions that people call. Signatures are final: growth goes into options, whose unknown keys are
-- refused with 22023. Reading functions run with the caller's rights.

-- Collections and rights ------------------------------------------------------------------------------

CREATE FUNCTION rag_create_collection(
    name text, model text DEFAULT NULL, language text DEFAULT 'english', shared boolean DEFAULT false,
    options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_create_collection_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_create_collection(text, text, text, boolean, jsonb) IS
    'Creates a collection of the caller''s and returns its id; shared: one domain for all who may write. options: chunking (an object with method, unit, size, overlap, min_size and context). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_create_collection');

CREATE FUNCTION rag_grant(collection text, principal text, privilege text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_grant_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_grant(text, text, text) IS
    'Lets a principal (role:NAME, user:GATEWAY/ID or public) read or write a collection of the caller''s. Public needs a superuser. Errors: 42704 no such collection or role, 22023 bad principal or privilege, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_grant');

CREATE FUNCTION rag_revoke(collection text, principal text, privilege text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_revoke_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_revoke(text, text, text) IS 'Takes back what rag_grant gave. Revoking what was not granted does nothing.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_revoke');

CREATE FUNCTION rag_accept(owner text, collection text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_accept_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_accept(text, text) IS
    'Takes another owner''s collection, which the caller may read, into the caller''s searches that name no collection, and lets its bare name mean it where the caller has none of that name. To undo: DELETE FROM rag.accepted_collection. Error: 42704 no such collection, or none that the caller may see.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_accept');

CREATE FUNCTION rag_enable(role text, access text DEFAULT 'write') RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF access IS NULL THEN
        RAISE EXCEPTION 'access must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    PERFORM rag.set_rights(role, access);
END $$;
COMMENT ON FUNCTION rag_enable(text, text) IS
    'Superuser: lets a role, or ''public'', use rag_ext. Access ''read'' is to search, ask and accept collections, and to write nothing; it takes the rest back. See docs/security.md.';

CREATE FUNCTION rag_disable(role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rag.set_rights(role, NULL);
END $$;
COMMENT ON FUNCTION rag_disable(text) IS 'Superuser: takes back what rag_enable gave.';

CREATE FUNCTION rag_register_gateway(role text, local_only boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role regrole := to_regrole(quote_ident(role));
BEGIN
    PERFORM rag.require_superuser('rag_register_gateway');
    IF found_role IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', left(role, 64) USING ERRCODE = 'undefined_object';
    END IF;
    IF local_only IS NULL THEN
        RAISE EXCEPTION 'local_only must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    INSERT INTO rag.gateway AS g VALUES (found_role, rag_register_gateway.local_only)
    ON CONFLICT ON CONSTRAINT gateway_pkey DO UPDATE SET local_only = excluded.local_only;
END $$;
COMMENT ON FUNCTION rag_register_gateway(text, boolean) IS
    'Superuser: this role speaks for application users, as user:ROLE/ID with the ID of rag_ext.user_id, and for nobody while that is unset. With local_only, a value that is not SET LOCAL is refused (42501). See docs/security.md.';

CREATE FUNCTION rag_unregister_gateway(role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rag.require_superuser('rag_unregister_gateway');
    DELETE FROM rag.gateway g WHERE g.role = to_regrole(quote_ident(rag_unregister_gateway.role));
END $$;
COMMENT ON FUNCTION rag_unregister_gateway(text) IS 'Superuser: makes a gateway an ordinary role again.';

-- Ingestion -------------------------------------------------------------------------------------------

CREATE FUNCTION rag_ingest(
    content text, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    metadata jsonb DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_ingest_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_ingest(text, text, text, text, jsonb, jsonb) IS
    'Stores a text (plain, Markdown or HTML), or updates the document of the same uri, and returns its id; the rest is done in the background, see rag_wait. options: media_type, priority (-100 to 100, 0), sync (boolean: process in this transaction). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_ingest');

CREATE FUNCTION rag_ingest_bytes(
    content bytea, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    metadata jsonb DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_ingest_bytes_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_ingest_bytes(bytea, text, text, text, jsonb, jsonb) IS
    'As rag_ingest, for the bytes of a file; its media type is found by content, or given in options.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_ingest_bytes');

CREATE FUNCTION rag_ingest_file(
    path text, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    metadata jsonb DEFAULT '{}', options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_ingest_file_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_ingest_file(text, text, text, text, jsonb, jsonb) IS
    'As rag_ingest_bytes, for a file of the server''s machine, which members of pg_read_server_files may read. The path is absolute, or from the data directory; uri is file:// and the absolute path, unless given. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_ingest_file');

CREATE FUNCTION rag_wait(collection text DEFAULT NULL, timeout interval DEFAULT '10 min') RETURNS boolean
    AS 'MODULE_PATHNAME', 'rag_wait_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_wait(text, interval) IS
    'Waits until all documents of the caller''s (in one collection, or all) are done or failed. True: all are done; false, with a notice that says which: some have failed, only paused work is left, or time is up. See docs/reference.md.';

CREATE FUNCTION rag_wait(document_id uuid, timeout interval DEFAULT '10 min') RETURNS boolean
    AS 'MODULE_PATHNAME', 'rag_wait_document_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_wait(uuid, interval) IS
    'Waits for one document that the caller sees: as rag_wait(collection). Errors: 55000, 42704.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_wait');

-- Search ----------------------------------------------------------------------------------------------

CREATE FUNCTION rag_search(
    query text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, k integer DEFAULT 10,
    mode text DEFAULT 'hybrid', options jsonb DEFAULT '{}')
    RETURNS TABLE (
        rank integer, document_id uuid, section_id uuid, chunk_id uuid, collection text, title text, uri text,
        header_path text[], page_from integer, page_to integer, char_from integer, char_to integer, snippet text,
        content text, score double precision, keyword_rank integer, keyword_score double precision,
        vector_rank integer, vector_score double precision, rerank_score double precision, metadata jsonb,
        details jsonb)
    AS 'MODULE_PATHNAME', 'rag_search_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 10000;
COMMENT ON FUNCTION rag_search(text, text, jsonb, integer, text, jsonb) IS
    'The k best chunks that the caller may see: min(k, eligible) rows, best first, ties by chunk id. options: fusion (weighted or rrf), keyword_weight (0 to 1, 0.5), rrf_k (60), candidates (of each retriever), min_score (0 to 1), rerank (boolean), rerank_limit (pairs), snippet_length (characters). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_search');

CREATE FUNCTION rag_rerank(query text, documents text[], options jsonb DEFAULT '{}')
    RETURNS TABLE (index integer, score double precision)
    AS 'MODULE_PATHNAME', 'rag_rerank_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 100000;
COMMENT ON FUNCTION rag_rerank(text, text[], jsonb) IS
    'Orders up to 1000 texts by relevance to the query with a cross-encoder: 1-based index and score from 0 to 1, in falling order. options: model, k, raw (boolean: logits as scores). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_rerank');

CREATE FUNCTION rag_rerank_chunks(query text, chunk_ids uuid[], options jsonb DEFAULT '{}')
    RETURNS TABLE (chunk_id uuid, score double precision)
    AS 'MODULE_PATHNAME', 'rag_rerank_chunks_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 COST 100000;
COMMENT ON FUNCTION rag_rerank_chunks(text, uuid[], jsonb) IS
    'As rag_rerank, for chunks by id. Ids that do not exist or that the caller may not see are left out alike.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_rerank_chunks');

CREATE FUNCTION rag_vectors(chunk_ids uuid[])
    RETURNS TABLE (chunk_id uuid, model text, vector real[])
    AS 'MODULE_PATHNAME', 'rag_vectors_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 1000;
COMMENT ON FUNCTION rag_vectors(uuid[]) IS
    'Embeddings of chunks, L2-normalised, by id: one row per chunk and model. Ids that do not exist or that the caller may not see are left out alike; rag.embedding itself is for superusers, since distances to others'' vectors tell of their texts. Errors: 22004 null, 54000 more than 10000 ids.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_vectors');

-- Answers ---------------------------------------------------------------------------------------------

CREATE FUNCTION rag_answer(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}') RETURNS jsonb
    AS 'MODULE_PATHNAME', 'rag_answer_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION rag_answer(text, text, jsonb, jsonb, jsonb) IS
    'Answers from the caller''s documents, as one JSON object with answer, found, citations and more. options: k, mode, min_support (0 to 1), max_sentences (1 to 10, 3), sentence_limit (1 to 200, 24), generate (boolean), policy (strict, cited or free), those of rag_search. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer');

CREATE FUNCTION rag_answer_text(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}') RETURNS text
    AS 'MODULE_PATHNAME', 'rag_answer_text_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION rag_answer_text(text, text, jsonb, jsonb, jsonb) IS
    'rag_answer for people: the answer, then its numbered sources with quotes.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_answer_text');

CREATE FUNCTION rag_cite(
    question text, collection text DEFAULT NULL, filter jsonb DEFAULT NULL, history jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}')
    RETURNS TABLE (
        answer text, found boolean, confidence double precision, n integer, document_id uuid, title text, uri text,
        header_path text[], page_from integer, page_to integer, quote text, support double precision)
    AS 'MODULE_PATHNAME', 'rag_cite_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 3 COST 1000000;
COMMENT ON FUNCTION rag_cite(text, text, jsonb, jsonb, jsonb) IS
    'rag_answer as rows, one per citation; one row with n NULL where there is none. confidence and support are NULL where no model measured them.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_cite');

-- Models and status -----------------------------------------------------------------------------------

CREATE FUNCTION rag.embed(input text, model text) RETURNS real[]
    AS 'MODULE_PATHNAME', 'embed_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000;
COMMENT ON FUNCTION rag.embed(text, text) IS 'rag_embed as an array.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'embed');

CREATE FUNCTION rag_embed(input text, model text DEFAULT NULL) RETURNS vector LANGUAGE sql STABLE PARALLEL RESTRICTED COST 100000
    RETURN rag.embed(input, model)::vector;
COMMENT ON FUNCTION rag_embed(text, text) IS
    'The L2-normalised embedding of a text as a query (with the model''s query prefix). model NULL: rag_ext.embedding_model. Errors: 22004, 42704 no such model, 54000 beyond the model''s limit, 55000 not loaded, 58000 engine down.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_embed');

CREATE FUNCTION rag_status() RETURNS text
    AS 'MODULE_PATHNAME', 'rag_status_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag_status() IS 'What works and what does not, in words, a line each.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_status');

CREATE FUNCTION rag.engine_state() RETURNS jsonb
    AS 'MODULE_PATHNAME', 'engine_state_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.engine_state() IS 'The row of rag.engine_status. Counters are about all users together and shown to superusers and members of pg_monitor; the last error may name paths and is shown to superusers.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'engine_state');

CREATE FUNCTION rag.models() RETURNS jsonb
    AS 'MODULE_PATHNAME', 'models_wrapper' LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.models() IS 'Rows of rag.model, as an array. endpoint, where the model of a remote endpoint is, and whether a model is loaded are shown to superusers and members of pg_monitor.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'models');
-- Previews: what parsing and chunking make of a document, without storing anything.

CREATE FUNCTION rag_parse(content bytea, media_type text DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        media_type text, title text, text text, pages integer, page_starts integer[], headings jsonb, metadata jsonb)
    AS 'MODULE_PATHNAME', 'rag_parse_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 COST 100000;
COMMENT ON FUNCTION rag_parse(bytea, text, jsonb) IS
    'What ingestion would read in a file, as one row: its text as Markdown, pages, headings and metadata. Nothing is stored. options: none.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_parse');

CREATE FUNCTION rag_chunk(content text, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        ordinal integer, total integer, parent integer, parent_from integer, parent_to integer, header_path text[],
        page_from integer, page_to integer, char_from integer, char_to integer, tokens integer, sha256 bytea, context text, content text)
    AS 'MODULE_PATHNAME', 'rag_chunk_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 100000;
COMMENT ON FUNCTION rag_chunk(text, jsonb) IS
    'The chunks that ingestion would make of a text, in order; nothing is stored. options: method, unit, size, overlap, min_size, context (these as in a collection''s chunking), model, title, media_type, language. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_chunk');

CREATE FUNCTION rag_chunk_bytes(content bytea, options jsonb DEFAULT '{}')
    RETURNS TABLE (
        ordinal integer, total integer, parent integer, parent_from integer, parent_to integer, header_path text[],
        page_from integer, page_to integer, char_from integer, char_to integer, tokens integer, sha256 bytea, context text, content text)
    AS 'MODULE_PATHNAME', 'rag_chunk_bytes_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 100 COST 100000;
COMMENT ON FUNCTION rag_chunk_bytes(bytea, jsonb) IS 'As rag_chunk, for the bytes of a file: page_from and page_to are known where the format has pages. Errors also: 22000 not parsable, 0A000 unknown type.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_chunk_bytes');
-- Changing the embedding model of a collection.

CREATE TABLE rag.model_change (
    collection_id uuid PRIMARY KEY REFERENCES rag.collection ON DELETE CASCADE,
    model text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    worker_pid integer,
    worker_start timestamptz,
    due_at timestamptz NOT NULL DEFAULT now(),
    error text
);
COMMENT ON TABLE rag.model_change IS
    'Collections that are to get another embedding model. Background workers embed their chunks anew; meanwhile the old model is searched, and all chunks of the collection switch in one transaction.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'model_change');
COMMENT ON COLUMN rag.model_change.model IS 'The model to come.';
COMMENT ON COLUMN rag.model_change.error IS 'Why the work stopped last; it is tried again at due_at.';

ALTER TABLE rag.model_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY model_change_read ON rag.model_change FOR SELECT USING (rag.sees_collection(collection_id));

CREATE FUNCTION rag_alter_collection(collection text, model text DEFAULT NULL, options jsonb DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_alter_collection_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_alter_collection(text, text, jsonb) IS
    'Changes the model or the chunking of a collection of the caller''s, in the background; what is there is found meanwhile as before. options: those of rag_create_collection. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_alter_collection');

CREATE FUNCTION rag.embedded_chunks(domain_id uuid, model text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'embedded_chunks_wrapper' LANGUAGE c STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION rag.embedded_chunks(uuid, text) IS
    'Chunks of a domain that have a vector of this model; NULL for a domain that the caller does not see as a whole.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'embedded_chunks');
-- Attaching tables: the functions that people call, and the triggers that tell of changes.

CREATE FUNCTION rag_attach(
    source regclass, collection text DEFAULT NULL, content text[] DEFAULT NULL, title text DEFAULT NULL,
    uri text DEFAULT NULL, metadata text[] DEFAULT NULL, options jsonb DEFAULT '{}') RETURNS uuid
    AS 'MODULE_PATHNAME', 'rag_attach_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_attach(regclass, text, text[], text, text, text[], jsonb) IS
    'Makes each row of a table of the caller''s a document of a collection and keeps the two in step; a chunk is visible to whoever may read its row. options: file (a bytea column), labels ({"column": "heading"}), owner (an SQL expression over the row), media_type, language, model, chunking. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_attach');

CREATE FUNCTION rag_detach(source regclass, collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_detach_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_detach(regclass, text) IS
    'Ends what rag_attach began: deletes the collection (NULL: each that this table is attached to) with its documents, leaves the table as it is, and returns how many collections that were. For the owner of the table. Errors: 42501, 42704 not attached.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_detach');

-- Trusts the table that fires it, and nothing else.
CREATE FUNCTION rag.attached_change() RETURNS trigger
    AS 'MODULE_PATHNAME', 'attached_change_wrapper' LANGUAGE c;
COMMENT ON FUNCTION rag.attached_change() IS 'Notes the keys of the rows that a statement has changed in an attached table.';

CREATE FUNCTION rag.watch_source(source regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part regclass;
    event record;
BEGIN
    FOR part IN
        SELECT source UNION
        SELECT t.relid FROM pg_partition_tree(source) t JOIN pg_class c ON c.oid = t.relid WHERE c.relkind IN ('r', 'p')
    LOOP
        FOR event IN
            SELECT * FROM (VALUES
                ('rag_attached_insert', 'INSERT', 'REFERENCING NEW TABLE AS new'),
                ('rag_attached_update', 'UPDATE', 'REFERENCING OLD TABLE AS old NEW TABLE AS new'),
                ('rag_attached_delete', 'DELETE', 'REFERENCING OLD TABLE AS old'),
                ('rag_attached_truncate', 'TRUNCATE', '')) e (name, command, tables)
            WHERE NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = part AND t.tgname = e.name)
        LOOP
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s FOR EACH STATEMENT EXECUTE FUNCTION rag.attached_change()',
                           event.name, event.command, part, event.tables);
            -- DROP EXTENSION takes them along.
            EXECUTE format('ALTER TRIGGER %I ON %s DEPENDS ON EXTENSION rag_ext', event.name, part);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.watch_source(regclass) IS 'Puts the triggers of an attached table on it and on its partitions.';

CREATE FUNCTION rag.unwatch_source(source regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT t.tgname AS name, t.tgrelid::regclass AS part FROM pg_trigger t
        WHERE t.tgfoid = 'rag.attached_change()'::regprocedure
          AND (t.tgrelid = source OR t.tgrelid IN (SELECT p.relid FROM pg_partition_tree(source) p))
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', found.name, found.part);
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.unwatch_source(regclass) IS 'Takes the triggers of an attached table away.';

-- Every DROP in the database comes here. One that takes no trigger of ours along touches no table of ours, and one
-- that does waits for nobody for long: what cannot be done at once is left to the workers.
CREATE FUNCTION rag.source_dropped() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    attached uuid[];
BEGIN
    IF NOT EXISTS (SELECT FROM pg_event_trigger_dropped_objects() o
                   WHERE o.object_type = 'trigger' AND o.address_names[3] LIKE 'rag\_attached\_%') THEN
        RETURN;
    END IF;
    PERFORM rag.wake_workers();
    SELECT array_agg(a.collection_id) INTO attached
    FROM rag.attachment a JOIN pg_event_trigger_dropped_objects() o ON a.source = o.objid
    WHERE o.classid = 'pg_class'::regclass AND o.objsubid = 0;
    -- As by rag_detach: the name is free at once, and workers clear the rows away.
    DELETE FROM rag.collection c WHERE c.id = ANY (attached);
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN;
END $$;
COMMENT ON FUNCTION rag.source_dropped() IS 'Lets go of attached tables that are dropped.';
CREATE EVENT TRIGGER rag_source_dropped ON sql_drop EXECUTE FUNCTION rag.source_dropped();
COMMENT ON EVENT TRIGGER rag_source_dropped IS 'Lets go of attached tables that are dropped.';

CREATE FUNCTION rag.source_altered() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attached record;
BEGIN
    FOR attached IN
        SELECT DISTINCT a.collection_id, a.source
        FROM pg_event_trigger_ddl_commands() c
        JOIN rag.attachment a
            ON a.source = c.objid OR a.source IN (SELECT p.relid FROM pg_partition_ancestors(c.objid) p)
        WHERE c.classid = 'pg_class'::regclass
    LOOP
        -- Partitions come and go, columns are renamed, the table may have been rewritten. A table without our
        -- triggers is being restored, and will get them back.
        IF (SELECT count(*) = 4 FROM pg_trigger t
            WHERE t.tgrelid = attached.source AND t.tgfoid = 'rag.attached_change()'::regprocedure) THEN
            PERFORM rag.watch_source(attached.source);
        END IF;
        INSERT INTO rag.attached_change (collection_id) VALUES (attached.collection_id);
        PERFORM rag.wake_workers();
    END LOOP;
END $$;
COMMENT ON FUNCTION rag.source_altered() IS 'Has a worker look at attached tables that are altered, and at their new partitions.';
CREATE EVENT TRIGGER rag_source_altered ON ddl_command_end WHEN TAG IN ('ALTER TABLE', 'CREATE TABLE')
    EXECUTE FUNCTION rag.source_altered();
COMMENT ON EVENT TRIGGER rag_source_altered IS 'Has a worker look at attached tables that are altered, and at their new partitions.';
-- Finding metadata: trying rules out, and applying changed ones to documents that are there already.

CREATE FUNCTION rag_extract_metadata(
    content text, title text DEFAULT NULL, uri text DEFAULT NULL, collection text DEFAULT 'default',
    options jsonb DEFAULT '{}') RETURNS jsonb
    AS 'MODULE_PATHNAME', 'rag_extract_metadata_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION rag_extract_metadata(text, text, text, text, jsonb) IS
    'What would be extracted from this text (Markdown) in this collection by the rules that the caller sees; nothing is stored. options: rules (an array of rules to use instead). See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('read', 'EXECUTE', 'rag_extract_metadata');

CREATE FUNCTION rag_reextract(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_reextract_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_reextract(text) IS
    'Has metadata extracted anew from the documents that the caller may change (in one collection, or all), and returns how many. It is done in the background, see rag_wait; nothing is parsed or embedded again. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_reextract');
-- Steering the background work. Everyone steers what is theirs: a collection's owner all of it, somebody else who
-- writes to it their own documents there. What is hidden and what is missing give the same 42704.

CREATE FUNCTION rag_pause(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_pause_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_pause(text) IS
    'Holds back background work on a collection of the caller''s, or on all that are theirs, until rag_resume; of another owner''s collection, on the caller''s own documents in it. Returns how many were not paused yet. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_pause');

CREATE FUNCTION rag_resume(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_resume_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_resume(text) IS 'Ends what rag_pause began, and returns how many were paused. Errors: as rag_pause.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_resume');

CREATE FUNCTION rag_set_priority(collection text, priority integer) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_priority_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_priority(text, integer) IS
    'Orders the caller''s own work: whenever it is their turn, documents of their collection with the highest priority (-100 to 100, at first 0) come first. It takes no turn from anybody else. Errors: 22023, 42704, 42501 nothing in it is the caller''s.';

CREATE FUNCTION rag_set_priority(document_id uuid, priority integer) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_document_priority_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_priority(uuid, integer) IS
    'Has a document processed before (or after) the others of its collection and owner. Errors: 22023, 42704 no such document, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_set_priority');

CREATE FUNCTION rag_cancel(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_cancel_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_cancel(text) IS
    'Cancels the queued and running work on documents that the caller may change, and returns how many. Their status is failed, with SQLSTATE 57014; an earlier form stays searchable; rag_retry queues them again. Error: 42704.';

CREATE FUNCTION rag_cancel(document_id uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_cancel_document_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_cancel(uuid) IS 'Cancels the work on one document: 1, or 0 if there is none. Errors: 42704 no such document, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_cancel');

CREATE FUNCTION rag_retry(collection text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_retry_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_retry(text) IS
    'Queues the failed documents that the caller may change once more, cancelled ones too, and returns how many. Error: 42704.';

CREATE FUNCTION rag_retry(document_id uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_retry_document_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_retry(uuid) IS
    'Queues one failed document once more: 1, or 0 if it has not failed. Errors: 42704 no such document, 42501.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_retry');

CREATE FUNCTION rag_drop_collection(collection text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_drop_collection_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_drop_collection(text) IS
    'Deletes a collection of the caller''s with all documents in it, those of others too, as DELETE FROM rag.collection does. They are gone with the commit, and workers clear the rows away. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_drop_collection');
-- Whether what was made of documents agrees with them.

CREATE FUNCTION rag_verify(collection text DEFAULT NULL, repair boolean DEFAULT false)
    RETURNS TABLE (kind text, collection text, object uuid, problem text, repaired boolean)
    AS 'MODULE_PATHNAME', 'rag_verify_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 COST 1000000;
COMMENT ON FUNCTION rag_verify(text, boolean) IS
    'Compares what was made of the caller''s documents (in one collection, or all) with them, and returns a row for each thing that does not agree: none means that all is well. repair: it is mended in the caller''s transaction, or queued. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_verify');
-- pg_dump takes the rows of these tables along. Partitions of rag.embedding are ordinary tables, made when a
-- model is first used, and are dumped as such.

SELECT pg_extension_config_dump('rag.collection', '');
SELECT pg_extension_config_dump('rag.domain', '');
SELECT pg_extension_config_dump('rag.collection_grant', '');
SELECT pg_extension_config_dump('rag.accepted_collection', '');
SELECT pg_extension_config_dump('rag.gateway', '');
SELECT pg_extension_config_dump('rag.document', '');
SELECT pg_extension_config_dump('rag.metadata_value', '');
SELECT pg_extension_config_dump('rag.metadata_rule', 'WHERE NOT builtin');
SELECT pg_extension_config_dump('rag.section', '');
SELECT pg_extension_config_dump('rag.chunk', '');
SELECT pg_extension_config_dump('rag.vector_space', '');
SELECT pg_extension_config_dump('rag.segment', '');
SELECT pg_extension_config_dump('rag.deletion_count', '');
SELECT pg_extension_config_dump('rag.job', '');
SELECT pg_extension_config_dump('rag.attachment', '');
SELECT pg_extension_config_dump('rag.attached_row', '');
SELECT pg_extension_config_dump('rag.attached_change', '');
SELECT pg_extension_config_dump('rag.model_change', '');

-- Foreign keys of an extension's tables are there before its rows, and pg_restore with several jobs loads tables in any
-- order. What it loads was whole when it was dumped, so it is not checked again row by row. Nothing but pg_restore is
-- meant: not psql, which loads tables in the order of their keys, and not a superuser's function that somebody else
-- calls. A SET clause would end the setting with the function.
CREATE FUNCTION rag.restore_unchecked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT pg_catalog.bool_and(r.rolsuper) FROM pg_catalog.pg_roles r
        WHERE r.rolname OPERATOR(pg_catalog.=) session_user OR r.rolname OPERATOR(pg_catalog.=) current_user) THEN
        PERFORM pg_catalog.set_config('session_replication_role', 'replica', true);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION rag.restore_unchecked() IS
    'Lets pg_restore, run by a superuser, load the extension''s tables in any order: without checks of foreign keys, and without triggers, until its transaction ends.';
DO $$
DECLARE
    child regclass;
BEGIN
    FOR child IN
        SELECT DISTINCT k.conrelid::regclass FROM pg_constraint k
        WHERE k.contype = 'f' AND k.connamespace = 'rag'::regnamespace
    LOOP
        EXECUTE format('CREATE TRIGGER restore_unchecked BEFORE INSERT ON %s FOR EACH STATEMENT
                        WHEN (current_setting(''application_name'') = ''pg_restore'')
                        EXECUTE FUNCTION rag.restore_unchecked()', child);
    END LOOP;
END $$;
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

CREATE FUNCTION rag.present_policies()
    RETURNS TABLE (table_name text, name text, permissive boolean, command text, roles text[], using_expression text,
                   check_expression text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.relname::text, p.polname::text, p.polpermissive,
           CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN 'delete'
                ELSE 'all' END,
           ARRAY(SELECT CASE r WHEN 0 THEN 'public' ELSE pg_get_userbyid(r)::text END
                 FROM unnest(p.polroles) r ORDER BY 1),
           pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
    FROM pg_policy p
    JOIN pg_class c ON c.oid = p.polrelid
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
         AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid
    WHERE e.extname = 'rag_ext'
$$;
COMMENT ON FUNCTION rag.present_policies() IS 'The policies that tables of the extension have, with all names in full.';

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
-- Views, most of them to watch the work with. All are security_invoker: each caller sees their own rows.

-- A view keeps the functions and operators that it found when it was made: none of a schema that somebody else may write to.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE VIEW rag.job_status WITH (security_invoker = true) AS
SELECT d.collection, d.owner, j.document_id, d.title, d.uri, j.state, j.tries, j.chunks, j.embedded,
       j.queued_at, j.started_at, j.finished_at, j.due_at AS next_try_at, j.sqlstate, j.error, j.priority,
       dm.paused_at IS NOT NULL OR c.paused_at IS NOT NULL AS paused
FROM rag.job j
JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
JOIN rag.domain dm ON dm.id = j.domain_id
JOIN rag.collection c ON c.id = dm.collection_id;
COMMENT ON VIEW rag.job_status IS 'The latest work on each document: queued, running, done or failed. While paused, what is queued is not begun.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'job_status');

CREATE VIEW rag.failed_job WITH (security_invoker = true) AS
SELECT d.collection, d.owner, j.document_id, d.title, d.uri, j.tries, j.finished_at AS failed_at, j.sqlstate, j.error
FROM rag.job j
JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
JOIN rag.domain dm ON dm.id = j.domain_id
WHERE j.state = 'failed' AND dm.collection_id IS NOT NULL;
COMMENT ON VIEW rag.failed_job IS 'Documents that could not be processed, or whose processing was cancelled (57014), with the reason. rag_retry() queues them again.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'failed_job');

CREATE VIEW rag.collection_status WITH (security_invoker = true) AS
WITH work AS (
    SELECT dm.collection_id, dm.paused_at IS NOT NULL AS paused, d.documents, d.done, d.pending, d.failed, d.chunks,
           r.running, j.recent, j.recent_chunks, j.recent_since
    FROM rag.domain dm
    CROSS JOIN LATERAL (
        SELECT count(*) AS documents,
               count(*) FILTER (WHERE status = 'done') AS done,
               count(*) FILTER (WHERE status = 'pending') AS pending,
               count(*) FILTER (WHERE status = 'failed') AS failed,
               coalesce(sum(chunks), 0) AS chunks
        FROM rag.document WHERE domain_id = dm.id) d
    CROSS JOIN LATERAL (
        SELECT count(*) AS running FROM rag.job WHERE domain_id = dm.id AND state = 'running') r
    CROSS JOIN LATERAL (
        SELECT count(*) AS recent, coalesce(sum(chunks), 0) AS recent_chunks, min(started_at) AS recent_since
        FROM rag.job WHERE domain_id = dm.id AND state = 'done' AND finished_at > now() - interval '1 min') j
), progress AS (
    SELECT c.id, c.name, c.owner, c.shared, c.model, c.language,
           c.paused_at IS NOT NULL OR coalesce(bool_and(w.paused), false) AS paused,
           coalesce(sum(w.documents), 0)::bigint AS documents,
           coalesce(sum(w.done), 0)::bigint AS done,
           coalesce(sum(w.pending), 0)::bigint AS pending,
           coalesce(sum(w.failed), 0)::bigint AS failed,
           coalesce(sum(w.running), 0)::bigint AS running,
           coalesce(sum(w.chunks), 0)::bigint AS chunks,
           coalesce(sum(w.recent), 0)::bigint AS recent,
           coalesce(sum(w.recent_chunks), 0)::bigint AS recent_chunks,
           -- Work that began ten seconds ago has a rate of ten seconds, not one of a minute.
           least(60.0, extract(epoch FROM now() - min(w.recent_since))::float8) AS recent_s
    FROM rag.collection c LEFT JOIN work w ON w.collection_id = c.id
    GROUP BY c.id, c.name, c.owner, c.shared, c.model, c.language, c.paused_at
)
SELECT p.id AS collection_id, p.name AS collection, p.owner, p.shared, p.model, p.language, p.documents,
       p.done AS documents_done, p.pending AS documents_pending, p.failed AS documents_failed, p.chunks,
       p.recent AS documents_last_minute, p.recent_chunks AS chunks_last_minute,
       CASE WHEN p.pending = 0 THEN interval '0'
            WHEN p.recent > 0 AND NOT p.paused
                THEN p.pending::float8 * greatest(p.recent_s, 0.001) / p.recent::float8 * interval '1 s'
       END AS estimated_time_left,
       p.running AS documents_running, p.paused
FROM progress p;
COMMENT ON VIEW rag.collection_status IS
    'Progress per collection, of the documents that the caller sees: documents by state (pending ones are waiting or running), chunks, what the last minute brought, and time left at that rate: NULL while unknown or paused.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'collection_status');

CREATE VIEW rag.model_change_status WITH (security_invoker = true) AS
SELECT c.id AS collection_id, c.name AS collection, c.owner, c.model AS from_model, m.model AS to_model, m.requested_at,
       w.chunks, w.embedded, m.error, m.due_at AS next_try_at
FROM rag.model_change m
JOIN rag.collection c ON c.id = m.collection_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(n.chunks), 0)::bigint AS chunks, coalesce(sum(rag.embedded_chunks(d.id, m.model)), 0)::bigint AS embedded
    FROM rag.domain d
    CROSS JOIN LATERAL (SELECT count(*) AS chunks FROM rag.chunk k WHERE k.domain_id = d.id) n
    WHERE d.collection_id = c.id) w;
COMMENT ON VIEW rag.model_change_status IS
    'Progress of changes of the embedding model, of the chunks that the caller sees: chunks in all, and those embedded by the model to come.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'model_change_status');

CREATE VIEW rag.attachment_status WITH (security_invoker = true) AS
SELECT a.source, c.name AS collection, c.owner, a.state, a.pass, a.rows_read, d.rows, d.done, d.pending, d.failed,
       a.filled_at, a.sqlstate, a.error
FROM rag.attachment a
JOIN rag.collection c ON c.id = a.collection_id
CROSS JOIN LATERAL (
    SELECT count(*) AS rows,
           count(*) FILTER (WHERE t.status = 'done') AS done,
           count(*) FILTER (WHERE t.status = 'pending') AS pending,
           count(*) FILTER (WHERE t.status = 'failed') AS failed
    FROM rag.domain m JOIN rag.document t ON t.domain_id = m.id
    WHERE m.collection_id = a.collection_id) d;
COMMENT ON VIEW rag.attachment_status IS
    'Progress per attached table whose collection the caller owns: its state, rows read by the current or last pass over it, and documents by state.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attachment_status');

CREATE VIEW rag.attached_document WITH (security_invoker = true) AS
SELECT r.document_id, rag.attached_source(r.collection_id) AS source, r.key_columns AS key, c.name AS collection, c.owner
FROM rag.attached_row r
JOIN rag.collection c ON c.id = r.collection_id;
COMMENT ON VIEW rag.attached_document IS
    'The source row of each document of an attached table that the caller sees: its table, and its key columns by name, as in key->>''id''.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'attached_document');

-- Functions give objects, and views their types: a version may add columns without taking a view away that others use.
CREATE VIEW rag.engine_status WITH (security_invoker = true) AS
SELECT * FROM jsonb_to_record(rag.engine_state()) AS s (
    running boolean, pid integer, started_at timestamptz, restarts integer, last_error text, version text,
    onnxruntime text, device text, device_note text, parse_sandbox text, chat text, queued integer,
    served bigint, failed bigint, texts_embedded bigint, tokens_embedded bigint, pairs_scored bigint,
    cache_hits bigint, cache_misses bigint, cache_bytes bigint, resident_bytes bigint);
COMMENT ON VIEW rag.engine_status IS 'The engine process: one row, also while it is down.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'engine_status');

CREATE VIEW rag.model WITH (security_invoker = true) AS
SELECT * FROM jsonb_to_recordset(rag.models()) AS m (
    name text, kind text, is_default boolean, dimension integer, max_tokens integer, pooling text,
    query_prefix text, passage_prefix text, loaded boolean, license text, problem text, languages text[],
    endpoint text);
COMMENT ON VIEW rag.model IS 'Models that the engine found, with the reason where one cannot be used.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'model');

-- COPY FROM is not for tables with row-level security, but for views with such a trigger.
CREATE VIEW rag.document_in WITH (security_invoker = true) AS
SELECT collection, owner, title, uri, media_type, content, file, metadata FROM rag.document;
COMMENT ON VIEW rag.document_in IS
    'For COPY: rows written here are rows of rag.document, and replace those of the same collection, owner and uri. A column that is left out, or NULL, has its default.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'document_in', NULL), ('write', 'INSERT', 'document_in', '{*}');

CREATE FUNCTION rag.document_in_insert() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO rag.document AS d (collection, owner, title, uri, media_type, content, file, metadata)
    VALUES (coalesce(NEW.collection, 'default'), coalesce(NEW.owner, rag.current_owner()), NEW.title, NEW.uri,
            NEW.media_type, NEW.content, NEW.file, coalesce(NEW.metadata, '{}'))
    ON CONFLICT (collection, owner, uri) DO UPDATE
    SET title = excluded.title, media_type = excluded.media_type, content = excluded.content, file = excluded.file,
        metadata = excluded.metadata;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rag.document_in_insert() IS 'Writes a row of rag.document_in to rag.document, as the caller.';
CREATE TRIGGER document_in_insert INSTEAD OF INSERT ON rag.document_in
    FOR EACH ROW EXECUTE FUNCTION rag.document_in_insert();
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
