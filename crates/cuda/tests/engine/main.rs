//! Whole models on an emulated device, against the processor's.

mod model;
mod reading;
mod recommend;
