//! What an operator does: looks, lists, revokes, asks, and seldom more.

use std::sync::Arc;
use std::time::Duration;

use leasehold::{FencingToken, Name};

use super::chance::Chance;
use super::machine::Cancel;
use super::plan::Theme;
use super::setting::Fault;
use super::world::{Process, World};

pub async fn operate(world: Arc<World>, process: Process, chance: Chance) {
    // A stream of its own: what is done does not hang on what is cancelled.
    let cancels = Chance::new(world.plan.seed, 4);
    while !world.is_healed() {
        let term = world.plan.longest_ttl();
        world.sleep(chance.up_to(if world.plan.theme == Theme::Deadline { term / 3 } else { term * 2 })).await;
        // While a deadline runs out nobody else touches the blob.
        if world.is_healed() || (world.plan.theme == Theme::Deadline && world.is_any_cut_off()) {
            continue;
        }
        let name = world.name(chance.between(0, world.plan.names as u64 - 1) as usize);
        if chance.per_mille(world.plan.often(Fault::Deletion)) {
            world.delete(&name);
            continue;
        }
        if chance.per_mille(200) {
            list(&world, &process).await;
            continue;
        }
        let found = Cancel::draw(&world, &cancels, term).of(process.leases.inspect(name.as_str())).await;
        if found.is_none() {
            world.cancelled(process.id, "inspect");
        }
        let Some(Ok(found)) = found else { continue };
        if let Some(token) = found.token {
            act(&world, &process, &chance, &cancels, &name, token).await;
        }
    }
}

async fn act(world: &World, process: &Process, chance: &Chance, cancels: &Chance, name: &Name, token: FencingToken) {
    let revokes = if world.plan.theme == Theme::Deadline { 30 } else { 300 };
    for _ in 0..chance.of(&[1, 1, 3]) {
        let cancel = Cancel::draw(world, cancels, world.plan.longest_ttl());
        let leases = &process.leases;
        // Whether it succeeds is the operator's own affair: what it does to others is what is looked at.
        let (what, done) = match () {
            () if chance.per_mille(world.plan.often(Fault::Force)) => {
                ("force", cancel.of(leases.force(name.as_str(), token)).await.map(|_| ()))
            }
            () if chance.per_mille(revokes) => {
                ("revoke", cancel.of(leases.revoke(name.as_str(), token)).await.map(|_| ()))
            }
            () => {
                let ask = leases.ask(name.as_str(), token, Duration::from_secs(1));
                ("ask", cancel.of(ask).await.map(|_| ()))
            }
        };
        if done.is_none() {
            world.cancelled(process.id, what);
        }
    }
}

async fn list(world: &World, process: &Process) {
    let mut listing = process.leases.list("job-");
    let mut names = Vec::new();
    while let Ok(Some(found)) = listing.next().await {
        names.push(found.name);
    }
    let known: Vec<_> = (0..world.plan.names).map(|number| world.name(number)).collect();
    if listing.skipped() > 0 || names.iter().any(|name| !known.contains(name)) {
        let what = format!("a listing of {known:?} skips {} and shows {names:?}", listing.skipped());
        world.checks(|checks| checks.fail(what));
    }
    world.checks(|checks| checks.counts.one_more("listed"));
}

impl World {
    /// By hand. For a term nobody keeps two holders apart; and tokens rise again only for claims that are sent
    /// after it, from the service's time on, which may be known to 30 s only.
    fn delete(&self, name: &Name) {
        let term = self.plan.longest_ttl();
        let mut state = self.state();
        if !state.truth.service.delete_blob(name.as_str()) {
            return;
        }
        state.note_in("deleted", 0, 0, 0);
        let now = state.checks.now;
        state.checks.counts.one_more("deleted");
        state.checks.closings.carried.remove(name);
        state.checks.two_may_believe.insert(name.clone(), now + term);
        state.checks.tokens_may_fall.insert(name.clone(), now + term + Duration::from_secs(30));
    }
}
