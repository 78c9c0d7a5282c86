//! A table of questions with what is right for each: columns but `id` and `question` may be missing, or NULL.

use super::{Kind, MAX_QUERIES, Table};
use crate::error::Result;
use crate::pg::Oid;
use rag_core::evaluate::answers::Expected;

/// A question of the caller's table.
pub(crate) struct JudgedQuestion {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) expected: Expected,
}

/// Columns that need not be there, in the order of the statement behind `id` and `question`.
const OPTIONAL: [(&str, Kind); 4] =
    [("answer", Kind::Text), ("quote", Kind::Text), ("document", Kind::Any), ("answerable", Kind::Boolean)];

/// The questions, in the order of their ids: `id` of any type that has an order, `question` a text; `answer` and `quote`
/// texts, `document` of any type, `answerable` a boolean. Errors as [`super::queries`].
pub(crate) fn questions(table: Oid) -> Result<Vec<JudgedQuestion>> {
    let table = Table::open(table, "questions", &[("id", Kind::Any), ("question", Kind::Text)])?;
    let present = table.present(&OPTIONAL)?;
    let optional = OPTIONAL.iter().map(|(name, kind)| match (present.contains(name), kind) {
        (true, Kind::Boolean) => format!("t.\"{name}\""),
        (true, _) => format!("t.\"{name}\"::pg_catalog.text"),
        (false, Kind::Boolean) => "NULL::pg_catalog.bool".to_owned(),
        (false, _) => "NULL::pg_catalog.text".to_owned(),
    });
    let sql = format!(
        "SELECT t.\"id\"::pg_catalog.text, t.\"question\"::pg_catalog.text, {} FROM {} AS t ORDER BY t.\"id\" LIMIT $1",
        optional.collect::<Vec<_>>().join(", "),
        table.full_name()
    );
    let mut rows = Vec::new();
    table.read(&sql, MAX_QUERIES, |row| {
        let expected = Expected {
            answer: row.get(3),
            quote: row.get(4),
            document: row.get(5),
            is_answerable: row.get::<bool>(6).unwrap_or(true),
        };
        let question = JudgedQuestion {
            id: table.value(row, 1, "id")?,
            text: table.value(row, 2, "question")?,
            expected,
        };
        let texts = [&question.expected.answer, &question.expected.quote, &question.expected.document];
        let bytes = texts.into_iter().flatten().map(String::len).sum::<usize>();
        let bytes = bytes + question.id.len() + question.text.len();
        rows.push(question);
        Ok(bytes)
    })?;
    table.require_once(rows.iter().map(|row| row.id.as_str()))?;
    Ok(rows)
}
