//! The graph: what is written of a document, and what a caller may see of it.
//!
//! Reading is always within domains and bounded per name, so that what everybody names costs no more than a rare name.

use super::among::Among;
use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use pgrx::Uuid;
use rag_core::graph::DocumentGraph;
use rag_core::option::Choice;

/// What rules find in a document, with the ids of its chunks, in order.
#[derive(Clone, Copy)]
pub(crate) struct FoundGraph<'a> {
    pub(crate) document: Id,
    pub(crate) chunks: &'a [Id],
    pub(crate) graph: &'a DocumentGraph,
}

/// Makes what rules find in documents of a domain this. What a chat model found in their chunks stays, if it is `kept`, where no
/// rule says the same; else it goes, and nothing is asked any more. Elevated.
pub(crate) fn replace(domain: Id, found: &[FoundGraph<'_>], kept: ChatPart) -> Result<()> {
    let keeps_chat = kept == ChatPart::Kept;
    let of_documents = "domain_id = $1 AND document_id = ANY ($2)";
    let stays = "$3 AND by_chat AND chunk_id = ANY ($4)";
    spi::run_by_index(
        &format!(
            "WITH relations AS (
                 DELETE FROM rag.entity_relation WHERE {of_documents} AND NOT ({stays})
             ), links AS (
                 DELETE FROM rag.document_link WHERE {of_documents}
             ), jobs AS (
                 DELETE FROM rag.graph_job WHERE {of_documents} AND NOT $3
             )
             DELETE FROM rag.entity_mention WHERE {of_documents} AND NOT ({stays})"
        ),
        vec![
            uuid(domain).into(),
            uuids(found.iter().map(|f| f.document)).into(),
            keeps_chat.into(),
            uuids(found.iter().flat_map(|f| f.chunks).copied()).into(),
        ],
    )?;
    insert_mentions(domain, found, keeps_chat)?;
    insert_relations(domain, found, keeps_chat)?;
    insert_links(domain, found)
}

/// What is found in documents, one after the other, each with its place.
fn placed<'a, T>(
    found: &[FoundGraph<'a>],
    parts: fn(&'a DocumentGraph) -> &'a [T],
    chunk: fn(&T) -> usize,
) -> Vec<(Place, &'a T)> {
    let of_document = |f: &FoundGraph<'a>| {
        let FoundGraph { document, chunks, graph } = *f;
        parts(graph).iter().map(move |part| (Place { document, chunk: chunks[chunk(part)] }, part))
    };
    found.iter().flat_map(of_document).collect()
}

/// Where something is found.
struct Place {
    document: Id,
    chunk: Id,
}

/// The arguments $1 to $3: the domain, and where each thing is found.
fn place_args<T>(domain: Id, placed: &[(Place, T)]) -> Vec<spi::Arg> {
    vec![
        uuid(domain).into(),
        uuids(placed.iter().map(|(place, _)| place.document)).into(),
        uuids(placed.iter().map(|(place, _)| place.chunk)).into(),
    ]
}

fn insert_mentions(domain: Id, found: &[FoundGraph<'_>], keeps_chat: bool) -> Result<()> {
    let mentions = placed(found, |graph| &graph.mentions, |mention| mention.chunk);
    if mentions.is_empty() {
        return Ok(());
    }
    let keys: Vec<&String> = mentions.iter().map(|(_, m)| &m.key).collect();
    if keeps_chat {
        let mut args = place_args(domain, &mentions);
        args.push(spi::Arg::texts(&keys));
        spi::run_by_index(
            "DELETE FROM rag.entity_mention m USING unnest($2::uuid[], $3::uuid[], $4::text[]) AS r (document_id, chunk_id, key)
             WHERE m.domain_id = $1 AND m.document_id = r.document_id AND m.chunk_id = r.chunk_id AND m.key = r.key",
            args,
        )?;
    }
    let mut args = place_args(domain, &mentions);
    args.extend([
        spi::Arg::texts(&keys),
        spi::Arg::texts(&mentions.iter().map(|(_, m)| m.kind.name()).collect::<Vec<_>>()),
        spi::Arg::texts(&mentions.iter().map(|(_, m)| &m.name).collect::<Vec<_>>()),
        mentions.iter().map(|(_, m)| m.weight).collect::<Vec<_>>().into(),
    ]);
    spi::run(
        "INSERT INTO rag.entity_mention (domain_id, document_id, chunk_id, key, kind, name, weight)
         SELECT $1, m.* FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::real[]) m
         ON CONFLICT DO NOTHING",
        args,
    )
}

fn insert_relations(domain: Id, found: &[FoundGraph<'_>], keeps_chat: bool) -> Result<()> {
    let edges = placed(found, |graph| &graph.edges, |edge| edge.chunk);
    if edges.is_empty() {
        return Ok(());
    }
    let args = || {
        let mut args = place_args(domain, &edges);
        args.extend([
            spi::Arg::texts(&edges.iter().map(|(_, e)| &e.subject).collect::<Vec<_>>()),
            spi::Arg::texts(&edges.iter().map(|(_, e)| e.verb.name()).collect::<Vec<_>>()),
            spi::Arg::texts(&edges.iter().map(|(_, e)| &e.object).collect::<Vec<_>>()),
        ]);
        args
    };
    if keeps_chat {
        spi::run_by_index(
            "UPDATE rag.entity_relation e SET by_chat = false
             FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[])
                  AS r (document_id, chunk_id, subject, relation, object)
             WHERE e.domain_id = $1 AND e.document_id = r.document_id AND e.by_chat AND e.chunk_id = r.chunk_id
               AND e.subject = r.subject AND e.relation = r.relation AND e.object = r.object",
            args(),
        )?;
    }
    spi::run(
        "INSERT INTO rag.entity_relation (domain_id, document_id, chunk_id, subject, relation, object)
         SELECT $1, r.* FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[]) r
         ON CONFLICT DO NOTHING",
        args(),
    )
}

fn insert_links(domain: Id, found: &[FoundGraph<'_>]) -> Result<()> {
    let links = placed(found, |graph| &graph.links, |link| link.chunk);
    if links.is_empty() {
        return Ok(());
    }
    let mut args = place_args(domain, &links);
    args.extend([
        spi::Arg::texts(&links.iter().map(|(_, l)| l.kind.name()).collect::<Vec<_>>()),
        spi::Arg::texts(&links.iter().map(|(_, l)| &l.target).collect::<Vec<_>>()),
        links.iter().map(|(_, l)| l.section.clone()).collect::<Vec<_>>().into(),
        links.iter().map(|(_, l)| l.strength).collect::<Vec<_>>().into(),
    ]);
    spi::run(
        "INSERT INTO rag.document_link (domain_id, document_id, chunk_id, kind, target, section, strength)
         SELECT $1, l.* FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::real[]) l
         ON CONFLICT DO NOTHING",
        args,
    )
}

/// What becomes of what a chat model found in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatPart {
    Kept,
    Dropped,
}

/// A chunk that names an entity.
#[derive(Debug, Clone)]
pub(crate) struct MentionRow {
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) document: Id,
    pub(crate) chunk: Id,
    pub(crate) weight: f64,
}

fn mention_of_row(row: &spi::Row) -> Result<MentionRow> {
    Ok(MentionRow {
        key: row.require(1)?,
        kind: row.require(2)?,
        name: row.require(3)?,
        document: id(row.require(4)?),
        chunk: id(row.require(5)?),
        weight: f64::from(row.require::<f32>(6)?),
    })
}

/// Where the domains name these keys: at most `limit` places of each, the first of the index. To sort before they are counted,
/// or to scan for a bitmap, would be to read what everybody names.
pub(crate) fn mentions_of(domains: &[Id], keys: &[String], limit: usize) -> Result<Vec<MentionRow>> {
    spi::look_up(
        "SELECT m.key, m.kind, m.name, m.document_id, m.chunk_id, m.weight
         FROM unnest($2::text[]) k (key)
         CROSS JOIN LATERAL (
             SELECT e.* FROM rag.entity_mention e WHERE e.domain_id = ANY ($1) AND e.key = k.key LIMIT $3) m
         ORDER BY m.key, m.document_id, m.chunk_id",
        vec![uuids(domains.iter().copied()).into(), keys.to_vec().into(), (limit as i64).into()],
        mention_of_row,
    )
}

/// What these chunks name.
pub(crate) fn mentions_in_chunks(domains: &[Id], documents: &[Id], chunks: &[Id]) -> Result<Vec<MentionRow>> {
    spi::read_snapshot(
        "SELECT m.key, m.kind, m.name, m.document_id, m.chunk_id, m.weight FROM rag.entity_mention m
         WHERE m.domain_id = ANY ($1) AND m.document_id = ANY ($2) AND m.chunk_id = ANY ($3)",
        vec![
            uuids(domains.iter().copied()).into(),
            uuids(documents.iter().copied()).into(),
            uuids(chunks.iter().copied()).into(),
        ],
        mention_of_row,
    )
}

/// What these documents name: of each the `limit` keys that it is most about, by weight, then by the number of chunks.
pub(crate) fn names_of_documents(domains: &[Id], documents: &[Id], limit: usize) -> Result<Vec<MentionRow>> {
    spi::read_snapshot(
        "SELECT n.key, n.kind, n.name, d.id, n.chunk_id, n.weight
         FROM unnest($2::uuid[]) d (id)
         CROSS JOIN LATERAL (
             SELECT m.key, min(m.kind) AS kind, min(m.name) AS name, max(m.weight) AS weight,
                    (array_agg(m.chunk_id ORDER BY m.weight DESC, m.chunk_id))[1] AS chunk_id
             FROM rag.entity_mention m WHERE m.domain_id = ANY ($1) AND m.document_id = d.id
             GROUP BY m.key ORDER BY max(m.weight) DESC, count(*) DESC, m.key LIMIT $3) n",
        vec![
            uuids(domains.iter().copied()).into(),
            uuids(documents.iter().copied()).into(),
            (limit as i64).into(),
        ],
        mention_of_row,
    )
}

/// A relation, seen from one of its entities.
#[derive(Debug, Clone)]
pub(crate) struct RelationRow {
    /// The entity from which it is seen.
    pub(crate) from: String,
    pub(crate) relation: String,
    /// The other one.
    pub(crate) to: String,
    /// Whether the entity from which it is seen is the subject.
    pub(crate) is_subject: bool,
    pub(crate) document: Id,
    pub(crate) chunk: Id,
}

/// Relations of these keys in the domains: at most `limit` of each and direction.
pub(crate) fn relations_of(domains: &[Id], keys: &[String], limit: usize) -> Result<Vec<RelationRow>> {
    spi::look_up(
        "SELECT k.key, r.relation, r.other, r.is_subject, r.document_id, r.chunk_id
         FROM unnest($2::text[]) k (key)
         CROSS JOIN LATERAL (
             (SELECT s.relation, s.object AS other, true AS is_subject, s.document_id, s.chunk_id
              FROM rag.entity_relation s WHERE s.domain_id = ANY ($1) AND s.subject = k.key LIMIT $3)
             UNION ALL
             (SELECT o.relation, o.subject, false, o.document_id, o.chunk_id
              FROM rag.entity_relation o WHERE o.domain_id = ANY ($1) AND o.object = k.key LIMIT $3)) r
         ORDER BY k.key, r.document_id, r.chunk_id, r.relation, r.other, r.is_subject",
        vec![uuids(domains.iter().copied()).into(), keys.to_vec().into(), (limit as i64).into()],
        |row| {
            Ok(RelationRow {
                from: row.require(1)?,
                relation: row.require(2)?,
                to: row.require(3)?,
                is_subject: row.require(4)?,
                document: id(row.require(5)?),
                chunk: id(row.require(6)?),
            })
        },
    )
}

/// What links a document that was asked about to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LinkNature {
    /// It points to the other one.
    To,
    /// The other one points to it.
    From,
    /// Both name the same entities.
    Shared,
}

/// A link between two documents of the domains.
#[derive(Debug, Clone)]
pub(crate) struct LinkRow {
    /// The document that was asked about.
    pub(crate) from: Id,
    pub(crate) to: Id,
    pub(crate) nature: LinkNature,
    pub(crate) strength: f64,
    /// The chunk that has the link.
    pub(crate) chunk: Id,
}

fn link_of_row(row: &spi::Row) -> Result<LinkRow> {
    Ok(LinkRow {
        from: id(row.require(1)?),
        to: id(row.require(2)?),
        nature: if row.require(3)? { LinkNature::To } else { LinkNature::From },
        strength: f64::from(row.require::<f32>(4)?),
        chunk: id(row.require(5)?),
    })
}

/// The documents of the domains that these point to: by address the one of that uri; by title the one of that title; by
/// number the one whose title or file name has it, which index `entity_mention_title` knows. At most `limit` links of each
/// document, the strongest ones.
pub(crate) fn links_from(domains: &[Id], documents: &[Id], limit: usize) -> Result<Vec<LinkRow>> {
    spi::look_up(
        "SELECT DISTINCT d.id, t.id, true, l.strength, l.chunk_id
         FROM unnest($2::uuid[]) d (id)
         CROSS JOIN LATERAL (
             SELECT k.* FROM rag.document_link k WHERE k.domain_id = ANY ($1) AND k.document_id = d.id
             ORDER BY k.strength DESC, k.kind, k.target, k.chunk_id LIMIT $3) l
         CROSS JOIN LATERAL (
             (SELECT a.id FROM rag.document a
              WHERE l.kind = 'address' AND a.domain_id = ANY ($1) AND a.uri = l.target LIMIT 4)
             UNION ALL
             (SELECT v.document_id FROM rag.metadata_value v
              WHERE l.kind = 'title' AND v.domain_id = ANY ($1) AND v.key = 'title' AND v.text_value = l.target
              LIMIT 4)
             UNION ALL
             (SELECT m.document_id FROM rag.entity_mention m
              WHERE l.kind = 'code' AND m.domain_id = ANY ($1) AND m.key = l.target AND m.weight >= 1
              ORDER BY m.document_id LIMIT 4)) t (id)
         WHERE t.id <> d.id",
        vec![
            uuids(domains.iter().copied()).into(),
            uuids(documents.iter().copied()).into(),
            (limit as i64).into(),
        ],
        link_of_row,
    )
}

/// The documents of the domains that point to these, as [`links_from`] has it: the strongest links of the first that are
/// found of each name.
pub(crate) fn links_to(domains: &[Id], documents: &[Id], limit: usize) -> Result<Vec<LinkRow>> {
    spi::look_up(
        "SELECT DISTINCT n.id, l.document_id, false, l.strength, l.chunk_id
         FROM (SELECT d.id, 'address' AS kind, d.uri AS target FROM rag.document d
               WHERE d.domain_id = ANY ($1) AND d.id = ANY ($2) AND d.uri IS NOT NULL
               UNION ALL
               SELECT d.id, 'title', d.title FROM rag.document d
               WHERE d.domain_id = ANY ($1) AND d.id = ANY ($2) AND d.title IS NOT NULL
               UNION ALL
               SELECT m.document_id, 'code', m.key FROM rag.entity_mention m
               WHERE m.domain_id = ANY ($1) AND m.document_id = ANY ($2) AND m.kind = 'document_code' AND m.weight >= 1) n
         CROSS JOIN LATERAL (
             SELECT t.* FROM (
                 SELECT k.* FROM rag.document_link k
                 WHERE k.domain_id = ANY ($1) AND k.kind = n.kind AND k.target = n.target LIMIT 5 * $3) t
             ORDER BY t.strength DESC, t.document_id, t.chunk_id LIMIT $3) l
         WHERE l.document_id <> n.id",
        vec![
            uuids(domains.iter().copied()).into(),
            uuids(documents.iter().copied()).into(),
            (limit as i64).into(),
        ],
        link_of_row,
    )
}

/// Where a chunk is.
pub(crate) struct ChunkPlace {
    pub(crate) chunk: Id,
    pub(crate) document: Id,
    pub(crate) domain: Id,
}

/// Documents and domains of these chunks.
pub(crate) fn places_of(domains: &[Id], chunks: &[Id]) -> Result<Vec<ChunkPlace>> {
    let among = Among::looked_up(domains);
    among.look_up(
        &format!(
            "SELECT c.domain_id, c.id, c.document_id FROM unnest($2::uuid[]) h (id) JOIN rag.chunk c ON c.id = h.id
             WHERE {}",
            among.condition("c.domain_id")
        ),
        [uuids(chunks.iter().copied()).into()],
        |row| {
            Ok(ChunkPlace {
                domain: id(row.require(1)?),
                chunk: id(row.require(2)?),
                document: id(row.require(3)?),
            })
        },
    )
}

/// Chunks of documents: at most `limit` of each.
pub(crate) fn chunks_of(domains: &[Id], documents: &[Id], limit: usize) -> Result<Vec<(Id, Id)>> {
    spi::read_snapshot(
        "SELECT c.id, c.domain_id FROM unnest($2::uuid[]) d (id)
         CROSS JOIN LATERAL (
             SELECT k.id, k.domain_id FROM rag.chunk k WHERE k.domain_id = ANY ($1) AND k.document_id = d.id LIMIT $3) c",
        vec![
            uuids(domains.iter().copied()).into(),
            uuids(documents.iter().copied()).into(),
            (limit as i64).into(),
        ],
        |row| Ok((id(row.require(1)?), id(row.require(2)?))),
    )
}

/// Which of the domains a document is in, or else (`None`) name an entity: at most `limit`.
pub(crate) fn domains_with(domains: &[Id], document: Option<Id>, key: &str, limit: usize) -> Result<Vec<Id>> {
    spi::read_snapshot(
        "SELECT g.id FROM unnest($1::uuid[]) g (id)
         WHERE CASE WHEN $2 IS NULL THEN EXISTS (
                        SELECT FROM rag.entity_mention m WHERE m.domain_id = g.id AND m.domain_id = ANY ($1) AND m.key = $3)
                    ELSE EXISTS (
                        SELECT FROM rag.document d WHERE d.domain_id = g.id AND d.domain_id = ANY ($1) AND d.id = $2) END
         ORDER BY g.id LIMIT $4",
        vec![
            uuids(domains.iter().copied()).into(),
            document.map(uuid).into(),
            key.into(),
            (limit as i64).into(),
        ],
        |row| row.require::<Uuid>(1).map(id),
    )
}

/// The document of the domains that a text names: by id, or by uri.
pub(crate) fn document_called(domains: &[Id], name: &str) -> Result<Option<Id>> {
    spi::read_snapshot_one(
        "SELECT n.id FROM (
             (SELECT d.id FROM rag.document d WHERE d.domain_id = ANY ($1) AND d.uri = $2 ORDER BY d.id LIMIT 1)
             UNION ALL
             (SELECT d.id FROM rag.document d
              WHERE d.domain_id = ANY ($1)
                AND d.id = CASE WHEN $2 ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN $2::uuid END)) n
         ORDER BY n.id LIMIT 1",
        vec![uuids(domains.iter().copied()).into(), name.into()],
        |row| row.require::<Uuid>(1).map(id),
    )
}

/// What a document is called.
#[derive(Debug, Clone)]
pub(crate) struct Title {
    pub(crate) title: Option<String>,
    pub(crate) uri: Option<String>,
}

/// Title and uri of documents.
pub(crate) fn titles(domains: &[Id], documents: &[Id]) -> Result<Vec<(Id, Title)>> {
    spi::read_snapshot(
        "SELECT d.id, d.title, d.uri FROM rag.document d WHERE d.domain_id = ANY ($1) AND d.id = ANY ($2)",
        vec![uuids(domains.iter().copied()).into(), uuids(documents.iter().copied()).into()],
        |row| Ok((id(row.require(1)?), Title { title: row.get(2), uri: row.get(3) })),
    )
}
