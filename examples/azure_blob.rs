//! A lease in an Azure Blob container: on Azurite, or on the real thing, by environment alone.
//!
//! On Azurite, with its published account and key:
//! ```sh
//! export AZURE_STORAGE_CONTAINER_URL=http://127.0.0.1:10000/devstoreaccount1/leases
//! export AZURE_STORAGE_ACCOUNT=devstoreaccount1
//! export AZURE_STORAGE_KEY=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
//! cargo run --features azure-blob --example azure_blob
//! ```
//! On the real thing the URL is `https://ACCOUNT.blob.core.windows.net/CONTAINER`. In place of account and key,
//! `AZURE_STORAGE_SAS_TOKEN` will do, or a signature in the URL; then the container has to be there already.

use std::time::Duration;

use leasehold::{Attempt, Error, Leases};

#[path = "from_env/azure.rs"]
mod from_env;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = from_env::Place::find()?.store().await?;
    let leases = Leases::builder(store.clone()).prefix("example/").holder("first").build()?;
    let rival = Leases::builder(store).prefix("example/").holder("rival").build()?;

    let lease = leases.acquire_within("report", Duration::from_secs(100)).await?; // a dead run's term, and its minute
    println!("first has {} with token {}", lease.name(), lease.token());

    match rival.try_acquire("report").await? {
        Attempt::Held(by) => println!("rival is told: {by}"),
        Attempt::Acquired(lease) => println!("rival got it too?! token {}", lease.token()),
    }

    let token = lease
        .run(|held| async move {
            held.ensure(Duration::from_secs(5)).await?;
            println!("first works for at least 5 s more; {:?} remain", held.remaining());
            Ok::<_, Error>(held.token())
        })
        .await?;

    let lease = rival.acquire_within("report", Duration::from_secs(5)).await?;
    println!("after the release rival has it with token {} > {token}", lease.token());
    lease.release().await?;
    Ok(())
}
