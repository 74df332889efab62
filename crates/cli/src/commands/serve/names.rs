//! Paths with names: `NAME=PATH`, or a path that names itself.

use std::path::PathBuf;
use std::str::FromStr;

/// A path and the name by which it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl FromStr for NamedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A path may hold `=`; a name holds no slash.
        if let Some((name, path)) = text.split_once('=')
            && !name.contains('/')
        {
            return Ok(Self { name: name.to_owned(), path: path.into() });
        }
        let path = PathBuf::from(text);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        match stem {
            Some(name) => Ok(Self { name: name.to_owned(), path }),
            None => Err(format!("{text:?} gives no name; write NAME={text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_themselves() {
        let named = |text: &str| text.parse::<NamedPath>().map(|of| (of.name, of.path));
        assert_eq!(named("shop/live"), Ok(("live".into(), "shop/live".into())));
        assert_eq!(named("shop.palm"), Ok(("shop".into(), "shop.palm".into())));
        assert_eq!(named("a=b/c=d"), Ok(("a".into(), "b/c=d".into())));
        assert_eq!(named("x/y=z"), Ok(("y=z".into(), "x/y=z".into())));
        assert!(named("..").is_err());
    }
}
