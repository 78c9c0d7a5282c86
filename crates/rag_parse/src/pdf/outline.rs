//! The outline (bookmarks): titles with their levels and pages.

use hayro_font::hayro_syntax::Pdf;
use hayro_font::hayro_syntax::object::{
    Array, Dict, MaybeRef, ObjRef, Object, ObjectIdentifier, String as PdfString,
};
use std::collections::{HashMap, HashSet};

/// Most bookmarks that are read, and their deepest level.
const MAX_BOOKMARKS: usize = 50_000;
const MAX_LEVEL: usize = 6;

/// A title in the outline.
#[derive(Debug)]
pub(super) struct Bookmark {
    pub(super) title: String,
    /// 1 for the outermost.
    pub(super) level: u8,
    /// From 0.
    pub(super) page: usize,
}

/// The outline in its order; empty if there is none.
pub(super) fn bookmarks(pdf: &Pdf) -> Vec<Bookmark> {
    let Some(root) = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()) else { return Vec::new() };
    let Some(outlines) = root.get::<Dict<'_>>("Outlines") else { return Vec::new() };
    let pages: HashMap<ObjectIdentifier, usize> = pdf
        .pages()
        .iter()
        .enumerate()
        .filter_map(|(index, page)| Some((page.raw().obj_id()?, index)))
        .collect();
    let names = named_destinations(&root);
    let reader = OutlineReader { root, pages, names };
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    // Items to visit with their levels; the next one last.
    let mut stack: Vec<(Dict<'_>, usize)> =
        outlines.get("First").map(|first| (first, 1)).into_iter().collect();
    while let Some((item, level)) = stack.pop() {
        if found.len() >= MAX_BOOKMARKS || !seen.insert((item.data().as_ptr() as usize, item.data().len())) {
            break;
        }
        if let Some(next) = item.get("Next") {
            stack.push((next, level));
        }
        if level < MAX_LEVEL
            && let Some(first) = item.get("First")
        {
            stack.push((first, level + 1));
        }
        let title =
            item.get::<PdfString<'_>>("Title").map(|title| super::info::text_string(title.as_bytes()));
        if let (Some(title), Some(page)) = (title, reader.page(&item)) {
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            found.push(Bookmark { title, level: level as u8, page });
        }
    }
    found
}

struct OutlineReader<'a> {
    root: Dict<'a>,
    pages: HashMap<ObjectIdentifier, usize>,
    names: HashMap<Vec<u8>, Object<'a>>,
}

impl<'a> OutlineReader<'a> {
    /// The page that an outline item leads to.
    fn page(&self, item: &Dict<'a>) -> Option<usize> {
        let destination: Object<'a> = match item.get("Dest") {
            Some(destination) => destination,
            None => item.get::<Dict<'a>>("A")?.get("D")?,
        };
        self.destination(destination, 0)
    }

    fn destination(&self, destination: Object<'a>, depth: usize) -> Option<usize> {
        if depth > 3 {
            return None;
        }
        match destination {
            Object::Array(array) => match array.raw_iter().next()? {
                MaybeRef::Ref(reference) => self.pages.get(&identifier(reference)).copied(),
                MaybeRef::NotRef(Object::Number(number)) => usize::try_from(number.as_i64()).ok(),
                MaybeRef::NotRef(_) => None,
            },
            Object::Dict(dict) => self.destination(dict.get("D")?, depth + 1),
            Object::Name(name) => self.destination(self.root.get::<Dict<'a>>("Dests")?.get(name)?, depth + 1),
            Object::String(name) => {
                let found = self.names.get(name.as_bytes())?;
                self.destination(found.clone(), depth + 1)
            }
            _ => None,
        }
    }
}

/// The named destinations: the leaves of a name tree.
fn named_destinations<'a>(root: &Dict<'a>) -> HashMap<Vec<u8>, Object<'a>> {
    let mut found = HashMap::new();
    let tree = root.get::<Dict<'a>>("Names").and_then(|names| names.get::<Dict<'a>>("Dests"));
    let mut stack: Vec<Dict<'a>> = tree.into_iter().collect();
    let mut nodes = 0;
    while let Some(node) = stack.pop() {
        nodes += 1;
        if nodes > MAX_BOOKMARKS || found.len() > 4 * MAX_BOOKMARKS {
            break;
        }
        if let Some(kids) = node.get::<Array<'a>>("Kids") {
            stack.extend(kids.iter::<Dict<'a>>().take(MAX_BOOKMARKS - stack.len().min(MAX_BOOKMARKS)));
        }
        if let Some(names) = node.get::<Array<'a>>("Names") {
            let mut items = names.iter::<Object<'a>>();
            while let (Some(name), Some(value)) = (items.next(), items.next()) {
                if let Object::String(name) = name {
                    found.insert(name.as_bytes().to_vec(), value);
                }
            }
        }
    }
    found
}

fn identifier(reference: ObjRef) -> ObjectIdentifier {
    reference.into()
}
