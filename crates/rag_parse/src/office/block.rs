//! Paragraphs, lists and tables of office documents, and how they are written as Markdown.

use super::text::Text;
use crate::table::{Rendered, Table};
use crate::writer::Writer;

/// Longest heading in characters; what is longer is a paragraph that only looks like one.
const MAX_HEADING_CHARS: usize = 300;

/// Average characters of a cell beyond which a table of one or two columns arranges text rather than data.
const LAYOUT_CELL_CHARS: usize = 500;

/// Most columns that a cell of a table's header may name, and its longest text in bytes.
const MAX_NAMED_COLUMNS: usize = 16;
const MAX_NAME_BYTES: usize = 200;

/// A block of text.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    Paragraph(Kind, Text),
    Grid(Grid),
    /// A footnote or endnote: its sign and what it says.
    Note(String, Vec<Block>),
    /// What is written from here on stands on this page.
    Page(u32),
}

/// What a paragraph is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Body,
    Heading(u8),
    Item(Item),
    /// Goes on with an item of this level, or with that of the deepest.
    Continued(usize),
    Quote,
    Code,
}

/// A list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Depth, from 0.
    pub(crate) level: usize,
    /// Items of one list share it.
    pub(crate) list: u32,
    /// The number as the document shows it, such as `3.` or `1.2.`; empty for a bullet.
    pub(crate) number: String,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grid {
    pub(crate) rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) is_head: bool,
    pub(crate) cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) blocks: Vec<Block>,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Grid {
    /// Whether it arranges text rather than data: a single cell is a box around it, and headings or long texts
    /// in one or two columns are a page's own.
    fn is_layout(&self) -> bool {
        let cells = || self.rows.iter().flat_map(|row| &row.cells);
        let columns = self.rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
        let filled = cells().filter(|cell| !cell.is_blank()).count();
        if filled <= 1 {
            return true;
        }
        let below_head = self.rows.iter().skip(1).flat_map(|row| &row.cells);
        let has_headings = below_head
            .flat_map(|cell| &cell.blocks)
            .any(|block| matches!(block, Block::Paragraph(Kind::Heading(_), text) if !text.is_blank()));
        let chars: usize = cells().flat_map(|cell| &cell.blocks).map(Block::chars).sum();
        columns <= 2 && (has_headings || chars > LAYOUT_CELL_CHARS * filled)
    }
}

impl Block {
    /// Paragraphs and cells in it, as limits count them.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Grid(grid) => grid.rows.iter().map(|row| row.cells.len()).sum(),
            Self::Paragraph(..) | Self::Note(..) | Self::Page(_) => 1,
        }
    }
}

impl Cell {
    fn is_blank(&self) -> bool {
        self.blocks.iter().all(Block::is_blank)
    }

    /// The page that begins before the cell's first word.
    fn begins_page(&self) -> Option<u32> {
        let first = self.blocks.iter().find(|block| !block.is_blank())?;
        match first {
            Block::Paragraph(_, text) => text.begins_page(),
            _ => None,
        }
    }
}

impl Block {
    fn is_blank(&self) -> bool {
        match self {
            Self::Paragraph(_, text) => text.is_blank(),
            Self::Grid(grid) => grid.rows.iter().flat_map(|row| &row.cells).all(Cell::is_blank),
            Self::Note(..) => false,
            Self::Page(_) => true,
        }
    }

    fn chars(&self) -> usize {
        match self {
            Self::Paragraph(_, text) => text.chars(),
            Self::Grid(grid) => grid
                .rows
                .iter()
                .flat_map(|row| &row.cells)
                .flat_map(|cell| &cell.blocks)
                .map(Self::chars)
                .sum(),
            Self::Note(..) | Self::Page(_) => 0,
        }
    }
}

/// Writes blocks one after the other.
pub(crate) struct Blocks<'a> {
    writer: &'a mut Writer,
    /// Levels and list of the items that are open.
    items: Vec<(usize, u32)>,
    /// Lines of code that wait for more.
    code: Vec<String>,
    /// Notes that wait for the end of a list or table.
    notes: Vec<(String, Vec<Block>)>,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(writer: &'a mut Writer) -> Self {
        Self { writer, items: Vec::new(), code: Vec::new(), notes: Vec::new() }
    }

    /// Whether the document's limit is reached, so that writing on is in vain.
    pub(crate) fn is_full(&self) -> bool {
        self.writer.is_full()
    }

    /// Ends what is open.
    pub(crate) fn finish(&mut self) {
        self.end_code();
        self.end_items();
        self.write_notes();
    }

    /// Writes a block.
    pub(crate) fn write(&mut self, block: Block) {
        match block {
            Block::Page(page) => {
                // A page begins with what comes, not with code that still waits.
                self.end_code();
                self.writer.page(page);
            }
            Block::Note(sign, blocks) => self.notes.push((sign, blocks)),
            Block::Paragraph(kind, text)
                if text.is_blank() && (kind != Kind::Code || self.code.is_empty()) =>
            {
                if let Some(page) = text.last_page() {
                    self.writer.page(page);
                }
            }
            Block::Paragraph(Kind::Code, mut text) if !self.writer.is_flat() => {
                self.end_items();
                if let Some(page) = text.take_first_page() {
                    self.end_code();
                    self.writer.page(page);
                }
                if self.code.is_empty() {
                    self.write_notes();
                }
                self.code.extend(text.lines());
                if let Some(page) = text.last_page() {
                    self.end_code();
                    self.writer.page(page);
                }
            }
            Block::Paragraph(Kind::Item(item), text) => {
                self.end_code();
                self.item(&item, &text);
            }
            Block::Paragraph(Kind::Continued(level), text) if !self.items.is_empty() => {
                self.end_code();
                while self.items.len() > 1 && self.items.pop_if(|(open, _)| *open > level).is_some() {
                    self.writer.end_item();
                }
                self.writer.block();
                text.write(self.writer);
            }
            Block::Paragraph(kind, text) => {
                self.finish();
                self.paragraph(kind, text);
            }
            Block::Grid(grid) => {
                self.finish();
                self.grid(grid);
                self.write_notes();
            }
        }
    }

    fn paragraph(&mut self, kind: Kind, mut text: Text) {
        match kind {
            Kind::Heading(level) if !self.writer.is_flat() && text.chars() <= MAX_HEADING_CHARS => {
                self.writer.structure();
                if let Some(page) = text.take_first_page() {
                    self.writer.page(page);
                }
                self.writer.heading(level, text.plain());
                if let Some(page) = text.last_page() {
                    self.writer.page(page);
                }
            }
            Kind::Quote if !self.writer.is_flat() => {
                self.writer.structure();
                self.writer.push_prefix("> ");
                text.write(self.writer);
                self.writer.pop_prefix();
                self.writer.block();
            }
            _ => {
                self.writer.block();
                text.write(self.writer);
                self.writer.block();
            }
        }
    }

    fn item(&mut self, item: &Item, text: &Text) {
        if self.writer.is_flat() {
            self.writer.block();
            self.writer.text(&item.number);
            self.writer.space();
            text.write(self.writer);
            self.writer.block();
            return;
        }
        let mut goes_on = false;
        while self.items.pop_if(|(level, _)| *level > item.level).is_some() {
            self.writer.end_item();
            goes_on = true;
        }
        let sibling = self.items.pop_if(|(level, _)| *level == item.level).map(|(_, list)| list);
        if sibling.is_some() {
            self.writer.end_item();
        }
        let is_first = match (sibling, self.items.is_empty()) {
            (Some(list), is_outermost) => is_outermost && list != item.list,
            (None, _) => !goes_on,
        };
        match (is_first, self.items.is_empty()) {
            (true, true) => self.writer.structure(),
            (true, false) => self.writer.structure_line(),
            (false, _) => {}
        }
        // Markdown knows digits alone; other numbers are text of the item.
        let digits = item.number.trim_end_matches(['.', ')']);
        let is_native = digits.len() + 1 >= item.number.len()
            && (1..=9).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit());
        if is_native {
            let sign = if item.number.ends_with(')') { ')' } else { '.' };
            self.writer.item(format!("{digits}{sign} "), is_first);
        } else {
            self.writer.item("- ".to_owned(), is_first);
            self.writer.text(&item.number);
            self.writer.space();
        }
        self.items.push((item.level, item.list));
        text.write(self.writer);
    }

    fn end_items(&mut self) {
        let had_items = !self.items.is_empty();
        while self.items.pop().is_some() {
            self.writer.end_item();
        }
        if had_items {
            self.writer.block();
        }
    }

    fn end_code(&mut self) {
        let lines = std::mem::take(&mut self.code);
        let blank = |line: &&String| line.trim().is_empty();
        let lines = &lines[lines.iter().take_while(blank).count()..];
        let lines = &lines[..lines.len() - lines.iter().rev().take_while(blank).count()];
        if lines.is_empty() {
            return;
        }
        let longest = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max();
        let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
        let lines = lines.iter().map(|line| line.trim_end());
        self.writer.lines(std::iter::once(fence.as_str()).chain(lines).chain([fence.as_str()]));
    }

    fn write_notes(&mut self) {
        if self.writer.is_flat() {
            return;
        }
        for (sign, blocks) in std::mem::take(&mut self.notes) {
            let text = self.flat(blocks);
            self.writer.block();
            self.writer.text(&format!("[^{sign}]: {text}"));
            self.writer.block();
        }
    }

    /// Blocks on one line.
    fn flat(&mut self, blocks: Vec<Block>) -> String {
        self.writer.begin_flat(false);
        let mut inner = Blocks::new(self.writer);
        for block in blocks {
            inner.write(block);
        }
        inner.end_items();
        let notes = std::mem::take(&mut inner.notes);
        self.notes.extend(notes);
        self.writer.end_flat()
    }

    fn grid(&mut self, grid: Grid) {
        if self.writer.is_flat() {
            self.grid_in_cell(grid);
        } else if grid.is_layout() {
            for block in grid.rows.into_iter().flat_map(|row| row.cells).flat_map(|cell| cell.blocks) {
                self.write(block);
            }
            self.finish();
        } else {
            self.table(grid);
        }
    }

    /// A table where only a line fits: rows parted by semicolons, cells by commas.
    fn grid_in_cell(&mut self, grid: Grid) {
        for row in grid.rows {
            self.writer.block();
            for (index, cell) in row.cells.into_iter().filter(|cell| !cell.is_blank()).enumerate() {
                if index > 0 {
                    self.writer.next_term();
                }
                for block in cell.blocks {
                    // Not nested any deeper: a table in a table in a table is read cell by cell.
                    self.words_in_cell(block);
                }
            }
        }
        self.writer.block();
    }

    fn words_in_cell(&mut self, block: Block) {
        let mut open = vec![block];
        while let Some(block) = open.pop() {
            self.writer.space();
            match block {
                Block::Paragraph(kind, text) => {
                    if let Kind::Item(item) = kind {
                        self.writer.text(&item.number);
                        self.writer.space();
                    }
                    text.write(self.writer);
                }
                Block::Grid(grid) => {
                    let cells = grid.rows.into_iter().flat_map(|row| row.cells);
                    let at = open.len();
                    open.extend(cells.flat_map(|cell| cell.blocks));
                    open[at..].reverse();
                }
                Block::Note(sign, blocks) => self.notes.push((sign, blocks)),
                Block::Page(page) => self.writer.page(page),
            }
        }
    }

    fn table(&mut self, grid: Grid) {
        let mut table = Table::default();
        let first = self.writer.take_page();
        let mut page = None;
        for (index, row) in grid.rows.into_iter().enumerate() {
            table.set_head(row.is_head);
            table.begin_row();
            let begins = row.cells.iter().find_map(Cell::begins_page);
            let names_columns = (index == 0 || row.is_head) && row.cells.len() > 1;
            for cell in row.cells {
                let text = self.flat(cell.blocks);
                // In a header every column has its name, also where several share one.
                let repeated = names_columns
                    && (2..=MAX_NAMED_COLUMNS).contains(&cell.columns)
                    && text.len() <= MAX_NAME_BYTES;
                if repeated {
                    for _ in 1..cell.columns {
                        table.add_cell(text.clone(), false, 1, cell.rows);
                    }
                }
                table.add_cell(text, false, if repeated { 1 } else { cell.columns }, cell.rows);
            }
            // A page that begins inside a row begins, for all that Markdown can tell, with the next one.
            let begun = self.writer.take_page();
            table.set_page(begins.and(begun).or(page));
            page = if begins.is_some() { None } else { begun.or(page) };
            table.end_row();
        }
        if let Some(first) = first {
            self.writer.page(first);
        }
        let (rendered, pages) = table.render_with_pages();
        match rendered {
            Rendered::Lines(lines) => {
                self.writer.lines_on_pages(lines.iter().map(String::as_str).zip(pages));
            }
            Rendered::Paragraphs(paragraphs) => {
                for paragraph in paragraphs {
                    self.writer.block();
                    self.writer.text(&paragraph);
                }
            }
        }
        self.writer.block();
        if let Some(page) = page {
            self.writer.page(page);
        }
    }
}
