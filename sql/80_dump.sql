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
SELECT pg_extension_config_dump('rag.space', '');
SELECT pg_extension_config_dump('rag.segment', '');
SELECT pg_extension_config_dump('rag.tombstone', '');
SELECT pg_extension_config_dump('rag.job', '');
SELECT pg_extension_config_dump('rag.attachment', '');
SELECT pg_extension_config_dump('rag.attached_row', '');
SELECT pg_extension_config_dump('rag.attached_change', '');
SELECT pg_extension_config_dump('rag.model_change', '');
