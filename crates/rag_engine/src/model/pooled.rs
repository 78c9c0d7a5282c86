//! A graph that pools: a product of weights per token and the vectors of the tokens, added to an ONNX file.
//!
//! A GPU then gives one vector per text; all vectors of all tokens would take longer to copy than to compute. What is added
//! are bytes behind those of the file, for a message in protocol buffers that follows another adds to its fields. It needs
//! operators that all versions of ONNX have in the same form.

use super::folder::Pooling;
use super::onnx_file::{FLOAT, Message, node, value};

/// The input that is added, `[rows, 1, tokens]`: what each token counts for its text's vector.
pub(super) const WEIGHTS: &str = "rag_pooling_weights";

/// The output that is added, `[rows, 1, width]`: a vector per text, of any length.
pub(super) const VECTORS: &str = "rag_pooled_vectors";

/// What a token counts, of a text with so many; `None` where a pooling is no sum.
pub(super) fn weight(pooling: Pooling, token: usize, tokens: usize) -> Option<f32> {
    let one_of = |chosen: usize| if token == chosen { 1.0 } else { 0.0 };
    match pooling {
        Pooling::Cls => Some(one_of(0)),
        Pooling::Last => Some(one_of(tokens.saturating_sub(1))),
        Pooling::Mean if token < tokens => Some(1.0 / tokens as f32),
        Pooling::Mean => Some(0.0),
        Pooling::Max => None,
    }
}

/// The bytes that make a graph pool whose output `tokens` is `[rows, tokens, width]`, in single or half precision.
pub(super) fn addition(tokens: &str) -> Vec<u8> {
    const SINGLE: &str = "rag_token_vectors";
    let graph = Message::default()
        .message(1, node("Cast", &[tokens], SINGLE, Some(("to", FLOAT))))
        .message(1, node("MatMul", &[WEIGHTS, SINGLE], VECTORS, None))
        .message(11, value(WEIGHTS, FLOAT, &["rag_rows", "1", "rag_tokens"]))
        .message(12, value(VECTORS, FLOAT, &["rag_rows", "1", "rag_width"]));
    Message::default().message(7, graph).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_three_tokens_and_a_padding_one() {
        let cases = [
            (Pooling::Cls, [1.0, 0.0, 0.0, 0.0]),
            (Pooling::Last, [0.0, 0.0, 1.0, 0.0]),
            (Pooling::Mean, [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0]),
        ];
        for (pooling, expected) in cases {
            let found = [0, 1, 2, 3].map(|token| weight(pooling, token, 3).unwrap_or(f32::NAN));
            assert_eq!(found, expected, "{pooling:?}");
        }
        assert_eq!(weight(Pooling::Max, 0, 3), None);
    }
}
