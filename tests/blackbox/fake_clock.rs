//! Clocks of workers that libfaketime changes; the harness's own is out of its reach.

use std::path::PathBuf;

use super::plan::FakeClock;

/// Where Debian and its children keep it.
const PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

impl FakeClock {
    /// What a process needs in its environment.
    ///
    /// # Panics
    /// Where libfaketime is not installed: a run that needs it fails.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let library = PLACES.iter().map(PathBuf::from).find(|place| place.exists());
        let library = library.expect("libfaketime is not installed: apt-get install faketime");
        let mut variables = vec![("LD_PRELOAD", library.display().to_string()), ("FAKETIME", self.spec.clone())];
        if self.wall_only {
            variables.push(("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()));
        }
        variables
    }
}
