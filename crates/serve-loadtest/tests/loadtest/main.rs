//! The driver against servers whose behaviour is known.

mod answers;
mod check;
mod load;
mod server;
