//! HTML as Markdown.
//!
//! Keeps what a reader reads: headings, paragraphs, lists, tables, code, and links as their text. Leaves out
//! navigation, scripts, forms and what is hidden. Emphasis is left out too, since quotes are compared with
//! answers word by word. Metadata is read in [`super::head`], the tree is built in [`super::dom`].

mod block;
mod element;

pub(crate) use element::clean;

use super::dom::{Dom, NodeId};
use super::table::Table;
use super::writer::Writer;
use crate::properties::Properties;
use crate::{ParseError, head, too_long};
use rag_core::document::{Heading, ParsedDocument};
use std::collections::HashSet;

/// Parses an HTML page.
///
/// The title is that of the page, else its first heading of the highest level.
pub(crate) fn parse(
    text: &str,
    media_type: String,
    mut properties: Properties,
) -> Result<ParsedDocument, ParseError> {
    let dom = Dom::parse(text)?;
    let mut rendered = render(&dom, true)?;
    if !has_text_besides_headings(&rendered) {
        // A page that is only a table of contents is better than an empty one.
        rendered = render(&dom, false)?;
    }
    let (text, headings) = rendered;
    let (own_title, metadata) = head::read(&dom);
    properties.merge(metadata);
    let highest = headings.iter().map(|heading| heading.level).min();
    let first = headings.iter().find(|heading| Some(heading.level) == highest);
    Ok(ParsedDocument {
        media_type,
        title: own_title.or_else(|| first.map(|heading| heading.title.clone())),
        headings,
        pages: Vec::new(),
        metadata_json: properties.into_json(),
        text,
    })
}

/// Text and headings.
type Markdown = (String, Vec<Heading>);

fn has_text_besides_headings((text, headings): &Markdown) -> bool {
    let mut end = 0;
    for heading in headings {
        if !text[end..heading.bytes.start].trim().is_empty() {
            return true;
        }
        end = heading.bytes.end;
    }
    !text[end..].trim().is_empty()
}

fn render(dom: &Dom, without_contents: bool) -> Result<Markdown, ParseError> {
    let mut page = Page {
        dom,
        without_contents,
        layout_tables: layout_tables(dom),
        writer: Writer::new(),
        lists: Vec::new(),
        tables: Vec::new(),
        asides: 0,
        in_term: false,
        code: None,
        preformatted: None,
    };
    let root = 0;
    let mut open: Vec<(NodeId, Open)> = Vec::new();
    let mut at = Some(root);
    while let Some(id) = at
        && !page.writer.is_full()
    {
        let entered = page.enter(id);
        at = dom.following(id, root, entered.is_some());
        open.extend(entered.map(|entered| (id, entered)));
        let parent = at.and_then(|next| dom.parent(next));
        while let Some((done, what)) = open.pop_if(|(last, _)| Some(*last) != parent) {
            page.leave(done, what);
        }
    }
    page.writer.finish().ok_or_else(too_long)
}

/// Tables that arrange a page rather than data: those with a table or a heading inside.
fn layout_tables(dom: &Dom) -> HashSet<NodeId> {
    let mut layout = HashSet::new();
    let mut open: Vec<NodeId> = Vec::new();
    let mut ancestors: Vec<NodeId> = Vec::new();
    let mut at = Some(0);
    while let Some(id) = at {
        match dom.name(id) {
            Some("table") => {
                layout.extend(open.last());
                if matches!(dom.attribute(id, "role"), Some("presentation" | "none")) {
                    layout.insert(id);
                }
                open.push(id);
            }
            Some("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => layout.extend(open.last()),
            _ => {}
        }
        ancestors.push(id);
        at = dom.following(id, 0, true);
        let parent = at.and_then(|next| dom.parent(next));
        while let Some(done) = ancestors.pop_if(|last| Some(*last) != parent) {
            open.pop_if(|table| *table == done);
        }
    }
    layout
}

/// What an open element must do when it ends.
enum Open {
    Nothing,
    Block,
    Heading(u8),
    /// A heading that opens no section, or the term of a definition: explained by what follows.
    Label,
    List,
    Item,
    Term,
    Definition,
    Quote,
    Aside,
    Preformatted,
    Code,
    Quotation,
    Table,
    Head,
    Row,
    Cell,
    Caption,
}

/// A list that is open.
struct List {
    /// Number of the next item, for ordered lists.
    number: Option<u64>,
    is_empty: bool,
    /// An item that a term or definition opened and that nothing has ended yet.
    has_open_item: bool,
    /// A definition list's term is written, its definition is not.
    has_open_term: bool,
    /// Most terms have no definition, as in an index: then terms in a row do not share one.
    terms_stand_alone: bool,
}

/// The walk through a page.
struct Page<'a> {
    dom: &'a Dom,
    without_contents: bool,
    layout_tables: HashSet<NodeId>,
    writer: Writer,
    lists: Vec<List>,
    /// `None` for a table that arranges the page.
    tables: Vec<Option<Table>>,
    /// Open elements in which a heading opens no section.
    asides: usize,
    /// A definition list's term is open: line breaks in it part terms.
    in_term: bool,
    /// Inline code that is open.
    code: Option<String>,
    /// Preformatted text that is open.
    preformatted: Option<String>,
}

impl Page<'_> {
    /// Begins a node; `None` if it is passed over with all below it.
    fn enter(&mut self, id: NodeId) -> Option<Open> {
        if let Some(text) = self.dom.text(id) {
            self.text(text);
            return None;
        }
        let Some(name) = self.dom.name(id) else { return Some(Open::Nothing) };
        if element::is_left_out(self.dom, id, name, self.without_contents) {
            return None;
        }
        if self.code.is_some() || self.preformatted.is_some() {
            return self.enter_in_code(id, name);
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Some(self.begin_heading(name)),
            "ul" | "ol" | "dl" | "menu" | "dir" => Some(self.begin_list(id, name)),
            "li" => Some(self.begin_item()),
            "dt" => Some(self.begin_term()),
            "dd" => Some(self.begin_definition()),
            "table" => Some(self.begin_table(id)),
            "thead" | "tbody" | "tfoot" | "tr" | "td" | "th" | "caption" => Some(self.begin_table_part(name)),
            "blockquote" => {
                self.writer.structure();
                self.writer.push_prefix("> ");
                self.asides += 1;
                Some(Open::Quote)
            }
            "pre" | "listing" | "xmp" | "plaintext" => {
                self.preformatted = Some(String::new());
                Some(Open::Preformatted)
            }
            "code" | "kbd" | "samp" | "tt" => {
                self.code = Some(String::new());
                Some(Open::Code)
            }
            "q" => {
                self.writer.word("“");
                Some(Open::Quotation)
            }
            "sup" => {
                self.begin_superscript(id);
                Some(Open::Nothing)
            }
            "br" => {
                if self.in_term {
                    self.writer.next_term();
                } else if self.writer.is_flat() {
                    self.writer.space();
                } else {
                    self.writer.line();
                }
                None
            }
            "a" if element::is_link_to_itself(&self.dom.text_below(id, 8)) => None,
            "wbr" => None,
            "hr" => {
                self.writer.block();
                None
            }
            "img" => {
                self.text(self.dom.attribute(id, "alt").unwrap_or_default());
                None
            }
            _ if element::is_aside(self.dom, id, name) => {
                self.writer.block();
                self.asides += 1;
                Some(Open::Aside)
            }
            _ if element::is_block(name) => {
                self.writer.block();
                Some(Open::Block)
            }
            _ => Some(Open::Nothing),
        }
    }

    /// Ends a node.
    fn leave(&mut self, id: NodeId, what: Open) {
        match what {
            Open::Nothing => {}
            Open::Block => self.writer.block(),
            Open::Heading(level) => {
                let title = self.writer.end_flat();
                self.writer.heading(level, title);
            }
            Open::Label => {
                self.writer.block();
                self.writer.explain();
            }
            Open::List => {
                let list = self.lists.pop();
                if list.is_some_and(|list| list.has_open_item) {
                    self.writer.explained();
                    self.writer.end_item();
                }
                self.asides -= 1;
                self.writer.block();
            }
            Open::Item => self.writer.end_item(),
            Open::Term => {
                self.in_term = false;
                self.writer.block();
                self.writer.explain();
            }
            Open::Definition => {
                self.writer.explained();
                self.writer.block();
            }
            Open::Quote => {
                self.writer.explained();
                self.writer.pop_prefix();
                self.asides -= 1;
                self.writer.block();
            }
            Open::Aside => {
                self.asides -= 1;
                self.writer.explained();
                self.writer.block();
            }
            Open::Preformatted => self.end_preformatted(id),
            Open::Code => self.end_code(),
            Open::Quotation => self.writer.word("”"),
            Open::Table => self.end_table(),
            Open::Head => self.table(|table| table.set_head(false)),
            Open::Row => self.table(Table::end_row),
            Open::Cell => self.end_cell(id),
            Open::Caption => {
                let caption = self.writer.end_flat();
                self.writer.text(&caption);
                self.writer.block();
            }
        }
    }

    fn text(&mut self, text: &str) {
        let text = clean(text);
        if let Some(open) = &mut self.preformatted {
            open.push_str(&text);
        } else if let Some(open) = &mut self.code {
            open.push_str(&text);
        } else {
            self.writer.text(&text);
        }
    }

    /// Inside code, elements matter only as far as they part lines or words.
    fn enter_in_code(&mut self, id: NodeId, name: &str) -> Option<Open> {
        if let Some(open) = self.preformatted.as_mut() {
            if name == "br" || (element::is_block(name) && !open.is_empty() && !open.ends_with('\n')) {
                open.push('\n');
            }
        } else if let Some(open) = self.code.as_mut()
            && (name == "br" || name == "pre" || element::is_block(name))
        {
            open.push(' ');
        }
        if name == "img" {
            self.text(self.dom.attribute(id, "alt").unwrap_or_default());
        }
        Some(Open::Nothing)
    }
}
