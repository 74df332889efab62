//! An engine that computes as late as it may: nothing before it is asked for, as a device whose
//! pass goes on after the call that began it. Answers are to the bit those of the model itself.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palmette_catalog_filter::Filter;
use palmette_core::TokenId;
use palmette_decode::{Extension, LogitsSource, Step};
use palmette_model::draft::{DraftForm, DraftHead};
use palmette_model::{
    Engine, Model, ModelConfig, Reading, ReadingShape, SequenceStore, SequencesError,
    SequencesOptions, SessionError,
};
use palmette_recommend::{Candidates, Mode, Normaliser, RecommendError, Recommender, Request};

use crate::shop::{catalog, format, model, parts, recommend, request};

/// A model behind the seam, and the passes that were begun.
#[derive(Debug)]
struct LateEngine {
    model: Arc<Model>,
    begun: Arc<AtomicUsize>,
}

/// A pass that was begun.
#[derive(Debug)]
enum Begun {
    Prompt(Range<usize>),
    Next(Vec<u32>, Vec<TokenId>, Range<usize>),
}

#[derive(Debug)]
struct LateReading {
    inner: Box<dyn Reading>,
    pending: Option<Begun>,
    has_begun_prompt: bool,
    begun: Arc<AtomicUsize>,
}

impl Engine for LateEngine {
    fn config(&self) -> &ModelConfig {
        self.model.config()
    }
    fn num_parameters(&self) -> usize {
        self.model.num_parameters()
    }
    fn weight_bytes(&self) -> usize {
        self.model.weight_bytes()
    }
    fn planned_bytes(
        &self,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<usize, SessionError> {
        self.model.planned_bytes(shape, threads)
    }
    fn open(
        self: Arc<Self>,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<Box<dyn Reading>, SessionError> {
        let inner = Arc::clone(&self.model).open(shape, threads)?;
        let begun = Arc::clone(&self.begun);
        Ok(Box::new(LateReading { inner, pending: None, has_begun_prompt: false, begun }))
    }
    fn sequence_rows(&self) -> usize {
        self.model.sequence_rows()
    }
    fn planned_sequence_bytes(&self, options: &SequencesOptions) -> Result<usize, SequencesError> {
        self.model.planned_sequence_bytes(options)
    }
    fn open_sequences(
        self: Arc<Self>,
        options: SequencesOptions,
    ) -> Result<Box<dyn SequenceStore>, SequencesError> {
        Arc::clone(&self.model).open_sequences(options)
    }
}

impl LateReading {
    /// Computes what was begun.
    fn finish(&mut self) -> Result<(), SessionError> {
        match self.pending.take() {
            Some(Begun::Prompt(columns)) => self.inner.begin_prompt(columns),
            Some(Begun::Next(parents, tokens, columns)) => {
                self.inner.begin_next(&parents, &tokens, columns)
            }
            None => Ok(()),
        }
    }

    /// Two passes in flight would be one lost.
    fn begin(&mut self, pass: Begun) -> Result<(), SessionError> {
        self.finish()?;
        self.pending = Some(pass);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl LogitsSource for LateReading {
    type Error = SessionError;

    fn num_tokens(&self) -> usize {
        self.inner.num_tokens()
    }
    fn prompt_logits(&mut self) -> Result<&[f32], SessionError> {
        self.finish()?;
        self.inner.prompt_logits()
    }
    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        self.finish()?;
        self.inner.next_logits(parents, tokens)
    }
    fn logits(&mut self) -> Result<&[f32], SessionError> {
        self.finish()?;
        self.inner.logits()
    }
}

impl Reading for LateReading {
    fn use_threads(&mut self, threads: usize) {
        self.inner.use_threads(threads);
    }
    fn set_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        self.pending = None;
        self.has_begun_prompt = false;
        self.inner.set_prompt(tokens)
    }
    fn has_read_prompt(&self) -> bool {
        self.has_begun_prompt
    }
    fn begin_prompt(&mut self, columns: Range<usize>) -> Result<(), SessionError> {
        self.has_begun_prompt = true;
        self.begin(Begun::Prompt(columns))
    }
    fn begin_next(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        columns: Range<usize>,
    ) -> Result<(), SessionError> {
        self.begin(Begun::Next(parents.to_vec(), tokens.to_vec(), columns))
    }
    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), SessionError> {
        self.finish()?;
        self.inner.select(step, best)
    }
    fn cache_bytes(&self) -> (usize, usize) {
        self.inner.cache_bytes()
    }
}

#[test]
fn an_engine_that_computes_late_gives_the_same_answers() {
    let begun = Arc::new(AtomicUsize::new(0));
    for normaliser in [Normaliser::Vocabulary, Normaliser::Level] {
        let late = LateEngine { model: Arc::new(model()), begun: Arc::clone(&begun) };
        let late = Recommender::new(Arc::new(late), Arc::new(catalog(90)), format()).unwrap();
        let late = Arc::new(late.with_normaliser(normaliser).unwrap());
        let here = Recommender::new(model(), Arc::new(catalog(90)), format()).unwrap();
        let here = Arc::new(here.with_normaliser(normaliser).unwrap());
        assert!(late.engine().model().is_none() && here.engine().model().is_some());
        let filter = Filter::parse(r#"{"must_not": {"ids": ["i3", "i17", "i40"]}}"#).unwrap();
        for mode in [Mode::Beam, Mode::Auto, Mode::Probed(7.try_into().unwrap())] {
            for (items, k) in [(Candidates::All, 9), (Candidates::Filter(&filter), 5)] {
                let history = [4, 70, 11];
                let asked = Request { mode, items, ..request(&history, k, 60) };
                let before = begun.load(Ordering::Relaxed);
                let answer = recommend(&late, &asked);
                assert!(begun.load(Ordering::Relaxed) >= before + 3, "a pass a level, begun late");
                assert_eq!(parts(&answer), parts(&recommend(&here, &asked)), "{asked:?}");
                assert_eq!(answer.items.len(), k);
            }
        }
    }
}

#[test]
fn a_draft_head_is_refused_where_hidden_states_are_elsewhere() {
    let late = LateEngine { model: Arc::new(model()), begun: Arc::default() };
    let late = Recommender::new(Arc::new(late), Arc::new(catalog(90)), format()).unwrap();
    let shape = format().draft_shape().unwrap();
    let head = DraftHead::random(DraftForm::default(), &model(), shape, 1).unwrap();
    let error = late.with_draft_head(head).unwrap_err();
    assert!(matches!(error, RecommendError::Session(SessionError::NoDraftHere)), "{error}");
    assert!(error.to_string().contains("--mode beam"), "{error}");
}
