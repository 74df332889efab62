//! Kernels under emulation: each against a plain reference, over seeds, alone and among others.

mod arithmetic;
mod layouts;
mod masks;
mod product;
mod streams;
mod support;
