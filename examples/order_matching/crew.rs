//! The story of one run: one worker begins and is frozen, the others come, and when all is matched it wakes up.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::book::{Book, Result};
use crate::process::Process;
use crate::worker::Task;
use crate::{Guard, Run};

/// How many workers come while the first one is frozen.
const OTHERS: usize = 2;

/// What was seen besides the trades.
pub struct Story {
    pub frozen_for: Duration,
    /// Of the frozen worker, and of the one that took over.
    pub tokens: String,
    /// How many late writes the fence has refused.
    pub refused: usize,
}

impl Story {
    pub fn tell(run: &Run, book: &dyn Book) -> Result<Self> {
        let mut first = start(run, 1, true)?;
        let told = first.until("about to write")?;
        let old = tokens(&told);
        freeze(&first, book)?;
        let begin = Instant::now();
        println!("  worker 1 has matched batch {} and is frozen right before it records it", told[told.len() - 1]);

        let others = (2..).take(OTHERS).map(|number| start(run, number, false)).collect::<Result<Vec<_>>>()?;
        let told = others.iter().map(|other| other.until("done")).collect::<std::io::Result<Vec<_>>>()?;
        let new = tokens(&told.concat());
        let frozen_for = begin.elapsed();
        println!("  the others have matched all that was open, {:.1} s later", frozen_for.as_secs_f64());

        // The word is there before it wakes up: it does nothing but write.
        first.hears("go on")?;
        first.thaw()?;
        let refused = first.until("done")?.iter().filter(|line| line.starts_with("refused")).count();
        println!("  worker 1 wakes up and writes: {}", if refused > 0 { "refused" } else { "accepted" });
        Ok(Self { frozen_for, tokens: takeover(run.guard, &old, &new)?, refused })
    }
}

/// The process is this program again.
fn start(run: &Run, number: usize, freezes: bool) -> Result<Process> {
    Ok(Process::start(Command::new(std::env::current_exe()?).args(Task::args(run, number, freezes)))?)
}

/// Not while it keeps something locked, a renewal in the background say: nobody could go on then.
fn freeze(worker: &Process, book: &dyn Book) -> Result<()> {
    loop {
        worker.freeze()?;
        if book.is_unlocked() {
            return Ok(());
        }
        worker.thaw()?;
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn tokens(told: &[String]) -> Vec<u64> {
    told.iter().filter_map(|line| line.strip_prefix("holds ")?.parse().ok()).collect()
}

/// `old` are the tokens of the frozen worker before it was frozen, `new` those of the others meanwhile.
fn takeover(guard: Guard, old: &[u64], new: &[u64]) -> Result<String> {
    match (old.last(), new.iter().min()) {
        _ if guard == Guard::None => Ok("-".into()),
        (Some(old), Some(new)) if old < new => Ok(format!("{old}, {new}")),
        _ => Err(format!("nobody has taken over with a higher token: {old:?}, {new:?}").into()),
    }
}
