//! llama.cpp behind safe functions, as far as one conversation at a time needs it: a model with its context, whose beginning is
//! kept from one conversation to the next.
//!
//! Its own binding for Rust, llama-cpp-2, has no way to end a computation that is under way; so its C functions are called here.

use crate::is_stopped;
use crate::process::cpu_time;
use crate::vocabulary::{Token, Vocabulary};
use llama_cpp_sys_2 as sys;
use rag_llm::{Segment, Threads, segments, stand_in};
use rag_wire::ChatMessage;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Tokens that are read together. Between any two computations it is looked whether somebody still waits, and a computation of
/// so few is short.
const BATCH: usize = 128;

/// Where a model has no template, or one that llama.cpp does not know.
const FALLBACK_TEMPLATE: &CStr = c"chatml";

/// Most bytes of what llama.cpp says of a file that it cannot load.
const MAX_COMPLAINT: usize = 500;

/// Why tokens were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Nobody waits any more.
    Stopped,
    /// llama.cpp failed, with this status.
    Failed(i32),
}

/// A model and what it has read. Lives as long as the process.
pub(crate) struct Model {
    context: NonNull<sys::llama_context>,
    vocab: Vocabulary,
    template: CString,
    /// What is in the context's memory.
    read: Vec<Token>,
    threads: Threads,
}

impl Model {
    /// Loads a file. The error is llama.cpp's, in its words.
    pub(crate) fn open(file: &str, max_context: u32, threads: u32) -> Result<Self, String> {
        let path = CString::new(file).map_err(|e| e.to_string())?;
        // SAFETY: called once, before anything else of llama.cpp. `note_complaint` may be called by any thread at any time.
        unsafe {
            sys::llama_log_set(Some(note_complaint), std::ptr::null_mut());
            sys::llama_backend_init();
        }
        // SAFETY: the path is a C string, and the parameters are llama.cpp's own.
        let model = unsafe {
            let mut params = sys::llama_model_default_params();
            params.n_gpu_layers = 0;
            sys::llama_model_load_from_file(path.as_ptr(), params)
        };
        let model = NonNull::new(model).ok_or_else(|| complaint("llama.cpp cannot load the file"))?;
        // SAFETY: the model is loaded, and lives as long as the process.
        let (trained_for, has_encoder, vocab) = unsafe {
            let model = model.as_ptr();
            (
                sys::llama_model_n_ctx_train(model),
                sys::llama_model_has_encoder(model),
                sys::llama_model_get_vocab(model),
            )
        };
        if has_encoder {
            return Err("a model with an encoder is no chat model".to_owned());
        }
        let vocab = NonNull::new(vocab.cast_mut()).ok_or("the file has no vocabulary")?;
        let vocab = Vocabulary::of_loaded_model(vocab);
        // SAFETY: as above; the callback takes no data.
        let context = unsafe {
            let mut params = sys::llama_context_default_params();
            params.n_ctx = u32::try_from(trained_for).unwrap_or(max_context).min(max_context);
            params.n_batch = BATCH as u32;
            params.n_ubatch = BATCH as u32;
            params.abort_callback = Some(must_end);
            sys::llama_init_from_model(model.as_ptr(), params)
        };
        let context = NonNull::new(context).ok_or_else(|| complaint("there is no memory for its context"))?;
        Ok(Self {
            context,
            vocab,
            template: template(model),
            read: Vec::new(),
            threads: Threads::new(threads),
        })
    }

    /// Most tokens that are kept.
    pub(crate) fn context(&self) -> u32 {
        // SAFETY: the context lives as long as `self`.
        unsafe { sys::llama_n_ctx(self.context.as_ptr()) }
    }

    /// The tokens of a conversation, up to where the model is to write, and how many of them are instructions that every
    /// conversation may begin with.
    pub(crate) fn tokens(&self, messages: &[ChatMessage]) -> Result<(Vec<Token>, usize), String> {
        let texts: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let rendered = [self.template.as_c_str(), FALLBACK_TEMPLATE].into_iter().find_map(|template| {
            let rendered = render(template, messages)?;
            segments(&rendered, &texts).is_some().then_some(rendered)
        });
        let rendered = rendered.ok_or("no chat template takes these messages")?;
        let parts = segments(&rendered, &texts).ok_or("no chat template takes these messages")?;
        let first = self.vocab.first();
        let mut tokens: Vec<Token> = first.into_iter().collect();
        let has_instructions = messages.first().is_some_and(|message| message.role == "system");
        let (mut texts_seen, mut instructions) = (0, 0);
        for part in parts {
            if matches!(part, Segment::Text(_)) {
                texts_seen += 1;
                if texts_seen == 2 && has_instructions {
                    instructions = tokens.len();
                }
            }
            match part {
                Segment::Template(text) => self.vocab.tokenize(text, true, &mut tokens)?,
                Segment::Text(text) => self.vocab.tokenize(text, false, &mut tokens)?,
            }
        }
        // A template that writes its own first token as text.
        if first.is_some() && tokens.len() > 1 && tokens[0] == tokens[1] {
            tokens.remove(0);
            instructions = instructions.saturating_sub(1);
        }
        Ok((tokens, instructions))
    }

    /// Forgets all but the first so many tokens; all, where a model cannot forget a part. Returns how many are left.
    pub(crate) fn keep(&mut self, tokens: usize) -> usize {
        let kept = tokens.min(self.read.len());
        // SAFETY: the context lives as long as `self`; positions are those of its tokens.
        let forgot = unsafe {
            let memory = sys::llama_get_memory(self.context.as_ptr());
            let forgot = sys::llama_memory_seq_rm(memory, 0, kept as i32, -1);
            if !forgot {
                sys::llama_memory_clear(memory, true);
            }
            forgot
        };
        self.read.truncate(if forgot { kept } else { 0 });
        self.read.len()
    }

    /// How many of these tokens have been read already, from the first on.
    pub(crate) fn has_read(&self, tokens: &[Token]) -> usize {
        self.read.iter().zip(tokens).take_while(|(read, token)| read == token).count()
    }

    /// Takes all threads again, for a new answer.
    pub(crate) fn begin(&mut self) {
        let threads = self.threads.begin();
        self.compute_with(threads);
    }

    fn compute_with(&mut self, threads: u32) {
        let threads = i32::try_from(threads).unwrap_or(i32::MAX);
        // SAFETY: the context lives as long as `self`.
        unsafe { sys::llama_set_n_threads(self.context.as_ptr(), threads, threads) };
    }

    /// Reads tokens behind those that were read.
    pub(crate) fn read(&mut self, tokens: &[Token]) -> Result<(), Unread> {
        for part in tokens.chunks(BATCH) {
            if is_stopped() {
                return Err(Unread::Stopped);
            }
            let mut part = part.to_vec();
            let (began, cpu_began) = (Instant::now(), cpu_time());
            // SAFETY: the batch points to `part`, which outlives the call, and no token is beyond the vocabulary: all came from it.
            let status = unsafe {
                let batch = sys::llama_batch_get_one(part.as_mut_ptr(), part.len() as i32);
                sys::llama_decode(self.context.as_ptr(), batch)
            };
            if status != 0 {
                // What was computed of the part is left in the memory.
                self.keep(self.read.len());
                return Err(if is_stopped() { Unread::Stopped } else { Unread::Failed(status) });
            }
            self.read.append(&mut part);
            let computed = self.threads.computed(began.elapsed(), cpu_time().saturating_sub(cpu_began));
            if let Some(threads) = computed {
                self.compute_with(threads);
            }
        }
        Ok(())
    }

    /// The scores of all tokens for what comes next, from 0 on. Empty before anything was read.
    pub(crate) fn scores(&self) -> &[f32] {
        // SAFETY: of the last token that was read, of which there is a score for each of the vocabulary, until the next is read:
        // that needs `self` to be borrowed mutably.
        unsafe {
            let count = self.vocab.tokens();
            let scores = sys::llama_get_logits_ith(self.context.as_ptr(), -1);
            if scores.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(scores, count)
        }
    }

    /// Its vocabulary.
    pub(crate) fn vocabulary(&self) -> Vocabulary {
        self.vocab
    }
}

fn template(model: NonNull<sys::llama_model>) -> CString {
    // SAFETY: the model is loaded; the template is a C string of its own.
    unsafe {
        let template = sys::llama_model_chat_template(model.as_ptr(), std::ptr::null());
        if template.is_null() { FALLBACK_TEMPLATE } else { CStr::from_ptr(template) }.to_owned()
    }
}

/// A conversation with stand-ins for what was said, as far as the template is known.
fn render(template: &CStr, messages: &[ChatMessage]) -> Option<String> {
    let strings: Option<Vec<(CString, CString)>> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            Some((CString::new(message.role.as_str()).ok()?, CString::new(stand_in(index)).ok()?))
        })
        .collect();
    let strings = strings?;
    let chat: Vec<sys::llama_chat_message> = strings
        .iter()
        .map(|(role, content)| sys::llama_chat_message { role: role.as_ptr(), content: content.as_ptr() })
        .collect();
    let mut buffer = vec![0_u8; 4096];
    loop {
        // SAFETY: all strings outlive the call, and the buffer is as long as is said.
        let length = unsafe {
            sys::llama_chat_apply_template(
                template.as_ptr(),
                chat.as_ptr(),
                chat.len(),
                true,
                buffer.as_mut_ptr().cast::<c_char>(),
                buffer.len() as i32,
            )
        };
        let length = usize::try_from(length).ok()?;
        if length <= buffer.len() {
            buffer.truncate(length);
            return String::from_utf8(buffer).ok();
        }
        buffer.resize(length, 0);
    }
}

/// What llama.cpp complained of.
static COMPLAINT: Mutex<String> = Mutex::new(String::new());

fn complaint(otherwise: &str) -> String {
    let noted = COMPLAINT.lock().unwrap_or_else(PoisonError::into_inner);
    let line = noted.trim();
    if line.is_empty() { otherwise.to_owned() } else { line.to_owned() }
}

unsafe extern "C" fn note_complaint(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if level != sys::GGML_LOG_LEVEL_ERROR || text.is_null() {
        return;
    }
    // SAFETY: llama.cpp hands over a C string, for the time of the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let mut noted = COMPLAINT.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.len() < MAX_COMPLAINT {
        noted.extend(text.chars().take(MAX_COMPLAINT).map(|c| if c.is_control() { ' ' } else { c }));
    }
}

unsafe extern "C" fn must_end(_: *mut c_void) -> bool {
    is_stopped()
}
