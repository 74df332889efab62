//! Lists in cells of text, as programs print them and as people join them.

use serde_json::Value;

use super::python_literal::parse_literal;

/// Marks that often join the items of a list in a cell.
const JOINTS: [char; 3] = [',', ';', '|'];

/// Reads a list as JSON, Python or NumPy prints it: `[3, 1]`, `['a', "b"]`, `('a',)`, `['a' 'b']`.
///
/// `None` where the text begins as no list.
pub(super) fn parse_list(text: &str) -> Option<Result<Vec<Value>, String>> {
    let text = text.trim();
    if text.starts_with('(') {
        // Text in parentheses is no list.
        return match parse_literal(text) {
            Ok(Value::Array(elements)) => Some(Ok(elements)),
            _ => None,
        };
    }
    if !text.starts_with('[') {
        return None;
    }
    let read = serde_json::from_str(text).or_else(|_| match parse_literal(text)? {
        Value::Array(elements) => Ok(elements),
        _ => Err("it is no list".to_owned()),
    });
    Some(read.map_err(|reason| {
        let shown: String = text.chars().take(80).collect();
        format!("{shown:?} is no list such as [3, 1] or ['a', 'b']: {reason}")
    }))
}

/// Reads a cell that holds a list: as programs print it, `[3, 1]` or `['a' 'b']`, else parted by
/// `separator`, else by blanks.
///
/// # Errors
/// A sentence about a list that is broken off, or, without a separator, about a cell that may be
/// parted by another mark than blanks: its items would be read as one.
pub fn parse_list_cell(cell: &str, separator: Option<&str>) -> Result<Vec<Value>, String> {
    if let Some(list) = parse_list(cell) {
        return list;
    }
    if let Some(separator) = separator {
        return Ok(split_at(cell, separator).map(Value::from).collect());
    }
    check_joints(cell)?;
    Ok(cell.split_whitespace().map(Value::from).collect())
}

/// The texts between separators, without blanks around them; empty ones are none.
pub(super) fn split_at<'t>(text: &'t str, separator: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(separator).map(str::trim).filter(|text| !text.is_empty())
}

/// Refuses a text of items with blanks between that may have another mark between them.
///
/// # Errors
/// A sentence that names the mark.
pub fn check_joints(text: &str) -> Result<(), String> {
    let is_joint = |at: usize, mark: char| {
        // Marks of models, `<|sid_begin|>`, have bars of their own.
        let (before, after) = (&text[..at], &text[at + mark.len_utf8()..]);
        JOINTS.contains(&mark)
            && !(mark == '|' && (before.ends_with('<') || after.starts_with('>')))
    };
    match text.char_indices().find(|&(at, mark)| is_joint(at, mark)) {
        Some((_, mark)) => {
            let shown: String = text.chars().take(80).collect();
            Err(format!(
                "{shown:?} has {mark:?} in a list of items with blanks between: say what parts them \
                 (--list-separator {mark:?}, or \" \" for blanks), or write lists as [3, 1]"
            ))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(cell: &str, separator: Option<&str>, expected: Option<Value>) {
        assert_eq!(parse_list_cell(cell, separator).ok().map(Value::from), expected, "{cell}");
    }

    #[test]
    fn lists_as_programs_print_them() {
        check("[3466, 2697]", None, Some(json!([3466, 2697])));
        check("['a', \"it's\", 'b\\'c']", None, Some(json!(["a", "it's", "b'c"])));
        check("['<a_1><b_2>']", None, Some(json!(["<a_1><b_2>"])));
        check("[[1, 2], [3, 4]]", None, Some(json!([[1, 2], [3, 4]])));
        check(" ('a', 'b') ", None, Some(json!(["a", "b"])));
        check("[ 3 12]", None, Some(json!([3, 12])));
        check("['a' 'b']", None, Some(json!(["a", "b"])));
        check("['a',]", Some("|"), Some(json!(["a"])));
        check("[]", None, Some(json!([])));
        for bad in ["['a'", "[a]", "['a]", "[1.5x]", "[,]", "[1 2 ... 9]"] {
            check(bad, None, None);
            check(bad, Some(","), None);
        }
    }

    #[test]
    fn lists_as_people_join_them() {
        check("3 1  x", None, Some(json!(["3", "1", "x"])));
        check("", None, Some(json!([])));
        check("a|b| c|", Some("|"), Some(json!(["a", "b", "c"])));
        check("a b,c", Some(","), Some(json!(["a b", "c"])));
        check("3,1,7 4,2,9", Some(" "), Some(json!(["3,1,7", "4,2,9"])));
        check("(red) shoes|hat", Some("|"), Some(json!(["(red) shoes", "hat"])));
        let marks = "<|sid_begin|><a_1><b_2><|sid_end|>";
        check(marks, None, Some(json!([marks])));
        for bad in ["a,b", "a, b", "a;b", "a|b", "3,1,7 4,2,9"] {
            let error = parse_list_cell(bad, None).unwrap_err();
            assert!(error.contains("--list-separator"), "{error}");
        }
    }
}
