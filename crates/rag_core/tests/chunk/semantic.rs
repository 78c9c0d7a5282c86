//! The method `semantic`, with vectors that stand for a model: a direction per topic.

use super::{BIG, ChunkMethod, ChunkOptions, SizeUnit, Words, check_invariants, chunk, texts};
use rag_core::chunk::{ChunkRequest, TokenBudget, Tokenizer, breaks, sentence_groups};
use rag_core::document::{ParsedDocument, PreparedDocument};
use rag_parse::{DocumentContent, parse};

const TOPICS: [&str; 3] = ["river", "bread", "violin"];

/// A vector that says how often a text has the word of each topic, and a little that it is a text.
fn vector(text: &str) -> Vec<f32> {
    let counts = TOPICS.map(|topic| text.matches(topic).count() as f32);
    let all = [counts[0], counts[1], counts[2], 0.1];
    let length = all.iter().map(|x| x * x).sum::<f32>().sqrt();
    all.iter().map(|x| x / length).collect()
}

/// Where the chunks of a document begin, by these vectors; checks what is embedded for it.
pub(super) fn breaks_of(
    parsed: &ParsedDocument,
    request: &ChunkRequest<'_>,
    tokenizer: &dyn Tokenizer,
) -> Vec<usize> {
    let groups = sentence_groups(parsed, request, tokenizer);
    let vectors: Vec<Vec<f32>> =
        groups.iter().map(|group| vector(&parsed.text[group.bytes.clone()])).collect();
    breaks(&groups, &vectors, request.options.breakpoint_percentile)
}

fn of(size: u32, min_size: u32, breakpoint_percentile: u32) -> ChunkOptions {
    let default = ChunkOptions::of(ChunkMethod::Semantic, SizeUnit::Tokens);
    ChunkOptions { size, min_size, breakpoint_percentile, ..default }
}

fn cut(text: &str, options: &ChunkOptions) -> PreparedDocument {
    let parsed = parse(DocumentContent::Text(text), Some("text/markdown")).unwrap();
    let document = chunk(parsed, None, options, &BIG, &Words);
    check_invariants(&document, options, &BIG, &Words);
    document
}

fn about(topic: &str, sentences: usize) -> String {
    (0..sentences).map(|n| format!("Sentence {n} tells of the {topic} again. ")).collect()
}

#[test]
fn a_chunk_ends_where_the_topic_changes() {
    let text = format!("{}{}{}", about("river", 9), about("bread", 9), about("violin", 9));
    let document = cut(&text, &of(200, 0, 90));
    assert_eq!(document.sections.len(), 1);
    let found = texts(&document);
    assert_eq!(found.len(), 3, "{found:#?}");
    for (chunk, topic) in found.iter().zip(TOPICS) {
        // One sentence may go with its neighbours across the border.
        let own = chunk.matches(topic).count();
        assert!(own >= 8 && chunk.matches("Sentence").count() - own <= 1, "{topic}: {chunk}");
    }
}

#[test]
fn a_text_of_one_topic_stays_whole_within_its_size() {
    let text = about("river", 20);
    assert_eq!(texts(&cut(&text, &of(200, 0, 95))).len(), 1);
    let found = cut(&text, &of(64, 0, 95));
    assert!(found.chunks.len() >= 2 && texts(&found).iter().all(|text| text.ends_with("again.")));
}

#[test]
fn a_lower_percentile_gives_more_chunks_and_short_ones_are_joined() {
    let text: String = (0..12).map(|n| about(TOPICS[n % 3], 3)).collect();
    let chunks = |options| texts(&cut(&text, &options)).len();
    let (few, many) = (chunks(of(300, 0, 95)), chunks(of(300, 0, 50)));
    assert!(few < many, "{few} and {many}");
    let joined = cut(&text, &of(300, 60, 50));
    let lengths: Vec<usize> = texts(&joined).iter().map(|text| Words.count(text)).collect();
    assert!(lengths.len() < many && lengths.iter().all(|length| *length >= 60), "{lengths:?}");
}

#[test]
fn headings_part_chunks_and_stay_with_their_text_and_tables_stay_whole() {
    let table = "| river | bread |\n|---|---|\n| violin | river |\n| bread | violin |\n";
    let text = format!(
        "# One\n\n{}\n\n{table}\n\n{}\n\n# Two\n\n{}",
        about("river", 4),
        about("bread", 4),
        about("bread", 4)
    );
    let document = cut(&text, &of(300, 0, 40));
    let found = texts(&document);
    assert!(found.iter().all(|text| !text.ends_with("# One") && !text.ends_with("# Two")), "{found:#?}");
    assert_eq!(
        found.iter().filter(|text| text.contains("| violin | river |\n| bread | violin |")).count(),
        1
    );
    assert_eq!(document.sections.len(), 2);
}

#[test]
fn what_is_embedded_fits_the_model_and_has_its_neighbours_where_there_is_room() {
    let long = format!("The {}", "river ".repeat(300));
    let text = format!("One is short. Two is short. Three is short. {long}. The end is near.");
    let parsed = parse(DocumentContent::Text(&text), Some("text/plain")).unwrap();
    let budget = TokenBudget { max_tokens: 52, special_tokens: 2, passage_prefix_tokens: 0 };
    let options = of(40, 0, 95);
    let language = rag_core::sentence::SentenceLanguage::Unknown;
    let request = ChunkRequest { title: None, language, options: &options, budget, breaks: None };
    let groups = sentence_groups(&parsed, &request, &Words);
    let shown: Vec<&str> = groups.iter().map(|group| &parsed.text[group.bytes.clone()]).collect();
    assert_eq!(shown[..2], ["One is short. Two is short.", "One is short. Two is short. Three is short."]);
    assert!(shown.iter().all(|text| (3..=50).contains(&Words.count(text))), "{shown:#?}");
    assert_eq!(shown.len(), 5);
}

#[test]
fn without_breaks_it_cuts_as_recursive_does() {
    let text = about("river", 60);
    let parsed = || parse(DocumentContent::Text(&text), Some("text/plain")).unwrap();
    let semantic = of(100, 0, 95);
    let language = rag_core::sentence::SentenceLanguage::Unknown;
    let request = ChunkRequest { title: None, language, options: &semantic, budget: BIG, breaks: None };
    let fallen_back = rag_core::chunk::chunk(parsed(), &request, &Words);
    let recursive = ChunkOptions { overlap: 0, size: 100, ..ChunkOptions::default() };
    assert_eq!(fallen_back, chunk(parsed(), None, &recursive, &BIG, &Words));
}
