//! Tables as Markdown tables.

/// Most columns of a table; cells beyond go into the last one.
pub(crate) const MAX_COLUMNS: usize = 256;

/// A cell that spans rows is repeated in each, so that every row can be read alone, up to this many characters.
const MAX_REPEATED_CHARS: usize = 200;

/// Most bytes of repeated text in a table: a page could ask for gigabytes with a few spans.
const MAX_REPEATED_BYTES: usize = 1 << 20;

/// Most cells that spans and short rows add to a table, for the same reason.
pub(crate) const MAX_ADDED_CELLS: usize = 1_000_000;

/// Average characters of a cell beyond which a table of one or two columns without header is layout.
const LAYOUT_CELL_CHARS: usize = 500;

/// A table in the making.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Text that is repeated in rows to come, per column.
    spans: Vec<Option<(usize, String)>>,
    repeated_bytes: usize,
    added_cells: usize,
    in_head: bool,
}

#[derive(Default)]
struct Row {
    cells: Vec<String>,
    headers: usize,
    is_head: bool,
    page: Option<u32>,
}

/// A table as it is written.
pub(crate) enum Rendered {
    /// Lines of a Markdown table.
    Lines(Vec<String>),
    /// What only looked like a table: paragraphs.
    Paragraphs(Vec<String>),
}

impl Table {
    /// Rows from here on are, or are no longer, part of the head.
    pub(crate) fn set_head(&mut self, in_head: bool) {
        self.in_head = in_head;
    }

    /// Begins a row.
    pub(crate) fn begin_row(&mut self) {
        self.rows.push(Row { is_head: self.in_head, ..Row::default() });
    }

    /// A page begins with the last row.
    pub(crate) fn set_page(&mut self, page: Option<u32>) {
        if let Some(row) = self.rows.last_mut() {
            row.page = page;
        }
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self) {
        self.take_spans();
    }

    /// Adds a cell to the last row. A cell that spans columns is followed by empty ones.
    pub(crate) fn add_cell(&mut self, text: String, is_header: bool, columns: usize, rows: usize) {
        if self.rows.is_empty() {
            self.begin_row();
        }
        self.take_spans();
        let Some(row) = self.rows.last_mut() else { return };
        row.headers += usize::from(is_header);
        if row.cells.len() >= MAX_COLUMNS {
            if let Some(last) = row.cells.last_mut() {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(&text);
            }
            return;
        }
        let column = row.cells.len();
        let repeated =
            if text.chars().nth(MAX_REPEATED_CHARS).is_none() { text.clone() } else { String::new() };
        row.cells.push(text);
        let wanted = if self.added_cells < MAX_ADDED_CELLS { columns.clamp(1, MAX_COLUMNS) } else { 1 };
        let until = (column + wanted).min(MAX_COLUMNS);
        self.added_cells += until - column - 1;
        row.cells.resize(until, String::new());
        if rows > 1 {
            self.spans.resize(self.spans.len().max(until), None);
            for (offset, span) in self.spans[column..until].iter_mut().enumerate() {
                let text = if offset == 0 { repeated.clone() } else { String::new() };
                *span = Some((rows - 1, text));
            }
        }
    }

    /// Fills the columns that cells of earlier rows reach into, from the end of the last row on.
    fn take_spans(&mut self) {
        // The row in which a span begins has its cell already, so the span's column lies before its end.
        let Some(row) = self.rows.last_mut() else { return };
        while let Some(span) = self.spans.get_mut(row.cells.len())
            && let Some((left, text)) = span.take()
            && self.added_cells < MAX_ADDED_CELLS
        {
            self.added_cells += 1;
            let fits = self.repeated_bytes + text.len() <= MAX_REPEATED_BYTES;
            row.cells.push(if fits { text.clone() } else { String::new() });
            self.repeated_bytes += if fits { text.len() } else { 0 };
            if left > 1 {
                *span = Some((left - 1, text));
            }
        }
    }

    /// The table as Markdown.
    pub(crate) fn render(self) -> Rendered {
        self.render_with_pages().0
    }

    /// The table as Markdown, and the pages that begin with its lines; none where it is paragraphs.
    pub(crate) fn render_with_pages(mut self) -> (Rendered, Vec<Option<u32>>) {
        let mut owed = None;
        self.rows.retain_mut(|row| {
            owed = row.page.or(owed);
            let is_filled = row.cells.iter().any(|cell| !cell.is_empty());
            if is_filled {
                row.page = owed.take();
            }
            is_filled
        });
        let columns = self.rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
        let cells = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| !cell.is_empty()).count();
        let has_header = self.rows.iter().any(|row| row.headers > 0 || row.is_head);
        if cells <= 1 || (columns <= 2 && !has_header && self.chars() > LAYOUT_CELL_CHARS * cells) {
            let cells = self.rows.into_iter().flat_map(|row| row.cells);
            return (Rendered::Paragraphs(cells.filter(|cell| !cell.is_empty()).collect()), Vec::new());
        }
        // Rows may be shorter than the header; a huge table is left so.
        let is_padded = self.rows.len().saturating_mul(columns) <= MAX_ADDED_CELLS;
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        let mut pages = Vec::with_capacity(self.rows.len() + 1);
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::from("|");
            let width = if is_padded || index == 0 { columns } else { row.cells.len() };
            for column in 0..width {
                let cell = row.cells.get(column).map(String::as_str).unwrap_or_default();
                line.push(' ');
                escape_cell(cell, &mut line);
                line.push_str(if cell.is_empty() { "|" } else { " |" });
            }
            lines.push(line);
            pages.push(row.page);
            // Markdown knows one header row, and it must be there: the first row, whatever it is.
            if index == 0 {
                lines.push(format!("|{}", " --- |".repeat(columns)));
                pages.push(None);
            }
        }
        (Rendered::Lines(lines), pages)
    }

    fn chars(&self) -> usize {
        self.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.chars().count()).sum()
    }
}

/// A table written row by row into Markdown, without being held as a whole.
pub(crate) struct Lines {
    columns: usize,
    is_padded: bool,
    has_header: bool,
}

impl Lines {
    /// A table of so many rows, the longest of which has so many columns.
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        let columns = columns.min(MAX_COLUMNS);
        Self { columns, is_padded: rows.saturating_mul(columns) <= MAX_ADDED_CELLS, has_header: false }
    }

    /// Writes a row, the first of which is the header. What has more columns than a table may have, has the rest
    /// in its last one.
    pub(crate) fn row<'a>(&mut self, cells: impl Iterator<Item = &'a str>, out: &mut String) {
        let is_header = !std::mem::replace(&mut self.has_header, true);
        let wanted = if self.is_padded || is_header { self.columns } else { 0 };
        let mut columns = 0usize;
        out.push('|');
        for cell in cells {
            if columns == MAX_COLUMNS {
                out.truncate(out.len() - 1);
            } else {
                columns += 1;
                out.push(' ');
            }
            let before = out.len();
            escape_cell(&one_line(cell), out);
            out.push_str(if out.len() == before { "|" } else { " |" });
        }
        for _ in columns..wanted {
            out.push_str(" |");
        }
        out.push('\n');
        if is_header {
            out.push('|');
            out.extend(std::iter::repeat_n(" --- |", self.columns));
            out.push('\n');
        }
    }
}

/// A text without line breaks and other odd white space.
pub(crate) fn one_line(text: &str) -> String {
    super::html::clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes a cell's text so that its pipes part no cells.
pub(crate) fn escape_cell(text: &str, out: &mut String) {
    for (index, part) in text.split('|').enumerate() {
        if index > 0 {
            out.push_str("\\|");
        }
        out.push_str(part);
    }
}
