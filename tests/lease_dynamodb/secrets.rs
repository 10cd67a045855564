//! No secret is shown: neither a credential nor a grant, not in logs, not in errors, not in any `Debug`.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use leasehold::dynamodb::DynamoDbStore;
use leasehold::{ErrorKind, Grant, Leases, Renewal};

use crate::ground::{CLAIM, Ground, MARGIN, RENEWAL, TABLE, TTL, claim, soon, text};
use crate::support::emulator::config;
use crate::support::faults::{Answer, Fault, Match};
use crate::support::secrets::{PAYLOAD, Planted, tour};

const ACCESS_KEY: &str = "AKIAPLANTEDPLANTED00";
const SECRET_KEY: &str = "planted/secret+access/key";
const SESSION_TOKEN: &str = "planted-session-token";

fn planted() -> Planted {
    let mut planted = Planted::new();
    planted.plant("access key", ACCESS_KEY);
    planted.plant("secret access key", SECRET_KEY);
    planted.plant("session token", SESSION_TOKEN);
    planted
}

fn client(ground: &Ground) -> Client {
    let credentials = Credentials::new(ACCESS_KEY, SECRET_KEY, Some(SESSION_TOKEN.into()), None, "planted");
    Client::from_conf(config(ground.proxy.addr()).credentials_provider(credentials).build())
}

async fn store(ground: &Ground) -> DynamoDbStore {
    DynamoDbStore::open(client(ground), TABLE).await.expect("fit")
}

async fn grant_of(ground: &Ground, name: &str) -> Grant {
    let item = ground.item(name).await.expect("there");
    Grant::parse(text(&item, "lh_grant")).expect("a grant")
}

async fn shows_nothing(renewal: Renewal, holder: &str) {
    let (mut planted, ground) = (planted(), Ground::new().await);
    let builder = Leases::builder(store(&ground).await).holder(holder).renewal(renewal);
    planted.debug("LeasesBuilder", &builder);
    let leases = builder.ttl(Duration::from_secs(30)).build().unwrap();
    let rival = Leases::builder(store(&ground).await).holder("rival").renewal(renewal).build().unwrap();
    planted.debug("DynamoDbStore", &store(&ground).await);
    planted.debug("DynamoDbStoreBuilder", &DynamoDbStore::builder(client(&ground), TABLE));
    tour(&mut planted, &leases, &rival, async |name| grant_of(&ground, name).await).await;
    assert!(planted.grants() >= 4);
    let logs = planted.logs();
    assert!(logs.contains("acquired") && logs.contains("lease.name=tour"), "{logs}");
}

#[tokio::test]
async fn neither_credentials_nor_grants_are_shown() {
    shows_nothing(Renewal::Task, "task").await;
}

#[tokio::test]
async fn nor_by_a_keeper_on_a_thread_of_its_own() {
    shows_nothing(Renewal::Thread, "thread").await;
}

#[tokio::test]
async fn errors_show_neither_with_all_their_causes() {
    let (mut planted, ground) = (planted(), Ground::new().await);
    let leases = Leases::builder(store(&ground).await).ttl(TTL).margin(MARGIN).build().unwrap();
    let rivals = Grant::from_bits(0x1111_2222_3333_4444_5555_6666_7777_8888);
    planted.plant_grant(rivals);
    let rival = ground.rival().await;
    leasehold::Store::claim(&rival, &claim("theirs", 5, rivals)).await.unwrap();

    // On a name that a rival holds: the refusal carries the rival's grant, in whole or by half.
    for fault in [
        Fault::Truncate,
        Fault::LoseAnswer,
        Fault::Stall,
        Fault::AnswerAfterApply(Answer::internal_error()),
        Fault::Answer(Answer::forbidden()),
        Fault::Answer(Answer::throttled()),
        Fault::Answer(Answer::invalid_signature()),
        Fault::Answer(Answer::new(400, "com.amazonaws.dynamodb.v20120810#ValidationException")),
        Fault::Answer(Answer::new(418, "Something#New")),
        Fault::WithHeader("content-length", "3".into()),
    ] {
        let spoilt = ground.proxy.on(Match::any()).fault(fault.clone());
        for name in ["theirs", "free"] {
            let attempt = soon("an answer", leases.request(name).data(PAYLOAD).try_acquire()).await;
            match attempt {
                Ok(attempt) => planted.debug(&format!("{fault:?}"), &attempt),
                Err(error) => planted.error(&format!("{fault:?}"), &error),
            }
            if let Err(error) = soon("an answer", leases.inspect(name)).await {
                planted.error(&format!("{fault:?}"), &error);
            }
        }
        if let Err(error) = soon("an answer", leases.list("").all()).await {
            planted.error(&format!("{fault:?}"), &error);
        }
        assert!(spoilt.happened() > 0, "{fault:?}");
        ground.proxy.heal();
    }
    soon("the clean-ups", leases.flush()).await;

    let lease = soon("free again", leases.acquire("ours")).await.unwrap();
    planted.plant_grant(grant_of(&ground, "ours").await);
    ground.every(RENEWAL, Fault::Truncate);
    let lost = crate::ground::loss(soon("the loss", lease.held().lost()).await);
    planted.error("Lost", &lost);
    planted.error("a late renewal", &lease.renew().await.expect_err("lost"));
    ground.proxy.down();
    let down = leases.try_acquire("free").await.expect_err("down");
    assert_eq!(down.kind(), ErrorKind::Unavailable);
    planted.error("down", &down);
    let opened = DynamoDbStore::open(client(&ground), TABLE).await.expect_err("down");
    planted.error("open", &opened);

    let logs = planted.logs();
    assert!(logs.contains("a request failed") && logs.contains("a lease was lost"), "{logs}");
    assert!(!logs.contains(CLAIM), "requests are not logged");
}
