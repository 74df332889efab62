//! Walks of tokens along a lexeme, which find its effect.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_core::vocabulary_trie::Visit;
use palmette_grammar_parser::blocks::Line;
use palmette_grammar_regex::ByteSet;
use palmette_grammar_regex::expressions::ExprId;

use super::lexeme_effect::{Head, HeadEffect, LexemeEffect, LexemeEnd};
use super::lexemes::{Lexeme, LexemeId};
use super::mask_failure::MaskFailure;
use super::place::{ExceptionsId, Place};
use super::residual_id::ResidualId;
use super::simulation_context::{Memos, SimulationContext};
use super::suffix_set::SuffixSet;
use super::suffix_trie::SuffixId;
use crate::{Budget, TerminalId, TerminalSet};

/// More tokens than this are many: they are not copied to each set that they are in.
const MANY: usize = 512;

impl Memos<'_, '_, '_> {
    /// The terminals whose lexemes may begin with what comes at a place, whatever else decides
    /// about them.
    pub(super) fn viable_at(&mut self, place: SuffixId) -> Arc<TerminalSet> {
        let SimulationContext { recognizer, residuals, .. } = self.fixed;
        let effects = &mut self.suffix_sets.effects;
        if let Some(known) = effects.viable.get(&place) {
            return Arc::clone(known);
        }
        effects.find_first_bytes(recognizer);
        let coming: ByteSet = residuals.suffixes.node(place).bytes().iter().copied().collect();
        let mut found = TerminalSet::new(recognizer.parser().tables().num_terminals() + 1);
        for (first, terminal) in effects.first_bytes.iter().zip(0..) {
            let terminal = TerminalId(terminal);
            let is_member = recognizer.grammar().slot_of(terminal).is_some();
            if first.meets(&coming) || is_member && !coming.is_empty() {
                found.insert(terminal);
            }
        }
        effects.bytes += found.num_terminals() / 8;
        Arc::clone(effects.viable.entry(place).or_insert(Arc::new(found)))
    }

    /// The effect of a lexeme at a place, as a line's end or not; it is found by a unit of the
    /// budget for each node that is walked.
    ///
    /// # Errors
    /// When a limit is exceeded, or the budget is used up.
    pub(super) fn lexeme_effect(
        &mut self,
        place: SuffixId,
        lexeme: LexemeId,
        ends_line: bool,
    ) -> Result<Arc<LexemeEffect>, MaskFailure> {
        let at = (place, lexeme, ends_line);
        if let Some(known) = self.suffix_sets.effects.effects.get(&at) {
            return Ok(Arc::clone(known));
        }
        let mut effect = match ends_line {
            true => self.find_line_end(place, lexeme)?,
            false => self.find_effect(place, lexeme)?,
        };
        if effect.tokens.len() > MANY {
            let tokens = std::mem::take(&mut effect.tokens).into();
            effect.part =
                Some(self.suffix_sets.intern(SuffixSet { tokens, ..SuffixSet::default() }));
        }
        let effect = Arc::new(effect);
        let effects = &mut self.suffix_sets.effects;
        effects.bytes += size_of_val(&*effect.tokens) + size_of_val(&*effect.ends);
        effects.effects.insert(at, Arc::clone(&effect));
        Ok(effect)
    }

    fn find_effect(
        &mut self,
        place: SuffixId,
        lexeme: LexemeId,
    ) -> Result<LexemeEffect, MaskFailure> {
        let Lexeme { blanks, text, rest, .. } = &self.fixed.lexemes[lexeme.index()];
        let (first, text) = match &**text {
            [first, text @ ..] => (Some(*first), text),
            [] => (None, &[] as _),
        };
        let head = self.head_effect((place, *blanks, first))?;
        let mut walk = EffectWalk::new(self.fixed);
        for &place in &head.places {
            self.budget.spend(1)?;
            if let Some(place) = walk.follow(place, text) {
                walk.along(place, *rest, Line::OTHER, self.budget)?;
            }
        }
        walk.effect(head, self.budget)
    }

    /// The effect of a head.
    fn head_effect(&mut self, head: Head) -> Result<Arc<HeadEffect>, MaskFailure> {
        if let Some(known) = self.suffix_sets.effects.heads.get(&head) {
            return Ok(Arc::clone(known));
        }
        let Memos { fixed, suffix_sets, budget, .. } = self;
        let (suffix, blanks, first) = head;
        let mut walk = EffectWalk::new(*fixed);
        let place = Place { suffix, ..Place::FRONT };
        let mut places = Vec::new();
        if blanks.is_none_or(|blanks| fixed.residuals.ends(blanks).is_some()) {
            places.push(place);
        }
        match blanks {
            Some(blanks) if place.is_front() => places.extend(fixed.ends_within(blanks, budget)?),
            Some(blanks) => walk.blanks(place, blanks, &mut places, budget)?,
            None => {}
        }
        if let Some(first) = first {
            places = places.into_iter().filter_map(|place| walk.follow(place, &[first])).collect();
        }
        let consuming = blanks.filter(|_| place.is_front());
        let effect = HeadEffect { consuming, tokens: walk.tokens.into(), places: places.into() };
        let effect = Arc::new(effect);
        let effects = &mut suffix_sets.effects;
        effects.bytes += size_of_val(&*effect.tokens) + size_of_val(&*effect.places);
        effects.heads.insert(head, Arc::clone(&effect));
        Ok(effect)
    }
}

/// Walk of tokens along a lexeme, from a place within them.
pub(super) struct EffectWalk<'p> {
    fixed: SimulationContext<'p>,
    tokens: Vec<(TokenId, u32)>,
    ends: Vec<LexemeEnd>,
    /// Nodes of the vocabulary's trie where the lexeme may have ended with more to come.
    open: Vec<(OpenEnd, u32)>,
}

/// Ends that are one place: the exceptions and the condition there, the line, and the number of
/// bytes that lead to them.
type OpenEnd = (Option<ExceptionsId>, ExprId, Line, u32);

impl<'p> EffectWalk<'p> {
    /// A walk that has found nothing yet.
    pub(super) fn new(fixed: SimulationContext<'p>) -> Self {
        Self { fixed, tokens: Vec::new(), ends: Vec::new(), open: Vec::new() }
    }

    /// The effect of what was walked after a head.
    ///
    /// PERF: ends alike are one place. There are tens of thousands of names within tokens, and the
    /// parser would be asked at each.
    pub(super) fn effect(
        mut self,
        head: Arc<HeadEffect>,
        budget: &mut Budget<'_>,
    ) -> Result<LexemeEffect, MaskFailure> {
        let SimulationContext { residuals, trie, .. } = self.fixed;
        self.open.sort_unstable();
        for alike in self.open.chunk_by(|(one, _), (other, _)| one == other) {
            let (except, condition, line, depth) = alike[0].0;
            let nodes = alike.iter().map(|&(_, node)| node);
            let nodes = residuals.going_on(trie, nodes, condition, budget)?;
            if !nodes.is_empty() {
                let suffix = residuals.suffixes.of(trie, &nodes, depth);
                let place = Place { except, ..Place::FRONT.after_lexeme(suffix, condition) };
                self.ends.push(LexemeEnd { place, line });
            }
        }
        let (tokens, ends) = (self.tokens.into(), self.ends.into());
        Ok(LexemeEffect { head, tokens, part: None, ends })
    }

    /// The place after a text; adds the tokens that end on the way.
    fn follow(&mut self, place: Place, text: &[u8]) -> Option<Place> {
        let SimulationContext { residuals, trie, .. } = self.fixed;
        text.iter().try_fold(place, |place, &byte| {
            let place = place.at(residuals.suffixes.child(trie, place.suffix, byte)?);
            self.add_tokens(place);
            Some(place)
        })
    }

    /// Adds the places after one where blanks may have ended, and the tokens that end on the way.
    fn blanks(
        &mut self,
        place: Place,
        blanks: ResidualId,
        places: &mut Vec<Place>,
        budget: &mut Budget<'_>,
    ) -> Result<(), MaskFailure> {
        let SimulationContext { residuals, trie, .. } = self.fixed;
        let mut work = vec![(place, blanks)];
        while let Some((place, blanks)) = work.pop() {
            for (&byte, at) in residuals.suffixes.node(place.suffix).bytes().iter().zip(0..) {
                if let Some(left) = residuals.advance(blanks, byte, budget)? {
                    let place = place.at(residuals.suffixes.child_at(trie, place.suffix, at));
                    self.add_tokens(place);
                    if residuals.ends(left).is_some() {
                        places.push(place);
                    }
                    work.push((place, left));
                }
            }
        }
        Ok(())
    }

    /// Adds how tokens go on with a residual, which may be in a line. Before the first byte of
    /// tokens, those consumed whole are left out.
    pub(super) fn along(
        &mut self,
        place: Place,
        residual: ResidualId,
        line: Line,
        budget: &mut Budget<'_>,
    ) -> Result<(), MaskFailure> {
        let SimulationContext { recognizer, residuals, trie, .. } = self.fixed;
        let (layer, is_front) = (recognizer.layer(), place.is_front());
        if let Some(condition) = residuals.ends(residual).filter(|_| !is_front) {
            let end = place.after_lexeme(place.suffix, condition);
            if self.fixed.goes_on(end, budget)? {
                self.ends.push(LexemeEnd { place: end, line: line.ended() });
            }
        }
        let except = place.except.map(|except| residuals.except(except));
        let (from, mut path) = (residuals.suffixes.node(place.suffix), Vec::new());
        for (node, byte) in from.members() {
            if residuals.advance(residual, byte, budget)?.is_none() {
                continue;
            }
            let (nodes, before) = (node..trie.end(node), trie.node(node).depth - 1);
            trie.walk(nodes, (residual, line), &mut path, |node, &(above, line)| {
                budget.spend(1)?;
                let Some(next) = residuals.advance(above, node.byte, budget)? else {
                    return Ok(Visit::Past);
                };
                let line = match line {
                    Line::OTHER => line,
                    _ => layer.line_after(line, node.byte),
                };
                let depth = if is_front { 0 } else { from.depth() + (node.depth - before) as u32 };
                if !is_front {
                    let tokens = trie.tokens_in(trie.own_ranks(node.index)).iter();
                    let tokens = tokens.map(|&token| (token, depth));
                    self.tokens.extend(tokens.filter(|&(token, left)| {
                        except.is_none_or(|except| !except.contains(token, left))
                    }));
                }
                if let Some(condition) = residuals.ends(next)
                    && trie.end(node.index) > node.index + 1
                {
                    let end = (place.except, condition, line.ended(), depth);
                    self.open.push((end, node.index as u32));
                }
                Ok::<_, MaskFailure>(Visit::Below((next, line)))
            })?;
        }
        Ok(())
    }

    /// Adds the tokens that are at their end.
    fn add_tokens(&mut self, place: Place) {
        let residuals = self.fixed.residuals;
        let node = residuals.suffixes.node(place.suffix);
        let tokens = node.tokens().iter().map(|&token| (token, node.depth()));
        match place.except.map(|except| residuals.except(except)) {
            None => self.tokens.extend(tokens),
            Some(except) => {
                self.tokens.extend(tokens.filter(|&(token, left)| !except.contains(token, left)));
            }
        }
    }
}
