//! What the workers say, in one order, stamped by the clock of the harness.
//!
//! A worker's own clock may be faked or its process stopped, so it stamps nothing. It says a line and waits until the
//! harness has stamped it. Of a hold, the journal keeps a part that is certainly inside: from a stamp after the
//! acquire has returned, to the last stamp after which the worker still saw that it held.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A line of a worker.
#[derive(Clone, Debug)]
pub struct Entry {
    pub at: Duration,
    pub worker: usize,
    /// Which of the processes in that worker's place.
    pub life: usize,
    pub lease: String,
    pub said: Said,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is about to acquire.
    Begins,
    /// Its acquire has returned.
    Granted(u64),
    /// It is about to look whether it holds.
    Looks(u64),
    /// When it had said `Looks`, it did.
    Held(u64),
    /// The write that followed was refused by the resource.
    Stale(u64),
    /// It sees that it has lost it.
    Lost(u64),
    /// It is about to let go of it: to release it, to close it, or to hand it over.
    Releases(u64),
    /// That was a closing release, and it is recorded: for so many milliseconds nobody may hold it.
    Closed(u64),
    /// That was a hand-over, and others can find it.
    Handed(u64),
    /// What was granted was taken up from a hand-over.
    Resumed(u64),
    /// As an operator, it has revoked whoever has this token.
    Revoked(u64),
    /// As an operator, it has asked whoever has this token to finish.
    Asked(u64),
    /// As an operator, it is about to force whoever has this token out.
    Forces(u64),
    /// That is done: others may hold it at once.
    Forced(u64),
    /// Nothing was done: it was over with that grant before.
    Spared(u64),
    /// What was granted was granted by an election.
    Elected(u64),
    /// It is about to read its clocks.
    Reads,
    /// What they said: those of a [`Stamp`](leasehold::Stamp), in its order.
    Clocks([u64; 4]),
}

impl Said {
    fn parse(word: &str, numbers: &[u64]) -> Option<Self> {
        if word == "clocks" {
            return numbers.try_into().ok().map(Self::Clocks);
        }
        let [token] = *numbers else { return None };
        Some(match word {
            "begins" => Self::Begins,
            "granted" => Self::Granted(token),
            "looks" => Self::Looks(token),
            "held" => Self::Held(token),
            "stale" => Self::Stale(token),
            "lost" => Self::Lost(token),
            "releases" => Self::Releases(token),
            "closed" => Self::Closed(token),
            "handed" => Self::Handed(token),
            "resumed" => Self::Resumed(token),
            "revoked" => Self::Revoked(token),
            "asked" => Self::Asked(token),
            "forces" => Self::Forces(token),
            "forced" => Self::Forced(token),
            "spared" => Self::Spared(token),
            "elected" => Self::Elected(token),
            "reads" => Self::Reads,
            _ => return None,
        })
    }
}

/// The harness's side.
pub struct Journal {
    pub began: Instant,
    /// The wall clock then.
    pub epoch: Duration,
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl Journal {
    pub fn open(socket: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let journal = Self { began: Instant::now(), epoch, entries: Arc::default() };
        let (began, entries) = (journal.began, journal.entries.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let entries = entries.clone();
                std::thread::spawn(move || listen(stream, began, &entries));
            }
        });
        Ok(journal)
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// Who was granted this lease last and has not let go of it.
    pub fn holder(&self, lease: &str) -> Option<usize> {
        let entries = self.entries.lock().unwrap();
        let of_lease = entries.iter().rev().filter(|entry| entry.lease == lease);
        let last = of_lease.clone().find(|entry| matches!(entry.said, Said::Granted(_)))?;
        let over = of_lease.clone().any(|entry| {
            // Another process in its place does not hold what that one held.
            let ended = matches!(entry.said, Said::Lost(_) | Said::Releases(_)) || entry.life != last.life;
            ended && entry.at > last.at && entry.worker == last.worker
        });
        (!over).then_some(last.worker)
    }
}

fn listen(stream: UnixStream, began: Instant, entries: &Mutex<Vec<Entry>>) {
    let Ok(mut answers) = stream.try_clone() else { return };
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        // The lock comes first: the entries are in the order of their stamps.
        let mut entries = entries.lock().unwrap();
        let at = began.elapsed();
        let entry = parse(at, &line).unwrap_or_else(|| panic!("a worker says: {line}"));
        entries.push(entry);
        drop(entries);
        if answers.write_all(b".").is_err() {
            return;
        }
    }
}

fn parse(at: Duration, line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let (worker, life) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (lease, word) = (words.next()?.to_owned(), words.next()?);
    let numbers: Option<Vec<_>> = words.map(|number| number.parse().ok()).collect();
    let said = Said::parse(word, &numbers?)?;
    Some(Entry { at, worker, life, lease, said })
}

/// A worker's side.
pub struct Pen {
    stream: UnixStream,
    who: String,
}

impl Pen {
    pub fn new(socket: &Path, worker: usize, life: usize, lease: &str) -> io::Result<Self> {
        Ok(Self { stream: UnixStream::connect(socket)?, who: format!("{worker} {life} {lease}") })
    }

    /// Returns once it is stamped. The process ends where nobody listens any more.
    pub fn says(&self, word: &str, what: impl Display) {
        let (line, mut stream) = (format!("{} {word} {what}\n", self.who), &self.stream);
        let said = stream.write_all(line.as_bytes()).and_then(|()| stream.read_exact(&mut [0]));
        if said.is_err() {
            std::process::exit(0);
        }
    }
}
