//! Closing words of `train` and `draft`.

use std::io::Write;
use std::path::Path;

use super::course::Course;

/// Outcome of a training, for its user.
pub(super) struct Outcome<'a> {
    pub(super) out: &'a Path,
    pub(super) parameters: usize,
    pub(super) course: &'a Course,
    /// Words for the contents of OUT, with their verb.
    pub(super) made: &'a str,
    /// Noun for the last epoch's result, where nobody was asked at validation.
    pub(super) latest: &'a str,
}

impl Outcome<'_> {
    /// Says it as text, or as one JSON document.
    pub(super) fn report(&self, json: bool) -> anyhow::Result<()> {
        let out = self.out.display();
        let Course { epochs, best, seconds, .. } = self.course;
        let mut stdout = std::io::stdout().lock();
        if json {
            let document = serde_json::json!({
                "out": out.to_string(),
                "parameters": self.parameters,
                "epochs": epochs,
                "best": best,
                "seconds": seconds,
            });
            writeln!(stdout, "{document}")?;
            return Ok(());
        }
        writeln!(stdout, "{seconds:.0} s; {} in {out}", self.made)?;
        match best {
            Some(best) => writeln!(
                stdout,
                "best validation at epoch {}: HR@10 {:.4}, NDCG@10 {:.4}, {} users",
                best.epoch, best.hit_rate_at_10, best.ndcg_at_10, best.users
            )?,
            None => {
                let latest = self.latest;
                writeln!(
                    stdout,
                    "no user was asked at validation: it is the last epoch's {latest}"
                )?;
            }
        }
        Ok(())
    }
}
