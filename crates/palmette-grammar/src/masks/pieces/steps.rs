//! Pieces numbered for one walk, with their transitions in one table.

use hashbrown::HashMap;

use super::byte_groups::{Groups, group_bit};
use super::{PieceId, Pieces, Unread};
use crate::Budget;

/// A piece that a walk has met. A number into [`Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Local(u16);

/// Transitions that a walk has asked for: a step is one look-up.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    pieces: &'a Pieces,
    numbers: HashMap<PieceId, Local>,
    known: Vec<Known>,
    /// By piece and byte: [`UNASKED`], [`NOWHERE`], or a local number after [`FIRST`].
    rows: Vec<[u16; 256]>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    piece: PieceId,
    ends: bool,
    /// All steps are known but those by these groups of bytes.
    incomplete: Groups,
}

const UNASKED: u16 = 0;
const NOWHERE: u16 = 1;
const FIRST: u16 = 2;

impl<'a> Steps<'a> {
    pub(super) fn new(pieces: &'a Pieces) -> Self {
        Self { pieces, numbers: HashMap::new(), known: Vec::new(), rows: Vec::new() }
    }

    /// The number of a piece.
    ///
    /// # Errors
    /// When a walk meets too many.
    pub(super) fn number(&mut self, piece: PieceId) -> Result<Local, Unread> {
        if let Some(&known) = self.numbers.get(&piece) {
            return Ok(known);
        }
        if self.known.len() >= usize::from(u16::MAX - FIRST) {
            return Err(Unread::Unknown);
        }
        let number = Local(self.known.len() as u16);
        let ends = self.pieces.ends(piece);
        self.known.push(Known { piece, ends, incomplete: Groups::MAX });
        self.rows.push([UNASKED; 256]);
        self.numbers.insert(piece, number);
        Ok(number)
    }

    /// The piece of a number.
    pub(super) fn piece(&self, local: Local) -> PieceId {
        self.known[usize::from(local.0)].piece
    }

    /// Whether the lexeme may end here.
    pub(super) fn ends(&self, local: Local) -> bool {
        self.known[usize::from(local.0)].ends
    }

    /// The piece after a byte.
    #[inline]
    pub(super) fn advance(
        &mut self,
        from: Local,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Local>, Unread> {
        match self.rows[usize::from(from.0)][usize::from(byte)] {
            UNASKED => self.find(from, byte, budget),
            NOWHERE => Ok(None),
            found => Ok(Some(Local(found - FIRST))),
        }
    }

    /// [`advance`](Self::advance) where there may be no piece left already.
    #[inline]
    pub(super) fn advance_if(
        &mut self,
        from: Option<Local>,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Local>, Unread> {
        match from {
            Some(from) => self.advance(from, byte, budget),
            None => Ok(None),
        }
    }

    #[cold]
    fn find(
        &mut self,
        from: Local,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Local>, Unread> {
        let piece = self.piece(from);
        let found = match self.pieces.advance(piece, byte, budget)? {
            Some(piece) => Some(self.number(piece)?),
            None => None,
        };
        let entry = found.map_or(NOWHERE, |local| local.0 + FIRST);
        self.rows[usize::from(from.0)][usize::from(byte)] = entry;
        Ok(found)
    }

    /// Asks for the steps by all bytes but those of some groups.
    pub(super) fn complete(
        &mut self,
        from: Local,
        but: Groups,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        if self.known[usize::from(from.0)].incomplete & !but == 0 {
            return Ok(());
        }
        let pieces = self.pieces;
        let classes = pieces.classes(self.piece(from));
        let mut by_class = vec![UNASKED; classes.representatives().len()];
        for byte in 0..=u8::MAX {
            if but & group_bit(byte) != 0 {
                continue;
            }
            let at = usize::from(byte);
            match self.rows[usize::from(from.0)][at] {
                UNASKED if by_class[classes.class(byte)] == UNASKED => {
                    self.find(from, byte, budget)?;
                    by_class[classes.class(byte)] = self.rows[usize::from(from.0)][at];
                }
                UNASKED => self.rows[usize::from(from.0)][at] = by_class[classes.class(byte)],
                known => by_class[classes.class(byte)] = known,
            }
        }
        self.known[usize::from(from.0)].incomplete &= but;
        Ok(())
    }
}
