//! Recommendations over a small shop.

mod brute_force;
mod draft;
mod live;
mod rules;
mod shop;
