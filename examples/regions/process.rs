//! A service as a process of its own, which can be stopped as a machine that the world has lost is.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::UnboundedSender;

use super::{Region, Result};

const ROLE: &str = "LEASEHOLD_EXAMPLE_ROLE";

/// What a service is told when it is started.
pub struct Role {
    pub regions: Vec<Region>,
    pub own: usize,
    pub home: usize,
    pub ledger: PathBuf,
}

pub struct Service {
    child: Child,
    stdin: ChildStdin,
}

/// What this process is to be, if it is a service.
pub fn role() -> Option<Role> {
    let text = std::env::var(ROLE).ok()?;
    let mut parts = text.split('|');
    let mut next = || parts.next().map(str::to_owned);
    let (own, home, ledger) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.into());
    let regions = parts.filter_map(|part| part.split_once('='));
    let regions = regions.map(|(name, endpoint)| Region { name: name.into(), endpoint: endpoint.into() });
    Some(Role { regions: regions.collect(), own, home, ledger })
}

impl Service {
    /// Starts one, whose lines go to `heard` with its index.
    pub fn start(
        regions: &[Region],
        own: usize,
        home: usize,
        ledger: &Path,
        heard: UnboundedSender<(usize, String)>,
    ) -> Result<Self> {
        let mut role = format!("{own}|{home}|{}", ledger.display());
        for Region { name, endpoint } in regions {
            role += &format!("|{name}={endpoint}");
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let stdin = child.stdin.take().ok_or("no input")?;
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = heard.send((own, line));
            }
        });
        Ok(Self { child, stdin })
    }

    /// Its next write stops right before it is sent.
    pub async fn catch_the_next_write(&mut self) -> Result<()> {
        Ok(self.stdin.write_all(b"c").await?)
    }

    pub async fn let_it_write(&mut self) -> Result<()> {
        Ok(self.stdin.write_all(b"g").await?)
    }

    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().ok_or("it has ended")?;
        Ok(kill(Pid::from_raw(id.try_into()?), signal)?)
    }
}

/// A line to the scene, at once: a frozen process flushes nothing.
pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

/// Waits for one byte from the scene, and blocks all of this process while it does. Without a scene it ends.
pub fn hear() -> u8 {
    let mut byte = [0];
    match std::io::stdin().read_exact(&mut byte) {
        Ok(()) => byte[0],
        Err(_) => std::process::exit(0),
    }
}
