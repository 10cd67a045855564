//! A service that answers a renewal as Azurite does: with a foreign id it renews what has expired, for its old holder.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold::azure_blob::azure_core::Result;
use leasehold::azure_blob::azure_core::http::headers::Headers;
use leasehold::azure_blob::azure_core::http::{AsyncRawResponse, HttpClient, Request, StatusCode};
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::{Renewed, View};
use tokio::time::sleep;

use crate::ground::{Ground, TERM, a, b, claim, renew};
use crate::support::azure::Fake;

#[derive(Debug)]
struct Lenient {
    service: Arc<dyn HttpClient>,
    fake: Fake,
}

#[async_trait]
impl HttpClient for Lenient {
    async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
        let answer = self.service.execute_request(request).await?;
        let renews = request.headers().get_optional_str(&"x-ms-lease-action".into()) == Some("renew");
        let kept = self.fake.peek("job").and_then(|peek| peek.state.id());
        match kept.filter(|_| renews && answer.status() == StatusCode::Conflict) {
            Some(kept) => {
                let mut headers = Headers::new();
                headers.insert("x-ms-request-id", "1");
                headers.insert("x-ms-lease-id", kept.to_string());
                Ok(AsyncRawResponse::from_bytes(StatusCode::Ok, headers, Vec::new()))
            }
            None => Ok(answer),
        }
    }
}

/// What a client is told of its renewal whose lease has become another's, and has expired. `None`: it is renewed.
pub(crate) async fn renewal_of_anothers_lease() -> Option<View> {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.fake.require(crate::support::azure::Auth::None);
    let lenient = Lenient { service: ground.fake.http_client(), fake: ground.fake.clone() };
    let builder = AzureBlobStore::builder(ground.fake.container_url(), Credential::sas("sig=x"));
    let store = builder.http_client(Arc::new(lenient)).unverified().expect("good");
    sleep(TERM).await;
    let rival = ground.another();
    let standing = rival.refused(&claim(6, b())).await.standing;
    let leasehold::Standing::Expired(version) = standing else { panic!("not over") };
    rival.granted(&leasehold::Claim { expect: leasehold::Expect::Expired(version), ..claim(6, b()) }).await;
    sleep(TERM).await;
    match store.renew(&[renew(5, a())]).await.remove(0).expect("answered").value {
        Renewed::Renewed(_) => None,
        Renewed::Refused(view) => Some(view),
    }
}
