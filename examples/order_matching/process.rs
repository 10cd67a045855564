//! A second process of the same program: it tells what it does, and can be frozen like one that the system has
//! suspended.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process. It ends with this value.
pub struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Others may print as well, on the same line even.
                if let Some((_, told)) = line.split_once('@') {
                    let _ = sender.send(told.to_owned());
                }
            }
        });
        Ok(Self { child, input, lines })
    }

    /// What it has told until it told this, and the rest of that line last.
    pub fn until(&self, what: &str) -> io::Result<Vec<String>> {
        let until = Instant::now() + PATIENCE;
        let mut told = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.map_err(|error| io::Error::other(format!("the process never told {what:?}: {error}")))?;
            if let Some(rest) = line.strip_prefix(what) {
                told.push(rest.trim().to_owned());
                return Ok(told);
            }
            told.push(line);
        }
    }

    /// Stops all of its threads, wherever they are. Returns when they are stopped.
    pub fn freeze(&self) -> io::Result<()> {
        kill(self.id(), Signal::SIGSTOP)?;
        match waitpid(self.id(), Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(()),
            other => Err(io::Error::other(format!("it was to be stopped: {other:?}"))),
        }
    }

    /// Lets it go on where it was.
    pub fn thaw(&self) -> io::Result<()> {
        Ok(kill(self.id(), Signal::SIGCONT)?)
    }

    /// A line for it to read.
    pub fn hears(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.input, "{line}")
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().expect("a process id"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line to the parent, at once: a frozen or killed process flushes nothing.
pub fn tell(what: &str, value: impl fmt::Display) {
    let mut out = io::stdout().lock();
    out.write_all(format!("@{what} {value}\n").as_bytes()).expect("the parent listens");
    out.flush().expect("the parent listens");
}
