//! A token in every request. One that is still good is used while a new one is slow to come.
//!
//! The SDK's own policy fetches a new token in the last minutes of the old one, and lets all requests wait for it one
//! after the other, under a lock whose waiters spin. A lease must not be lost to a slow identity service while there is
//! a token in hand.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request, StatusCode};

use crate::time::{Clock, SystemClock, within};
use crate::types::Stamp;

const SCOPE: &str = "https://storage.azure.com/.default";

/// How long one request waits for a new token while the old one is good. Less than the shortest time-out of a request.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long before its end a token is replaced.
const EARLY: Duration = Duration::from_secs(5 * 60);

/// How long a token that is good is used without asking again, after it was asked in vain for the next one.
const REST: Duration = Duration::from_secs(30);

/// Puts a credential's token into every request. Its `Debug` shows neither.
pub(super) struct Bearer {
    credential: Arc<dyn TokenCredential>,
    kept: Mutex<Kept>,
    /// One request at a time asks for a token.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Kept {
    newest: Option<AccessToken>,
    asked_in_vain: Option<Stamp>,
}

impl Bearer {
    pub(super) fn new(credential: Arc<dyn TokenCredential>) -> Self {
        Self { credential, kept: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    async fn token(&self) -> azure_core::Result<AccessToken> {
        let Some(good) = self.good_for(Duration::ZERO) else {
            let _one = self.asking.lock().await;
            return match self.good_for(Duration::ZERO) {
                Some(fetched_meanwhile) => Ok(fetched_meanwhile),
                None => self.ask().await,
            };
        };
        if self.good_for(EARLY).is_some() || self.rests() {
            return Ok(good);
        }
        let Ok(_one) = self.asking.try_lock() else { return Ok(good) };
        match within(&SystemClock, PATIENCE, self.ask()).await {
            Some(Ok(token)) => Ok(token),
            Some(Err(_)) | None => {
                self.kept().asked_in_vain = Some(SystemClock.stamp());
                Ok(good)
            }
        }
    }

    async fn ask(&self) -> azure_core::Result<AccessToken> {
        let token = self.credential.get_token(&[SCOPE], None).await?;
        *self.kept() = Kept { newest: Some(token.clone()), asked_in_vain: None };
        Ok(token)
    }

    /// The newest token, if it is good for so long by this machine's clock.
    fn good_for(&self, span: Duration) -> Option<AccessToken> {
        let until = u128::from(SystemClock.stamp().real) + span.as_nanos();
        let newest = self.kept().newest.clone();
        newest.filter(|token| u128::try_from(token.expires_on.unix_timestamp_nanos()).is_ok_and(|end| end > until))
    }

    fn rests(&self) -> bool {
        let asked = self.kept().asked_in_vain;
        asked.is_some_and(|asked| u128::from(SystemClock.stamp().steady_since(&asked)) < REST.as_nanos())
    }

    /// The service has refused it.
    fn forget(&self, refused: &AccessToken) {
        let mut kept = self.kept();
        if kept.newest.as_ref().is_some_and(|newest| newest.token == refused.token) {
            *kept = Kept::default();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Policy for Bearer {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let token = self.token().await?;
        request.insert_header("authorization", format!("Bearer {}", token.token.secret()));
        let response = next[0].send(context, request, &next[1..]).await?;
        if response.status() == StatusCode::Unauthorized {
            self.forget(&token);
        }
        Ok(response)
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use azure_core::credentials::TokenRequestOptions;
    use azure_core::error::ErrorKind;
    use azure_core::time::OffsetDateTime;

    use super::*;

    /// Gives one token for so many seconds, then fails or hangs.
    #[derive(Debug)]
    struct Once {
        good_for_s: i64,
        hangs: bool,
        asked: AtomicU32,
    }

    #[async_trait]
    impl TokenCredential for Once {
        async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
            if self.asked.fetch_add(1, Ordering::Relaxed) == 0 {
                let now = i64::try_from(SystemClock.stamp().real / 1_000_000_000).unwrap();
                let expires_on = OffsetDateTime::from_unix_timestamp(now + self.good_for_s).unwrap();
                return Ok(AccessToken::new("first".to_owned(), expires_on));
            }
            if self.hangs {
                std::future::pending::<()>().await;
            }
            Err(azure_core::Error::with_message(ErrorKind::Credential, "the identity service is away"))
        }
    }

    async fn second(good_for_s: i64, hangs: bool) -> azure_core::Result<AccessToken> {
        let bearer = Bearer::new(Arc::new(Once { good_for_s, hangs, asked: AtomicU32::new(0) }));
        bearer.token().await?;
        bearer.token().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_token_outlasts_an_identity_service_that_fails_or_hangs() {
        for hangs in [false, true] {
            assert_eq!(second(60, hangs).await.unwrap().token.secret(), "first");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_has_expired_is_not_used() {
        second(-1, false).await.unwrap_err();
    }
}
