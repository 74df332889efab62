//! Recommendations over a small shop.

mod brute_force;
mod draft;
mod live;
mod named;
mod rules;
mod shop;
