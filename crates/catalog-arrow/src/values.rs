//! Attributes as JSON.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, Float16Type, Float32Type, Float64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, types::DecimalType};
use arrow_schema::{DataType, TimeUnit};
use serde_json::{Map, Number, Value};

use crate::codes::lists;
use crate::error::Kind;
use crate::instants::{Unit, rfc3339};
use crate::scalars::{dictionary_keys, dictionary_values, integers, texts};

/// The value of each row; null where the column is.
pub(crate) type Values<'a> = Box<dyn Fn(usize) -> Result<Value, BadValue> + 'a>;

/// A value that JSON cannot hold.
#[derive(Debug)]
pub(crate) enum BadValue {
    NotFinite(f64),
    Decimal(String),
    Instant(i64, Unit),
}

impl BadValue {
    pub(crate) fn of_item(self, item: &str) -> Kind {
        let item = item.to_owned();
        match self {
            BadValue::NotFinite(value) => Kind::NotFinite { item, value },
            BadValue::Decimal(value) => Kind::Decimal { item, value },
            BadValue::Instant(value, unit) => Kind::Instant { item, value, unit: unit.name() },
        }
    }
}

/// Reads a column of any type that can be an attribute.
pub(crate) fn values(array: &dyn Array) -> Result<Values<'_>, Kind> {
    let read = some_values(array)?;
    Ok(match array.logical_nulls() {
        None => read,
        Some(nulls) => Box::new(move |row| match nulls.is_null(row) {
            true => Ok(Value::Null),
            false => read(row),
        }),
    })
}

/// Reads rows that are not null.
fn some_values(array: &dyn Array) -> Result<Values<'_>, Kind> {
    if let Some(texts) = texts(array) {
        return Ok(Box::new(move |row| Ok(texts(row).into())));
    }
    if let Some(integers) = integers(array) {
        // Every integer type fits one of the two.
        return Ok(Box::new(move |row| {
            let integer = integers(row);
            Ok(i64::try_from(integer).map_or_else(|_| (integer as u64).into(), Value::from))
        }));
    }
    if let Some((ranges, elements)) = lists(array) {
        let elements = values(elements)?;
        return Ok(Box::new(move |row| ranges(row).map(&elements).collect()));
    }
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_| Ok(Value::Null)),
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(|row| Ok(array.value(row).into()))
        }
        DataType::Float16 => {
            let array = array.as_primitive::<Float16Type>();
            Box::new(|row| short_float(f32::from(array.value(row))))
        }
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            Box::new(|row| short_float(array.value(row)))
        }
        DataType::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            Box::new(|row| float(array.value(row)))
        }
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => instants::<TimestampSecondType>(array, Unit::Second),
            TimeUnit::Millisecond => instants::<TimestampMillisecondType>(array, Unit::Millisecond),
            TimeUnit::Microsecond => instants::<TimestampMicrosecondType>(array, Unit::Microsecond),
            TimeUnit::Nanosecond => instants::<TimestampNanosecondType>(array, Unit::Nanosecond),
        },
        DataType::Date32 => instants::<Date32Type>(array, Unit::Day),
        DataType::Date64 => instants::<Date64Type>(array, Unit::Millisecond),
        DataType::Dictionary(..) => {
            let entries = values(dictionary_values(array))?;
            let keys = dictionary_keys(array);
            Box::new(move |row| entries(keys(row)))
        }
        DataType::Struct(fields) => {
            let names: HashSet<&String> = fields.iter().map(|field| field.name()).collect();
            if names.len() < fields.len() {
                return Err(Kind::AttributeType(array.data_type().clone()));
            }
            let columns = array.as_struct().columns().iter();
            let columns: Vec<(&String, Values<'_>)> = fields
                .iter()
                .zip(columns)
                .map(|(field, column)| Ok((field.name(), values(&**column)?)))
                .collect::<Result<_, Kind>>()?;
            Box::new(move |row| {
                let mut object = Map::with_capacity(columns.len());
                for (name, values) in &columns {
                    match values(row)? {
                        Value::Null => {}
                        value => {
                            object.insert((*name).clone(), value);
                        }
                    }
                }
                Ok(Value::Object(object))
            })
        }
        other => return Err(Kind::AttributeType(other.clone())),
    })
}

fn float(value: f64) -> Result<Value, BadValue> {
    Number::from_f64(value).map(Value::Number).ok_or(BadValue::NotFinite(value))
}

/// The shortest decimal that rounds to `value`: what its writer meant.
fn short_float(value: f32) -> Result<Value, BadValue> {
    float(value.to_string().parse().unwrap_or(f64::from(value)))
}

fn decimals<T: DecimalType>(array: &dyn Array) -> Values<'_> {
    let array = array.as_primitive::<T>();
    Box::new(|row| {
        let text = array.value_as_string(row);
        decimal(&text).ok_or(BadValue::Decimal(text))
    })
}

/// `None` where a JSON number might not say exactly this: doubles keep 15 digits.
fn decimal(text: &str) -> Option<Value> {
    let Some((whole, fraction)) = text.split_once('.') else {
        let (signed, unsigned) = (text.parse::<i64>(), text.parse::<u64>());
        return signed.map(Value::from).or(unsigned.map(Value::from)).ok();
    };
    let digits = format!("{}{}", whole.trim_start_matches('-'), fraction.trim_end_matches('0'));
    let num_digits = digits.trim_start_matches('0').len();
    (num_digits <= 15).then(|| text.parse().ok().map(|value: f64| value.into())).flatten()
}

fn instants<T: ArrowPrimitiveType>(array: &dyn Array, unit: Unit) -> Values<'_>
where
    T::Native: Into<i64>,
{
    let array = array.as_primitive::<T>();
    Box::new(move |row| {
        let value = array.value(row).into();
        rfc3339(value, unit).map(Value::String).ok_or(BadValue::Instant(value, unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        for (text, expected) in [
            ("19.99", Some("19.99")),
            ("20.00", Some("20.0")),
            ("-0.50", Some("-0.5")),
            ("0.000000000000000000", Some("0.0")),
            ("123456789012345.0000", Some("123456789012345.0")),
            ("1234567890123456.5", None),
            ("18446744073709551615", Some("18446744073709551615")),
            ("18446744073709551616", None),
            ("-7", Some("-7")),
        ] {
            assert_eq!(decimal(text).map(|value| value.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn short_floats_are_what_was_meant() {
        assert_eq!(short_float(19.99).unwrap(), Value::from(19.99));
        assert_eq!(short_float(f32::MAX).unwrap().to_string(), "3.4028235e+38");
        assert!(matches!(short_float(f32::NAN), Err(BadValue::NotFinite(_))));
    }
}
