//! Examples of a run: histories of codes, or prompts of text that are written as serving does.

use anyhow::Context;
use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use palmette_recommend::{PromptFields, Prompts, RecommendError};
use palmette_train::{Augmentation, Dataset, Example, HistoryDataset};

/// A history that is trained on: numbers of its items, oldest first, and what its prompts have
/// beside them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainingHistory<'a> {
    /// At least one.
    pub(crate) items: &'a [u64],
    pub(crate) fields: Option<&'a PromptFields>,
    /// True where the last item alone is learnt, after all before it.
    pub(crate) is_question: bool,
}

/// The examples of a run.
#[derive(Debug)]
pub(crate) enum TrainingData<'a> {
    /// Whole histories of codes.
    Codes(HistoryDataset),
    /// A prompt and the item after it.
    Texts(TextDataset<'a>),
}

/// Items of histories, each after the prompt that serving would write of those before it.
///
/// A prompt is written anew whenever it is asked for, some ten microseconds a kilobyte: less than a
/// thousandth of what a model takes to learn from it, and 16 bytes an example instead of 8 a token.
#[derive(Debug)]
pub(crate) struct TextDataset<'a> {
    histories: Vec<TrainingHistory<'a>>,
    /// A history, and the place of the item that is learnt.
    examples: Vec<(usize, usize)>,
    prompts: Prompts,
    view: CatalogView,
    /// Limit on the tokens of a prompt.
    max: usize,
    none: PromptFields,
    has_branches: bool,
}

impl<'a> TrainingData<'a> {
    /// True where a history is one sequence, each of whose items comes after the prompt of those
    /// before it: there is no template, and no token ends an item.
    pub(crate) fn are_codes(prompts: &Prompts) -> bool {
        prompts.template().is_none() && prompts.format().end_tokens.is_empty()
    }

    /// The examples of histories as the model's prompts write them; with branches for a draft head.
    ///
    /// An example is a history where [these are](Self::are_codes), of which `augmentation` draws a
    /// part in each epoch. Elsewhere it is an item and the prompt before it, the same in every
    /// epoch, since no prompt is the beginning of another. The first item of a history is not
    /// learnt, as nothing is before it.
    ///
    /// # Errors
    /// When a prompt cannot be written, or is longer than the model's positions hold.
    pub(crate) fn new(
        histories: Vec<TrainingHistory<'a>>,
        prompts: &Prompts,
        view: &CatalogView,
        positions: usize,
        augmentation: Augmentation,
        has_branches: bool,
    ) -> anyhow::Result<Self> {
        if Self::are_codes(prompts) {
            let codes = |history: TrainingHistory<'_>| {
                history.items.iter().map(|&number| view.codes(number)).collect()
            };
            let codes = histories.into_iter().map(codes).collect();
            let data = HistoryDataset::new(codes, prompts.format().clone(), augmentation);
            return Ok(Self::Codes(if has_branches { data.with_branches() } else { data }));
        }
        let max = prompts.max_tokens(positions)?;
        let learnt = |(at, history): (usize, &TrainingHistory<'_>)| {
            let first = match history.is_question {
                true => history.items.len() - 1,
                false => 1,
            };
            (first..history.items.len()).map(move |place| (at, place))
        };
        let examples = histories.iter().enumerate().flat_map(learnt).collect();
        let (prompts, view, none) = (prompts.clone(), view.clone(), PromptFields::default());
        let data = TextDataset { histories, examples, prompts, view, max, none, has_branches };
        let mut prompt = Vec::new();
        for index in 0..data.examples.len() {
            let (at, place) = data.examples[index];
            data.write_prompt(index, &mut prompt).with_context(|| {
                let item = data.view.id(data.histories[at].items[place]);
                format!("the prompt of a history of {place} items before {item:?}")
            })?;
        }
        Ok(Self::Texts(data))
    }
}

impl TextDataset<'_> {
    fn write_prompt(
        &self,
        index: usize,
        prompt: &mut Vec<TokenId>,
    ) -> Result<usize, RecommendError> {
        let (at, place) = self.examples[index];
        let TrainingHistory { items, fields, .. } = self.histories[at];
        let fields = fields.unwrap_or(&self.none);
        self.prompts.write_prompt(&items[..place], &self.view, fields, self.max, prompt)
    }

    /// Writes the prompt, of which nothing is predicted, the item's codes, of which a branch is
    /// made, and what ends an item.
    fn write(&self, index: usize, example: &mut Example) {
        let mut sequence = Vec::new();
        // It depends on nothing but what it was made of when all were written.
        self.write_prompt(index, &mut sequence).expect("a prompt that was written before");
        let (at, place) = self.examples[index];
        let (format, from) = (self.prompts.format(), sequence.len());
        format.write_codes(&self.view.codes(self.histories[at].items[place]), &mut sequence);
        let said = sequence.len();
        sequence.extend(format.end_tokens.iter().copied().map(TokenId));
        let tokens: Vec<u32> = sequence.into_iter().map(|TokenId(token)| token).collect();
        example.set_next_token_from(&tokens, from);
        if self.has_branches {
            example.branches.after.push(from as u32);
            example.branches.targets.extend_from_slice(&tokens[from..said]);
        }
    }
}

impl Dataset for TrainingData<'_> {
    fn num_examples(&self) -> usize {
        match self {
            Self::Codes(data) => data.num_examples(),
            Self::Texts(data) => data.examples.len(),
        }
    }

    fn example(&self, seed: u64, epoch: u64, index: usize, example: &mut Example) {
        match self {
            Self::Codes(data) => data.example(seed, epoch, index, example),
            Self::Texts(data) => data.write(index, example),
        }
    }
}

#[cfg(all(test, feature = "hf-tokenizers"))]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use palmette_catalog::{BuildOptions, Catalog, Item};
    use palmette_decode::run_on;
    use palmette_model::{Model, ModelConfig};
    use palmette_recommend::{History, Recommender, Request, TemplateFile, Worker};
    use palmette_train::network::NO_TARGET;
    use serde_json::{Value, json};

    use super::*;

    const POSITIONS: usize = 512;

    fn catalog() -> Arc<Catalog> {
        let item = |n: u32| Item {
            id: format!("i{n}"),
            // Some share a semantic ID, and not their titles.
            codes: vec![n % 3, n % 6],
            attributes: [("title".to_owned(), json!(format!("tent {n}")))].into_iter().collect(),
        };
        let items: Vec<Item> = (0..12).map(item).collect();
        Arc::new(Catalog::build(items.into(), &BuildOptions::default()).unwrap())
    }

    fn recommender(template: &Value) -> Arc<Recommender> {
        let dir = tempfile::tempdir().unwrap();
        let fixtures = "../recommend/tests/recommend/fixtures/prompts/plain";
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixtures);
        for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
            std::fs::copy(fixtures.join(name), dir.path().join(name)).unwrap();
        }
        let path = dir.path().join(TemplateFile::FILE_NAME);
        std::fs::write(path, template.to_string()).unwrap();
        let catalog = catalog();
        let prompts =
            Prompts::read(dir.path(), Some(&CatalogView::from(Arc::clone(&catalog)))).unwrap();
        let config = json!({
            "model_type": "qwen3", "vocab_size": 360, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": POSITIONS,
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu",
        });
        let config = ModelConfig::from_bytes(config.to_string().as_bytes()).unwrap();
        Arc::new(Recommender::new(Model::random(config, 7).unwrap(), catalog, prompts).unwrap())
    }

    /// Token for token what serving asks a model, where the data has a query and fields, titles,
    /// and histories that a prompt does not hold.
    #[test]
    fn examples_have_the_prompts_of_requests() {
        let end = json!("<|im_end|>");
        let codes = json!(["<a_{}>", "<b_{}>"]);
        for template in [
            json!({"prompt": "{{ query }}{% if user.age %} ({{ user.age }}){% endif %}: {% for item in history %}{{ item.title }} {{ item }}, {% endfor %}", "codes": codes, "end": end}),
            json!({"messages": [{"role": "user", "content": "{{ query }} after {{ history | join(', ') }}"}, {"role": "user", "content": "{{ user.age }}"}], "before_item": "<|sid_begin|>", "codes": codes, "max_history_items": 3}),
            json!({"prompt": ["{{ query }} ", "{{ user.age }} {{ history | join('') }}"], "codes": codes, "end": end, "history_step": 2, "max_history_items": 4, "max_prompt_tokens": 24}),
        ] {
            let recommender = recommender(&template);
            let fields = |age: u32| PromptFields {
                query: Some(format!("a tent of {age}")),
                user: [("age".to_owned(), age.into())].into_iter().collect(),
            };
            let fields = [fields(4), fields(71)];
            let items: [&[u64]; 4] = [&[7, 1, 3, 8, 2, 0, 5, 11, 4], &[6], &[9, 10], &[3, 2, 1]];
            let histories: Vec<TrainingHistory<'_>> = items
                .iter()
                .enumerate()
                .map(|(place, items)| {
                    let fields = Some(&fields[place % 2]);
                    TrainingHistory { items, fields, is_question: place == 3 }
                })
                .collect();
            let view = recommender.view().unwrap();
            let (prompts, view) = (recommender.prompts(), view.view());
            let none = Augmentation { crop: 0.0, drop_items: 0.0 };
            let data =
                TrainingData::new(histories.clone(), prompts, view, POSITIONS, none, true).unwrap();
            // Each item but the first, and of a question its answer alone.
            let learnt = [(0, 1..9), (1, 1..1), (2, 1..2), (3, 2..3)];
            let learnt: Vec<(usize, usize)> = learnt
                .into_iter()
                .flat_map(|(of, places)| places.map(move |at| (of, at)))
                .collect();
            assert_eq!(data.num_examples(), learnt.len());
            let mut worker = Worker::new(Arc::clone(&recommender), 1);
            let (mut example, mut shortened) = (Example::default(), 0);
            for (index, (of, place)) in learnt.into_iter().enumerate() {
                data.example(1, 2, index, &mut example);
                let TrainingHistory { items, fields, .. } = histories[of];
                let history = History::Numbers(&items[..place]);
                let asked = Request { fields, include_seen: true, ..Request::new(history, 1) };
                let answer = worker.recommend(&asked, &mut run_on).unwrap();
                shortened += usize::from(answer.history_used < place);
                let prompt: Vec<u32> = worker.prompt().iter().map(|token| token.0).collect();
                let said: Vec<u32> = prompts
                    .spelled_item(&view.codes(items[place]))
                    .unwrap()
                    .iter()
                    .map(|of| of.token)
                    .collect();
                let whole = [&prompt[..], &said].concat();
                assert_eq!(example.tokens, whole[..whole.len() - 1]);
                let untold = prompt.len() - 1;
                assert!(example.targets[..untold].iter().all(|&target| target == NO_TARGET));
                assert_eq!(example.targets[untold..], said);
                // A head says the codes, and not what ends them.
                assert_eq!(example.branches.after, [prompt.len() as u32]);
                assert_eq!(example.branches.targets, said[..2]);
            }
            let is_limited = template.get("max_history_items").is_some();
            assert_eq!(shortened > 0, is_limited, "{shortened}: {template}");
        }
    }

    #[test]
    fn a_field_that_a_history_lacks_is_named() {
        let recommender = recommender(&json!({
            "prompt": "{{ query }}: {{ history | join('') }}", "codes": ["<a_{}>", "<b_{}>"],
        }));
        let view = recommender.view().unwrap();
        let history = TrainingHistory { items: &[1, 2], fields: None, is_question: false };
        let none = Augmentation { crop: 0.0, drop_items: 0.0 };
        let (prompts, view) = (recommender.prompts(), view.view());
        let made = TrainingData::new(vec![history], prompts, view, POSITIONS, none, true);
        let message = format!("{:#}", made.unwrap_err());
        let item = format!("{:?}", view.id(2));
        assert!(message.contains(&item) && message.contains("query"), "{message}");
    }
}
