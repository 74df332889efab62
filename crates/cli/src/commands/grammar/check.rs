//! `palmette grammar check`: what is wrong or remarkable in a grammar, and whether it reads texts.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use palmette_bindings::BoundSets;
use palmette_grammar::{
    BoundRecognizer, Position, Recognizer, RecognizerScratch, Severity, analyse,
};
use palmette_lexicon::DocumentPlace;
use serde::Serialize;

use super::catalogs::CatalogArgs;
use super::documents::Citation;
use super::loading::{GrammarFileArgs, Warning};
use super::open_catalogs::OpenCatalogs;
use super::refused_member::RefusedMember;
use crate::output::{Reported, print, print_json, visible};

/// Read a grammar, say what is wrong or remarkable in it, and whether texts are in its language
///
/// Ends with an error when the grammar cannot be read or matches nothing that its author can have
/// meant, or when a text is not in its language.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    grammar: GrammarFileArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    /// Texts to read with it; none spells a token that the grammar asks for by name or number, such
    /// as <|call|>
    #[arg(long, value_name = "FILE")]
    text: Vec<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    syntax: &'static str,
    terminals: usize,
    nonterminals: usize,
    rules: usize,
    conflicts: usize,
    diagnostics: Vec<Diagnostic>,
    texts: Vec<Text>,
}

#[derive(Debug, Serialize)]
struct Diagnostic {
    severity: &'static str,
    message: String,
    line: Option<u32>,
    column: Option<u32>,
    /// In a JSON Schema, the JSON pointer to what it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

#[derive(Debug, Serialize)]
struct Text {
    file: String,
    accepted: bool,
    /// First byte that no text continues with; none where the text only stops too early.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_at: Option<Place>,
    /// The character that begins there, or the byte.
    #[serde(skip)]
    unexpected: String,
    /// Characters or terminals that could have followed instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected: Vec<String>,
    /// True when the text could have ended there.
    #[serde(skip)]
    may_end: bool,
    /// True when the text without the line end at its end is in the language.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_line_end: bool,
    /// Members of the catalogs that the grammar names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<Member>,
    /// Value of a catalog's field that no item has, because of which the text is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_member: Option<RefusedMember>,
}

#[derive(Debug, Serialize)]
struct Member {
    catalog: String,
    /// Part of an item that is written; none where the member is a substring.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    text: String,
    /// Bytes of its spelling.
    span: [usize; 2],
    /// The place of documents where a substring stands first.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Citation>,
}

/// Place in a text.
#[derive(Debug, Serialize)]
pub(super) struct Place {
    offset: usize,
    line: usize,
    column: usize,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let (grammar, warnings) = args.grammar.parse()?;
    args.grammar.show(&warnings, args.json);
    let limits = palmette_grammar::ParserLimits::default();
    let analysis = analyse(&grammar, &limits.tables, &mut args.grammar.budget());
    let found = analysis.diagnostics.iter().map(diagnostic);
    // In text, they are on standard error.
    let warnings = warnings.into_iter();
    let mut report = Report {
        syntax: args.grammar.kind()?,
        terminals: grammar.terminals().len(),
        nonterminals: grammar.nonterminals().len(),
        rules: grammar.rules().len(),
        conflicts: analysis.conflicts.len(),
        diagnostics: warnings.filter(|_| args.json).map(Diagnostic::from).chain(found).collect(),
        texts: Vec::new(),
    };
    let recognizer = Arc::new(args.grammar.compile(grammar.without_tokens())?);
    report.diagnostics.extend(dead_ends(&recognizer));
    // Without texts nothing is asked of the sets; those that are given are checked.
    let slots = recognizer.source().open_slots();
    let catalogs = match args.text.is_empty() && args.catalogs.is_empty() {
        true => None,
        false => args.catalogs.for_slots(slots)?,
    };
    let bound = catalogs
        .map(|catalogs| {
            let sets = catalogs.sets(slots)?;
            let bound = catalogs.bind_ready(&recognizer, &sets)?;
            anyhow::Ok((catalogs, sets, bound))
        })
        .transpose()?;
    for path in &args.text {
        let text = crate::input::read(path)?;
        let file = path.display().to_string();
        report.texts.push(match &bound {
            None => read(&recognizer, recognizer.start(), file, &text)?,
            Some((catalogs, sets, bound)) => {
                let read = read(&bound.recognizer, Some(&bound.start), file, &text)?;
                let refused_member = match &read.refused_at {
                    None => None,
                    Some(place) => {
                        let sets = (catalogs, sets.as_slice());
                        RefusedMember::find(sets, bound, &text, place.offset)?
                    }
                };
                Text { members: members(bound, (catalogs, sets), &text)?, refused_member, ..read }
            }
        });
    }
    if args.json {
        print_json(&report)?
    } else {
        print(&text(&report))?
    }
    let errors = analysis.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let (errors, refused) = (errors.count(), report.texts.iter().filter(|text| !text.accepted));
    match (errors, refused.count()) {
        (0, 0) => Ok(()),
        (0, refused) => {
            let all = report.texts.len();
            Err(Reported(format!("{refused} of {all} texts are not in the language")).into())
        }
        (errors, _) => {
            let file = args.grammar.file.display();
            Err(Reported(format!("{file} has {errors} errors, see above")).into())
        }
    }
}

fn diagnostic(found: &palmette_grammar::Diagnostic) -> Diagnostic {
    Diagnostic {
        severity: match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        message: found.message.clone(),
        line: found.span.map(|span| span.line),
        column: found.span.map(|span| span.column),
        pointer: None,
    }
}

/// Ends that contextual lexing leaves no text for.
fn dead_ends(recognizer: &Recognizer) -> impl Iterator<Item = Diagnostic> {
    recognizer.dead_end_notes().into_iter().map(|(span, message)| {
        let (line, column) = span.map(|span| (span.line, span.column)).unzip();
        Diagnostic { severity: "warning", message, line, column, pointer: None }
    })
}

impl From<Warning> for Diagnostic {
    fn from(Warning { message, line, column, pointer }: Warning) -> Self {
        Self { severity: "warning", message, line, column, pointer }
    }
}

/// The members of a text, in their order.
fn members(
    bound: &BoundRecognizer,
    (catalogs, sets): (&OpenCatalogs, &BoundSets),
    text: &[u8],
) -> anyhow::Result<Vec<Member>> {
    let scratch = &mut RecognizerScratch::default();
    let members = bound.recognizer.members(&bound.sets, text, scratch)?.unwrap_or_default();
    let members = members.into_iter().filter_map(|member| sets.member(member));
    let shown = members.map(|of| {
        let cite = |DocumentPlace { document, span }: DocumentPlace| Citation {
            file: catalogs.file(&of.set, document).to_owned(),
            span: [span.start, span.end],
        };
        let first = of.place.map(cite);
        let (span, field) = ([of.span.start, of.span.end], first.is_none().then_some(of.field));
        Member { catalog: of.set, field, text: of.value, span, first }
    });
    Ok(shown.collect())
}

fn read(
    recognizer: &Recognizer,
    start: Option<&Position>,
    file: String,
    text: &[u8],
) -> anyhow::Result<Text> {
    let mut scratch = RecognizerScratch::default();
    let mut position = start.cloned();
    for (offset, &byte) in text.iter().enumerate() {
        let next = match &position {
            Some(at) => recognizer.advance(at, byte, &mut scratch)?,
            None => None,
        };
        if next.is_none() {
            let expected = expected(recognizer, position.as_ref(), &mut scratch)?;
            let (unexpected, refused_at) = (unexpected(&text[offset..]), Some(place(text, offset)));
            let may_end = accepts(recognizer, position.as_ref(), &mut scratch)?;
            let only_line_end = may_end && matches!(&text[offset..], b"\n" | b"\r\n");
            return Ok(Text {
                file,
                accepted: false,
                refused_at,
                unexpected,
                expected,
                may_end,
                only_line_end,
                members: Vec::new(),
                refused_member: None,
            });
        }
        position = next;
    }
    let accepted = accepts(recognizer, position.as_ref(), &mut scratch)?;
    let expected = match accepted {
        true => Vec::new(),
        false => expected(recognizer, position.as_ref(), &mut scratch)?,
    };
    Ok(Text {
        file,
        accepted,
        refused_at: None,
        unexpected: "end of the text".to_owned(),
        expected,
        may_end: false,
        only_line_end: false,
        members: Vec::new(),
        refused_member: None,
    })
}

/// True when a text may end at a position; at none where the language is empty.
fn accepts(
    recognizer: &Recognizer,
    position: Option<&Position>,
    scratch: &mut RecognizerScratch,
) -> anyhow::Result<bool> {
    Ok(match position {
        Some(position) => recognizer.is_accepting(position, scratch)?,
        None => false,
    })
}

fn expected(
    recognizer: &Recognizer,
    position: Option<&Position>,
    scratch: &mut RecognizerScratch,
) -> anyhow::Result<Vec<String>> {
    Ok(match position {
        Some(position) => recognizer.expected_names(position, scratch)?,
        // The language is empty.
        None => Vec::new(),
    })
}

/// The character that a text begins with, or its first byte where that begins none.
fn unexpected(text: &[u8]) -> String {
    let begin = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match begin.chars().next() {
        Some(character) if character.is_control() => format!("`{}`", character.escape_default()),
        Some(character) => format!("`{character}`"),
        None => format!("byte {:#04x}", text[0]),
    }
}

/// `a`, `a or b`, `a, b or c`; and the end of the text, where that could be there.
fn alternatives(names: &[String], may_end: bool) -> String {
    match names {
        [] if may_end => "the end of the text".to_owned(),
        names if may_end => format!("{}, or the end of the text", names.join(", ")),
        [] => "nothing: no text is in the language".to_owned(),
        [only] => only.clone(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

/// The place of an offset, lines and columns counted from 1.
pub(super) fn place(text: &[u8], offset: usize) -> Place {
    let before = &text[..offset];
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    // Bytes that go on a character do not begin one.
    let begins = |byte: &&u8| **byte & 0xC0 != 0x80;
    Place { offset, line, column: 1 + before[line_start..].iter().filter(begins).count() }
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}: {} terminals, {} nonterminals, {} rules, {} conflicts\n",
        report.syntax, report.terminals, report.nonterminals, report.rules, report.conflicts
    );
    for found in &report.diagnostics {
        let at = match (found.line, found.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            _ => String::new(),
        };
        text += &format!("{at}{}: {}\n", found.severity, visible(&found.message));
    }
    for read in &report.texts {
        let verdict = match &read.refused_at {
            _ if read.accepted => "in the language".to_owned(),
            _ if let Some(refused) = &read.refused_member => {
                let Place { line, column, .. } = refused.begins_at;
                let message = refused.message();
                format!("not in the language: line {line}, column {column}: {message}")
            }
            place => {
                let place = place.as_ref().map_or_else(String::new, |place| {
                    format!(" at line {}, column {}", place.line, place.column)
                });
                let expected = alternatives(&read.expected, read.may_end);
                let line_end = match read.only_line_end {
                    true => ": the line end is all that is too much; write the file without it",
                    false => "",
                };
                format!(
                    "not in the language: unexpected {}{place}; expected {expected}{line_end}",
                    read.unexpected
                )
            }
        };
        text += &format!("{}: {}\n", visible(&read.file), visible(&verdict));
        for Member { catalog, field, text: member, span: [begin, end], first } in &read.members {
            let field = field.as_ref().map(|field| format!(".{field}")).unwrap_or_default();
            let member = visible(member);
            text += &format!("  {catalog}{field} {member}, bytes {begin} to {end}");
            if let Some(Citation { file, span: [begin, end] }) = first {
                let file = visible(file);
                text += &format!(", first in {file} at bytes {begin} to {end}");
            }
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}
