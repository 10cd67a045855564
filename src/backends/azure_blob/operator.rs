//! What others may do to a grant. A leased blob cannot be written without the lease, so a revocation and an ask are one
//! act here: the lease is broken, and its holder learns of it with its next renewal.

use super::call::{Call, ROUNDS};
use super::client::Refusal;
use super::metadata::{Found, LeaseState};
use crate::protocol::broken::Broken;
use crate::types::{Revoked, StoreError, View};

impl Call<'_> {
    /// Breaks the lease of the grant with this token: when the rest of its term is over, because the holder believes
    /// in it until then; or, forced, at once.
    ///
    /// The tag does not move when a lease is taken. So a late break can hit a rival who has leased the blob and not
    /// yet written its token: it loses its lease as well, and safely.
    pub(super) async fn revoke(&mut self, token: u64, force: bool) -> Result<Revoked, StoreError> {
        for _ in 0..ROUNDS {
            let Some(found) = self.look().await? else { return Ok(Revoked::Refused(View::absent())) };
            let named = found.record().is_ok_and(|record| record.token == token);
            match found.state {
                LeaseState::Breaking if named && !force => return Ok(Revoked::AlreadyRevoked),
                LeaseState::Leased | LeaseState::Breaking | LeaseState::Expired if named && !is_free(&found) => {}
                _ => return Ok(Revoked::Refused(found.view())),
            }
            let at_once = force || Broken::AzureBreakAtOnce.on();
            let answer = self.shared.link.break_lease(self.name, &found.tag, at_once).await;
            match self.heard(answer)? {
                Ok(()) => return Ok(Revoked::Revoked),
                Err(Refusal::Moved | Refusal::NoBlob | Refusal::NoContainer) => {}
                Err(_) => {
                    return self
                        .look()
                        .await
                        .map(|found| Revoked::Refused(found.map_or_else(View::absent, |f| f.view())));
                }
            }
        }
        Err(self.contended())
    }
}

/// Closed, with a lease that has run out instead of being given back.
fn is_free(found: &Found) -> bool {
    found.view().grant().is_none()
}
