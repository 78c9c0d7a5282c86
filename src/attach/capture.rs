//! What a statement changed in an attached table, noted by its trigger as cheaply as can be: one row per
//! statement, or per thousand keys, and for inserted rows with consecutive numbers one row per range.

use super::origin;
use crate::error::{Error, Result};
use crate::pg::transition::{Key, Operation, Output, Rows, Side, Statement, with_plain_text};
use crate::pg::{Oid, elevation, shared};
use crate::storage::attachment::{self, Change, Watched};
use crate::storage::{relation, source};

/// Keys of one noted change.
const KEYS: usize = 1000;

/// Numbers looked at together for ranges.
const NUMBERS: usize = 50_000;

/// Notes what a statement changed, for each collection that its table, or one that this is a partition of, is attached to.
pub(crate) fn note_statement(statement: &Statement) -> Result<()> {
    let watching = elevation::elevated(|| attachment::watching(statement.table))?;
    for watched in &watching {
        let noted = note(statement, watched)?;
        if noted {
            shared::request_work_at_commit();
        }
    }
    Ok(())
}

fn note(statement: &Statement, watched: &Watched) -> Result<bool> {
    let write = |change: Change| elevation::elevated(|| attachment::note_change(watched.collection, change));
    if statement.operation == Operation::Truncate {
        write(Change::All)?;
        return Ok(true);
    }
    let missing = || Error::internal("the trigger of an attached table has no transition table");
    let old = match statement.operation {
        Operation::Insert => None,
        _ => Some(statement.rows(Side::Old).ok_or_else(missing)?),
    };
    let new = match statement.operation {
        Operation::Delete => None,
        _ => Some(statement.rows(Side::New).ok_or_else(missing)?),
    };
    // Once it goes on, it begins anew; that this is one more reason to look is all there is to say.
    let columns = if watched.is_stopped { None } else { key_columns(statement.table, watched)? };
    let Some(columns) = columns else {
        write(Change::All)?;
        return Ok(true);
    };
    let outputs = new.as_ref().or(old.as_ref()).and_then(|rows| rows.outputs(&columns));
    let Some(outputs) = outputs.filter(|_| !columns.is_empty()) else {
        // Without key, or with a dropped one: a worker compares all rows, if there are any that changed.
        let changed = [old, new].into_iter().flatten().any(|mut rows| rows.next(&[]).is_some());
        if changed {
            write(Change::All)?;
        }
        return Ok(changed);
    };
    with_plain_text(&outputs, || {
        let mut noted = Noted { write: &write, texts: Vec::new(), numbers: Vec::new(), any: false };
        read(old, new, &outputs, &mut noted)?;
        noted.flush()
    })
}

/// Numbers of the key's columns in the table that fired the trigger. `None` if they cannot be told.
fn key_columns(table: Oid, watched: &Watched) -> Result<Option<Vec<i16>>> {
    let key = &watched.definition.key;
    if table == watched.source && watched.origin == origin(watched.source) {
        return Ok(Some(key.iter().map(|c| c.number).collect()));
    }
    // A partition may have its columns in another order, under the same names.
    let attributes = relation::attributes(table)?;
    let number = |name: &str| attributes.iter().find(|a| a.name == name).map(|a| a.number);
    if table == watched.source {
        return Ok(key.iter().map(|c| number(&c.name)).collect());
    }
    let parents = relation::attributes(watched.source)?;
    let is_current = watched.origin == origin(watched.source);
    let name = |number: i16| parents.iter().find(|a| a.number == number).map(|a| a.name.as_str());
    Ok(key.iter().map(|c| number(if is_current { name(c.number)? } else { &c.name })).collect())
}

fn read(
    mut old: Option<Rows<'_>>,
    mut new: Option<Rows<'_>>,
    outputs: &[Output],
    noted: &mut Noted<'_>,
) -> Result<()> {
    loop {
        let before = old.as_mut().and_then(|rows| rows.next(outputs));
        let after = new.as_mut().and_then(|rows| rows.next(outputs));
        match (before, after) {
            (None, None) => return Ok(()),
            (before, Some(after)) => {
                // An update keeps the order: the same place is the same row.
                if let Some(before) = before.filter(|before| *before != after) {
                    noted.gone(before)?;
                }
                noted.there(after)?;
            }
            (Some(before), None) => noted.gone(before)?,
        }
    }
}

struct Noted<'a> {
    write: &'a dyn Fn(Change) -> Result<()>,
    texts: Vec<String>,
    numbers: Vec<i64>,
    any: bool,
}

impl Noted<'_> {
    /// A row that is there after the statement.
    fn there(&mut self, key: Key) -> Result<()> {
        match key {
            Key::Integer(number) => {
                self.numbers.push(number);
                if self.numbers.len() == NUMBERS { self.flush_numbers() } else { Ok(()) }
            }
            Key::Text(text) => self.text(text),
            Key::Texts(texts) => self.text(source::key_text(&texts)),
        }
    }

    /// A row that is not there any more: it must be looked for by its own key.
    fn gone(&mut self, key: Key) -> Result<()> {
        match key {
            Key::Integer(number) => self.text(number.to_string()),
            Key::Text(text) => self.text(text),
            Key::Texts(texts) => self.text(source::key_text(&texts)),
        }
    }

    fn text(&mut self, text: String) -> Result<()> {
        self.texts.push(text);
        if self.texts.len() == KEYS { self.flush_texts() } else { Ok(()) }
    }

    fn flush_texts(&mut self) -> Result<()> {
        if self.texts.is_empty() {
            return Ok(());
        }
        self.any = true;
        (self.write)(Change::Keys(std::mem::take(&mut self.texts)))
    }

    fn flush_numbers(&mut self) -> Result<()> {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.sort_unstable();
        numbers.dedup();
        match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) if is_dense(*first, *last, numbers.len()) => {
                self.any = true;
                (self.write)(Change::Range(*first, *last))
            }
            _ => numbers.into_iter().try_for_each(|number| self.text(number.to_string())),
        }
    }

    fn flush(&mut self) -> Result<bool> {
        self.flush_numbers()?;
        self.flush_texts()?;
        Ok(self.any)
    }
}

/// Whether a range costs less than its numbers: many, and at least every other one of the range.
fn is_dense(first: i64, last: i64, count: usize) -> bool {
    count > 8 && last.abs_diff(first) < 2 * count as u64
}
