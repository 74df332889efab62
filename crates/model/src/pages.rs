//! Pages of keys and values: a trie by tokens, reference counts, eviction by last use.
//!
//! A full page is found by the page before it and its tokens, compared token by token, so that
//! what one request computed is what another reads: a row's bits depend on its tokens alone. The
//! last page of a prompt is its own, for at least its last token is always computed.
//!
//! Only numbers of pages are here: what they hold lies where the model is computed, on this
//! processor in the store of prompts, on a device beside its weights.
//!
//! Readings of a device reserve the pages of their longest prompt when they are opened, so that a
//! request never waits for one; what is left over, and what is reserved and not used, keeps earlier
//! prompts. Pages of a chain go in the order of their ends, since nothing is found behind a page
//! that went.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use palmette_core::TokenId;

/// A full page as prompts find it: the number of the page before, and its tokens.
type Key<const PAGE: usize> = (u64, [TokenId; PAGE]);

/// Pages of `PAGE` tokens where a model is computed, all of them.
#[derive(Debug)]
pub struct Pages<const PAGE: usize> {
    state: Mutex<State<PAGE>>,
}

#[derive(Debug)]
struct State<const PAGE: usize> {
    keeps: bool,
    /// Pages that are not promised to readings.
    unreserved: usize,
    /// Pages that hold nothing.
    free: Vec<u32>,
    pages: Vec<Page<PAGE>>,
    found_by: HashMap<Key<PAGE>, u32>,
    /// Pages that hold something and that no prompt uses, by their last use.
    unused: BTreeMap<u64, u32>,
    clock: u64,
    counts: PageCounts,
}

#[derive(Clone, Debug)]
struct Page<const PAGE: usize> {
    /// Prompts that use it.
    users: u32,
    /// Place among the unused ones.
    last_use: u64,
    /// Number of what it holds, never given twice; 0 where no prompt finds it.
    number: u64,
    key: Option<Box<Key<PAGE>>>,
}

impl<const PAGE: usize> Page<PAGE> {
    const EMPTY: Self = Self { users: 0, last_use: 0, number: 0, key: None };
}

/// Use of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Pages that prompts use now.
    pub used: usize,
    /// Pages that hold earlier prompts, and that no prompt uses.
    pub kept: usize,
    /// Pages in all.
    pub all: usize,
    /// Tokens of prompts whose pages were there.
    pub found_tokens: u64,
    /// Pages whose earlier prompts gave way to later ones.
    pub evicted: u64,
}

/// A promise of pages, which are given back with it.
#[derive(Debug)]
pub struct Reservation<const PAGE: usize> {
    pages: Arc<Pages<PAGE>>,
    count: usize,
}

impl<const PAGE: usize> Reservation<PAGE> {
    /// Number of the pages.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True where it is of no page.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<const PAGE: usize> Drop for Reservation<PAGE> {
    fn drop(&mut self) {
        self.pages.state().unreserved += self.count;
    }
}

impl<const PAGE: usize> Pages<PAGE> {
    /// Bytes that the bookkeeping of a page takes, about.
    pub const BOOK_BYTES: usize =
        2 * size_of::<Key<PAGE>>() + size_of::<Page<PAGE>>() + 4 * size_of::<(u64, u32)>();

    /// Pages of this number; `keeps` is false where prompts do not share them.
    pub fn new(count: usize, keeps: bool) -> Arc<Self> {
        let state = State {
            keeps,
            unreserved: count,
            free: (0..count as u32).rev().collect(),
            pages: vec![Page::EMPTY; count],
            found_by: HashMap::new(),
            unused: BTreeMap::new(),
            clock: 0,
            counts: PageCounts { all: count, ..PageCounts::default() },
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<PAGE>> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Promises so many pages; or says how many can be.
    pub fn reserve(self: &Arc<Self>, count: usize) -> Result<Reservation<PAGE>, usize> {
        let mut state = self.state();
        match state.unreserved.checked_sub(count) {
            None => Err(state.unreserved),
            Some(left) => {
                state.unreserved = left;
                Ok(Reservation { pages: Arc::clone(self), count })
            }
        }
    }

    /// Number of a prompt's tokens that are in pages now, never among its `last` ones: what
    /// [`begin`](PageChain::begin) would find.
    pub fn known_tokens(&self, prompt: &[TokenId], last: usize) -> usize {
        let state = self.state();
        let (mut shared, mut number) = (0, 0);
        let prompt = &prompt[..prompt.len().saturating_sub(last)];
        while let Some(page) = state.find(prompt, shared, number) {
            number = state.pages[page as usize].number;
            shared += 1;
        }
        shared * PAGE
    }

    /// Use of them until now.
    pub fn counts(&self) -> PageCounts {
        let state = self.state();
        let (kept, free) = (state.unused.len(), state.free.len());
        PageCounts { used: state.counts.all - kept - free, kept, ..state.counts }
    }
}

impl<const PAGE: usize> State<PAGE> {
    /// The page of the place `index` of a prompt, behind that of the number `last`.
    fn find(&self, prompt: &[TokenId], index: usize, last: u64) -> Option<u32> {
        let tokens = full_page(prompt, index).filter(|_| self.keeps)?;
        self.found_by.get(&(last, tokens)).copied()
    }

    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// One more prompt uses a page.
    fn hold(&mut self, page: u32) {
        let at = &mut self.pages[page as usize];
        if at.users == 0 {
            self.unused.remove(&at.last_use);
        }
        at.users += 1;
    }

    /// One prompt fewer uses a page.
    fn release(&mut self, page: u32) {
        let now = self.now();
        let at = &mut self.pages[page as usize];
        at.users -= 1;
        match at.users {
            0 if at.number > 0 => {
                at.last_use = now;
                self.unused.insert(now, page);
            }
            0 => self.free.push(page),
            _ => {}
        }
    }

    /// A page that holds nothing, for one prompt.
    fn take(&mut self) -> Option<u32> {
        let page = match self.free.pop() {
            Some(page) => page,
            None => {
                let (_, page) = self.unused.pop_first()?;
                let at = &mut self.pages[page as usize];
                at.number = 0;
                self.counts.evicted += 1;
                if let Some(key) = at.key.take() {
                    self.found_by.remove(&*key);
                }
                page
            }
        };
        self.pages[page as usize].users = 1;
        Some(page)
    }
}

/// The pages of a prompt, in order.
#[derive(Debug)]
pub struct PageChain<const PAGE: usize> {
    pages: Arc<Pages<PAGE>>,
    reserved: usize,
    chain: Vec<u32>,
    /// Pages of the chain that later prompts find.
    shared: usize,
    /// Number of the last of them.
    last: u64,
    /// False where its prompts neither find pages nor are found.
    keeps: bool,
}

impl<const PAGE: usize> PageChain<PAGE> {
    /// The pages of no prompt; it will not have more than are reserved.
    pub fn new(reservation: &Reservation<PAGE>) -> Self {
        let (pages, reserved) = (Arc::clone(&reservation.pages), reservation.count);
        let chain = Vec::with_capacity(reserved);
        Self { pages, reserved, chain, shared: 0, last: 0, keeps: true }
    }

    /// The pages of no prompt, without any that are reserved: `places` has room for the number of
    /// each that it will have, and comes [back](Self::into_places).
    pub fn unreserved(pages: &Arc<Pages<PAGE>>, mut places: Vec<u32>) -> Self {
        places.clear();
        let pages = Arc::clone(pages);
        Self { pages, reserved: 0, chain: places, shared: 0, last: 0, keeps: true }
    }

    /// Gives the pages back, and the room for their numbers.
    pub fn into_places(mut self) -> Vec<u32> {
        self.clear();
        std::mem::take(&mut self.chain)
    }

    /// Has the prompts that follow find pages and be found, or neither.
    pub fn keep(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// Page of each part of the prompt.
    pub fn pages(&self) -> &[u32] {
        &self.chain
    }

    /// Gives the pages back.
    pub fn clear(&mut self) {
        let mut state = self.pages.state();
        // The end first: it is of no use without what comes before.
        for page in self.chain.drain(..).rev() {
            state.release(page);
        }
        (self.shared, self.last) = (0, 0);
    }

    /// Takes the pages of a prompt; returns how many of its tokens are in them already, which are
    /// never among the `last` ones.
    ///
    /// # Panics
    /// When it needs more pages than are reserved.
    pub fn begin(&mut self, prompt: &[TokenId], last: usize) -> usize {
        let found = self.find(&prompt[..prompt.len().saturating_sub(last)]);
        self.cover(prompt.len());
        found
    }

    /// Takes those pages of a prompt that earlier ones left; returns how many of its tokens are in
    /// them.
    pub fn find(&mut self, prompt: &[TokenId]) -> usize {
        self.clear();
        let pages = Arc::clone(&self.pages);
        let mut state = pages.state();
        self.hold_known(&mut state, prompt);
        let found = self.shared * PAGE;
        state.counts.found_tokens += found as u64;
        found
    }

    /// Takes the full pages of a prompt that has been read, those of earlier prompts as far as they
    /// are there, then others, as long as there are any; returns the tokens that are to be written
    /// into the others before they are [shared](Self::share).
    pub fn extend(&mut self, prompt: &[TokenId]) -> Range<usize> {
        self.clear();
        let pages = Arc::clone(&self.pages);
        let mut state = pages.state();
        self.hold_known(&mut state, prompt);
        let known = self.shared * PAGE;
        if self.keeps && state.keeps {
            while self.chain.len() < prompt.len() / PAGE
                && let Some(page) = state.take()
            {
                self.chain.push(page);
            }
        }
        known..self.chain.len() * PAGE
    }

    /// Goes on by the pages that are there.
    fn hold_known(&mut self, state: &mut State<PAGE>, prompt: &[TokenId]) {
        while self.keeps
            && let Some(page) = state.find(prompt, self.shared, self.last)
        {
            state.hold(page);
            self.chain.push(page);
            self.last = state.pages[page as usize].number;
            self.shared += 1;
        }
    }

    /// Takes the first pages of another prompt, those of the tokens `prompt`, which are full and
    /// written.
    pub fn fork(&mut self, of: &Self, prompt: &[TokenId]) {
        self.clear();
        let mut state = self.pages.state();
        for &page in &of.chain[..prompt.len() / PAGE] {
            state.hold(page);
            self.chain.push(page);
        }
        // As far as prompts find them now: what is found may be another's that was written first.
        while self.shared < of.shared
            && let Some(tokens) = full_page(prompt, self.shared)
            && let Some(&page) = state.found_by.get(&(self.last, tokens))
        {
            self.last = state.pages[page as usize].number;
            self.shared += 1;
        }
    }

    /// Takes the pages that a prompt of so many tokens lacks.
    ///
    /// # Panics
    /// As [`begin`](Self::begin).
    pub fn cover(&mut self, tokens: usize) {
        let needed = tokens.div_ceil(PAGE);
        assert!(needed <= self.reserved, "{needed} pages, of which {} are reserved", self.reserved);
        let mut state = self.pages.state();
        while self.chain.len() < needed {
            let page = state.take().expect("fewer pages are used than are reserved");
            self.chain.push(page);
        }
    }

    /// Lets later prompts find the full pages among the first `end` tokens, which passes that are
    /// under way have written.
    pub fn share(&mut self, prompt: &[TokenId], end: usize) {
        let mut state = self.pages.state();
        if !(state.keeps && self.keeps) {
            return;
        }
        while let Some(tokens) = full_page(&prompt[..end], self.shared) {
            let page = self.chain[self.shared];
            let key = (self.last, tokens);
            // Another prompt may have written the same meanwhile: the first is the one that is
            // found, and what follows is found behind it.
            self.last = match state.found_by.get(&key) {
                Some(&first) => state.pages[first as usize].number,
                None => {
                    let number = state.now();
                    state.found_by.insert(key, page);
                    let at = &mut state.pages[page as usize];
                    (at.number, at.key) = (number, Some(Box::new(key)));
                    number
                }
            };
            self.shared += 1;
        }
    }
}

impl<const PAGE: usize> Drop for PageChain<PAGE> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Tokens of the page `index` of a prompt, if it is full.
fn full_page<const PAGE: usize>(prompt: &[TokenId], index: usize) -> Option<[TokenId; PAGE]> {
    prompt.get(index * PAGE..(index + 1) * PAGE)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 64;
    type Pages = super::Pages<PAGE>;
    type PageChain = super::PageChain<PAGE>;
    type Reservation = super::Reservation<PAGE>;

    fn tokens(count: usize, seed: u32) -> Vec<TokenId> {
        (0..count as u32).map(|at| TokenId(at * 7 + seed)).collect()
    }

    fn chain(pages: &Arc<Pages>, count: usize) -> (Reservation, PageChain) {
        let reservation = pages.reserve(count).unwrap();
        let chain = PageChain::new(&reservation);
        (reservation, chain)
    }

    /// Reads a prompt; returns the tokens that were found.
    fn read(chain: &mut PageChain, prompt: &[TokenId]) -> usize {
        let found = chain.begin(prompt, 1);
        chain.share(prompt, prompt.len());
        found
    }

    #[test]
    fn prompts_share_the_full_pages_of_their_beginnings() {
        let pages = Pages::new(40, true);
        let (_first, mut first) = chain(&pages, 5);
        let (_second, mut second) = chain(&pages, 5);
        let prompt = tokens(4 * PAGE, 1);
        assert_eq!(read(&mut first, &prompt), 0);
        // The last token is computed, so its page is never shared.
        assert_eq!(read(&mut second, &prompt), 3 * PAGE);
        assert_eq!(first.pages()[..3], second.pages()[..3]);
        assert_ne!(first.pages()[3], second.pages()[3]);
        let mut longer = prompt.clone();
        longer.extend(tokens(10, 9));
        assert_eq!(read(&mut second, &longer), 4 * PAGE);
        let mut other = longer.clone();
        other[PAGE + 3] = TokenId(999_999);
        assert_eq!(read(&mut second, &other), PAGE);
        assert_eq!(read(&mut second, &prompt[..PAGE]), 0);
        assert_eq!(read(&mut second, &prompt[..PAGE + 1]), PAGE);
        let counts = pages.counts();
        assert_eq!(counts.found_tokens, 9 * PAGE as u64);
        assert_eq!((counts.used, counts.all), (5, 40));
    }

    #[test]
    fn pages_go_in_the_order_of_their_last_use_and_chains_from_their_ends() {
        let pages = Pages::new(6, true);
        let (_reservation, mut only) = chain(&pages, 3);
        let (a, b, c) = (tokens(2 * PAGE + 1, 1), tokens(2 * PAGE + 1, 2), tokens(2 * PAGE + 1, 3));
        assert_eq!(read(&mut only, &a), 0);
        assert_eq!(read(&mut only, &b), 0);
        // Four pages are kept, the two tails were free again; a third prompt takes one of `a`'s:
        // its end.
        assert_eq!(read(&mut only, &c), 0);
        assert_eq!(read(&mut only, &a), PAGE);
        assert_eq!(read(&mut only, &c), 2 * PAGE);
    }

    #[test]
    fn nothing_is_kept_where_it_is_not_to_be() {
        let pages = Pages::new(6, false);
        let (_reservation, mut only) = chain(&pages, 3);
        let prompt = tokens(3 * PAGE, 1);
        assert_eq!((read(&mut only, &prompt), read(&mut only, &prompt)), (0, 0));
        drop(only);
        assert_eq!((pages.counts().used, pages.counts().kept), (0, 0));
    }

    #[test]
    fn reservations_are_limits_and_come_back() {
        let pages = Pages::new(6, true);
        let (reservation, mut first) = chain(&pages, 4);
        assert_eq!(pages.reserve(3).unwrap_err(), 2);
        read(&mut first, &tokens(4 * PAGE, 1));
        drop(first);
        assert_eq!((pages.counts().used, pages.counts().kept), (0, 4));
        drop(reservation);
        let (_all, mut all) = chain(&pages, 6);
        // What is kept gives way.
        assert_eq!(read(&mut all, &tokens(6 * PAGE, 2)), 0);
    }

    #[test]
    fn forks_share_pages_and_are_found_behind_them() {
        let pages = Pages::new(12, true);
        let reservation = pages.reserve(12).unwrap();
        let mut chains: Vec<_> = (0..4).map(|_| PageChain::new(&reservation)).collect();
        let [a, b, c, d] = &mut chains[..] else { unreachable!() };
        let prompt = tokens(3 * PAGE + 5, 1);
        assert_eq!(read(a, &prompt), 0);
        b.fork(a, &prompt[..2 * PAGE]);
        assert_eq!(a.pages()[..2], *b.pages());
        let mut other = prompt[..2 * PAGE].to_vec();
        other.extend(tokens(PAGE + 1, 9));
        b.cover(other.len());
        b.share(&other, other.len());
        assert_eq!(c.begin(&other, 1), 3 * PAGE);
        assert_eq!(c.pages()[..3], b.pages()[..3]);
        // Of nothing, and of a prompt that has none.
        d.fork(a, &[]);
        assert_eq!((d.pages().len(), d.begin(&prompt, 1)), (0, 3 * PAGE));
        assert_eq!(pages.counts().used, 4 + 2 + 1 + 1);
        drop(chains);
        assert_eq!((pages.counts().used, pages.counts().kept), (0, 4));
    }

    /// Random prompts of few beginnings by several readers: no page is used twice, none is lost.
    #[test]
    fn every_page_has_one_use() {
        let pages = Pages::new(23, true);
        let mut readers: Vec<_> = (0..4).map(|_| chain(&pages, 5)).collect();
        let mut state = 9_u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let mut holds: HashMap<u32, Vec<TokenId>> = HashMap::new();
        for _ in 0..2000 {
            let reader = next(4) as usize;
            let mut prompt = Vec::new();
            for _ in 0..next(5) {
                prompt.extend(tokens(PAGE, next(3)));
            }
            prompt.extend(tokens(1 + next(PAGE as u32) as usize, next(3)));
            let chain = &mut readers[reader].1;
            let found = chain.begin(&prompt, 1);
            for (at, page) in chain.pages().iter().enumerate() {
                let end = prompt.len().min((at + 1) * PAGE);
                match at * PAGE < found {
                    true => assert_eq!(holds[page], prompt[..end], "what was found is the same"),
                    false => drop(holds.insert(*page, prompt[..end].to_vec())),
                }
            }
            chain.share(&prompt, prompt.len());
            for (_, chain) in &readers {
                let of: Vec<_> = chain.pages().to_vec();
                assert!(of.iter().enumerate().all(|(at, page)| !of[..at].contains(page)));
            }
            let counts = pages.counts();
            let mut used: Vec<u32> =
                readers.iter().flat_map(|(_, chain)| chain.pages().to_vec()).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(counts.used, used.len());
        }
        readers.clear();
        assert_eq!(pages.counts().used, 0);
        assert!(pages.counts().found_tokens > 0);
    }
}
