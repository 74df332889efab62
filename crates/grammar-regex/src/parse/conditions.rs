//! Conditions on places before they are resolved: those on one character, and the kinds of
//! characters that all of them tell apart.

use super::{
    error::RegexError,
    syntax::{Node, Place, Side},
};
use crate::CharClass;

/// The kinds of characters that conditions may tell apart.
pub(super) const MAX_KINDS: usize = 31;

/// Conditions on one character as places; where the character itself follows, in its class.
pub(super) fn simplify(node: Node) -> Node {
    match node {
        Node::Class(_) | Node::Place(_) => node,
        Node::Alternate(options) => Node::Alternate(options.into_iter().map(simplify).collect()),
        Node::Repeat { inner, min, max, reluctant, offset } => {
            Node::Repeat { inner: Box::new(simplify(*inner)), min, max, reluctant, offset }
        }
        Node::Look { inner, behind, negated, offset } => {
            let inner = simplify(*inner);
            let Some(side) = as_side(&inner, behind) else {
                return Node::Look { inner: Box::new(inner), behind, negated, offset };
            };
            let side = if negated { side.complement() } else { side };
            let (before, after) = if behind { (side, Side::free()) } else { (Side::free(), side) };
            Node::Place(vec![Place { before, after }])
        }
        Node::Concat(parts) => {
            let mut kept: Vec<Node> = Vec::with_capacity(parts.len());
            let flat = parts.into_iter().map(simplify).flat_map(|part| match part {
                Node::Concat(parts) => parts,
                other => vec![other],
            });
            for part in flat.collect::<Vec<_>>().into_iter().rev() {
                match (&part, kept.last_mut()) {
                    (Node::Place(places), Some(Node::Class(next))) => match &places[..] {
                        [Place { before, after }] if before.is_free() => {
                            *next = next.intersection(&after.class);
                        }
                        _ => kept.push(part),
                    },
                    _ => kept.push(part),
                }
            }
            kept.reverse();
            if kept.len() == 1 { kept.remove(0) } else { Node::Concat(kept) }
        }
    }
}

/// Class that a lookaround for `node` asks of the one character beside it, if that is all it asks.
fn as_side(node: &Node, behind: bool) -> Option<Side> {
    match node {
        Node::Class(class) => Some(Side { class: class.clone(), border: false }),
        Node::Place(places) => match &places[..] {
            [Place { before, after }] if behind && after.is_free() => Some(before.clone()),
            [Place { before, after }] if !behind && before.is_free() => Some(after.clone()),
            _ => None,
        },
        Node::Alternate(options) => {
            let mut sides = options.iter().map(|option| as_side(option, behind));
            let first = sides.next()??;
            sides.try_fold(first, |all, side| {
                let side = side?;
                let class = all.class.union(&side.class);
                Some(Side { class, border: all.border || side.border })
            })
        }
        Node::Concat(parts) if parts.len() == 1 => as_side(&parts[0], behind),
        _ => None,
    }
}

/// The partition of all characters by the classes of all places.
pub(super) fn kinds(node: &Node) -> Result<Vec<CharClass>, RegexError> {
    let mut kinds = vec![CharClass::any()];
    split_kinds(node, &mut kinds)?;
    Ok(kinds)
}

fn split_kinds(node: &Node, kinds: &mut Vec<CharClass>) -> Result<(), RegexError> {
    match node {
        Node::Class(_) => {}
        Node::Place(places) => {
            for side in places.iter().flat_map(|place| [&place.before, &place.after]) {
                for at in 0..kinds.len() {
                    let inside = kinds[at].intersection(&side.class);
                    if !inside.is_empty() && inside != kinds[at] {
                        kinds.push(kinds[at].difference(&inside));
                        kinds[at] = inside;
                    }
                }
                if kinds.len() >= MAX_KINDS {
                    let message = format!(
                        "conditions on places tell more than {} kinds of characters apart; use fewer",
                        MAX_KINDS - 1
                    );
                    return Err(RegexError::new(0, message));
                }
            }
        }
        Node::Repeat { inner, .. } | Node::Look { inner, .. } => split_kinds(inner, kinds)?,
        Node::Concat(parts) | Node::Alternate(parts) => {
            parts.iter().try_for_each(|part| split_kinds(part, kinds))?;
        }
    }
    Ok(())
}
