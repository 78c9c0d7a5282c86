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
-- Each row is a text, which may be a time as well, a number or a boolean: together these are the index by key.
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
