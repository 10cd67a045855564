//! Tables that are not there, and permissions that are missing.

use std::pin::Pin;

use leasehold::dynamodb::DynamoDbStore;
use leasehold::{Error, ErrorKind, Leases};

use crate::ground::{Ground, soon};
use crate::support::emulator::retrying_client;
use crate::support::faults::{Answer, Fault, Match};

type Call<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

async fn within_one_request(ground: &Ground, what: &str, call: impl Future<Output = Result<(), Error>>) -> Error {
    ground.proxy.reset_counts();
    let error = soon(what, call).await.expect_err(what);
    assert_eq!(ground.proxy.total(), 1, "{what}: {:?}", ground.operations());
    error
}

#[tokio::test]
async fn a_missing_table_is_misconfigured_after_one_request_and_nobody_tries_again() {
    let ground = Ground::new().await;
    let client = retrying_client(ground.proxy.addr());
    let open = async { DynamoDbStore::open(client.clone(), "elsewhere").await.map(drop) };
    let error = within_one_request(&ground, "open", open).await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("there is no table `elsewhere` in eu-central-1"), "{error}");

    let store = DynamoDbStore::builder(client, "elsewhere").unverified().unwrap();
    let leases = Leases::builder(store).build().unwrap();
    let calls: [(&str, Call<'_>); 4] = [
        ("acquire", Box::pin(async { leases.acquire("job").await.map(drop) })),
        ("try_acquire", Box::pin(async { leases.try_acquire("job").await.map(drop) })),
        ("inspect", Box::pin(async { leases.inspect("job").await.map(drop) })),
        ("list", Box::pin(async { leases.list("").all().await.map(drop) })),
    ];
    for (what, call) in calls {
        let error = within_one_request(&ground, what, call).await;
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{what}: {error}");
        assert!(error.to_string().contains("there is no table `elsewhere`"), "{what}: {error}");
    }
    assert_eq!(leases.stats().owed, 0);
}

#[tokio::test]
async fn a_missing_permission_is_named_with_its_operation_after_one_request() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    ground.proxy.on(Match::any()).fault(Fault::Answer(Answer::forbidden()));
    let token = leasehold::FencingToken::new(1).unwrap();
    let calls: [(&str, &str, Call<'_>); 6] = [
        ("acquire", "UpdateItem", Box::pin(async { leases.acquire("job").await.map(drop) })),
        ("acquire", "UpdateItem", Box::pin(async { leases.try_acquire("job").await.map(drop) })),
        ("revoke", "UpdateItem", Box::pin(async { leases.revoke("job", token).await })),
        ("ask", "UpdateItem", Box::pin(async { leases.ask("job", token, crate::ground::TTL).await })),
        ("inspect", "GetItem", Box::pin(async { leases.inspect("job").await.map(drop) })),
        ("list", "Scan", Box::pin(async { leases.list("").all().await.map(drop) })),
    ];
    for (operation, permission, call) in calls {
        let error = within_one_request(&ground, operation, call).await;
        let text = error.to_string();
        assert_eq!((error.kind(), error.operation().to_string().as_str()), (ErrorKind::Denied, operation), "{text}");
        assert!(text.starts_with(operation), "{text}");
        assert!(text.contains(&format!("allow `dynamodb:{permission}`")), "{text}");
    }
    assert_eq!(leases.stats().owed, 0, "the service rejects before it writes");
}
