//! Large enumerations as lexicons: sets that the grammar brings.
//!
//! As alternatives of an expression a hundred thousand texts take seconds and hundreds of
//! megabytes; as sorted strings they take what it costs to read them, and masks ask the lexicon. A
//! lexicon writes each text in one way: of shorter lists only those texts are in one of which that
//! holds for the expression too, and those with a character that may be escaped stay alternatives.
//!
//! It is made here, where the texts are: a grammar has the set and not the list, and whoever reads
//! a grammar knows sets alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_lexicon::{Lexicon, LexiconSet, MAX_TEXT_BYTES, Selection};
use xxhash_rust::xxh3::Xxh3;

use super::compile::Result;
use super::emit::Emitter;
use super::strings::StringSet;
use super::{Escapes, JsonSchemaOptions};
use crate::free_text::without;
use crate::{
    CharClass, MemberSpelling, NonterminalId, OwnSet, Regex, Slot, SlotId, SlotKind, Span, Symbol,
};

/// Name of the slots of listed texts, in messages.
const NAME: &str = "enum";
/// Texts of one spelling that are alternatives whatever their length.
const FEW: usize = 32;

/// Limits on the listed texts of a value that are alternatives of one expression.
///
/// What they cost there goes by their bytes: measured over `o200k_base`, 4 KB of titles or of names
/// take some 3 ms to compile, which is 0.6 for a set; 60 KB of titles take 78 and a set 1.4.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedLimits {
    /// Texts.
    max_texts: usize,
    /// Bytes of the texts of one spelling.
    max_bytes: usize,
}

impl ListedLimits {
    pub(super) fn new(options: &JsonSchemaOptions) -> Self {
        let (max_texts, max_bytes) = match options.escapes {
            Escapes::Needed => (options.max_listed, options.max_listed_bytes),
            Escapes::Any => (usize::MAX, usize::MAX),
        };
        Self { max_texts, max_bytes }
    }
}

/// Part of the listed texts of a value that is a set.
#[derive(Clone, Copy, PartialEq)]
enum InSet {
    All,
    /// Texts of one spelling.
    Plain,
}

impl Emitter<'_, '_> {
    /// The strings of a value. Many listed ones are a set of the grammar's own.
    pub(super) fn strings(&mut self, head: NonterminalId, sets: &[StringSet]) -> Result<()> {
        let rest = self.listed_set(head, sets)?;
        let sets = rest.as_deref().unwrap_or(sets);
        if sets.is_empty() {
            return Ok(());
        }
        let texts = Regex::alternate(sets.iter().map(StringSet::regex));
        let is_open = sets.iter().any(|set| matches!(set, StringSet::All { .. }));
        let limit = self.compiler.options.max_string_tokens.filter(|_| is_open);
        let mark = self.spelling.notation().quote;
        if mark.is_empty() {
            let quoted = self.spelling.quoted(&texts);
            let string = match limit {
                None => self.token("string", quoted)?,
                Some(tokens) => self.limited_token("string", quoted, tokens)?,
            };
            return self.rule(head, vec![string]);
        }
        // The mark may be a token of its own, so it is no part of the text's terminal.
        let some = Regex::Class(CharClass::any()).repeat(1, None);
        let text = Regex::and([texts, without(&[mark], &[mark]), some]);
        let text = match limit {
            None => self.pattern("text", text, None)?,
            Some(tokens) => self.limited_pattern("text", text, tokens)?,
        };
        let mark = self.marks(mark)?;
        if sets.iter().any(|set| set.contains("")) {
            self.rule(head, [&mark[..], &mark].concat())?;
        }
        self.rule(head, [&mark[..], &[text], &mark].concat())
    }

    /// A member of a slot, as a JSON string.
    pub(super) fn slot_member(
        &mut self,
        head: NonterminalId,
        slot: SlotId,
        span: Option<Span>,
    ) -> Result<()> {
        let open = self.punctuation("\"")?;
        let known = self.member_terminals.get(&slot).copied();
        let terminal = known.unwrap_or_else(|| self.builder.member_terminal(slot, span));
        self.member_terminals.insert(slot, terminal);
        self.rule(head, vec![open, Symbol::Terminal(terminal)])
    }

    /// The part of the listed texts that is a set, and how many there are; `None` where none is.
    fn in_set(&self, sets: &[StringSet]) -> Option<(InSet, usize)> {
        let listed = sets.iter().filter_map(|set| match set {
            StringSet::OneOf(texts) => Some(texts),
            StringSet::All { .. } => None,
        });
        let ListedLimits { max_texts, max_bytes } = self.listed_limits;
        let num_listed = listed.clone().map(BTreeSet::len).sum();
        if num_listed > max_texts {
            return Some((InSet::All, num_listed));
        }
        let plain = listed.flatten().filter(|text| self.spelling.is_plain(text));
        let (num, bytes) = plain.fold((0, 0), |(num, bytes), text| (num + 1, bytes + text.len()));
        (num > FEW && bytes > max_bytes).then_some((InSet::Plain, num_listed))
    }

    /// Makes the listed texts of `sets` a set of the grammar's own, where they are more than
    /// alternatives may be; gives the strings that are left, or `None` where that is all.
    fn listed_set(
        &mut self,
        head: NonterminalId,
        sets: &[StringSet],
    ) -> Result<Option<Vec<StringSet>>> {
        let Some((in_set, num_listed)) = self.in_set(sets) else { return Ok(None) };
        let (mut listed, mut others, mut rest) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut num_bytes = 0;
        for set in sets {
            match set {
                StringSet::OneOf(texts) => {
                    for text in texts {
                        num_bytes += text.len();
                        // No member is empty, or longer than a lexicon has them.
                        let is_member = (1..=MAX_TEXT_BYTES).contains(&text.len());
                        if !is_member || in_set == InSet::Plain && !self.spelling.is_plain(text) {
                            others.insert(Arc::clone(text));
                        } else {
                            listed.push(&**text);
                        }
                    }
                }
                StringSet::All { .. } => rest.push(set.clone()),
            }
        }
        self.compiler.tick(num_listed + num_bytes / 8)?;
        if !others.is_empty() {
            rest.push(StringSet::OneOf(others));
        }
        listed.sort_unstable();
        listed.dedup();
        let mut hasher = Xxh3::new();
        for text in &listed {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let fingerprint = hasher.digest128();
        let slot = match self.listed_slots.get(&fingerprint) {
            Some(&known) => known,
            None => {
                let lexicon = Lexicon::from_sorted(&listed).expect("they ascend, and none is long");
                let spelling = MemberSpelling::JsonString;
                // Its tables, as they are made, are a quarter of it.
                let bytes = lexicon.bytes() + lexicon.bytes() / 4;
                let set = LexiconSet::new(Arc::new(lexicon), Selection::All, spelling);
                let set = Arc::new(set.expect("all strings, which are UTF-8"));
                let slot = self.builder.slot(Slot {
                    name: NAME.to_owned(),
                    kind: SlotKind::Catalog,
                    field: None,
                    spelling,
                    filter: None,
                    span: None,
                    own: Some(OwnSet::new(set, fingerprint, bytes)),
                });
                self.listed_slots.insert(fingerprint, slot);
                slot
            }
        };
        self.slot_member(head, slot, None)?;
        Ok(Some(rest))
    }
}
