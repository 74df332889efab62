//! JSON as bodies mean it: null is not given, whole numbers in any spelling, wrong types in plain
//! words.
//!
//! A body is scanned once, so that its syntax is sound, and then read value by value from its text.
//! Members of typed objects that are null are left out before anybody asks for them; those of free
//! ones, such as an item's attributes, stay.

mod wrong;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use palmette_catalog_filter::{UniqueValue, whole};
use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde_json::value::RawValue;

pub use wrong::Wrong;
pub(crate) use wrong::listed;
use wrong::one_of;

use crate::read::pointer;

/// Name by which `RawValue` asks for a value's text.
const RAW: &str = "$serde_json::private::RawValue";
/// Characters of a value that a message has, at most.
const MOST_SHOWN: usize = 60;

/// The text of one value, whose syntax is sound.
#[derive(Clone, Copy, Debug)]
pub struct Text<'de>(pub &'de str);

impl<'de> Text<'de> {
    fn wrong(self, wanted: &str) -> Wrong {
        let mut shown: String = self.0.chars().take(MOST_SHOWN).collect();
        if shown.len() < self.0.len() {
            shown.push('…');
        }
        Wrong::OfValue(format!("is {shown}; it must be {wanted}"))
    }

    fn begins_with(self, first: char) -> bool {
        self.0.starts_with(first)
    }

    fn is_number(self) -> bool {
        self.0.starts_with(|first: char| first == '-' || first.is_ascii_digit())
    }

    /// A whole number however it is spelled: `3`, `3.0`, `3e0`. Those with point or exponent are
    /// exact to 2^53.
    fn whole(self) -> Option<i128> {
        if !self.is_number() {
            return None;
        }
        self.0.parse().ok().or_else(|| whole(self.0.parse().ok()?).map(i128::from))
    }

    /// Reads by `serde_json`, where its own rules are those that are meant.
    fn plainly<T>(
        self,
        read: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> serde_json::Result<T>,
    ) -> Result<T, Wrong> {
        read(&mut serde_json::Deserializer::from_str(self.0))
            .map_err(|error| Wrong::reworded(&error.to_string()))
    }

    fn object<V: Visitor<'de>>(self, visitor: V, keeps_null: bool) -> Result<V::Value, Wrong> {
        if !self.begins_with('{') {
            return Err(self.wrong("an object"));
        }
        let mut outcome = None;
        let through = Through { visitor, keeps_null, outcome: &mut outcome };
        let read = self.plainly(|json| json.deserialize_map(through));
        outcome.unwrap_or_else(|| Err(read.err().unwrap_or_else(|| self.wrong("an object"))))
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $int:ident $wanted:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            let number = self.whole().and_then(|number| $int::try_from(number).ok());
            visitor.$visit(number.ok_or_else(|| self.wrong($wanted))?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Wrong;

    whole_numbers! {
        deserialize_i8 visit_i8 i8 "a whole number from -128 to 127";
        deserialize_i16 visit_i16 i16 "a whole number from -32768 to 32767";
        deserialize_i32 visit_i32 i32 "a whole number from -2147483648 to 2147483647";
        deserialize_i64 visit_i64 i64 "a whole number";
        deserialize_i128 visit_i128 i128 "a whole number";
        deserialize_u8 visit_u8 u8 "a whole number from 0 to 255";
        deserialize_u16 visit_u16 u16 "a whole number from 0 to 65535";
        deserialize_u32 visit_u32 u32 "a whole number from 0 to 4294967295";
        deserialize_u64 visit_u64 u64 "a whole number, 0 or more";
        deserialize_u128 visit_u128 u128 "a whole number, 0 or more";
    }

    /// A free value: whoever reads it would not see that one of two members of a name is lost.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.begins_with('{') || self.begins_with('[') {
            let json = &mut serde_json::Deserializer::from_str(self.0);
            let read = serde_path_to_error::deserialize::<_, UniqueValue>(json);
            read.map_err(|error| {
                let inner = pointer(error.path());
                Wrong::reworded(&error.into_inner().to_string()).or_key_twice(&inner)
            })?;
        }
        self.plainly(|json| json.deserialize_any(visitor))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A number of single precision: one beyond it would be told as infinite, which nobody wrote.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let is_within = |number: f64| number.abs() <= f64::from(f32::MAX);
        match self.0.parse().ok().filter(|number: &f64| number.is_finite() && !is_within(*number)) {
            Some(_) => Err(self.wrong("a number from -3.4e38 to 3.4e38")),
            None => self.deserialize_f64(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let number =
            self.0.parse().ok().filter(|number: &f64| self.is_number() && number.is_finite());
        visitor.visit_f64(number.ok_or_else(|| self.wrong("a number"))?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.begins_with('"') {
            true => self.plainly(|json| json.deserialize_str(visitor)),
            false => Err(self.wrong("a text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            "null" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            "null" => visitor.visit_unit(),
            _ => Err(self.wrong("null")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match name {
            RAW => self.plainly(|json| json.deserialize_newtype_struct(name, visitor)),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if !self.begins_with('[') {
            return Err(self.wrong("a list"));
        }
        let mut outcome = None;
        let through = Through { visitor, keeps_null: true, outcome: &mut outcome };
        let read = self.plainly(|json| json.deserialize_seq(through));
        outcome.unwrap_or_else(|| Err(read.err().unwrap_or_else(|| self.wrong("a list"))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.object(visitor, true)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.object(visitor, false)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if self.begins_with('"') {
            let name: String = self.plainly(|json| serde::Deserialize::deserialize(json))?;
            return visitor.visit_enum(Variant { name, value: None });
        }
        let expected = || format!("{}, or an object with it and nothing else", one_of(known));
        if !self.begins_with('{') {
            return Err(self.wrong(&one_of(known)));
        }
        let members: BTreeMap<String, &RawValue> =
            self.plainly(|json| serde::Deserialize::deserialize(json))?;
        let mut given = members.into_iter().filter(|(_, value)| value.get() != "null");
        match (given.next(), given.next()) {
            (Some((name, value)), None) => {
                visitor.visit_enum(Variant { name, value: Some(Text(value.get())) })
            }
            _ => Err(self.wrong(&expected())),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }
}

impl<'de> IntoDeserializer<'de, Wrong> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A list or an object that goes to a visitor element by element, each as its text.
struct Through<'a, 'de, V: Visitor<'de>> {
    visitor: V,
    keeps_null: bool,
    /// Value that the visitor made, or its fault. Where it breaks off, `serde_json` only knows that
    /// something is left.
    outcome: &'a mut Option<Result<V::Value, Wrong>>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Through<'_, 'de, V> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        *self.outcome = Some(self.visitor.visit_seq(Elements(list)));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let (keeps_null, names) = (self.keeps_null, BTreeSet::new());
        let members = Members { map, keeps_null, names, value: None };
        *self.outcome = Some(self.visitor.visit_map(members));
        Ok(())
    }
}

struct Elements<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<A> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let text: Option<&'de RawValue> =
            self.0.next_element().map_err(|error| Wrong::reworded(&error.to_string()))?;
        text.map(|text| seed.deserialize(Text(text.get()))).transpose()
    }
}

struct Members<'de, A> {
    map: A,
    keeps_null: bool,
    /// Names so far.
    names: BTreeSet<String>,
    value: Option<&'de RawValue>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'de, A> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        loop {
            let entry: Option<(String, &'de RawValue)> =
                self.map.next_entry().map_err(|error| Wrong::reworded(&error.to_string()))?;
            let Some((name, value)) = entry else { return Ok(None) };
            if value.get() == "null" && !self.keeps_null {
                continue;
            }
            if !self.names.insert(name.clone()) {
                return Err(Wrong::twice(&name));
            }
            self.value = Some(value);
            let name: StringDeserializer<Wrong> = name.into_deserializer();
            return seed.deserialize(name).map(Some);
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let value = self.value.take().map_or("null", RawValue::get);
        seed.deserialize(Text(value))
    }
}

/// One of several, by name alone or with a value.
struct Variant<'de> {
    name: String,
    value: Option<Text<'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Wrong;
    type Variant = VariantContent<'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, VariantContent<'de>), Wrong> {
        let name: StringDeserializer<Wrong> = self.name.clone().into_deserializer();
        Ok((seed.deserialize(name)?, VariantContent(self.name, self.value)))
    }
}

/// Name and value of an enum's variant.
struct VariantContent<'de>(String, Option<Text<'de>>);

impl<'de> VariantContent<'de> {
    fn text(self) -> Result<Text<'de>, Wrong> {
        let Self(name, value) = self;
        value.ok_or_else(|| {
            Wrong::OfValue(format!("is {name:?}; it must be an object with {name} and its value"))
        })
    }
}

impl<'de> VariantAccess<'de> for VariantContent<'de> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.1 {
            None => Ok(()),
            Some(_) => {
                Err(Wrong::OfValue(format!("is an object; it must be the text {:?}", self.0)))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        seed.deserialize(self.text()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.text()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.text()?.object(visitor, false)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(default)]
        many: Vec<u32>,
        word: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Pick {
        First,
        Boxed(Inner),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        count: u64,
        #[serde(default)]
        share: f32,
        #[serde(default)]
        free: Map<String, serde_json::Value>,
        raw: Option<RawValueText>,
        inner: Option<Inner>,
        pick: Option<Pick>,
        #[serde(default)]
        flag: bool,
    }

    /// A text as it was written.
    #[derive(Debug, Deserialize)]
    #[serde(transparent)]
    struct RawValueText(Box<RawValue>);

    impl PartialEq for RawValueText {
        fn eq(&self, other: &Self) -> bool {
            self.0.get() == other.0.get()
        }
    }

    fn read(text: &str) -> Result<Outer, Wrong> {
        Outer::deserialize(Text(text))
    }

    #[test]
    fn null_is_not_given_and_whole_numbers_have_several_spellings() {
        let plain = read(r#"{"count": 3}"#).unwrap();
        for same in [
            r#"{"count": 3.0, "share": null, "free": null, "raw": null, "inner": null, "pick": null, "flag": null, "other": null}"#,
            r#"{"count": null, "count": 30e-1}"#,
        ] {
            assert_eq!(read(same).unwrap(), plain, "{same}");
        }
        let all = read(
            r#"{"count": 1e3, "share": 2, "free": {"a": null, "b": 1.0}, "raw": { "x":  null },
                "inner": {"many": [1.0, 2], "word": null}, "pick": {"boxed": {"many": null}, "first": null}, "flag": true}"#,
        )
        .unwrap();
        assert_eq!((all.count, all.share, all.flag), (1000, 2.0, true));
        assert_eq!(serde_json::Value::Object(all.free), json!({"a": null, "b": 1.0}));
        assert_eq!(all.raw.unwrap().0.get(), r#"{ "x":  null }"#);
        assert_eq!(all.inner.unwrap(), Inner { many: vec![1, 2], word: None });
        assert_eq!(all.pick, Some(Pick::Boxed(Inner { many: vec![], word: None })));
        assert_eq!(read(r#"{"count": 1, "pick": "first"}"#).unwrap().pick, Some(Pick::First));
    }

    #[test]
    fn wrong_types_are_told_in_plain_words() {
        for (text, wanted) in [
            ("7", "x is 7; it must be an object"),
            ("[3]", "x is [3]; it must be an object"),
            (r#"{"count": "3"}"#, "x is \"3\"; it must be a whole number, 0 or more"),
            (r#"{"count": -3}"#, "x is -3; it must be a whole number, 0 or more"),
            (r#"{"count": 2.5}"#, "x is 2.5; it must be a whole number, 0 or more"),
            (r#"{"count": 1e300}"#, "x is 1e300; it must be a whole number, 0 or more"),
            (r#"{"count": 1, "share": "a"}"#, "x is \"a\"; it must be a number"),
            (r#"{"count": 1, "share": 1e999}"#, "x is 1e999; it must be a number"),
            (
                r#"{"count": 1, "share": -1e308}"#,
                "x is -1e308; it must be a number from -3.4e38 to 3.4e38",
            ),
            (r#"{"count": 1, "flag": 1}"#, "x is 1; it must be true or false"),
            (r#"{"count": 1, "free": []}"#, "x is []; it must be an object"),
            (r#"{"count": 1, "inner": {"many": {}}}"#, "x is {}; it must be a list"),
            (
                r#"{"count": 1, "inner": {"many": [4294967296]}}"#,
                "x is 4294967296; it must be a whole number from 0 to 4294967295",
            ),
            (r#"{"count": 1, "inner": {"word": 3}}"#, "x is 3; it must be a text"),
            (
                r#"{"count": 1, "inner": {"wrd": 3}}"#,
                "there is no member \"wrd\" here (did you mean \"word\"?); there are many, word",
            ),
            (r#"{"count": 1, "pick": "third"}"#, "x is \"third\"; it must be one of first, boxed"),
            (
                r#"{"count": 1, "pick": "boxed"}"#,
                "x is \"boxed\"; it must be an object with boxed and its value",
            ),
            (
                r#"{"count": 1, "pick": {"first": 1}}"#,
                "x is an object; it must be the text \"first\"",
            ),
            (r#"{"count": 1, "pick": 7}"#, "x is 7; it must be one of first, boxed"),
            (
                r#"{"count": 1, "pick": {}}"#,
                "x is {}; it must be one of first, boxed, or an object with it and nothing else",
            ),
            ("{}", "the member \"count\" is missing"),
            (
                r#"{"count": 1, "free": {"a": 1, "a": 2}}"#,
                "the member \"a\" stands twice; give it once",
            ),
            (
                r#"{"count": 1, "free": {"a": [{"b": 1, "b": 1}]}}"#,
                "x has the key \"b\" twice, in [0]; give it once",
            ),
            (
                r#"{"count": 1, "free": {"a": {"b": 1, "b": 1}}}"#,
                "x has the key \"b\" twice; give it once",
            ),
            (r#"{"count": 1, "count": 2}"#, "the member \"count\" stands twice; give it once"),
        ] {
            assert_eq!(read(text).unwrap_err().of("x"), wanted, "{text}");
        }
        let long = format!("{{\"count\": \"{}\"}}", "é".repeat(100));
        let message = read(&long).unwrap_err().of("x");
        assert!(message.chars().count() < 120 && message.contains('…'), "{message}");
    }

    #[test]
    fn other_readers_messages_are_reworded() {
        for (message, wanted) in [
            (
                "invalid type: integer `7`, expected an item at line 1 column 2",
                "x is 7; it must be an item",
            ),
            (
                "invalid type: floating point `1.5`, expected an item",
                "x is 1.5; it must be an item",
            ),
            ("invalid type: string \"a\", expected an item", "x is \"a\"; it must be an item"),
            ("invalid type: map, expected an item", "x is an object; it must be an item"),
            (
                "invalid value: a larger number, expected a code",
                "x is a larger number; it must be a code",
            ),
            ("an item's list of codes is empty", "an item's list of codes is empty"),
            ("unknown field `x`, expected `a`", "there is no member \"x\" here; there are a"),
            (
                "unknown field `x`, expected one of `a`, `b`",
                "there is no member \"x\" here; there are a, b",
            ),
            (
                "unknown field `x`, there are no fields",
                "there is no member \"x\" here; there are none",
            ),
        ] {
            assert_eq!(Wrong::reworded(message).of("x"), wanted);
        }
    }
}
