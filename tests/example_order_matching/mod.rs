//! Runs the order matching example, and reads the table at its end.
#![allow(unreachable_pub, reason = "a module of several tests")]

use std::process::Command;

use super::support::example::built;

/// Runs it as a user does, and checks what its table has to show on every store: duplicates without a guard and with a
/// lease alone, none with the fence, which has refused the late write.
pub fn shows_that_only_the_fence_prevents_duplicates(store: &str, variables: &[(&str, &str)], removed: &[&str]) {
    let mut command = Command::new(built("order_matching"));
    command.arg(store);
    for name in removed {
        command.env_remove(name);
    }
    let run = command.envs(variables.iter().copied()).output().expect("it starts");
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}");
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));

    let [none, lease, fenced] = ["none  ", "lease  ", "lease and fence  "].map(|guard| Row::of(&said, guard));
    for row in [&none, &lease, &fenced] {
        assert_eq!((row.orders, row.never), (12_000, 0), "{said}");
    }
    // The frozen worker's batch, at the least: its late write is accepted.
    assert!(none.twice >= 200 && none.refused == 0, "{said}");
    assert!(lease.twice >= 200 && lease.refused == 0, "{said}");
    assert!(fenced.twice == 0 && fenced.refused >= 1, "{said}");
    for row in [&lease, &fenced] {
        let [old, new] = row.tokens[..] else { panic!("nobody took over:\n{said}") };
        assert!(old < new, "{said}");
    }
}

struct Row {
    orders: usize,
    twice: usize,
    never: usize,
    refused: usize,
    tokens: Vec<u64>,
}

impl Row {
    fn of(said: &str, guard: &str) -> Self {
        let line = said.lines().find_map(|line| line.strip_prefix(guard)).unwrap_or_else(|| panic!("no row:\n{said}"));
        let (counts, tokens) = line.split_once(" s  ").expect("the seconds stand before the tokens");
        let mut counts = counts.split_whitespace().map_while(|count| count.parse().ok());
        let mut next = || counts.next().expect("a count");
        let (orders, twice, never, refused) = (next(), next(), next(), next());
        Self {
            orders,
            twice,
            never,
            refused,
            tokens: tokens.split(", ").filter_map(|token| token.parse().ok()).collect(),
        }
    }
}
