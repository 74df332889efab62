//! Requests: a prompt, what the text must fit, and how tokens are drawn.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use palmette_bindings::BoundGrammar;
use palmette_core::{AnyConstraint, Constraint, Lengths, NUMBER_BYTES, SlotId, TokenId};
use palmette_decode::{LengthRule, Sampler, SamplerOptions, greatest_least};
use palmette_grammar::{CompiledGrammar, GrammarConstraint, GrammarScratch, MaskBudget, SlotKind};

use crate::error::{RequestError, TokenList};
use crate::item_search::{ItemSearch, ItemSearchError, MAX_ITEM_TOKENS};
use crate::model::TextModel;
use crate::tool_calls::names_in;

/// A text to be written.
#[derive(Clone, Debug)]
pub struct TextRequest {
    /// The prompt's tokens.
    pub prompt: Vec<TokenId>,
    /// The set that the text must be in.
    pub constraint: Constrained,
    /// Rules by which tokens are drawn. Its repetition penalty counts the prompt, too; the other
    /// penalties do not.
    pub sampler: SamplerOptions,
    /// Added to the logits of some tokens.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// The most tokens of the text.
    pub max_tokens: usize,
    /// Tokens before which the text does not end. Of a text that is promised to be whole there is
    /// no shorter one; of others no end token is allowed before, as long as the constraint allows
    /// another token.
    pub min_tokens: usize,
    /// Allow no end token, as long as the constraint allows another token.
    pub ignores_ends: bool,
    /// Rule for a text that would take more tokens. A grammar's is whole within them where that is
    /// [promised](LengthRule::Promised); other constraints know no ways to the end.
    pub length: LengthRule,
    /// Strings before which the text ends. They are no part of it.
    pub stop: Vec<String>,
    /// Tokens after which the text ends, besides the model's end tokens. They have no text.
    pub stop_tokens: Vec<TokenId>,
    /// Log-probabilities for each token, and how many of the most likely ones beside it.
    pub logprobs: Option<usize>,
    /// Log-probabilities for the tokens of the prompt, each after those before it. They are without
    /// constraint; an [`Engine`](crate::engine::Engine) tells them before the text. Then there may
    /// be no text at all.
    pub prompt_logprobs: Option<usize>,
    /// Special tokens that are text.
    pub special: SpecialText,
    /// Search for the items that the text must have; see [`ItemSearch`].
    pub item_search: Option<ItemSearch>,
}

impl TextRequest {
    /// Writes at most `max_tokens` tokens after a prompt: the likeliest, without constraint. There
    /// are no stop strings.
    pub fn new(prompt: Vec<TokenId>, max_tokens: usize) -> Self {
        Self {
            prompt,
            constraint: Constrained::Nothing,
            sampler: SamplerOptions::default(),
            logit_bias: Vec::new(),
            max_tokens,
            min_tokens: 0,
            ignores_ends: false,
            length: LengthRule::default(),
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            logprobs: None,
            prompt_logprobs: None,
            special: SpecialText::Hidden,
            item_search: None,
        }
    }

    /// Searches the items that the text must have, instead of drawing their tokens one by one.
    #[must_use]
    pub fn search_items(self, search: ItemSearch) -> Self {
        Self { item_search: Some(search), ..self }
    }

    /// Tokens of the longest item that may be searched; 0 where none is.
    pub(crate) fn max_item_tokens(&self) -> usize {
        let (Some(_), Some(grammar)) = (self.item_search, self.constraint.grammar()) else {
            return 0;
        };
        let codes = (0..).map(SlotId).zip(grammar.slots());
        let codes = codes.filter(|(_, slot)| slot.kind == SlotKind::Codes);
        let longest = codes.filter_map(|(slot, _)| {
            let bytes = grammar.binding()?.set(slot).longest();
            Some(bytes.map_or(MAX_ITEM_TOKENS, |bytes| bytes / NUMBER_BYTES))
        });
        longest.max().unwrap_or(0)
    }

    /// Tokens of the shortest text that is known, where the text is to be whole. Whatever keeps
    /// that from being found is told when the text is written.
    pub(crate) fn fewest_tokens(&self, model: &TextModel) -> Option<usize> {
        let grammar = self.constraint.grammar();
        let grammar = grammar.filter(|_| self.length != LengthRule::Cut)?;
        let work = MaskBudget::of_steps(model.mask_steps(), None);
        let scratch = &mut GrammarScratch::default();
        grammar.fewest_tokens_within(&grammar.start(), scratch, &work).ok().flatten()
    }

    /// The broken rule of a text that is to be whole, and cannot have as many tokens as it must.
    fn too_many_tokens(&self, model: &TextModel) -> Option<RequestError> {
        let Self { min_tokens, max_tokens, .. } = *self;
        let grammar = self.constraint.grammar()?;
        let scratch = &mut GrammarScratch::default();
        let mut has_way = |least| {
            let work = MaskBudget::of_steps(model.mask_steps(), None);
            let lengths = Lengths { least, most: max_tokens };
            grammar.has_way_within(&grammar.start(), lengths, scratch, &work)
        };
        if has_way(min_tokens).ok()? {
            return None;
        }
        let known = greatest_least(min_tokens, has_way).ok()?;
        Some(RequestError::TooManyTokens { min_tokens, max_tokens, known })
    }

    /// The rules that a search for items breaks.
    fn broken_search(&self) -> Result<(), ItemSearchError> {
        let Some(search) = self.item_search else { return Ok(()) };
        search.check()?;
        if self.logprobs.is_some() {
            return Err(ItemSearchError::Logprobs);
        }
        Ok(())
    }

    /// Checks all that can be known before anything is computed.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self, model: &TextModel) -> Result<(), RequestError> {
        self.broken_rules(model).into_iter().next().map_or(Ok(()), Err)
    }

    /// The rules that are broken, as far as can be known before anything is computed.
    pub fn broken_rules(&self, model: &TextModel) -> Vec<RequestError> {
        self.broken_rules_of(model, self.fewest_tokens(model))
    }

    /// [`broken_rules`](Self::broken_rules) of a text whose [`fewest_tokens`](Self::fewest_tokens)
    /// are known.
    pub(crate) fn broken_rules_of(
        &self,
        model: &TextModel,
        fewest: Option<usize>,
    ) -> Vec<RequestError> {
        let mut broken = self.broken_options();
        let num_tokens = model.vocabulary().vocabulary().num_tokens();
        let unknown = |token: &TokenId| token.index() >= num_tokens;
        for (what, token) in [
            (TokenList::Prompt, self.prompt.iter().copied().find(unknown)),
            (TokenList::LogitBias, self.logit_bias.iter().map(|&(token, _)| token).find(unknown)),
            (TokenList::StopTokens, self.stop_tokens.iter().copied().find(unknown)),
        ] {
            broken.extend(token.map(|token| RequestError::UnknownToken {
                what,
                token,
                num_tokens,
            }));
        }
        let empty = self.stop.iter().position(String::is_empty);
        broken.extend(empty.map(|place| RequestError::EmptyStop { place }));
        let other = self.constraint.num_tokens().filter(|&other| other != num_tokens);
        broken.extend(
            other.map(|constraint| RequestError::OtherVocabulary { constraint, num_tokens }),
        );
        let (tokens, context_length) = (self.prompt.len(), model.context_length());
        let Self { max_tokens, min_tokens, .. } = *self;
        match () {
            () if tokens == 0 => broken.push(RequestError::EmptyPrompt),
            () if max_tokens == 0 && self.prompt_logprobs.is_none() => {
                broken.push(RequestError::NoTokens);
            }
            () if tokens + max_tokens.min(1) > context_length => {
                broken.push(RequestError::PromptTooLong { tokens, context_length });
            }
            () if max_tokens > context_length - tokens => {
                broken.push(RequestError::TooLong { tokens, max_tokens, context_length });
            }
            () => {}
        }
        let needed = fewest.filter(|&needed| needed > max_tokens && max_tokens > 0);
        broken.extend(needed.map(|needed| RequestError::TooFewTokens { needed, max_tokens }));
        if fewest.is_some_and(|fewest| fewest <= max_tokens)
            && (1..=max_tokens).contains(&min_tokens)
        {
            broken.extend(self.too_many_tokens(model));
        }
        broken.extend(self.broken_search().err().map(RequestError::from));
        if min_tokens > max_tokens {
            broken.push(RequestError::MinAboveMax { min_tokens, max_tokens });
        }
        broken
    }

    /// Options of the sampler that are out of range, each looked at alone.
    fn broken_options(&self) -> Vec<RequestError> {
        let plain = SamplerOptions::default();
        let SamplerOptions { repetition_penalty, presence_penalty, frequency_penalty, .. } =
            self.sampler;
        let SamplerOptions { temperature, top_p, min_p, .. } = self.sampler;
        let alone = [
            SamplerOptions { repetition_penalty, ..plain },
            SamplerOptions { presence_penalty, ..plain },
            SamplerOptions { frequency_penalty, ..plain },
            SamplerOptions { temperature, ..plain },
            SamplerOptions { top_p, ..plain },
            SamplerOptions { min_p, ..plain },
        ];
        let options = alone.into_iter().filter_map(|options| Sampler::new(options).err());
        let bias = Sampler::greedy().with_bias(self.logit_bias.iter().copied()).err();
        options.chain(bias).map(RequestError::from).collect()
    }

    /// A sampler at the beginning of its random numbers.
    pub(crate) fn sampler_checked(&self) -> Result<Sampler, RequestError> {
        Ok(Sampler::new(self.sampler)?.with_bias(self.logit_bias.iter().copied())?)
    }
}

/// The set that a text must be in.
#[derive(Clone, Default)]
pub enum Constrained {
    /// Any text: an end token is allowed everywhere.
    #[default]
    Nothing,
    /// A grammar's texts. Its masks have the model's budget
    /// ([`mask_steps`](crate::TextModelOptions::mask_steps)).
    Grammar(GrammarConstraint),
    /// A grammar that names catalogs, with their sets; the text's [members] are told at its end.
    ///
    /// [members]: crate::TextEnd::members
    Bound(BoundGrammar),
    /// The sequences of any other constraint over the model's vocabulary.
    By(Arc<dyn AnyConstraint>),
}

impl Constrained {
    /// The texts of a grammar.
    pub fn by(grammar: &CompiledGrammar) -> Self {
        Self::Grammar(grammar.constraint.clone())
    }

    /// The grammar, where it is one.
    pub(crate) fn grammar(&self) -> Option<&GrammarConstraint> {
        match self {
            Self::Grammar(grammar) => Some(grammar),
            Self::Bound(bound) => Some(bound.constraint()),
            Self::Nothing | Self::By(_) => None,
        }
    }

    /// Tokens that the constraint knows; `None` where there is none.
    fn num_tokens(&self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Grammar(grammar) => Some(grammar.num_tokens()),
            Self::Bound(bound) => Some(bound.constraint().num_tokens()),
            Self::By(constraint) => Some(constraint.num_tokens()),
        }
    }
}

/// A grammar that names no catalog has no members to tell.
impl From<BoundGrammar> for Constrained {
    fn from(bound: BoundGrammar) -> Self {
        match bound.sets() {
            [] => Self::Grammar(bound.constraint().clone()),
            _ => Self::Bound(bound),
        }
    }
}

impl fmt::Debug for Constrained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Grammar(_) => "Grammar(…)",
            Self::Bound(_) => "Bound(…)",
            Self::By(_) => "By(…)",
        })
    }
}

/// Special tokens that are a part of the text, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpecialText {
    /// None: special tokens have no text.
    #[default]
    Hidden,
    /// All but those that end the text.
    All,
    /// Special tokens whose names stand in these texts, such as the marks around a call. See
    /// [`ToolCallReader`](crate::ToolCallReader).
    Within(Vec<String>),
}

impl SpecialText {
    /// Reading of tokens that are shown.
    pub(crate) fn shown(&self, model: &TextModel) -> BTreeMap<TokenId, String> {
        let ends = model.end_tokens();
        let named = || {
            let all = model.special_names().iter().map(|(&token, name)| (token, name.clone()));
            all.filter(|(token, _)| !ends.contains(token))
        };
        match self {
            Self::Hidden => BTreeMap::new(),
            Self::All => named().collect(),
            Self::Within(texts) => named().filter(|(_, name)| names_in(texts, name)).collect(),
        }
    }
}
