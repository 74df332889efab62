//! The laws of [`Constraint`], checked on random walks.

use palmette_core::{
    CommitAllError, CommitError, Constraint, MaskWindow, TokenId, TokenMask, mask,
};

/// Walks from the start `walks` times, each to a state that cannot go on or `max_steps` tokens
/// long, and checks every law at every state on the way.
///
/// # Panics
/// At the first broken law, naming it and the tokens that lead there; and where a limit of the
/// constraint is exceeded, since laws are about answers.
#[track_caller]
pub fn check<C: Constraint + ?Sized>(constraint: &C, seed: u64, walks: usize, max_steps: usize) {
    let mut random = SplitMix(seed);
    let mut scratch = C::Scratch::default();
    for _ in 0..walks {
        let mut state = constraint.start();
        let mut path: Vec<TokenId> = Vec::new();
        let mut trail = vec![state.clone()];
        let is_empty_set = !accepts(constraint, &state, &mut scratch)
            && check_state(constraint, &state, &path, &mut scratch).is_empty();
        for _ in 0..max_steps {
            let allowed = check_state(constraint, &state, &path, &mut scratch);
            assert!(
                is_empty_set || accepts(constraint, &state, &mut scratch) || !allowed.is_empty(),
                "law 2: {path:?} is a dead end"
            );
            if allowed.is_empty() {
                break;
            }
            let nth = random.below(allowed.count());
            let token = allowed.iter().nth(nth).expect("nth < count");
            let fork = state.clone();
            let before = filled(constraint, &fork, &mut scratch, 0);
            let committed = constraint.commit(&mut state, token, &mut scratch);
            committed.expect("law 1: the mask allowed it");
            let after = filled(constraint, &fork, &mut scratch, 0);
            assert_eq!(before, after, "law 6: a fork at {path:?} saw a commit of {token}");
            path.push(token);
            trail.push(state.clone());
        }
        check_rollback(constraint, &trail, &path);
    }
}

/// Laws 1, 3, 4 and 7 at one state; returns what is allowed there.
#[track_caller]
fn check_state<C: Constraint + ?Sized>(
    constraint: &C,
    state: &C::State,
    path: &[TokenId],
    scratch: &mut C::Scratch,
) -> TokenMask {
    let num_tokens = constraint.num_tokens();
    let original = state.clone();
    let allowed = filled(constraint, state, scratch, 0);
    let over_garbage = filled(constraint, state, scratch, u32::MAX);
    assert_eq!(allowed, over_garbage, "law 3: the mask at {path:?} depends on the buffer");
    let with_new_scratch = filled(constraint, state, &mut C::Scratch::default(), 0);
    assert_eq!(allowed, with_new_scratch, "law 3: the mask at {path:?} depends on the scratch");
    assert_eq!(*state, original, "law 3: filling the mask changed the state at {path:?}");
    assert!(
        allowed.iter().all(|t| t.index() < num_tokens),
        "law 3: the mask at {path:?} has bits past the vocabulary"
    );

    let mut visited = Vec::new();
    constraint.successors(state, scratch, |token, next| visited.push((token, next))).expect(LIMIT);
    assert_eq!(
        visited.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
        allowed.iter().collect::<Vec<_>>(),
        "law 1: successors and mask at {path:?}"
    );
    let mut visited = visited.into_iter();
    let beyond = [num_tokens as u32, num_tokens as u32 + 31, u32::MAX];
    for token in (0..num_tokens as u32).chain(beyond).map(TokenId) {
        let mut next = state.clone();
        let committed = constraint.commit(&mut next, token, scratch);
        assert!(!matches!(committed, Err(CommitError::Failed { .. })), "{LIMIT}: {committed:?}");
        let committed = committed.is_ok();
        assert_eq!(
            committed,
            allowed.contains(token),
            "law 1: commit and mask bit of {token} at {path:?}"
        );
        if committed {
            let (_, visited) = visited.next().expect("as many successors as mask bits");
            assert_eq!(next, visited, "law 1: the successor over {token} at {path:?}");
        } else {
            assert_eq!(next, original, "law 4: a failed commit of {token} at {path:?}");
        }
    }

    check_commit_all(constraint, state, &allowed, path, scratch);
    check_fill_masks(constraint, state, &allowed, path, scratch);

    let forced = (allowed.count() == 1 && !accepts(constraint, state, scratch))
        .then(|| allowed.iter().next().expect("count is 1"));
    let reported = constraint.forced_token(state, scratch).expect(LIMIT);
    assert_eq!(reported, forced, "law 7: at {path:?}");
    allowed
}

/// The last part of law 3: the masks of a state and its successors at once.
#[track_caller]
fn check_fill_masks<C: Constraint + ?Sized>(
    constraint: &C,
    state: &C::State,
    allowed: &TokenMask,
    path: &[TokenId],
    scratch: &mut C::Scratch,
) {
    let mut states = vec![state.clone()];
    constraint.successors(state, scratch, |_, next| states.push(next)).expect(LIMIT);
    let words = mask::num_words(constraint.num_tokens());
    let mut rows = vec![u32::MAX; states.len() * words];
    constraint.fill_masks(&states, scratch, &mut rows).expect(LIMIT);
    for (place, state) in states.iter().enumerate() {
        let one = filled(constraint, state, scratch, 0);
        let row = &rows[place * words..][..words];
        assert_eq!(row, one.as_words(), "law 3: fill_masks, state {place} at {path:?}");
    }
    assert_eq!(&rows[..words], allowed.as_words(), "law 3: fill_masks at {path:?}");

    // The successors are of one length, as a step's states are; with their parent they are not.
    let (all, step) = ((&states[..], &rows[..]), (&states[1..], &rows[words..]));
    for (states, rows) in [all, step] {
        let mut window = MaskWindow::default();
        window.reset(0..constraint.num_tokens(), states.len() + 1);
        window.words_mut().fill(u32::MAX);
        constraint.fill_window(states, scratch, &mut window).expect(LIMIT);
        assert_eq!(window.num_rows(), states.len(), "law 3: fill_window at {path:?}");
        for (place, state) in states.iter().enumerate() {
            let of_mask = mask::iter(&rows[place * words..][..words]);
            assert!(
                window.allowed(place).eq(of_mask),
                "law 3: fill_window, state {place} of {} at {path:?}",
                states.len()
            );
            let goes_on = !mask::is_empty(&rows[place * words..][..words]);
            let said = constraint.goes_on(state, scratch).expect(LIMIT).unwrap_or(goes_on);
            assert_eq!(said, goes_on, "law 3: goes_on, state {place} at {path:?}");
        }
    }
}

/// Laws say nothing of limits: a check is for sets that keep within theirs.
const LIMIT: &str = "a limit of the constraint is exceeded";

#[track_caller]
fn accepts<C: Constraint + ?Sized>(
    constraint: &C,
    state: &C::State,
    scratch: &mut C::Scratch,
) -> bool {
    constraint.is_accepting(state, scratch).expect(LIMIT)
}

/// The last part of law 1: all allowed tokens at once, and with a refused one among them.
#[track_caller]
fn check_commit_all<C: Constraint + ?Sized>(
    constraint: &C,
    state: &C::State,
    allowed: &TokenMask,
    path: &[TokenId],
    scratch: &mut C::Scratch,
) {
    let mut tokens: Vec<TokenId> = allowed.iter().collect();
    let mut all = vec![state.clone(); tokens.len()];
    let result = constraint.commit_all(&mut all, &tokens, scratch);
    assert!(result.is_ok(), "law 1: commit_all of {tokens:?} at {path:?}: {result:?}");
    for (&token, moved) in tokens.iter().zip(&all) {
        let mut one = state.clone();
        constraint.commit(&mut one, token, scratch).expect("it is allowed");
        assert_eq!(*moved, one, "law 1: commit_all and commit of {token} at {path:?}");
    }
    let refused = (0..constraint.num_tokens() as u32 + 1).map(TokenId);
    for token in refused.filter(|&token| !allowed.contains(token)).step_by(7) {
        let place = tokens.len() / 2;
        tokens.insert(place, token);
        let result =
            constraint.commit_all(&mut vec![state.clone(); tokens.len()], &tokens, scratch);
        let named = match &result {
            Err(CommitAllError::NotAllowed { place, token }) => Some((*place, *token)),
            _ => None,
        };
        let expected = Some((place, token));
        assert_eq!(named, expected, "law 1: commit_all of {tokens:?} at {path:?}: {result:?}");
        tokens.remove(place);
    }
}

/// Law 5 for every pair of places on a walk.
#[track_caller]
fn check_rollback<C: Constraint + ?Sized>(constraint: &C, trail: &[C::State], path: &[TokenId]) {
    for (end, state) in trail.iter().enumerate() {
        for back in 0..=end {
            let mut undone = state.clone();
            constraint.rollback(&mut undone, back).expect("no more than was committed");
            assert_eq!(undone, trail[end - back], "law 5: {back} back from {:?}", &path[..end]);
        }
        let mut undone = state.clone();
        assert!(
            constraint.rollback(&mut undone, end + 1).is_err(),
            "law 5: rollback past the start from {:?}",
            &path[..end]
        );
        assert_eq!(undone, *state, "law 5: a failed rollback from {:?}", &path[..end]);
    }
}

fn filled<C: Constraint + ?Sized>(
    constraint: &C,
    state: &C::State,
    scratch: &mut C::Scratch,
    garbage: u32,
) -> TokenMask {
    let mut row = TokenMask::new(constraint.num_tokens());
    row.as_words_mut().fill(garbage);
    constraint.fill_mask(state, scratch, row.as_words_mut()).expect(LIMIT);
    debug_assert_eq!(row.as_words().len(), mask::num_words(constraint.num_tokens()));
    row
}

/// A small generator for walks (Steele et al., "Fast splittable pseudorandom number generators").
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (crate::logits::mix(self.0) % bound as u64) as usize
    }
}
