//! The charge of the Lambda example, whose answer the network loses.

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::dynamodb::Fenced;

use crate::ground::{FENCE, Ground, s, token};
use crate::support::emulator::create_table;
use crate::support::faults::{Fault, Match};

#[path = "../../examples/lambda/ledger.rs"]
mod ledger;

use ledger::Ledger;

#[tokio::test]
async fn a_charge_that_the_sdk_sends_again_because_its_answer_was_lost_is_counted_once() {
    let ground = Ground::new().await;
    create_table(&ground.client, "ledger", "order").await;
    let lost = ground.proxy.on(Match::op("UpdateItem")).nth(1).fault(Fault::LoseAnswer);
    let ledger = Ledger { client: ground.through_the_proxy(), table: "ledger".into() };
    ledger.charge("17", "7".into()).fenced(FENCE, token(7)).send().await.unwrap();
    assert_eq!((lost.happened(), ground.proxy.count("UpdateItem")), (1, 2));

    let get = ground.client.get_item().table_name("ledger").key("order", s("17")).consistent_read(true);
    let charged = get.send().await.unwrap().item.unwrap();
    assert_eq!(charged["charges"], AttributeValue::Ss(vec!["7".into()]));
}
