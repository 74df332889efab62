//! A draft head: the codes of an item without decode passes.
//!
//! The prompt is followed by a *placeholder* for each level, rows that stand for no token. One pass
//! over prompt and placeholders gives the normed hidden states h₀ after the prompt and h₁ … h_L at
//! the placeholders ([`Session::draft_states`](crate::Session::draft_states)). From these the head,
//! a few products of a row, says how likely each code of a level is after the codes before it:
//!
//! ```text
//! s₁     = h₀
//! p_l    = softmax(W_l (h_l + s_l))                  over the tokens of level l
//! s_l₊₁  = tanh(A_l s_l + B_l e_l + b_l)             e_l: embedding of the code that was chosen
//! ```
//!
//! so that a beam search over it ([`DraftRun`]) never asks the decoder again. Source: NEZHA (WWW
//! 2026), §3.2, equations 1 to 3. The paper says that its heads are linear maps of the width of one
//! hidden state, which leaves the sum of h and s, and that its transition is an RNN; this is the
//! plain one. The other forms of [`DraftForm`] are its ablations.

mod form;
mod head;
mod outline;
mod run;
mod tensors;

pub use form::{DraftForm, DraftInput, DraftTransition};
pub use head::DraftHead;
pub use outline::{DraftOutline, DraftShape};
pub use run::DraftRun;
pub use tensors::DraftTensors;
