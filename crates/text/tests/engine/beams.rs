//! Beam searches for whole texts against their definition: every candidate of every beam scored by
//! a session that reads all tokens anew.

use std::sync::mpsc;

use palmette_core::Lengths;
use palmette_decode::log_sum_exp;
use palmette_model::{Session, SessionOptions};
use palmette_text::engine::Ticket;
use palmette_text::{TextBeams, TextBeamsError};

use super::items::item_request;
use super::*;

/// Text of a search: its tokens with the one that ended it, its words and its score.
#[derive(Clone, Debug, Default, PartialEq)]
struct BestText {
    tokens: Vec<TokenId>,
    text: String,
    score: f32,
}

/// The search as it is defined, without a grammar or under one.
struct Definition<'a> {
    model: &'a TextModel,
    request: &'a TextRequest,
    beams: TextBeams,
    ends: Vec<TokenId>,
    num_tokens: usize,
}

impl<'a> Definition<'a> {
    fn new(model: &'a TextModel, request: &'a TextRequest, beams: TextBeams) -> Self {
        let mut ends = model.end_tokens().to_vec();
        ends.extend(&request.stop_tokens);
        let num_tokens = model.vocabulary().vocabulary().num_tokens();
        Self { model, request, beams, ends, num_tokens }
    }

    fn log_probabilities(&self, tokens: &[TokenId]) -> Vec<f32> {
        let options = SessionOptions {
            max_prompt_tokens: POSITIONS,
            max_beams: 0,
            max_decode_passes: 0,
            threads: 1,
        };
        let mut session = Session::new(&self.model.engine().model().unwrap(), options).unwrap();
        let all = [&self.request.prompt, tokens].concat();
        let logits = &session.prompt_logits_after(&all).unwrap()[..self.num_tokens];
        let norm = log_sum_exp(logits);
        logits.iter().map(|logit| logit - norm).collect()
    }

    /// Tokens that may follow, and whether the text is whole.
    fn allowed(&self, tokens: &[TokenId]) -> (Vec<TokenId>, bool) {
        let all = (0..self.num_tokens as u32).map(TokenId);
        let Constrained::Grammar(grammar) = &self.request.constraint else {
            return (all.collect(), true);
        };
        let (mut state, scratch) = (grammar.start(), &mut Default::default());
        let fewest = |state: &_, scratch: &mut _| grammar.fewest_tokens(state, scratch).unwrap();
        let is_promised =
            self.request.length == LengthRule::Promised && fewest(&state, scratch).is_some();
        tokens.iter().for_each(|&token| grammar.commit(&mut state, token, scratch).unwrap());
        let left = self.request.max_tokens - tokens.len();
        let mut may_follow = |token: &TokenId| {
            let mut after = state.clone();
            let Ok(()) = grammar.commit(&mut after, *token, scratch) else { return false };
            let lengths = Lengths { least: 0, most: left }.after(1);
            let leaves_way = |lengths| grammar.has_way(&after, lengths, scratch).unwrap();
            !is_promised || lengths.is_some_and(leaves_way)
        };
        let allowed = all.filter(&mut may_follow).collect();
        (allowed, grammar.is_accepting(&state, &mut Default::default()).unwrap())
    }

    fn text(&self, tokens: &[TokenId]) -> String {
        let vocabulary = self.model.vocabulary().vocabulary();
        let told = tokens.iter().filter(|token| !self.ends.contains(token));
        let bytes: Vec<u8> = told.flat_map(|&token| vocabulary.text(token).to_vec()).collect();
        String::from_utf8(bytes).unwrap()
    }

    fn found(&self) -> Vec<BestText> {
        let mut live: Vec<(Vec<TokenId>, f32)> = vec![(Vec::new(), 0.0)];
        let mut found = Vec::new();
        for _ in 0..self.request.max_tokens {
            let mut candidates = Vec::new();
            for (parent, (tokens, sum)) in live.iter().enumerate() {
                let scores = self.log_probabilities(tokens);
                let allowed = self.allowed(tokens).0;
                candidates.extend(
                    allowed.iter().map(|&token| (sum + scores[token.index()] + 0.0, parent, token)),
                );
            }
            candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            let mut next = Vec::new();
            for (sum, parent, token) in candidates.into_iter().take(self.beams.width) {
                let tokens = [&live[parent].0[..], &[token]].concat();
                let is_over = self.ends.contains(&token) || tokens.len() == self.request.max_tokens;
                let (allowed, is_whole) =
                    if is_over { Default::default() } else { self.allowed(&tokens) };
                if is_over || allowed.is_empty() && is_whole {
                    let power = f64::from(self.beams.length_penalty);
                    let score = (f64::from(sum) / (tokens.len() as f64).powf(power)) as f32;
                    found.push(BestText { text: self.text(&tokens), tokens, score });
                } else if !allowed.is_empty() {
                    next.push((tokens, sum));
                }
            }
            live = next;
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut told: Vec<BestText> = Vec::new();
        for one in found {
            if told.len() < self.beams.texts && told.iter().all(|other| other.text != one.text) {
                told.push(one);
            }
        }
        told
    }
}

/// A search that was asked for, with what is heard of it.
struct Searching {
    updates: mpsc::Receiver<(usize, Update)>,
    ticket: Ticket,
}

fn search(engine: &Engine, request: &TextRequest, beams: &TextBeams) -> Searching {
    let (sender, updates) = mpsc::channel();
    let sink = move |place, update| drop(sender.send((place, update)));
    let ticket = engine.search_to(request, beams, Box::new(sink)).unwrap();
    Searching { updates, ticket }
}

impl Searching {
    /// The texts by their places, once each is told or missing.
    fn found(self, texts: usize) -> Result<Vec<BestText>, EngineError> {
        let (mut found, mut left) = (Vec::<BestText>::new(), texts);
        let mut is_missing = false;
        while left > 0 {
            let (place, update) = self.updates.recv().unwrap();
            if found.len() == place && !matches!(update, Update::Missing) {
                found.push(BestText::default());
            }
            match update {
                Update::Text(piece) => {
                    found[place].text += &piece.text;
                    found[place].tokens.extend(piece.tokens.iter().map(|token| token.token));
                }
                Update::End(ended, _) => {
                    assert!(!is_missing, "texts come before those that are missing");
                    if let FinishReason::EndToken(token) = ended.reason {
                        found[place].tokens.push(token);
                    }
                    assert_eq!(ended.usage.completion_tokens, found[place].tokens.len());
                    found[place].score = ended.score.unwrap();
                    left -= 1;
                }
                Update::Missing => (is_missing, left) = (true, left - 1),
                Update::Failed(error) => return Err(error),
                Update::Prompt(_) => unreachable!("nothing of the prompt is asked for"),
            }
        }
        drop(self.ticket);
        Ok(found)
    }
}

/// A request without what is about drawn tokens.
fn plain(model: &TextModel, kind: usize, prompt: usize, max_tokens: usize) -> TextRequest {
    let drawn = request(model, kind, prompt, 0);
    let constraint = drawn.constraint;
    TextRequest { constraint, ..TextRequest::new(drawn.prompt, max_tokens) }
}

fn grammar(model: &TextModel, regex: &str) -> Constrained {
    let (text, options) = (regex.to_owned(), RegexOptions::default());
    Constrained::by(&model.compile(&GrammarSource::Regex { text, options }).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Tokens, words, order and scores, with texts beside it and without, whatever the room: pages
    /// that make texts give theirs up, places that it waits for, rows for prompts.
    #[test]
    fn a_search_is_its_definition(
        kind in 0_usize..9, prompt in 1_usize..100, max_tokens in 1_usize..9, width in 1_usize..6, texts in 1_usize..6,
        power in -2_i8..3, is_promised in any::<bool>(), stops in any::<bool>(), beside in 0_usize..5,
        places in 0_usize..4, max_tokens_kept in 384_usize..1200, prompt_rows in 1_usize..40, draft_tokens in 0_usize..10,
    ) {
        let model = model();
        let mut asked = plain(&model, kind.min(5), prompt, max_tokens);
        match kind {
            2 | 4 => asked.max_tokens += 26,
            6 => asked.constraint = grammar(&model, "(ab|ba|aab)*"),
            7 => asked.constraint = grammar(&model, "a|ab|abc|true"),
            8 => asked.constraint = grammar(&model, "[a-c]{2,}(x|yz)?"),
            _ => {}
        }
        asked.length = if is_promised { LengthRule::Promised } else { LengthRule::Cut };
        if stops {
            asked.stop_tokens = model.encode_text("ae\"").unwrap();
        }
        prop_assume!(asked.check(&model).is_ok());
        let texts = texts.min(width);
        let beams = TextBeams { width, texts, length_penalty: f32::from(power) / 2.0 };
        let expected = Definition::new(&model, &asked, beams).found();
        prop_assert_eq!(by_itself(&model, &asked, &beams), expected.clone());
        let max_texts = width + places;
        let pages = (asked.prompt.len() + asked.max_tokens).div_ceil(64) * width;
        let max_tokens = max_tokens_kept.max(pages * 64);
        let options =
            EngineOptions { max_texts, max_tokens, prompt_rows, draft_tokens, max_waiting: 100, mask_threads: 1 };
        let engine = Engine::start(model.clone(), options).unwrap();
        let others: Vec<TextStream> =
            (0..beside).map(|of| engine.submit(&request(&model, of, 50, 7)).unwrap()).collect();
        // One whose items are searched between passes, for which it may have to wait.
        let items = item_request(&model, "a list", 3);
        let with_items = (beside > 2).then(|| engine.submit(&items).unwrap());
        let searches = [search(&engine, &asked, &beams), search(&engine, &asked, &beams)];
        let later: Vec<TextStream> =
            (0..beside).map(|of| engine.submit(&request(&model, of, 150, 8)).unwrap()).collect();
        for search in searches {
            prop_assert_eq!(search.found(texts).unwrap(), expected.clone());
        }
        if let Some(stream) = with_items {
            prop_assert_eq!(together(stream).unwrap(), alone(&model, &items));
        }
        for (of, stream) in others.into_iter().enumerate() {
            prop_assert_eq!(together(stream).unwrap(), alone(&model, &request(&model, of, 50, 7)));
        }
        for (of, stream) in later.into_iter().enumerate() {
            prop_assert_eq!(together(stream).unwrap(), alone(&model, &request(&model, of, 150, 8)));
        }
    }
}

/// A search without an engine.
fn by_itself(model: &TextModel, request: &TextRequest, beams: &TextBeams) -> Vec<BestText> {
    let mut found: Vec<BestText> = Vec::new();
    let ended = beams.search(model, request, &mut |place, event| {
        if let TextEvent::Text(piece) = event {
            found.resize(found.len().max(place + 1), BestText::default());
            found[place].text += &piece.text;
            found[place].tokens.extend(piece.tokens.iter().map(|token| token.token));
        }
        ControlFlow::Continue(())
    });
    let ended = ended.unwrap();
    found.resize(ended.len(), BestText::default());
    for (found, ended) in found.iter_mut().zip(ended) {
        found.score = ended.score.unwrap();
        if let FinishReason::EndToken(token) = ended.reason {
            found.tokens.push(token);
        }
    }
    found
}

#[test]
fn one_beam_is_the_likeliest_token_each_time() {
    let model = model();
    let asked = plain(&model, 0, 30, 25);
    let engine = Engine::start(model.clone(), options()).unwrap();
    let found = search(&engine, &asked, &TextBeams::of_texts(1)).found(1).unwrap();
    let likeliest = alone(&model, &asked);
    assert_eq!((found.len(), &found[0].text), (1, &likeliest.text));
}

#[test]
fn fewer_texts_than_wanted_are_all_there_are() {
    let model = model();
    let engine = Engine::start(model.clone(), EngineOptions { max_texts: 8, ..options() }).unwrap();
    let constraint = grammar(&model, "ab|true");
    let asked = TextRequest { constraint, ..plain(&model, 0, 5, 10) };
    // Each of them is spelled in several ways, and comes once.
    let found = search(&engine, &asked, &TextBeams::of_texts(8)).found(8).unwrap();
    let mut texts: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["ab", "true"]);
    wait_until("the last count", || engine.statistics().ended == 2);
}

#[test]
fn searches_that_cannot_be_are_refused_in_time() {
    let model = model();
    let engine = Engine::start(model.clone(), options()).unwrap();
    let asked = plain(&model, 0, 5, 100);
    let refused = |asked: &TextRequest, beams: &TextBeams| {
        engine.search_to(asked, beams, Box::new(|_, _| {})).unwrap_err()
    };
    let too_many = refused(&asked, &TextBeams::of_texts(5));
    assert_eq!(too_many, SubmitError::TooManyBeams { beams: 5, max: 4 });
    // Pages of 64 tokens: six for each beam, and one of the prompt that they share.
    let long = plain(&model, 0, 64, 330);
    let room = EngineOptions { max_tokens: 1000, ..options() };
    let small = Engine::start(model.clone(), room).unwrap();
    let sink = Box::new(|_, _| {});
    assert_eq!(
        small.search_to(&long, &TextBeams::of_texts(4), sink).unwrap_err(),
        SubmitError::BeamsTooLong { beams: 4, tokens: 25 * 64, max: 1024 }
    );
    for (beams, asked, member) in [
        (TextBeams::of_texts(0), asked.clone(), "best_of"),
        (TextBeams::of_texts(65), asked.clone(), "best_of"),
        (TextBeams { width: 2, ..TextBeams::of_texts(3) }, asked.clone(), "best_of"),
        (
            TextBeams { length_penalty: f32::NAN, ..TextBeams::of_texts(3) },
            asked.clone(),
            "length_penalty",
        ),
        (TextBeams::of_texts(2), TextRequest { stop: vec!["x".into()], ..asked.clone() }, "stop"),
        (TextBeams::of_texts(2), TextRequest { logprobs: Some(1), ..asked.clone() }, "logprobs"),
        (
            TextBeams::of_texts(2),
            TextRequest { length: LengthRule::Gentle, ..asked.clone() },
            "finish",
        ),
    ] {
        let broken: Vec<TextBeamsError> = beams.broken_rules(&asked);
        let members: Vec<&str> = broken.iter().map(TextBeamsError::member).collect();
        assert_eq!(members, [member]);
        assert_eq!(refused(&asked, &beams).to_string(), broken[0].to_string());
    }
    engine.close();
    assert_eq!(refused(&asked, &TextBeams::of_texts(2)), SubmitError::Closed);
}

#[test]
fn a_search_that_nobody_wants_ends() {
    let model = model();
    let engine = Engine::start(model.clone(), options()).unwrap();
    let asked = plain(&model, 0, 5, 180);
    let first = search(&engine, &asked, &TextBeams::of_texts(4));
    let second = search(&engine, &asked, &TextBeams::of_texts(2));
    drop(first.ticket);
    assert_eq!(second.found(2).unwrap().len(), 2);
    assert_eq!(first.updates.iter().count(), 0);
    assert_eq!(engine.statistics().cancelled, 1);
    // One that waits for places gives way to texts and searches after it.
    let filling: Vec<TextStream> =
        (0..2).map(|seed| engine.submit(&request(&model, 0, 9, seed)).unwrap()).collect();
    let waiting = search(&engine, &asked, &TextBeams::of_texts(4));
    let after = search(&engine, &asked, &TextBeams::of_texts(1));
    drop(waiting.ticket);
    assert_eq!(after.found(1).unwrap().len(), 1);
    filling.into_iter().for_each(|stream| drop(together(stream).unwrap()));
    assert_eq!((waiting.updates.iter().count(), engine.statistics().cancelled), (0, 2));
    // Dropping the engine ends searches by a failure, the last of several at any rate.
    let mut several: Vec<_> =
        (0..5).map(|_| search(&engine, &asked, &TextBeams::of_texts(4))).collect();
    drop(engine);
    assert!(matches!(several.pop().unwrap().found(4), Err(EngineError::Closed)));
}
