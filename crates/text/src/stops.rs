//! Stop strings found in bytes as they come.

use std::cmp::Reverse;

/// Bytes on their way to the caller, held back where a stop string may have begun.
///
/// Held is a suffix of the text that is a proper beginning of some stop string, so a stop string
/// lies in what is held and what comes, never in what was released.
///
/// Cost of a push: bytes held and new, times stop strings and their lengths; no more than the
/// longest stop string is held.
#[derive(Clone, Debug, Default)]
pub struct StopStrings {
    strings: Vec<String>,
    held: Vec<u8>,
}

/// Bytes that a push released, and the stop string that ended the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// The text's next bytes.
    pub bytes: Vec<u8>,
    /// The stop string that came after them.
    pub stop: Option<String>,
}

impl StopStrings {
    /// Finds any of these. An empty one stands nowhere.
    pub fn new(strings: Vec<String>) -> Self {
        let strings = strings.into_iter().filter(|string| !string.is_empty()).collect();
        Self { strings, held: Vec::new() }
    }

    /// Adds bytes. Where a stop string is complete, what is from its beginning on is cut off; of
    /// several, the one that begins first counts, then the longest.
    pub fn push(&mut self, bytes: &[u8]) -> Released {
        self.held.extend_from_slice(bytes);
        let found = self.strings.iter().filter_map(|stop| {
            let place = self.held.windows(stop.len()).position(|window| window == stop.as_bytes());
            Some((place?, stop))
        });
        let first = found.min_by_key(|(place, stop)| (*place, Reverse(stop.len())));
        let first = first.map(|(place, stop)| (place, stop.clone()));
        if let Some((place, stop)) = first {
            let mut bytes = std::mem::take(&mut self.held);
            bytes.truncate(place);
            return Released { bytes, stop: Some(stop) };
        }
        let kept = self.undecided();
        let rest = self.held.split_off(self.held.len() - kept);
        Released { bytes: std::mem::replace(&mut self.held, rest), stop: None }
    }

    /// The bytes that were held back: the text has ended, and they were no stop string's after all.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Number of last bytes that may be the beginning of a stop string.
    fn undecided(&self) -> usize {
        let begin = |stop: &String| {
            let most = (stop.len() - 1).min(self.held.len());
            (1..=most).rev().find(|&len| self.held.ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
        };
        self.strings.iter().map(begin).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces in, what is released after each piece, and the stop string.
    #[track_caller]
    fn check(stops: &[&str], pieces: &[&str], released: &[&str], stop: Option<&str>) {
        let mut stream = StopStrings::new(stops.iter().map(ToString::to_string).collect());
        let (mut got, mut found) = (Vec::new(), None);
        for piece in pieces {
            let out = stream.push(piece.as_bytes());
            got.push(String::from_utf8(out.bytes).expect("ASCII"));
            found = out.stop;
            if found.is_some() {
                break;
            }
        }
        let expected = released.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((got, found.as_deref()), (expected, stop));
    }

    #[test]
    fn bytes_are_held_back_while_a_stop_string_may_have_begun() {
        check(&[], &["ab", "c"], &["ab", "c"], None);
        check(&["END"], &["abE", "Nc", "xEND y"], &["ab", "ENc", "x"], Some("END"));
        check(&["aab"], &["a", "a", "a", "b"], &["", "", "a", ""], Some("aab"));
        check(&["b", "ab"], &["xab"], &["x"], Some("ab"));
        check(&["bc", "b"], &["abc"], &["a"], Some("bc"));
        check(&[""], &["abc"], &["abc"], None);
        check(&["\n\n"], &["a\n", "\nb"], &["a", ""], Some("\n\n"));
    }

    proptest! {
        /// The definition: the whole text, cut at the first stop string that is complete when the
        /// text is read byte by byte.
        #[test]
        fn it_is_the_text_up_to_the_first_stop_string(
            stops in prop::collection::vec("[ab]{1,3}", 0..4),
            pieces in prop::collection::vec("[abc]{0,4}", 0..12),
        ) {
            let text: String = pieces.concat();
            let mut stream = StopStrings::new(stops.clone());
            let (mut got, mut read, mut found) = (String::new(), 0, None);
            for piece in &pieces {
                let out = stream.push(piece.as_bytes());
                got += std::str::from_utf8(&out.bytes).unwrap();
                read += piece.len();
                prop_assert!(text.starts_with(&got));
                if out.stop.is_some() {
                    found = out.stop;
                    break;
                }
            }
            let first = stops
                .iter()
                .filter_map(|stop| text[..read].find(stop.as_str()).map(|place| (place, Reverse(stop.len()))))
                .min();
            match (found, first) {
                (Some(stop), Some((place, _))) => {
                    prop_assert_eq!(&got, &text[..place]);
                    prop_assert!(text[place..].starts_with(&stop));
                }
                (None, None) => {
                    got += std::str::from_utf8(&stream.finish()).unwrap();
                    prop_assert_eq!(got, text);
                }
                (found, first) => prop_assert!(false, "{found:?} {first:?}"),
            }
        }
    }
}
