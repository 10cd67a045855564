//! The caller's own pairs on a lease's blob (fault G4), and what fits beside them.

use std::collections::BTreeMap;

use leasehold::store::Store;
use leasehold::{Applied, Claim, Data, Label, Renew, Renewed, StoreErrorKind, Vacate, Vacated};
use tokio::time::sleep;

use crate::ground::{
    Ground, TERM, a, b, burn, c, claim, closing, error, force, name, release, renew, renew_with, resume, revoke,
};
use crate::support::azure::{Fault, Op};

/// Names that the service sorts in another way than by their bytes, when it checks a signature.
const PAIRS: [(&str, &str); 5] =
    [("a1", "x"), ("a_b", "y = 'z', \"1\"; %20 +/"), ("ab", "  inner   blanks".trim_ascii()), ("lh", "?"), ("_0", "~")];

fn pairs_of(ground: &Ground) -> BTreeMap<String, String> {
    let pairs = ground.job().metadata;
    pairs.into_iter().filter(|(name, _)| !name.starts_with("lh_")).collect()
}

fn expected() -> BTreeMap<String, String> {
    PAIRS.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

/// A free lease that has these pairs as well.
fn with_pairs(pairs: &[(&str, &str)]) -> Ground {
    let ground = Ground::new();
    let ours = [("lh_format", "1"), ("lh_token", "3")];
    ground.fake.put_foreign("job", &[&ours, pairs].concat());
    ground
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_pairs_survive_every_verb() {
    let ground = with_pairs(&PAIRS);
    let survive = |what: &str| assert_eq!(pairs_of(&ground), expected(), "{what}");
    ground.store.granted(&claim(5, a())).await;
    survive("a claim");
    ground.store.renewed(&renew_with(5, a(), "one")).await;
    survive("a payload");
    ground.another().granted(&resume(6, b(), a())).await;
    survive("a hand-over");
    ground.store.vacated(&release(6, b())).await;
    ground.store.granted(&claim(7, a())).await;
    ground.store.revoke(&revoke(7)).await.expect("answered");
    ground.store.revoke(&force(7)).await.expect("answered");
    survive("revoked and forced");
    ground.store.vacated(&burn(8, c())).await;
    survive("a clean-up");
    ground.store.granted(&claim(9, a())).await;
    sleep(TERM).await;
    ground.store.claim(&claim(10, b())).await.expect("answered");
    ground.store.vacated(&closing(9, a())).await;
    ground.store.vacated(&burn(11, b())).await;
    survive("the end of a term");
    assert_eq!(ground.job().body, b"foreign", "and the blob's content");
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_is_added_while_the_lease_is_held_survives_the_holders_next_write() {
    let ground = with_pairs(&[]);
    ground.store.granted(&claim(5, a())).await;
    ground.fake.edit_metadata("job", |pairs| _ = pairs.insert("added".into(), "later".into()));
    assert_eq!(ground.store.renewed(&renew_with(5, a(), "one")).await, Renewed::Renewed(None));
    assert_eq!(ground.pair("added").as_deref(), Some("later"));
    assert_eq!(ground.pair("lh_data").as_deref(), Some("_b25l"));
    ground.fake.edit_metadata("job", |pairs| _ = pairs.insert("added".into(), "again".into()));
    assert_eq!(ground.store.vacated(&closing(5, a())).await, Vacated::Vacated);
    assert_eq!(ground.pair("added").as_deref(), Some("again"));
    assert_eq!(ground.pair("lh_closed_by").as_deref(), Some("5"));
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_is_added_between_the_look_and_the_lease_is_seen() {
    let ground = with_pairs(&[]);
    ground.fake.on(Op::Acquire).before(|fake| {
        fake.edit_metadata("job", |pairs| _ = pairs.insert("added".into(), "later".into()));
    });
    ground.store.granted(&claim(5, a())).await;
    assert_eq!(ground.pair("added").as_deref(), Some("later"));
    assert_eq!(ground.asked(), [Op::HeadBlob, Op::Acquire, Op::HeadBlob, Op::Acquire, Op::SetMetadata]);
}

/// The largest of everything.
fn largest() -> Claim {
    Claim {
        name: name(&"é".repeat(128)),
        token: (1 << 53) - 1,
        holder: Label::new("é".repeat(64)).ok(),
        data: Data::new(&[0xff; 4096]),
        set: Some(leasehold::MemberSet(u64::MAX)),
        ..claim(5, a())
    }
}

#[tokio::test(start_paused = true)]
async fn the_largest_of_everything_fits_and_is_kept_exactly() {
    let ground = Ground::new();
    let claim = Claim { ttl_ms: 60_000, ..largest() };
    ground.store.granted(&claim).await;
    let close = leasehold::Close { for_ms: u64::MAX, until_ms: Some(u64::MAX), data: claim.data.clone() };
    let view = ground.store.read(&claim.name).await.expect("answered").value;
    let record = view.record.expect("there");
    assert_eq!((record.token, &record.holder, &record.data), (claim.token, &claim.holder, &claim.data));
    assert_eq!((record.set, record.ttl_ms), (claim.set, Some(60_000)));
    let closing = Vacate { name: claim.name.clone(), close: Some(close), ..release(claim.token, claim.grant) };
    assert_eq!(ground.store.vacated(&closing).await, Vacated::Vacated);
    let record = ground.store.read(&claim.name).await.expect("answered").value.record.expect("there");
    let closed = record.closed.expect("closed");
    assert_eq!((closed.for_ms, closed.until_ms, closed.by), (Some(u64::MAX), Some(u64::MAX), Some(claim.token)));
}

/// Fills the blob so that so many bytes are left beside what is there.
fn fill(ground: &Ground, left: usize) {
    ground.fake.edit_metadata("job", |pairs| {
        let used: usize = pairs.iter().map(|(name, text)| name.len() + text.len()).sum();
        pairs.insert("theirs".into(), "x".repeat(8192 - used - "theirs".len() - left));
    });
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_does_not_fit_beside_the_pairs_of_others_is_an_error_and_leases_nothing() {
    let ground = with_pairs(&[]);
    fill(&ground, 100);
    ground.forget();
    let before = ground.job();
    let failed = error(ground.store.claim(&Claim { data: Data::new(&[7; 200]), ..claim(5, a()) }).await);
    assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Invalid, Applied::No));
    assert!(failed.to_string().contains("8192") && failed.to_string().contains("pairs of others"), "{failed}");
    assert!(!ground.asked().contains(&Op::Acquire));
    let after = ground.job();
    assert_eq!((after.etag, after.metadata), (before.etag, before.metadata));
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_fit_is_an_error_and_neither_the_record_nor_the_lease_is_harmed() {
    let ground = with_pairs(&[]);
    ground.store.granted(&Claim { data: Data::new(b"old"), ..claim(5, a()) }).await;
    fill(&ground, 100);
    let renew = |size: usize| Renew { data: Data::new(&vec![7; size]), ..renew(5, a()) };
    let failed = error(ground.store.try_renew(&renew(200)).await);
    assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Invalid, Applied::No), "{failed}");
    assert_eq!(ground.pair("lh_data").as_deref(), Some("_b2xk"));
    assert_eq!(ground.store.renewed(&renew(50)).await, Renewed::Renewed(None), "a smaller one does");
    let failed = error(
        ground
            .store
            .vacate(&Vacate {
                close: Some(leasehold::Close { for_ms: 1, until_ms: None, data: Data::new(&[7; 300]) }),
                ..release(5, a())
            })
            .await,
    );
    assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Invalid, Applied::No), "{failed}");
    assert_eq!(ground.leased_by(), Some(a()), "not given back, because the outcome is not recorded");
    assert_eq!(ground.store.vacated(&release(5, a())).await, Vacated::Vacated);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_takes_less_than_it_says_costs_an_error_and_a_clean_up() {
    let ground = with_pairs(&[]);
    ground.fake.on(Op::SetMetadata).fault(Fault::Answer(400, "MetadataTooLarge"));
    let failed = error(ground.store.claim(&claim(5, a())).await);
    assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Invalid, Applied::Unknown), "it has the lease");
    ground.fake.forget_requests();
    assert_eq!(ground.store.vacated(&burn(5, a())).await, Vacated::Vacated);
    ground.another().granted(&claim(6, b())).await;
}

#[tokio::test(start_paused = true)]
async fn names_of_pairs_lose_their_capitals_and_nothing_else() {
    let ground = with_pairs(&[("Owner", "Team A")]);
    ground.store.granted(&claim(5, a())).await;
    assert_eq!(ground.pair("owner").as_deref(), Some("Team A"));
}
