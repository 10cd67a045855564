//! The constants: how a term, a pause and a count come from them, and which way they are rounded.

use leasehold::protocol::rules::{Clocks, Ratio, Rules};

use super::RULES;

#[test]
fn a_holder_believes_for_its_term_on_a_slow_clock_less_the_margin() {
    assert_eq!((RULES.usable(), RULES.term(), RULES.least_left()), (990, 900, 410));
    // A service that counts whole seconds itself, on a clock that may be fast: two rates and a second less.
    let native = Rules { native: true, ..RULES };
    assert_eq!((native.usable(), native.term()), (970, 880));
}

#[test]
fn a_taker_watches_for_the_term_on_a_fast_clock() {
    assert_eq!(RULES.clocks.watch(1000), 1010);
    assert_eq!(RULES.clocks.watch(1001), 1012, "rounded up");
    assert_eq!(Clocks { milli: 10, ..RULES.clocks }.watch(100), 1010);
}

#[test]
fn pauses_double_from_a_sixteenth_of_an_attempt_up_to_an_attempt() {
    let pauses: Vec<_> = [0, 1, 2, 3, 4, 5, 6, u8::MAX].map(|failures| RULES.pause(failures, 1000)).into();
    assert_eq!(pauses, [10, 10, 20, 40, 80, 160, 160, 160]);
    // Six doublings are the most, also where an attempt has room for more.
    let long = Rules { attempt: 16_000, ..RULES };
    assert_eq!((long.pause(5, 1000), long.pause(6, 1000)), (16_000, 16_000));
    assert_eq!(RULES.shortest_pause(), 10);
    assert_eq!(Rules { attempt: 0, ..RULES }.pause(7, 1000), 1, "never none");
}

#[test]
fn jitter_spreads_a_pause_over_its_upper_half() {
    assert_eq!([0, 500, 1000, 9999].map(|jitter| RULES.pause(5, jitter)), [80, 120, 160, 160]);
    assert_eq!([0, 1000].map(|jitter| RULES.poll_pause(jitter)), [50, 100]);
    assert_eq!([0, 1000].map(|jitter| RULES.first_renewal(jitter)), [150, 300]);
    let odd = Rules { poll: 101, ..RULES };
    assert_eq!([0, 1000].map(|jitter| odd.poll_pause(jitter)), [51, 101]);
}

#[test]
fn a_holder_in_danger_pauses_for_a_quarter_of_what_is_left_at_most() {
    assert_eq!(RULES.renewal_pause(5, 1000, 1000), 160);
    assert_eq!(RULES.renewal_pause(5, 400, 1000), 100);
    assert_eq!(RULES.renewal_pause(5, 8, 1000), 10, "but not less than the first pause");
    assert_eq!(RULES.renewal_pause(5, 400, 0), 50);
}

#[test]
fn a_record_counts_in_milliseconds_rounded_up() {
    let clocks = Clocks { milli: 10, ..RULES.clocks };
    assert_eq!((clocks.units(7), clocks.millis_up(70), clocks.millis_up(71)), (70, 7, 8));
    assert_eq!(Rules { clocks, ..RULES }.ttl_ms(), 100);
}

#[test]
fn a_clock_that_is_not_slewed_is_trusted_to_a_hundredth_and_others_to_a_tenth() {
    const SECOND: u64 = 1_000_000_000;
    let (fine, coarse) = (Clocks::of_machines(1), Clocks::of_machines(10));
    assert_eq!((fine.rho, coarse.rho), (Ratio { num: 1, den: 100 }, Ratio { num: 10, den: 100 }));
    assert_eq!((fine.widest, coarse.widest), (30 * SECOND, 180 * SECOND));
    assert_eq!((fine.kappa, fine.date_grain, fine.milli), (SECOND, SECOND, 1_000_000));
    assert_eq!(fine.oldest, 600 * SECOND);
}
