//! What a worker process is told, and what it has of the run for that.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::{Error, Handover, Leases, Renewal, Store, Takeover};
use serde::{Deserialize, Serialize};

use super::journal::Pen;
use super::plan::{Chance, Options, Role};

/// Files of this name say why a worker has panicked.
pub const PANICKED: &str = "panicked-";
const VARIABLE: &str = "LEASEHOLD_BLACKBOX_ASSIGNMENT";

/// What one process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    pub worker: usize,
    /// Counts the processes in this worker's place.
    pub life: usize,
    pub seed: u64,
    pub role: Role,
    pub folder: PathBuf,
    /// Its own proxy, as `ADDRESS:PORT`.
    pub proxy: String,
    /// The table, or the container's path.
    pub place: String,
    pub options: Options,
    pub broken: Option<String>,
    pub bad_habit: Option<BadHabit>,
    /// Whether it tells what its clocks say.
    pub tells_clocks: bool,
}

/// What users of the library must not do: for controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BadHabit {
    /// Takes a lease that was granted for held until the work is done.
    NeverLooks,
    /// Writes without asking the fence.
    NoFence,
}

impl Assignment {
    pub fn variable(&self) -> (&'static str, String) {
        (VARIABLE, serde_json::to_string(self).expect("plain values"))
    }

    /// That of this process.
    pub fn of_this_process() -> Self {
        let text = std::env::var(VARIABLE).expect("a worker has an assignment");
        serde_json::from_str(&text).expect("as it was written")
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("journal")
    }

    /// A worker that panics ends as a whole, and the judge hears of it.
    pub fn leave_word_of_panics(&self) {
        let file = self.folder.join(format!("{PANICKED}{}.{}", self.worker, self.life));
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // At the end of a run the folder is gone, and nobody judges any more.
            _ = std::fs::write(&file, info.to_string());
            before(info);
            std::process::abort();
        }));
    }

    pub fn pen(&self, lease: &str) -> Pen {
        Pen::new(&self.socket(), self.worker, self.life, lease).unwrap_or_else(|_| std::process::exit(0))
    }

    /// Is there once the faults are over.
    pub fn healed(&self) -> PathBuf {
        self.folder.join("healed")
    }

    fn handover(&self, lease: &str) -> PathBuf {
        self.folder.join(format!("{lease}.handover"))
    }

    /// Leaves it where every process finds it.
    pub fn leave(&self, handover: &Handover) {
        let text = serde_json::to_string(handover).expect("plain values");
        let draft = self.folder.join(format!("{}.{}.draft", self.worker, handover.name()));
        std::fs::write(&draft, text).expect("a folder of the run's own");
        std::fs::rename(&draft, self.handover(handover.name().as_str())).expect("a folder of the run's own");
    }

    /// One that somebody has left. Often it stays there, so that others find it too.
    pub fn find_handover(&self, lease: &str, chance: &Chance) -> Option<Handover> {
        let path = self.handover(lease);
        let found = std::fs::read_to_string(&path).ok()?;
        if chance.per_mille(500) {
            // Somebody else may have taken it away.
            let _ = std::fs::remove_file(&path);
        }
        Some(serde_json::from_str(&found).expect("renamed when it was whole"))
    }

    /// How long it works. Who never looks works for so many terms.
    pub fn span(&self, ms: u64, terms: u64) -> Duration {
        Duration::from_millis(if self.never_looks() { self.options.ttl_ms * terms } else { ms })
    }

    pub fn never_looks(&self) -> bool {
        self.bad_habit == Some(BadHabit::NeverLooks)
    }

    pub fn name(&self) -> String {
        format!("{}.{}", self.worker, self.life)
    }

    pub fn chance(&self, stream: u64) -> Chance {
        Chance::new(self.seed, 1000 + stream + 10 * self.worker as u64 + 1000 * self.life as u64)
    }

    pub fn client(&self, store: impl Store) -> Result<Leases, Error> {
        let Options { ttl_ms, margin_ms, poll_ms, thread, observed_only } = self.options;
        Leases::builder(store)
            .ttl(Duration::from_millis(ttl_ms))
            .margin(Duration::from_millis(margin_ms))
            .poll(Duration::from_millis(poll_ms))
            .renewal(if thread { Renewal::Thread } else { Renewal::Task })
            .takeover(if observed_only { Takeover::ObservedOnly } else { Takeover::StoreTime })
            .build()
    }
}
