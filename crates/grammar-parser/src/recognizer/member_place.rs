//! Places within members: a cursor of a bound set, and the members that a text has had.

use std::ops::Range;
use std::sync::Arc;

use palmette_core::{Cursor, MemberId, SlotId};

use crate::TerminalId;

/// A member in progress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberPlace {
    /// The terminal that the member is a lexeme of.
    pub terminal: TerminalId,
    /// The terminal's slot.
    pub slot: SlotId,
    /// Place within the spellings of the set, after the bytes read.
    pub cursor: Cursor,
    /// Offset of its first byte, while members are [traced](crate::Recognizer::members); else 0.
    pub(super) begin: usize,
}

/// A member that a text has, as its bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMember {
    /// The slot.
    pub slot: SlotId,
    /// The member.
    pub member: MemberId,
    /// Bytes of its spelling within the text.
    pub span: Range<usize>,
}

/// Part of a text with the ways in which it may be read.
#[derive(Clone, Debug)]
pub struct TextPart<'t> {
    /// The bytes of each way.
    pub spellings: Vec<&'t [u8]>,
    /// Bytes that it takes in the text, by which places are counted: none of a token without text.
    pub num_bytes: usize,
}

/// The members before a place, the last one first: a list that branches share.
#[derive(Debug, PartialEq)]
pub(super) struct Trail {
    pub(super) last: WrittenMember,
    pub(super) before: Option<Arc<Trail>>,
}
