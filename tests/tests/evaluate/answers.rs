//! `rag_evaluate_answers`: its rows against what `rag_answer` says, and what it refuses.

use super::prepared;
use rag_tests::{Database, Session};

/// Two questions with an answer, one about a document whose uri no citation shows, one whose document is another, one without an answer.
fn questions(session: &mut Session) {
    session.run(
        "CREATE TEMP TABLE question (id int PRIMARY KEY, question text NOT NULL, answer text, quote text, document text, answerable boolean);
         INSERT INTO question VALUES
             (1, 'How many strings does a violin have?', 'four  STRINGS', 'A violin has four strings.', 'violin.md', NULL),
             (2, 'When does the ferry cross the harbour?', 'ten', NULL, 'ferry.md', true),
             (3, 'What rises over night?', 'bread', 'Something else.', 'oven.md', true),
             (5, 'What does the cello stand on?', 'spike', NULL, 'set://cello', true),
             (4, 'Who won the chess championship in 1972?', 'ignored', 'ignored', 'ignored', false)",
    );
}

#[test]
fn answers_are_measured_by_what_is_known_of_each_question() {
    let database = Database::new("evaluate_answers");
    let mut ann = prepared(&database, "ann");
    ann.ingest("The cello stands on a spike of steel.", "set://cello");
    questions(&mut ann);
    let columns = "answered, refused, correct, quoted, first_citation, citation_recall, faithfulness, exact";
    let each = ann.rows(&format!(
        "SELECT question_id, {columns} FROM rag_evaluate_answers(NULL, 'question', '{{\"per_question\": true}}')
         WHERE question_id IS NOT NULL"
    ));
    let shown: Vec<String> = each
        .iter()
        .map(|row| row.iter().map(|value| value.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        shown,
        [
            "1 1 - 1 1 1 1 1 1",
            "2 1 - 0 - 1 1 1 1",
            "3 1 - 1 0 0 0 1 1",
            "4 - 1 - - - - - -",
            "5 1 - 1 - 1 1 1 1"
        ],
    );
    // The row of all has the means, of those that have a value.
    let all = ann.rows(
        "SELECT questions, answered, refused, round(correct::numeric, 4), quoted, round(first_citation::numeric, 4)
         FROM rag_evaluate_answers(NULL, 'question')",
    );
    assert_eq!(all.len(), 1);
    let all: Vec<&str> = all[0].iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(all, ["5", "1", "1", "0.7500", "0.5", "0.7500"]);
    let same = "SELECT d.details->>'answer' = rag_answer(q.question)->>'answer'
         FROM rag_evaluate_answers(NULL, 'question', '{\"per_question\": true}') d JOIN question q ON q.id::text = d.question_id";
    assert_eq!(ann.column(same), ["t", "t", "t", "t", "t"]);
    // Whoever refuses everything is right where there is no answer.
    let strict = "SELECT answered, refused, correct FROM rag_evaluate_answers(NULL, 'question', '{\"min_support\": 1}')";
    assert_eq!(ann.rows(strict), [["0", "1", "0"].map(|value| Some(value.to_owned()))]);
}

#[test]
fn only_what_the_caller_sees_is_asked_and_read() {
    let database = Database::new("evaluate_answers_rights");
    let (mut ann, mut bob) = (prepared(&database, "ann"), database.user("bob"));
    questions(&mut ann);
    questions(&mut bob);
    bob.ingest("The yard opens at noon.", "yard.md");
    let seen = "SELECT answered, refused, correct FROM rag_evaluate_answers(NULL, 'question')";
    assert_eq!(bob.rows(seen), [["0", "1", "0"].map(|value| Some(value.to_owned()))]);
    let mut admin = database.admin();
    admin.run("CREATE SCHEMA lab; CREATE TABLE lab.secret AS SELECT 1 AS id, 'Who?' AS question");
    admin.run(&format!("GRANT USAGE ON SCHEMA lab TO {}", database.role_name("ann")));
    ann.refuses("42501", "SELECT * FROM rag_evaluate_answers(NULL, 'lab.secret')");
    ann.run(
        "CREATE TEMP TABLE no_text (id int, question int); CREATE TEMP TABLE none_at_all (id int, question text);
         CREATE TEMP TABLE twice AS SELECT 1 AS id, 'Who?' AS question FROM generate_series(1, 2);
         CREATE TEMP TABLE wrong_flag AS SELECT 1 AS id, 'Who?' AS question, 'yes' AS answerable;
         CREATE TEMP TABLE no_value AS SELECT 1 AS id, NULL::text AS question;
         CREATE TEMP TABLE empty_text AS SELECT 7 AS id, '' AS question",
    );
    for (code, table) in [
        ("22023", "no_text"),
        ("22023", "none_at_all"),
        ("22023", "twice"),
        ("22023", "wrong_flag"),
        ("22004", "no_value"),
        ("22023", "empty_text"),
        ("42809", "pg_class_oid_index"),
    ] {
        ann.refuses(code, &format!("SELECT * FROM rag_evaluate_answers(NULL, '{table}')"));
    }
    let failure = ann.error("SELECT * FROM rag_evaluate_answers(NULL, 'empty_text')");
    assert!(failure.detail.contains("\"7\""), "{failure:?}");
    ann.refuses("22004", "SELECT * FROM rag_evaluate_answers(NULL, NULL)");
    ann.refuses("22023", "SELECT * FROM rag_evaluate_answers(NULL, 'question', '{\"per_query\": true}')");
}
