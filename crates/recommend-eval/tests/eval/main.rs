//! What is measured of recommendations.

mod cold_start;
mod evaluate;
mod histories;
mod layouts;
mod live;
mod real_histories;
