//! Options of reading a grammar: start, lexing, indentation, limits.

use crate::Lexing;

/// Options under which a grammar is read. The default: from rule `start`, lexemes by context,
/// blocks by indentation where the grammar declares them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LarkOptions {
    /// The rule whose texts are the language.
    pub start: String,
    /// The ways in which texts may be cut into lexemes. `None`: [`Lexing::Contextual`], as in
    /// lark's parsers and llguidance; [`Lexing::Longest`] where blocks are made by indentation,
    /// since these need a line's end to be one wherever it stands.
    pub lexing: Option<Lexing>,
    /// Blocks by indentation.
    pub indentation: LarkIndentation,
    /// Bounds on the grammar's size. Not written where options are: who reads says how much work is
    /// too much.
    #[serde(skip)]
    pub limits: LarkLimits,
}

/// Blocks by indentation: detected, none, or of named terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LarkIndentation {
    /// Python's, if the grammar declares `_INDENT` and `_DEDENT`; otherwise none. Lines end by
    /// `_NEWLINE`, or where there is none by the terminal that stands before `_INDENT`.
    #[default]
    Detect,
    /// None.
    None,
    /// Indentation by these terminals.
    Named(IndentationNames),
}

/// The terminals that make blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndentationNames {
    /// Terminal that ends a line; has a definition.
    pub newline: String,
    /// Terminal that begins a block; declared by `%declare`.
    pub indent: String,
    /// Terminal that ends a block; declared by `%declare`.
    pub dedent: String,
    /// Pairs of texts between which lines do not end, such as `("(", ")")`. Those that the grammar
    /// does not mention are passed over.
    pub brackets: Vec<(String, String)>,
    /// Blanks that a tab counts for.
    pub tab_width: u32,
}

/// Bounds on a grammar's size; a larger one is refused, since grammars may come from anyone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LarkLimits {
    /// Nodes of all terminals' regular expressions, terminals within terminals written out.
    pub terminal_nodes: usize,
    /// Symbols of all rules, groups and options written out, with what is written on the way.
    pub rule_symbols: usize,
    /// Uses of templates with different arguments.
    pub template_instances: usize,
}

impl Default for LarkOptions {
    fn default() -> Self {
        Self {
            start: "start".to_owned(),
            lexing: None,
            indentation: LarkIndentation::Detect,
            limits: LarkLimits::default(),
        }
    }
}

impl LarkOptions {
    /// The default from another rule.
    pub fn from_rule(start: impl Into<String>) -> Self {
        Self { start: start.into(), ..Self::default() }
    }

    /// This grammar with texts cut in these ways.
    pub fn with_lexing(self, lexing: Lexing) -> Self {
        Self { lexing: Some(lexing), ..self }
    }

    /// Blocks as in Python, whatever the grammar declares: by `_NEWLINE`, `_INDENT` and `_DEDENT`,
    /// lines going on inside brackets, tabs of 8 blanks.
    pub fn python_indentation(self) -> Self {
        Self { indentation: LarkIndentation::Named(IndentationNames::python()), ..self }
    }
}

impl IndentationNames {
    /// The names of Python's grammar.
    pub fn python() -> Self {
        let pair = |(open, close): (&str, &str)| (open.to_owned(), close.to_owned());
        Self {
            newline: "_NEWLINE".to_owned(),
            indent: "_INDENT".to_owned(),
            dedent: "_DEDENT".to_owned(),
            brackets: [("(", ")"), ("[", "]"), ("{", "}")].map(pair).into(),
            tab_width: 8,
        }
    }
}

impl Default for LarkLimits {
    fn default() -> Self {
        Self { terminal_nodes: 1 << 20, rule_symbols: 1 << 20, template_instances: 4096 }
    }
}
