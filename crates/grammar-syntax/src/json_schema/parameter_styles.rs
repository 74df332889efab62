//! Styles of parameters: the marks that families of models write around them.

/// Stand-in for the type of a value in [`ParameterStyle::before_json`].
const TYPE: &str = "TYPE";

/// Stand-in for a parameter's name in [`ParameterStyle::end`].
const NAME: &str = "NAME";

/// Name that stands for an item's where marks after a value repeat the name.
pub const ITEM: &str = "item";

/// Marks around the parameters of a call, as a family of models writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParameterStyle {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// Blanks that models write before a parameter; any others are read as well.
    pub before: &'static str,
    /// Text before a parameter's name.
    pub begin: &'static str,
    /// Text after the name where the value is a text, written as it is.
    pub before_text: &'static str,
    /// Text after the name where the value is in JSON; `TYPE` stands for the value's type.
    pub before_json: &'static str,
    /// Text before the value, after blanks; empty where there is none.
    pub before_value: &'static str,
    /// Blanks that may stand around a text and are none of it: once before, once after.
    pub padding: &'static str,
    /// Text after the value; `NAME` stands for the parameter's name, or `item`.
    pub end: &'static str,
    /// Text before an item of a list, where lists and objects are written in these marks, too, and
    /// not in JSON; empty elsewhere.
    pub item: &'static str,
    /// True where `&` and `"` in a name are written as in an attribute of XML.
    pub escapes_names: bool,
}

/// The styles that are known by name.
pub const PARAMETER_STYLES: &[ParameterStyle] = &[
    ParameterStyle {
        name: "qwen_xml",
        before: "\n",
        begin: "<parameter=",
        before_text: ">",
        before_json: ">",
        before_value: "",
        padding: "\n",
        end: "</parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "minimax_xml",
        before: "\n",
        begin: "<parameter name=\"",
        before_text: "\">",
        before_json: "\">",
        before_value: "",
        padding: "",
        end: "</parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "deepseek_xml",
        before: "\n",
        begin: "<｜DSML｜parameter name=\"",
        before_text: "\" string=\"true\">",
        before_json: "\" string=\"false\">",
        before_value: "",
        padding: "",
        end: "</｜DSML｜parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "glm_xml",
        before: "\n",
        begin: "<arg_key>",
        before_text: "</arg_key>",
        before_json: "</arg_key>",
        before_value: "<arg_value>",
        padding: "",
        end: "</arg_value>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "mimo_xml",
        before: "\n",
        begin: "<parameter=",
        before_text: ">",
        before_json: ">",
        before_value: "",
        padding: "",
        end: "</parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "gigachat_xml",
        before: "\n",
        begin: "<｜GCML｜parameter name=\"",
        before_text: "\" string=\"true\">",
        before_json: "\" string=\"false\">",
        before_value: "",
        padding: "",
        end: "</｜GCML｜parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "cohere_flat_xml",
        before: "\n",
        begin: "<cofl:tool_param name=\"",
        before_text: "\" string=\"true\">",
        before_json: "\" string=\"false\">",
        before_value: "",
        padding: "",
        end: "</cofl:tool_param>",
        item: "",
        escapes_names: true,
    },
    ParameterStyle {
        name: "deepseek_v41_xml",
        before: "\n",
        begin: "<｜DSML｜ parameter name=\"",
        before_text: "\" string=\"true\">",
        before_json: "\" string=\"false\">",
        before_value: "",
        padding: "",
        end: "</｜DSML｜ parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "step_xml",
        before: "\n",
        begin: "<steptml:parameter name=\"",
        before_text: "\">",
        before_json: "\">",
        before_value: "",
        padding: "",
        end: "</steptml:parameter>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "minicpm_xml",
        before: "",
        begin: "<param name=\"",
        before_text: "\">",
        before_json: "\">",
        before_value: "",
        padding: "",
        end: "</param>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "longcat_xml",
        before: "\n",
        begin: "<longcat_arg_key>",
        before_text: "</longcat_arg_key>",
        before_json: "</longcat_arg_key>",
        before_value: "<longcat_arg_value>",
        padding: "",
        end: "</longcat_arg_value>",
        item: "",
        escapes_names: false,
    },
    ParameterStyle {
        name: "kimi_k3_xml",
        before: "",
        begin: "<|open|>argument key=\"",
        before_text: "\" type=\"string\"<|sep|>",
        before_json: "\" type=\"TYPE\"<|sep|>",
        before_value: "",
        padding: "",
        end: "<|close|>argument<|sep|>",
        item: "",
        escapes_names: true,
    },
    ParameterStyle {
        name: "minimax_m3_xml",
        before: "",
        begin: "]<]minimax[>[<",
        before_text: ">",
        before_json: ">",
        before_value: "",
        padding: "",
        end: "]<]minimax[>[</NAME>",
        item: "]<]minimax[>[<item",
        escapes_names: false,
    },
    ParameterStyle {
        name: "cohere_xml",
        before: "",
        begin: "<cofl:value name=\"",
        before_text: "\" type=\"raw\">",
        before_json: "\" type=\"TYPE\">",
        before_value: "",
        padding: "",
        end: "</cofl:value>",
        item: "<cofl:value",
        escapes_names: true,
    },
];

impl ParameterStyle {
    /// The style of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PARAMETER_STYLES.iter().find(|style| style.name == name)
    }

    /// The style of a name in a table of formats.
    ///
    /// # Panics
    /// When there is none; in a constant, while it is compiled.
    pub(crate) const fn known(name: &str) -> &'static Self {
        let mut at = 0;
        while at < PARAMETER_STYLES.len() {
            if same(PARAMETER_STYLES[at].name, name) {
                return &PARAMETER_STYLES[at];
            }
            at += 1;
        }
        panic!("no style of parameters has this name")
    }

    /// True where the mark after a name says of what type the value is.
    pub fn tells_types(&self) -> bool {
        self.before_json.contains(TYPE)
    }

    /// True where lists and objects are written in these marks, too.
    pub fn is_nested(&self) -> bool {
        !self.item.is_empty()
    }

    /// True where the mark after a value repeats the parameter's name.
    pub fn ends_by_name(&self) -> bool {
        self.end.contains(NAME)
    }

    /// The text of a name.
    pub fn written_name(&self, name: &str) -> String {
        match self.escapes_names {
            true => name.replace('&', "&amp;").replace('"', "&quot;"),
            false => name.to_owned(),
        }
    }

    /// The name of a text.
    pub fn read_name(&self, text: &str) -> String {
        match self.escapes_names {
            true => text.replace("&quot;", "\"").replace("&amp;", "&"),
            false => text.to_owned(),
        }
    }

    /// The text after the value of a parameter of this name.
    pub fn end_of(&self, name: &str) -> String {
        self.end.replace(NAME, name)
    }

    /// The text that no text as a value holds. Where the mark after it repeats a name, it is what
    /// all marks begin with, those of lists and objects too.
    pub fn text_stop(&self) -> &'static str {
        if self.ends_by_name() { self.begin } else { self.end }
    }

    /// The text before an item that is a value of such a mark: there is no name, and so nothing to
    /// close its quote.
    pub fn before_item(&self, after_name: &str) -> String {
        format!("{}{}", self.item, after_name.strip_prefix('"').unwrap_or(after_name))
    }

    /// The text after a name for a value of a type of JSON Schema.
    pub fn before_type(&self, type_name: &str) -> String {
        let word = match (self.is_nested(), type_name) {
            (false, _) => type_name,
            (true, "array") => "list",
            (true, "object") => "dict",
            (true, _) => "json",
        };
        self.before_json.replace(TYPE, word)
    }
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
