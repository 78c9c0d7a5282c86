//! An HTML document as a tree in one vector, built by html5ever.
//!
//! Nodes are linked by index, so that no depth of nesting can overflow the stack, neither in walking nor in
//! dropping. What the elements mean is left to [`super::html`].

use crate::{MAX_HTML_DEPTH, ParseError, ParseErrorKind};
use html5ever::interface::{ElementFlags, ExpandedName, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ParseOpts, QualName, parse_document};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};

/// Most nodes of a document: about a quarter of a gigabyte.
const MAX_NODES: usize = 2_000_000;

/// Most attributes of a tag: each is compared with all before it.
const MAX_ATTRIBUTES: usize = 5_000;

/// Bytes that the parser gets at a time. Misnested formatting elements can make a node per byte and open
/// element, so limits are checked often.
const FEED_BYTES: usize = 1_024;

/// Attributes that anybody asks for; the others are not kept.
const ATTRIBUTES: &[&str] = &[
    "alt",
    "aria-hidden",
    "class",
    "colspan",
    "content",
    "hidden",
    "http-equiv",
    "lang",
    "name",
    "property",
    "role",
    "rowspan",
    "start",
    "style",
    "xml:lang",
];

const NONE: u32 = u32::MAX;

/// Index of a node.
pub(crate) type NodeId = u32;

/// A parsed document. Node 0 is the document itself.
pub(crate) struct Dom {
    nodes: Vec<Node>,
}

struct Node {
    parent: NodeId,
    previous: NodeId,
    next: NodeId,
    first: NodeId,
    last: NodeId,
    depth: u32,
    data: Data,
}

enum Data {
    Text(String),
    Element(Box<Element>),
    /// The document, comments and instructions.
    Other,
}

struct Element {
    name: QualName,
    attributes: Vec<Attribute>,
    /// Root of a template's contents.
    contents: NodeId,
}

impl Dom {
    /// Parses an HTML document.
    ///
    /// Errors: [`ParseErrorKind::LimitExceeded`] beyond [`MAX_HTML_DEPTH`], [`MAX_NODES`] or [`MAX_ATTRIBUTES`].
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        if most_attributes(text) > MAX_ATTRIBUTES {
            return Err(over("attributes in a tag", MAX_ATTRIBUTES));
        }
        let options = ParseOpts {
            tree_builder: TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() },
            ..ParseOpts::default()
        };
        let mut parser = parse_document(Sink::new(), options);
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(FEED_BYTES.min(rest.len())));
            parser.process(StrTendril::from_slice(piece));
            rest = after;
            parser.tokenizer.sink.sink.check_limits()?;
        }
        let sink = parser.finish();
        sink.check_limits()?;
        Ok(Self { nodes: sink.nodes.into_inner() })
    }

    /// First child of a node.
    pub(crate) fn first_child(&self, id: NodeId) -> Option<NodeId> {
        some(self.nodes[id as usize].first)
    }

    /// Next sibling of a node.
    pub(crate) fn next_sibling(&self, id: NodeId) -> Option<NodeId> {
        some(self.nodes[id as usize].next)
    }

    /// Parent of a node.
    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        some(self.nodes[id as usize].parent)
    }

    /// Text of a text node.
    pub(crate) fn text(&self, id: NodeId) -> Option<&str> {
        match &self.nodes[id as usize].data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Name of an element, in lower case as far as HTML goes.
    pub(crate) fn name(&self, id: NodeId) -> Option<&str> {
        match &self.nodes[id as usize].data {
            Data::Element(element) => Some(&element.name.local),
            _ => None,
        }
    }

    /// Value of an element's attribute.
    pub(crate) fn attribute(&self, id: NodeId, name: &str) -> Option<&str> {
        match &self.nodes[id as usize].data {
            Data::Element(element) => {
                element.attributes.iter().find(|own| &*own.name.local == name).map(|own| &*own.value)
            }
            _ => None,
        }
    }

    /// The children of a node.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.first_child(id), |child| self.next_sibling(*child))
    }

    /// The node after `id` in reading order within `root`; `below` says whether to go into `id` first.
    pub(crate) fn following(&self, id: NodeId, root: NodeId, below: bool) -> Option<NodeId> {
        if below && let Some(child) = self.first_child(id) {
            return Some(child);
        }
        let mut at = id;
        while at != root {
            if let Some(next) = self.next_sibling(at) {
                return Some(next);
            }
            at = self.parent(at)?;
        }
        None
    }

    /// All text below a node, at most about `max_bytes` of it.
    pub(crate) fn text_below(&self, root: NodeId, max_bytes: usize) -> String {
        let mut all = String::new();
        let mut at = Some(root);
        while let Some(id) = at
            && all.len() < max_bytes
        {
            all.push_str(self.text(id).unwrap_or_default());
            at = self.following(id, root, true);
        }
        all
    }
}

fn some(id: NodeId) -> Option<NodeId> {
    (id != NONE).then_some(id)
}

fn over(what: &str, limit: usize) -> ParseError {
    ParseError::new(
        ParseErrorKind::LimitExceeded,
        format!("HTML document has more than {limit} {what}"),
        Some("Is the markup broken?"),
    )
}

/// About how many attributes the tag with most of them has; scripts are passed over, which may hold anything.
fn most_attributes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut most, mut at) = (0, 0);
    while let Some(start) = bytes[at..].iter().position(|byte| *byte == b'<') {
        at += start + 1;
        if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let is_script = bytes.get(at..at + 6).is_some_and(|name| name.eq_ignore_ascii_case(b"script"));
        let (mut count, mut quote, mut last) = (0, None, b' ');
        for byte in &bytes[at..] {
            at += 1;
            match quote {
                Some(open) if open == *byte => quote = None,
                Some(_) => {}
                None if *byte == b'>' => break,
                None if matches!(byte, b'"' | b'\'') && last == b'=' => quote = Some(*byte),
                // An attribute may begin right behind the last one's quotes.
                None => {
                    let begins = matches!(last, b'"' | b'\'' | b'/') || last.is_ascii_whitespace();
                    count += usize::from(begins && !byte.is_ascii_whitespace());
                }
            }
            last = *byte;
        }
        most = most.max(count);
        if is_script {
            let end = bytes[at..].windows(8).position(|window| window.eq_ignore_ascii_case(b"</script"));
            at = end.map_or(bytes.len(), |end| at + end);
        }
    }
    most
}

/// What html5ever writes into.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    deepest: Cell<u32>,
}

/// A node, with its name, which html5ever asks for all the time.
#[derive(Clone)]
struct Handle {
    id: NodeId,
    name: QualName,
}

impl Handle {
    /// Of what is no element. html5ever asks elements only for their names, and knows none that is empty.
    fn unnamed(id: NodeId) -> Self {
        Self { id, name: QualName::new(None, html5ever::ns!(), html5ever::local_name!("")) }
    }
}

impl Sink {
    fn new() -> Self {
        let sink = Self { nodes: RefCell::new(Vec::new()), deepest: Cell::new(0) };
        sink.add(Data::Other);
        sink
    }

    fn check_limits(&self) -> Result<(), ParseError> {
        if self.deepest.get() as usize > MAX_HTML_DEPTH {
            return Err(over("levels of nested elements", MAX_HTML_DEPTH));
        }
        if self.nodes.borrow().len() > MAX_NODES {
            return Err(over("nodes", MAX_NODES));
        }
        Ok(())
    }

    fn add(&self, data: Data) -> NodeId {
        let mut nodes = self.nodes.borrow_mut();
        let id = u32::try_from(nodes.len()).unwrap_or(NONE - 1);
        nodes.push(Node {
            parent: NONE,
            previous: NONE,
            next: NONE,
            first: NONE,
            last: NONE,
            depth: 0,
            data,
        });
        id
    }

    fn detach(&self, id: NodeId) {
        let mut nodes = self.nodes.borrow_mut();
        let Node { parent, previous, next, .. } = nodes[id as usize];
        if let Some(previous) = some(previous) {
            nodes[previous as usize].next = next;
        } else if let Some(parent) = some(parent) {
            nodes[parent as usize].first = next;
        }
        if let Some(next) = some(next) {
            nodes[next as usize].previous = previous;
        } else if let Some(parent) = some(parent) {
            nodes[parent as usize].last = previous;
        }
        let node = &mut nodes[id as usize];
        (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
    }

    /// Puts a detached node under `parent`, before `next` or at the end.
    fn insert(&self, id: NodeId, parent: NodeId, next: NodeId) {
        let mut nodes = self.nodes.borrow_mut();
        let previous = match some(next) {
            Some(next) => nodes[next as usize].previous,
            None => nodes[parent as usize].last,
        };
        let depth = nodes[parent as usize].depth + 1;
        let node = &mut nodes[id as usize];
        (node.parent, node.previous, node.next, node.depth) = (parent, previous, next, depth);
        match some(previous) {
            Some(previous) => nodes[previous as usize].next = id,
            None => nodes[parent as usize].first = id,
        }
        match some(next) {
            Some(next) => nodes[next as usize].previous = id,
            None => nodes[parent as usize].last = id,
        }
        self.deepest.set(self.deepest.get().max(depth));
    }

    fn insert_node_or_text(&self, child: NodeOrText<Handle>, parent: NodeId, next: NodeId) {
        let id = match child {
            NodeOrText::AppendNode(handle) => {
                self.detach(handle.id);
                handle.id
            }
            NodeOrText::AppendText(text) => {
                let mut nodes = self.nodes.borrow_mut();
                let before = match some(next) {
                    Some(next) => nodes[next as usize].previous,
                    None => nodes[parent as usize].last,
                };
                if let Some(before) = some(before)
                    && let Data::Text(own) = &mut nodes[before as usize].data
                {
                    own.push_str(&text);
                    return;
                }
                drop(nodes);
                self.add(Data::Text(text.to_string()))
            }
        };
        self.insert(id, parent, next);
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle::unnamed(0)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        let mut attributes = attributes;
        attributes.retain(|attribute| ATTRIBUTES.contains(&&*attribute.name.local));
        attributes.shrink_to_fit();
        let contents = if flags.template { self.add(Data::Other) } else { NONE };
        let element = Element { name: name.clone(), attributes, contents };
        Handle { id: self.add(Data::Element(Box::new(element))), name }
    }

    fn create_comment(&self, _text: StrTendril) -> Handle {
        Handle::unnamed(self.add(Data::Other))
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Handle {
        Handle::unnamed(self.add(Data::Other))
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.insert_node_or_text(child, parent.id, NONE);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        let has_parent = self.nodes.borrow()[element.id as usize].parent != NONE;
        if has_parent { self.append_before_sibling(element, child) } else { self.append(previous, child) }
    }

    fn append_doctype_to_document(&self, _name: StrTendril, _public: StrTendril, _system: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        let id = match &self.nodes.borrow()[target.id as usize].data {
            Data::Element(element) if element.contents != NONE => element.contents,
            _ => target.id,
        };
        Handle::unnamed(id)
    }

    fn same_node(&self, a: &Handle, b: &Handle) -> bool {
        a.id == b.id
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        let parent = self.nodes.borrow()[sibling.id as usize].parent;
        if let Some(parent) = some(parent) {
            self.insert_node_or_text(child, parent, sibling.id);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        if let Data::Element(element) = &mut self.nodes.borrow_mut()[target.id as usize].data {
            for attribute in attributes {
                if !ATTRIBUTES.contains(&&*attribute.name.local) {
                    continue;
                }
                if element.attributes.iter().all(|own| own.name != attribute.name) {
                    element.attributes.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        loop {
            let first = self.nodes.borrow()[node.id as usize].first;
            let Some(first) = some(first) else { return };
            self.detach(first);
            self.insert(first, new_parent.id, NONE);
        }
    }

    fn maybe_clone_an_option_into_selectedcontent(&self, _option: &Handle) {}
}
