//! Vocabularies of every format that is read, and tokenization by them.

mod load;
mod tekken;
mod tokenize;
