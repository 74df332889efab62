//! Cost of a recommendation, next to its arithmetic at the speed of large products.
//!
//! The model has random weights and the catalog random items: neither time nor memory depends on
//! what they say. A request is a whole one,
//! [`Worker::recommend`](palmette_recommend::Worker::recommend), timed stage by stage, on this
//! processor or where a [`DeviceLoader`] puts the model.

mod ceiling;
mod operations;
mod run;

pub use operations::{Operations, Passes};
pub use run::{
    DeviceLoader, ProductBound, RandomModel, RecommendBench, RecommendReport, ReturningUsers,
};
