//! Many clients at once on one name: a conditional write is one write.

use std::sync::Arc;

use futures_util::future::join_all;

use super::bench::{Answered, Bench, freed, record_of, renewal};
use super::{Case, Checked, Stop, cases, ensure};
use crate::types::{Claim, Record};

const RIVALS: u64 = 16;
const ROUNDS: u64 = 5;

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        of_many_claims_with_one_token_exactly_one_is_granted,
        of_many_takeovers_of_one_write_exactly_one_is_granted,
        of_many_claims_of_a_free_record_exactly_one_is_granted,
        a_release_is_seen_by_every_read_that_begins_after_it,
    ]
}

async fn of_many_claims_with_one_token_exactly_one_is_granted(b: Bench) -> Checked {
    for round in 0..ROUNDS {
        let claims = (0..RIVALS).map(|_| b.claim(&format!("{round}"), 5)).collect();
        one_wins(&b, claims).await?;
    }
    Ok(())
}

async fn of_many_takeovers_of_one_write_exactly_one_is_granted(b: Bench) -> Checked {
    for round in 0..ROUNDS {
        let tail = format!("{round}");
        b.granted(&b.mortal(b.claim(&tail, 5))).await?;
        let expect = b.dead(&b.name(&tail)).await?;
        let rival = |token| Claim { expect: expect.clone(), ..b.claim(&tail, token) };
        one_wins(&b, (0..RIVALS).map(|index| rival(6 + index)).collect()).await?;
    }
    Ok(())
}

async fn of_many_claims_of_a_free_record_exactly_one_is_granted(b: Bench) -> Checked {
    for round in 0..ROUNDS {
        let tail = format!("{round}");
        let first = b.claim(&tail, 5);
        let free = freed(&b.granted(&first).await?);
        b.accepts(&b.release_of(&first), &free).await?;
        one_wins(&b, (0..RIVALS).map(|index| b.claim(&tail, 6 + index)).collect()).await?;
    }
    Ok(())
}

async fn a_release_is_seen_by_every_read_that_begins_after_it(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let mut record = b.granted(&claim).await?;
    for version in 2..12 {
        record.version = Some(version);
        let answer = b.send(&renewal(&claim, version)).await?;
        ensure!(matches!(answer, Answered::Accepted), "a renewal was answered {answer:?}");
        all_read(&b, &record).await?;
    }
    b.send(&b.release_of(&claim)).await?;
    all_read(&b, &freed(&record)).await
}

async fn all_read(b: &Bench, record: &Record) -> Checked {
    let name = b.name("a");
    let reads = (0..4).map(|_| b.shows(&name, Some(record)));
    join_all(reads).await.into_iter().collect()
}

/// Sends all at the same time: one is granted, and all others are shown the winner or what it took.
async fn one_wins(b: &Bench, claims: Vec<Claim>) -> Checked {
    let claims: Arc<[Claim]> = claims.into();
    let tasks = (0..claims.len()).map(|index| {
        let (b, claims) = (b.clone(), Arc::clone(&claims));
        tokio::spawn(async move { b.send(&claims[index]).await })
    });
    let mut winners = Vec::new();
    for (claim, task) in claims.iter().zip(tasks.collect::<Vec<_>>()) {
        match task.await.map_err(|error| Stop::Failed(format!("it panicked: {error}")))?? {
            Answered::Accepted => winners.push(claim),
            Answered::Refused(_) => {}
            other @ Answered::AlreadyRevoked => ensure!(false, "a claim was answered {other:?}"),
        }
    }
    ensure!(winners.len() == 1, "of {} claims at the same time {} were granted", claims.len(), winners.len());
    b.shows(&winners[0].name, Some(&record_of(winners[0]))).await
}
