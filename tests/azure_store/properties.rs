//! Records in metadata, for random records, pairs and nonsense.

use std::collections::BTreeMap;

use leasehold::store::Store;
use leasehold::{
    Applied, Claim, Claimed, Close, Data, FencingToken, Grant, Label, MemberSet, Renew, Renewed, Standing,
    StoreErrorKind, Vacate, Vacated,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

use crate::ground::{Ground, burn, claim, closing, release, renew, value};
use crate::support::azure::Op;

type Pairs = BTreeMap<String, String>;

/// Runs a case on a service of its own.
fn for_each<S: Strategy>(cases: u32, strategy: S, case: impl AsyncFn(Ground, S::Value) -> TestCaseResult) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let ran =
        TestRunner::new(config).run(&strategy, |input| runtime.block_on(async { case(Ground::new(), input).await }));
    ran.unwrap_or_else(|error| panic!("{error}"));
}

fn label() -> impl Strategy<Value = Label> {
    "\\PC{0,32}".prop_filter_map("at most 128 bytes", |text| Label::new(text).ok())
}

fn data() -> impl Strategy<Value = Data> {
    vec(any::<u8>(), 0..=4096).prop_map(|bytes| Data::new(&bytes).expect("at most 4 KiB"))
}

/// Pairs that are not the library's, as the service keeps them.
fn pairs() -> impl Strategy<Value = Pairs> {
    let name = "[a-z_][a-z0-9_]{0,8}".prop_filter("not ours", |name| !name.starts_with("lh_"));
    btree_map(name, "[!-~]([ -~]{0,20}[!-~])?", 0..6)
}

prop_compose! {
    fn any_claim()(
        token in 1..=FencingToken::MAX,
        grant in 1..=u128::MAX,
        seconds in 15..=60u64,
        holder in option::of(label()),
        data in option::of(data()),
        set in option::of(any::<u64>()),
    ) -> Claim {
        let (grant, set) = (Grant::from_bits(grant), set.map(MemberSet));
        Claim { ttl_ms: seconds * 1000, holder, data, set, ..claim(token, grant) }
    }
}

fn put(ground: &Ground, pairs: &Pairs) {
    let pairs: Vec<_> = pairs.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    ground.fake.put_foreign("job", &pairs);
}

fn with_a_free_record(mut pairs: Pairs) -> Pairs {
    pairs.extend([("lh_format".into(), "1".into()), ("lh_token".into(), "0".into())]);
    pairs
}

fn foreign(ground: &Ground) -> Pairs {
    ground.job().metadata.into_iter().filter(|(name, _)| !name.starts_with("lh_")).collect()
}

#[test]
fn any_claim_payload_and_outcome_is_read_back_exactly_and_other_pairs_stay() {
    let close = (any::<u64>(), option::of(any::<u64>()), option::of(data()))
        .prop_map(|(for_ms, until_ms, data)| Close { for_ms, until_ms, data });
    for_each(60, (any_claim(), data(), close, pairs()), async |ground, (claim, newer, close, others)| {
        put(&ground, &with_a_free_record(others.clone()));
        prop_assert_eq!(ground.store.claimed(&claim).await, Claimed::Granted);
        let record = ground.store.view().await.record.expect("readable");
        prop_assert_eq!(
            (record.token, record.grant, record.ttl_ms),
            (claim.token, Some(claim.grant), Some(claim.ttl_ms))
        );
        prop_assert_eq!((&record.holder, &record.data, record.set), (&claim.holder, &claim.data, claim.set));

        let renew = Renew { data: Some(newer.clone()), ..renew(claim.token, claim.grant) };
        prop_assert_eq!(ground.store.renewed(&renew).await, Renewed::Renewed(None));
        let record = ground.store.view().await.record.expect("readable");
        prop_assert_eq!((record.data, record.holder), (Some(newer), claim.holder.clone()));

        let vacate = Vacate { close: Some(close.clone()), ..release(claim.token, claim.grant) };
        prop_assert_eq!(ground.store.vacated(&vacate).await, Vacated::Vacated);
        let record = ground.store.view().await.record.expect("readable");
        let closed = record.closed.expect("closed");
        prop_assert_eq!(
            (closed.for_ms, closed.until_ms, closed.by),
            (Some(close.for_ms), close.until_ms, Some(claim.token))
        );
        prop_assert_eq!((record.data, record.grant), (close.data, None));
        prop_assert_eq!(foreign(&ground), others);
        Ok(())
    });
}

/// A sound record in which fields are missing or nonsense.
fn hostile() -> impl Strategy<Value = Pairs> {
    const FIELDS: [&str; 14] = [
        "format",
        "token",
        "grant",
        "ttl_ms",
        "holder",
        "data",
        "set",
        "closed_ms",
        "closed_until_ms",
        "closed_by",
        "session",
        "revoked",
        "version",
        "other",
    ];
    let good = [
        ("lh_format", "1"),
        ("lh_token", "3"),
        ("lh_grant", "00000000-0000-0000-0000-00000000000c"),
        ("lh_ttl_ms", "15000"),
        ("lh_holder", "_Yw"),
    ];
    let good: Pairs = good.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let nonsense = prop_oneof![
        "[!-~]([ -~]{0,40}[!-~])?".boxed(),
        "[0-9]{1,40}".boxed(),
        "_[A-Za-z0-9_-]{0,40}={0,3}".boxed(),
        "-?[0-9]{1,3}(\\.[0-9])?".boxed(),
        "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".boxed(),
    ];
    let field = (prop::sample::select(&FIELDS[..]), option::of(nonsense));
    (vec(field, 1..4), pairs(), any::<bool>()).prop_map(move |(fields, others, empty)| {
        let mut pairs = if empty { Pairs::new() } else { good.clone() };
        pairs.extend(others);
        for (field, nonsense) in fields {
            let name = format!("lh_{field}");
            match nonsense {
                Some(text) => _ = pairs.insert(name, text),
                None => _ = pairs.remove(&name),
            }
        }
        pairs
    })
}

#[test]
fn whatever_the_metadata_say_nothing_panics_and_what_is_unreadable_is_left_alone() {
    let (unreadable, readable) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    for_each(250, hostile(), async |ground, pairs| {
        put(&ground, &pairs);
        let before = ground.job();
        let view = ground.store.view().await;
        let page = value(ground.store.list("", None).await);
        prop_assert_eq!(page.leases.len() + page.skipped, 1);
        let claim = claim(FencingToken::MAX, Grant::from_bits(77));
        if !matches!(view.standing, Standing::Unreadable(_)) {
            readable.set(readable.get() + 1);
            let claimed = ground.store.claimed(&claim).await;
            let granted = view.standing == Standing::Vacant && view.token() < FencingToken::MAX;
            prop_assert_eq!(claimed == Claimed::Granted, granted, "{:?}", view);
            return Ok(());
        }
        unreadable.set(unreadable.get() + 1);
        prop_assert_eq!(page.skipped, 1);
        prop_assert_eq!(ground.store.claimed(&claim).await, Claimed::Refused(view.clone()));
        prop_assert_eq!(ground.store.renewed(&renew(3, claim.grant)).await, Renewed::Refused(view.clone()));
        for vacate in [release(3, claim.grant), closing(3, claim.grant), burn(FencingToken::MAX, claim.grant)] {
            prop_assert_eq!(ground.store.vacated(&vacate).await, Vacated::Refused(view.clone()));
        }
        let after = ground.job();
        prop_assert_eq!((after.etag, after.metadata), (before.etag, before.metadata));
        Ok(())
    });
    assert!(unreadable.get() > 50 && readable.get() > 10, "{unreadable:?} {readable:?}");
}

#[test]
fn near_the_limit_of_the_metadata_a_claim_is_granted_or_an_error_that_has_written_nothing() {
    let (fits, does_not) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    for_each(80, (any_claim(), 4000..=8000usize), async |ground, (claim, theirs)| {
        put(&ground, &with_a_free_record([("theirs".to_owned(), "x".repeat(theirs))].into()));
        let before = ground.job();
        match ground.store.claim(&claim).await {
            Ok(answer) => {
                fits.set(fits.get() + 1);
                prop_assert_eq!(answer.value, Claimed::Granted);
                prop_assert_eq!(foreign(&ground).get("theirs").map(String::len), Some(theirs));
            }
            Err(failed) => {
                does_not.set(does_not.get() + 1);
                prop_assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Invalid, Applied::No));
                prop_assert_eq!(ground.asked(), [Op::HeadBlob]);
                let after = ground.job();
                prop_assert_eq!(
                    (after.etag, after.metadata, after.state),
                    (before.etag, before.metadata, before.state)
                );
            }
        }
        Ok(())
    });
    assert!(fits.get() > 3 && does_not.get() > 3, "{fits:?} {does_not:?}");
}
