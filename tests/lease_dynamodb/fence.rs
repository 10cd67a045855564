//! A fenced write at DynamoDB itself: the last line of defence, which needs no clock.

use std::sync::mpsc;
use std::thread;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::{FencingToken, Leases};
use tokio::runtime::Builder;

use crate::ground::{Ground, Item, TABLE, number, soon, text};
use crate::support::emulator;

/// Writes a document of the application's, unless a later holder has written it. Whether it was written.
async fn fenced_write(client: &Client, content: &str, token: FencingToken) -> bool {
    let update = client
        .update_item()
        .table_name(TABLE)
        .key("pk", AttributeValue::S("document".into()))
        .update_expression("SET content = :c, fence = :t")
        .condition_expression("attribute_not_exists(fence) OR fence <= :t")
        .expression_attribute_values(":c", AttributeValue::S(content.into()))
        .expression_attribute_values(":t", AttributeValue::N(token.to_string()));
    match update.send().await {
        Ok(_) => true,
        Err(error) if error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) => {
            false
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// What the first holder has seen.
struct Zombie {
    token: FencingToken,
    wrote_before: bool,
    held_after: bool,
    wrote_after: bool,
}

/// Acquires, writes, is frozen with its whole runtime until the sender is gone or has sent, and writes again.
fn frozen_holder(leases: Leases, client: Client, acquired: mpsc::Sender<()>, thaw: mpsc::Receiver<()>) -> Zombie {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let lease = leases.acquire("job").await.unwrap();
        let (held, token) = (lease.held(), lease.token());
        let wrote_before = fenced_write(&client, "by the first", token).await;
        acquired.send(()).unwrap();
        thaw.recv().unwrap();
        // It goes on where it was: no await, so no I/O, lies between the freeze and this look.
        let held_after = held.is_held();
        let wrote_after = fenced_write(&client, "late, by the first", token).await;
        Zombie { token, wrote_before, held_after, wrote_after }
    })
}

#[tokio::test]
async fn the_late_write_of_a_frozen_holder_is_refused_by_dynamodb() {
    let ground = Ground::new().await;
    let (first, second) = (ground.brisk("first").await, ground.brisk("second").await);
    let (acquired, is_acquired) = mpsc::channel();
    let (thaw, is_thawed) = mpsc::channel();
    // One each: a frozen runtime freezes the connections that it drives.
    let [client, theirs] = [(); 2].map(|()| emulator::client(ground.emulator.addr()));
    let holder = thread::spawn(move || frozen_holder(first, theirs, acquired, is_thawed));
    let acquired = tokio::task::spawn_blocking(move || is_acquired.recv());
    soon("the first holds it and is frozen", acquired).await.unwrap().unwrap();

    let lease = soon("the second takes over", second.acquire("job")).await.unwrap();
    assert!(fenced_write(&client, "by the second", lease.token()).await);
    thaw.send(()).unwrap();
    let zombie = tokio::task::spawn_blocking(move || holder.join());
    let zombie = soon("the first wakes and writes", zombie).await.unwrap().unwrap();

    assert!(zombie.wrote_before, "the fence lets a holder through");
    assert!(!zombie.held_after, "it knew before it did any I/O");
    assert!(!zombie.wrote_after, "the late write was applied");
    assert!(lease.token() > zombie.token);
    let document: Item = ground.item("document").await.unwrap();
    assert_eq!(text(&document, "content"), "by the second");
    assert_eq!(number(&document, "fence"), lease.token().as_u64());
}
