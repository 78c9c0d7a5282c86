//! Names in a question: words that must occur in what answers it.

/// Words that name something: with a capital beyond the first letter (`iPhone`, `NATO`) or with letters and digits
/// (`FC-001`), and, where `capitals_are_names` as in English, with a capital first letter other than as the first
/// word of a sentence.
///
/// A text in capitals throughout shouts; it has no names that show.
pub fn names(question: &str, capitals_are_names: bool) -> Vec<&str> {
    let mut names = Vec::new();
    if !question.chars().any(char::is_lowercase) {
        return names;
    }
    let mut begins_sentence = true;
    for word in question.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let has_inner_capital = bare.chars().skip(1).any(char::is_uppercase);
        let has_digit = bare.chars().any(|c| c.is_ascii_digit()) && bare.chars().any(char::is_alphabetic);
        let has_capital = bare.chars().next().is_some_and(char::is_uppercase) && bare.chars().count() > 1;
        if has_inner_capital || has_digit || (capitals_are_names && has_capital && !begins_sentence) {
            names.push(bare);
        }
        begins_sentence = word.ends_with(['.', '?', '!', ':']);
    }
    names
}

/// Whether a text has a name as it is written, whatever its letters' case: a name may be a word that searching leaves out, such as
/// `WHERE`.
pub fn mentions(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let is_bounded = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    };
    !name.is_empty() && text.match_indices(&name).any(|(at, _)| is_bounded(at))
}

#[cfg(test)]
mod tests {
    use super::{mentions, names};

    #[test]
    fn a_name_is_a_whole_word() {
        assert!(mentions("The `WHERE` clause", "where") && mentions("having", "HAVING"));
        assert!(!mentions("somewhere", "WHERE") && !mentions("whereas", "WHERE") && !mentions("", ""));
        assert!(mentions("an elsewhere, else", "ELSE"));
    }

    fn check(question: &str, expected: &[&str]) {
        assert_eq!(names(question, true), expected, "{question}");
    }

    #[test]
    fn names_are_words_with_capitals_or_digits() {
        check("How do I install it on an iPhone?", &["iPhone"]);
        check("Which Kubernetes operator runs PostgreSQL?", &["Kubernetes", "PostgreSQL"]);
        check("What is FC-001-234?", &["FC-001-234"]);
        check("What does wal_level do?", &[]);
        check("Is it done? Yes. What then?", &[]);
        check("Can I use it in 2024?", &[]);
        check("WHAT IS A CAT?", &[]);
        check("", &[]);
    }

    #[test]
    fn nouns_of_a_language_that_capitalises_them_are_no_names() {
        assert!(names("Wie lang ist der Fluss?", false).is_empty());
        assert_eq!(names("Was ist die NATO?", false), ["NATO"]);
    }
}
