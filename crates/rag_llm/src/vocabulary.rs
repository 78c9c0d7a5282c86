//! The vocabulary of the model that is loaded: texts to tokens and back, and how many tokens a text has.

use llama_cpp_sys_2 as sys;
use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// A token.
pub(crate) type Token = sys::llama_token;

/// Of the model that is loaded.
static LOADED: OnceLock<Vocabulary> = OnceLock::new();

/// How many tokens each of the texts has; nothing before a model is loaded, or where a text is longer than one can be. Any
/// thread may ask.
pub(crate) fn count(texts: &[String]) -> Option<Vec<u32>> {
    let vocabulary = LOADED.get()?;
    let count = |text: &String| {
        let mut tokens = Vec::new();
        vocabulary.tokenize(text, false, &mut tokens).ok()?;
        u32::try_from(tokens.len()).ok()
    };
    texts.iter().map(count).collect()
}

/// A model's vocabulary. Lives as long as the process.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary(NonNull<sys::llama_vocab>);

// SAFETY: a vocabulary is not changed once its model is loaded; llama.cpp takes it as const, and keeps what it needs while it cuts
// a text with that call.
unsafe impl Send for Vocabulary {}
// SAFETY: as above.
unsafe impl Sync for Vocabulary {}

impl Vocabulary {
    /// That of the model of this process.
    pub(crate) fn of_loaded_model(vocabulary: NonNull<sys::llama_vocab>) -> Self {
        *LOADED.get_or_init(|| Self(vocabulary))
    }

    /// For samplers that need it.
    pub(crate) fn as_ptr(self) -> *const sys::llama_vocab {
        self.0.as_ptr()
    }

    /// How many tokens there are.
    pub(crate) fn tokens(self) -> usize {
        // SAFETY: the vocabulary lives as long as the process.
        let count = unsafe { sys::llama_vocab_n_tokens(self.0.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// The token that every conversation begins with, if there is one.
    pub(crate) fn first(self) -> Option<Token> {
        // SAFETY: the vocabulary lives as long as the process.
        unsafe {
            let vocabulary = self.0.as_ptr();
            sys::llama_vocab_get_add_bos(vocabulary).then(|| sys::llama_vocab_bos(vocabulary))
        }
    }

    /// Appends the tokens of a text; what looks like a special token is one where `reads_special`.
    pub(crate) fn tokenize(
        self,
        text: &str,
        reads_special: bool,
        tokens: &mut Vec<Token>,
    ) -> Result<(), String> {
        let length = i32::try_from(text.len()).map_err(|_| "a message is too long")?;
        let mut buffer: Vec<Token> = vec![0; text.len() + 8];
        // SAFETY: the vocabulary lives as long as the process; text and buffer are as long as is said.
        let count = unsafe {
            sys::llama_tokenize(
                self.0.as_ptr(),
                text.as_ptr().cast::<c_char>(),
                length,
                buffer.as_mut_ptr(),
                length + 8,
                false,
                reads_special,
            )
        };
        let count = usize::try_from(count).map_err(|_| "a message has more tokens than bytes")?;
        tokens.extend_from_slice(&buffer[..count]);
        Ok(())
    }

    /// Whether the token ends an answer.
    pub(crate) fn is_end(self, token: Token) -> bool {
        // SAFETY: the vocabulary lives as long as the process; a token beyond it is no end.
        unsafe { sys::llama_vocab_is_eog(self.0.as_ptr(), token) }
    }

    /// What the token writes: nothing, if it is a special one.
    pub(crate) fn piece(self, token: Token) -> Vec<u8> {
        let mut buffer = vec![0_u8; 64];
        loop {
            // SAFETY: the buffer is as long as is said.
            let length = unsafe {
                let start = buffer.as_mut_ptr().cast::<c_char>();
                sys::llama_token_to_piece(self.0.as_ptr(), token, start, buffer.len() as i32, 0, false)
            };
            match usize::try_from(length) {
                Ok(length) => {
                    buffer.truncate(length);
                    return buffer;
                }
                Err(_) => buffer.resize(length.unsigned_abs() as usize, 0),
            }
        }
    }
}
