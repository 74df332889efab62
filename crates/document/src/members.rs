//! Members of an object by name, which several types share.

use std::fmt;

use palmette_catalog_filter::nearest;
use serde::de::value::MapDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::json::{Text, Wrong, listed};
use crate::read::{escaped, read_from};

/// The members of an object that are not null, each once, in their order.
///
/// An envelope and a question stand side by side in one body. `serde`'s `flatten` would read them
/// too, but it takes unknown members and loses the types by which messages are worded.
#[derive(Debug, Default)]
pub struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// Parts the members into those of two types, both of which refuse what they do not know.
    ///
    /// # Errors
    /// When a member belongs to neither, or a value is not one that its type takes.
    pub fn split<A: DeserializeOwned, B: DeserializeOwned>(mut self) -> Result<(A, B), Fault> {
        self.check_known(&[member_names::<A>(), member_names::<B>()])?;
        Ok((self.take()?, self.take()?))
    }

    /// Refuses a member that none of these lists of names has.
    ///
    /// # Errors
    /// When there is one; the message has the names.
    pub fn check_known(&self, lists: &[&[&str]]) -> Result<(), Fault> {
        let known = || lists.iter().flat_map(|names| names.iter().copied());
        let unknown = self.names().find(|name| !known().any(|of| of == *name));
        let Some(name) = unknown else { return Ok(()) };
        let hint = nearest(name, known());
        let hint = hint.map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
        let names: Vec<&str> = known().collect();
        let detail =
            format!("there is no member {name:?} here{hint}; there are {}", listed(&names));
        Err(Fault::new(format!("/{}", escaped(name)), detail))
    }

    /// Takes the members of a type out.
    ///
    /// # Errors
    /// When one is missing, or a value is not one that the type takes.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<T, Fault> {
        let names = member_names::<T>();
        let own: Vec<_> =
            self.0.extract_if(.., |(name, _)| names.contains(&name.as_str())).collect();
        let entries = own.iter().map(|(name, value)| (name.as_str(), Text(value.get())));
        read_from(MapDeserializer::new(entries))
    }

    /// Takes a member out, as its text.
    pub fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let place = self.0.iter().position(|(of, _)| of == name)?;
        Some(self.0.remove(place).1)
    }

    /// Names of the members.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if value.get() == "null" {
                        continue;
                    }
                    if members.iter().any(|(of, _)| *of == name) {
                        let message = format!("the member {name:?} stands twice; give it once");
                        return Err(A::Error::custom(message));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The names of a struct's members, as its derived reader asks for them.
pub fn member_names<T: DeserializeOwned>() -> &'static [&'static str] {
    /// Deserializer that notes the fields it is asked for, and fails.
    struct FieldProbe<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for FieldProbe<'_> {
        type Error = Wrong;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Wrong> {
            Err(Wrong::custom("only the members are asked for"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Wrong> {
            *self.0 = fields;
            Err(Wrong::custom("only the members are asked for"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut names: &'static [&'static str] = &[];
    _ = T::deserialize(FieldProbe(&mut names));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct One {
        a: u8,
        #[serde(rename = "bee", default)]
        b: Vec<u8>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Other {
        c: Option<String>,
    }

    fn split(text: &str) -> Result<(One, Other), Fault> {
        read::<Members>(text.as_bytes())
            .map_err(|error| Fault::new("?", error.to_string()))?
            .split()
    }

    #[test]
    fn members_go_to_their_types() {
        assert_eq!(member_names::<One>(), ["a", "bee"]);
        assert_eq!(
            split(r#"{"c": "x", "a": 1.0, "bee": null}"#),
            Ok((One { a: 1, b: vec![] }, Other { c: Some("x".into()) }))
        );
        for (text, pointer, detail) in [
            (r#"{"a": 1, "a": 1}"#, "?", "the member \"a\" stands twice; give it once"),
            (
                r#"{"a": 1, "be": 1}"#,
                "/be",
                "there is no member \"be\" here (did you mean \"bee\"?); there are a, bee, c",
            ),
            (
                r#"{"a": 1, "bee": [1, "2"]}"#,
                "/bee/1",
                "bee[1] is \"2\"; it must be a whole number from 0 to 255",
            ),
            (r#"{"a": 1, "c": 2}"#, "/c", "c is 2; it must be a text"),
            ("{}", "", "the member \"a\" is missing"),
            ("[]", "?", "the body is []; it must be an object"),
        ] {
            assert_eq!(split(text), Err(Fault::new(pointer, detail)), "{text}");
        }
    }

    #[test]
    fn members_are_taken_out_by_name() {
        let mut members: Members = read(br#"{"c": "x", "z": [1], "a": 7}"#).unwrap();
        assert_eq!(members.take(), Ok(One { a: 7, b: vec![] }));
        assert_eq!(members.remove("z").as_deref().map(RawValue::get), Some("[1]"));
        assert_eq!(members.names().collect::<Vec<_>>(), ["c"]);
        assert_eq!(members.take(), Ok(Other { c: Some("x".into()) }));
    }
}
