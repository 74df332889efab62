//! Grammars in the dialect of lark, as llguidance and SynCode read it too.
//!
//! ```text
//! start: sum
//! ?sum: product (("+" | "-") product)*     // ( ) groups, [ ] and ? options, * + ~2..5 {2,5} repetitions
//! product: atom ("*" atom)*  -> times      // names for parts of a parse tree are read over
//! atom: NUMBER | "(" sum ")" | list{sum}
//! list{item}: "[" [item ("," item)*] "]"   // a template
//! NUMBER.2: /[0-9]+/ ["." /[0-9]+/]        // a terminal with a priority, built of others
//! %import common.WS
//! %ignore WS
//! ```
//!
//! What only shapes a parse tree (`?`, `!` and `_` before a name, aliases, priorities of rules) is
//! accepted and means nothing: the texts of the language are the same. Texts ignore case with an
//! `i` after them; regular expressions are Python's, with the flags `imsxu`. `%declare`, `%extend`
//! and `%override` work; `%import` knows the library `common`. `<|name|>`, `<[7]>` in a rule are
//! tokens by name or number; `%json {…}`, `%regex {…}` and `%lark {…}` are grammars of their own.
//! `SKU: %catalog {…}` is a name for members of a set.
//! In terminals `a & b` is what both match and `~a` what `a` does not.
//!
//! Where lark gives up we go on: a terminal may match the empty text (rules then may leave it out),
//! rules may collide or be ambiguous, repetitions may be counted in millions. A rule becomes plain
//! rules just as in lark, so that numbers of terminals, nonterminals and rules can be compared.
//!
//! Steps: `tokens` cuts words, `parse` makes statements, `definitions` gathers and checks them,
//! `terminals` writes terminals out, `lower` makes plain rules, `assemble` keeps what the start
//! reaches.

mod assemble;
mod attributes;
mod blocks;
mod definitions;
mod embedded;
mod emptiness;
mod error;
mod imports;
mod limited_rules;
mod literals;
mod lower;
mod options;
mod parametric;
mod parse;
mod rule_number;
mod syntax;
mod terminals;
mod tokens;
mod word_lengths;

pub use error::{LarkError, LarkProblem};
pub use options::{IndentationNames, LarkIndentation, LarkLimits, LarkOptions};

use crate::json_schema::Warning;
use crate::{Budget, Grammar};
use definitions::Definitions;
use error::Problems;
use lower::Lowering;
use terminals::Terminals;

/// Reads a grammar.
///
/// Of the definitions only what the start rule reaches, and what is ignored, gets into the grammar;
/// all of them are checked. O(source) and the size of the rules written out, which [`LarkLimits`]
/// bounds.
///
/// # Errors
/// Everything found wrong, with its place: words and statements that are none, names without a
/// definition or with two, regular expressions that cannot be read, terminals that are built of
/// themselves, a start rule that is not there, limits passed.
///
/// # Examples
/// ```
/// use palmette_grammar_syntax::lark::{LarkOptions, parse};
///
/// let source = "start: \"(\" start? \")\"  // parentheses";
/// let grammar = parse(source, &LarkOptions::default())?;
/// assert_eq!((grammar.terminals().len(), grammar.rules().len()), (2, 2));
///
/// let error = parse("start: NAME", &LarkOptions::default()).unwrap_err();
/// assert_eq!(error.problems()[0].span.map(|span| span.column), Some(8));
/// # Ok::<(), palmette_grammar_syntax::lark::LarkError>(())
/// ```
pub fn parse(source: &str, options: &LarkOptions) -> Result<Grammar, LarkError> {
    parse_with_budget(source, options, &mut Budget::unlimited()).map(|(grammar, _)| grammar)
}

/// [`parse`], as long as the budget lasts and nobody calls it off; with what schemas within the
/// grammar say without effect.
///
/// # Errors
/// As [`parse`], and when the work is [`interrupted`](LarkError::interrupted).
pub fn parse_with_budget(
    source: &str,
    options: &LarkOptions,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), LarkError> {
    read(source, options, budget, 0)
}

/// Reads a grammar that has so many others around it.
fn read(
    source: &str,
    options: &LarkOptions,
    budget: &mut Budget<'_>,
    nested: u32,
) -> Result<(Grammar, Vec<Warning>), LarkError> {
    let mut problems = Problems::new(source, budget.split_off(), nested);
    let statements = parse::statements(&mut problems);
    problems.check()?;
    let definitions = Definitions::gather(statements, &mut problems);
    let start = assemble::start_rule(&definitions, options, &mut problems);
    problems.check()?;
    let terminals = Terminals::build(&definitions, &options.limits, &mut problems);
    problems.check()?;
    let mut lowering = Lowering::new(&definitions, terminals, &options.limits, &mut problems);
    let made = lowering.all();
    let start = start.and_then(|index| lowering.rule_id(index));
    let (drafts, mut terminals) = (lowering.drafts, lowering.terminals);
    let grammar = made.and(start).and_then(|start| {
        let parts =
            assemble::Parts { definitions: &definitions, terminals: &mut terminals, rules: drafts };
        assemble::grammar(parts, start, options, &mut problems)
    });
    problems.check()?;
    budget.join(&problems.budget);
    Ok((grammar.expect("without a problem there is a grammar"), problems.warnings))
}
