//! Progress of reading arguments, and the text that is read.

/// The longest name that is waited for, in bytes.
pub(super) const MAX_NAME: usize = 256;

/// State of arguments after some of the text was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Some was decided, and more may be.
    More,
    /// More text is needed.
    Waiting,
    /// The arguments are whole.
    Ended,
    /// The text there is no argument.
    Broken,
}

/// Takes the first bytes of a text.
pub(super) fn take(text: &mut String, len: usize) -> String {
    let rest = text.split_off(len);
    std::mem::replace(text, rest)
}
