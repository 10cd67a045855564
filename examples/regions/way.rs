//! A way to a region's store that can be cut: a forwarder on a port of its own.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Region, Result};

pub struct Way {
    /// The region, with this way's own endpoint.
    pub region: Region,
    cut: Arc<watch::Sender<bool>>,
}

impl Way {
    pub async fn to(region: &Region) -> Result<Self> {
        let (host, path) = split(&region.endpoint);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}{path}", listener.local_addr()?);
        let cut = Arc::new(watch::Sender::new(false));
        tokio::spawn(forward(listener, host.to_owned(), cut.clone()));
        Ok(Self { region: Region { name: region.name.clone(), endpoint }, cut })
    }

    /// Nobody reaches the store any more; what is under way breaks.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    pub fn mend(&self) {
        self.cut.send_replace(false);
    }
}

/// `host:port`, and the path behind it.
fn split(endpoint: &str) -> (&str, &str) {
    let rest = endpoint.trim_start_matches("http://");
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

async fn forward(listener: TcpListener, to: String, cut: Arc<watch::Sender<bool>>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let (to, mut cut) = (to.clone(), cut.subscribe());
        tokio::spawn(async move {
            if *cut.borrow() {
                return;
            }
            if let Ok(mut store) = TcpStream::connect(to).await {
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut store) => {}
                    _ = cut.wait_for(|cut| *cut) => {}
                }
            }
        });
    }
}
