//! Acronyms: those that owners give, and those that documents define.

use super::{Id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use crate::pg::table;
use rag_core::acronym::{Acronym, Lookup, long_key, short_key};
use std::collections::BTreeSet;
use std::ffi::CStr;

/// Documents of a domain that are looked at for one form: the oldest. What more of them say changes no order worth having.
const MAX_DOCUMENTS: i64 = 100;

/// Makes what documents of a domain define what was mined from them. Elevated.
pub(crate) fn replace(domain: Id, mined: &[(Id, &[Acronym])]) -> Result<()> {
    let acronyms =
        || mined.iter().flat_map(|(document, acronyms)| acronyms.iter().map(move |a| (*document, a)));
    spi::run(
        "WITH mined AS (
             SELECT m.* FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[])
                  AS m (document_id, short_key, long_key, short_form, long_form)
         ), gone AS (
             DELETE FROM rag.mined_acronym a
             WHERE a.domain_id = $1 AND a.document_id = ANY ($2)
               AND NOT EXISTS (SELECT FROM mined m WHERE m.document_id = a.document_id AND m.short_key = a.short_key
                               AND m.long_key = a.long_key)
         )
         INSERT INTO rag.mined_acronym (domain_id, document_id, short_key, long_key, short_form, long_form)
         SELECT $1, m.* FROM mined m
         ON CONFLICT (domain_id, document_id, short_key, long_key) DO NOTHING",
        vec![
            uuid(domain).into(),
            uuids(mined.iter().map(|(document, _)| *document)).into(),
            uuids(acronyms().map(|(document, _)| document)).into(),
            acronyms().map(|(_, a)| short_key(&a.short)).collect::<Vec<_>>().into(),
            acronyms().map(|(_, a)| long_key(&a.long)).collect::<Vec<_>>().into(),
            acronyms().map(|(_, a)| a.short.clone()).collect::<Vec<_>>().into(),
            acronyms().map(|(_, a)| a.long.clone()).collect::<Vec<_>>().into(),
        ],
    )
}

/// Says what a short form stands for in a collection; false if that has as many as it may. Elevated.
pub(crate) fn set(collection: Id, acronym: &Acronym, most: i64) -> Result<bool> {
    let set = spi::execute_one(
        "INSERT INTO rag.acronym AS a (collection_id, short_key, long_key, short_form, long_form)
         SELECT $1, $2, $3, $4, $5
         WHERE (SELECT count(*) FROM rag.acronym o WHERE o.collection_id = $1) < $6
         ON CONFLICT (collection_id, short_key, long_key) DO UPDATE
             SET short_form = excluded.short_form, long_form = excluded.long_form
         RETURNING true",
        vec![
            uuid(collection).into(),
            short_key(&acronym.short).into(),
            long_key(&acronym.long).into(),
            acronym.short.clone().into(),
            acronym.long.clone().into(),
            most.into(),
        ],
        |row| row.require::<bool>(1),
    )?;
    Ok(set.unwrap_or(false))
}

/// Takes back the meanings of a short form, or one of them; returns how many. Elevated.
pub(crate) fn drop_set(collection: Id, short: &str, long: Option<&str>) -> Result<i64> {
    let gone = spi::execute(
        "DELETE FROM rag.acronym
         WHERE collection_id = $1 AND short_key = $2 AND ($3 IS NULL OR long_key = $3) RETURNING 1",
        vec![uuid(collection).into(), short_key(short).into(), long.map(long_key).into()],
        |_| Ok(()),
    )?;
    Ok(gone.len() as i64)
}

/// Those of the collections for which acronyms were given, by one look at an index for each.
pub(crate) fn with_set(collections: &[Id]) -> Vec<Id> {
    let ids: Vec<[u8; 16]> = collections.iter().map(|id| id.to_be_bytes()).collect();
    table::having_rows(c"acronym", c"acronym_pkey", &ids).into_iter().map(Id::from_be_bytes).collect()
}

/// Those of the forms that documents of these domains define, by a few looks at the indexes: nearly all words of a query are
/// none. For domains that the caller sees as a whole.
pub(crate) fn mined(domains: &[Id], lookup: &Lookup) -> Lookup {
    let ids: Vec<[u8; 16]> = domains.iter().map(|id| id.to_be_bytes()).collect();
    let present = |index: &CStr, text: &CStr, keys: &BTreeSet<String>| {
        table::present(c"mined_acronym", index, text, &ids, keys)
    };
    Lookup {
        short_keys: present(c"mined_acronym_short", c"short_key", &lookup.capital_keys),
        capital_keys: BTreeSet::new(),
        long_keys: present(c"mined_acronym_long", c"long_key", &lookup.long_keys),
    }
}

/// Acronyms of which one form is looked up, as far as the caller sees them: given ones first, then those that most
/// documents define.
pub(crate) fn look_up(collections: &[Id], domains: &[Id], lookup: &Lookup) -> Result<Vec<Acronym>> {
    spi::read_snapshot(
        "SELECT f.short_form, min(f.long_form), bool_or(f.document_id IS NULL)
         FROM (
             SELECT a.short_form, a.long_form, a.long_key, NULL::uuid AS document_id FROM rag.acronym a
             WHERE a.collection_id = ANY ($1) AND a.short_key = ANY ($3)
             UNION ALL
             SELECT a.short_form, a.long_form, a.long_key, NULL FROM rag.acronym a
             WHERE a.collection_id = ANY ($1) AND a.long_key = ANY ($4)
             UNION ALL
             SELECT m.* FROM unnest($2::uuid[]) d (id), unnest($3::text[]) k (key), LATERAL (
                 SELECT a.short_form, a.long_form, a.long_key, a.document_id FROM rag.mined_acronym a
                 WHERE a.domain_id = d.id AND a.short_key = k.key LIMIT $5) m
             UNION ALL
             SELECT m.* FROM unnest($2::uuid[]) d (id), unnest($4::text[]) k (key), LATERAL (
                 SELECT a.short_form, a.long_form, a.long_key, a.document_id FROM rag.mined_acronym a
                 WHERE a.domain_id = d.id AND a.long_key = k.key LIMIT $5) m
         ) f
         GROUP BY f.short_form, f.long_key
         ORDER BY bool_or(f.document_id IS NULL) DESC, count(DISTINCT f.document_id) DESC, f.long_key, f.short_form COLLATE \"C\"",
        vec![
            uuids(collections.iter().copied()).into(),
            uuids(domains.iter().copied()).into(),
            lookup.short_keys.iter().cloned().collect::<Vec<_>>().into(),
            lookup.long_keys.iter().cloned().collect::<Vec<_>>().into(),
            MAX_DOCUMENTS.into(),
        ],
        |row| Ok(Acronym { short: row.require(1)?, long: row.require(2)?, is_given: row.require(3)? }),
    )
}
