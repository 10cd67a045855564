//! A table on the emulator, with a store that runs one case at a time.

use leasehold::dynamodb::DynamoDbStore;
use leasehold::store::Store;
use tokio::runtime::Runtime;

use crate::cases::{Answered, Case, Verb};
use crate::items::{Item, NAME, s};
use crate::support::emulator::{Emulator, create_table};

const TABLE: &str = "leases";

pub(crate) struct Table {
    runtime: Runtime,
    client: aws_sdk_dynamodb::Client,
    pub(crate) store: DynamoDbStore,
    _emulator: Emulator,
}

impl Table {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let emulator = Emulator::start();
        let client = emulator.client();
        let store = runtime.block_on(async {
            create_table(&client, TABLE, "pk").await;
            DynamoDbStore::open(client.clone(), TABLE).await.expect("the table is fit")
        });
        Self { runtime, client, store, _emulator: emulator }
    }

    /// Puts the case's record there, runs its verb, and says what was answered and what is left.
    pub(crate) fn run(&self, case: &Case) -> (Answered, Option<Item>) {
        let before = case.before();
        self.runtime.block_on(async {
            self.put(before).await;
            (self.verb(&case.verb).await, self.item().await)
        })
    }

    pub(crate) fn run_on(&self, before: Item, verb: &Verb) -> (Answered, Item) {
        self.runtime.block_on(async {
            self.put(Some(before)).await;
            (self.verb(verb).await, self.item().await.expect("verbs delete nothing"))
        })
    }

    pub(crate) fn read_of(&self, before: Item) -> leasehold::View {
        let name = leasehold::Name::new(NAME).expect("a good name");
        self.runtime.block_on(async {
            self.put(Some(before)).await;
            self.store.read(&name).await.expect("the emulator answers").value
        })
    }

    async fn put(&self, item: Option<Item>) {
        match item {
            Some(item) => {
                let put = self.client.put_item().table_name(TABLE).set_item(Some(item));
                put.send().await.expect("the item is put");
            }
            None => {
                let delete = self.client.delete_item().table_name(TABLE).key("pk", s(NAME));
                delete.send().await.expect("the item is deleted");
            }
        }
    }

    async fn item(&self) -> Option<Item> {
        let get = self.client.get_item().table_name(TABLE).key("pk", s(NAME)).consistent_read(true);
        get.send().await.expect("the item is read").item
    }

    async fn verb(&self, verb: &Verb) -> Answered {
        let store = &self.store;
        let dated = |date: Option<u64>| assert!(date.is_some(), "every answer of the service has a date");
        match verb {
            Verb::Claim(claim) => {
                let answer = store.claim(claim).await.expect("answered");
                dated(answer.date_ms);
                Answered::Claim(answer.value)
            }
            Verb::Renew(renew) => {
                let mut answers = store.renew(std::slice::from_ref(renew)).await;
                assert_eq!(answers.len(), 1);
                Answered::Renew(answers.remove(0).expect("answered").value)
            }
            Verb::Vacate(vacate) => Answered::Vacate(store.vacate(vacate).await.expect("answered").value),
            Verb::Revoke(revoke) => Answered::Revoke(store.revoke(revoke).await.expect("answered").value),
            Verb::Ask(ask) => Answered::Ask(store.ask(ask).await.expect("answered").value),
        }
    }
}
