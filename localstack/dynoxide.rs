//! The DynamoDB emulator of the tests as a process of its own: one region's tables, in memory.
//!
//! Binds 127.0.0.1 on the given port (0, the default: a free one), prints the address on one line, and serves until
//! its stdin closes. So it ends with the process that holds the other end, however that one ends.

use std::error::Error;
use std::io::{Write, sink, stdin, stdout};
use std::net::Ipv4Addr;

use dynoxide::{Database, server};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let database = Database::memory()?;

    std::thread::spawn(exit_with_stdin);
    writeln!(stdout(), "{}", listener.local_addr()?)?;
    server::serve_on(listener, database).await;
    Ok(())
}

/// In a plain thread, because a read of stdin cannot be cancelled: it would keep a runtime from ending.
fn exit_with_stdin() {
    let _ = std::io::copy(&mut stdin(), &mut sink());
    std::process::exit(0);
}
