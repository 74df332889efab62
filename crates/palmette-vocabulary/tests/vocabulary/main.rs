//! Vocabularies of every format that is read, and tokenization by them.

mod formats;
mod load;
mod tokenize;
