//! Sets of fields against their definition: the listed values of the items that match.

mod codes;
mod damaged;
mod definition;
mod frozen;
mod lexicons;
mod live;
