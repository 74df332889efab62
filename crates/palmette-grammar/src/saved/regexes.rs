//! Regular expressions as a list in which parts come before what they are part of.

use std::sync::Arc;

use hashbrown::HashMap;

use super::numbers::{In, Malformed, Out};
use crate::{CharClass, Multiple, Regex, TokenPart, TokenPattern};

/// Limit on the nesting of expressions in a file. What is deeper could not be let go of without recursion as deep.
pub(super) const MAX_DEPTH: u32 = 4_000;

/// Limit on the nodes of all expressions with shared parts written out, which is how they are compiled.
pub(super) const MAX_NODES: u64 = 1 << 24;

const NEVER: u32 = 0;
const EMPTY: u32 = 1;
const LITERAL: u32 = 2;
const CLASS: u32 = 3;
const CONCAT: u32 = 4;
const ALTERNATE: u32 = 5;
const AND: u32 = 6;
const NOT: u32 = 7;
const REPEAT: u32 = 8;
const RELUCTANT: u32 = 9;
/// And three more, by two bits: behind, negated.
const LOOK: u32 = 10;
const TOKENS: u32 = 14;
const MULTIPLE: u32 = 15;

/// In place of a greatest count that there is not.
const NO_MAX: u32 = u32::MAX;

/// Depth and number of nodes, so that both are known before anything recurs.
#[derive(Clone, Copy, Default)]
struct Size {
    depth: u32,
    nodes: u64,
}

impl Size {
    fn of(parts: impl Iterator<Item = Size>) -> Self {
        let all = parts.fold(Self::default(), |all, part| Self {
            depth: all.depth.max(part.depth),
            nodes: all.nodes.saturating_add(part.nodes),
        });
        Self { depth: all.depth.saturating_add(1), nodes: all.nodes.saturating_add(1) }
    }

    fn check(self) -> Result<(), Malformed> {
        if self.depth > MAX_DEPTH {
            return Malformed::because(format!("its expressions nest deeper than {MAX_DEPTH}"));
        }
        if self.nodes > MAX_NODES {
            let message = format!("its expressions have more than {MAX_NODES} nodes written out");
            return Malformed::because(message);
        }
        Ok(())
    }
}

/// Collects expressions, shared parts once.
#[derive(Default)]
pub(super) struct RegexesOut {
    out: Out,
    count: u32,
    /// Of the expressions that are behind an `Arc`, by its address and what else they are made of. The expressions outlive
    /// this, so no address is used twice.
    known: HashMap<Identity, u32>,
    sizes: Vec<Size>,
}

impl RegexesOut {
    /// The number of an expression.
    pub(super) fn add(&mut self, whole: &Regex) -> Result<u32, Malformed> {
        // Without recursion, parts before wholes: an expression is added when it is met a second time.
        let mut work = vec![(whole, false)];
        let mut made = Vec::new();
        while let Some((regex, parts_made)) = work.pop() {
            if let Some(&known) = self.known.get(&identity(regex)) {
                made.push(known);
                continue;
            }
            let parts = parts(regex);
            if !parts_made && !parts.is_empty() {
                work.push((regex, true));
                work.extend(parts.iter().rev().map(|part| (part, false)));
                continue;
            }
            let first = made.len() - parts.len();
            let number = self.write(regex, &made[first..])?;
            made.truncate(first);
            made.push(number);
        }
        Ok(made.pop().expect("the whole"))
    }

    fn write(&mut self, regex: &Regex, parts: &[u32]) -> Result<u32, Malformed> {
        let size = Size::of(parts.iter().map(|&part| self.sizes[part as usize]));
        size.check()?;
        let out = &mut self.out;
        match regex {
            Regex::Never => out.u32(NEVER),
            Regex::Empty => out.u32(EMPTY),
            Regex::Literal(text) => {
                out.u32(LITERAL);
                out.text(text);
            }
            Regex::Class(class) => {
                out.u32(CLASS);
                out.len(class.ranges().len());
                for &(low, high) in class.ranges() {
                    out.u32(low.into());
                    out.u32(high.into());
                }
            }
            Regex::Tokens(tokens) => {
                let ranges = tokens.ranges().map_err(|name| {
                    Malformed(format!("it asks for token {name}, whose number is not known"))
                })?;
                out.u32(TOKENS);
                out.len(ranges.len());
                for (low, high) in ranges {
                    out.u32(low);
                    out.u32(high);
                }
            }
            Regex::Multiple(of) => {
                out.u32(MULTIPLE);
                let (modulus, remainder, place) = of.parts();
                for number in [modulus, remainder, place] {
                    out.all(&[(number >> 32) as u32, number as u32]);
                }
            }
            Regex::Concat(_) => out.u32(CONCAT),
            Regex::Alternate(_) => out.u32(ALTERNATE),
            Regex::And(_) => out.u32(AND),
            Regex::Not(_) => out.u32(NOT),
            &Regex::Repeat { min, max, reluctant, .. } => {
                out.u32(if reluctant { RELUCTANT } else { REPEAT });
                out.u32(min);
                out.u32(match max {
                    None => NO_MAX,
                    Some(NO_MAX) => {
                        return Malformed::because(format!("it repeats something {NO_MAX} times"));
                    }
                    Some(max) => max,
                });
            }
            &Regex::Look { behind, negated, .. } => {
                out.u32(LOOK + u32::from(behind) + 2 * u32::from(negated));
            }
        }
        if matches!(regex, Regex::Concat(_) | Regex::Alternate(_) | Regex::And(_)) {
            out.len(parts.len());
        }
        parts.iter().for_each(|&part| out.u32(part));
        let number = self.count;
        self.count += 1;
        self.sizes.push(size);
        self.known.insert(identity(regex), number);
        Ok(number)
    }

    /// Number of nodes with shared parts written out.
    pub(super) fn num_nodes(&self, number: u32) -> u64 {
        self.sizes[number as usize].nodes
    }

    /// Writes them all.
    pub(super) fn finish(self, out: &mut Out) {
        out.u32(self.count);
        out.bytes.extend_from_slice(&self.out.bytes);
    }
}

/// Refuses expressions of so many nodes together.
pub(super) fn check_nodes(nodes: impl Iterator<Item = u64>) -> Result<(), Malformed> {
    Size { depth: 0, nodes: nodes.fold(0, u64::saturating_add) }.check()
}

/// Reads expressions, each with the number of its nodes; each is found by its number.
pub(super) fn read(from: &mut In<'_>) -> Result<Vec<(Regex, u64)>, Malformed> {
    let count = from.count("expressions")?;
    let mut made: Vec<Regex> = Vec::new();
    let mut sizes: Vec<Size> = Vec::new();
    let mut parts: Vec<u32> = Vec::new();
    for _ in 0..count {
        let tag = from.u32()?;
        parts.clear();
        let (mut min, mut max) = (0, None);
        let mut leaf = Regex::Never;
        match tag {
            NEVER => {}
            EMPTY => leaf = Regex::Empty,
            LITERAL => leaf = Regex::Literal(from.text()?.into()),
            CLASS => leaf = Regex::Class(class(from)?),
            TOKENS => leaf = Regex::Tokens(tokens(from)?),
            MULTIPLE => leaf = Regex::Multiple(multiple(from)?),
            CONCAT | ALTERNATE | AND => {
                for _ in 0..from.count("parts")? {
                    parts.push(from.below(made.len(), "expression")?);
                }
            }
            REPEAT | RELUCTANT => {
                min = from.u32()?;
                max = Some(from.u32()?).filter(|&max| max != NO_MAX);
                if max.is_some_and(|max| max < min) {
                    return Malformed::because(format!(
                        "it repeats something {min} to {max:?} times"
                    ));
                }
                parts.push(from.below(made.len(), "expression")?);
            }
            NOT | LOOK..14 => parts.push(from.below(made.len(), "expression")?),
            other => return Malformed::because(format!("it has an expression of kind {other}")),
        }
        let size = Size::of(parts.iter().map(|&part| sizes[part as usize]));
        size.check()?;
        let all = || parts.iter().map(|&part| made[part as usize].clone()).collect();
        let inner = || Arc::new(made[parts[0] as usize].clone());
        let regex = match tag {
            CONCAT => Regex::Concat(all()),
            ALTERNATE => Regex::Alternate(all()),
            AND => Regex::And(all()),
            NOT => Regex::Not(inner()),
            REPEAT | RELUCTANT => {
                Regex::Repeat { inner: inner(), min, max, reluctant: tag == RELUCTANT }
            }
            LOOK..14 => {
                let (behind, negated) = ((tag - LOOK) & 1 == 1, (tag - LOOK) & 2 == 2);
                Regex::Look { inner: inner(), behind, negated }
            }
            _ => leaf,
        };
        made.push(regex);
        sizes.push(size);
    }
    Ok(made.into_iter().zip(sizes.iter().map(|size| size.nodes)).collect())
}

fn multiple(from: &mut In<'_>) -> Result<Multiple, Malformed> {
    let mut number = || Ok(u64::from(from.u32()?) << 32 | u64::from(from.u32()?));
    let parts = (number()?, number()?, number()?);
    match Multiple::from_parts(parts) {
        Some(made) => Ok(made),
        None => Malformed::because(format!("{parts:?} are no state of a division")),
    }
}

fn class(from: &mut In<'_>) -> Result<CharClass, Malformed> {
    let mut ranges = Vec::new();
    for _ in 0..from.count("characters")? {
        let (low, high) = (from.u32()?, from.u32()?);
        let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) else {
            return Malformed::because(format!("{low:#x} to {high:#x} are no characters"));
        };
        ranges.push((low, high));
    }
    Ok(CharClass::new(ranges))
}

fn tokens(from: &mut In<'_>) -> Result<TokenPattern, Malformed> {
    let mut parts = Vec::new();
    for _ in 0..from.count("tokens")? {
        parts.push(TokenPart::Numbers(from.u32()?, from.u32()?));
    }
    Ok(TokenPattern { parts: parts.into(), negated: false })
}

/// Direct parts of an expression.
fn parts(regex: &Regex) -> &[Regex] {
    match regex {
        Regex::Never
        | Regex::Empty
        | Regex::Literal(_)
        | Regex::Class(_)
        | Regex::Multiple(_)
        | Regex::Tokens(_) => &[],
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => parts,
        Regex::Not(inner) | Regex::Repeat { inner, .. } | Regex::Look { inner, .. } => {
            std::slice::from_ref(inner)
        }
    }
}

/// An address, a kind and numbers.
type Identity = (usize, u32, u64, u64, u64);

/// Equal only for equal expressions.
fn identity(regex: &Regex) -> Identity {
    let plain = |address: usize, kind: u32, size: usize| (address, kind, size as u64, 0, 0);
    match regex {
        Regex::Never => plain(0, NEVER, 0),
        Regex::Empty => plain(0, EMPTY, 0),
        Regex::Literal(text) => plain(text.as_ptr() as usize, LITERAL, text.len()),
        Regex::Class(class) => plain(class.ranges().as_ptr() as usize, CLASS, class.ranges().len()),
        Regex::Multiple(of) => {
            let (modulus, remainder, place) = of.parts();
            (0, MULTIPLE, modulus, remainder, place)
        }
        Regex::Tokens(tokens) => {
            let (address, count) = (tokens.parts.as_ptr() as usize, tokens.parts.len() as u64);
            (address, TOKENS, count, u64::from(tokens.negated), 0)
        }
        Regex::Concat(parts) => plain(parts.as_ptr() as usize, CONCAT, parts.len()),
        Regex::Alternate(parts) => plain(parts.as_ptr() as usize, ALTERNATE, parts.len()),
        Regex::And(parts) => plain(parts.as_ptr() as usize, AND, parts.len()),
        Regex::Not(inner) => plain(Arc::as_ptr(inner) as usize, NOT, 0),
        Regex::Repeat { inner, min, max, reluctant } => {
            let tag = if *reluctant { RELUCTANT } else { REPEAT };
            let max = max.unwrap_or(NO_MAX);
            (Arc::as_ptr(inner) as usize, tag, u64::from(*min), u64::from(max), 0)
        }
        Regex::Look { inner, behind, negated } => {
            let tag = LOOK + u32::from(*behind) + 2 * u32::from(*negated);
            plain(Arc::as_ptr(inner) as usize, tag, 0)
        }
    }
}
