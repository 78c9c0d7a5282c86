//! Fields: an instruction, and the result that a reader sees.

use crate::office::text::link_to;
use std::rc::Rc;

/// Most fields inside each other; those deeper are shown with all they hold.
const MAX_DEPTH: usize = 32;

/// Longest instruction that is looked at.
const MAX_INSTRUCTION_BYTES: usize = 4_096;

/// The fields that are open, which may begin in one paragraph and end in another.
#[derive(Debug, Default)]
pub(super) struct Fields {
    open: Vec<Field>,
    /// How many more are open inside.
    too_deep: usize,
}

#[derive(Debug, Default)]
struct Field {
    instruction: String,
    /// Whether what comes now is the result.
    in_result: bool,
    link: Option<Rc<str>>,
    is_contents: bool,
}

impl Fields {
    /// A field begins with its instruction.
    pub(super) fn begin(&mut self) {
        if self.open.len() < MAX_DEPTH {
            self.open.push(Field::default());
        } else {
            self.too_deep += 1;
        }
    }

    /// Adds to the instruction of the innermost field.
    pub(super) fn instruct(&mut self, more: &str) {
        if let Some(field) = self.open.last_mut()
            && self.too_deep == 0
            && field.instruction.len() + more.len() <= MAX_INSTRUCTION_BYTES
        {
            field.instruction.push_str(more);
        }
    }

    /// The instruction of the innermost field is complete; its result begins.
    pub(super) fn begin_result(&mut self) {
        if let Some(field) = self.open.last_mut()
            && self.too_deep == 0
        {
            field.begin_result();
        }
    }

    /// The innermost field ends.
    pub(super) fn end(&mut self) {
        match self.too_deep.checked_sub(1) {
            Some(fewer) => self.too_deep = fewer,
            None => {
                self.open.pop();
            }
        }
    }

    /// A paragraph ends, and with it the instructions in it: one that went on would hide all that follows.
    pub(super) fn end_paragraph(&mut self) {
        self.open.retain(|field| field.in_result);
        self.too_deep = 0;
    }

    /// Whether what comes now is shown.
    pub(super) fn are_in_result(&self) -> bool {
        self.open.iter().all(|field| field.in_result)
    }

    /// Where the innermost field with an address leads.
    pub(super) fn link(&self) -> Option<&Rc<str>> {
        self.open.iter().rev().find_map(|field| field.link.as_ref())
    }

    /// Whether a table of contents is open.
    pub(super) fn are_contents(&self) -> bool {
        self.open.iter().any(|field| field.is_contents)
    }
}

impl Field {
    fn begin_result(&mut self) {
        self.in_result = true;
        let mut words = self.instruction.split_whitespace();
        match words.next().map(str::to_ascii_uppercase).as_deref() {
            Some("HYPERLINK") => {
                // A switch before the address leads to a place in the document itself.
                let address = words.next().unwrap_or_default().trim_matches(['"', '“', '”']);
                self.link = link_to(address);
            }
            Some("TOC") => self.is_contents = true,
            _ => {}
        }
    }
}
