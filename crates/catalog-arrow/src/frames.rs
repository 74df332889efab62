//! The messages of an Arrow file or stream: where they are and how large.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use arrow_buffer::Buffer;
use arrow_ipc::{Message, RecordBatch};

use crate::error::Kind;

/// Limit on the unpacked size of the compressed buffers of one batch of Arrow, 4 GiB. What a file
/// says of its sizes decides what is allocated.
pub const MAX_UNPACKED_BYTES: u64 = 4 << 30;

const CONTINUATION: [u8; 4] = [0xff; 4];

/// A message and the bytes that follow it, somewhere in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    offset: u64,
    /// The message with the length before it.
    header_bytes: u64,
    body_bytes: u64,
}

impl Frame {
    /// Range of its bytes in the file.
    pub(crate) fn bytes(&self) -> Range<u64> {
        // Checked against the file's end when the frame was found.
        self.offset..self.offset + self.header_bytes + self.body_bytes
    }
}

/// A file whose frames are read one at a time.
pub(crate) struct FrameFile {
    file: File,
    len: u64,
}

impl FrameFile {
    pub(crate) fn new(file: File) -> Result<FrameFile, Kind> {
        let len = file.metadata()?.len();
        Ok(FrameFile { file, len })
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The frames of a stream, in order, up to its end mark or the end of the file.
    pub(crate) fn walk(&mut self) -> Result<Vec<Frame>, Kind> {
        let (mut frames, mut offset) = (Vec::new(), 0);
        while offset < self.len {
            let mut prefix = self.read(offset, 4)?;
            let mut prefix_bytes = 4;
            // Streams from before 2019 have no such mark.
            if prefix == CONTINUATION {
                prefix = self.read(offset + 4, 4)?;
                prefix_bytes = 8;
            }
            let length = i32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]);
            if length == 0 {
                break;
            }
            let length = u64::try_from(length)
                .map_err(|_| Kind::Damaged(format!("a message of {length} bytes")))?;
            let mut frame = Frame { offset, header_bytes: prefix_bytes + length, body_bytes: 0 };
            let header = self.header(frame)?;
            frame.body_bytes = body_bytes(message(&header)?.bodyLength())?;
            self.check_end(frame)?;
            frames.push(frame);
            offset += frame.header_bytes + frame.body_bytes;
        }
        Ok(frames)
    }

    /// The footer of an Arrow file.
    pub(crate) fn footer(&mut self) -> Result<Vec<u8>, Kind> {
        const MAGIC: &[u8] = b"ARROW1";
        let tail = self.read(self.len.saturating_sub(10), 10)?;
        if &tail[4..] != MAGIC {
            return Err(Kind::Damaged("its end mark is missing, as if it were cut off".into()));
        }
        let length = i32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let offset = u64::try_from(length).ok().and_then(|len| (self.len - 10).checked_sub(len));
        let offset = offset.ok_or_else(|| Kind::Damaged(format!("a footer of {length} bytes")))?;
        self.read(offset, self.len - 10 - offset)
    }

    /// A frame that a footer names.
    pub(crate) fn frame(&self, block: &arrow_ipc::Block) -> Result<Frame, Kind> {
        let frame = Frame {
            offset: body_bytes(block.offset())?,
            header_bytes: body_bytes(i64::from(block.metaDataLength()))?,
            body_bytes: body_bytes(block.bodyLength())?,
        };
        self.check_end(frame)?;
        Ok(frame)
    }

    /// The bytes of a frame's message.
    pub(crate) fn header(&mut self, frame: Frame) -> Result<Vec<u8>, Kind> {
        let mut header = self.read(frame.offset, frame.header_bytes)?;
        let prefix_bytes = if header.starts_with(&CONTINUATION) { 8 } else { 4 };
        if header.len() < prefix_bytes {
            return Err(Kind::Damaged("a message without a length".into()));
        }
        header.drain(..prefix_bytes);
        Ok(header)
    }

    /// The bytes after a frame's message.
    pub(crate) fn body(&mut self, frame: Frame) -> Result<Buffer, Kind> {
        Ok(Buffer::from_vec(self.read(frame.offset + frame.header_bytes, frame.body_bytes)?))
    }

    fn check_end(&self, frame: Frame) -> Result<(), Kind> {
        let end = frame.offset.checked_add(frame.header_bytes + frame.body_bytes);
        match end {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Kind::Damaged("a message beyond the end, as if it were cut off".into())),
        }
    }

    fn read(&mut self, offset: u64, count: u64) -> Result<Vec<u8>, Kind> {
        if offset.checked_add(count).is_none_or(|end| end > self.len) {
            return Err(Kind::Damaged("a message beyond the end, as if it were cut off".into()));
        }
        // Within the file, so it is no more than a file can be.
        let mut bytes = vec![0; count as usize];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// A size or place that must not be negative.
fn body_bytes(count: i64) -> Result<u64, Kind> {
    u64::try_from(count).map_err(|_| Kind::Damaged(format!("a size of {count} bytes")))
}

pub(crate) fn message(header: &[u8]) -> Result<Message<'_>, Kind> {
    arrow_ipc::root_as_message(header).map_err(|error| Kind::Damaged(error.to_string()))
}

/// Checks that the buffers of a batch lie in its body and do not unpack to too much.
pub(crate) fn check_buffers(batch: RecordBatch<'_>, body: &[u8]) -> Result<(), Kind> {
    let mut unpacked: u64 = 0;
    for buffer in batch.buffers().into_iter().flatten() {
        let (start, len) = (body_bytes(buffer.offset())?, body_bytes(buffer.length())?);
        let bytes = start
            .checked_add(len)
            .and_then(|end| body.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?))
            .ok_or_else(|| Kind::Damaged("a buffer beyond its message".into()))?;
        // A length of −1 says that the rest is not compressed.
        if batch.compression().is_some()
            && let Some(length) = bytes.first_chunk()
        {
            unpacked = unpacked.saturating_add(i64::from_le_bytes(*length).max(0) as u64);
        }
    }
    match unpacked > MAX_UNPACKED_BYTES {
        true => Err(Kind::Unpacked { bytes: unpacked }),
        false => Ok(()),
    }
}
