//! Vocabularies of every format that is read, and tokenization by them.

mod load;
mod published;
mod sentence_piece;
mod tekken;
mod tokenize;
