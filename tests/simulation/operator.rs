//! What an operator does.

use std::sync::Arc;
use std::time::Duration;

use super::chance::Chance;
use super::machine::Cancel;
use super::plan::Theme;
use super::world::{Process, World};

/// Looks at a lease now and then, and revokes it or asks its holder to finish.
pub async fn operate(world: Arc<World>, process: Process, chance: Chance) {
    // A stream of its own: what is done does not hang on what is cancelled.
    let cancels = Chance::new(world.plan.seed, 4);
    while !world.is_healed() {
        let pause = if world.plan.theme == Theme::Deadline {
            world.plan.longest_ttl() / 3
        } else {
            world.plan.longest_ttl() * 2
        };
        world.sleep(chance.up_to(pause)).await;
        // While a deadline and a count run out nobody else touches the record.
        if world.plan.theme == Theme::Deadline && world.is_any_cut_off() {
            continue;
        }
        let name = world.name(chance.between(0, world.plan.names as u64 - 1) as usize);
        let term = world.plan.longest_ttl();
        let found = Cancel::draw(&world, &cancels, term).of(process.leases.inspect(name.as_str())).await;
        let Some(Ok(found)) = found else {
            // What failed is the operator's own affair.
            if found.is_none() {
                world.cancelled(process.id, "inspect");
            }
            continue;
        };
        let Some(token) = found.token else { continue };
        let revokes = if world.plan.theme == Theme::Deadline { 30 } else { 300 };
        for _ in 0..chance.of(&[1, 1, 3]) {
            let (revokes, cancel) = (chance.per_mille(revokes), Cancel::draw(&world, &cancels, term));
            let (what, done) = match revokes {
                true => ("revoke", cancel.of(process.leases.revoke(name.as_str(), token)).await.map(|_| ())),
                false => {
                    let ask = process.leases.ask(name.as_str(), token, Duration::from_secs(1));
                    ("ask", cancel.of(ask).await.map(|_| ()))
                }
            };
            if done.is_none() {
                world.cancelled(process.id, what);
            }
        }
    }
}
