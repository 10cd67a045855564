//! What is assumed of operators and of clocks: explored where it is kept, and refuted where it is not, with every rule
//! of the protocol whole. And claims that a look at the payload decides.

use leasehold::protocol::acquire::Goal;
use leasehold::protocol::broken::Broken;
use leasehold::protocol::rules::Ratio;

use crate::configurations::deletion;
use crate::monitor::Invariant;
use crate::refutations::{Refutation, refute_all};
use crate::setup::{Left, Setup};

/// A rate within one per cent of true time, drawn anew in each tick of a hundred units.
const WITHIN: &[u64] = &[99, 100, 101];

/// Worlds that keep what is assumed of them.
pub(crate) fn kept() -> Vec<Setup> {
    vec![
        restored(),
        restored_with_copies(),
        restored_under_a_holder(),
        failed_over(),
        wall_observed(),
        wall_dated(),
        rates_observed(300, WITHIN),
        rates_observed(302, WITHIN).with(|s| s.title = "rates that change within rho, a term of no whole ticks"),
        rates_dated(WITHIN),
        looked_at_first(),
        looked_at_where_nothing_is(),
    ]
}

/// Worlds that keep it, too large for the ordinary run.
pub(crate) fn kept_at_length() -> Vec<Setup> {
    let rates = rates_observed(300, &[98, 99, 100, 101, 102]).with(|s| {
        s.title = "rates that change within a rho of two per cent, five of them";
        s.rules.clocks.rho.num = 2;
    });
    let jumps = wall_observed().with(|s| {
        s.title = "a wall clock that jumps near and far";
        s.jumps = &[-3, -1, 1, 3];
    });
    vec![slow_answers(2), rates, jumps]
}

#[test]
fn every_world_that_breaks_an_assumption_is_refuted() {
    use Invariant as I;
    let of = |title, violates, setup: Setup| {
        let setup = setup.with(|s| s.title = title);
        Refutation { broken: None, violates, setup }
    };
    let shortly = |setup: Setup| setup.with(|s| s.ticks = 3);
    refute_all(vec![
        of("a restore, and acquires are not stopped around it", I::I1, restored().with(goes_on)),
        of("a restore without a floor of tokens", I::I1, restored_without_a_floor()),
        of(
            "a restore, and exclusion expected in the term after it",
            I::I3,
            failed_over().with(|s| s.voids_a_term = false),
        ),
        of("a restore, acquires stopped for less than the store's time may be unsure", I::I1, slow_answers(1)),
        of("a holder's clock slower than rho allows", I::I3, shortly(rates_observed(300, &[98, 100, 101]))),
        of("a taker's clock faster than rho allows", I::I3, shortly(rates_observed(302, &[99, 100, 102]))),
        of("a holder's clock slower than rho allows, store time", I::I3, shortly(rates_dated(&[98, 100, 101]))),
    ]);
}

#[test]
fn every_broken_rule_of_local_clocks_and_of_looks_is_refuted() {
    let of = |broken, violates, setup| Refutation { broken: Some(broken), violates, setup };
    let refutations = vec![
        of(Broken::TakerTrustsWallClock, Invariant::I3, wall_observed()),
        of(Broken::HolderTrustsWallClock, Invariant::I3, wall_observed()),
        of(Broken::WallClockEndsTerm, Invariant::Wall, wall_observed()),
        of(Broken::TermWithoutRho, Invariant::I3, rates_observed(300, WITHIN).with(|s| s.ticks = 3)),
        of(Broken::WatchWithoutRho, Invariant::I3, rates_observed(302, WITHIN).with(|s| s.ticks = 3)),
        of(Broken::LookIsNotNamed, Invariant::Look, looked_at_first()),
        of(Broken::LookNeedsNoRecord, Invariant::Look, looked_at_where_nothing_is()),
    ];
    let listed: Vec<Broken> = refutations.iter().filter_map(|refutation| refutation.broken).collect();
    assert_eq!(listed, Broken::ASSUMED, "each broken rule has one refutation, in their order");
    refute_all(refutations);
}

/// A record put back as a backup has it, as the guide says: acquires are stopped before it and for a while.
fn restored() -> Setup {
    Setup::dated("a restore from a backup, with store time as the floor of tokens", 0).with(deletion).with(|s| {
        s.left = Left { backups: 1, restores: 1, ..Left::default() };
    })
}

fn restored_with_copies() -> Setup {
    restored().with(|s| {
        s.title = "a restore, releases, copies";
        s.release = true;
        s.renewals = 0;
        s.quiet = 2;
        s.ticks = 5;
        s.left.copies = 1;
    })
}

fn restored_under_a_holder() -> Setup {
    restored().with(|s| {
        s.title = "a restore under a holder that renews";
        s.goals = [Goal::Try, Goal::Wait];
        s.attempts = [1, 1];
        s.renewals = 2;
        s.ticks = 5;
    })
}

/// Nobody has stopped anything: then only exclusion comes back, after a term.
fn failed_over() -> Setup {
    restored_under_a_holder().with(|s| {
        s.title = "a failover that lost writes, unannounced";
        s.excepted = &[Invariant::I1, Invariant::I2, Invariant::I7];
        goes_on(s);
    })
}

fn goes_on(s: &mut Setup) {
    s.stops_acquires = false;
    s.quiet = 0;
}

/// On a store without a time of its own.
fn restored_without_a_floor() -> Setup {
    restored().with(|s| {
        s.rules.use_store_time = false;
        s.rules.trusts_store_time = false;
        s.rules.has_store_time = false;
        s.attempts = [2, 2];
        s.release = true;
    })
}

/// One client has known the store's time by slow answers only, as unsure as it may be: two ticks.
fn slow_answers(quiet: u64) -> Setup {
    restored().with(|s| {
        s.title = "a restore, and one who knows the store's time badly";
        s.slow = Some(1);
        s.attempts = [2, 2];
        s.renewals = 0;
        s.release = true;
        s.rules.ttl = 8;
        s.rules.clocks.widest = 16;
        s.quiet = quiet;
        s.ticks = quiet + 2;
    })
}

fn wall_observed() -> Setup {
    Setup::observed("a wall clock that jumps forward and back").with(|s| {
        s.ticks = 3;
        s.left = Left { jumps: 2, ..Left::default() };
    })
}

/// No renewal is due at once, unless by a jump.
fn wall_dated() -> Setup {
    Setup::dated("a wall clock that jumps forward and back, store time", 0).with(|s| {
        s.ticks = 4;
        s.goals = [Goal::Try, Goal::Wait];
        s.prompt = true;
        s.rules.renew_every = 2;
        s.rules.ttl = 3;
        s.left = Left { jumps: 2, ..Left::default() };
    })
}

/// By the real rho. A term of 300 is three ticks on a holder's slowest clock, and no less; what a taker watches for one of
/// 302 is more than three ticks on its fastest.
fn rates_observed(ttl: u64, drawn: &'static [u64]) -> Setup {
    Setup::observed("rates that change within rho").with(|s| rates(s, ttl, drawn))
}

/// A taker decides by a fresh answer, so that here only the holder's rate counts.
fn rates_dated(drawn: &'static [u64]) -> Setup {
    Setup::dated("rates that change within rho, store time", 0).with(|s| {
        rates(s, 298, drawn);
        s.goals = [Goal::Try; 2];
    })
}

fn rates(s: &mut Setup, ttl: u64, drawn: &'static [u64]) {
    s.scale = 100;
    s.rates = [100; 2];
    s.rates_drawn = [drawn; 2];
    s.rules.clocks.rho = Ratio { num: 1, den: 100 };
    s.rules.clocks.widest = 10_000;
    s.rules.clocks.oldest = 10_000;
    s.rules.ttl = ttl;
    s.goals = [Goal::Try, Goal::Wait];
    s.prompt = true;
    s.ticks = 4;
    s.left = Left::default();
}

/// Two who look first, and whose claims leave what says no to the other: a tick of a schedule. With a floor of tokens a
/// claim that was decided on later has the higher one.
fn looked_at_first() -> Setup {
    restored().with(|s| {
        s.title = "a payload that says no, looked at before the claim";
        s.looks = true;
        s.begins_free = true;
        s.attempts = [1, 1];
        s.renewals = 0;
        s.release = true;
        s.prompt = false;
        s.ticks = 3;
        s.left = Left::default();
    })
}

/// The first tick of all.
fn looked_at_where_nothing_is() -> Setup {
    looked_at_first().with(|s| {
        s.title = "a look that shows no record";
        s.begins_free = false;
    })
}
