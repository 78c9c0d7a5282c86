-- Runs once, when the container makes its data directory: the extension in the first database.
CREATE EXTENSION rag_ext CASCADE;
