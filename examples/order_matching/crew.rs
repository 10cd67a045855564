//! The story of one run: the first worker is frozen, the second one takes its place, and then the first one wakes up.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::book::{Book, Result};
use crate::process::Process;
use crate::worker::Task;
use crate::{Guard, Run};

/// One run of the three workers, and what was seen of it besides the trades.
pub struct Story {
    pub frozen_for: Duration,
    /// Of the frozen worker, and of the one that took over meanwhile.
    pub tokens: String,
    /// How many writes the fence has refused.
    pub refused: usize,
}

impl Story {
    pub fn tell(run: &Run, book: &dyn Book) -> Result<Self> {
        let mut first = start(run, 1, true)?;
        let told = first.until("about to write")?;
        freeze(&first, book)?;
        let begin = Instant::now();
        let batch = told.last().expect("the rest of that line");
        println!("  worker 1 is about to write batch {batch}, and is frozen");

        let mut second = start(run, 2, true)?;
        let tokens = takeover(run.guard, &told, &second.until("about to write")?)?;
        let frozen_for = begin.elapsed();
        println!("  worker 2 is about to write the same batch, {:.1} s later", frozen_for.as_secs_f64());

        // The word is there before it wakes up: the first thing that it does is to write.
        first.hears("go on")?;
        first.thaw()?;
        let late = first.until("wrote")?.concat();
        println!("  worker 1 wakes up and writes: batch {late}");

        second.hears("go on")?;
        let third = start(run, 3, false)?;
        let mut told = vec![late];
        for worker in [first, second, third] {
            told.extend(worker.until("done")?);
        }
        println!("  all is matched");
        let refused = told.iter().filter(|line| line.ends_with(" is refused")).count();
        Ok(Self { frozen_for, tokens, refused })
    }
}

/// The process is this program again.
fn start(run: &Run, number: usize, pauses: bool) -> Result<Process> {
    Ok(Process::start(Command::new(std::env::current_exe()?).args(Task::args(run, number, pauses)))?)
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

/// Both tokens, from what the frozen worker has told before and the next one meanwhile.
fn takeover(guard: Guard, first: &[String], second: &[String]) -> Result<String> {
    let token = |told: &[String]| told.iter().find_map(|line| line.strip_prefix("holds ")?.parse::<u64>().ok());
    match (token(first), token(second)) {
        _ if guard == Guard::None => Ok("-".into()),
        (Some(old), Some(new)) if old < new => Ok(format!("{old}, {new}")),
        other => Err(format!("nobody has taken over with a higher token: {other:?}").into()),
    }
}
