//! BM25 of tantivy by itself, in this process: no server, no rights, no row of a hit. One segment in memory, words stemmed.

use crate::figures::Figures;
use crate::owner::Owner;
use crate::peers::{OURS, keyword_searches, ours};
use crate::questions::Questions;
use rag_benches::{best_times, timed};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TokenStream;
use tantivy::{Index, Searcher, TantivyDocument, Term};

/// What figures call it.
pub(crate) const TANTIVY: &str = "tantivy alone";

/// Lower-case words without their endings.
const TOKENIZER: &str = "en_stem";

/// Memory of its writer: it writes one segment, or few.
const WRITER_BYTES: usize = 1 << 30;

/// `rows` are chunks of the large owner, by id.
pub(crate) fn measure(
    figures: &mut Figures,
    rows: &[(String, String)],
    large: &mut Owner,
    questions: &Questions,
) {
    let (building, alone) = timed(|| Alone::build(rows));
    figures.add("building the index", TANTIVY, "s", building.as_secs_f64());
    for search in keyword_searches() {
        let queries = questions.of_form(search.form);
        let [our_times, their_times] = best_times(queries.len(), |way, at| match way {
            0 => drop(large.session.rows(&ours(&queries[at], "{}"))),
            _ => drop(alone.best(&queries[at])),
        });
        figures.add_times(search.name, TANTIVY, &their_times);
        let over = our_times.p50() - 1.5 * their_times.p50();
        figures.add(&format!("{}, ours − 1.5 × tantivy", search.name), OURS, "ms", over);
    }
}

struct Alone {
    searcher: Searcher,
    index: Index,
    body: Field,
}

impl Alone {
    fn build(rows: &[(String, String)]) -> Self {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqs);
        let body = schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing));
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, WRITER_BYTES).unwrap();
        for (_, text) in rows {
            let mut document = TantivyDocument::default();
            document.add_text(body, text);
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        writer.merge(&index.searchable_segment_ids().unwrap()).wait().unwrap();
        writer.wait_merging_threads().unwrap();
        let searcher = index.reader().unwrap().searcher();
        assert_eq!(searcher.segment_readers().len(), 1, "tantivy keeps one segment");
        Self { searcher, index, body }
    }

    /// The ten best rows with any of the words.
    fn best(&self, query: &str) -> Vec<(f32, tantivy::DocAddress)> {
        let mut tokenizer = self.index.tokenizers().get(TOKENIZER).unwrap();
        let mut tokens = tokenizer.token_stream(query);
        let mut terms: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        while let Some(token) = tokens.next() {
            let term = Term::from_field_text(self.body, &token.text);
            terms.push((Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
        }
        let query = BooleanQuery::new(terms);
        self.searcher.search(&query, &TopDocs::with_limit(10).order_by_score()).unwrap()
    }
}
