//! Check of a question against a view of the catalog: defaults filled in and names found, or all
//! faults at once.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_catalog::FilterLookUps;
use palmette_catalog_filter::{Filter, Moment};
use palmette_catalog_live::ViewItems;
use palmette_document::{Fault, Faults, RawJson};

use super::history::find;
use super::{CheckedQuestion, ModeName, QuestionLimits, RecommendQuestion, fault};
use crate::cursor::Cursor;
use crate::error::{Cause, RecommendError};
use crate::fields::PromptFields;
use crate::free_text::{Explain, Think};
use crate::mode::{Mode, Verification};
use crate::named_item::NamedItem;
use crate::recommender::Recommender;
use crate::rules::{Caps, ItemOrder, Plan, Rules, RulesError};
use crate::view::SpelledView;

impl RecommendQuestion {
    /// Checks the question against a view of the recommender's catalog. `now` is the moment of
    /// rules of validity that name none.
    ///
    /// Cost: look-ups of the history; a filter or boost that is not in the view's cache is
    /// compiled.
    ///
    /// # Errors
    /// With every fault that shows without a search. What only the items that are left can tell,
    /// such as a pinned item that the filter refuses, is an error of the
    /// [answer](crate::Worker::answer).
    pub fn check(
        mut self,
        recommender: &Recommender,
        view: &Arc<SpelledView>,
        limits: &QuestionLimits,
        now: Option<Moment>,
    ) -> Result<CheckedQuestion, Faults> {
        let mut faults = Faults::default();
        self.check_counts(limits, &mut faults);
        self.check_widths(recommender, &mut faults);
        let named = std::mem::take(&mut self.history);
        let found = find(&named, view, self.unknown_items);
        let (history, unknown) = faults.take(found).unwrap_or_default();
        for (place, name) in self.fields.iter().enumerate().filter(|(_, name)| *name != "*") {
            if let Err(error) = view.view().kind_of(name) {
                faults.push(Fault::new(format!("/fields/{place}"), error.to_string()));
            }
        }
        let mut look_ups = FilterLookUps::default();
        let items = self.items(view, &mut look_ups);
        let items = faults.take(items).flatten();
        let rules = self.checked_rules(view, now);
        let (rules, asks_now) = faults.take(rules).unwrap_or_default();
        let mode = self.checked_mode(recommender, rules.as_ref(), limits);
        let mode = faults.take(mode).unwrap_or_default();
        let prompt_fields = PromptFields { query: self.query.clone(), user: self.user.clone() };
        if let Err(error) = recommender.prompts().check_fields(&prompt_fields) {
            let pointer = match error.cause() {
                Cause::Question(pointer) => pointer,
                Cause::Catalog | Cause::Cancelled | Cause::Unavailable | Cause::Engine => {
                    String::new()
                }
            };
            faults.push(Fault::new(pointer, error.to_string()));
        }
        let think = faults.take(self.checked_think(recommender)).flatten();
        let explain = faults.take(self.checked_explain(recommender)).flatten();
        let beam_width = self.beam_width.unwrap_or(limits.default_beam_width);
        self.beam_width = Some(beam_width);
        let cursor = faults.take(self.checked_cursor(&named, limits)).flatten();
        let given = cursor.iter().flat_map(|cursor| &cursor.given);
        let given = given.filter_map(|id| view.view().find(id)).collect();
        let narrower = self.min_beam_width.filter(|&width| width < beam_width);
        faults.or(CheckedQuestion {
            question: self,
            named,
            view: Arc::clone(view),
            history,
            unknown,
            beam_width,
            narrower,
            mode,
            items,
            look_ups,
            rules,
            asks_now,
            prompt_fields,
            think,
            explain,
            cursor,
            given,
        })
    }

    /// The items that the pages before gave, none before the first.
    fn checked_cursor(
        &self,
        named: &[NamedItem],
        limits: &QuestionLimits,
    ) -> Result<Option<Cursor>, Fault> {
        let first = self.first_cursor(named);
        let (Some(text), Some(first)) = (&self.cursor, &first) else { return Ok(first) };
        let cursor = Cursor::parse(text).map_err(|error| fault("cursor", error))?;
        if cursor.widest > limits.max_beam_width {
            let (wide, most) = (cursor.widest, limits.max_beam_width);
            return Err(fault(
                "cursor",
                format!(
                    "the cursor is of a page of {wide} items; searches here are {most} wide at most"
                ),
            ));
        }
        if cursor.question != first.question {
            return Err(fault(
                "cursor",
                "the cursor is of another question: send the members of the first page as they were; k, fields, trace, min_beam_width and remember may differ",
            ));
        }
        Ok(Some(cursor))
    }

    /// Numbers within their limits, and members that exclude one another.
    fn check_counts(&self, limits: &QuestionLimits, faults: &mut Faults) {
        let mut within = |pointer: String, what: &str, value: usize, most: usize| {
            if value == 0 || value > most {
                let detail = format!("{what} is {value}; it must be from 1 to {most}");
                faults.push(Fault::new(pointer, detail));
            }
        };
        within("/k".into(), "k", self.k, limits.max_k);
        if let Some(width) = self.beam_width {
            within("/beam_width".into(), "beam_width", width, limits.max_beam_width);
        }
        for (level, &width) in self.widths.iter().flatten().enumerate() {
            within(format!("/widths/{level}"), "a width", width, limits.max_beam_width);
        }
        if let Some(width) = self.prove_width {
            within("/prove_width".into(), "prove_width", width, limits.max_beam_width);
        }
        if let Some(width) = self.min_beam_width {
            within("/min_beam_width".into(), "min_beam_width", width, limits.max_beam_width);
        }
        if let Some(tokens) = self.think_tokens {
            within("/think_tokens".into(), "think_tokens", tokens, limits.max_free_tokens);
        }
        if let Some(explain) = self.explain_items {
            let (items, tokens) = ("/explain_items/items", "/explain_items/max_tokens");
            within(items.into(), "items", explain.items, limits.max_explained_items);
            within(tokens.into(), "max_tokens", explain.max_tokens, limits.max_free_tokens);
        }
        if self.history.len() > limits.max_history {
            let (given, most) = (self.history.len(), limits.max_history);
            faults.push(fault(
                "history",
                format!("the history has {given} items; at most {most} are read here: send the last of them"),
            ));
        }
        let width = self.beam_width.unwrap_or(limits.default_beam_width);
        if let Some(least) = self.min_beam_width.filter(|&least| least > width) {
            faults.push(fault(
                "min_beam_width",
                format!(
                    "min_beam_width is {least}, and the beam has {width}: give no more than that"
                ),
            ));
        }
        if self.widths.is_some() && self.beam_width.is_some() {
            faults.push(fault("widths", "beam_width and widths exclude each other; give one"));
        }
        if self.widths.is_some() && self.min_beam_width.is_some() {
            faults.push(fault(
                "min_beam_width",
                "min_beam_width narrows beam_width; it cannot stand beside widths",
            ));
        }
    }

    fn check_widths(&self, recommender: &Recommender, faults: &mut Faults) {
        let Some(widths) = &self.widths else { return };
        let (given, levels) = (widths.len(), recommender.format().levels.len());
        if given != levels {
            let error = RecommendError::OtherWidths { given, levels };
            faults.push(fault("widths", error.to_string()));
        }
    }

    /// The items that match the filter; `None` for all. The filter is spelled anew, so that equal
    /// ones have equal keys.
    fn items(
        &mut self,
        view: &SpelledView,
        look_ups: &mut FilterLookUps,
    ) -> Result<Option<ViewItems>, Fault> {
        let Some(text) = &self.filter else { return Ok(None) };
        let wrong =
            |error: palmette_catalog_filter::FilterError| fault("filter", error.to_string());
        let filter = Filter::parse(text.get()).map_err(wrong)?;
        let items = view.view().look_up_filter(&filter, look_ups).map_err(wrong)?;
        self.filter = RawJson::from_text(&filter.to_string()).ok();
        Ok(Some(items))
    }

    /// The rules at their moment, and whether that is the moment of the question.
    fn checked_rules(
        &mut self,
        view: &SpelledView,
        now: Option<Moment>,
    ) -> Result<(Option<Rules>, bool), Fault> {
        let Some(text) = &self.rules else { return Ok((None, false)) };
        let wrong = |error: RulesError| fault("rules", error.to_string());
        let rules = Rules::parse(text.get()).map_err(wrong)?;
        let asks_now = rules.valid.as_ref().is_some_and(|valid| valid.now.is_none());
        let mut rules = rules;
        if self.cursor.is_some() {
            // The first page has what is pinned.
            rules.must_include.clear();
        }
        let rules = match now {
            Some(now) => rules.at(now),
            None if asks_now => return Err(wrong(RulesError::NoNow)),
            None => rules,
        };
        rules.check_pool(self.k).map_err(wrong)?;
        let plan = Plan::new(&rules, view, self.k).map_err(wrong)?;
        let of_view = view.view();
        ItemOrder::new(&rules, of_view, plan.boosts.as_deref()).map_err(wrong)?;
        Caps::new(&rules, of_view).map_err(wrong)?;
        drop(plan);
        Ok((Some(rules), asks_now))
    }

    fn checked_mode(
        &self,
        recommender: &Recommender,
        rules: Option<&Rules>,
        limits: &QuestionLimits,
    ) -> Result<Mode, Fault> {
        if self.mode != ModeName::Proven && self.prove_width.is_some() {
            return Err(fault(
                "prove_width",
                "prove_width is the width of a second search: give mode proven with it",
            ));
        }
        if self.mode == ModeName::Draft {
            let refused =
                |member: &str, error: RecommendError| Err(fault(member, error.to_string()));
            if recommender.draft_outline().is_none() {
                return refused("mode", RecommendError::NoDraftHead);
            }
            if self.probe_width.is_some() {
                return Err(fault(
                    "probe_width",
                    "probe_width is of a search by the decoder: a draft head has no wide passes; leave it out",
                ));
            }
            if self.think_tokens.is_some() {
                return refused("think_tokens", RecommendError::NoDraftAfterText);
            }
            let verification = self.verify.unwrap_or_default();
            let is_free = verification != Verification::Masks;
            if is_free && rules.is_some_and(|rules| !rules.is_empty()) {
                return Err(fault("rules", RulesError::FreeDraft.to_string()));
            }
            return Ok(Mode::Draft(verification));
        }
        if self.verify.is_some() {
            return Err(fault("verify", "verify is about drafts: give mode draft with it"));
        }
        let one = [self.beam_width.unwrap_or(limits.default_beam_width)];
        let widths = self.widths.as_deref().unwrap_or(&one);
        if self.mode == ModeName::Proven {
            return self.checked_proof(widths, limits);
        }
        let Some(width) = self.probe_width else {
            let wanted = rules.map_or(self.k, |rules| rules.wanted(self.k));
            return Ok(match self.mode {
                ModeName::Auto => Mode::Auto,
                ModeName::Probed => Mode::Probed(Mode::probe_width(wanted)),
                ModeName::Beam | ModeName::Proven | ModeName::Draft => Mode::Beam,
            });
        };
        let contradiction = match (self.mode, width) {
            (ModeName::Beam, 1..) => Some("mode beam sends no narrow search first"),
            (ModeName::Probed, 0) => Some("mode probed sends a narrow search first"),
            _ => None,
        };
        if let Some(rule) = contradiction {
            let detail = format!("probe_width is {width}, and {rule}: leave out one of the two");
            return Err(fault("probe_width", detail));
        }
        let Some(probe) = NonZeroUsize::new(width) else { return Ok(Mode::Beam) };
        if width < self.k {
            let k = self.k;
            let detail = format!(
                "probe_width {width} finds fewer than the {k} items asked for: give {k} or more, or 0 for none"
            );
            return Err(fault("probe_width", detail));
        }
        let narrowest = widths.iter().min();
        if let Some(&narrowest) = narrowest.filter(|&&narrowest| narrowest <= width) {
            let detail = format!(
                "probe_width {width} is no narrower than the beam of {narrowest} after it: give less, or 0 for none"
            );
            return Err(fault("probe_width", detail));
        }
        Ok(Mode::Probed(probe))
    }

    /// Mode of a search that is to be proven, of these widths at first.
    fn checked_proof(&self, widths: &[usize], limits: &QuestionLimits) -> Result<Mode, Fault> {
        if self.probe_width.is_some() {
            return Err(fault(
                "probe_width",
                "probe_width goes with the modes auto and probed: leave it out, or give prove_width",
            ));
        }
        let beam = widths.iter().copied().max().unwrap_or(1);
        let Some(width) = self.prove_width else {
            let width = Mode::prove_width(beam).get().min(limits.max_beam_width).max(beam);
            return Ok(Mode::Proven(NonZeroUsize::new(width).unwrap_or(NonZeroUsize::MIN)));
        };
        match NonZeroUsize::new(width) {
            Some(wider) if width > beam => Ok(Mode::Proven(wider)),
            // Said where numbers are held to their limits.
            None => Ok(Mode::Proven(NonZeroUsize::MIN)),
            _ => Err(fault(
                "prove_width",
                format!(
                    "prove_width {width} is no wider than the beam of {beam} before it: give more, or leave it out"
                ),
            )),
        }
    }

    fn checked_think(&self, recommender: &Recommender) -> Result<Option<Think>, Fault> {
        let Some(tokens) = self.think_tokens else {
            for (member, is_given) in [
                ("think_temperature", self.think_temperature.is_some()),
                ("think_top_p", self.think_top_p.is_some()),
                ("think_seed", self.think_seed.is_some()),
            ] {
                if is_given {
                    let detail = format!("{member} is about reasoning: give think_tokens with it");
                    return Err(fault(member, detail));
                }
            }
            return Ok(None);
        };
        let template = recommender.prompts().template();
        if template.and_then(|template| template.think_end()).is_none() {
            return Err(fault("think_tokens", RecommendError::NoThink.to_string()));
        }
        let think = Think {
            temperature: self.think_temperature.unwrap_or(0.0),
            top_p: self.think_top_p.unwrap_or(1.0),
            seed: self.think_seed.unwrap_or(0),
            ..Think::new(tokens)
        };
        match think.check() {
            // A number of tokens out of its limits was said above.
            Ok(()) | Err(RecommendError::Zero { .. } | RecommendError::TooLarge { .. }) => {
                Ok(Some(think))
            }
            Err(RecommendError::Sampler(error)) => {
                Err(fault(&format!("think_{}", error.name()), error.to_string()))
            }
            Err(error) => Err(fault("think_tokens", error.to_string())),
        }
    }

    fn checked_explain(&self, recommender: &Recommender) -> Result<Option<Explain>, Fault> {
        let Some(explain) = self.explain_items else { return Ok(None) };
        let template = recommender.prompts().template();
        match template.and_then(|template| template.explain_ends()) {
            Some(_) => Ok(Some(Explain { items: explain.items, max_tokens: explain.max_tokens })),
            None => Err(fault("explain_items", RecommendError::NoExplain.to_string())),
        }
    }
}
