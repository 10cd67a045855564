//! Clients of a run: they do what the protocol asks of a client, and tell the world what they come to believe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::{
    Applied, Claim, Claimed, Expect, Grant, Renew, Renewed, Revoke, Revoked, Standing, StoreError, Vacate, Vacated,
    View,
};

use crate::ground::{burn, claim, closing, payload, release, renew, revoke};
use crate::schedule::{Desk, Turnstile};
use crate::world::World;

/// How often a request of a verb is sent before its client does without an answer.
const TRIES: usize = 3;

/// A client.
pub(crate) struct Actor {
    index: usize,
    world: Arc<World>,
    store: AzureBlobStore,
    grants: AtomicU64,
}

/// A grant that its client believes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) token: u64,
    pub(crate) grant: Grant,
}

impl Actor {
    pub(crate) fn new(index: usize, world: &Arc<World>, desk: &Arc<Desk>) -> Self {
        let turnstile = Turnstile { actor: index, desk: Arc::clone(desk), world: Arc::clone(world) };
        // Not signed, because that is most of the work of a request.
        let builder = AzureBlobStore::builder(world.fake().container_url(), Credential::sas("sig=x"));
        let store = builder.http_client(Arc::new(turnstile)).unverified().expect("good");
        Self { index, world: Arc::clone(world), store, grants: AtomicU64::new(1) }
    }

    /// It holds this already.
    pub(crate) fn goes_on(&self, held: Held) -> Held {
        self.world.sends_for(self.index, held.grant);
        held
    }

    /// Claims what is free. A claim without an answer is sent `copies` times with the same body, then given up.
    pub(crate) async fn acquires(&self, copies: usize) -> Option<Held> {
        // Equal proposals of two clients are what has to be told apart.
        self.proposes(5, copies).await
    }

    pub(crate) async fn proposes(&self, token: u64, copies: usize) -> Option<Held> {
        self.claims(Expect::Vacant, token, copies).await
    }

    /// Takes up what was handed over.
    pub(crate) async fn resumes(&self, from: Held, copies: usize) -> Option<Held> {
        self.claims(Expect::Handed(from.grant), from.token + 1, copies).await
    }

    async fn claims(&self, mut expect: Expect, mut token: u64, copies: usize) -> Option<Held> {
        for _ in 0..2 {
            let refused = match self.claims_once(token, expect.clone(), copies).await {
                Ok(held) => return Some(held),
                Err(refused) => refused?,
            };
            token = token.max(refused.token()) + 1;
            expect = match (expect, refused.standing) {
                (Expect::Handed(_), _) => return None,
                (_, Standing::Vacant) => Expect::Vacant,
                (_, Standing::Expired(version)) => Expect::Expired(version),
                _ => return None,
            };
        }
        None
    }

    /// The grant, or what the refusal has shown if there was one.
    async fn claims_once(&self, token: u64, expect: Expect, copies: usize) -> Result<Held, Option<View>> {
        let grant = self.fresh();
        let (before, since) = (self.world.highest(), self.world.now());
        let body = Claim { expect, ..claim(token, grant) };
        let mut doubt = false;
        for _ in 0..copies {
            match self.store.claim(&body).await.map(|answer| answer.value) {
                Ok(Claimed::Granted) => {
                    let held = Held { token, grant };
                    if self.world.granted(token, grant, before, since) {
                        return Ok(held);
                    }
                    self.releases(held).await;
                    return Err(None);
                }
                Ok(Claimed::Refused(view)) => {
                    match doubt && view.token() < token {
                        true => self.cleans_up(token, grant).await,
                        false => self.world.settled(grant),
                    }
                    return Err(Some(view));
                }
                Err(error) => doubt |= error.applied == Applied::Unknown,
            }
        }
        match doubt {
            true => self.cleans_up(token, grant).await,
            false => self.world.settled(grant),
        }
        Err(None)
    }

    async fn cleans_up(&self, token: u64, grant: Grant) {
        for _ in 0..TRIES {
            match self.store.vacate(&burn(token, grant)).await.map(|answer| answer.value) {
                Ok(Vacated::Vacated) => return self.world.settled(grant),
                Ok(Vacated::Refused(view)) if view.token() >= token => return self.world.settled(grant),
                _ => {}
            }
        }
    }

    /// Renews if it still believes. A refusal is a loss.
    pub(crate) async fn renews(&self, held: Held) {
        self.renews_with(held, renew(held.token, held.grant)).await;
    }

    pub(crate) async fn stores(&self, held: Held, data: &str) {
        let body = Renew { data: payload(data), ..renew(held.token, held.grant) };
        self.world.sends_payload(data);
        if self.renews_with(held, body).await {
            self.world.stored_payload();
        }
    }

    async fn renews_with(&self, held: Held, body: Renew) -> bool {
        if !self.world.believes(held.grant) {
            return false;
        }
        let since = self.world.now();
        match self.store.renew(std::slice::from_ref(&body)).await.remove(0).map(|answer| answer.value) {
            Ok(Renewed::Renewed(_)) => {
                self.world.renewed(held.grant, since);
                true
            }
            Ok(Renewed::Refused(_)) => {
                self.world.ends(held.grant);
                false
            }
            Err(_) => false,
        }
    }

    pub(crate) async fn releases(&self, held: Held) {
        self.world.ends(held.grant);
        if self.vacates(&release(held.token, held.grant)).await.is_ok() {
            self.world.settled(held.grant);
        }
    }

    /// A closing release, which is known to be recorded, known not to be, or neither.
    pub(crate) async fn closes(&self, held: Held) {
        self.world.ends(held.grant);
        self.world.sends_payload("outcome");
        match self.vacates(&closing(held.token, held.grant)).await {
            Ok((Vacated::Vacated, _)) => self.world.closed(held.token, true),
            Ok((Vacated::Refused(view), doubt)) => match view.record.and_then(|record| record.closed) {
                Some(closed) if closed.by == Some(held.token) => self.world.closed(held.token, true),
                _ if doubt => return,
                _ => self.world.closed(held.token, false),
            },
            Err(_) => return,
        }
        self.world.settled(held.grant);
    }

    /// The answer, and whether an earlier copy had none.
    async fn vacates(&self, body: &Vacate) -> Result<(Vacated, bool), StoreError> {
        let mut failed = None;
        for _ in 0..TRIES {
            match self.store.vacate(body).await {
                Ok(answer) => return Ok((answer.value, failed.is_some())),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.expect("tried"))
    }

    pub(crate) fn hands_over(&self, held: Held) {
        self.world.ends(held.grant);
    }

    pub(crate) async fn revokes(&self, token: u64, force: bool) {
        if force {
            self.world.forced();
        }
        for _ in 0..TRIES {
            let answer = self.store.revoke(&Revoke { force, ..revoke(token) }).await;
            if answer.is_ok_and(|answer| !matches!(answer.value, Revoked::Refused(_))) {
                return;
            }
        }
    }

    /// Waits for its turn: other requests can come before or after it.
    pub(crate) async fn looks(&self) {
        _ = self.store.read(&claim(1, Grant::from_bits(1)).name).await;
    }

    fn fresh(&self) -> Grant {
        let number = self.grants.fetch_add(1, Ordering::SeqCst);
        let grant = Grant::from_bits(u128::from(0xaa00 + 0x100 * self.index as u64 + number));
        self.world.sends_for(self.index, grant);
        grant
    }
}
