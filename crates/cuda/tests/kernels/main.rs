//! Kernels under emulation: each against a plain reference, over seeds, alone and among others.

mod arithmetic;
mod attention;
mod callers;
mod draft;
mod golden;
mod int8;
mod layouts;
mod manifest;
mod masks;
mod product;
mod rows;
mod select;
mod streams;
mod support;
