//! Vectors of items.

use std::collections::HashSet;

use crate::error::{TrainError, TrainErrorKind};

/// One vector for each of some items.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    items: Vec<String>,
    width: usize,
    /// `[N, D]`
    values: Vec<f32>,
}

impl Embeddings {
    /// The vectors of `items`, `[N, D]` values, row by row.
    ///
    /// # Errors
    /// When there are no items, an item stands twice, the vectors have no numbers, or a number is
    /// not finite.
    ///
    /// # Panics
    /// When there are not `width` values for each item.
    pub fn new(items: Vec<String>, width: usize, values: Vec<f32>) -> Result<Self, TrainError> {
        assert_eq!(values.len(), items.len() * width, "a vector for each item");
        if items.is_empty() || width == 0 {
            let (rows, columns) = (items.len(), width);
            return Err(TrainErrorKind::NoEmbeddings { rows, columns }.into());
        }
        let mut seen = HashSet::with_capacity(items.len());
        if let Some(item) = items.iter().find(|item| !seen.insert(item.as_str())) {
            return Err(TrainErrorKind::ItemTwice { item: item.clone() }.into());
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (item, column) = (items[at / width].clone(), at % width);
            return Err(TrainErrorKind::NotFinite { item, column, value: values[at] }.into());
        }
        Ok(Self { items, width, values })
    }

    /// The items, in the order of the rows.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// Numbers in a vector (D).
    pub fn width(&self) -> usize {
        self.width
    }

    /// The vectors, `[N, D]`.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Scales each vector to length 1, as cosine similarity sees them; zero vectors stay.
    pub fn normalized(mut self) -> Self {
        for row in self.values.chunks_mut(self.width) {
            let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            if length > 0.0 {
                row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
            }
        }
        self
    }
}

/// The rows of these numbers.
pub(super) fn rows_of(values: &[f32], width: usize, rows: &[u32]) -> Vec<f32> {
    rows.iter().flat_map(|&row| &values[row as usize * width..][..width]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn bad_ones_are_named() {
        let message = |names: &[&str], width, values: &[f32]| {
            Embeddings::new(items(names), width, values.to_vec()).unwrap_err().to_string()
        };
        assert!(message(&[], 3, &[]).contains("0 rows"), "{}", message(&[], 3, &[]));
        assert!(message(&["a"], 0, &[]).contains("0 columns"));
        assert!(message(&["a", "b", "a"], 1, &[0.0; 3]).contains("\"a\""));
        let error = message(&["a", "b"], 2, &[0.0, 1.0, 2.0, f32::NAN]);
        assert!(error.contains("\"b\"") && error.contains("NaN"), "{error}");
    }

    #[test]
    fn normalized_vectors_have_length_one() {
        let made = Embeddings::new(items(&["a", "b"]), 2, vec![3.0, 4.0, 0.0, 0.0]).unwrap();
        assert_eq!(made.normalized().values(), [0.6, 0.8, 0.0, 0.0]);
    }
}
