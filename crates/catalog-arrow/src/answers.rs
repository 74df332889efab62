//! Columns of recommendations: records of answers as rows of a table.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float32Builder, ListBuilder, StringBuilder, UInt32Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use palmette_recommend::offline::AnswerRecord;

/// The columns of answers: `user` (text), `items` (list of texts), `scores` (list of 32-bit
/// floats), `codes` (list of lists of 32-bit integers), `proven` (truth value), `missed_at_most`
/// (32-bit float), `skipped` (32-bit integer), `error` (text).
pub fn answer_schema() -> SchemaRef {
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    Arc::new(Schema::new(vec![
        Field::new("user", DataType::Utf8, true),
        Field::new("items", list(DataType::Utf8), true),
        Field::new("scores", list(DataType::Float32), true),
        Field::new("codes", list(list(DataType::UInt32)), true),
        Field::new("proven", DataType::Boolean, true),
        Field::new("missed_at_most", DataType::Float32, true),
        Field::new("skipped", DataType::UInt32, false),
        Field::new("error", DataType::Utf8, true),
    ]))
}

/// Answers as a batch of [these columns](answer_schema). One with an error has nulls in place of
/// its lists and of `proven`; `missed_at_most` is null where an answer is proven.
pub fn answer_batch(answers: &[AnswerRecord]) -> RecordBatch {
    RecordBatch::try_new(answer_schema(), columns(answers)).expect("columns of the schema")
}

fn columns(answers: &[AnswerRecord]) -> Vec<ArrayRef> {
    let (mut users, mut errors) = (StringBuilder::new(), StringBuilder::new());
    let mut items = ListBuilder::new(StringBuilder::new());
    let mut scores = ListBuilder::new(Float32Builder::new());
    let mut codes = ListBuilder::new(ListBuilder::new(UInt32Builder::new()));
    let (mut proven, mut missed) = (BooleanBuilder::new(), Float32Builder::new());
    let mut skipped = UInt32Builder::new();
    for answer in answers {
        users.append_option(answer.user.as_deref());
        errors.append_option(answer.error.as_deref());
        skipped.append_value(answer.skipped);
        proven.append_option(answer.proven);
        missed.append_option(answer.missed_at_most);
        answer.items.iter().flatten().for_each(|id| items.values().append_value(id));
        items.append(answer.items.is_some());
        answer.scores.iter().flatten().for_each(|score| scores.values().append_value(*score));
        scores.append(answer.scores.is_some());
        for id in answer.codes.iter().flatten() {
            id.iter().for_each(|code| codes.values().values().append_value(*code));
            codes.values().append(true);
        }
        codes.append(answer.codes.is_some());
    }
    vec![
        Arc::new(users.finish()),
        Arc::new(items.finish()),
        Arc::new(scores.finish()),
        Arc::new(codes.finish()),
        Arc::new(proven.finish()),
        Arc::new(missed.finish()),
        Arc::new(skipped.finish()),
        Arc::new(errors.finish()),
    ]
}
