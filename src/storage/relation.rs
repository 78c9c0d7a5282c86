//! What users' tables are: read from the catalogs, with anybody's rights and as they are now.

use crate::error::Result;
use crate::pg::{Oid, spi};

/// What a relation is, by its OID.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) oid: Oid,
    /// `pg_class.relkind`.
    pub(crate) kind: String,
    /// `pg_class.relpersistence`.
    pub(crate) persistence: String,
    pub(crate) owner: Oid,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// With its schema, quoted where needed.
    pub(crate) full_name: String,
    /// Whether a partition, at any depth, is a foreign table.
    pub(crate) has_foreign_partition: bool,
    pub(crate) is_partition: bool,
}

/// Looks a relation up. As it is now, not as the active snapshot has it.
pub(crate) fn relation(oid: Oid) -> Result<Option<Relation>> {
    spi::read_latest_one(
        "SELECT c.relkind::text, c.relpersistence::text, c.relowner, n.nspname::text, c.relname::text,
                format('%I.%I', n.nspname, c.relname),
                EXISTS (SELECT FROM pg_partition_tree(c.oid) t JOIN pg_class p ON p.oid = t.relid WHERE p.relkind = 'f'),
                c.relispartition
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1",
        vec![oid.into()],
        |row| {
            Ok(Relation {
                oid,
                kind: row.require(1)?,
                persistence: row.require(2)?,
                owner: row.require(3)?,
                schema: row.require(4)?,
                name: row.require(5)?,
                full_name: row.require(6)?,
                has_foreign_partition: row.require(7)?,
                is_partition: row.require(8)?,
            })
        },
    )
}

/// A column of a relation.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) number: i16,
    pub(crate) name: String,
    /// Type, of a domain the one below it.
    pub(crate) base_type: Oid,
    /// Name of that with its schema.
    pub(crate) type_name: String,
    /// Whether a text of a value can be read as one for ever: not a name, as of an enum's label or a regclass.
    pub(crate) is_readable_for_ever: bool,
    /// `pg_type.typcategory`: `S` is text.
    pub(crate) category: String,
    pub(crate) is_not_null: bool,
    /// Whether its text is the same under any settings.
    pub(crate) is_plain: bool,
    pub(crate) is_bytea: bool,
}

/// The columns of a relation, by number.
pub(crate) fn attributes(oid: Oid) -> Result<Vec<Attribute>> {
    spi::read_latest(
        "SELECT a.attnum, a.attname::text, b.oid, format('%I.%I', n.nspname, b.typname),
                CASE WHEN b.oid < 16384 THEN b.typname NOT LIKE 'reg%' ELSE b.typtype = 'b' AND b.typcategory <> 'A' END,
                t.typcategory::text, a.attnotnull,
                t.oid = ANY ('{bool,int2,int4,int8,text,varchar,bpchar,uuid,numeric,json,jsonb}'::regtype[]),
                t.oid = 'bytea'::regtype
         FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
         JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN (
             WITH RECURSIVE below (oid) AS (
                 SELECT t.typbasetype UNION ALL
                 SELECT d.typbasetype FROM below JOIN pg_type d ON d.oid = below.oid AND d.typtype = 'd')
             SELECT below.oid FROM below JOIN pg_type d ON d.oid = below.oid AND d.typtype <> 'd')
             ELSE t.oid END
         JOIN pg_namespace n ON n.oid = b.typnamespace
         WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        vec![oid.into()],
        |row| {
            Ok(Attribute {
                number: row.require(1)?,
                name: row.require(2)?,
                base_type: row.require(3)?,
                type_name: row.require(4)?,
                is_readable_for_ever: row.require(5)?,
                category: row.require(6)?,
                is_not_null: row.require(7)?,
                is_plain: row.require(8)?,
                is_bytea: row.require(9)?,
            })
        },
    )
}

/// A column of a unique index, with the operators by which the index compares.
#[derive(Debug, Clone)]
pub(crate) struct IndexColumn {
    pub(crate) number: i16,
    pub(crate) less: String,
    pub(crate) equal: String,
    pub(crate) at_least: String,
    pub(crate) greater: String,
}

/// Unique indexes over plain columns of all rows: the primary key first, then the replica identity, then those
/// with few columns.
pub(crate) fn unique_indexes(oid: Oid) -> Result<Vec<Vec<IndexColumn>>> {
    let rows = spi::read_latest(
        "SELECT i.indexrelid, k.attnum, o.operators[1], o.operators[3], o.operators[4], o.operators[5]
         FROM pg_index i
         JOIN pg_class ic ON ic.oid = i.indexrelid
         JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
         CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indclass::oid[]) WITH ORDINALITY k (attnum, opclass, ordinal)
         JOIN pg_opclass c ON c.oid = k.opclass
         CROSS JOIN LATERAL (
             SELECT array_agg(format('OPERATOR(%I.%s)', n.nspname, p.oprname) ORDER BY m.amopstrategy) AS operators
             FROM pg_amop m JOIN pg_operator p ON p.oid = m.amopopr JOIN pg_namespace n ON n.oid = p.oprnamespace
             WHERE m.amopfamily = c.opcfamily AND m.amoplefttype = c.opcintype AND m.amoprighttype = c.opcintype) o
         WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
           AND k.ordinal <= i.indnkeyatts
         ORDER BY i.indisprimary DESC, i.indisreplident DESC, i.indnkeyatts, i.indexrelid, k.ordinal",
        vec![oid.into()],
        |row| {
            Ok((
                row.require::<Oid>(1)?,
                IndexColumn {
                    number: row.require(2)?,
                    less: row.require(3)?,
                    equal: row.require(4)?,
                    at_least: row.require(5)?,
                    greater: row.require(6)?,
                },
            ))
        },
    )?;
    let mut indexes: Vec<(Oid, Vec<IndexColumn>)> = Vec::new();
    for (index, column) in rows {
        match indexes.last_mut() {
            Some((last, columns)) if *last == index => columns.push(column),
            _ => indexes.push((index, vec![column])),
        }
    }
    Ok(indexes.into_iter().map(|(_, columns)| columns).collect())
}

/// Whether no two rows can have one value in a column, not even within a transaction.
pub(crate) fn is_unique(oid: Oid, column: i16) -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT EXISTS (SELECT FROM pg_index i
                        WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indimmediate
                          AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = $2)",
        vec![oid.into(), column.into()],
        |row| row.require(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Numbers of the columns by which rows are told apart: of the first unique index without nullable columns.
/// Empty if there is none.
pub(crate) fn key_columns(oid: Oid, attributes: &[Attribute]) -> Result<Vec<i16>> {
    let is_sure =
        |column: &IndexColumn| attributes.iter().any(|a| a.number == column.number && a.is_not_null);
    let found = unique_indexes(oid)?.into_iter().find(|columns| columns.iter().all(is_sure));
    Ok(found.map(|columns| columns.iter().map(|c| c.number).collect()).unwrap_or_default())
}

/// What the caller may do with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rights {
    /// USAGE on the schema, and SELECT on all the columns.
    pub(crate) can_read: bool,
    /// SELECT on the table as a whole, system columns included.
    pub(crate) on_whole_table: bool,
    /// Whether row-level security applies to them.
    pub(crate) has_policies: bool,
}

/// Rights of the current user.
pub(crate) fn rights(oid: Oid, columns: &[i16]) -> Result<Rights> {
    let found = spi::read_snapshot_one(
        "SELECT has_schema_privilege(c.relnamespace, 'USAGE')
                AND (SELECT coalesce(bool_and(has_column_privilege(c.oid, u, 'SELECT')), false) FROM unnest($2::int2[]) u),
                has_table_privilege(c.oid, 'SELECT'), row_security_active(c.oid)
         FROM pg_class c WHERE c.oid = $1",
        vec![oid.into(), columns.to_vec().into()],
        |row| {
            Ok(Rights {
                can_read: row.get(1).unwrap_or(false),
                on_whole_table: row.get(2).unwrap_or(false),
                has_policies: row.get(3).unwrap_or(true),
            })
        },
    )?;
    Ok(found.unwrap_or(Rights { can_read: false, on_whole_table: false, has_policies: true }))
}

/// Whether the current user has the rights of a role.
pub(crate) fn acts_as(role: Oid) -> Result<bool> {
    let found =
        spi::read_snapshot_one("SELECT pg_has_role($1, 'USAGE')", vec![role.into()], |row| row.require(1))?;
    Ok(found.unwrap_or(false))
}

pub(crate) use crate::pg::relation::TableLock;

/// As [`lock`], for workers: waits for nobody.
pub(crate) fn try_lock(oid: Oid) -> TableLock {
    crate::pg::relation::try_lock_shared(oid)
}

pub(crate) use crate::pg::relation::lock_out_writers;

/// Holds a table as it is, against ALTER and DROP, until the transaction ends; `false` if it is gone.
pub(crate) fn lock(oid: Oid) -> bool {
    crate::pg::relation::lock_shared(oid)
}
