//! Catalogs on an emulated device: plans, generations, and searches against the processor's.

mod callers;
mod generations;
mod plan;
mod searches;
mod support;
