//! Recommendations as rows of a table.

use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// One user's recommendations, or the reason why there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The user.
    pub user: Option<String>,
    /// Ids of the items, best first.
    pub items: Vec<String>,
    /// Score of each.
    pub scores: Vec<f32>,
    /// Semantic ID of each.
    pub codes: Vec<Vec<u32>>,
    /// Items of the history that were unknown and left out.
    pub skipped: u32,
    /// The reason.
    pub error: Option<String>,
}

impl Answer {
    /// The columns of answers: `user` (text), `items` (list of texts), `scores` (list of 32-bit floats), `codes` (list of lists
    /// of 32-bit integers), `skipped` (32-bit integer), `error` (text).
    pub fn schema() -> SchemaRef {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        Arc::new(Schema::new(vec![
            Field::new("user", DataType::Utf8, true),
            Field::new("items", list(DataType::Utf8), true),
            Field::new("scores", list(DataType::Float32), true),
            Field::new("codes", list(list(DataType::UInt32)), true),
            Field::new("skipped", DataType::UInt32, false),
            Field::new("error", DataType::Utf8, true),
        ]))
    }

    /// Answers as a batch of [these columns](Self::schema). The lists of one with an error are null.
    pub fn to_batch(answers: &[Self]) -> RecordBatch {
        RecordBatch::try_new(Self::schema(), columns(answers)).expect("columns of the schema")
    }
}

fn columns(answers: &[Answer]) -> Vec<ArrayRef> {
    let (mut users, mut errors) = (StringBuilder::new(), StringBuilder::new());
    let mut items = ListBuilder::new(StringBuilder::new());
    let mut scores = ListBuilder::new(Float32Builder::new());
    let mut codes = ListBuilder::new(ListBuilder::new(UInt32Builder::new()));
    let mut skipped = UInt32Builder::new();
    for answer in answers {
        let is_answered = answer.error.is_none();
        users.append_option(answer.user.as_deref());
        errors.append_option(answer.error.as_deref());
        skipped.append_value(answer.skipped);
        answer.items.iter().for_each(|id| items.values().append_value(id));
        items.append(is_answered);
        answer.scores.iter().for_each(|score| scores.values().append_value(*score));
        scores.append(is_answered);
        for id in &answer.codes {
            id.iter().for_each(|code| codes.values().values().append_value(*code));
            codes.values().append(true);
        }
        codes.append(is_answered);
    }
    vec![
        Arc::new(users.finish()),
        Arc::new(items.finish()),
        Arc::new(scores.finish()),
        Arc::new(codes.finish()),
        Arc::new(skipped.finish()),
        Arc::new(errors.finish()),
    ]
}
