//! Answer sinks: the receiving end of a run.

use super::error::OfflineError;
use super::record::AnswerRecord;

/// Receiver of a run's records, in the order of the histories.
///
/// One that has records of an earlier run gives them back first, and the run makes no others in
/// their place.
pub trait AnswerSink {
    /// The record that an earlier run made for the next history, which is of this user; `None` from
    /// where there are no more.
    ///
    /// # Errors
    /// When the earlier run answered another user there, or its records cannot be read.
    fn next_kept(&mut self, user: Option<&str>) -> Result<Option<AnswerRecord>, OfflineError>;

    /// Takes the next records.
    ///
    /// # Errors
    /// When they cannot be written.
    fn push(&mut self, records: Vec<AnswerRecord>) -> Result<(), OfflineError>;
}

/// Records in memory: no earlier run has any.
impl AnswerSink for Vec<AnswerRecord> {
    fn next_kept(&mut self, _: Option<&str>) -> Result<Option<AnswerRecord>, OfflineError> {
        Ok(None)
    }

    fn push(&mut self, records: Vec<AnswerRecord>) -> Result<(), OfflineError> {
        self.extend(records);
        Ok(())
    }
}
