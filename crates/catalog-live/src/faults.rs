//! A file of the log that fails, for tests.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::wal::LogFile;

/// Faults of the file that is written to by this thread: room, and the calls that fail next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) room: u64,
    pub(crate) lens: u32,
    pub(crate) forces: u32,
    pub(crate) opens: u32,
}

pub(crate) const NO_FAULTS: Faults = Faults { room: u64::MAX, lens: 0, forces: 0, opens: 0 };

thread_local! {
    pub(crate) static FAULTS: Cell<Faults> = const { Cell::new(NO_FAULTS) };
}

fn fail(of: impl Fn(&mut Faults) -> &mut u32) -> io::Result<()> {
    let mut faults = FAULTS.get();
    let left = of(&mut faults);
    if *left == 0 {
        return Ok(());
    }
    *left -= 1;
    FAULTS.set(faults);
    Err(io::Error::other("a fault"))
}

#[derive(Debug)]
struct Faulty(File);

impl LogFile for Faulty {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let room = FAULTS.get().room.saturating_sub(offset).min(bytes.len() as u64) as usize;
        LogFile::write_at(&mut self.0, offset, &bytes[..room])?;
        match room < bytes.len() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        fail(|faults| &mut faults.lens)?;
        self.0.set_len(len)
    }

    fn force(&mut self) -> io::Result<()> {
        fail(|faults| &mut faults.forces)?;
        self.0.sync_data()
    }
}

pub(crate) fn open_faulty(path: &Path) -> io::Result<Box<dyn LogFile>> {
    fail(|faults| &mut faults.opens)?;
    Ok(Box::new(Faulty(OpenOptions::new().write(true).open(path)?)))
}
