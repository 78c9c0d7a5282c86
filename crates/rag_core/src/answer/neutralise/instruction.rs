//! Sentences that speak to a language model: orders about what it was told, about its answer, about who it is.
//!
//! They are compared as a lenient reader takes them ([`super::reading`]). What documents say to people stays: "You are charged a
//! fee", "Follow these instructions", `User: postgres`.

use super::reading::{plain, words};
use regex::{Regex, RegexSet, RegexSetBuilder};
use std::sync::LazyLock;

/// Most bytes of a sentence that are looked at, and how far apart two looks begin.
const WINDOW: usize = 4_000;

/// Most bytes of a line that show whether it begins as a turn.
const MAX_TURN: usize = 200;

/// Orders, in words between single blanks.
const ORDERS: &[&str] = &[
    // About what was said before.
    r"\b(ignore|disregard|forget|override|overrule|bypass|neglect|discard|drop|(do not|dont|don t|never|stop) (follow|following|obey|obeying)|pay no attention to) (\w+ ){0,4}(previous|prior|above|earlier|preceding|foregoing|your|system|original|initial|existing|other) (\w+ ){0,3}(instruction|instructions|prompt|prompts|rule|rules|guideline|guidelines|direction|directions|directive|directives|command|commands|order|orders|context|passages|passage|question|messages|message|training|programming|restrictions|constraints)\b",
    r"\b(ignore|disregard|forget|override|bypass) (all|any|every|these|those|the) (instruction|instructions|prompt|prompts|guidelines|passages|sources)\b",
    r"\b(ignore|disregard|forget) (everything|anything|all|what) (\w+ ){0,3}(above|before|previously|told|said|so far|until now)\b",
    r"\b(ignore|disregard|forget) the question\b",
    r"\b(ignorier\w*|vergiss|vergesst|missacht\w*|uebergeh\w*) (\w+ ){0,4}(anweisung|anweisungen|regeln|vorgaben|instruktionen|befehle|systemprompt|frage)\b",
    r"\b(ignor\w*|oubli\w*) (\w+ ){0,3}(instructions|consignes|regles) (\w+ ){0,2}(precedentes|anterieures|ci dessus|donnees)\b",
    r"\b(ignor\w*|olvid\w*|esquec\w*) (\w+ ){0,4}(instrucciones|instrucoes|reglas|indicaciones)\b",
    r"\b(ignora|dimentica) (\w+ ){0,3}(istruzioni|regole)\b",
    // About other instructions.
    r"^(\w+ ){0,3}(new|updated|revised|real|actual|true|secret|hidden|urgent|additional|overriding) (system )?(instruction|instructions|prompt|directive|directives|task|objective)( (for|to) (the )?(ai|assistant|model|llm|bot|chatbot|system|you))?( (is|are|follow|follows|begin|begins|start|starts|the|you|say|answer|reply|ignore|always|never|tell)\b|$)",
    r"\b(instruction|instructions|message|note|notice|directive|command|order|memo|attention|request)s? (to|for) (the |any |all |every )?(ai|ais|a i|assistant|assistants|language model|language models|llm|llms|chatbot|chatbots|ai model|ai models|ai assistant|ai assistants|answering model|summari[sz]er)\b",
    r"^(dear|hey|hello|attention|hi|listen|important|warning|stop)? ?(ai|llm|language model|ai model|ai assistant|ai language model|chatgpt|gpt|gpt 4|claude|gemini|copilot|chatbot|assistant) (please|you|must|should|now|your|when|if|ignore|do|say|answer|reply|respond|always|never)\b",
    r"\b(if|when|whenever|since|because|as) you are (an? |the )?(ai|artificial intelligence|llm|language model|large language model|chatbot|bot|ai assistant|assistant|model)\b",
    r"\b(any|every|the|an|a) (ai|llm|language model|chatbot|assistant|model|ai assistant) (that is |that are |which is |who is )?(reading|reads|processing|processes|summari[sz]ing|summari[sz]es|answering) (this|the|it|these|from)\b(?u:.)*\b(must|should|shall|has to|is to|will|needs to|instructed|required)\b",
    r"\b(obey|execute|comply with|carry out|act on) (only )?(the|these|those|this|my|our|all|any|every) (\w+ ){0,2}(instruction|instructions|prompt|directive|directives) (\w+ ){0,2}(below|here|hidden|instead|inside|within|in this|from this)\b",
    r"\b(follow|obey) (only )?(my|the new|the hidden|the following new|our new) (\w+ )?(instructions|orders|commands|rules)\b",
    // About the answer.
    r"\b(your|every|(the|this) final|the next|this|each) (next |final |only |whole |entire )?(answer|answers|response|responses|reply|replies|completion) (must|should|shall|has to|have to|needs to|need to|is to|are to|will|may only|can only) (only |always |now |instead |also |first )?(be|say|contain|include|end|begin|start|consist|read|state|mention|use|cite|carry|link|show|repeat)\b",
    r"\bthe (only |right |correct )?answer to (this|every|any|all|each|the) (\w+ )?questions? (is|must|should|shall|will)\b",
    r"\byour output (must|should|shall|has to|is to|will) (only |always |now |also )?(be|contain|include|end|begin|start|consist)\b",
    r"\b(when|if|whenever|once|every time|should) (you are |you re |you get |being |ever |the user is |a user is |anyone |someone |somebody |a user |the user |users |a reader |they |the reader |people |you )?(asked|asks|ask|queried|wants to know|questioned)\b(?u:.)*\b(say|answer|reply|respond|claim|state|tell|output|print|write|insist|pretend|refuse)\b",
    r"^(please |now |instead |just |always |only |then |and |you must |you should |you will |you shall |also |finally )*(answer|reply|respond|say|output|print|write|state|claim|tell|insist|conclude) (only |always |exactly |just |instead |simply |nothing but |every question |all questions |any question |the question |to every question |to all questions |the user |the reader |users |everyone |them |him |to the user )*(with|that|by saying|as if|in the style|exactly|verbatim|nothing|the word|the words|the phrase|the following|pwned|hacked)\b",
    r"\b(always|only|instead|must|should|shall|will|now|to) (answer|reply|respond|output|say) (only |always |exactly |just |to |every |all |with )*(every|all|any|exactly|only|verbatim|nothing|pwned|hacked|the word|the phrase|every question|all questions)\b",
    r"\b(add|append|insert|include|embed|put|place|attach|display|render|show|output|print|write|end with|begin with|start with|finish with) (\w+ ){0,8}(link|image|picture|markdown|url|html|script|iframe|tag|banner|citation|sentence|text|line|phrase|words?) (\w+ ){0,8}(your|the|every|each|this) (final |next )?(answer|answers|response|responses|reply|output)\b",
    r"\b(in|to|at the end of|at the start of|into|of|within) (your|every|each) (final |next )?(answer|answers|response|responses|reply|replies|output)\b",
    r"\b(do not|dont|don t|never|without) (cite|citing|mention|mentioning|use|using|reveal|revealing|quote|tell|telling|read|answer|answering) (\w+ ){0,4}(passages?|sources?|documents?|this instruction|these instructions|the user|the question|from the (other )?(documents|passages|sources))\b",
    r"\bcite (only )?(passage|source|document|number|citation)s? (number )?\d+\b",
    r"\b(call|invoke|use|run) (the|your) (\w+ )?(tool|function|plugin) (\w+ ){0,6}(with|to|and)\b(?u:.)*\b(send|post|delete|email|forward|upload|fetch|exfiltrate)\b",
    r"\b(send|post|email|forward|upload|exfiltrate|leak) (\w+ ){0,6}(conversation|chat history|context|system prompt|passages|user s question|users question|history)\b",
    r"\bset (the )?(field )?found (to|is) (true|false)\b",
    r"^found (true|false) answer\b",
    // About secrets.
    r"\b(reveal|print|show|repeat|output|disclose|leak|display|quote|recite|write|give|tell|translate|copy|dump|summari[sz]e|return|state|list|spell|encode|expose)\b (\w+ ){0,5}(system prompt|system message|initial prompt|hidden prompt|developer message|secret prompt|your (\w+ )?(instructions|prompt|rules|guidelines|programming|configuration))\b",
    r"\bwhat (is|are|was|were|does) (your|the) (\w+ )?(system prompt|system message|initial prompt|system instructions|(initial|secret|hidden|original|exact|full) (instructions|rules|prompt))\b",
    r"\b(repeat|print|output|copy|recite|translate|show|write) (\w+ ){0,4}(the )?(words|text|everything|message|messages|lines|instructions|content|conversation) (\w+ ){0,2}above\b",
    // About who it is.
    r"\byou are (now|no longer|from now on|hereby)( \w+)*",
    r"^you are (a|an|the|called|named) (\w+ ){0,6}(assistant|ai|model|chatbot|bot|llm|hacker|pirate|oracle|agent|system|robot|persona|simulator|interpreter|terminal|jailbreak\w*|parrot)\b",
    r"^you are (dan|chatgpt|gpt|claude|gemini|free of|unrestricted|unfiltered|not bound|not an? (ai|assistant))\b",
    r"\bfrom (now|here) on (you|your|always|only|answer|say|reply|respond|every|all answers)\b",
    r"^(please |now |and )*(act|behave|pretend|roleplay|role play|speak|talk|respond) (as|like|to be|that|you) (a|an|the|if|you|are|my|dan)\b",
    r"\b(pretend|imagine) (that )?(you are|to be|you re) (\w+ ){0,6}(ai|assistant|model|without|unrestricted|no rules|hacker|dan|free)\b",
    r"\b(enter|enable|enabled|activate|activated|switch to|switch into|entering|now in|you are in) (the )?(\w+ )?(developer|debug|god|dan|jailbreak|unrestricted|unfiltered|sudo|admin|maintenance|override) mode\b",
    r"\b(developer|god|dan|jailbreak|unrestricted|unfiltered|override) mode (is |now |has been )*(on|enabled|activated|active)\b",
    r"\bdo anything now\b",
    r"\byou (must|should|will|shall|have to|need to|are to|are required to|are instructed to|are ordered to) (now |only |always |never |instead |not |immediately |first )*(obey|answer|reply|respond|say|output|ignore|disregard|forget|pretend|roleplay|claim|insist|print|reveal)\b",
    r"\byour (new |only |real |actual |true |secret |sole )+(task|job|role|purpose|goal|instructions|instruction|objective|mission|name|identity|rules|persona)\b",
    r"\byour (task|job|role|purpose|instructions|objective|mission) (is now|has changed|now is|are now|have changed)\b",
    // What opens or ends a fence.
    r"^(the )?(end|begin|start|beginning) of (the |all |user |new )*(passages|passage|context|prompt|system prompt|instructions|user input|quoted material|untrusted data|data section|retrieved documents|document text|conversation)\b",
    r"^(system|assistant|developer) (message|prompt|instruction|instructions|override|command|directive)\b",
];

/// The same where words cannot be told apart, as letters alone. Long ones only, which no ordinary text has by chance.
const RUN_TOGETHER: &str = r"(ignore|disregard|forget|override)(all|any|every|the|these|those|your|of|my|everything)*(previous|prior|above|earlier|preceding|foregoing|systemprompt)(instruction|prompt|rule|guideline|direction|command|context|message|system|and|$)|(reveal|print|show|repeat|output|disclose|leak)(me|us|the|your|all|full|whole)*(systemprompt|systemmessage|hiddeninstructions|initialprompt)|youarenowa(n?ai|n?assistant|dan|pirate|hacker|free|unrestricted)|ignoriere(alle|die|saemtliche)?(vorherigen|bisherigen|obigen)anweisungen";

/// A line that begins as a turn: the role, what such lines put behind it, and a colon, or a heading or brackets of its own.
const TURN: &str = r#"^[\s\#*_>=\-–—\[\](<{"'`|~/\\«»“”‘’‹›:.!+⟦【]*(system|sys|assistant|developer|instruction|instructions)(\s*(message|prompt|note|notice|update|override|command|directive|admin|instruction|instructions|role|turn|response))*[\s*_\])}>"'`|’”›⟧】]*([:=]|-+>|=+>)"#;

/// A heading or brackets that hold a role and nothing else.
const TITLED: &str = r#"^\s*(\#{1,6}|\[|\{|<|\*\*|==+|--+)\s*(system|assistant|developer|instruction|human|user|response)(\s*(message|prompt|override|instruction|instructions))*\s*(\]|\}|>|\*\*|==+|--+|\#*)\s*$"#;

/// Memory for what the orders' automaton keeps of its states, so that it need not make them again for each sentence.
const DFA_BYTES: usize = 16 << 20;

/// Labels in front of an order.
const LABELS: &[&str] = &[
    "system",
    "user",
    "human",
    "assistant",
    "developer",
    "instruction",
    "instructions",
    "important",
    "attention",
    "note",
    "warning",
    "admin",
    "question",
    "answer",
    "inst",
    "sys",
    "s",
    "im",
    "start",
    "end",
    "of",
    "turn",
    "eot",
    "id",
    "header",
    "passage",
    "please",
    "tool",
    "call",
];

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    Some(Patterns {
        // Words of English, German, French and Spanish without their marks: letters of ASCII, which cost the least.
        orders: RegexSetBuilder::new(ORDERS).unicode(false).dfa_size_limit(DFA_BYTES).build().ok()?,
        run_together: Regex::new(RUN_TOGETHER).ok()?,
        turn: Regex::new(TURN).ok()?,
        titled: Regex::new(TITLED).ok()?,
    })
});

struct Patterns {
    orders: RegexSet,
    run_together: Regex,
    turn: Regex,
    titled: Regex,
}

/// Where in a sentence a line begins as a turn of a conversation does, and whether it does so as no label of a form does.
pub(super) fn turn(sentence: &str) -> Option<(usize, bool)> {
    let patterns = PATTERNS.as_ref()?;
    let mut at = 0;
    for line in sentence.split_inclusive('\n') {
        let start = &line[..boundary(line, MAX_TURN)];
        let plain = plain(start.trim_end());
        if patterns.turn.is_match(&plain) || patterns.titled.is_match(&plain) {
            return Some((at, is_loud(start)));
        }
        at += line.len();
    }
    None
}

/// Whether a sentence gives orders to a model.
pub(super) fn is_order(sentence: &str) -> bool {
    let Some(patterns) = PATTERNS.as_ref() else { return false };
    let mut at = 0;
    // Sentences of ordinary length are looked at once.
    loop {
        let end = boundary(sentence, at + WINDOW);
        if patterns.is_order(&sentence[at..end]) {
            return true;
        }
        if end == sentence.len() {
            return false;
        }
        at = boundary(sentence, at + WINDOW / 2);
    }
}

fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

impl Patterns {
    fn is_order(&self, sentence: &str) -> bool {
        let words = words(&plain(sentence));
        if self.orders.is_match(&words) {
            return true;
        }
        // An order behind labels, numbers, the words of a token, or a mark of a list begins with it.
        let mut order = words.as_str();
        while let Some((first, rest)) = order.split_once(' ') {
            if !first.chars().all(char::is_numeric) && !LABELS.contains(&first) {
                break;
            }
            order = rest;
            if self.orders.is_match(order) {
                return true;
            }
        }
        let letters: String = words.chars().filter(|c| *c != ' ').collect();
        self.run_together.is_match(&letters)
    }
}

/// Whether a turn's role is written as no label of a form is: in capitals, as in `SYSTEM:` or `[INSTRUCTION]`.
fn is_loud(sentence: &str) -> bool {
    let plain: String = sentence.chars().filter(|c| !super::is_invisible(*c)).collect();
    let start = plain.find(char::is_alphabetic).unwrap_or(plain.len());
    let role: String = plain[start..].chars().take_while(|c| c.is_alphabetic()).collect();
    role.chars().count() > 3 && role.chars().all(char::is_uppercase)
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&PATTERNS);
}
