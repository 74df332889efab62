//! The join of a lexicon with a vocabulary: which tokens go on from a prefix, in one descent of
//! both tries.

use palmette_core::vocabulary_trie::{Child, ChildLists};
use palmette_core::{Budget, Interrupted, MemberId};
use smallvec::SmallVec;

use crate::arrays::{ImplicitTrie, Prefix, Tail};
use crate::selection::RankFilter;
use palmette_core::MemberSpelling;

/// Chosen strings of a range up to this number are followed one by one.
const FOLLOWED: usize = 4;

/// Receiver of what a join meets, in depth-first order of the strings.
pub(crate) trait Sink {
    /// A node of the vocabulary's trie that spellings of the strings `lo..hi` lead to.
    fn live(&mut self, node: Child, lo: usize, hi: usize);

    /// A node with nodes below it where the spelling of a member ends.
    fn end(&mut self, node: u32, member: MemberId);
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
pub(crate) struct Join<'a, 'j, 'b, V, C, S> {
    pub(crate) strings: V,
    pub(crate) children: &'j ChildLists,
    pub(crate) spelling: MemberSpelling,
    pub(crate) chosen: C,
    pub(crate) sink: S,
    pub(crate) budget: &'j mut Budget<'b>,
    pub(crate) open: Frames<'a>,
}

/// Ranges whose children are being gone through.
pub(crate) type Frames<'a> = SmallVec<[Frame<'a>; 12]>;

/// A range beside a node of the vocabulary's trie, some of its children done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// First string of the next child.
    at: usize,
    lo: usize,
    hi: usize,
    /// First string of the second child.
    second: usize,
    depth: usize,
    /// Bytes of the first string from `depth` on.
    tail: Tail<'a>,
    node: u32,
    /// Children of the node that are done.
    done: u32,
}

impl<'a, V: ImplicitTrie<'a>, C: RankFilter, S: Sink> Join<'a, '_, '_, V, C, S> {
    /// Joins the strings of a prefix with the tokens strictly below a node.
    ///
    /// # Errors
    /// When the budget is used up or called off.
    pub(crate) fn below(&mut self, at: Prefix, node: u32) -> Result<(), Interrupted> {
        self.open.clear();
        if self.children.is_leaf(node) {
            return Ok(());
        }
        self.enter(at, self.strings.tail(at.lo, at.depth), node)?;
        while let Some(frame) = self.open.last_mut() {
            let mut now = *frame;
            let Some((lo, hi, byte)) = next_child(self.strings, self.chosen, &now) else {
                self.open.pop();
                continue;
            };
            let child = self.meet((lo, hi, byte), &mut now);
            *self.open.last_mut().expect("it was there") = now;
            // PERF: most nodes are leaves of the vocabulary.
            if let Some(child) = child?.filter(|child| !child.is_leaf()) {
                let tail = match lo == now.lo {
                    true => now.tail.after_first(),
                    false => self.strings.after_branch(lo, now.depth),
                };
                self.enter(Prefix { lo, hi, depth: now.depth + 1 }, tail, child.node())?;
            }
        }
        Ok(())
    }

    /// The node that a child of a frame's range leads to, the frame moved past it. Where the
    /// frame's node has no child for what is to come, there is nothing to come.
    #[inline]
    fn meet(
        &mut self,
        (lo, hi, byte): (usize, usize, Option<u8>),
        frame: &mut Frame<'_>,
    ) -> Result<Option<Child>, Interrupted> {
        frame.at = hi;
        let Some(byte) = byte else {
            if !V::ENDS_WITHIN {
                self.end(frame.node, Prefix { lo, hi, depth: frame.depth })?;
            }
            return Ok(None);
        };
        if let Some(escape) = self.spelling.escape(byte) {
            return self.along(frame.node, escape, lo, hi);
        }
        let (bytes, children) = self.children.of(frame.node);
        let mut done = frame.done as usize;
        while done < bytes.len() && bytes[done] < byte {
            done += 1;
        }
        frame.done = done as u32;
        match bytes.get(done) {
            Some(&next) if next == byte => {
                self.live(children[done], lo, hi)?;
                Ok(Some(children[done]))
            }
            Some(_) => Ok(None),
            // Nor is there a backslash, which escapes of later bytes begin with.
            None => {
                frame.at = frame.hi;
                Ok(None)
            }
        }
    }

    /// Joins the strings of a prefix, the first of which goes on by `tail`, with the tokens below a
    /// node.
    #[inline]
    fn enter(&mut self, at: Prefix, tail: Tail<'a>, node: u32) -> Result<(), Interrupted> {
        let Prefix { lo, hi, depth } = at;
        if hi - lo == 1 {
            return match self.chosen.next(lo, hi) {
                Some(_) => self.follow_only(at, tail, node),
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
        let second = self.strings.next_child(lo, hi, depth);
        if second == hi {
            return self.enter_where_they_part(at, tail, node);
        }
        self.end_within(at, node)?;
        self.open.push(Frame { at: lo, lo, hi, second, depth, tail, node, done: 0 });
        Ok(())
    }

    /// Enters a prefix whose strings share the next bytes, after following these.
    fn enter_where_they_part(
        &mut self,
        at: Prefix,
        mut tail: Tail<'a>,
        mut node: u32,
    ) -> Result<(), Interrupted> {
        let Prefix { lo, hi, mut depth } = at;
        let shared = self.strings.shared_within(lo, hi);
        while depth < shared
            && let Some(byte) = tail.first
        {
            self.end_within(Prefix { lo, hi, depth }, node)?;
            match self.step(node, byte, lo, hi)? {
                Some(next) if !next.is_leaf() => node = next.node(),
                _ => return Ok(()),
            }
            tail = tail.after_first();
            depth += 1;
        }
        self.end_within(Prefix { lo, hi, depth }, node)?;
        let second = self.strings.next_child(lo, hi, depth);
        self.open.push(Frame { at: lo, lo, hi, second, depth, tail, node, done: 0 });
        Ok(())
    }

    /// Follows the only string of a prefix.
    fn follow_only(&mut self, at: Prefix, tail: Tail<'_>, node: u32) -> Result<(), Interrupted> {
        let (mut node, mut at) = (node, at);
        for byte in tail.bytes() {
            self.end_within(at, node)?;
            match self.step(node, byte, at.lo, at.hi)? {
                Some(next) if !next.is_leaf() => node = next.node(),
                _ => return Ok(()),
            }
            at.depth += 1;
        }
        self.end(node, at)
    }

    /// Follows the string of a rank from `depth` on, which the strings from `lo` on share. Members
    /// end with strings, as filters are of strings.
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
                Ok(Some(next)) if !next.is_leaf() => node = next.node(),
                Ok(_) => return false,
                Err(interrupted) => {
                    result = Err(interrupted);
                    return false;
                }
            }
            true
        });
        result?;
        let whole = Prefix { lo: rank, hi: rank + 1, depth };
        if is_whole { self.end(node, whole) } else { Ok(()) }
    }

    /// The node after a byte of a string as it is spelled.
    #[inline]
    fn step(
        &mut self,
        node: u32,
        byte: u8,
        lo: usize,
        hi: usize,
    ) -> Result<Option<Child>, Interrupted> {
        match self.spelling.escape(byte) {
            None => self.step_as_itself(node, byte, lo, hi),
            Some(escape) => self.along(node, escape, lo, hi),
        }
    }

    /// The node after some bytes of a spelling, at least one.
    #[cold]
    pub(crate) fn along(
        &mut self,
        node: u32,
        spelled: &[u8],
        lo: usize,
        hi: usize,
    ) -> Result<Option<Child>, Interrupted> {
        let (mut node, mut last) = (node, None);
        for &byte in spelled {
            last = self.step_as_itself(node, byte, lo, hi)?;
            let Some(next) = last else { return Ok(None) };
            node = next.node();
        }
        Ok(last)
    }

    #[inline]
    fn step_as_itself(
        &mut self,
        node: u32,
        byte: u8,
        lo: usize,
        hi: usize,
    ) -> Result<Option<Child>, Interrupted> {
        let next = self.children.child(node, byte);
        if let Some(next) = next {
            self.live(next, lo, hi)?;
        }
        Ok(next)
    }

    /// Ends the member of a prefix at `node`, where members end within strings and one does there.
    #[inline]
    fn end_within(&mut self, at: Prefix, node: u32) -> Result<(), Interrupted> {
        if V::ENDS_WITHIN && at.depth > 0 {
            // PERF: most nodes have no child for the closing byte.
            let close = self.spelling.close();
            let is_open = close.is_none_or(|close| self.children.child(node, close).is_some());
            if is_open && self.strings.ends_at(at) {
                return self.end(node, at);
            }
        }
        Ok(())
    }

    /// The spelling of a member ends at `node`, which is no leaf, or after a closing byte.
    #[inline]
    fn end(&mut self, node: u32, at: Prefix) -> Result<(), Interrupted> {
        let Some(close) = self.spelling.close() else {
            self.sink.end(node, self.strings.member(at));
            return Ok(());
        };
        let closed = self.step_as_itself(node, close, at.lo, at.lo + 1)?;
        if let Some(closed) = closed.filter(|closed| !closed.is_leaf()) {
            self.sink.end(closed.node(), self.strings.member(at));
        }
        Ok(())
    }

    #[inline]
    fn live(&mut self, node: Child, lo: usize, hi: usize) -> Result<(), Interrupted> {
        self.budget.spend(1)?;
        self.sink.live(node, lo, hi);
        Ok(())
    }
}

/// The next child of a frame's range that has a chosen string: its ranks, and its byte, or `None`
/// where its one string ends.
#[inline]
fn next_child<'a, V: ImplicitTrie<'a>, C: RankFilter>(
    strings: V,
    chosen: C,
    frame: &Frame<'_>,
) -> Option<(usize, usize, Option<u8>)> {
    let &Frame { mut at, lo, hi, depth, second, tail, .. } = frame;
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
        return Some((at, second, tail.first));
    }
    Some((at, strings.next_child(at, hi, depth), Some(strings.branch(at))))
}
