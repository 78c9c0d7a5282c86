-- Acronyms: what short forms stand for, so that a search for one form finds the other.

CREATE TABLE rag.acronym (
    collection_id uuid NOT NULL REFERENCES rag.collection ON DELETE CASCADE,
    short_key text COLLATE "C" NOT NULL,
    long_key text COLLATE "C" NOT NULL,
    short_form text NOT NULL,
    long_form text NOT NULL,
    PRIMARY KEY (collection_id, short_key, long_key)
);
CREATE INDEX acronym_long ON rag.acronym (collection_id, long_key);
ALTER TABLE rag.acronym
    ALTER short_key SET STATISTICS 0, ALTER long_key SET STATISTICS 0, ALTER short_form SET STATISTICS 0,
    ALTER long_form SET STATISTICS 0;
COMMENT ON TABLE rag.acronym IS
    'Acronyms of a collection that its owner has given by rag_set_acronym. They come before those that were mined.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'acronym');
COMMENT ON COLUMN rag.acronym.short_key IS 'The short form in capitals.';
COMMENT ON COLUMN rag.acronym.long_key IS 'The words of the long form in lower case, without the plural''s s of the last one.';
COMMENT ON COLUMN rag.acronym.short_form IS 'Such as SLA.';
COMMENT ON COLUMN rag.acronym.long_form IS 'Such as service level agreement.';

CREATE TABLE rag.mined_acronym (
    domain_id uuid NOT NULL,
    document_id uuid NOT NULL,
    short_key text COLLATE "C" NOT NULL,
    long_key text COLLATE "C" NOT NULL,
    short_form text NOT NULL,
    long_form text NOT NULL,
    PRIMARY KEY (domain_id, document_id, short_key, long_key)
);
CREATE INDEX mined_acronym_short ON rag.mined_acronym (domain_id, short_key, document_id);
CREATE INDEX mined_acronym_long ON rag.mined_acronym (domain_id, long_key, document_id);
ALTER TABLE rag.mined_acronym
    ALTER short_key SET STATISTICS 0, ALTER long_key SET STATISTICS 0, ALTER short_form SET STATISTICS 0,
    ALTER long_form SET STATISTICS 0;
COMMENT ON TABLE rag.mined_acronym IS
    'Acronyms that documents define, as "Full Name (FN)" or "FN (Full Name)": a row per document and pair. They come and go with their document, and are seen with it.';
INSERT INTO rag.allowed VALUES ('read', 'SELECT', 'mined_acronym');
COMMENT ON COLUMN rag.mined_acronym.short_key IS 'The short form in capitals.';
COMMENT ON COLUMN rag.mined_acronym.long_key IS 'The words of the long form in lower case, without the plural''s s of the last one.';

ALTER TABLE rag.acronym ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY acronym_read ON rag.acronym FOR SELECT USING (rag.sees_collection(collection_id));
ALTER TABLE rag.mined_acronym ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY mined_acronym_read ON rag.mined_acronym FOR SELECT USING (rag.sees_part(domain_id, document_id));
-- A row does not say which chunk defines it: where a policy may hide some, it is nobody's.
CREATE POLICY mined_acronym_whole ON rag.mined_acronym AS RESTRICTIVE FOR SELECT USING (rag.sees_whole(domain_id));

-- Which collections have some is found anew after a write, see rag.note_write().
CREATE TRIGGER note_write BEFORE INSERT OR UPDATE OR DELETE ON rag.acronym
    FOR EACH ROW EXECUTE FUNCTION rag.note_write('collection_id');
CREATE TRIGGER note_truncate BEFORE TRUNCATE ON rag.acronym FOR EACH STATEMENT EXECUTE FUNCTION rag.note_write();
ALTER TABLE rag.acronym ENABLE ALWAYS TRIGGER note_write, ENABLE ALWAYS TRIGGER note_truncate;

CREATE FUNCTION rag_set_acronym(collection text, short_form text, long_form text) RETURNS void
    AS 'MODULE_PATHNAME', 'rag_set_acronym_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_set_acronym(text, text, text) IS
    'Says what a short form stands for in a collection of the caller''s; a short form may have several meanings. Errors: 22023 a bad form, 42501, 42704 no such collection, 54000 too many. See docs/reference.md.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_set_acronym');

CREATE FUNCTION rag_drop_acronym(collection text, short_form text, long_form text DEFAULT NULL) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rag_drop_acronym_wrapper' LANGUAGE c VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rag_drop_acronym(text, text, text) IS
    'Takes back what rag_set_acronym said of a short form, all its meanings unless one is given, and returns how many. What documents say stays. Errors: 42501, 42704 no such collection.';
INSERT INTO rag.allowed VALUES ('write', 'EXECUTE', 'rag_drop_acronym');
