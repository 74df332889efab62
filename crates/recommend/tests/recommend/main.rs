//! Recommendations over a small shop.

mod brute_force;
mod draft;
mod encoder_decoder;
mod engine;
mod kept_prompts;
mod live;
mod naive;
mod named;
mod offline;
mod paging;
mod prompts;
mod question;
mod random;
mod rules;
mod shop;
