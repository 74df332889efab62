//! Styles of parameters: the marks that families of models write around them.

use crate::Symbol;

/// Marks around the parameters of a call, as a family of models writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParameterStyle {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// Text before a parameter's name.
    pub begin: &'static str,
    /// Text after the name where the value is a text, written as it is.
    pub before_text: &'static str,
    /// Text after the name where the value is in JSON.
    pub before_json: &'static str,
    /// Text before the value, after blanks; empty where there is none.
    pub before_value: &'static str,
    /// Text after the value.
    pub end: &'static str,
}

/// The styles that are known by name.
pub const PARAMETER_STYLES: &[ParameterStyle] = &[
    ParameterStyle {
        name: "qwen_xml",
        begin: "<parameter=",
        before_text: ">",
        before_json: ">",
        before_value: "",
        end: "</parameter>",
    },
    ParameterStyle {
        name: "minimax_xml",
        begin: "<parameter name=\"",
        before_text: "\">",
        before_json: "\">",
        before_value: "",
        end: "</parameter>",
    },
    ParameterStyle {
        name: "deepseek_xml",
        begin: "<｜DSML｜parameter name=\"",
        before_text: "\" string=\"true\">",
        before_json: "\" string=\"false\">",
        before_value: "",
        end: "</｜DSML｜parameter>",
    },
    ParameterStyle {
        name: "glm_xml",
        begin: "<arg_key>",
        before_text: "</arg_key>",
        before_json: "</arg_key>",
        before_value: "<arg_value>",
        end: "</arg_value>",
    },
];

impl ParameterStyle {
    /// The style of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PARAMETER_STYLES.iter().find(|style| style.name == name)
    }
}

/// Parameters that are being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) style: &'static ParameterStyle,
    /// A nonterminal of the empty text, where JSON has braces and commas.
    pub(super) empty: Symbol,
    /// A nonterminal of blanks, or none.
    pub(super) blanks: Symbol,
}
