//! How workers leave something to be remembered: they close their leases, and run work once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::recipes::{Failed, Once, OnceError, Outcome};
use leasehold::{Data, Held, Lease, Name};

use super::closings::Told;
use super::worker::Worker;

/// How work fails that is run once.
enum Failure {
    Passing,
    ForGood,
}

impl Worker {
    /// Whether it closes a lease, or runs something once, next. Not at the end, when others are to get every name.
    pub fn remembers(&self, of_thousand: u64) -> bool {
        self.chance.per_mille(of_thousand) && !self.world.is_healed()
    }

    pub async fn close(&self, lease: Lease, name: &Name, token: u64) {
        let number = self.world.next_id().to_be_bytes();
        let data = self.chance.per_mille(700).then(|| Data::new(&number)).flatten();
        let done = self.cancel().of(lease.close(self.keep(), data)).await;
        if let Some(done) = &done {
            let told = Told::of(done);
            self.world.checks(|checks| {
                checks.closing_told(name, token, told);
                match (told, done) {
                    (Told::Recorded, _) => checks.released(name, token),
                    (_, Ok(_)) => checks.silenced(name, token),
                    _ => {}
                }
            });
        }
        self.told(done, "close");
    }

    pub async fn once(&self, name: &Name, before: &BTreeMap<Name, u64>) {
        let mut once = Once::new(&self.process.leases).keep(self.keep());
        if self.chance.per_mille(200) {
            once = once.at_most(self.plan.ttl + self.chance.up_to(self.plan.ttl * 2));
        }
        let number = self.world.next_id().to_be_bytes();
        let begun = Mutex::new(None);
        let work = |held: Held| {
            let begun = &begun;
            async move {
                let token = held.token().as_u64();
                *begun.lock().unwrap() = Some((self.acquired(&held, before), token));
                self.use_it(&held, None).await;
                self.world.checks(|checks| checks.over(name, token));
                match self.chance.between(0, 9) {
                    0 => Err(Failed::Retry(Failure::Passing)),
                    1 => Err(Failed::Remember(Failure::ForGood, number.to_vec())),
                    _ => Ok(number),
                }
            }
        };
        let ran = self.cancel().of(once.run(name.as_str(), work)).await;
        let begun = begun.into_inner().unwrap();
        match (ran, begun) {
            (None, _) => self.cancelled("once"),
            (Some(Ok(Outcome::Done(_)) | Err(OnceError::Work(Failure::ForGood))), Some((_, token))) => {
                self.world.checks(|checks| {
                    checks.closing_told(name, token, Told::Recorded);
                    checks.released(name, token);
                })
            }
            (Some(Ok(Outcome::AlreadyDone(value) | Outcome::AlreadyFailed(value))), None) => {
                self.world.checks(|checks| checks.outcome_told(name, &value));
            }
            (Some(Ok(Outcome::InProgress(_))), None) => {}
            (Some(Err(OnceError::NotRemembered { error, .. })), Some((_, token))) => {
                self.world.checks(|checks| checks.closing_told(name, token, Told::by(&error)));
                self.expect(&error);
            }
            (Some(Err(OnceError::Lease(error))), None) => self.expect(&error),
            (Some(Err(OnceError::Work(Failure::Passing) | OnceError::Lost(_))), Some(_)) => {}
            (Some(ran), begun) => {
                let (ran, begun) = (ran.ok(), begun.is_some());
                self.world
                    .checks(|checks| checks.fail(format!("{name}: {ran:?}, and that the work has begun: {begun}")));
            }
        }
        if let Some((id, token)) = begun {
            self.done(name, token, id);
        }
    }

    fn keep(&self) -> Duration {
        self.chance.up_to(self.plan.keeps)
    }
}
