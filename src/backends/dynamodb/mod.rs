//! Leases in a DynamoDB table.

mod check;
mod client;
mod create;
mod error;
mod expressions;
mod fenced;
mod item;
mod keys;
mod list;
mod open;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::ReturnValue;

pub use self::create::create_table;
pub use self::fenced::{Fenced, FencedError, FencedWrite, Refusal};
pub use self::keys::SortKey;
pub use self::open::DynamoDbStoreBuilder;

use self::client::{Link, Tried};
use self::expressions::Update;
use self::keys::Keys;
use self::open::Consistency;
use crate::protocol::record::{self, Outcome, Stored};
use crate::store::Store;
use crate::types::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Description, FencingToken, ListPage, MAX_TTL_MS, Name, Page, Renew,
    Renewed, Revoke, Revoked, StoreError, StoreErrorKind, Timed, Vacate, Vacated, View,
};

const KIND: &str = "dynamodb";

/// Leases in a DynamoDB table. Clones share one way to the table.
///
/// Each verb is one `UpdateItem` with a condition. Attributes of the caller's own on a lease item survive. Clients
/// judge expiry; the service's `Date` header is the store's time.
///
/// The store makes its calls on the caller's client, with that client's connections and credentials, but without
/// the SDK's retries and under a time-out of its own; the client itself stays as it is.
#[derive(Clone)]
pub struct DynamoDbStore {
    shared: Arc<Shared>,
}

struct Shared {
    link: Link,
    keys: Keys,
    retention_s: Option<u64>,
    identity: String,
    consistency: Consistency,
}

/// A conditional write's end, with what was found where it was refused.
enum Written {
    Accepted(Stored),
    Refused(Stored),
}

impl DynamoDbStore {
    /// Runs one verb. Where the condition failed and no item came back, there is none, or this is an emulator that
    /// leaves it out: one consistent read tells.
    ///
    /// What that read shows may be newer than the refusal, which is safe: a refusal only says what the next body
    /// may expect, and that body has its own condition; the taker's count starts when this answer has come, and
    /// the record really carried that write within the call; and a grant of ours that shows up can only be the
    /// work of our own body.
    async fn write(&self, name: &Name, update: Update, wanted: ReturnValue) -> Answer<Written> {
        let Shared { link, keys, .. } = &*self.shared;
        let tried = link.update(keys.of(name), update, wanted).await?;
        let date_ms = tried.date_ms;
        match tried.value {
            Tried::Written(item) => Ok(Timed::dated(Written::Accepted(item::stored(item.as_ref())), date_ms)),
            Tried::Refused(Some(item)) => Ok(Timed::dated(Written::Refused(item::stored(Some(&item))), date_ms)),
            Tried::Refused(None) => {
                let found = link.get(keys.of(name)).await.map_err(after_a_refusal)?;
                Ok(Timed {
                    value: Written::Refused(item::stored(found.value.as_ref())),
                    date_ms: found.date_ms.or(date_ms),
                })
            }
        }
    }

    async fn renew_one(&self, renew: &Renew) -> Answer<Renewed> {
        // ALL_NEW, because UPDATED_NEW would hide what others have asked.
        let written = self.write(&renew.name, expressions::renew(renew), ReturnValue::AllNew).await?;
        Ok(written.map(|written| match written {
            Written::Accepted(Stored::Record(record)) => Renewed::Renewed(record.asked),
            Written::Accepted(_) => Renewed::Renewed(None),
            Written::Refused(stored) => Renewed::Refused(stored.view()),
        }))
    }

    fn partition(&self) -> &str {
        &self.shared.keys.partition
    }
}

#[async_trait]
impl Store for DynamoDbStore {
    fn describe(&self) -> Description {
        let Shared { identity, consistency, .. } = &*self.shared;
        let replica = *consistency == Consistency::Eventual;
        Description { has_store_time: true, replica, ..Description::new(KIND, identity.clone()) }
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        in_range(&[(claim.token, FencingToken::MAX), (claim.ttl_ms, MAX_TTL_MS)])?;
        let update = expressions::claim(self.partition(), claim)
            .ok_or_else(|| invalid("the claim expects a version that this store has not given"))?;
        let written = self.write(&claim.name, update, ReturnValue::None).await?;
        Ok(written.map(|written| match written {
            Written::Accepted(_) => Claimed::Granted,
            // An earlier copy of the same body comes back as a failed condition on our own record.
            Written::Refused(stored) => match record::claim(&stored, claim) {
                Outcome::Already => Claimed::Granted,
                _ => Claimed::Refused(stored.view()),
            },
        }))
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        let mut answers = Vec::with_capacity(renewals.len());
        for renew in renewals {
            answers.push(self.renew_one(renew).await);
        }
        answers
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        if vacate.burn {
            in_range(&[(vacate.token, FencingToken::MAX)])?;
        }
        let update = expressions::vacate(self.partition(), vacate, self.shared.retention_s);
        let written = self.write(&vacate.name, update, ReturnValue::None).await?;
        Ok(written.map(|written| match written {
            Written::Accepted(_) => Vacated::Vacated,
            Written::Refused(stored) => Vacated::Refused(stored.view()),
        }))
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        let written = self.write(&revoke.name, expressions::revoke(revoke), ReturnValue::None).await?;
        Ok(written.map(|written| match written {
            Written::Accepted(_) => Revoked::Revoked,
            Written::Refused(stored) => match record::revoke(&stored, revoke) {
                Outcome::Already => Revoked::Revoked,
                _ => record::revoke_refused(&stored, revoke),
            },
        }))
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        let written = self.write(&ask.name, expressions::ask(ask), ReturnValue::None).await?;
        Ok(written.map(|written| match written {
            Written::Accepted(_) => Asked::Asked,
            Written::Refused(stored) => Asked::Refused(stored.view()),
        }))
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        let item = self.shared.link.get(self.shared.keys.of(name)).await?;
        Ok(item.map(|item| item::stored(item.as_ref()).view()))
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        list::page(&self.shared.link, &self.shared.keys, prefix, page.as_ref()).await
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        let Shared { link, keys, retention_s, identity, consistency } = &*self.shared;
        let (keys, retention_s, identity) = (keys.clone(), *retention_s, identity.clone());
        let shared = Shared { link: link.isolated(), keys, retention_s, identity, consistency: *consistency };
        Some(Arc::new(Self { shared: Arc::new(shared) }))
    }
}

impl fmt::Debug for DynamoDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { link, keys, retention_s, identity, .. } = &*self.shared;
        f.debug_struct("DynamoDbStore")
            .field("table", &link.place.table)
            .field("keys", keys)
            .field("retention_s", retention_s)
            .field("identity", identity)
            .finish_non_exhaustive()
    }
}

/// This copy was refused, but without the item nobody can tell whether by a rival's record or by our own from an
/// earlier copy.
fn after_a_refusal(error: StoreError) -> StoreError {
    StoreError { applied: Applied::Unknown, ..error }
}

/// A number outside its range would make the record unreadable for everybody: it is never sent.
fn in_range(numbers: &[(u64, u64)]) -> Result<(), StoreError> {
    match numbers.iter().find(|(number, most)| *number == 0 || number > most) {
        Some((number, most)) => Err(invalid(format!("{number} is not in 1 to {most}"))),
        None => Ok(()),
    }
}

fn invalid(what: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, Applied::No, what)
}
