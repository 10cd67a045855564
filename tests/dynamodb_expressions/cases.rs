//! Random records and verbs from small ranges, so that they meet often.

use std::collections::BTreeMap;

use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::{
    Ask, Asked, Claim, Claimed, Close, Closed, Data, Expect, Grant, Label, MemberSet, Name, Record, Renew, Renewed,
    Revoke, Revoked, StepDown, Vacate, Vacated, Version,
};
use proptest::option::of;
use proptest::prelude::*;

use crate::items::{Item, NAME, item, made};
use crate::writes;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) stored: Stored,
    pub(crate) verb: Verb,
}

#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Claim(Claim),
    Renew(Renew),
    Vacate(Vacate),
    Revoke(Revoke),
    Ask(Ask),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answered {
    Claim(Claimed),
    Renew(Renewed),
    Vacate(Vacated),
    Revoke(Revoked),
    Ask(Asked),
}

impl Case {
    pub(crate) fn before(&self) -> Option<Item> {
        match &self.stored {
            Stored::Record(record) => Some(item(record)),
            _ => None,
        }
    }

    /// What the protocol says.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.verb {
            Verb::Claim(claim) => record::claim(&self.stored, claim),
            Verb::Renew(renew) => record::renew(&self.stored, renew),
            Verb::Vacate(vacate) => record::vacate(&self.stored, vacate),
            Verb::Revoke(revoke) => record::revoke(&self.stored, revoke),
            Verb::Ask(ask) => record::ask(&self.stored, ask),
        }
    }

    pub(crate) fn leaves(&self, outcome: &Outcome) -> Option<Item> {
        match (outcome, &self.stored) {
            (Outcome::Write(record), Stored::Absent) => Some(made(record)),
            (Outcome::Write(record), _) => Some(item(record)),
            _ => self.before(),
        }
    }

    pub(crate) fn answer(&self, outcome: &Outcome) -> Answered {
        let refused = *outcome == Outcome::Refuse;
        let view = self.stored.view();
        match (&self.verb, outcome) {
            (Verb::Claim(_), _) if refused => Answered::Claim(Claimed::Refused(view)),
            (Verb::Claim(_), _) => Answered::Claim(Claimed::Granted),
            (Verb::Renew(_), Outcome::Write(record)) => Answered::Renew(Renewed::Renewed(record.asked.clone())),
            (Verb::Renew(_), _) => Answered::Renew(Renewed::Refused(view)),
            (Verb::Vacate(_), _) if refused => Answered::Vacate(Vacated::Refused(view)),
            (Verb::Vacate(_), _) => Answered::Vacate(Vacated::Vacated),
            (Verb::Revoke(revoke), _) if refused => Answered::Revoke(record::revoke_refused(&self.stored, revoke)),
            (Verb::Revoke(_), _) => Answered::Revoke(Revoked::Revoked),
            (Verb::Ask(_), _) if refused => Answered::Ask(Asked::Refused(view)),
            (Verb::Ask(_), _) => Answered::Ask(Asked::Asked),
        }
    }
}

/// How often each kind of verb was accepted and refused.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<&'static str, (u32, u32)>);

impl Tally {
    pub(crate) fn count(&mut self, case: &Case, outcome: &Outcome) {
        let counts = self.0.entry(case.verb.kind()).or_default();
        *(if writes(outcome) { &mut counts.0 } else { &mut counts.1 }) += 1;
    }

    pub(crate) fn assert_all_verbs_are_accepted_and_refused_often(&self) {
        println!("accepted and refused: {:?}", self.0);
        assert_eq!(self.0.len(), 9, "a kind of verb never came up");
        for (kind, (accepted, refused)) in &self.0 {
            let all = accepted + refused;
            assert!(accepted * 10 >= all && refused * 10 >= all, "{kind}: {accepted} accepted, {refused} refused");
        }
    }
}

impl Verb {
    fn kind(&self) -> &'static str {
        match self {
            Self::Claim(Claim { expect: Expect::Vacant, .. }) => "claim vacant",
            Self::Claim(Claim { expect: Expect::Expired(_), .. }) => "claim expired",
            Self::Claim(Claim { expect: Expect::Handed(_), .. }) => "claim handed",
            Self::Renew(_) => "renew",
            Self::Vacate(vacate) if vacate.burn => "burn",
            Self::Vacate(_) => "release",
            Self::Revoke(revoke) if revoke.force => "force",
            Self::Revoke(_) => "revoke",
            Self::Ask(_) => "ask",
        }
    }
}

/// A record or none, and a verb that knows it half of the time.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    stored().prop_flat_map(|stored| {
        let verb = verb(&stored);
        verb.prop_map(move |verb| Case { stored: stored.clone(), verb })
    })
}

fn stored() -> impl Strategy<Value = Stored> {
    prop_oneof![1 => Just(Stored::Absent), 9 => record().prop_map(Stored::Record)]
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    let identity = (0u64..6, prop_oneof![3 => grant().prop_map(Some), 2 => Just(None)], of(1u64..4));
    let rest = (of(label()), 1u64..4, of(time()), prop_oneof![2 => Just(None), 1 => closed().prop_map(Some)]);
    let marks = (prop::bool::weighted(0.2), of(step_down()), of(0u64..3), of(data()));
    (identity, rest, marks).prop_map(|((token, grant, version), (holder, ttl, expires_at_ms, closed), marks)| {
        let mut record = Record::new();
        (record.token, record.grant, record.holder) = (token, grant, holder);
        record.version = if grant.is_some() { version.or(Some(1)) } else { version };
        record.ttl_ms = (grant.is_some() || ttl > 1).then_some(ttl);
        (record.expires_at_ms, record.closed) = (expires_at_ms, closed);
        (record.revoked, record.asked) = (marks.0, marks.1);
        (record.set, record.data) = (marks.2.map(MemberSet), marks.3);
        record
    })
}

pub(crate) fn verb(stored: &Stored) -> impl Strategy<Value = Verb> + use<> {
    let known = match stored {
        Stored::Record(record) => record.clone(),
        _ => Record::new(),
    };
    let grants = mostly(known.grant.unwrap_or(Grant::from_bits(1)), grant());
    let grants = grants.boxed();
    let tokens = mostly(known.token.max(1), 1u64..8).boxed();
    let version = mostly(Version::of(&known), version()).boxed();
    prop_oneof![
        4 => claim(grants.clone(), version).prop_map(Verb::Claim),
        2 => renew(grants.clone()).prop_map(Verb::Renew),
        3 => vacate(grants).prop_map(Verb::Vacate),
        2 => (tokens.clone(), grant(), any::<bool>()).prop_map(|(token, fresh, force)| {
            Verb::Revoke(Revoke { name: name(), token, fresh, force })
        }),
        1 => (tokens, step_down()).prop_map(|(token, asked)| {
            Verb::Ask(Ask { name: name(), step_down: StepDown { token, ..asked } })
        }),
    ]
}

fn claim(grants: BoxedStrategy<Grant>, version: BoxedStrategy<Version>) -> impl Strategy<Value = Claim> {
    let expect =
        prop_oneof![Just(Expect::Vacant), version.prop_map(Expect::Expired), grants.clone().prop_map(Expect::Handed),];
    let fields = (of(time()), of(label()), of(data()), of(0u64..3));
    (mostly(7, 1u64..8), grant(), 1u64..4, expect, fields).prop_map(|(token, grant, ttl_ms, expect, fields)| {
        let (expires_at_ms, holder, data, set) = fields;
        Claim { name: name(), token, grant, ttl_ms, expires_at_ms, holder, data, set: set.map(MemberSet), expect }
    })
}

fn renew(grants: BoxedStrategy<Grant>) -> impl Strategy<Value = Renew> {
    (grants, 1u64..5, 1u64..4, of(time()), of(data())).prop_map(|(grant, version, ttl_ms, expires_at_ms, data)| Renew {
        name: name(),
        token: 1,
        grant,
        version,
        ttl_ms,
        expires_at_ms,
        holder: None,
        data,
        set: None,
    })
}

fn vacate(grants: BoxedStrategy<Grant>) -> impl Strategy<Value = Vacate> {
    let close = (time(), of(time()), of(data())).prop_map(|(for_ms, until_ms, data)| Close { for_ms, until_ms, data });
    (grants, 1u64..8, any::<bool>(), of(close)).prop_map(|(grant, token, burn, close)| Vacate {
        name: name(),
        token,
        grant,
        burn,
        close,
        now_ms: Some(1),
    })
}

fn version() -> impl Strategy<Value = Version> {
    (0u64..6, of(grant()), of(1u64..4)).prop_map(|(token, grant, version)| Version::of_write(token, grant, version))
}

fn closed() -> impl Strategy<Value = Closed> {
    (of(time()), time(), of(1u64..6)).prop_map(|(for_ms, until, by)| Closed {
        for_ms,
        until_ms: (for_ms.is_none() || until % 2 == 0).then_some(until),
        by,
    })
}

fn step_down() -> impl Strategy<Value = StepDown> {
    (0u64..6, time(), of(label())).prop_map(|(token, grace_ms, by)| StepDown { token, grace_ms, by })
}

fn grant() -> impl Strategy<Value = Grant> {
    (1u128..4).prop_map(Grant::from_bits)
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..5, Just(1_790_000_000_000), Just(u64::MAX)]
}

fn label() -> impl Strategy<Value = Label> {
    const TEXTS: [&str; 3] = ["", "billing-3", "zwei\nZeilen é"];
    prop::sample::select(&TEXTS[..]).prop_map(|text| Label::new(text).expect("short"))
}

fn data() -> impl Strategy<Value = Data> {
    prop::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| Data::new(&bytes).expect("small"))
}

fn mostly<T: Clone + std::fmt::Debug + 'static>(
    known: T,
    other: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = T> {
    prop_oneof![2 => Just(known), 1 => other]
}

fn name() -> Name {
    Name::new(NAME).expect("a good name")
}
