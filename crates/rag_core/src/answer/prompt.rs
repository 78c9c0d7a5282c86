//! The prompt that grounds a language model in passages.
//!
//! Passages are data from documents that anyone may have written: they are numbered, fenced, and what in them could end
//! the fence, speak in another role or give orders is defused ([`super::neutralise`]). What the model makes of them is checked
//! in [`super::cite`]; nothing here makes a model obey.

mod template;

pub use template::{Example, PromptTemplate};

use super::Passage;
use super::block;
use super::neutralise::neutralise;

/// JSON schema of the completion that [`build_prompt`] asks for.
pub const ANSWER_SCHEMA: &str = r#"{"type":"object","properties":{"found":{"type":"boolean"},"answer":{"type":"string"}},"required":["found","answer"],"additionalProperties":false}"#;

/// Fewest tokens of a passage that are worth showing.
const MIN_PASSAGE_TOKENS: usize = 20;

/// How often a passage is cut anew until it fits and fills its share: once, but where it has more tokens a letter at one end.
const MAX_CUTS: usize = 4;

/// Most characters of the question.
const MAX_QUESTION_CHARS: usize = 4_000;

/// What a chat model is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Role and content of each message.
    pub messages: Vec<(&'static str, String)>,
    /// What the model is told before it sees anything: the first message. No answer repeats it, see [`super::leak`].
    pub instructions: String,
    /// What was defused in passages, question and history: see [`neutralise`].
    pub neutralised: usize,
}

/// A passage, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'a> {
    /// What the model reads.
    pub passage: Passage<'a>,
    /// Its file, or its document's title; empty if it has neither.
    pub file: &'a str,
    /// Its first and last page.
    pub pages: Option<(i32, i32)>,
}

/// What is asked, and of what.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The question itself.
    pub text: &'a str,
    /// The conversation before it, as role (`user` or `assistant`; anything else counts as `user`) and content, oldest first.
    pub history: &'a [(String, String)],
    /// What the answer is to be taken from, best first.
    pub blocks: &'a [Block<'a>],
    /// Whether several documents have several passages each: then the answer is to be in order of topics.
    pub is_by_topic: bool,
}

/// How much of passages and conversation a prompt may hold.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// Tokens of both together.
    pub tokens: usize,
    /// How many tokens each of some texts has.
    pub count: &'a dyn Fn(&[&str]) -> Vec<usize>,
}

impl Budget<'_> {
    /// So many tokens as [`block::tokens`] estimates them, for a model whose tokenizer is not known.
    pub fn estimated(tokens: usize) -> Self {
        Self { tokens, count: &estimates }
    }
}

fn estimates(texts: &[&str]) -> Vec<usize> {
    texts.iter().map(|text| block::tokens(text)).collect()
}

/// The messages of a prompt: instructions and examples, as the template wants them, the conversation so far, then the passages,
/// numbered from 1 in their order, with the question after them.
///
/// Of the `budget`, a quarter at most goes to the history, latest turns first; the rest is shared evenly among the passages, and what
/// one does not need goes to the others. A passage over its share is cut at the end of a sentence. Passages
/// are left out, from the last, only where a share would be too small to say anything; the others keep their
/// numbers. What is shown of all of them is neutralised; what the template says is its author's.
pub fn build_prompt(question: &Question<'_>, template: &PromptTemplate, budget: Budget<'_>) -> Prompt {
    let instructions = template.instructions(question.is_by_topic);
    let mut messages = vec![("system", instructions.clone())];
    for example in &template.examples {
        messages.extend(example.messages());
    }
    let Turns { turns, spent, count: in_turns } =
        recent_turns(question.history, Budget { tokens: budget.tokens / 4, ..budget });
    messages.extend(turns);

    let left = budget.tokens.saturating_sub(spent);
    let (passages, in_passages) = shown(question.blocks, Budget { tokens: left, ..budget });
    let text = neutralise(question.text);
    messages.push(("user", format!("{passages}\nQuestion: {}", shortened(&text.text))));
    Prompt { messages, instructions, neutralised: in_turns + in_passages + text.count }
}

/// Texts as they stand in a prompt: numbered from 1 and fenced, as much of each as fits into so many tokens of all.
pub(crate) fn numbered(texts: &[&str], budget: usize) -> String {
    let block = |text| Block {
        passage: Passage { title: "", header_path: &[], table_header: None, text },
        file: "",
        pages: None,
    };
    let blocks: Vec<Block<'_>> = texts.iter().copied().map(block).collect();
    shown(&blocks, Budget::estimated(budget)).0
}

/// The same, and how much was defused.
fn shown(blocks: &[Block<'_>], budget: Budget<'_>) -> (String, usize) {
    let mut count = 0;
    let mut defused = |text: &str| {
        let neutralised = neutralise(text);
        count += neutralised.count;
        neutralised.text
    };
    let texts: Vec<String> = blocks
        .iter()
        .map(|block| block::shortened(&block::collapsed(&defused(block.passage.text))))
        .collect();
    let fitted = fitted(&texts, budget);
    let mut content = String::from("Passages:\n");
    for (index, (block, text)) in blocks.iter().zip(&fitted).enumerate() {
        let number = index + 1;
        content.push_str(&format!("\n<passage n=\"{number}\">\n"));
        if let Some(place) = place(block, &mut defused) {
            content.push_str(&format!("[{number}: {place}]\n"));
        }
        let headings = heading_line(&block.passage, &mut defused);
        if !headings.is_empty() {
            content.push_str(&format!("({headings})\n"));
        }
        content.push_str(text);
        content.push_str("\n</passage>\n");
    }
    if fitted.is_empty() {
        content.push_str("\n(none)\n");
    }
    (content, count)
}

/// A question as it stands in a prompt.
pub(crate) fn sanitised_question(question: &str) -> String {
    shortened(&sanitise(question))
}

fn shortened(question: &str) -> String {
    let question: String = question.chars().take(MAX_QUESTION_CHARS).collect();
    question.trim().to_owned()
}

/// A text as a prompt may show it: see [`neutralise`].
pub fn sanitise(text: &str) -> String {
    neutralise(text).text
}

/// File and pages in words.
fn place(block: &Block<'_>, mut defused: impl FnMut(&str) -> String) -> Option<String> {
    let file = defused(block.file).replace(['[', ']', '<', '>'], " ");
    let file = file.split_whitespace().take(20).collect::<Vec<_>>().join(" ");
    let pages = block.pages.map(|(from, to)| match from == to {
        true => format!("p.{from}"),
        false => format!("p.{from}-{to}"),
    });
    let parts: Vec<String> = Some(file).filter(|file| !file.is_empty()).into_iter().chain(pages).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn heading_line(passage: &Passage<'_>, mut defused: impl FnMut(&str) -> String) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in std::iter::once(passage.title).chain(passage.header_path.iter().map(String::as_str)) {
        let part = defused(part).split_whitespace().take(40).collect::<Vec<_>>().join(" ");
        if !part.is_empty() && parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    parts.join(" > ")
}

/// Turns of a conversation that fit.
struct Turns {
    /// Role and content, oldest first.
    turns: Vec<(&'static str, String)>,
    /// Their tokens.
    spent: usize,
    /// What was defused in them.
    count: usize,
}

/// The latest turns that fit.
fn recent_turns(history: &[(String, String)], budget: Budget<'_>) -> Turns {
    let defused: Vec<_> = history.iter().rev().map(|(role, content)| (role, neutralise(content))).collect();
    let needs = counted(defused.iter().map(|(_, content)| &content.text[..]), budget);
    let mut fitting = Turns { turns: Vec::new(), spent: 0, count: 0 };
    for ((role, content), need) in defused.into_iter().zip(needs) {
        if fitting.spent + need > budget.tokens {
            break;
        }
        fitting.spent += need;
        fitting.count += content.count;
        fitting.turns.push((if role == "assistant" { "assistant" } else { "user" }, content.text));
    }
    fitting.turns.reverse();
    fitting
}

/// Tokens of each text; none are counted where there is nothing to count.
fn counted<'a>(texts: impl Iterator<Item = &'a str>, budget: Budget<'_>) -> Vec<usize> {
    let texts: Vec<&str> = texts.collect();
    if texts.is_empty() { Vec::new() } else { (budget.count)(&texts) }
}

/// As much of each passage that is shown as fits.
fn fitted<'a>(texts: &'a [String], budget: Budget<'_>) -> Vec<&'a str> {
    let mut tried: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut needs = counted(tried.iter().copied(), budget);
    let shares = shares(&needs, budget.tokens);
    tried.truncate(shares.len());
    let mut fitted: Vec<&str> = vec![""; tried.len()];
    let mut open: Vec<usize> = (0..tried.len()).collect();
    for cuts in 0..=MAX_CUTS {
        open.retain(|index| {
            let (text, need, share) = (tried[*index], needs[*index], shares[*index]);
            if need <= share && text.len() >= fitted[*index].len() {
                fitted[*index] = text;
            }
            let is_whole = text.len() == texts[*index].len();
            !(need <= share && (is_whole || need * 10 >= share * 9))
        });
        if open.is_empty() || cuts == MAX_CUTS {
            break;
        }
        for &index in &open {
            // The estimate says where to cut, in proportion to what was counted.
            let most = block::tokens(tried[index]) * shares[index] / needs[index].max(1);
            tried[index] = block::beginning(&texts[index], most);
        }
        let needed = counted(open.iter().map(|index| tried[*index]), budget);
        open.iter().zip(needed).for_each(|(index, need)| needs[*index] = need);
    }
    fitted
}

/// Tokens for each passage that is shown, of what they need.
fn shares(needs: &[usize], budget: usize) -> Vec<usize> {
    let shown = needs.len().min((budget / MIN_PASSAGE_TOKENS).max(usize::from(budget > 0)));
    // From the smallest need up, each gets an even share of what is left, so what it leaves is shared again.
    let mut order: Vec<usize> = (0..shown).collect();
    order.sort_by_key(|index| needs[*index]);
    let mut shares = vec![0; shown];
    let mut left = budget;
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = needs[index].min(left / (shown - done));
        left -= shares[index];
    }
    shares
}

#[cfg(test)]
#[path = "prompt/prompt_tests.rs"]
mod tests;
