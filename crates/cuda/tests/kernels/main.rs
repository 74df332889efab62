//! Kernels under emulation: each against a plain reference, over seeds, alone and among others.

mod arithmetic;
mod attention;
mod layouts;
mod masks;
mod product;
mod rows;
mod select;
mod streams;
mod support;
