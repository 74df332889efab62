//! A run's log: what was done and how it went; and whether a command that resumes a run is the one
//! that began it.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use palmette_recommend_eval::HoldOut;
use palmette_train::{Duration, TrainOptions, replace_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::run_args::RunArgs;

/// Names of logs: of a trained model, and of a draft head.
pub(crate) const LOGS: [&str; 2] = ["training.json", "draft.json"];

/// Facts that a log tells of a run besides its course.
pub(crate) trait About: Serialize + DeserializeOwned {
    /// In the model's directory.
    const FILE_NAME: &str;

    /// Settings that the run depends on, as the command line spells them.
    fn settings(&self) -> Vec<Setting>;

    /// Files of the run, with numbers that other contents do not have.
    fn files(&self, args: &RunArgs) -> Vec<(String, &str)>;
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Log<A> {
    #[serde(flatten)]
    pub(crate) about: A,
    pub(crate) parameters: usize,
    #[serde(flatten)]
    pub(crate) course: Course,
}

impl<A: About> Log<A> {
    /// The log of the run in OUT, which must be the one that `now` tells of.
    ///
    /// # Errors
    /// When there is none, or naming the first option or the file in which they differ.
    pub(crate) fn read_of(args: &RunArgs, now: &A) -> anyhow::Result<Self> {
        let path = args.out.join(A::FILE_NAME);
        let name = path.display();
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "{name}: a run cannot go on without its log; was it begun by another command? Resume with \
                 that one, or start a new run"
            )
        })?;
        let log: Self =
            serde_json::from_str(&text).with_context(|| format!("{name} is not a run's log"))?;
        check_agree(&log.about.settings(), &now.settings())?;
        for ((what, before), (_, now)) in log.about.files(args).iter().zip(now.files(args)) {
            ensure!(
                *before == now,
                "{what} changed since the run began; resume with what was there, or start a new run"
            );
        }
        Ok(log)
    }

    pub(crate) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(replace_text(&dir.join(A::FILE_NAME), &(text + "\n"))?)
    }
}

/// Options of both `train` and `draft` that no checkpoint holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunOptions {
    hold_out: HoldOut,
    #[serde(default)]
    cold_start: Option<f64>,
    crop: f32,
    drop_items: f32,
    validate_every: u64,
    validation_users: usize,
    validation_beam_width: usize,
}

impl RunOptions {
    pub(crate) fn new(args: &RunArgs) -> Self {
        let augmentation = args.augmentation();
        Self {
            hold_out: args.hold_out(),
            cold_start: args.cold_start,
            crop: augmentation.crop,
            drop_items: augmentation.drop_items,
            validate_every: args.validate_every,
            validation_users: args.validation_users,
            validation_beam_width: args.validation_beam_width,
        }
    }

    pub(crate) fn settings(&self) -> Vec<Setting> {
        vec![
            Setting::new("hold-out", self.hold_out.name()),
            Setting::optional("cold-start", self.cold_start),
            Setting::new("crop", self.crop),
            Setting::new("drop-items", self.drop_items),
            Setting::new("validate-every", self.validate_every),
            Setting::new("validation-users", self.validation_users),
            Setting::new("validation-beam-width", self.validation_beam_width),
        ]
    }
}

/// The options by which steps are taken, `--threads` left out. What no option sets is for the
/// checkpoint to compare.
pub(crate) fn settings_of(options: &TrainOptions) -> Vec<Setting> {
    let (Duration::Epochs(epochs) | Duration::Steps(epochs)) = options.duration;
    vec![
        Setting::new("epochs", epochs),
        Setting::new("batch-size", options.batch_size),
        Setting::new("learning-rate", options.learning_rate),
        Setting::new("warmup-steps", options.warmup_steps),
        Setting::new("weight-decay", options.weight_decay),
        Setting::new("dropout", options.dropout),
        Setting::new("label-smoothing", options.label_smoothing),
        Setting::new("next-token-weight", options.next_token_weight),
        Setting::new("average-decay", options.average_decay),
        Setting::new("seed", options.seed),
        Setting::new("shards", options.shards),
    ]
}

/// An option as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    option: &'static str,
    /// `None` where it was not said and has no default; empty where it takes no value.
    value: Option<String>,
}

impl Setting {
    pub(crate) fn new(option: &'static str, value: impl ToString) -> Self {
        Self { option, value: Some(value.to_string()) }
    }

    pub(crate) fn optional(option: &'static str, value: Option<impl ToString>) -> Self {
        Self { option, value: value.map(|value| value.to_string()) }
    }

    pub(crate) fn flag(option: &'static str, is_said: bool) -> Self {
        Self { option, value: is_said.then(String::new) }
    }

    fn said(&self) -> String {
        let option = self.option;
        match self.value.as_deref() {
            None => format!("without --{option}"),
            Some("") => format!("with --{option}"),
            Some(value) => format!("with --{option} {value}"),
        }
    }
}

/// # Errors
/// Naming the first option in which a run that is resumed differs.
fn check_agree(before: &[Setting], now: &[Setting]) -> anyhow::Result<()> {
    match before.iter().zip(now).find(|(before, now)| before != now) {
        None => Ok(()),
        Some((before, now)) => bail!(
            "the run was begun {before} and is resumed {}; resume it {before}, or start a new run with \
             --overwrite or another --out",
            now.said(),
            before = before.said(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_as_it_is_said() {
        let check = |before: Setting, now: Setting, message: &str| {
            let same = Setting::new("seed", 7);
            let error = check_agree(&[same.clone(), before], &[same, now]).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        };
        let cold = |share| Setting::optional("cold-start", share);
        check(
            cold(Some(0.02)),
            cold(None),
            "the run was begun with --cold-start 0.02 and is resumed without --cold-start; resume it with \
             --cold-start 0.02, or start",
        );
        check(
            cold(None),
            cold(Some(0.1)),
            "the run was begun without --cold-start and is resumed with --cold-start 0.1; resume it without",
        );
        let flag = |is_said| Setting::flag("head-only", is_said);
        check(
            flag(true),
            flag(false),
            "the run was begun with --head-only and is resumed without --head-only; resume it with --head-only, or",
        );
    }
}
