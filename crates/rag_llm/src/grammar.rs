//! A JSON schema as a grammar in llama.cpp's notation (GBNF), by which no token is written that does not fit.
//!
//! Understood is what our own schemas are made of: objects, of whose properties those are written that are required, in the
//! order of that list; arrays, with `maxItems`; strings, booleans, integers, numbers and `enum`. Of any other value there is no
//! grammar.

use serde_json::{Map, Value};

/// Deepest nesting of a schema.
const MAX_DEPTH: usize = 16;

/// Rules that others name. Between two values there is one blank at most, for a model that likes blanks would go on with them.
const PRIMITIVES: &str = r#"space ::= " "?
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1f\x7f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
boolean ::= "true" | "false"
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,15})?
"#;

/// The grammar of a JSON schema, whose start is `root`. Errors say in words what is not understood.
pub fn grammar_of_schema(schema: &str) -> Result<String, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|e| e.to_string())?;
    let mut rules = Rules { text: String::new(), count: 0 };
    let root = rules.value(&schema, 0)?;
    Ok(format!("root ::= {root}\n{}{PRIMITIVES}", rules.text))
}

struct Rules {
    text: String,
    count: usize,
}

impl Rules {
    /// The name of a rule for a value of this schema.
    fn value(&mut self, schema: &Value, depth: usize) -> Result<String, String> {
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        let fields = schema.as_object().ok_or("a part of it is no object")?;
        if let Some(choices) = fields.get("enum") {
            return self.choice(choices);
        }
        match fields.get("type").and_then(Value::as_str) {
            Some(name @ ("string" | "boolean" | "integer" | "number")) => Ok(name.to_owned()),
            Some("object") => self.object(fields, depth),
            Some("array") => {
                let item = self.value(fields.get("items").ok_or("an array has no items")?, depth + 1)?;
                let more = match fields.get("maxItems").map(|most| most.as_u64().filter(|most| *most > 0)) {
                    None => "*".to_owned(),
                    Some(Some(most)) => format!("{{0,{}}}", most - 1),
                    Some(None) => return Err("maxItems is no number above 0".to_owned()),
                };
                Ok(self.rule(&format!(r#""[" space ({item} ("," space {item}){more})? space "]""#)))
            }
            Some(other) => {
                Err(format!("it has a value of type {:?}", other.chars().take(64).collect::<String>()))
            }
            None => Err("it has a value without a type".to_owned()),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) -> Result<String, String> {
        let mut parts = Vec::new();
        for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
            let property = name.as_str().and_then(|name| fields.get("properties")?.get(name));
            let value = self.value(property.ok_or("what is required has no schema")?, depth + 1)?;
            parts.push(format!(r#"{} ":" space {value}"#, literal(name)));
        }
        let inside = parts.join(r#" "," space "#);
        Ok(self.rule(&format!(r#""{{" space {inside} space "}}""#)))
    }

    fn choice(&mut self, choices: &Value) -> Result<String, String> {
        let choices =
            choices.as_array().filter(|choices| !choices.is_empty()).ok_or("an enum has no values")?;
        let literals: Vec<String> = choices.iter().map(literal).collect();
        Ok(self.rule(&literals.join(" | ")))
    }

    fn rule(&mut self, body: &str) -> String {
        self.count += 1;
        let name = format!("r{}", self.count);
        self.text.push_str(&format!("{name} ::= {body}\n"));
        name
    }
}

/// A JSON value as a literal of the grammar.
fn literal(value: &Value) -> String {
    let escaped = value.to_string().replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_object_has_what_is_required_in_that_order() {
        let schema = r#"{"type":"object","properties":{"found":{"type":"boolean"},"answer":{"type":"string"}},"required":["found","answer"]}"#;
        let grammar = grammar_of_schema(schema).unwrap();
        let expected = r#"root ::= r1
r1 ::= "{" space "\"found\"" ":" space boolean "," space "\"answer\"" ":" space string space "}"
"#;
        assert!(grammar.starts_with(expected), "{grammar}");
    }

    #[test]
    fn arrays_and_choices_are_rules_of_their_own() {
        let schema = r#"{"type":"object","properties":{"scores":{"type":"array","maxItems":4,"items":{"type":"object","properties":{"n":{"type":"integer"},"k":{"enum":["a\"b",3]}},"required":["n","k"]}}},"required":["scores"]}"#;
        let grammar = grammar_of_schema(schema).unwrap();
        for rule in [
            r#"r1 ::= "\"a\\\"b\"" | "3""#,
            r#"r2 ::= "{" space "\"n\"" ":" space integer "," space "\"k\"" ":" space r1 space "}""#,
            r#"r3 ::= "[" space (r2 ("," space r2){0,3})? space "]""#,
            r#"root ::= r4"#,
        ] {
            assert!(grammar.lines().any(|line| line == rule), "{rule}\nin\n{grammar}");
        }
    }

    #[test]
    fn what_is_not_understood_has_no_grammar() {
        let nested = format!(
            "{}{}{}",
            r#"{"type":"array","items":"#.repeat(20),
            r#"{"type":"string"}"#,
            "}".repeat(20)
        );
        for schema in [
            "",
            "[]",
            "{}",
            r#"{"type":"null"}"#,
            r#"{"type":"array"}"#,
            r#"{"enum":[]}"#,
            r#"{"type":"object","required":["a"]}"#,
            &nested,
        ] {
            assert!(grammar_of_schema(schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn every_schema_of_ours_has_a_grammar() {
        for schema in [
            rag_core::answer::prompt::ANSWER_SCHEMA,
            rag_core::rerank::SCORES_SCHEMA,
            rag_core::graph::GRAPH_SCHEMA,
        ] {
            grammar_of_schema(schema).unwrap();
        }
    }
}
