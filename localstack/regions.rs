//! Two global tables' worth of regions, as processes of their own see them: what no emulator has. One set replicates
//! with a lag (MREC), the other one is strongly consistent (MRSC).
//!
//! Binds loopback only. On the given port it tells where the regions are, as lines for a shell; it serves until its
//! process is ended.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

#[path = "../tests/support/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the tests' own double, of which this uses one part")]
mod support;

use support::global_table::{GlobalTable, Replication};

const REGIONS: [&str; 3] = ["eu-central-1", "us-east-1", "ap-northeast-1"];
const LAG: Duration = Duration::from_millis(400);
const WRITE: Duration = Duration::from_millis(30);

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let strong = GlobalTable::start(&REGIONS, Replication::Strong { write: WRITE });
    let eventual = GlobalTable::start(&REGIONS, Replication::Eventual { lag: LAG });
    let lines =
        format!("LEASEHOLD_STRONG_REGIONS={}\nLEASEHOLD_EVENTUAL_REGIONS={}\n", strong.regions(), eventual.regions());
    for stream in listener.incoming() {
        let mut stream = stream?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        // Whatever the question is.
        let _ = stream.read(&mut [0; 1024]);
        let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{lines}", lines.len());
    }
    Ok(())
}
