//! No secret is shown: neither a credential nor a grant, not in logs, not in errors, not in any `Debug`. The SDK's own
//! log lines count too.

use std::net::TcpListener;
use std::sync::Arc;

use async_trait::async_trait;
use leasehold::azure_blob::azure_core;
use leasehold::azure_blob::azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use leasehold::azure_blob::azure_core::time::OffsetDateTime;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::{ErrorKind, Grant, Leases, Renewal};

use crate::ground::{TTL, lost};
use crate::support::azure::{ACCOUNT, Auth, Fake, Fault, Op};
use crate::support::secrets::{PAYLOAD, Planted, tour};

/// "planted key of an account", in base64.
const KEY: &str = "cGxhbnRlZCBrZXkgb2YgYW4gYWNjb3VudA==";
const SIGNATURE: &str = "pl%2Fan%2Bted%3D";
const DECODED: &str = "pl/an+ted=";
const TOKEN: &str = "planted.token-of.entra";

fn sas() -> String {
    format!("sv=2021-12-02&ss=b&srt=sco&sp=rwlac&sig={SIGNATURE}")
}

/// Always the same token.
struct Entra;

impl std::fmt::Debug for Entra {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entra")
    }
}

#[async_trait]
impl TokenCredential for Entra {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        Ok(AccessToken::new(TOKEN, OffsetDateTime::from_unix_timestamp(4_102_444_800).expect("2100")))
    }
}

fn planted() -> Planted {
    let mut planted = Planted::new();
    planted.plant("key", KEY);
    planted.plant("signature", SIGNATURE);
    planted.plant("signature", DECODED);
    planted.plant("token", TOKEN);
    planted
}

/// Every kind of credential, with what the service asks for and what goes behind the container's URL.
fn credentials() -> Vec<(Credential, Auth, String)> {
    let key = Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() };
    vec![
        (Credential::shared_key(ACCOUNT, KEY), key, String::new()),
        (Credential::sas(sas()), Auth::Sas(sas()), String::new()),
        (Credential::in_url(), Auth::Sas(sas()), format!("?{}", sas())),
        (Credential::token(Arc::new(Entra)), Auth::Bearer(TOKEN.into()), String::new()),
    ]
}

fn grant_of(fake: &Fake, name: &str) -> Grant {
    let peek = fake.peek(name).expect("there");
    Grant::parse(&peek.metadata["lh_grant"]).expect("a grant")
}

#[tokio::test(start_paused = true)]
async fn neither_credentials_nor_grants_are_shown_whatever_the_credential() {
    for (credential, auth, suffix) in credentials() {
        let mut planted = planted();
        let clock = leasehold::testing::TestClock::new();
        let fake = Fake::new(clock.another(99));
        fake.require(auth);
        let store = || {
            let builder = AzureBlobStore::builder(fake.container_url() + &suffix, credential.clone());
            planted.debug("AzureBlobStoreBuilder", &builder);
            builder.http_client(fake.http_client()).unverified().expect("good")
        };
        planted.debug("Credential", &credential);
        planted.debug("AzureBlobStore", &store());
        let client = |store, holder, seed| {
            let builder = Leases::builder(store).holder(holder).ttl(TTL).clock(clock.another(seed));
            planted.debug("LeasesBuilder", &builder);
            builder.build().expect("fits")
        };
        let (leases, rival) = (client(store(), "a", 1), client(store(), "b", 2));
        tour(&mut planted, &leases, &rival, async |name| grant_of(&fake, name)).await;
        assert!(planted.grants() >= 4);

        // Everything that can be said of a request that failed.
        for fault in [
            Fault::LoseAnswer,
            Fault::RefuseConnection,
            Fault::Hang,
            Fault::AnswerForeign,
            Fault::Answer(403, "AuthenticationFailed"),
            Fault::Answer(403, "AuthorizationPermissionMismatch"),
            Fault::Answer(409, "BlobImmutableDueToPolicy"),
            Fault::Answer(500, "InternalError"),
            Fault::Answer(503, "ServerBusy"),
            Fault::Answer(200, ""),
        ] {
            for op in [Op::HeadBlob, Op::Acquire, Op::SetMetadata] {
                fake.on(op).always().fault(fault);
                if let Err(error) = leases.request("failing").data(PAYLOAD).try_acquire().await {
                    planted.error(&format!("{op:?} {fault:?}"), &error);
                }
                fake.heal();
                leases.flush().await;
            }
            fake.on(Op::ListBlobs).fault(fault);
            if let Err(error) = leases.list("").all().await {
                planted.error(&format!("a listing: {fault:?}"), &error);
            }
        }
        let lease = leases.acquire("lost").await.expect("free");
        planted.plant_grant(grant_of(&fake, "lost"));
        fake.on(Op::Renew).always().fault(Fault::Answer(403, "AuthenticationFailed"));
        let lost = lost(&lease).await;
        planted.error("Lost", &lost);
        fake.require(Auth::Bearer("another".into()));
        planted.error("denied", &leases.acquire("denied").await.expect_err("denied"));

        let logs = planted.logs();
        for expected in ["acquired", "a request failed", "a lease was lost", "==> Request"] {
            assert!(logs.contains(expected), "not logged: {expected}");
        }
    }
}

#[test]
fn a_url_that_is_refused_is_not_repeated() {
    let planted = planted();
    for url in [format!("not a url?{}", sas()), format!("mailto:x?{}", sas()), format!("https://host/?{}", sas())] {
        let error = AzureBlobStore::builder(url, Credential::in_url()).unverified().expect_err("no container");
        planted.error("a bad URL", &error);
    }
    let user = format!("https://user:{TOKEN}@acct.blob.core.windows.net/leases?{}", sas());
    planted.error("a user", &AzureBlobStore::builder(user, Credential::in_url()).unverified().expect_err("a user"));
}

/// With the SDK's own HTTP client, whose errors quote the URL that it was asked for.
#[tokio::test]
async fn a_connection_that_is_refused_or_broken_shows_no_signature() {
    let planted = planted();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let inspect = async |what: &str| {
        let url = format!("http://{address}/{ACCOUNT}/leases");
        let store = AzureBlobStore::builder(url, Credential::sas(sas())).unverified().expect("good");
        let leases = Leases::builder(store).renewal(Renewal::Manual).build().expect("fits");
        let error = leases.inspect("job").await.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        planted.error(what, &error);
        assert!(format!("{error:?}").contains(&address.to_string()), "it says where: {error:?}");
    };
    let accepting = std::thread::spawn(move || listener.accept().map(drop));
    inspect("broken").await;
    accepting.join().expect("ended").expect("a connection came");
    inspect("refused").await;
    assert!(planted.logs().contains("performing request"), "the HTTP client logs");
}
