//! The join of a lexicon with a vocabulary: which tokens go on from a prefix, in one descent of
//! both tries.

use palmette_core::vocabulary_trie::ChildLists;
use palmette_core::{Budget, Interrupted};
use smallvec::SmallVec;

use crate::arrays::{Prefix, StringsView};
use crate::selection::Chosen;
use crate::spelling::Spelling;

/// Chosen strings of a range up to this number are followed one by one.
const FOLLOWED: usize = 4;

/// What a join meets, in depth-first order of the strings.
pub(crate) trait Sink {
    /// A node of the vocabulary's trie that spellings of the strings `lo..hi` lead to.
    fn live(&mut self, node: u32, lo: usize, hi: usize);

    /// A node with nodes below it where the spelling of a string ends.
    fn end(&mut self, node: u32, rank: usize);
}

/// A descent of the strings' implicit trie and the vocabulary's at once.
///
/// ```text
/// enter(lo..hi sharing depth bytes, node):
///   node has no children                     done
///   one string, or a few chosen ones         follow each down the vocabulary's trie
///   no string parts at depth                 follow the bytes that all share
///   for each child of the range, ascending, beside the node's children, ascending:
///     the node has the child's byte          enter(child, node's child)
/// ```
/// A child without a chosen string is jumped over: from the next chosen rank back to the first
/// string of its child.
///
/// Cost: a unit of the budget for each node of the vocabulary's trie that is met. What is open lies
/// in a list, so that no depth is too deep.
#[derive(Debug)]
pub(crate) struct Join<'a, 'b, C, S> {
    pub(crate) strings: StringsView<'a>,
    pub(crate) children: &'a ChildLists,
    pub(crate) spelling: Spelling,
    pub(crate) chosen: C,
    pub(crate) sink: S,
    pub(crate) budget: &'a mut Budget<'b>,
    pub(crate) open: Open,
}

/// Ranges whose children are being gone through.
pub(crate) type Open = SmallVec<[Frame; 12]>;

/// A range beside a node of the vocabulary's trie, some of its children done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// First string of the next child.
    at: usize,
    lo: usize,
    hi: usize,
    /// First string of the second child.
    second: usize,
    depth: usize,
    node: u32,
    /// Children of the node that are done.
    done: u32,
}

impl<C: Chosen, S: Sink> Join<'_, '_, C, S> {
    /// Joins the strings of a prefix with the tokens strictly below a node.
    ///
    /// # Errors
    /// When the budget is used up or called off.
    pub(crate) fn below(&mut self, at: Prefix, node: u32) -> Result<(), Interrupted> {
        self.open.clear();
        self.enter(at, node)?;
        while let Some(frame) = self.open.last_mut() {
            let mut now = *frame;
            match next_child(self.strings, self.chosen, &mut now) {
                None => _ = self.open.pop(),
                Some(child) => {
                    let met = self.meet(child, &mut now);
                    *self.open.last_mut().expect("it was there") = now;
                    if let Some((prefix, node)) = met? {
                        self.enter(prefix, node)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The prefix and node that a child of a frame's range leads to, the frame moved past it.
    /// Frames whose node has no child for what is to come have no children to come.
    fn meet(
        &mut self,
        (lo, hi, byte): (usize, usize, Option<u8>),
        frame: &mut Frame,
    ) -> Result<Option<(Prefix, u32)>, Interrupted> {
        frame.at = hi;
        let Some(byte) = byte else {
            self.end(frame.node, lo)?;
            return Ok(None);
        };
        let prefix = Prefix { lo, hi, depth: frame.depth + 1 };
        if self.spelling.escape(byte).is_some() {
            return Ok(self.step(frame.node, byte, lo, hi)?.map(|node| (prefix, node)));
        }
        let (bytes, nodes) = self.children.of(frame.node);
        let mut done = frame.done as usize;
        while done < bytes.len() && bytes[done] < byte {
            done += 1;
        }
        frame.done = done as u32;
        match bytes.get(done) {
            Some(&next) if next == byte => {
                self.live(nodes[done], lo, hi)?;
                Ok(Some((prefix, nodes[done])))
            }
            Some(_) => Ok(None),
            // Nor is there a backslash, which escapes of later bytes begin with.
            None => {
                frame.at = frame.hi;
                Ok(None)
            }
        }
    }

    #[inline]
    fn enter(&mut self, at: Prefix, node: u32) -> Result<(), Interrupted> {
        // PERF: most nodes are leaves of the vocabulary.
        if self.children.is_leaf(node) {
            return Ok(());
        }
        let Prefix { lo, hi, mut depth } = at;
        if hi - lo == 1 {
            return match self.chosen.next(lo, hi) {
                Some(_) => self.follow(lo, lo, depth, node),
                None => Ok(()),
            };
        }
        if !C::IS_ALL {
            let mut few = [0; FOLLOWED + 1];
            let (mut len, mut from) = (0, lo);
            while len < few.len()
                && let Some(rank) = self.chosen.next(from, hi)
            {
                few[len] = rank;
                (len, from) = (len + 1, rank + 1);
            }
            if len <= FOLLOWED {
                return few[..len].iter().try_for_each(|&rank| self.follow(lo, rank, depth, node));
            }
        }
        let mut node = node;
        let mut second = self.strings.next_child(lo, hi, depth);
        if second == hi {
            let shared = self.strings.shared_within(lo, hi);
            for byte in self.strings.tail(lo, depth).bytes().take(shared.saturating_sub(depth)) {
                match self.step(node, byte, lo, hi)? {
                    Some(next) => node = next,
                    None => return Ok(()),
                }
            }
            if self.children.is_leaf(node) {
                return Ok(());
            }
            depth = shared;
            second = self.strings.next_child(lo, hi, depth);
        }
        self.open.push(Frame { at: lo, lo, hi, second, depth, node, done: 0 });
        Ok(())
    }

    /// Follows the string of a rank from `depth` on, which the strings from `lo` on share.
    fn follow(
        &mut self,
        lo: usize,
        rank: usize,
        depth: usize,
        node: u32,
    ) -> Result<(), Interrupted> {
        let (mut node, mut result, strings) = (node, Ok(()), self.strings);
        let is_whole = strings.hop(lo, rank, depth, |byte| {
            match self.step(node, byte, rank, rank + 1) {
                Ok(Some(next)) => node = next,
                Ok(None) => return false,
                Err(interrupted) => {
                    result = Err(interrupted);
                    return false;
                }
            }
            true
        });
        result?;
        if is_whole { self.end(node, rank) } else { Ok(()) }
    }

    /// The node after a byte of a string as it is spelled.
    #[inline]
    fn step(
        &mut self,
        node: u32,
        byte: u8,
        lo: usize,
        hi: usize,
    ) -> Result<Option<u32>, Interrupted> {
        let Some(escape) = self.spelling.escape(byte) else {
            return self.step_as_itself(node, byte, lo, hi);
        };
        self.along(node, escape, lo, hi)
    }

    /// The node after some bytes of a spelling.
    #[cold]
    pub(crate) fn along(
        &mut self,
        node: u32,
        spelled: &[u8],
        lo: usize,
        hi: usize,
    ) -> Result<Option<u32>, Interrupted> {
        let mut node = node;
        for &byte in spelled {
            match self.step_as_itself(node, byte, lo, hi)? {
                Some(next) => node = next,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    #[inline]
    fn step_as_itself(
        &mut self,
        node: u32,
        byte: u8,
        lo: usize,
        hi: usize,
    ) -> Result<Option<u32>, Interrupted> {
        let next = self.children.child(node, byte);
        if let Some(next) = next {
            self.live(next, lo, hi)?;
        }
        Ok(next)
    }

    /// The spelling of a string ends after `node`, or after a closing byte.
    #[inline]
    fn end(&mut self, node: u32, rank: usize) -> Result<(), Interrupted> {
        let node = match self.spelling.close() {
            None => Some(node),
            Some(close) => self.step_as_itself(node, close, rank, rank + 1)?,
        };
        if let Some(node) = node.filter(|&node| !self.children.is_leaf(node)) {
            self.sink.end(node, rank);
        }
        Ok(())
    }

    #[inline]
    fn live(&mut self, node: u32, lo: usize, hi: usize) -> Result<(), Interrupted> {
        self.budget.spend(1)?;
        self.sink.live(node, lo, hi);
        Ok(())
    }
}

/// The next child of a frame's range that has a chosen string: its ranks, and its byte, or `None`
/// where its one string ends.
#[inline]
fn next_child<C: Chosen>(
    strings: StringsView<'_>,
    chosen: C,
    frame: &mut Frame,
) -> Option<(usize, usize, Option<u8>)> {
    let Frame { mut at, lo, hi, depth, .. } = *frame;
    if !C::IS_ALL {
        let rank = chosen.next(at, hi)?;
        if rank > at {
            at = strings.child_of(at, rank, depth);
        }
    }
    if at >= hi {
        return None;
    }
    if at == lo {
        return Some((at, frame.second, strings.tail(lo, depth).first));
    }
    Some((at, strings.next_child(at, hi, depth), Some(strings.branch(at))))
}
