-- From 0.1.0 to 0.2.0: all that has changed in the other files of sql/ since 0.1.0 was released, in the order in which it
-- can be done. Grows until 0.2.0 is released.
\echo Use "ALTER EXTENSION rag_ext UPDATE TO '0.2.0'" to load this file. \quit
