//! A small disk that tests fill and free.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A file system in memory, unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// A disk of so many KiB; `None`, which is said on standard error, where none can be mounted,
    /// since that takes root.
    ///
    /// # Panics
    /// When there is no folder for it.
    pub fn mount(kib: u32) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]).arg(dir.path());
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        if !is_mounted {
            eprintln!(
                "PASSED OVER: no small disk can be mounted here (mount -t tmpfs): it takes root"
            );
        }
        is_mounted.then_some(Self(dir))
    }

    /// Folder of it.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room there is.
    ///
    /// # Panics
    /// When no file can be made.
    pub fn fill(&self) {
        let zeros = vec![0; 1 << 16];
        let mut file = File::create(self.path().join("ballast")).expect("a file");
        while file.write_all(&zeros).is_ok() {}
    }

    /// Gives that room back.
    ///
    /// # Panics
    /// When it was not taken.
    pub fn free(&self) {
        std::fs::remove_file(self.path().join("ballast")).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Files that are open yet go with their process.
        _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}
