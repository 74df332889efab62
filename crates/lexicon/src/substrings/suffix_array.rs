//! Suffix arrays by induced sorting, and the lengths that neighbours share.

/// Byte after each document. No UTF-8 text has it, and in the order of suffixes it comes first.
pub(super) const DIVIDER: u8 = u8::MAX;

/// Place of none.
const NONE: u32 = u32::MAX;

/// The places of all suffixes of documents in ascending order, where a document is followed by a
/// [`DIVIDER`] that is smaller than each byte.
///
/// Cost: O(n), whatever the text; 9 bytes a byte of text beside the result (SA-IS: Nong, Zhang,
/// Chan 2009).
pub(super) fn suffix_array(text: &[u8]) -> Vec<u32> {
    let symbols: Vec<u8> = text.iter().map(|byte| byte.wrapping_add(1)).collect();
    sorted(&symbols, usize::from(u8::MAX))
}

/// Symbols of a text: bytes, and deeper down the ranks of its pieces.
trait Symbol: Copy + Eq + Ord {
    fn index(self) -> usize;
}

impl Symbol for u8 {
    fn index(self) -> usize {
        self.into()
    }
}

impl Symbol for u32 {
    fn index(self) -> usize {
        self as usize
    }
}

/// A text with what induced sorting asks of it again and again.
struct Induction<'a, S> {
    text: &'a [S],
    /// Flags of the suffixes that are smaller than the next one ("S-type").
    is_smaller: Vec<bool>,
    /// First places of the suffixes by symbol: all of them, and those that are smaller than the
    /// next one, which come last.
    starts: Vec<u32>,
    smaller_starts: Vec<u32>,
}

fn sorted<S: Symbol>(text: &[S], max: usize) -> Vec<u32> {
    if text.len() < 2 {
        return (0..text.len() as u32).collect();
    }
    let induction = Induction::new(text, max);
    // Leftmost places of runs of smaller suffixes ("LMS").
    let is_first = |at: &usize| induction.is_smaller[*at] && !induction.is_smaller[at - 1];
    let firsts: Vec<u32> = (1..text.len()).filter(is_first).map(|at| at as u32).collect();
    let mut order = induction.induced(&firsts);
    if firsts.is_empty() {
        return order;
    }
    let mut number = vec![NONE; text.len()];
    (0..).zip(&firsts).for_each(|(at, &first)| number[first as usize] = at);
    order.retain(|&at| number[at as usize] != NONE);
    // Pieces from one of those places to the next, by rank, equal ones alike.
    let piece = |at: u32| {
        let next = firsts.get(number[at as usize] as usize + 1);
        let end = next.map_or(text.len(), |&next| next as usize + 1);
        (&text[at as usize..end], next.is_none())
    };
    let mut ranks = vec![0; firsts.len()];
    let mut rank = 0;
    for pair in order.windows(2) {
        // The last piece ends with the text, and is like no other.
        let [(before, is_last), (piece, is_also_last)] = [piece(pair[0]), piece(pair[1])];
        rank += u32::from(is_last || is_also_last || before != piece);
        ranks[number[pair[1] as usize] as usize] = rank;
    }
    if (rank as usize) + 1 < firsts.len() {
        let deeper = sorted(&ranks, rank as usize);
        order.iter_mut().zip(deeper).for_each(|(to, at)| *to = firsts[at as usize]);
    }
    induction.induced(&order)
}

impl<'a, S: Symbol> Induction<'a, S> {
    fn new(text: &'a [S], max: usize) -> Self {
        let mut is_smaller = vec![false; text.len()];
        for at in (0..text.len() - 1).rev() {
            is_smaller[at] = match text[at].cmp(&text[at + 1]) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => is_smaller[at + 1],
                std::cmp::Ordering::Greater => false,
            };
        }
        let mut counts = vec![[0_u32; 2]; max + 1];
        for (symbol, &is_smaller) in text.iter().zip(&is_smaller) {
            counts[symbol.index()][usize::from(is_smaller)] += 1;
        }
        let (mut starts, mut smaller_starts) = (Vec::with_capacity(max + 2), Vec::new());
        smaller_starts.reserve_exact(max + 1);
        let mut place = 0;
        for [larger, smaller] in counts {
            starts.push(place);
            smaller_starts.push(place + larger);
            place += larger + smaller;
        }
        starts.push(place);
        Self { text, is_smaller, starts, smaller_starts }
    }

    /// All suffixes in the order that follows from that of these places.
    fn induced(&self, firsts: &[u32]) -> Vec<u32> {
        let Self { text, is_smaller, .. } = self;
        let mut order = vec![NONE; text.len()];
        let mut ends = self.smaller_starts.clone();
        for &at in firsts {
            put(&mut order, &mut ends[text[at as usize].index()], at);
        }
        // Larger suffixes, ascending, from the suffix after each.
        let mut ends = self.starts.clone();
        let last = text.len() - 1;
        put(&mut order, &mut ends[text[last].index()], last as u32);
        for place in 0..order.len() {
            let at = order[place];
            if at != NONE && at > 0 && !is_smaller[at as usize - 1] {
                put(&mut order, &mut ends[text[at as usize - 1].index()], at - 1);
            }
        }
        // Smaller ones, descending.
        let mut starts = self.starts.clone();
        for place in (0..order.len()).rev() {
            let at = order[place];
            if at != NONE && at > 0 && is_smaller[at as usize - 1] {
                let start = &mut starts[text[at as usize - 1].index() + 1];
                *start -= 1;
                order[*start as usize] = at - 1;
            }
        }
        order
    }
}

fn put(order: &mut [u32], end: &mut u32, at: u32) {
    order[*end as usize] = at;
    *end += 1;
}

/// Bytes that each suffix, by its place, shares with the one before it in order. Dividers do not
/// count.
///
/// Cost: O(n): a suffix shares at most one byte less than that of the place before it (Kärkkäinen,
/// Manzini, Puglisi 2009, "permuted LCP array").
pub(super) fn shared_by_place(text: &[u8], order: &[u32]) -> Vec<u32> {
    let mut before = vec![NONE; text.len()];
    order.windows(2).for_each(|pair| before[pair[1] as usize] = pair[0]);
    let mut shared = 0;
    // Place by place, the place of the suffix before gives way to the length.
    for at in 0..text.len() {
        let other = before[at];
        if other == NONE {
            shared = 0;
        } else {
            let (one, other) = (&text[at..], &text[other as usize..]);
            while one[shared] == other[shared] && one[shared] != DIVIDER {
                shared += 1;
            }
        }
        before[at] = shared as u32;
        shared = shared.saturating_sub(1);
    }
    before
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(documents: &[&str]) {
        let mut text = Vec::new();
        for document in documents {
            text.extend_from_slice(document.as_bytes());
            text.push(DIVIDER);
        }
        let suffix = |at: u32| text[at as usize..].iter().map(|byte| byte.wrapping_add(1));
        let mut expected: Vec<u32> = (0..text.len() as u32).collect();
        expected.sort_by(|&a, &b| suffix(a).cmp(suffix(b)));
        let order = suffix_array(&text);
        assert_eq!(order, expected);
        let shared = shared_by_place(&text, &order);
        for pair in order.windows(2) {
            let alike = suffix(pair[0]).zip(suffix(pair[1])).take_while(|(a, b)| a == b && *a != 0);
            assert_eq!(shared[pair[1] as usize] as usize, alike.count());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn orders_as_comparing_does(documents in prop::collection::vec("[ab]{0,40}|[a-c\0é]{0,12}", 0..6)) {
            check(&documents.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    #[test]
    fn repeated_and_periodic_texts_are_ordered() {
        check(&[&"a".repeat(500)]);
        check(&[&"ab".repeat(300), &"ab".repeat(300), &"ba".repeat(10)]);
        let (mut one, mut two) = ("a".to_owned(), "ab".to_owned());
        for _ in 0..12 {
            (one, two) = (two.clone(), two + &one);
        }
        check(&[&two]);
        check(&[]);
        check(&["", "", "x"]);
    }
}
