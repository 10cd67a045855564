//! Credentials: what each sends, and what the service says to a wrong one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use leasehold::azure_blob::azure_core;
use leasehold::azure_blob::azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use leasehold::azure_blob::azure_core::error::ErrorKind as SdkKind;
use leasehold::azure_blob::azure_core::time::OffsetDateTime;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::testing::TestClock;
use leasehold::{Applied, Claim, Claimed, StoreErrorKind};
use tokio::time::timeout;

use crate::ground::{a, claim, error, name, release, renew, renew_with, value};
use crate::support::azure::{ACCOUNT, Auth, Fake};

const KEY: &str = "a2V5IG9mIHRoZSBhY2NvdW50";
const SAS: &str = "sv=2021-12-02&ss=b&srt=sco&sp=rwlac&se=2099-12-31T00%3A00%3A00Z&sig=pl%2Fan%2Bted%3D";

/// Gives no token.
#[derive(Debug)]
pub(crate) struct NoToken;

/// Gives "token-1", "token-2" and so on, each when it is asked again.
#[derive(Debug, Default)]
struct Tokens(AtomicUsize);

/// Gives "token-1", which is good for a few minutes more, and nothing after it: it hangs.
#[derive(Debug, Default)]
struct HangsNearTheEnd(AtomicUsize);

#[async_trait]
impl TokenCredential for HangsNearTheEnd {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
            std::future::pending::<()>().await;
        }
        let expires_on = OffsetDateTime::now_utc() + azure_core::time::Duration::minutes(4);
        Ok(AccessToken::new("token-1".to_owned(), expires_on))
    }
}

#[async_trait]
impl TokenCredential for NoToken {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        Err(azure_core::Error::with_message(SdkKind::Credential, "the managed identity does not answer"))
    }
}

#[async_trait]
impl TokenCredential for Tokens {
    async fn get_token(&self, scopes: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        assert_eq!(scopes, ["https://storage.azure.com/.default"]);
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let expires_on = OffsetDateTime::from_unix_timestamp(4_102_444_800).expect("2100");
        Ok(AccessToken::new(format!("token-{number}"), expires_on))
    }
}

fn fake(auth: Auth) -> Fake {
    let fake = Fake::new(TestClock::new());
    fake.require(auth);
    fake
}

fn store(fake: &Fake, url: String, credential: Credential) -> AzureBlobStore {
    AzureBlobStore::builder(url, credential).http_client(fake.http_client()).unverified().expect("good")
}

/// A lease through its whole life, and a listing.
async fn works(fake: &Fake, store: &AzureBlobStore) {
    let claim = Claim { name: name("a b/ü%2f?&="), ..claim(5, a()) };
    assert_eq!(value(store.claim(&claim).await), Claimed::Granted);
    let renew = leasehold::Renew { name: claim.name.clone(), ..renew_with(5, a(), "payload") };
    store.renew(&[renew]).await.remove(0).expect("renewed");
    value(store.vacate(&leasehold::Vacate { name: claim.name.clone(), ..release(5, a()) }).await);
    assert_eq!(value(store.list("a b/", None).await).leases.len(), 1);
    assert_eq!(fake.invalid().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shared_key_signs_every_request_as_the_service_does() {
    let fake = fake(Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() });
    let store = store(&fake, fake.container_url(), Credential::shared_key(ACCOUNT, KEY));
    works(&fake, &store).await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_key_signs_requests_to_an_address_that_has_the_account_in_its_path() {
    let fake = fake(Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() });
    let url = format!("http://127.0.0.1:10000/{ACCOUNT}/leases");
    let store = store(&fake, url, Credential::shared_key(ACCOUNT, KEY));
    works(&fake, &store).await;
    assert!(fake.requests().iter().all(|seen| seen.request.path.starts_with(&format!("/{ACCOUNT}/leases"))));
}

#[tokio::test(start_paused = true)]
async fn a_signature_goes_with_every_request_wherever_it_was_given() {
    for (suffix, credential) in [
        (String::new(), Credential::sas(SAS)),
        (String::new(), Credential::sas(format!("?{SAS}"))),
        (format!("?{SAS}"), Credential::in_url()),
    ] {
        let fake = fake(Auth::Sas(SAS.into()));
        let store = store(&fake, fake.container_url() + &suffix, credential);
        works(&fake, &store).await;
        for seen in fake.requests() {
            assert!(seen.request.query.starts_with(SAS), "as it was given: {}", seen.request.query);
            assert_eq!(seen.request.header("authorization"), None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_once_and_again_only_when_the_service_refuses_it() {
    let fake = fake(Auth::Bearer("token-1".into()));
    let credential = Arc::new(Tokens::default());
    let store = store(&fake, fake.container_url(), Credential::token(credential.clone()));
    works(&fake, &store).await;
    assert_eq!(credential.0.load(Ordering::SeqCst), 1);
    // Revoked: the service does not take it any more.
    fake.on(crate::support::azure::Op::HeadBlob)
        .fault(crate::support::azure::Fault::Answer(401, "InvalidAuthenticationInfo"));
    fake.require(Auth::Bearer("token-2".into()));
    fake.forget_requests();
    let failed = error(store.claim(&claim(6, a())).await);
    assert_eq!((failed.kind, failed.applied, fake.total()), (StoreErrorKind::Denied, Applied::No, 1), "no second try");
    assert_eq!(value(store.claim(&claim(6, a())).await), Claimed::Granted);
    assert_eq!(credential.0.load(Ordering::SeqCst), 2);
}

/// The SDK lets requests wait for the successor of a token one after the other.
#[tokio::test(start_paused = true)]
async fn an_identity_service_that_hangs_while_the_token_is_good_costs_no_request_its_time_however_many_there_are() {
    /// One request of a lease with the shortest term.
    const ATTEMPT: Duration = Duration::from_millis(2_500);
    let fake = fake(Auth::Bearer("token-1".into()));
    let credential = Arc::new(HangsNearTheEnd::default());
    let store = store(&fake, fake.container_url(), Credential::token(credential.clone()));
    value(store.claim(&claim(5, a())).await);
    let body = renew(5, a());
    let renewals = (0..50).map(|_| async { timeout(ATTEMPT, store.renew(std::slice::from_ref(&body))).await });
    let renewed =
        join_all(renewals).await.into_iter().filter(|answer| matches!(answer.as_deref(), Ok([Ok(_)]))).count();
    assert_eq!(renewed, 50);
    assert_eq!(credential.0.load(Ordering::SeqCst), 2, "asked again once, and then not for a while");
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent() {
    let fake = fake(Auth::Bearer("token-1".into()));
    let store = store(&fake, fake.container_url(), Credential::token(Arc::new(NoToken)));
    let failed = error(store.claim(&claim(5, a())).await);
    assert_eq!((failed.kind, failed.applied, fake.total()), (StoreErrorKind::Denied, Applied::No, 0));
    assert!(failed.to_string().contains("the credential gave no token"), "{failed}");
    let cause = std::error::Error::source(&failed).expect("a cause").to_string();
    assert!(cause.contains("the managed identity does not answer"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_credential_of_any_kind_is_denied_after_one_request() {
    for (auth, credential) in [
        (Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() }, Credential::shared_key(ACCOUNT, "b3RoZXI=")),
        (Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() }, Credential::shared_key("another", KEY)),
        (Auth::Sas(SAS.into()), Credential::sas("sv=2021-12-02&sig=other")),
        (Auth::Bearer("another".into()), Credential::token(Arc::new(Tokens::default()))),
    ] {
        let fake = fake(auth);
        let store = store(&fake, fake.container_url(), credential);
        let failed = error(store.claim(&claim(5, a())).await);
        assert_eq!((failed.kind, failed.applied, fake.total()), (StoreErrorKind::Denied, Applied::No, 1));
        assert!(failed.to_string().contains("renew it, and look at this machine's clock"), "{failed}");
    }
}
