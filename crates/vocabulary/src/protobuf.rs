//! Protobuf wire format: the fields of one message, borrowed from its bytes.

/// Fields of a message in the order of its bytes. After an error there are no more.
///
/// Nothing is allocated, and every field is within the message.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    /// Offset of the end of `rest` in the file.
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    /// A string, a message or packed numbers.
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// A message that is cut off or damaged: where in the file, and by what sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}, {reason}")]
pub(crate) struct WireError {
    at: usize,
    reason: &'static str,
}

impl<'a> Fields<'a> {
    /// The fields of a message that ends at this offset of its file.
    pub(crate) fn new(message: &'a [u8], end: usize) -> Self {
        Self { rest: message, end }
    }

    /// Offset in the file of the next field, or behind the last one read.
    pub(crate) fn at(&self) -> usize {
        self.end - self.rest.len()
    }

    fn error(&self, reason: &'static str) -> WireError {
        WireError { at: self.at(), reason }
    }

    fn take(&mut self, num: u64) -> Result<&'a [u8], WireError> {
        let split = usize::try_from(num).ok().and_then(|num| self.rest.split_at_checked(num));
        let (taken, rest) =
            split.ok_or_else(|| self.error("a field is longer than what is left"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error("a number is longer than ten bytes"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.try_into().expect("as many were taken"))
    }

    fn field(&mut self) -> Result<(u64, Field<'a>), WireError> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let num = self.varint()?;
                Field::Bytes(self.take(num)?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(self.error("a field is of no kind that protobuf has")),
        };
        match key >> 3 {
            0 => Err(self.error("a field has the number 0")),
            number => Ok((number, field)),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_field_is_read() {
        let message =
            [0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1A, 2, b'h', b'i', 0x25, 2, 0, 0, 0];
        let fields: Result<Vec<_>, _> = Fields::new(&message, message.len()).collect();
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Fixed64(1)),
            (3, Field::Bytes(b"hi")),
            (4, Field::Fixed32(2)),
        ];
        assert_eq!(fields.unwrap(), expected);
    }

    #[test]
    fn damaged_messages_are_errors() {
        let error = |message: &[u8]| {
            let fields: Result<Vec<_>, _> = Fields::new(message, message.len()).collect();
            fields.unwrap_err().to_string()
        };
        assert_eq!(error(&[0x08]), "at byte 1, a field is longer than what is left");
        assert_eq!(error(&[0x0A, 5, 1]), "at byte 2, a field is longer than what is left");
        assert_eq!(error(&[0xFF; 11]), "at byte 10, a number is longer than ten bytes");
        assert_eq!(error(&[0x0B]), "at byte 1, a field is of no kind that protobuf has");
        assert_eq!(error(&[0x02, 0]), "at byte 2, a field has the number 0");
    }
}
