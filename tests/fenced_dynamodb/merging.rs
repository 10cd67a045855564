//! A fenced write does exactly what the caller's own expressions do, and the fence.
//!
//! The model is the service itself: each case runs once without the fence, on an item without one, and once with it.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, TransactWriteItem, Update};
use leasehold::dynamodb::{Fenced, FencedError, Refusal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Runtime;

use crate::dice::{Dice, Expressions, NAMES};
use crate::ground::{FENCE, Ground, Item, TABLE, n, s, token};

macro_rules! with_own {
    ($builder:expr, $own:expr) => {
        $builder
            .set_condition_expression($own.condition.clone())
            .set_expression_attribute_names(Some($own.names.clone()).filter(|names| !names.is_empty()))
            .set_expression_attribute_values(Some($own.values.clone()).filter(|values| !values.is_empty()))
    };
}

const CASES: u32 = 1200;
const MINE: u64 = 7;

#[test]
fn a_fenced_write_does_what_its_own_expressions_do_and_raises_the_fence_or_does_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ground = runtime.block_on(Ground::new());
    let tally = std::cell::RefCell::new(std::collections::BTreeMap::new());
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, max_shrink_iters: 500, ..Config::with_cases(CASES) });
    let drawn = proptest::collection::vec(any::<u8>(), 0..160);
    let ran = runner.run(&drawn.prop_map(|throws| Case::drawn(&mut Dice::new(throws))), |case| {
        let what = case.holds(&runtime, &ground)?;
        *tally.borrow_mut().entry(what).or_insert(0) += 1;
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    let tally = tally.into_inner();
    println!("{tally:#?}");
    for write in ["Put", "Update", "Delete"] {
        for how in ["alone", "in a transaction"] {
            for end in ["Written", "OwnCondition", "Stale", "Error"] {
                let times = tally.get(&format!("{write} {how}: {end}")).copied().unwrap_or(0);
                assert!(times >= 10, "{write} {how} ended with {end} only {times} times: the cases are too few");
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Write {
    Put,
    Update,
    Delete,
}

#[derive(Clone, Debug)]
struct Case {
    write: Write,
    in_a_transaction: bool,
    before: Option<Item>,
    /// What the fence is at before the write.
    fence: Option<u64>,
    own: Expressions,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Written,
    OwnCondition,
    Stale,
    Error,
}

impl Case {
    fn drawn(dice: &mut Dice) -> Self {
        let write = *dice.of(&[Write::Update, Write::Put, Write::Delete]);
        let in_a_transaction = dice.one_in(2);
        let before = (!dice.one_in(5)).then(|| {
            let values = [n(5), n(8), s("set"), AttributeValue::Ss(vec!["x".into(), "y".into()])];
            let mut item = Item::new();
            for name in NAMES {
                if dice.below(2) == 0 {
                    item.insert(name.to_owned(), dice.of(&values).clone());
                }
            }
            item
        });
        let fence = *dice.of(&[None, Some(MINE - 1), Some(MINE), Some(MINE + 1)]);
        let own = Expressions::drawn(dice, matches!(write, Write::Update));
        Self { write, in_a_transaction, before, fence, own }
    }

    /// Which end it had.
    fn holds(&self, runtime: &Runtime, ground: &Ground) -> Result<String, TestCaseError> {
        let (own, plain) = runtime.block_on(async {
            self.lay(ground, "plain", None).await;
            (self.run(ground, "plain", false).await, ground.item("plain").await)
        });
        let (end, left) = runtime.block_on(async {
            self.lay(ground, "fenced", self.fence).await;
            (self.run(ground, "fenced", true).await, ground.item("fenced").await)
        });
        // An item that is not there has no fence.
        let fence = self.fence.filter(|_| self.before.is_some());
        let expected = match own {
            // Some errors are found in the item, so only after the condition.
            End::Error if end == End::Error => End::Error,
            _ if fence.is_some_and(|fence| fence > MINE) => End::Stale,
            own => own,
        };
        let after = match (expected, self.write) {
            (End::Written, Write::Delete) => None,
            (End::Written, _) => with_fence(plain, Some(MINE)),
            _ => with_fence(self.before.clone(), fence),
        };
        prop_assert_eq!(end, expected);
        prop_assert_eq!(left.map(without_key), after.map(without_key));
        let how = if self.in_a_transaction { "in a transaction" } else { "alone" };
        Ok(format!("{:?} {how}: {end:?}", self.write))
    }

    async fn lay(&self, ground: &Ground, id: &str, fence: Option<u64>) {
        match with_fence(self.before.clone(), fence) {
            Some(mut item) => {
                item.insert("id".into(), s(id));
                ground.put(item).await;
            }
            None => {
                let delete = ground.client.delete_item().table_name(TABLE).key("id", s(id));
                delete.send().await.expect("it is deleted");
            }
        }
    }

    async fn run(&self, ground: &Ground, id: &str, fenced: bool) -> End {
        if self.in_a_transaction { self.member(ground, id, fenced).await } else { self.alone(ground, id, fenced).await }
    }

    async fn alone(&self, ground: &Ground, id: &str, fenced: bool) -> End {
        let client = &ground.client;
        macro_rules! end {
            ($builder:expr) => {{
                let builder = with_own!($builder, self.own).table_name(TABLE);
                match fenced {
                    true => end_of_fenced(builder.fenced(FENCE, token(MINE)).send().await),
                    false => end_of_own(builder.send().await),
                }
            }};
        }
        match self.write {
            Write::Put => end!(client.put_item().item("id", s(id)).item("total", n(1))),
            Write::Update => end!(client.update_item().key("id", s(id)).set_update_expression(self.own.update.clone())),
            Write::Delete => end!(client.delete_item().key("id", s(id))),
        }
    }

    async fn member(&self, ground: &Ground, id: &str, fenced: bool) -> End {
        let member = TransactWriteItem::builder();
        macro_rules! built {
            ($builder:expr) => {{
                let builder = with_own!($builder, self.own).table_name(TABLE);
                if fenced { builder.fenced(FENCE, token(MINE)).build() } else { builder.build() }
            }};
        }
        let member = match self.write {
            Write::Put => built!(Put::builder().item("id", s(id)).item("total", n(1))).map(|put| member.put(put)),
            Write::Update => {
                let update = Update::builder().key("id", s(id)).set_update_expression(self.own.update.clone());
                // The SDK insists on an expression, where a fence alone would do.
                if self.own.update.is_none() && !fenced {
                    return self.alone(ground, id, false).await;
                }
                built!(update).map(|update| member.update(update))
            }
            Write::Delete => built!(Delete::builder().key("id", s(id))).map(|delete| member.delete(delete)),
        };
        let members = vec![member.expect("complete").build()];
        let sent = ground.client.transact_write_items().set_transact_items(Some(members.clone())).send().await;
        match sent {
            Ok(_) => End::Written,
            Err(error) => match Refusal::of_transaction(&error, &members).into_iter().flatten().next() {
                Some(refusal) => end_of(&refusal),
                None => End::Error,
            },
        }
    }
}

fn end_of_own<T, E: ProvideErrorMetadata>(sent: Result<T, SdkError<E>>) -> End {
    match sent {
        Ok(_) => End::Written,
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => End::OwnCondition,
        Err(error) => invalid(error.code()),
    }
}

fn end_of_fenced<T, E: ProvideErrorMetadata + std::error::Error>(sent: Result<T, FencedError<E>>) -> End {
    match sent {
        Ok(_) => End::Written,
        Err(FencedError::Refused(refusal)) => end_of(&refusal),
        Err(FencedError::Sdk(error)) => invalid(error.code()),
    }
}

fn end_of(refusal: &Refusal) -> End {
    match refusal {
        Refusal::Stale(_) => End::Stale,
        Refusal::OwnCondition { .. } => End::OwnCondition,
        other => panic!("{other:?}"),
    }
}

fn invalid(code: Option<&str>) -> End {
    assert_eq!(code, Some("ValidationException"));
    End::Error
}

fn with_fence(item: Option<Item>, fence: Option<u64>) -> Option<Item> {
    item.map(|mut item| {
        item.extend(fence.map(|fence| (FENCE.to_owned(), n(fence))));
        item
    })
}

fn without_key(mut item: Item) -> Item {
    item.remove("id");
    item
}
