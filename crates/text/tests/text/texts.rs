//! Texts: what is drawn, and how it is told.

use std::ops::ControlFlow;

use palmette_core::{Constraint, TokenId, mask};
use palmette_decode::{LogitsSource, Sampler, SamplerOptions};
use palmette_grammar::{GrammarConstraint, GrammarSource, GrammarState};
use palmette_model::{Session, SessionOptions};
use palmette_text::{
    Constrained, FinishReason, LengthReport, LengthRule, RequestError, SpecialText, TextEnd,
    TextEvent, TextModel, TextRequest, TextSequence, Whitespace, generate, sources,
};
use proptest::prelude::*;
use serde_json::json;

use crate::tiny::{model, model_with, text, token, tokens, write};

fn schema() -> GrammarSource {
    sources::json_schema(json!({
        "type": "object", "required": ["on"], "additionalProperties": false,
        "properties": {"on": {"type": "boolean"}, "word": {"type": "string", "maxLength": 5}}
    }))
}

fn request(model: &TextModel, seed: u64, max_tokens: usize) -> TextRequest {
    let mut request = TextRequest::new(model.encode_prompt("a b: ").unwrap(), max_tokens);
    request.sampler = SamplerOptions { temperature: 1.0, top_p: 0.9, seed, ..Default::default() };
    request
}

/// The token of a text with one way on: the first of its own cut, unless the last one of that is
/// the beginning of longer ones. Cuts that no tokenizer makes are no choices then.
fn way_on(
    model: &TextModel,
    constraint: &GrammarConstraint,
    state: &GrammarState,
    allowed: &mut [u32],
) -> Option<TokenId> {
    let vocabulary = model.vocabulary().vocabulary();
    let forced = constraint.forced_bytes(state, 1024, &mut Default::default()).unwrap();
    let choices: Vec<TokenId> = mask::iter(allowed).collect();
    let is_text = |token: &TokenId| !vocabulary.text(*token).is_empty();
    if forced.is_empty() || !choices.iter().all(is_text) {
        return None;
    }
    let cut = model.tokenizer().encode(std::str::from_utf8(&forced).unwrap()).unwrap();
    let len = |token: TokenId| vocabulary.text(token).len();
    if cut.len() > 1 || choices.iter().all(|&choice| len(choice) <= len(cut[0])) {
        return Some(cut[0]);
    }
    let parts = choices.into_iter().filter(|&choice| len(choice) < len(cut[0]));
    parts.for_each(|part| mask::remove(allowed, part));
    None
}

/// The definition: before each token the model reads everything anew, the mask is made anew, and
/// one is drawn, unless there is one way on.
fn definition(
    model: &TextModel,
    request: &TextRequest,
    source: Option<&GrammarSource>,
) -> Vec<TokenId> {
    let grammar = source.map(|source| model.compile(source).unwrap());
    let num_tokens = model.vocabulary().vocabulary().num_tokens();
    let mut sampler = Sampler::new(request.sampler).unwrap();
    let mut written: Vec<TokenId> = Vec::new();
    while written.len() < request.max_tokens {
        let mut allowed = vec![0; mask::num_words(num_tokens)];
        let mut only = None;
        match &grammar {
            None => (0..num_tokens as u32).for_each(|t| mask::insert(&mut allowed, TokenId(t))),
            Some(grammar) => {
                let constraint = &grammar.constraint;
                let (mut state, mut scratch) = (constraint.start(), Default::default());
                for &token in &written {
                    constraint.commit(&mut state, token, &mut scratch).unwrap();
                }
                constraint.fill_mask(&state, &mut scratch, &mut allowed).unwrap();
                only = way_on(model, constraint, &state, &mut allowed);
            }
        }
        let token = match (only, mask::count(&allowed)) {
            (Some(only), _) => only,
            (None, 0) => break,
            (None, 1) => mask::iter(&allowed).next().unwrap(),
            _ => {
                let all = [&request.prompt[..], &written].concat();
                let options = SessionOptions {
                    max_prompt_tokens: all.len(),
                    max_beams: 0,
                    max_decode_passes: 0,
                    threads: 1,
                };
                let mut session = Session::new(&model.engine().model().unwrap(), options).unwrap();
                session.set_prompt(&all).unwrap();
                let mut row = session.prompt_logits().unwrap().to_vec();
                row.resize(num_tokens, f32::NEG_INFINITY);
                sampler.sample(&row, &allowed, &written).unwrap()
            }
        };
        written.push(token);
        if model.end_tokens().contains(&token) {
            break;
        }
    }
    written
}

/// Tokens and whether they were chosen, of a text that a schema leaves little of.
#[track_caller]
fn check_cut(schema: serde_json::Value, chosen: &[&str]) {
    let model = model();
    let vocabulary = model.vocabulary().vocabulary();
    let compact = sources::JsonForm { whitespace: Whitespace::Compact, ..Default::default() };
    let grammar = model.compile(&compact.json_schema(schema.to_string())).unwrap();
    for seed in 0..10 {
        let mut asked = request(&model, seed, 60);
        asked.constraint = Constrained::by(&grammar);
        let (pieces, ended) = write(&model, &asked);
        let own = model.tokenizer().encode(&text(&pieces)).unwrap();
        assert_eq!(tokens(&pieces), own, "{schema}: the text in its own cut");
        assert!(ended.is_complete, "{schema}");
        let choices =
            pieces.iter().flat_map(|piece| &piece.tokens).filter(|token| !token.is_forced);
        for choice in choices {
            let choice = std::str::from_utf8(vocabulary.text(choice.token)).unwrap();
            assert!(chosen.contains(&choice), "{schema}: {choice:?} was chosen");
        }
    }
}

/// A stretch with one way on has the tokenizer's own tokens; only where it may go on within a
/// longer token is that one chosen.
#[test]
fn forced_text_is_in_its_own_cut() {
    check_cut(json!({"const": "able"}), &[]);
    check_cut(json!({"const": {"ab": [true, "ab x"]}}), &[]);
    // What stands before `a` and `b` is forced, and so is all after them.
    check_cut(
        json!({"type": "object", "properties": {"ab": {"enum": ["a1", "b2"]}}, "required": ["ab"]}),
        &["a", "b", "\""],
    );
    // `a` is a token, and so is `ab`: what the cut of the stretch ends with may belong to either,
    // and is the model's to choose.
    check_cut(json!({"enum": ["xabx", "xaby"]}), &["x", "y"]);
    check_cut(json!({"enum": ["xabx", "xab"]}), &["x", "\""]);
    let model = model();
    let compact = sources::JsonForm { whitespace: Whitespace::Compact, ..Default::default() };
    let schema = json!({"enum": ["xabx", "xacx"]}).to_string();
    let grammar = model.compile(&compact.json_schema(schema)).unwrap();
    let mut asked = request(&model, 1, 60);
    asked.constraint = Constrained::by(&grammar);
    let (pieces, _) = write(&model, &asked);
    let forced: Vec<bool> =
        pieces.iter().flat_map(|piece| &piece.tokens).map(|token| token.is_forced).collect();
    assert_eq!(forced[..3], [true, true, false], "{pieces:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_text_is_what_masks_and_draws_make(seed: u64, max_tokens in 1_usize..30, free: bool, extra in -2_i64..3) {
        let model = model_with(extra);
        let source = schema();
        let source = (!free).then_some(&source);
        let mut asked = request(&model, seed, max_tokens);
        if let Some(source) = source {
            asked.constraint = Constrained::by(&model.compile(source).unwrap());
        }
        let expected = definition(&model, &asked, source);
        let (pieces, ended) = write(&model, &asked);
        prop_assert_eq!(ended.usage.completion_tokens, expected.len());
        let ends = model.end_tokens();
        let end = expected.last().copied().filter(|token| ends.contains(token));
        let words = expected.len() - usize::from(end.is_some());
        prop_assert_eq!(tokens(&pieces), expected[..words].to_vec());
        match end {
            Some(token) => prop_assert_eq!(&ended.reason, &FinishReason::EndToken(token)),
            None => prop_assert_eq!(&ended.reason, &FinishReason::Length),
        }
        let forced = pieces.iter().flat_map(|piece| &piece.tokens).filter(|token| token.is_forced);
        prop_assert!(forced.count() <= ended.usage.forced_tokens);
        if source.is_some() && ended.is_complete {
            let value: serde_json::Value = serde_json::from_str(&text(&pieces)).unwrap();
            prop_assert!(value["on"].is_boolean());
        }
    }

    /// A promised text is whole within its tokens, from the fewest that there are on, and refused
    /// with that number below. Where the one that may be cut off ends long before, it is that one.
    #[test]
    fn promised_texts_are_whole_in_time(seed: u64, more in 0_usize..12, gentle: bool) {
        let model = model();
        let cut = TextRequest {
            constraint: Constrained::by(&model.compile(&schema()).unwrap()),
            ..request(&model, seed, 1)
        };
        let length = if gentle { LengthRule::Gentle } else { LengthRule::Promised };
        let promised = TextRequest { length, ..cut.clone() };
        let refused = promised.check(&model);
        let Err(RequestError::TooFewTokens { needed, max_tokens: 1 }) = refused else {
            panic!("{refused:?}")
        };
        let within = |max_tokens| TextRequest { max_tokens, ..promised.clone() };
        let too_few = RequestError::TooFewTokens { needed, max_tokens: needed - 1 };
        prop_assert_eq!(within(needed - 1).check(&model), Err(too_few));
        let (pieces, ended) = write(&model, &within(needed + more));
        prop_assert!(ended.is_complete, "{:?} after {:?}", ended.reason, text(&pieces));
        prop_assert!(tokens(&pieces).len() <= needed + more);
        prop_assert!(ended.reason != FinishReason::Length);
        let value: serde_json::Value = serde_json::from_str(&text(&pieces)).unwrap();
        prop_assert!(value["on"].is_boolean());
        let report = ended.length.unwrap();
        prop_assert_eq!(report.rule, length);
        prop_assert!(report.steered + report.leaning < needed + more);
        prop_assert!(gentle || report.leaning == 0);
        let free = write(&model, &TextRequest { max_tokens: 60, ..cut });
        prop_assert_eq!(free.1.length, None);
        // Gentle texts lean in the last quarter.
        let end = if gentle { 35 } else { 60 };
        if free.1.is_complete && free.1.usage.completion_tokens + needed < end {
            let (pieces, ended) = write(&model, &within(60));
            let report = LengthReport { rule: length, steered: 0, leaning: 0 };
            prop_assert_eq!(ended.length, Some(report));
            prop_assert_eq!((pieces, TextEnd { length: None, ..ended }), free);
        }
    }

    /// A promised text does not end before the tokens that it must have, whatever the model likes,
    /// and is refused where none is so long; one that may be cut off ends where nothing follows.
    #[test]
    fn promised_texts_have_their_tokens(seed: u64, min_tokens in 0_usize..14, more in 0_usize..4, likes_ends: bool) {
        let model = model();
        let end = token(&model, "</s>");
        let mut asked = request(&model, seed, (min_tokens + more).max(1));
        asked.constraint = Constrained::by(&model.compile(&sources::regex("a{1,3}|b{9}|c{2,11}")).unwrap());
        (asked.min_tokens, asked.length) = (min_tokens, LengthRule::Promised);
        asked.logit_bias = vec![(end, if likes_ends { 1e9 } else { 0.0 })];
        let max_tokens = asked.max_tokens;
        if min_tokens > 11 {
            let known = 11;
            let refused = RequestError::TooManyTokens { min_tokens, max_tokens, known };
            prop_assert_eq!(asked.check(&model), Err(refused));
            let cut = TextRequest { length: LengthRule::Cut, ..asked };
            prop_assert!(tokens(&write(&model, &cut).0).len() <= 11);
            return Ok(());
        }
        let (pieces, ended) = write(&model, &asked);
        prop_assert!(ended.is_complete);
        prop_assert!((min_tokens..=max_tokens).contains(&tokens(&pieces).len()), "{}", text(&pieces));
    }

    /// Where no way to the end is known there is nothing to promise, and the text says so.
    #[test]
    fn a_text_without_a_known_way_may_be_cut(seed: u64, max_tokens in 1_usize..5, gentle: bool) {
        let model = model();
        let mut asked = request(&model, seed, max_tokens);
        // No token has the byte of the shortest text.
        let source = sources::regex("\\x01|[a-z]{3}");
        asked.constraint = Constrained::by(&model.compile(&source).unwrap());
        asked.length = if gentle { LengthRule::Gentle } else { LengthRule::Promised };
        let (pieces, ended) = write(&model, &asked);
        let report = LengthReport { rule: LengthRule::Cut, steered: 0, leaning: 0 };
        prop_assert_eq!(ended.length, Some(report));
        prop_assert_eq!(ended.is_complete, text(&pieces).len() == 3);
    }

    /// However passes are cut, the text is the same: what a batch relies on.
    #[test]
    fn masks_made_beside_a_pass_change_nothing(seed: u64, max_tokens in 1_usize..30) {
        let model = model();
        let mut asked = request(&model, seed, max_tokens);
        asked.constraint = Constrained::by(&model.compile(&schema()).unwrap());
        let (pieces, ended) = write(&model, &asked);
        let mut sequence = TextSequence::new(&model, &asked).unwrap();
        let options = SessionOptions {
            max_prompt_tokens: 160,
            max_beams: 0,
            max_decode_passes: 0,
            threads: 1,
        };
        let mut session = Session::new(&model.engine().model().unwrap(), options).unwrap();
        let mut heard = Vec::new();
        let mut is_first = true;
        let other = loop {
            let events = &mut |event| {
                if let TextEvent::Text(piece) = event {
                    heard.push(piece);
                }
                ControlFlow::Continue(())
            };
            // The pass begins with what is known before the mask is made.
            let mut unread = sequence.take_unread().to_vec();
            let mut row = Vec::new();
            let ended = loop {
                if !unread.is_empty() {
                    row = match std::mem::take(&mut is_first) {
                        true => {
                            session.set_prompt(&unread).unwrap();
                            session.prompt_logits().unwrap().to_vec()
                        }
                        false => session.append(&unread).unwrap().to_vec(),
                    };
                }
                let ended = sequence.settle(events).unwrap().cloned();
                if ended.is_some() || !sequence.has_unread() {
                    break ended;
                }
                unread = sequence.take_unread().to_vec();
            };
            match ended {
                Some(ended) => break ended,
                None => sequence.choose(&row, events).unwrap(),
            }
        };
        prop_assert_eq!(other, ended);
        prop_assert_eq!(heard, pieces);
    }
}

#[test]
fn stop_strings_lengths_and_end_tokens_end_a_text() {
    let model = model();
    let mut asked = request(&model, 3, 40);
    // Free text without the end token, so that it is long enough.
    asked.logit_bias = vec![(token(&model, "</s>"), -1e9)];
    let (pieces, ended) = write(&model, &asked);
    let whole = text(&pieces);
    assert_eq!((ended.reason, ended.is_complete), (FinishReason::Length, true));
    assert_eq!(tokens(&pieces).len(), 40);

    let stop: String = whole.chars().skip(12).take(3).collect();
    let place = whole.find(&stop).unwrap();
    asked.stop = vec!["never there".to_owned(), stop.clone()];
    let (pieces, ended) = write(&model, &asked);
    assert_eq!(
        (text(&pieces).as_str(), ended.reason),
        (&whole[..place], FinishReason::StopString(stop))
    );

    // An end token may come only after so many, then it is all but sure.
    let end = token(&model, "</s>");
    asked = TextRequest { stop: vec![], min_tokens: 7, logit_bias: vec![(end, 1e9)], ..asked };
    let (pieces, ended) = write(&model, &asked);
    assert_eq!((tokens(&pieces).len(), ended.reason), (7, FinishReason::EndToken(end)));
    assert_eq!(ended.usage.completion_tokens, 8);

    // Or not at all.
    asked = TextRequest { min_tokens: 0, ignores_ends: true, ..asked };
    let (pieces, ended) = write(&model, &asked);
    assert_eq!((tokens(&pieces).len(), ended.reason), (40, FinishReason::Length));
    asked.ignores_ends = false;

    // Any token may be made one.
    let (min_tokens, a) = (0, token(&model, "a"));
    asked = TextRequest { min_tokens, stop_tokens: vec![a], logit_bias: vec![(a, 1e9)], ..asked };
    asked.logit_bias.push((end, -1e9));
    let (pieces, ended) = write(&model, &asked);
    assert_eq!((text(&pieces).as_str(), ended.reason), ("", FinishReason::EndToken(a)));
}

#[test]
fn a_caller_that_breaks_off_hears_no_more_text() {
    let model = model();
    for after in 1..6 {
        let (mut heard, mut ends) = (0, 0);
        let ended = generate(&model, &request(&model, 9, 30), &mut |event| match event {
            TextEvent::Text(_) if heard + 1 >= after => {
                heard += 1;
                ControlFlow::Break(())
            }
            TextEvent::Text(_) => {
                heard += 1;
                ControlFlow::Continue(())
            }
            TextEvent::End(_) => {
                ends += 1;
                ControlFlow::Continue(())
            }
            TextEvent::Stage(_) => ControlFlow::Continue(()),
        });
        assert_eq!((heard, ends, ended.unwrap().reason), (after, 1, FinishReason::Cancelled));
    }
    let broken = generate(&model, &request(&model, 9, 30), &mut |_| ControlFlow::Break(()));
    assert_eq!(broken.unwrap().reason, FinishReason::Cancelled);
}

#[test]
fn special_tokens_are_text_where_they_are_asked_for() {
    let model = model();
    let call = token(&model, "<|call|>");
    let mut asked = request(&model, 1, 3);
    asked.logit_bias = vec![(call, 1e9)];
    assert_eq!(text(&write(&model, &asked).0), "");
    asked.special = SpecialText::All;
    assert_eq!(text(&write(&model, &asked).0), "<|call|>".repeat(3));
    asked.special = SpecialText::Within(vec!["x <|call|>NAME".to_owned()]);
    assert_eq!(text(&write(&model, &asked).0), "<|call|>".repeat(3));
    asked.special = SpecialText::Within(vec!["</s>".to_owned()]);
    assert_eq!(text(&write(&model, &asked).0), "");
}

#[test]
fn log_probabilities_are_those_of_allowed_tokens() {
    let model = model();
    let mut asked = request(&model, 1, 20);
    asked.constraint = Constrained::by(&model.compile(&schema()).unwrap());
    assert!(write(&model, &asked).0.iter().all(|p| p.tokens.iter().all(|t| t.logprobs.is_none())));
    asked.logprobs = Some(4);
    let (pieces, _) = write(&model, &asked);
    let all: Vec<_> = pieces.iter().flat_map(|piece| &piece.tokens).collect();
    assert!(all.iter().any(|token| !token.is_forced));
    for token in all {
        let found = token.logprobs.as_ref().unwrap();
        match token.is_forced {
            true => assert_eq!((found.token, found.top.len()), (0.0, 1)),
            false => {
                assert!(found.token < 0.0 && (1..=4).contains(&found.top.len()));
                assert!(found.top.windows(2).all(|pair| pair[0].1 >= pair[1].1));
                assert!(found.top[0].1 >= found.token);
            }
        }
    }
}
