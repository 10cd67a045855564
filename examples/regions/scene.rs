//! What happens, in order.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::process::Service;
use super::way::Way;
use super::{Example, Region, Result};

/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(120);

struct Row {
    event: String,
    at: Option<Duration>,
    holder: String,
    token: String,
}

struct Scene {
    names: Vec<String>,
    heard: UnboundedReceiver<(usize, String)>,
    killed: Option<Instant>,
    rows: Vec<Row>,
}

pub async fn play(example: &Example) -> Result<()> {
    let regions = (example.regions)()?;
    (example.prepare)(regions.clone()).await?;
    let folder = std::env::temp_dir().join(format!("leasehold-regions-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let ledger = folder.join("ledger.db");
    let mut ways = Vec::new();
    for region in &regions {
        ways.push(Way::to(region).await?);
    }
    let ways_in: Vec<Region> = ways.iter().map(|way| way.region.clone()).collect();
    let (tell, heard) = unbounded_channel();
    let start = |own: usize, home: usize| Service::start(&ways_in, own, home, &ledger, tell.clone());

    let names = regions.iter().map(|region| region.name.clone()).collect();
    let mut scene = Scene { names, heard, killed: None, rows: Vec::new() };
    // The first one holds first, so that a home can be lost.
    let mut services = vec![start(0, 0)?];
    let (old, first) = scene.until("holds", |_| true).await?;
    scene.note("holds the lease, settles", old, &first);
    for own in 1..regions.len() {
        services.push(start(own, 0)?);
    }
    scene.until("settled", |own| own == old).await?;

    services[old].catch_the_next_write().await?;
    scene.until("writes", |own| own == old).await?;
    services[old].freeze()?;
    ways[old].cut();
    scene.killed = Some(Instant::now());
    scene.note("is killed, between its check and its write", old, &first);

    if example.has_home {
        // As the guide says: stop, wait a term, and start with the new home.
        services.truncate(1);
        sleep(example.ttl).await;
        let home = 1;
        scene.note("is the home now, after a pause of one term", home, "");
        for own in 1..regions.len() {
            services.push(start(own, home)?);
        }
    }
    let (new, second) = scene.until("holds", |own| own != old).await?;
    scene.note("has taken over, raises the fence, settles", new, &second);
    scene.until("settled", |own| own == new).await?;

    if !example.has_home {
        ways[old].mend();
    }
    // A home that was moved stays shut: what a process from before writes there would undo the new home's record.
    services[old].thaw()?;
    services[old].let_it_write().await?;
    let (_, late) = scene.until("refused", |own| own == old).await?;
    scene.note("wakes up: its late write is REFUSED", old, &late);
    let (still, third) = scene.until("settled", |own| own != old).await?;
    scene.note("goes on", still, &third);

    drop(services);
    let _ = std::fs::remove_dir_all(&folder);
    scene.print(example.title);
    if first.parse::<u64>()? < second.parse::<u64>()? && late == first && third == second {
        return Ok(());
    }
    Err("this is not what should have happened: the new token has to be higher, and the old one refused".into())
}

impl Scene {
    /// Waits for a service to say this. What is said before is left behind.
    async fn until(&mut self, what: &str, who: impl Fn(usize) -> bool) -> Result<(usize, String)> {
        let found = async {
            loop {
                let (own, line) = self.heard.recv().await.ok_or("all services have ended")?;
                match line.split_once(' ') {
                    Some((said, token)) if said == what && who(own) => return Ok((own, token.to_owned())),
                    _ => {}
                }
            }
        };
        timeout(PATIENCE, found).await.map_err(|_| format!("no service said `{what}` in {PATIENCE:?}"))?
    }

    fn note(&mut self, event: &str, own: usize, token: &str) {
        let at = self.killed.map(|killed| killed.elapsed());
        let (event, holder, token) = (event.to_owned(), self.names[own].clone(), token.to_owned());
        self.rows.push(Row { event, at, holder, token });
    }

    fn print(&self, title: &str) {
        println!("{title}\n");
        println!("{:<16} {:<46} {:>12}  token", "region", "event", "after kill");
        for Row { event, at, holder, token } in &self.rows {
            let at = at.map_or_else(|| "-".to_owned(), |at| format!("{:.1} s", at.as_secs_f64()));
            println!("{holder:<16} {event:<46} {at:>12}  {token}");
        }
    }
}
