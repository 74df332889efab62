//! The language of a grammar at the level of text, by definition.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use palmette_grammar_parser::{Grammar, Lexing, Regex, TerminalId, TerminalKind};

use super::earley::{EarleyGrammar, Lexeme};
use super::lr_stacks::{LrStacks, MAX_STACKS};
use super::regex::{ends, has_look, may_begin};

/// Says which texts over a small alphabet are in a language, which begin one that is, and which
/// tokens may follow.
///
/// Slow: a text's lexemes are found by trying all ends of all terminals at all places, sentences by
/// an Earley parser over all cuttings, and beginnings by trying one continuation after another, the
/// shortest first, those left out that are seen to be hopeless. What a terminal says of a text is
/// found out once: continuations have most of their parts in common.
///
/// Grammars with indentation are not covered.
#[derive(Debug)]
pub struct TextOracle {
    rules: EarleyGrammar,
    /// Stacks of the LR parser, where lexemes depend on its state.
    stacks: Option<LrStacks>,
    terminals: Vec<OracleTerminal>,
    lexing: Lexing,
    alphabet: Vec<char>,
    max_tries: usize,
    known: RefCell<HashMap<Vec<char>, bool>>,
}

#[derive(Debug)]
struct OracleTerminal {
    id: TerminalId,
    regex: Regex,
    /// True if only the first end that a backtracking matcher finds counts.
    first_end_only: bool,
    /// True if lookarounds are in it.
    looks: bool,
    /// True if a match is one whatever follows.
    certain: bool,
    ignored: bool,
    in_rules: bool,
    rank: (i32, bool),
    /// True if it does not compete.
    free: bool,
    /// True if terminals of higher ranks match all its texts: it is kept beside them.
    shadowed: bool,
    known: RefCell<KnownMatches>,
}

/// Known matches of a terminal, by text.
#[derive(Debug, Default)]
struct KnownMatches {
    /// Ends of lexemes that begin with the text, where no lookaround sees more than that.
    ends: HashMap<Vec<char>, Vec<usize>>,
    /// True if a text over the alphabet begins so, lookarounds being taken to hold.
    begins: HashMap<Vec<char>, bool>,
    /// True if it is matched whole, lookarounds being taken to hold.
    matches: HashMap<Vec<char>, bool>,
}

/// Length of the texts by which a terminal is judged to be shadowed.
const SHADOW_LENGTH: usize = 5;

impl TextOracle {
    /// The language of `grammar`, restricted to texts over `alphabet`.
    ///
    /// `max_tries` is how many continuations [`is_live`](Self::is_live) tries before it gives up.
    ///
    /// # Panics
    /// When the grammar has indentation.
    pub fn new(grammar: &Grammar, alphabet: &[char], max_tries: usize) -> Self {
        assert!(grammar.indentation().is_none(), "the oracle knows no indentation");
        let rules = EarleyGrammar::new(grammar);
        let in_rules = rules.used_terminals();
        let ids = (0..).map(TerminalId);
        let mut terminals: Vec<OracleTerminal> = grammar
            .terminals()
            .iter()
            .zip(ids)
            .filter(|(terminal, _)| terminal.kind != TerminalKind::Declared)
            .map(|(terminal, id)| OracleTerminal {
                id,
                first_end_only: is_reluctant(&terminal.regex),
                looks: has_look(&terminal.regex),
                certain: !is_reluctant(&terminal.regex) && !has_look(&terminal.regex),
                regex: terminal.regex.clone(),
                ignored: grammar.ignored().contains(&id),
                in_rules: in_rules.contains(&id),
                rank: (terminal.priority, terminal.kind == TerminalKind::Literal),
                free: terminal.kind == TerminalKind::Free,
                shadowed: false,
                known: RefCell::default(),
            })
            .filter(|terminal| terminal.ignored || terminal.in_rules)
            .collect();
        let texts = all_texts(alphabet, SHADOW_LENGTH);
        for at in 0..terminals.len() {
            terminals[at].shadowed = is_shadowed(&terminals, at, &texts);
        }
        let is_contextual = grammar.lexing() == Lexing::Contextual;
        Self {
            rules,
            stacks: is_contextual.then(|| LrStacks::new(grammar)),
            terminals,
            lexing: grammar.lexing(),
            alphabet: alphabet.to_vec(),
            max_tries,
            known: RefCell::default(),
        }
    }

    /// Membership of a text in the language. `None` where it has too many readings to follow them
    /// one by one.
    pub fn contains(&self, text: &str) -> Option<bool> {
        self.contains_chars(&text.chars().collect::<Vec<_>>())
    }

    /// True if some text of the language over the alphabet begins with `prefix`. A character that
    /// is cut off at the end may become any character of the alphabet that begins so. `None` where
    /// that was not found out.
    pub fn is_live(&self, prefix: &[u8]) -> Option<bool> {
        let (whole, rest) = match std::str::from_utf8(prefix) {
            Ok(whole) => (whole, &[][..]),
            Err(error) if error.error_len().is_some() => return Some(false),
            Err(error) => {
                let (whole, rest) = prefix.split_at(error.valid_up_to());
                (std::str::from_utf8(whole).ok()?, rest)
            }
        };
        let whole: Vec<char> = whole.chars().collect();
        if rest.is_empty() {
            return self.search(vec![whole]);
        }
        let begun = self
            .alphabet
            .iter()
            .filter(|next| next.encode_utf8(&mut [0; 4]).as_bytes().starts_with(rest));
        self.search(begun.map(|&next| [&whole[..], &[next]].concat()).collect())
    }

    /// Tells for each token of `vocabulary` if its bytes may follow `prefix`. `None` where that was
    /// not found out.
    pub fn allowed(&self, prefix: &[u8], vocabulary: &[Vec<u8>]) -> Option<Vec<bool>> {
        vocabulary.iter().map(|token| self.is_live(&[prefix, token].concat())).collect()
    }

    /// True if one of `texts`, or something longer, is in the language.
    fn search(&self, mut texts: Vec<Vec<char>>) -> Option<bool> {
        let mut tries = 0;
        while !texts.is_empty() {
            let mut longer = Vec::new();
            for text in texts {
                if self.contains_chars(&text)? {
                    return Some(true);
                }
                tries += 1;
                if tries > self.max_tries {
                    return None;
                }
                if self.may_begin(&text) {
                    longer.extend(self.alphabet.iter().map(|&next| [&text[..], &[next]].concat()));
                }
            }
            texts = longer;
        }
        Some(false)
    }

    fn contains_chars(&self, text: &[char]) -> Option<bool> {
        if let Some(&known) = self.known.borrow().get(text) {
            return Some(known);
        }
        let contains = match &self.stacks {
            Some(stacks) => self.is_read_in_contexts(stacks, text)?,
            None => {
                let every = |_: &OracleTerminal| true;
                let at = |from| self.lexemes(text, from, every);
                let lexemes: Vec<Vec<Lexeme>> = (0..text.len()).map(at).collect();
                let sets = self.rules.read_all(&lexemes, text.len());
                self.rules.is_finished(&sets[text.len()])
            }
        };
        self.known.borrow_mut().insert(text.to_vec(), contains);
        Some(contains)
    }

    /// True if a text is read by lexemes that depend on the parser's state. Each is then the
    /// longest that a terminal matches for which the state has an action. `None` after
    /// [`MAX_STACKS`].
    fn is_read_in_contexts(&self, stacks: &LrStacks, text: &[char]) -> Option<bool> {
        let mut work: Vec<_> = stacks.start().into_iter().map(|stack| (0, stack)).collect();
        let mut seen = BTreeSet::new();
        while let Some((from, stack)) = work.pop() {
            if !seen.insert((from, stack.clone())) {
                continue;
            }
            if from == text.len() {
                if stacks.accepts_end(&stack)? {
                    return Some(true);
                }
                continue;
            }
            if seen.len() > MAX_STACKS {
                return None;
            }
            let actions = stacks.actions(&stack);
            let taken =
                |terminal: &OracleTerminal| terminal.ignored || actions.contains(&terminal.id);
            for Lexeme { end, terminal, ignored } in self.lexemes(text, from, taken) {
                if ignored {
                    work.push((end, stack.clone()));
                } else {
                    let after = stacks.shift(&stack, terminal)?;
                    work.extend(after.into_iter().map(|stack| (end, stack)));
                }
            }
        }
        Some(false)
    }

    /// True if `text` may begin a text of the language; `true` may be wrong.
    fn may_begin(&self, text: &[char]) -> bool {
        let lexemes: Vec<Vec<Lexeme>> =
            (0..text.len()).map(|from| self.possible_lexemes(text, from)).collect();
        let sets = self.rules.read_all(&lexemes, text.len());
        (0..=text.len()).any(|from| {
            let expected = self.rules.expected(&sets[from]);
            // Where nothing was read to, nothing may be ignored.
            let reached = !sets[from].is_empty();
            (from == text.len() && self.rules.is_finished(&sets[from]))
                || self.terminals.iter().any(|terminal| {
                    let fits =
                        if terminal.ignored { reached } else { expected.contains(&terminal.id) };
                    fits && terminal.may_begin(&text[from..], &self.alphabet)
                })
        })
    }

    /// The lexemes that may begin at `from` and be over where `text` goes on: every lookaround is
    /// taken to hold, and of cuttings those are left out that what is known of the text rules out.
    fn possible_lexemes(&self, text: &[char], from: usize) -> Vec<Lexeme> {
        let matched = |terminal: &OracleTerminal, end: usize| terminal.may_match(&text[from..end]);
        let beaten = |loser: &OracleTerminal, end: usize| {
            let certain = self.terminals.iter().filter(|winner| winner.certain && !winner.free);
            !loser.free
                && certain.into_iter().any(|winner| {
                    let longer = (end + 1..=text.len()).any(|end| matched(winner, end));
                    let ranked =
                        !loser.shadowed && !winner.shadowed && winner.rank > loser.losing_rank();
                    longer || (ranked && matched(winner, end))
                })
        };
        let all = self
            .terminals
            .iter()
            .flat_map(|terminal| (from + 1..=text.len()).map(move |end| (terminal, end)));
        let possible = all.filter(|&(terminal, end)| {
            matched(terminal, end) && (self.lexing != Lexing::Longest || !beaten(terminal, end))
        });
        possible.map(|(terminal, end)| terminal.lexeme(end)).collect()
    }

    /// The lexemes of some terminals that begin at `from`.
    fn lexemes(
        &self,
        text: &[char],
        from: usize,
        taken: impl Fn(&OracleTerminal) -> bool,
    ) -> Vec<Lexeme> {
        let mut matches: Vec<(&OracleTerminal, usize)> = Vec::new();
        for terminal in self.terminals.iter().filter(|terminal| taken(terminal)) {
            let mut found = terminal.ends(text, from);
            found.truncate(if terminal.first_end_only { 1 } else { found.len() });
            matches.extend(found.into_iter().filter(|&end| end > from).map(|end| (terminal, end)));
        }
        if self.lexing != Lexing::Any {
            let rivals = matches.iter().filter(|(terminal, _)| !terminal.free);
            let longest = rivals.map(|&(_, end)| end).max();
            matches.retain(|&(terminal, end)| terminal.free || Some(end) == longest);
            let rivals = matches.iter().filter(|(terminal, _)| !terminal.free);
            let winners = rivals.filter(|(terminal, _)| !terminal.shadowed);
            let highest = winners.map(|(terminal, _)| terminal.rank).max();
            matches.retain(|(terminal, _)| {
                terminal.free || terminal.shadowed || Some(terminal.losing_rank()) >= highest
            });
        }
        matches.into_iter().map(|(terminal, end)| terminal.lexeme(end)).collect()
    }
}

impl OracleTerminal {
    /// Ends of lexemes that begin at `from`.
    fn ends(&self, text: &[char], from: usize) -> Vec<usize> {
        if self.looks {
            return ends(&self.regex, text, from);
        }
        let find = |text: &[char]| ends(&self.regex, text, 0);
        let found = known(&mut self.known.borrow_mut().ends, &text[from..], find);
        found.into_iter().map(|end| from + end).collect()
    }

    /// True if some text over the alphabet that begins so is matched. Lookarounds are taken to
    /// hold.
    fn may_begin(&self, beginning: &[char], alphabet: &[char]) -> bool {
        let find = |beginning: &[char]| may_begin(&self.regex, beginning, alphabet);
        known(&mut self.known.borrow_mut().begins, beginning, find)
    }

    /// True if a text is matched, lookarounds being taken to hold.
    fn may_match(&self, text: &[char]) -> bool {
        let find = |text: &[char]| may_begin(&self.regex, text, &[]);
        known(&mut self.known.borrow_mut().matches, text, find)
    }

    /// The rank that others must pass to beat it: what is ignored does not lose to literals of its
    /// priority.
    fn losing_rank(&self) -> (i32, bool) {
        (self.rank.0, self.rank.1 || self.ignored)
    }

    fn lexeme(&self, end: usize) -> Lexeme {
        Lexeme { end, terminal: self.id, ignored: self.ignored }
    }
}

/// Looks a text up, and finds its value out the first time.
fn known<T: Clone>(
    all: &mut HashMap<Vec<char>, T>,
    text: &[char],
    find: impl FnOnce(&[char]) -> T,
) -> T {
    if let Some(known) = all.get(text) {
        return known.clone();
    }
    let found = find(text);
    all.insert(text.to_vec(), found.clone());
    found
}

/// True if every text of a terminal is one of terminals of higher ranks.
fn is_shadowed(terminals: &[OracleTerminal], at: usize, texts: &[Vec<char>]) -> bool {
    let matches =
        |terminal: &OracleTerminal, text: &[char]| terminal.ends(text, 0).contains(&text.len());
    let this = &terminals[at];
    if this.free {
        return false;
    }
    let mut own = texts.iter().filter(|text| matches(this, text)).peekable();
    own.peek().is_some()
        && own.all(|text| {
            let mut rivals = terminals.iter().filter(|other| !other.free);
            rivals.any(|other| other.rank > this.losing_rank() && matches(other, text))
        })
}

/// True if a reluctant quantifier is in it.
fn is_reluctant(regex: &Regex) -> bool {
    match regex {
        Regex::Repeat { inner, reluctant, .. } => *reluctant || is_reluctant(inner),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(is_reluctant)
        }
        Regex::Not(inner) | Regex::Look { inner, .. } => is_reluctant(inner),
        _ => false,
    }
}

/// All texts of one to `length` characters.
fn all_texts(alphabet: &[char], length: usize) -> Vec<Vec<char>> {
    let mut all = Vec::new();
    let mut last = vec![Vec::new()];
    for _ in 0..length {
        last = last
            .iter()
            .flat_map(|text| alphabet.iter().map(move |&next| [&text[..], &[next]].concat()))
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use palmette_grammar_parser::{CharClass, GrammarBuilder, Symbol, Terminal};
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::generate::{ALPHABET, over_alphabet, text_grammar, vocabulary};

    /// A grammar `S → t*` over these terminals.
    fn any_of(
        terminals: &[(Regex, i32, TerminalKind)],
        lexing: Lexing,
        ignored: &[u32],
    ) -> Grammar {
        let mut builder = GrammarBuilder::new();
        let start = builder.nonterminal("S", None);
        builder.rule(start, []);
        for (regex, priority, kind) in terminals {
            let (regex, priority, kind) = (regex.clone(), *priority, *kind);
            let terminal =
                Terminal { name: format!("{regex:?}"), regex, priority, kind, span: None };
            let id = builder.terminal(terminal);
            if ignored.contains(&id.0) {
                builder.ignore(id);
            } else {
                builder.rule(start, [Symbol::Nonterminal(start), Symbol::Terminal(id)]);
            }
        }
        builder.build(start, lexing)
    }

    fn literal(text: &str) -> (Regex, i32, TerminalKind) {
        (Regex::literal(text), 0, TerminalKind::Literal)
    }

    fn oracle(grammar: &Grammar) -> TextOracle {
        TextOracle::new(grammar, &['a', 'b', 'c'], 1000)
    }

    #[test]
    fn longest_lexemes_are_not_split() {
        let terminals = [literal("a"), literal("ab"), literal("bc")];
        let (any, longest) =
            (any_of(&terminals, Lexing::Any, &[]), any_of(&terminals, Lexing::Longest, &[]));
        assert_eq!(oracle(&any).contains("abc"), Some(true));
        assert_eq!(oracle(&longest).contains("abc"), Some(false));
        assert_eq!(oracle(&longest).contains("aab"), Some(true));
        // "ab" may go on with another lexeme, but not with a "c".
        assert_eq!(oracle(&longest).is_live(b"ab"), Some(true));
        assert_eq!(oracle(&longest).is_live(b"abc"), Some(false));
        assert_eq!(oracle(&any).is_live(b"abc"), Some(true));
    }

    #[test]
    fn ranks_decide_between_equal_lexemes() {
        let rules = |word: i32| {
            let mut builder = GrammarBuilder::new();
            let start = builder.nonterminal("S", None);
            let regexes = [Regex::literal("ab"), any_word(), Regex::literal("c")];
            let kinds = [TerminalKind::Literal, TerminalKind::Pattern, TerminalKind::Literal];
            for (at, (regex, kind)) in regexes.into_iter().zip(kinds).enumerate() {
                let priority = if at == 1 { word } else { 0 };
                builder.terminal(Terminal {
                    name: String::new(),
                    regex,
                    priority,
                    kind,
                    span: None,
                });
            }
            builder.rule(start, [Symbol::Terminal(TerminalId(1))]);
            builder.rule(start, [0, 2].map(|id| Symbol::Terminal(TerminalId(id))));
            builder.build(start, Lexing::Longest)
        };
        assert_eq!(oracle(&rules(0)).contains("ab"), Some(false), "the literal goes first");
        assert_eq!(
            oracle(&rules(1)).contains("ab"),
            Some(true),
            "the pattern has the higher priority"
        );
        assert_eq!(oracle(&rules(0)).contains("abb"), Some(true));
        assert_eq!(oracle(&rules(0)).contains("abc"), Some(true), "as one word");
    }

    fn any_word() -> Regex {
        Regex::Class(CharClass::new([('a', 'c')])).repeat(1, None)
    }

    #[test]
    fn ignored_lexemes_stand_anywhere() {
        let grammar = any_of(&[literal("ab"), literal("c")], Lexing::Any, &[1]);
        let oracle = oracle(&grammar);
        assert_eq!(oracle.contains("ccabcabcc"), Some(true));
        assert_eq!(oracle.contains("acb"), Some(false));
        assert_eq!(oracle.is_live(b"cca"), Some(true));
        assert_eq!(oracle.is_live(b"ac"), Some(false));
        let vocabulary = [&b"b"[..], b"bc", b"cb"].map(<[u8]>::to_vec);
        assert_eq!(oracle.allowed(b"a", &vocabulary), Some(vec![true, true, false]));
    }

    #[test]
    fn characters_may_be_cut() {
        let grammar = any_of(&[literal("é")], Lexing::Any, &[]);
        let oracle = TextOracle::new(&grammar, &ALPHABET, 1000);
        assert_eq!(oracle.is_live(&"é".as_bytes()[..1]), Some(true));
        assert_eq!(oracle.is_live(&"ê".as_bytes()[..2]), Some(false));
        assert_eq!(oracle.is_live(b"\xFF"), Some(false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn live_is_closed_under_beginnings(grammar in text_grammar(), tokens in vocabulary()) {
            let oracle = TextOracle::new(&over_alphabet(&grammar), &ALPHABET, 200);
            let start = oracle.is_live(b"");
            for token in tokens {
                if oracle.is_live(&token) == Some(true) {
                    prop_assert_ne!(start, Some(false));
                    for end in 0..token.len() {
                        prop_assert_ne!(oracle.is_live(&token[..end]), Some(false));
                    }
                }
            }
        }
    }

    #[test]
    fn most_random_grammars_are_decided() {
        use proptest::strategy::ValueTree;
        use proptest::test_runner::TestRunner;
        let mut runner = TestRunner::deterministic();
        let (mut live, mut dead, mut unknown) = (0, 0, 0);
        for _ in 0..100 {
            let grammar = text_grammar().new_tree(&mut runner).unwrap().current();
            let oracle = TextOracle::new(&over_alphabet(&grammar), &ALPHABET, 200);
            for prefix in ["", "a", "b", "ab", "éa"] {
                match oracle.is_live(prefix.as_bytes()) {
                    Some(true) => live += 1,
                    Some(false) => dead += 1,
                    None => unknown += 1,
                }
            }
        }
        assert!(live > 80 && dead > 80 && unknown < 50, "{live} {dead} {unknown}");
    }
}
