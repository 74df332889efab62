//! The dialect of the crate `regex`, read by its own parser.

use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind, Look},
};

use super::{
    classes,
    error::RegexError,
    notation::Flags,
    syntax::{MAX_NESTING, Node, Place, Side},
};
use crate::{Budget, CharClass};

/// Cost of reading a byte.
const UNITS_PER_BYTE: u64 = 16;

/// Size limit of the crate's parser: counts are for later passes to judge; here only the syntax is.
pub(super) fn read(
    source: &str,
    flags: Flags,
    budget: &mut Budget<'_>,
) -> Result<Node, RegexError> {
    // Their parser cannot be stopped: what it does is paid for beforehand.
    budget.spend(source.len() as u64 * UNITS_PER_BYTE)?;
    if flags.ascii {
        let message = "flag a is Python's; write (?-u) where ASCII is meant";
        return Err(RegexError::new(0, message));
    }
    #[expect(clippy::result_large_err, reason = "the error is the parser's own")]
    let parse = |source: &str| {
        ParserBuilder::new()
            .case_insensitive(flags.ignore_case)
            .multi_line(flags.multi_line)
            .dot_matches_new_line(flags.dot_all)
            .ignore_whitespace(flags.verbose)
            .nest_limit(MAX_NESTING as u32)
            .build()
            .parse(source)
    };
    // Errors have their places in the text as it was given.
    let parsed = match parse(source) {
        Ok(_) if flags.ascii_digits && source.contains(['d', 'D']) => {
            parse(&with_ascii_digits(source))
        }
        parsed => parsed,
    };
    let hir = parsed.map_err(|error| match &error {
        regex_syntax::Error::Parse(error) => {
            RegexError::new(error.span().start.offset, error.kind().to_string())
        }
        regex_syntax::Error::Translate(error) => {
            RegexError::new(error.span().start.offset, error.kind().to_string())
        }
        other => RegexError::new(0, other.to_string()),
    })?;
    node(&hir)
}

/// The expression with classes of 0 to 9 for `\d`, within other classes too, as their syntax has
/// it.
fn with_ascii_digits(source: &str) -> String {
    let mut written = String::with_capacity(source.len() + 8);
    let mut chars = source.chars();
    while let Some(next) = chars.next() {
        match (next, chars.as_str().chars().next()) {
            ('\\', Some(escaped)) => {
                chars.next();
                match escaped {
                    'd' => written += "[0-9]",
                    'D' => written += "[^0-9]",
                    other => written.extend(['\\', other]),
                }
            }
            _ => written.push(next),
        }
    }
    written
}

fn node(hir: &Hir) -> Result<Node, RegexError> {
    let all = |parts: &[Hir]| parts.iter().map(node).collect::<Result<Vec<_>, _>>();
    Ok(match hir.kind() {
        HirKind::Empty => Node::empty(),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| not_text())?;
            Node::Concat(text.chars().map(|c| Node::Class(CharClass::single(c))).collect())
        }
        HirKind::Class(Class::Unicode(class)) => Node::Class(classes::from_table(class)),
        HirKind::Class(Class::Bytes(class)) => {
            let ranges = class.iter().map(|range| (range.start() as char, range.end() as char));
            if !class.is_ascii() {
                return Err(not_text());
            }
            Node::Class(CharClass::new(ranges))
        }
        HirKind::Look(look) => place(*look)?,
        HirKind::Repetition(repetition) => Node::Repeat {
            inner: Box::new(node(&repetition.sub)?),
            min: repetition.min,
            max: repetition.max,
            reluctant: !repetition.greedy,
            offset: 0,
        },
        HirKind::Capture(capture) => node(&capture.sub)?,
        HirKind::Concat(parts) => Node::Concat(all(parts)?),
        HirKind::Alternation(options) => Node::Alternate(all(options)?),
    })
}

fn place(look: Look) -> Result<Node, RegexError> {
    let ascii = CharClass::new([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]);
    let unicode = || classes::perl_word();
    let half = |word: CharClass, start: bool| {
        let outside = Side { class: word.complement(), border: true };
        let (before, after) = if start { (outside, Side::free()) } else { (Side::free(), outside) };
        Node::Place(vec![Place { before, after }])
    };
    let one_way = |word: CharClass, start: bool| {
        let inside = Side { class: word, border: false };
        let outside = inside.complement();
        let (before, after) = if start { (outside, inside) } else { (inside, outside) };
        Node::Place(vec![Place { before, after }])
    };
    Ok(match look {
        Look::Start => Node::start(false),
        Look::End => Node::end(false),
        Look::StartLF => Node::start(true),
        Look::EndLF => Node::end(true),
        Look::WordAscii => Node::word_boundary(&ascii, false),
        Look::WordAsciiNegate => Node::word_boundary(&ascii, true),
        Look::WordUnicode => Node::word_boundary(&unicode(), false),
        Look::WordUnicodeNegate => Node::word_boundary(&unicode(), true),
        Look::WordStartAscii => one_way(ascii, true),
        Look::WordEndAscii => one_way(ascii, false),
        Look::WordStartUnicode => one_way(unicode(), true),
        Look::WordEndUnicode => one_way(unicode(), false),
        Look::WordStartHalfAscii => half(ascii, true),
        Look::WordEndHalfAscii => half(ascii, false),
        Look::WordStartHalfUnicode => half(unicode(), true),
        Look::WordEndHalfUnicode => half(unicode(), false),
        Look::StartCRLF | Look::EndCRLF => {
            let message = "flag R (line ends \\r\\n) is not known here; write the line ends out";
            return Err(RegexError::new(0, message));
        }
    })
}

fn not_text() -> RegexError {
    RegexError::new(0, "this matches bytes that are no UTF-8; leave out (?-u) there")
}
