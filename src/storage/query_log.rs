//! The log of searches: what workers write of the notes that searches leave, and take away when it is old.

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

/// Takes away at most `most` rows that are older than so many days; true if there may be more. By workers.
pub(crate) fn delete_old(days: i32, most: i64) -> Result<bool> {
    let deleted = spi::execute(
        "DELETE FROM rag.query_log l USING (
             SELECT o.owner, o.owner_role, o.id FROM rag.query_log o
             WHERE o.searched_at < now() - make_interval(days => $1) ORDER BY o.searched_at LIMIT $2
             FOR UPDATE SKIP LOCKED) o
         WHERE l.owner = o.owner AND l.owner_role = o.owner_role AND l.id = o.id
         RETURNING 1",
        vec![days.into(), most.into()],
        |_| Ok(()),
    )?;
    Ok(deleted.len() as i64 == most)
}
