//! Statements on users' tables: their rows by key.
//!
//! Rows are read by whoever may: a worker as the table's owner (`elevation::restricted_to`), a caller as themselves.
//! Every name is written with its schema, so these statements mean the same under any search path.

use super::attachment::{Column, Definition};
use super::relation::{Attribute, IndexColumn, Relation, attributes, is_unique, unique_indexes};
use crate::error::{Error, Result};
use crate::pg::bounded_jsonb::BoundedJsonb;
use crate::pg::{elevation, spi, transition};
use std::fmt::Write;

#[derive(Debug, Clone)]
struct KeyColumn {
    name: String,
    quoted: String,
    type_name: String,
    /// Whether a stored key is compared as its text.
    is_by_text: bool,
    index: IndexColumn,
}

/// A table whose columns were found again, ready to be read.
#[derive(Debug, Clone)]
pub(crate) struct SourceTable {
    pub(crate) relation: Relation,
    /// The definition with the columns' present numbers and names.
    pub(crate) definition: Definition,
    key: Vec<KeyColumn>,
    from: String,
    /// The used columns as one value.
    whole: String,
    files: String,
    is_plain: bool,
}

/// Finds the columns of a definition again: by number where that is of this very table, else by name. `Err` is the reason why the table
/// cannot be read any more.
pub(crate) fn resolve(
    relation: Relation,
    definition: &Definition,
    by_number: bool,
) -> Result<std::result::Result<SourceTable, String>> {
    let attributes = attributes(relation.oid)?;
    let mut definition = definition.clone();
    for column in definition.columns_mut() {
        let found = attributes
            .iter()
            .find(|a| if by_number { a.number == column.number } else { a.name == column.name });
        let Some(found) = found else {
            return Ok(Err(format!("column \"{}\" was dropped", column.name)));
        };
        (column.number, column.name) = (found.number, found.name.clone());
    }
    let attribute = |column: &Column| attributes.iter().find(|a| a.number == column.number);
    let (mut key, mut key_types) = (Vec::new(), Vec::new());
    if !definition.key.is_empty() {
        let wanted: Vec<i16> = definition.key.iter().map(|c| c.number).collect();
        let has = |columns: &Vec<IndexColumn>| {
            columns.len() == wanted.len() && columns.iter().all(|c| wanted.contains(&c.number))
        };
        let Some(index) = unique_indexes(relation.oid)?.into_iter().find(has) else {
            return Ok(Err("the unique index over the key was dropped".to_owned()));
        };
        for column in &definition.key {
            let (Some(found), Some(compared)) =
                (attribute(column), index.iter().find(|c| c.number == column.number))
            else {
                return Ok(Err(format!("column \"{}\" was dropped", column.name)));
            };
            if !found.is_not_null {
                return Ok(Err(format!("key column \"{}\" may be null now", column.name)));
            }
            key.push(KeyColumn {
                name: column.name.clone(),
                quoted: quoted(&column.name),
                type_name: found.type_name.clone(),
                is_by_text: !found.is_readable_for_ever,
                index: compared.clone(),
            });
            key_types.push(found.base_type.to_u32());
        }
    }
    definition.key_types = key_types;
    definition.is_uri_unique = match &definition.uri {
        Some(column) => is_unique(relation.oid, column.number)?,
        None => false,
    };
    let used = definition.used();
    let text = |column: &&Column| {
        let name = quoted(&column.name);
        // A file is told by its hash: its text would be twice as long.
        if attribute(column).is_some_and(|a: &Attribute| a.is_bytea) {
            format!("pg_catalog.sha256(t.{name})")
        } else {
            format!("t.{name}")
        }
    };
    let whole = format!("ROW({})::pg_catalog.text", used.iter().map(text).collect::<Vec<_>>().join(", "));
    let is_file = |column: &&&Column| attribute(column).is_some_and(|a: &Attribute| a.is_bytea);
    let sizes: Vec<String> = used
        .iter()
        .filter(is_file)
        .map(|c| format!("coalesce(pg_catalog.octet_length(t.{}), 0)", quoted(&c.name)))
        .collect();
    let is_plain =
        used.iter().copied().chain(&definition.key).all(|c| attribute(c).is_some_and(|a| a.is_plain));
    // Rows of tables that inherit from this one are not its own.
    let only = if relation.kind == "r" { "ONLY " } else { "" };
    Ok(Ok(SourceTable {
        from: format!("{only}{} AS t", relation.full_name),
        relation,
        definition,
        key,
        whole,
        files: if sizes.is_empty() { "0".to_owned() } else { sizes.join(" + ") },
        is_plain,
    }))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A key: the text of each of its columns. Of a table without key: one hash in hexadecimal.
pub(crate) type Key = Vec<String>;

/// State of a row.
pub(crate) struct RowState {
    /// Index into the keys asked for.
    pub(crate) index: usize,
    pub(crate) version: String,
    /// `None` if the version is the known one.
    pub(crate) sha256: Option<Vec<u8>>,
    /// Bytes of the used columns, about.
    pub(crate) bytes: i64,
}

/// What a document is made of.
pub(crate) struct RowContent {
    pub(crate) index: usize,
    pub(crate) version: String,
    pub(crate) sha256: Vec<u8>,
    pub(crate) texts: Vec<String>,
    pub(crate) file: Option<Vec<u8>>,
    pub(crate) title: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) metadata: Vec<Option<BoundedJsonb>>,
    pub(crate) key_values: Vec<Option<serde_json::Value>>,
    pub(crate) owner: Option<String>,
}

/// A document whose row is looked for.
pub(crate) struct Wanted {
    pub(crate) key: Key,
    pub(crate) version: String,
    pub(crate) sha256: Vec<u8>,
}

impl SourceTable {
    /// Whether rows are told apart by a key.
    pub(crate) fn has_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// Runs `work` so that equal values have equal texts, whatever the session's settings.
    pub(crate) fn with_plain_text<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_plain { work() } else { elevation::with_settings(transition::PLAIN_TEXT, work) }
    }

    fn sha256(&self) -> String {
        format!("pg_catalog.sha256(pg_catalog.convert_to({}, 'UTF8'))", self.whole)
    }

    fn key_texts(&self) -> String {
        let texts: Vec<String> =
            self.key.iter().map(|k| format!("pg_catalog.format('%s', t.{})", k.quoted)).collect();
        if texts.is_empty() {
            format!("ARRAY[pg_catalog.encode({}, 'hex')]", self.sha256())
        } else {
            format!("ARRAY[{}]", texts.join(", "))
        }
    }

    /// `unnest(…) WITH ORDINALITY h (k0, …, n)` with these further columns, joined with the rows of the keys.
    fn matched(&self, extra: &[(&str, &str)]) -> String {
        let width = self.key.len().max(1);
        let mut arrays: Vec<String> =
            (1..=width).map(|i| format!("pg_catalog.unnest(${i}::pg_catalog.text[])")).collect();
        let mut names: Vec<String> = (0..width).map(|i| format!("k{i}")).collect();
        for (name, type_name) in extra {
            arrays.push(format!("pg_catalog.unnest(${}::{type_name}[])", arrays.len() + 1));
            names.push((*name).to_owned());
        }
        let mut tests: Vec<String> = self
            .key
            .iter()
            .enumerate()
            .map(|(i, k)| match k.is_by_text {
                true => format!("pg_catalog.format('%s', t.{}) OPERATOR(pg_catalog.=) h.k{i}", k.quoted),
                false => format!("t.{} {} h.k{i}::{}", k.quoted, k.index.equal, k.type_name),
            })
            .collect();
        if tests.is_empty() {
            tests.push(format!("pg_catalog.encode({}, 'hex') OPERATOR(pg_catalog.=) h.k0", self.sha256()));
        }
        format!(
            "ROWS FROM ({}) WITH ORDINALITY AS h ({}, n) JOIN {} ON {}",
            arrays.join(", "),
            names.join(", "),
            self.from,
            tests.join(" AND ")
        )
    }

    fn key_args(&self, keys: &[&Key]) -> Vec<spi::Arg> {
        let width = self.key.len().max(1);
        (0..width)
            .map(|i| {
                keys.iter().map(|k| k.get(i).cloned().unwrap_or_default()).collect::<Vec<String>>().into()
            })
            .collect()
    }

    /// The next keys after a position, in the order of the key. As the owner.
    pub(crate) fn keys_after(&self, position: Option<&Key>, limit: i64) -> Result<Vec<Key>> {
        let mut condition = String::from("true");
        let mut args: Vec<spi::Arg> = vec![limit.into()];
        if let Some(position) = position {
            condition = self.after(0);
            args.extend(position.iter().map(|text| spi::Arg::from(text.as_str())));
        }
        let order: Vec<String> =
            self.key.iter().map(|k| format!("t.{} USING {}", k.quoted, k.index.less)).collect();
        let sql = format!(
            "SELECT {} FROM {} WHERE {condition} ORDER BY {} LIMIT $1",
            self.key_texts(),
            self.from,
            order.join(", ")
        );
        self.with_plain_text(|| spi::read_latest(&sql, args, |row| row.require::<Vec<String>>(1)))
    }

    /// Rows behind the position `$2, $3, …`, such that an index on the first columns serves.
    fn after(&self, at: usize) -> String {
        let k = &self.key[at];
        let operand = format!("${}::pg_catalog.text::{}", at + 2, k.type_name);
        if at + 1 == self.key.len() {
            return format!("t.{} {} {operand}", k.quoted, k.index.greater);
        }
        format!(
            "t.{0} {1} {operand} AND (t.{0} {2} {operand} OR ({3}))",
            k.quoted,
            k.index.at_least,
            k.index.greater,
            self.after(at + 1)
        )
    }

    /// Which of these keys rows have, by their texts alone: they may be of other columns or types. Reads the whole
    /// table. As the owner.
    pub(crate) fn present(&self, keys: &[&Key]) -> Result<Vec<usize>> {
        let mut by_text = self.clone();
        by_text.key.iter_mut().for_each(|column| column.is_by_text = true);
        let sql = format!("SELECT h.n FROM {}", by_text.matched(&[]));
        self.with_plain_text(|| {
            spi::read_latest(&sql, self.key_args(keys), |row| Ok(row.require::<i64>(1)? as usize - 1))
        })
    }

    /// The next keys of a range of whole numbers. As the owner.
    pub(crate) fn keys_between(&self, from: i64, to: i64, limit: i64) -> Result<Vec<Key>> {
        let Some(k) = self.key.first() else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {} FROM {} WHERE t.{q} OPERATOR(pg_catalog.>=) $1 AND t.{q} OPERATOR(pg_catalog.<=) $2
             ORDER BY t.{q} LIMIT $3",
            self.key_texts(),
            self.from,
            q = k.quoted
        );
        spi::read_latest(&sql, vec![from.into(), to.into(), limit.into()], |row| {
            row.require::<Vec<String>>(1)
        })
    }

    /// Hashes of all rows of a table without key. As the owner.
    pub(crate) fn all_hashes(&self) -> Result<Vec<Vec<u8>>> {
        let sql = format!("SELECT DISTINCT {} FROM {}", self.sha256(), self.from);
        self.with_plain_text(|| spi::read_latest(&sql, vec![], |row| row.require::<Vec<u8>>(1)))
    }

    /// Versions and hashes of the rows with these keys. As the owner.
    pub(crate) fn states(&self, keys: &[&Key], known_versions: Vec<String>) -> Result<Vec<RowState>> {
        let mut args = self.key_args(keys);
        args.push(known_versions.into());
        let sql = format!(
            "SELECT h.n, t.xmin::pg_catalog.text,
                    CASE WHEN t.xmin::pg_catalog.text OPERATOR(pg_catalog.=) h.x THEN NULL ELSE {} END,
                    CASE WHEN t.xmin::pg_catalog.text OPERATOR(pg_catalog.=) h.x THEN 0
                         ELSE pg_catalog.octet_length({}) END + ({})
             FROM {}",
            self.sha256(),
            self.whole,
            self.files,
            self.matched(&[("x", "pg_catalog.text")])
        );
        self.with_plain_text(|| {
            spi::read_latest(&sql, args, |row| {
                Ok(RowState {
                    index: row.require::<i64>(1)? as usize - 1,
                    version: row.require(2)?,
                    sha256: row.get(3),
                    bytes: row.require::<i32>(4)?.into(),
                })
            })
        })
    }

    /// The rows with these keys. As the owner.
    pub(crate) fn contents(&self, keys: &[&Key]) -> Result<Vec<RowContent>> {
        let d = &self.definition;
        let text = |c: &Column| format!("pg_catalog.format('%s', t.{})", quoted(&c.name));
        let texts = |columns: &[Column]| -> String {
            format!("ARRAY[{}]::pg_catalog.text[]", columns.iter().map(text).collect::<Vec<_>>().join(", "))
        };
        let values = |columns: &[Column]| -> String {
            let each: Vec<String> =
                columns.iter().map(|c| format!("pg_catalog.to_jsonb(t.{})", quoted(&c.name))).collect();
            format!("ARRAY[{}]::pg_catalog.jsonb[]", each.join(", "))
        };
        let optional = |column: &Option<Column>| column.as_ref().map_or("NULL".to_owned(), text);
        let mut sql = format!(
            "SELECT DISTINCT ON (h.n) h.n, t.xmin::pg_catalog.text, {}, {}, {}, {}, {}, {}, {}",
            self.sha256(),
            texts(&d.content),
            d.file.as_ref().map_or("NULL::pg_catalog.bytea".to_owned(), |c| format!("t.{}", quoted(&c.name))),
            optional(&d.title),
            optional(&d.uri),
            values(&d.metadata),
            values(&d.key),
        );
        // A line of its own, for it may end with a comment.
        let _ = match (&d.owner_column, &d.owner) {
            (Some(column), _) => write!(sql, ", {}", text(column)),
            (None, Some(expression)) => write!(sql, ", ({expression}\n)::pg_catalog.text"),
            (None, None) => write!(sql, ", NULL::pg_catalog.text"),
        };
        let _ = write!(sql, " FROM {} ORDER BY h.n", self.matched(&[]));
        let some = |text: Option<String>| text.filter(|t| !t.trim().is_empty());
        let json = |values: Vec<Option<BoundedJsonb>>| values.into_iter().map(|v| v?.0.ok()).collect();
        self.with_plain_text(|| {
            spi::read_latest(&sql, self.key_args(keys), |row| {
                Ok(RowContent {
                    index: row.require::<i64>(1)? as usize - 1,
                    version: row.require(2)?,
                    sha256: row.require(3)?,
                    texts: row.require(4)?,
                    file: row.get(5),
                    title: some(row.get(6)),
                    uri: some(row.get(7)),
                    metadata: row.require(8)?,
                    key_values: json(row.require(9)?),
                    owner: row.get(10),
                })
            })
        })
    }

    /// Which of these documents have a row that the current user sees, under its own policies, as it was
    /// indexed. `by_version`: they may read system columns, so the row's version spares the hash.
    pub(crate) fn visible(&self, wanted: &[Wanted], by_version: bool) -> Result<Vec<usize>> {
        let keys: Vec<&Key> = wanted.iter().map(|w| &w.key).collect();
        let mut args = self.key_args(&keys);
        args.push(wanted.iter().map(|w| w.version.clone()).collect::<Vec<_>>().into());
        args.push(wanted.iter().map(|w| w.sha256.clone()).collect::<Vec<_>>().into());
        let unchanged =
            if by_version { "t.xmin::pg_catalog.text OPERATOR(pg_catalog.=) h.x OR " } else { "" };
        let sql = format!(
            "SELECT h.n FROM {} WHERE {unchanged}{} OPERATOR(pg_catalog.=) h.s",
            self.matched(&[("x", "pg_catalog.text"), ("s", "pg_catalog.bytea")]),
            self.sha256(),
        );
        self.with_plain_text(|| spi::read_snapshot(&sql, args, |row| Ok(row.require::<i64>(1)? as usize - 1)))
    }

    /// Checks that the statements can be run, and so an owner's expression. As the owner.
    pub(crate) fn check(&self) -> Result<()> {
        self.contents(&[]).map(drop)
    }

    /// Key columns by name with a row's values.
    pub(crate) fn key_object(&self, values: &[Option<serde_json::Value>]) -> serde_json::Value {
        let pairs = self.key.iter().zip(values);
        pairs.map(|(k, v)| (k.name.clone(), v.clone().unwrap_or_default())).collect()
    }
}

/// How a key is stored: as it is, or as a JSON array where it has several columns.
pub(crate) fn key_text(key: &Key) -> String {
    match key.as_slice() {
        [one] => one.clone(),
        several => serde_json::to_string(several).unwrap_or_default(),
    }
}

/// The key behind a stored text.
pub(crate) fn key_of_text(text: &str, columns: usize) -> Result<Key> {
    if columns <= 1 {
        return Ok(vec![text.to_owned()]);
    }
    serde_json::from_str(text)
        .map_err(|e| Error::damaged("a stored key cannot be read").detail(e.to_string()))
}
