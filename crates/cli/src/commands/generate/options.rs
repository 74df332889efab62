//! Options of sampling.

use std::num::NonZeroUsize;

use anyhow::{Context, anyhow, ensure};
use clap::{Args, ValueEnum};
use palmette_decode::SamplerOptionError;
use palmette_document::respelled;
use palmette_text::SamplerOptions;
use palmette_text::question::{FinishMember, OneOrMany, TextDefaults, TextLimits, TextMembers};

/// Declares the numbers of a sampler: each an option of the command, the field of
/// [`SamplerOptions`] that has its name, and a member of a question.
macro_rules! sampler_numbers {
    ($($(#[doc = $help:literal])* $name:ident: $value_name:literal = $default:expr;)*) => {
        /// Numbers of a sampler.
        #[derive(Clone, Debug, Args)]
        pub(super) struct SamplerNumbers {
            $(
                $(#[doc = $help])*
                #[arg(long, value_name = $value_name, default_value_t = $default, allow_negative_numbers = true,
                    value_parser = finite, help_heading = "Sampling")]
                $name: f32,
            )*
        }

        impl SamplerNumbers {
            fn options(&self) -> SamplerOptions {
                SamplerOptions { $($name: self.$name,)* ..SamplerOptions::default() }
            }

            fn fill(&self, text: &mut TextMembers) {
                $(text.$name = text.$name.or(Some(self.$name));)*
            }

            /// Names of those that a question leaves to the options.
            fn left(text: &TextMembers) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(names.extend(text.$name.is_none().then_some(stringify!($name)));)*
                names
            }
        }
    };
}

sampler_numbers! {
    /// Divides logits: 0 takes the most likely token, 1 draws as the model says, more is wilder
    temperature: "T" = TextDefaults::TERMINAL_TEMPERATURE;
    /// Draw among the most likely tokens whose probabilities sum to this
    top_p: "P" = 1.0;
    /// Draw among tokens at least this many times as likely as the most likely one
    min_p: "P" = 0.0;
    /// Makes tokens of the prompt and the text less likely, by division; 1 for none
    repetition_penalty: "F" = 1.0;
    /// Taken from the logits of tokens that are in the text
    presence_penalty: "F" = 0.0;
    /// Frequency penalty: taken from logits for each time that a token is there
    frequency_penalty: "F" = 0.0;
}

/// Options of sampling, and the ends of a text.
#[derive(Clone, Debug, Args)]
pub(super) struct SamplingArgs {
    /// The most tokens of the text [default: 512, or as many as the model still reads]
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    pub(super) max_tokens: Option<usize>,
    /// Tokens before which the text may not end: of a grammar's one that is so long is promised, or
    /// refused; under `--finish cut` it may end where nothing else may follow
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Sampling")]
    min_tokens: usize,
    /// Rule for a text of a grammar that would take more tokens: whole within them, gently or when
    /// it must, or cut off
    #[arg(long, value_enum, value_name = "RULE", default_value_t = FinishRule::Promised, help_heading = "Sampling")]
    finish: FinishRule,
    #[command(flatten)]
    numbers: SamplerNumbers,
    /// Draw among this number of the most likely tokens
    #[arg(long, value_name = "K", help_heading = "Sampling")]
    top_k: Option<NonZeroUsize>,
    /// Added to the logit of a token, by its id; again for more
    #[arg(long, value_name = "ID=F", value_parser = bias, help_heading = "Sampling")]
    logit_bias: Vec<(u32, f32)>,
    /// The random numbers: the same seed draws the same text, on every machine
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Sampling")]
    seed: u64,
    /// End the text before this string; again for more
    #[arg(long, value_name = "TEXT", help_heading = "Sampling")]
    stop: Vec<String>,
    /// Number of texts, the seeds counting up
    #[arg(short, long, value_name = "N", default_value_t = 1, help_heading = "Sampling")]
    n: usize,
    /// Search for the -n best texts, keeping this number of beginnings side by side, instead of
    /// drawing tokens
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    beams: Option<NonZeroUsize>,
    /// With --beams: texts are ranked by the sum of their log-probabilities over their tokens to
    /// the power of this, from -10 to 10; 0 for the sum, 1 for the mean [default: 1]
    #[arg(
        long,
        value_name = "P",
        allow_negative_numbers = true,
        value_parser = finite,
        requires = "beams",
        help_heading = "Sampling"
    )]
    length_penalty: Option<f32>,
    /// With --json: log-probabilities of each token among the allowed ones, and of the N likeliest
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    pub(super) logprobs: Option<usize>,
}

/// Members and their options, as [`respelled`] takes them.
pub(super) fn borrowed<'n>(names: &'n [(&'static str, String)]) -> Vec<(&'n str, &'n str)> {
    names.iter().map(|(name, option)| (*name, option.as_str())).collect()
}

/// Rule for a text of a grammar that would take more tokens than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FinishRule {
    /// Whole within them, or refused before the first with the number that is needed
    Promised,
    /// Promised, and leaning to the end before it has to end
    Gentle,
    /// Cut off
    Cut,
}

impl From<FinishRule> for FinishMember {
    fn from(rule: FinishRule) -> Self {
        match rule {
            FinishRule::Promised => Self::Promised,
            FinishRule::Gentle => Self::Gentle,
            FinishRule::Cut => Self::Cut,
        }
    }
}

/// A number that single precision holds: what is beyond would be told as infinite.
fn finite(given: &str) -> anyhow::Result<f32> {
    let number: f32 = given.parse().context("it is no number")?;
    ensure!(
        number.is_finite() || !given.contains(|c: char| c.is_ascii_digit()),
        "it is from -3.4e38 to 3.4e38"
    );
    Ok(number)
}

fn bias(given: &str) -> anyhow::Result<(u32, f32)> {
    let (token, value) =
        given.split_once('=').ok_or_else(|| anyhow!("it is ID=F, as in 2=-100"))?;
    let token = token.parse().with_context(|| format!("{token:?} is no token id"))?;
    Ok((token, value.parse().with_context(|| format!("{value:?} is no number"))?))
}

impl SamplingArgs {
    /// Refuses what no model could make good.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let most = TextLimits::OWN.max_answers;
        ensure!((1..=most).contains(&self.n), "-n is {}; it must be from 1 to {most}", self.n);
        ensure!(self.max_tokens != Some(0), "--max-tokens is 0; it must be at least 1");
        ensure!(
            !self.stop.iter().any(String::is_empty),
            "--stop is empty, and would end every text at once; leave it out"
        );
        let sampler = palmette_decode::Sampler::new(self.sampler());
        let named = |error: SamplerOptionError| {
            let names = self.names(&TextMembers::default());
            anyhow!(respelled(&error.to_string(), &borrowed(&names)))
        };
        sampler.map(drop).map_err(named)
    }

    fn sampler(&self) -> SamplerOptions {
        SamplerOptions { top_k: self.top_k, seed: self.seed, ..self.numbers.options() }
    }

    /// The options by the members that a question leaves to them, for errors about these.
    pub(super) fn names(&self, text: &TextMembers) -> Vec<(&'static str, String)> {
        let option = |name: &'static str| (name, format!("--{}", name.replace('_', "-")));
        let mut names: Vec<_> = SamplerNumbers::left(text).into_iter().map(option).collect();
        for (name, is_left) in [
            ("length_penalty", text.length_penalty.is_none()),
            ("logit_bias", text.logit_bias.is_none()),
            ("max_tokens", text.max_tokens.is_none()),
            ("min_tokens", text.min_tokens.is_none()),
            ("top_k", text.top_k.is_none()),
        ] {
            names.extend(is_left.then(|| option(name)));
        }
        let beams = self.beams.filter(|_| text.best_of.is_none());
        names.extend(beams.map(|_| ("best_of", "--beams".to_owned())));
        names.extend(text.n.is_none().then(|| ("n", "-n".to_owned())));
        names
    }

    /// Fills in what a question does not say. The most tokens have two members in a chat.
    pub(super) fn fill(&self, text: &mut TextMembers) {
        self.numbers.fill(text);
        text.seed = text.seed.or(Some(self.seed.cast_signed()));
        let top_k = self.top_k.map(|k| i64::try_from(k.get()).unwrap_or(i64::MAX));
        text.top_k = text.top_k.or(top_k);
        text.n = text.n.or(Some(self.n));
        if let Some(beams) = self.beams {
            text.use_beam_search = text.use_beam_search.or(Some(true));
            text.best_of = text.best_of.or(Some(beams.get()));
            text.length_penalty = text.length_penalty.or(self.length_penalty);
        }
        text.min_tokens = text.min_tokens.or(Some(self.min_tokens));
        text.finish = text.finish.or(Some(self.finish.into()));
        if text.stop.is_none() && !self.stop.is_empty() {
            text.stop = Some(OneOrMany::Many(self.stop.clone()));
        }
        if text.logit_bias.is_none() && !self.logit_bias.is_empty() {
            let bias = self.logit_bias.iter();
            text.logit_bias =
                Some(bias.map(|(token, value)| (token.to_string(), *value)).collect());
        }
    }
}
