//! A token that is still good is used while a new one is slow to come.
//!
//! The SDK fetches a new token in the last minutes of the old one, and makes every request wait for it. A lease must not
//! be lost to a slow identity service while there is a token in hand.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};

use crate::time::{Clock, SystemClock, within};

/// How long a request waits for a new token while the old one is good. Less than the shortest time-out of a request.
const PATIENCE: Duration = Duration::from_secs(1);

/// A credential, and the newest token that it has given. Its `Debug` shows neither.
pub(super) struct KeptToken {
    credential: Arc<dyn TokenCredential>,
    newest: Mutex<Option<AccessToken>>,
}

impl KeptToken {
    pub(super) fn new(credential: Arc<dyn TokenCredential>) -> Self {
        Self { credential, newest: Mutex::new(None) }
    }

    /// The newest token, if it has not expired by this machine's clock.
    fn good(&self) -> Option<AccessToken> {
        let now = i128::from(SystemClock.stamp().real);
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        newest.filter(|token| token.expires_on.unix_timestamp_nanos() > now)
    }
}

#[async_trait]
impl TokenCredential for KeptToken {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let asked = self.credential.get_token(scopes, options);
        let answer = match self.good() {
            None => asked.await,
            Some(good) => match within(&SystemClock, PATIENCE, asked).await {
                Some(Ok(token)) => Ok(token),
                Some(Err(_)) | None => return Ok(good),
            },
        };
        if let Ok(token) = &answer {
            *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        }
        answer
    }
}

impl fmt::Debug for KeptToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptToken").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

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
        let kept = KeptToken::new(Arc::new(Once { good_for_s, hangs, asked: AtomicU32::new(0) }));
        kept.get_token(&[], None).await?;
        kept.get_token(&[], None).await
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
