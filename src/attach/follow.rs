//! Following an attached table in the background: from noted keys and passes over the whole table to documents.
//!
//! One step is one transaction: some noted changes, and some rows of a pass. Whatever is noted was committed
//! together with its rows, so a statement that begins after the notes were read sees the rows as they are now; a
//! change that comes later is noted anew. Everything ends in the same place: these keys, as the table has them now.

use super::origin;
use crate::config;
use crate::document::target;
use crate::error::Result;
use crate::pg::bounded_jsonb::{BoundedJsonb, Unreadable};
use crate::pg::{Oid, elevation, interrupts, principal, random};
use crate::storage::attached_row::{self, KnownRow, NewRow, Refusal};
use crate::storage::attachment::{self, Attachment, Change, Pass, Progress};
use crate::storage::source::{Key, RowContent, SourceTable, key_of_text, key_text};
use crate::storage::{Id, collection};
use rag_core::hash::sha256;
use rag_core::metadata::{MOST_LEVELS, levels_exceed};
use serde_json::json;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Keys of one step, of changes and of a pass each.
const KEYS: i64 = 1000;

/// Keys that are compared as texts at once, each time with the whole table.
const TEXT_KEYS: i64 = 100_000;

/// How often a step's statements on the table may take together as long as one of them may.
const STATEMENTS: u32 = 5;

/// Rows, and bytes of them, that are read at once.
const ROWS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: i64 = 16 * 1024 * 1024;

/// What spares a row's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// That its version is the known one.
    Versions,
    /// Nothing: the table may have been altered, and its values with it.
    Nothing,
}

/// An attached table, ready to be followed.
pub(super) struct Follower {
    pub(super) collection: Id,
    table: Oid,
    name: String,
    pub(super) owner: String,
    pub(super) source: SourceTable,
    pub(super) domains: HashMap<String, Id>,
    /// What the table's owner's code took so far.
    spent: Cell<Duration>,
}

impl Follower {
    pub(super) fn new(
        collection: Id,
        table: Oid,
        (name, owner): (String, String),
        source: SourceTable,
    ) -> Self {
        Self { collection, table, name, owner, source, domains: HashMap::new(), spent: Cell::default() }
    }

    /// Runs `work` as the owner of the table: its policies, types and expressions are theirs, and may not keep the
    /// worker from others for ever.
    pub(super) fn as_owner<T>(&self, work: impl FnOnce(&SourceTable) -> T) -> T {
        let at_most = config::attached_timeout();
        let left = (at_most * STATEMENTS).saturating_sub(self.spent.get()).min(at_most);
        let begun = Instant::now();
        let done = elevation::restricted_to(self.source.relation.owner, || {
            interrupts::within(left.max(Duration::from_millis(1)), || work(&self.source))
        });
        self.spent.set(self.spent.get() + begun.elapsed());
        done
    }

    /// Does a step, in the caller's transaction.
    pub(super) fn step(&mut self, attachment: &Attachment) -> Result<()> {
        let (mut pass, mut position) = (attachment.pass, attachment.position.clone());
        let mut restarted = false;
        let mut rows_read = 0;
        if self.source.definition.key_types != attachment.definition.key_types {
            self.forget_other_keys()?;
            (pass, position, restarted) = (Some(Pass::Scan), None, true);
        }
        if self.source.definition.names_in_metadata() != attachment.definition.names_in_metadata()
            || self.source.definition.is_uri_unique != attachment.definition.is_uri_unique
        {
            attachment::forget_rows(self.collection)?;
            (pass, position, restarted) = (Some(Pass::Scan), None, true);
        }
        if self.follow_changes()? {
            (pass, position, restarted) = (Some(Pass::Scan), None, true);
        }
        if !self.source.has_key() && pass.is_some() {
            let (rows, is_done) = self.compare_all()?;
            rows_read = rows;
            restarted = true;
            if is_done {
                (pass, position) = (None, None);
            }
        } else if pass == Some(Pass::Scan) {
            let width = attachment.definition.key.len();
            let after = position.as_deref().map(|text| key_of_text(text, width)).transpose()?;
            let keys = self.as_owner(|source| source.keys_after(after.as_ref(), KEYS))?;
            rows_read = keys.len() as i64;
            let is_last = rows_read < KEYS;
            position = keys.last().map(key_text);
            self.follow_keys(keys, Trust::Nothing)?;
            if is_last {
                (pass, position) = (Some(Pass::Sweep), None);
            }
        } else if pass == Some(Pass::Sweep) {
            let texts = attached_row::keys_after(self.collection, position.as_deref(), KEYS)?;
            let is_last = (texts.len() as i64) < KEYS;
            position = texts.last().cloned();
            let keys = self.keys(texts)?;
            self.follow_keys(keys, Trust::Versions)?;
            if is_last {
                (pass, position) = (None, None);
            }
        }
        attachment::progress(
            self.collection,
            &Progress {
                origin: &origin(self.table),
                source_name: &self.source.relation.full_name,
                definition: &self.source.definition,
                pass,
                position,
                rows_read,
                restarted,
            },
        )
    }

    fn keys(&self, texts: Vec<String>) -> Result<Vec<Key>> {
        let width = self.source.definition.key.len();
        texts.iter().map(|text| key_of_text(text, width)).collect()
    }

    /// Deletes what was made of keys that no row has now, so that all that is left can be read as the key's present
    /// types. The pass that follows finds the rest.
    fn forget_other_keys(&self) -> Result<()> {
        attachment::forget_all_changes(self.collection)?;
        let width = self.source.definition.key.len();
        let mut last: Option<String> = None;
        loop {
            let texts = attached_row::keys_after(self.collection, last.as_deref(), TEXT_KEYS)?;
            let Some(end) = texts.last() else { return Ok(()) };
            last = Some(end.clone());
            let keys: Vec<Option<Key>> = texts.iter().map(|text| key_of_text(text, width).ok()).collect();
            let asked: Vec<&Key> = keys.iter().flatten().filter(|key| key.len() == width).collect();
            let present: HashSet<String> = self
                .as_owner(|source| source.present(&asked))?
                .into_iter()
                .map(|index| key_text(asked[index]))
                .collect();
            let gone: Vec<String> = texts.into_iter().filter(|text| !present.contains(text)).collect();
            attached_row::delete_keys(self.collection, &gone)?;
        }
    }

    /// Follows noted changes; true if one says that anything may have changed.
    fn follow_changes(&mut self) -> Result<bool> {
        let changes = attachment::changes(self.collection, KEYS)?;
        if changes.is_empty() {
            return Ok(false);
        }
        let mut keys: Vec<Key> = Vec::new();
        let mut done: Vec<Id> = Vec::new();
        let mut anything = false;
        for (id, change) in changes {
            match change {
                Change::All => anything = true,
                // Of a time when the table was attached by another key.
                _ if !self.source.has_key() => anything = true,
                Change::Keys(texts) => keys.extend(self.keys(texts)?),
                Change::Range(from, to) => {
                    let found = self.as_owner(|source| source.keys_between(from, to, KEYS))?;
                    let last = found.last().and_then(|key| key.first()?.parse::<i64>().ok());
                    let is_full = found.len() as i64 >= KEYS;
                    keys.extend(found);
                    if let Some(last) = last.filter(|last| is_full && *last < to) {
                        attachment::shorten_range(self.collection, id, last + 1)?;
                        break;
                    }
                }
            }
            done.push(id);
        }
        self.follow_keys(keys, Trust::Versions)?;
        attachment::forget_changes(self.collection, &done)?;
        Ok(anything)
    }

    /// Makes the documents of these keys what the table's rows are now.
    fn follow_keys(&mut self, keys: Vec<Key>, trust: Trust) -> Result<()> {
        let mut seen: HashSet<String> = HashSet::with_capacity(keys.len());
        let keys: Vec<(String, Key)> = keys
            .into_iter()
            .map(|key| (key_text(&key), key))
            .filter(|(text, _)| seen.insert(text.clone()))
            .collect();
        for part in keys.chunks(KEYS as usize) {
            self.each_apart(part, |this, keys| this.follow_part(keys, trust))?;
        }
        Ok(())
    }

    fn follow_part(&mut self, keys: &[(String, Key)], trust: Trust) -> Result<usize> {
        let texts: Vec<String> = keys.iter().map(|(text, _)| text.clone()).collect();
        let known: HashMap<String, KnownRow> = attached_row::of_keys(self.collection, &texts)?
            .into_iter()
            .map(|row| (row.key.clone(), row))
            .collect();
        let version = |text: &String| {
            let known = known.get(text).filter(|_| trust == Trust::Versions);
            known.map(|row| row.version.clone()).unwrap_or_default()
        };
        let versions = texts.iter().map(version).collect();
        let asked: Vec<&Key> = keys.iter().map(|(_, key)| key).collect();
        let states = self.as_owner(|source| source.states(&asked, versions))?;

        let mut missing: HashSet<&str> = known.keys().map(String::as_str).collect();
        let mut same: Vec<(Id, Id, String)> = Vec::new();
        let mut wanted: Vec<(usize, i64)> = Vec::new();
        for state in states {
            let text = texts[state.index].as_str();
            missing.remove(text);
            match (known.get(text), &state.sha256) {
                (Some(_), None) => {}
                // Who owns a row is not part of its hash.
                (Some(row), Some(hash)) if row.sha256 == *hash && !self.source.definition.has_owners() => {
                    same.push((row.domain, row.document, state.version));
                }
                _ => wanted.push((state.index, state.bytes)),
            }
        }
        let gone: Vec<(Id, Id)> =
            missing.iter().filter_map(|text| known.get(*text)).map(|r| (r.domain, r.document)).collect();
        attached_row::delete(&gone)?;
        attached_row::set_versions(&same)?;

        let mut rest = wanted.as_slice();
        let mut stored = 0;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take(ROWS_AT_ONCE).take_while(|(_, size)| {
                bytes += size;
                bytes <= BYTES_AT_ONCE
            });
            let (part, others) = rest.split_at(fits.count().max(1));
            rest = others;
            let part: Vec<&(String, Key)> = part.iter().map(|(index, _)| &keys[*index]).collect();
            stored += self.store(&part, &known)?;
        }
        Ok(stored)
    }

    /// A table without key: compares the hashes of all its rows with those known, and stores some of the new. Returns
    /// how many different rows there are, and whether nothing is left.
    fn compare_all(&mut self) -> Result<(i64, bool)> {
        let hashes: HashSet<String> =
            self.as_owner(SourceTable::all_hashes)?.iter().map(|hash| hexadecimal(hash)).collect();
        let known: HashSet<String> = attached_row::all_keys(self.collection)?.into_iter().collect();
        let gone: Vec<String> = known.difference(&hashes).cloned().collect();
        for part in gone.chunks(KEYS as usize) {
            let rows = attached_row::of_keys(self.collection, part)?;
            attached_row::delete(&rows.iter().map(|r| (r.domain, r.document)).collect::<Vec<_>>())?;
        }
        let mut new: Vec<&String> = hashes.difference(&known).collect();
        new.sort_unstable();
        let mut rest = new.as_slice();
        let mut stored = 0;
        // What gives no document is new every time: it must not keep the others waiting.
        while stored == 0 && !rest.is_empty() {
            let (some, others) = rest.split_at(rest.len().min(KEYS as usize));
            let keys: Vec<(String, Key)> =
                some.iter().map(|hash| ((*hash).clone(), vec![(*hash).clone()])).collect();
            stored = self.store_all(&keys)?;
            rest = others;
        }
        Ok((hashes.len() as i64, rest.is_empty()))
    }

    fn store_all(&mut self, keys: &[(String, Key)]) -> Result<usize> {
        let mut stored = 0;
        for part in keys.chunks(ROWS_AT_ONCE) {
            stored += self.each_apart(part, |this, keys| {
                this.store(&keys.iter().collect::<Vec<_>>(), &HashMap::new())
            })?;
        }
        Ok(stored)
    }

    /// Reads rows and writes their documents; returns how many there are.
    fn store(&mut self, keys: &[&(String, Key)], known: &HashMap<String, KnownRow>) -> Result<usize> {
        let asked: Vec<&Key> = keys.iter().map(|(_, key)| key).collect();
        let contents = self.as_owner(|source| source.contents(&asked))?;
        let (mut inserted, mut updated, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        let mut found: HashSet<usize> = HashSet::new();
        for content in contents {
            let index = content.index;
            let (text, _) = keys[index];
            let row = known.get(text);
            let Some(mut new) = self.document(text, content)? else { continue };
            found.insert(index);
            match row {
                Some(row) if row.domain == new.domain && new.refusal.is_none() => {
                    new.document = row.document;
                    updated.push(new);
                }
                Some(row) => {
                    gone.push((row.domain, row.document));
                    inserted.push(new);
                }
                None => inserted.push(new),
            }
        }
        // Gone meanwhile, or without anything to index.
        let without = keys.iter().enumerate().filter(|(index, _)| !found.contains(index));
        gone.extend(without.filter_map(|(_, (text, _))| known.get(text)).map(|r| (r.domain, r.document)));
        attached_row::delete(&gone)?;
        self.write(&inserted, &updated)?;
        Ok(inserted.len() + updated.len())
    }

    pub(super) fn write(&self, inserted: &[NewRow], updated: &[NewRow]) -> Result<()> {
        if self.source.definition.uri.is_some() {
            attached_row::release_uris(&self.owner, &self.name, inserted)?;
            attached_row::release_uris(&self.owner, &self.name, updated)?;
        }
        let has_title = self.source.definition.title.is_some();
        attached_row::update(self.collection, updated, has_title)?;
        attached_row::insert(self.collection, &self.owner, &self.name, inserted)
    }

    /// What is stored of a row; `None` if it has nothing to index, or belongs to nobody.
    fn document(&mut self, key: &str, row: RowContent) -> Result<Option<NewRow>> {
        let Some(owner) = self.owner_of(&row)? else { return Ok(None) };
        let definition = &self.source.definition;
        let labels = definition.content.iter().map(|c| c.label.as_deref());
        let content = assemble(labels.zip(row.texts.iter().map(String::as_str)));
        let file = row.file.filter(|bytes| !bytes.is_empty());
        let size = content.len().max(file.as_ref().map_or(0, Vec::len));
        if size == 0 {
            return Ok(None);
        }
        let limit = config::max_document_bytes();
        let mut refusal =
            (size as u64 > limit).then(|| format!("document has {size} bytes, but the limit is {limit}"));
        let is_labelled = definition.content.iter().any(|c| c.label.is_some());
        let media_type = definition.media_type.clone().or(is_labelled.then(|| "text/markdown".to_owned()));
        let table = &self.source.relation.full_name;
        let key_columns = self.source.key_object(&row.key_values);
        let mut metadata = serde_json::Map::new();
        for (column, value) in definition.metadata.iter().zip(row.metadata) {
            match value {
                // In the document's metadata it is one level deeper.
                Some(BoundedJsonb(Ok(value))) if levels_exceed(&value, MOST_LEVELS - 1) => {
                    refusal = Some(too_deep(&column.name));
                }
                Some(BoundedJsonb(Err(Unreadable::NumberTooLarge))) => {
                    refusal =
                        Some(format!("a number in column \"{}\" is beyond double precision", column.name));
                }
                Some(BoundedJsonb(Err(Unreadable::TooDeep))) => refusal = Some(too_deep(&column.name)),
                Some(BoundedJsonb(Ok(value))) => {
                    metadata.insert(column.name.clone(), value);
                }
                None => {}
            }
        }
        metadata.insert("source_row".to_owned(), json!({ "table": table, "key": key_columns }));
        let mut uri = self.uri(row.uri.clone(), key);
        let name = attached_row::name_for(&owner, &self.owner, &self.name);
        if let Err(error) = target::check_uri(&name, &owner, &uri) {
            if row.uri.is_some() {
                refusal = Some(error.message);
            }
            uri = self.hashed_uri(key);
        }
        let (content, file) = match (&refusal, file) {
            (Some(_), _) => (Some(String::new()), None),
            (None, Some(bytes)) => (None, Some(bytes)),
            (None, None) => (Some(content), None),
        };
        let digest = match (&content, &file) {
            (Some(text), _) => sha256(text.as_bytes()),
            (None, Some(bytes)) => sha256(bytes),
            (None, None) => sha256(b""),
        };
        Ok(Some(NewRow {
            domain: self.domain(&owner)?,
            document: Id::from_be_bytes(random::new_id()?),
            owner,
            key: key.to_owned(),
            key_columns,
            sha256: row.sha256,
            version: row.version,
            title: row.title,
            uri,
            media_type,
            content,
            file,
            content_sha256: digest.to_vec(),
            metadata: metadata.into(),
            refusal: refusal.map(|error| Refusal { sqlstate: "54000".to_owned(), error }),
        }))
    }

    fn owner_of(&self, row: &RowContent) -> Result<Option<String>> {
        if !self.source.definition.has_owners() {
            return Ok(Some(self.owner.clone()));
        }
        let owner = row.owner.as_deref().filter(|owner| *owner != "public");
        Ok(owner.filter(|owner| principal::existing_role(owner).is_ok()).map(str::to_owned))
    }

    pub(super) fn domain(&mut self, owner: &str) -> Result<Id> {
        if self.domains.is_empty() {
            self.domains =
                attachment::domains(self.collection)?.into_iter().map(|(id, owner)| (owner, id)).collect();
        }
        if let Some(domain) = self.domains.get(owner) {
            return Ok(*domain);
        }
        let made = collection::ensure_domain(attachment::new_attached_id()?, self.collection, owner)?;
        self.domains.insert(owner.to_owned(), made);
        Ok(made)
    }

    /// A URI of a row whose own is too long.
    pub(super) fn hashed_uri(&self, key: &str) -> String {
        format!("{}/sha256:{}", self.source.relation.full_name, hexadecimal(&sha256(key.as_bytes())))
    }

    /// A URI that no other row's document can have, said without a look at the others: a reader must not learn from
    /// it what they hold.
    fn uri(&self, value: Option<String>, key: &str) -> String {
        let (definition, table) = (&self.source.definition, &self.source.relation.full_name);
        if definition.uri.is_none() {
            return format!("{table}/{key}");
        }
        // So that the last # is ours: these are encoded, the quote because a table's name may hold a #.
        let key = key.replace('%', "%25").replace('#', "%23").replace('"', "%22");
        let own = format!("{table}/");
        match value {
            Some(value) if definition.is_uri_unique && !value.starts_with(&own) => value,
            Some(value) => format!("{value}#{key}"),
            None => own + &key,
        }
    }
}

fn too_deep(column: &str) -> String {
    format!("column \"{column}\" is nested more than {MOST_LEVELS} levels deep")
}

/// The text of a document: its columns in their order, those with a label under a heading.
fn assemble<'a>(columns: impl Iterator<Item = (Option<&'a str>, &'a str)>) -> String {
    let parts: Vec<String> = columns
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(label, text)| match label {
            Some(label) => format!("## {label}\n\n{text}"),
            None => text.to_owned(),
        })
        .collect();
    parts.join("\n\n")
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
