//! The book in Azure: a blob of lines, with the fence in its metadata. The leases are in the same container.

use std::time::Duration;

use async_trait::async_trait;
use leasehold::azure_blob::FencedBlob;
use leasehold::fence::FenceError;
use leasehold::{Error, ErrorKind, FencingToken, Leases};

use crate::Run;
use crate::book::{Book, Found, Ground, Result, Trade};
use crate::text::{from_text, to_text};

#[path = "../from_env/azure.rs"]
mod from_env;

/// The shortest that the service gives.
const TTL: Duration = Duration::from_secs(15);
/// How often a write is sent, if the network fails or others write as well.
const TRIES: usize = 100;

struct Lines(FencedBlob);

pub async fn open(run: &Run) -> Result<Ground> {
    let place = from_env::Place::find()?;
    let leases = Leases::builder(place.store().await?).prefix(format!("{}/", run.name())).ttl(TTL);
    Ok(Ground { leases, book: Box::new(Lines(place.blob(&format!("{}.book", run.name()))?)) })
}

#[async_trait]
impl Book for Lines {
    async fn begin(&mut self, batch: usize, fence: Option<FencingToken>) -> Result<Found> {
        Ok(match self.appended(fence, "").await? {
            None => Found::Refused,
            Some(lines) if lines.lines().any(|line| batch_of(line) == Some(batch)) => Found::Matched,
            Some(_) => Found::Open,
        })
    }

    async fn record(
        &mut self,
        batch: usize,
        write: &str,
        trades: &[Trade],
        fence: Option<FencingToken>,
    ) -> Result<bool> {
        let line = format!("{batch};{write};{}\n", to_text(trades));
        Ok(self.appended(fence, &line).await?.is_some())
    }

    async fn trades(&mut self) -> Result<Vec<Trade>> {
        let highest = FencingToken::new(FencingToken::MAX);
        let lines = self.appended(highest, "").await?.unwrap_or_default();
        let trades = lines.lines().map(|line| from_text(line.rsplit(';').next().unwrap_or_default()));
        Ok(trades.collect::<Result<Vec<_>>>()?.concat())
    }
}

impl Lines {
    /// The lines, with this one at the end. `None`: a higher token has been here, and nothing was written.
    async fn appended(&self, fence: Option<FencingToken>, line: &str) -> Result<Option<String>> {
        // The lowest token, for everybody, compares nothing.
        let token = fence.or(FencingToken::new(1)).ok_or("1 is a token")?;
        let mut last = None;
        for _ in 0..TRIES {
            match self.append(token, line).await {
                Ok(lines) => return Ok(Some(lines)),
                Err(error) if error.stale().is_some() => return Ok(None),
                Err(error) if may_pass(&error) => last = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(format!("{TRIES} tries: {}", last.map(|error| error.to_string()).unwrap_or_default()).into())
    }

    async fn append(&self, token: FencingToken, line: &str) -> std::result::Result<String, FenceError<Error>> {
        let mut blob = self.0.raise(token).await?; // first the fence, and only then the read
        let mut lines = String::from_utf8_lossy(&blob.read().await?).into_owned();
        // It is there already, if the answer of an earlier try was lost; an empty one always is.
        if !lines.contains(line) {
            lines.push_str(line);
            blob.write(&lines).await?;
        }
        Ok(lines)
    }
}

/// Without a fence others write in between; and after a freeze the connections are closed.
fn may_pass(error: &FenceError<Error>) -> bool {
    match error {
        FenceError::Overtaken { .. } | FenceError::Contended { .. } => true,
        FenceError::Store(error) | FenceError::InDoubt { error, .. } => error.kind() == ErrorKind::Unavailable,
        _ => false,
    }
}

fn batch_of(line: &str) -> Option<usize> {
    line.split(';').next()?.parse().ok()
}
