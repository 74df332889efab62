//! Sets of fields against their definition: the listed values of the items that match.

mod damaged;
mod definition;
mod frozen;
mod lexicons;
mod live;
