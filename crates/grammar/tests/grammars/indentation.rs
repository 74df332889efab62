//! Blocks by indentation: every way to ask what may follow against the definition, executed on
//! whole texts.

use std::collections::HashMap;
use std::sync::Arc;

use palmette_core::{Constraint, TokenId, TokenMask, Vocabulary};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, Lexing, PreparedVocabulary, Recognizer,
    RecognizerLimits,
    engine::glr::ParserScratch,
    frontends::lark::{self, LarkOptions},
};
use palmette_mask_store::{MaskStore, Steps};
use palmette_testkit::grammar::EarleyGrammar;

/// `a` is a statement, `b:` begins a block, brackets may be around anything, and `~` is ignored
/// anywhere.
const GRAMMAR: &str = r#"
start: (_NEWLINE | stmt)*
stmt: item _NEWLINE | "b" ":" block
block: item _NEWLINE | _NEWLINE _INDENT stmt+ _DEDENT
item: "a" | "(" item* ")"
_NEWLINE: /(\n[\t ]*)+/
%ignore /[\t ]+/
%ignore "~"
%declare _INDENT _DEDENT
"#;

const ALPHABET: &[u8] = b"ab:( )\n~";

fn grammar() -> Grammar {
    let options = LarkOptions::from_rule("start").python_indentation();
    lark::parse(GRAMMAR, &options).expect("a grammar")
}

/// Lark's rule on the whole text: lexemes, then marks, then the parser.
fn is_text(grammar: &Grammar, rules: &EarleyGrammar, text: &[u8]) -> bool {
    let blocks = grammar.indentation().expect("blocks");
    let named: HashMap<&str, _> = grammar
        .terminals()
        .iter()
        .zip(0..)
        .map(|(terminal, id)| (terminal.name.as_str(), id))
        .collect();
    let terminal = |name: &str| palmette_grammar::TerminalId(named[name]);
    let mut parser = rules.begin();
    let (mut depths, mut brackets, mut at) = (vec![0], 0, 0);
    let mut read = |terminal| parser.read(terminal);
    while at < text.len() {
        let blanks = text[at..].iter().take_while(|&&byte| byte == b' ').count();
        if blanks > 0 {
            at += blanks;
            continue;
        }
        let fits = match text[at] {
            b'\n' => {
                let end = text[at..].iter().take_while(|byte| b"\n ".contains(byte)).count() + at;
                let depth = text[at..end].iter().rev().take_while(|&&byte| byte == b' ').count();
                at = end;
                if brackets > 0 {
                    continue;
                }
                let mut fits = read(blocks.newline);
                if depth > depths[depths.len() - 1] {
                    depths.push(depth);
                    fits = fits && read(blocks.indent);
                } else {
                    while fits && depth < depths[depths.len() - 1] {
                        depths.pop();
                        fits = read(blocks.dedent);
                    }
                    fits = fits && depth == depths[depths.len() - 1];
                }
                if !fits {
                    return false;
                }
                continue;
            }
            b'(' => {
                brackets += 1;
                read(blocks.open[0])
            }
            b')' => {
                brackets -= 1;
                read(blocks.close[0])
            }
            b'~' => {
                at += 1;
                continue;
            }
            b':' => read(terminal("COLON")),
            b'a' => read(terminal("A")),
            _ => read(terminal("B")),
        };
        if !fits {
            return false;
        }
        at += 1;
    }
    depths[1..].iter().all(|_| read(blocks.dedent)) && parser.is_sentence()
}

/// The front end refuses it too; a grammar may be made without one.
#[test]
fn contextual_lexing_is_refused() {
    let contextual = Arc::new(grammar().with_lexing(Lexing::Contextual));
    let refused =
        Recognizer::new(contextual, &RecognizerLimits::default(), &mut Budget::unlimited());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("lexing cannot be contextual"), "{message}");
}

#[test]
fn texts_and_masks_are_those_of_the_definition() {
    let grammar = grammar();
    let rules = EarleyGrammar::new(&grammar);
    let tokens = [
        "a", "b", ":", "(", ")", "\n", " ", "  ", "\n ", "\n  a", ":\n", " a\n", "a\nb:", "\n\n",
        "a\n a", " ~", "a\n ~",
    ];
    let vocabulary =
        Arc::new(Vocabulary::new(tokens.map(Some), std::iter::empty()).expect("a vocabulary"));
    let limits = RecognizerLimits::default();
    let recognizer =
        Recognizer::new(Arc::new(grammar.clone()), &limits, &mut Budget::unlimited()).unwrap();
    let slices = Arc::new(PreparedVocabulary::new(vocabulary.clone()));
    let walked = GrammarConstraint::by_walking(Arc::new(recognizer), slices.clone());
    let read = GrammarConstraint::new(walked.recognizer().clone(), slices.clone());
    let stores = (0..=Steps::MAX).map(|count| {
        let steps = Steps::first(count);
        MaskStore::new(walked.recognizer().clone(), &slices, steps).expect("it is read")
    });
    let stores: Vec<_> = stores.collect();
    // What closes whatever may be open, in few bytes: a text is live iff one of these completes it.
    let mut endings: Vec<Vec<u8>> = vec![Vec::new()];
    for length in 0..5 {
        let longer: Vec<Vec<u8>> =
            endings.iter().filter(|end| end.len() == length).cloned().collect();
        endings.extend(
            longer
                .iter()
                .flat_map(|end| b"a:)\n ".iter().map(|&byte| [&end[..], &[byte]].concat())),
        );
    }
    let live =
        |text: &[u8]| endings.iter().any(|end| is_text(&grammar, &rules, &[text, end].concat()));
    let mut scratch = GrammarScratch::default();
    let mut texts = vec![(Vec::new(), walked.start())];
    let (mut checked, mut at) = (0, 0);
    while at < texts.len() && checked < 60 {
        let (text, state) = texts[at].clone();
        at += 1;
        if text.len() > 5 {
            continue;
        }
        assert_eq!(
            walked.is_accepting(&state, &mut scratch).unwrap(),
            is_text(&grammar, &rules, &text),
            "{:?}",
            String::from_utf8_lossy(&text)
        );
        let masks = [&walked, &read].map(|constraint| {
            let mut mask = TokenMask::new(tokens.len());
            constraint.fill_mask(&state, &mut scratch, mask.as_words_mut()).unwrap();
            mask
        });
        assert_eq!(masks[0], masks[1], "{:?}", String::from_utf8_lossy(&text));
        for store in &stores {
            let (position, mut mask) = (state.position().unwrap(), TokenMask::new(tokens.len()));
            store.fill_mask(position, &mut ParserScratch::default(), mask.as_words_mut()).unwrap();
            assert_eq!(masks[0], mask, "{:?}", String::from_utf8_lossy(&text));
        }
        for (number, token) in tokens.iter().enumerate() {
            let token_id = TokenId(number as u32);
            let after = [&text[..], token.as_bytes()].concat();
            let (allowed, expected) = (masks[0].contains(token_id), live(&after));
            assert_eq!(allowed, expected, "{:?}", String::from_utf8_lossy(&after));
            if allowed {
                let mut next = state.clone();
                walked.commit(&mut next, token_id, &mut scratch).expect("in the mask");
                texts.push((after, next));
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 60);
    assert!(ALPHABET.iter().all(|byte| texts.iter().any(|(text, _)| text.contains(byte))));
}
