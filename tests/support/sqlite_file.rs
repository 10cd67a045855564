//! A SQLite file of one test's own.
#![allow(unreachable_pub, reason = "a module of several tests")]

use std::path::{Path, PathBuf};

/// A file that is removed in the end, with what SQLite keeps beside it.
pub struct File(PathBuf);

impl File {
    /// `of` tells one test binary from another, `name` one test.
    pub fn new(of: &str, name: &str) -> Self {
        let file = Self(std::env::temp_dir().join(format!("leasehold-{of}-{}-{name}.db", std::process::id())));
        file.remove();
        file
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}
