//! Which token comes next: the likeliest, or one that is drawn, within a grammar if there is one.

use crate::llama::Model;
use crate::vocabulary::Token;
use llama_cpp_sys_2 as sys;
use std::ffi::CString;
use std::ptr::NonNull;

/// Has llama.cpp draw a number of its own.
const RANDOM_SEED: u32 = u32::MAX;

/// Chooses the tokens of one answer.
pub(crate) struct Sampler {
    chain: NonNull<sys::llama_sampler>,
    grammar: Option<NonNull<sys::llama_sampler>>,
    candidates: Vec<sys::llama_token_data>,
}

impl Sampler {
    /// At a temperature, where 0 takes the likeliest token each time.
    pub(crate) fn new(
        model: &Model,
        temperature: f32,
        top_p: Option<f32>,
        grammar: Option<&str>,
    ) -> Result<Self, String> {
        // SAFETY: the chain owns what is added to it.
        let chain = unsafe {
            let chain = sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params());
            if temperature > 0.0 {
                if let Some(top_p) = top_p {
                    sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_top_p(top_p, 1));
                }
                sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_temp(temperature));
                sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_dist(RANDOM_SEED));
            } else {
                sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_greedy());
            }
            chain
        };
        let chain = NonNull::new(chain).ok_or("there is no memory for a sampler")?;
        let mut sampler = Self { chain, grammar: None, candidates: Vec::new() };
        if let Some(grammar) = grammar {
            let grammar = CString::new(grammar).map_err(|e| e.to_string())?;
            // SAFETY: both are C strings; the vocabulary lives as long as the model.
            let made = unsafe {
                sys::llama_sampler_init_grammar(
                    model.vocabulary().as_ptr(),
                    grammar.as_ptr(),
                    c"root".as_ptr(),
                )
            };
            sampler.grammar = Some(NonNull::new(made).ok_or("llama.cpp does not read the grammar")?);
        }
        Ok(sampler)
    }

    /// The next token. `None` where there are no scores.
    pub(crate) fn next(&mut self, model: &Model) -> Option<Token> {
        let token = self.chosen(model, false)?;
        // Most tokens fit, and one is looked at in much less time than all of them.
        let token = if self.fits(token) {
            token
        } else {
            self.chosen(model, true).filter(|token| self.fits(*token))?
        };
        // SAFETY: both samplers live as long as `self`, and the grammar takes the token.
        unsafe {
            if let Some(grammar) = self.grammar {
                sys::llama_sampler_accept(grammar.as_ptr(), token);
            }
            sys::llama_sampler_accept(self.chain.as_ptr(), token);
        }
        Some(token)
    }

    fn chosen(&mut self, model: &Model, within_grammar: bool) -> Option<Token> {
        let scores = model.scores().iter().enumerate();
        self.candidates.clear();
        self.candidates.extend(scores.map(|(id, logit)| sys::llama_token_data {
            id: id as Token,
            logit: *logit,
            p: 0.0,
        }));
        let mut all = sys::llama_token_data_array {
            data: self.candidates.as_mut_ptr(),
            size: self.candidates.len(),
            selected: -1,
            sorted: false,
        };
        // SAFETY: the array is as long as is said; what a sampler puts in its place is as well, until it is used again.
        unsafe {
            if let Some(grammar) = self.grammar.filter(|_| within_grammar) {
                sys::llama_sampler_apply(grammar.as_ptr(), &mut all);
            }
            sys::llama_sampler_apply(self.chain.as_ptr(), &mut all);
            let selected = usize::try_from(all.selected).ok().filter(|selected| *selected < all.size)?;
            Some((*all.data.add(selected)).id)
        }
    }

    fn fits(&self, token: Token) -> bool {
        let Some(grammar) = self.grammar else { return true };
        let mut one = sys::llama_token_data { id: token, logit: 0.0, p: 0.0 };
        let mut alone = sys::llama_token_data_array { data: &mut one, size: 1, selected: -1, sorted: false };
        // SAFETY: the array has one token.
        unsafe { sys::llama_sampler_apply(grammar.as_ptr(), &mut alone) };
        one.logit == 0.0
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: both are ours, and used no more.
        unsafe {
            sys::llama_sampler_free(self.chain.as_ptr());
            if let Some(grammar) = self.grammar {
                sys::llama_sampler_free(grammar.as_ptr());
            }
        }
    }
}
