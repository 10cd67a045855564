//! Blobs that are no sound lease are never taken over and never written to, by any verb (fault G3).

use leasehold::store::Store;
use leasehold::{Asked, Claim, Claimed, Expect, Renewed, Revoked, Standing, Unreadable, Vacated, Version, View};

use crate::ground::{
    Ground, a, ask, b, burn, claim, closing, force, name, release, renew, renew_with, resume, revoke, value,
};

/// A good record of a free lease, with one field put in another way; `None` removes it.
fn broken(field: &str, text: Option<&str>) -> Vec<(String, String)> {
    let good = [
        ("lh_format", "1"),
        ("lh_token", "3"),
        ("lh_grant", "00000000-0000-0000-0000-00000000000c"),
        ("lh_ttl_ms", "15000"),
        ("lh_holder", "_Yw"),
        ("lh_data", "_ZGF0YQ"),
    ];
    let mut pairs: Vec<_> = good.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    pairs.retain(|(name, _)| name != field);
    pairs.extend(text.map(|text| (field.to_owned(), text.to_owned())));
    pairs
}

fn hostile() -> Vec<(&'static str, Option<&'static str>, Unreadable)> {
    let field = |field, text, named| (field, text, Unreadable::Field(named));
    let mut all = vec![
        ("lh_session", Some("1"), Unreadable::Session),
        ("lh_format", None, Unreadable::Format),
        field("lh_token", None, "token"),
        field("lh_ttl_ms", None, "ttl_ms"),
    ];
    all.extend(
        ["0", "2", "01", "1.0", "x", "18446744073709551616"].map(|text| ("lh_format", Some(text), Unreadable::Format)),
    );
    for text in
        ["-1", "+3", "03", "3.0", "3e2", " 3", "0x3", "x", "9007199254740992", "99999999999999999999999999999999999999"]
    {
        all.push(field("lh_token", Some(text), "token"));
    }
    for text in ["0", "-1", "86400001", "15000.5", "x"] {
        all.push(field("lh_ttl_ms", Some(text), "ttl_ms"));
    }
    for text in [
        "c",
        "0000000000000000000000000000000c",
        "00000000-0000-0000-0000-00000000000C",
        "{00000000-0000-0000-0000-00000000000c}",
    ] {
        all.push(field("lh_grant", Some(text), "grant"));
    }
    for text in ["c", "_c", "_Yw==", "_/w", "_=", "_Yw==Yw", "__w"] {
        all.push(field("lh_holder", Some(text), "holder"));
    }
    for text in ["ZGF0YQ", "_ZGF0YQ==", "_ZGF0Y!", "_ZGF0YR"] {
        all.push(field("lh_data", Some(text), "data"));
    }
    for text in ["-1", "1.5", "x", "18446744073709551616"] {
        all.push(field("lh_closed_ms", Some(text), "closed_ms"));
        all.push(field("lh_closed_until_ms", Some(text), "closed_until_ms"));
        all.push(field("lh_closed_by", Some(text), "closed_by"));
        all.push(field("lh_set", Some(text), "set"));
    }
    all
}

fn put(ground: &Ground, pairs: &[(String, String)]) {
    let pairs: Vec<_> = pairs.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    ground.fake.put_foreign("job", &pairs);
}

/// Every verb is refused, shows why, and leaves the blob as it is.
async fn assert_left_alone(ground: &Ground, reason: &Unreadable, what: &str) {
    let before = ground.job();
    let store = &ground.store;
    let is_it = |view: &View| view.standing == Standing::Unreadable(reason.clone());
    assert!(is_it(&store.view().await), "{what}: {:?}", store.view().await);
    let tag = Version::of_tag(&before.etag);
    for expect in [Expect::Vacant, Expect::Expired(tag), Expect::Handed(a())] {
        match store.claimed(&Claim { expect, ..claim(500, b()) }).await {
            Claimed::Refused(view) => assert!(is_it(&view), "{what}"),
            Claimed::Granted => panic!("taken over: {what}"),
        }
    }
    for renew in [renew(3, a()), renew_with(3, a(), "x")] {
        assert!(matches!(store.renewed(&renew).await, Renewed::Refused(view) if is_it(&view)), "{what}");
    }
    for vacate in [release(3, a()), closing(3, a()), burn(500, b())] {
        assert!(matches!(store.vacated(&vacate).await, Vacated::Refused(view) if is_it(&view)), "{what}");
    }
    for operator in [revoke(3), force(3), force(0)] {
        assert!(matches!(value(store.revoke(&operator).await), Revoked::Refused(view) if is_it(&view)), "{what}");
    }
    assert!(matches!(value(store.ask(&ask(3)).await), Asked::Refused(view) if is_it(&view)), "{what}");
    let page = value(store.list("", None).await);
    assert_eq!((page.leases.len(), page.skipped), (0, 1), "{what}");
    let after = ground.job();
    assert_eq!((after.etag, after.metadata, after.state), (before.etag, before.metadata, before.state), "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_record_with_a_broken_field_of_any_kind_is_left_alone() {
    for (field, text, reason) in hostile() {
        let ground = Ground::new();
        put(&ground, &broken(field, text));
        assert_left_alone(&ground, &reason, &format!("{field} = {text:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_blob_of_somebody_else_under_a_leases_name_is_left_alone() {
    for pairs in [vec![], vec![("colour".to_owned(), "red".to_owned())], vec![("lh".to_owned(), "1".to_owned())]] {
        let ground = Ground::new();
        put(&ground, &pairs);
        assert_left_alone(&ground, &Unreadable::Foreign, &format!("{pairs:?}")).await;
        assert_eq!(ground.job().body, b"foreign");
    }
}

#[tokio::test(start_paused = true)]
async fn the_good_record_that_the_broken_ones_are_made_of_is_a_lease() {
    let ground = Ground::new();
    put(&ground, &broken("lh_none", None));
    let record = ground.store.view().await.record.expect("a lease");
    assert_eq!((record.token, record.data.map(|data| data.as_bytes().to_vec())), (3, Some(b"data".to_vec())));
    ground.store.granted(&claim(5, a())).await;
}

#[tokio::test(start_paused = true)]
async fn a_field_of_a_newer_version_is_kept_and_ignored() {
    let ground = Ground::new();
    put(&ground, &broken("lh_future", Some("kept")));
    ground.store.granted(&claim(5, a())).await;
    ground.store.renewed(&renew_with(5, a(), "x")).await;
    ground.another().granted(&resume(6, b(), a())).await;
    ground.store.vacated(&closing(6, b())).await;
    ground.store.vacated(&burn(7, a())).await;
    assert_eq!(ground.pair("lh_future").as_deref(), Some("kept"));
    assert_eq!(ground.pair("lh_token").as_deref(), Some("7"));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_broken_while_it_is_held_is_not_written_to_and_its_lease_goes_on() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.fake.edit_metadata("job", |pairs| _ = pairs.insert("lh_token".into(), "x".into()));
    assert_eq!(ground.store.renewed(&renew(5, a())).await, Renewed::Renewed(None));
    let Renewed::Refused(view) = ground.store.renewed(&renew_with(5, a(), "x")).await else { panic!("written") };
    assert_eq!(view.standing, Standing::Unreadable(Unreadable::Field("token")));
    assert!(matches!(ground.store.vacated(&closing(5, a())).await, Vacated::Refused(_)));
    assert_eq!((ground.pair("lh_data"), ground.pair("lh_closed_by")), (None, None));
    assert_eq!(ground.store.vacated(&release(5, a())).await, Vacated::Vacated);
}

#[tokio::test(start_paused = true)]
async fn a_listing_counts_what_is_no_lease_and_shows_the_rest() {
    let ground = Ground::with_a_free_lease().await;
    for (blob, pairs) in [
        ("photo.jpg", vec![]),
        ("jobs/=2e", vec![("lh_format", "1"), ("lh_token", "1")]),
        ("jobs/broken", vec![("lh_format", "2"), ("lh_token", "1")]),
        ("jobs/foreign", vec![("colour", "red")]),
        ("jobs/good", vec![("lh_format", "1"), ("lh_token", "1")]),
    ] {
        ground.fake.put_foreign(blob, &pairs);
    }
    let page = value(ground.store.list("", None).await);
    let mut names: Vec<_> = page.leases.iter().map(|lease| lease.name.clone()).collect();
    names.sort();
    assert_eq!((names, page.skipped), (vec![name("job"), name("jobs/good")], 4));
    let page = value(ground.store.list("jobs/", None).await);
    assert_eq!((page.leases.len(), page.skipped), (1, 3));
}
