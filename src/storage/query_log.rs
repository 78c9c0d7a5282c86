//! The log of searches: what workers write of the notes that searches leave.

use crate::error::Result;
use crate::pg::spi;

/// Writes notes, each a JSON object as text. By workers.
pub(crate) fn write(notes: &[String]) -> Result<()> {
    spi::run(
        "INSERT INTO rag.query_log (owner, owner_role, searched_at, query, collection, mode, k, hits, milliseconds, chunk_ids, stages)
         SELECT n->>'owner', (n->>'owner_role')::oid::regrole,
                timestamptz '2000-01-01 00:00:00+00' + (n->>'at')::bigint * interval '1 microsecond',
                n->>'query', n->>'collection', n->>'mode', (n->>'k')::integer, (n->>'hits')::integer,
                (n->>'milliseconds')::double precision,
                ARRAY(SELECT c.id::uuid FROM jsonb_array_elements_text(n->'chunk_ids') WITH ORDINALITY c (id, place) ORDER BY c.place),
                n->'stages'
         FROM unnest($1::text[]) t (note), LATERAL (SELECT t.note::jsonb) j (n)",
        vec![spi::Arg::texts(notes)],
    )
}
