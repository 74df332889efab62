//! Whole models on an emulated device, against the processor's.

mod draft;
mod int8;
mod meeting;
mod model;
mod reading;
mod recommend;
mod search;
mod sequences;
mod texts;
