//! Orders, trades, and what is asked of the store that keeps the trades.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use async_trait::async_trait;
use leasehold::{FencingToken, LeasesBuilder};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub const ORDERS: usize = 12_000;
/// How many orders are matched, and recorded, at once.
pub const BATCH: usize = 200;
pub const BATCHES: usize = ORDERS / BATCH;

/// A store, as one process sees it.
pub struct Ground {
    /// With the store and a term that fits it.
    pub leases: LeasesBuilder,
    pub book: Box<dyn Book>,
}

/// What the lease protects: the record of all trades. An order may be filled in parts, so nothing of the record itself
/// refuses an order's second trade.
#[async_trait]
pub trait Book: Send {
    /// Begins with a batch. With a token it raises the fence *first* and only then reads: else the worker acts on a
    /// state that a late write still changes.
    async fn begin(&mut self, batch: usize, fence: Option<FencingToken>) -> Result<Found>;

    /// Records the trades of a batch. With a token: unless a higher one has been here, in one step with the check.
    /// `false`: it has been, and nothing was recorded. `write` names the call, so that one whose answer was lost, and
    /// which is sent again, is recorded once.
    async fn record(
        &mut self,
        batch: usize,
        write: &str,
        trades: &[Trade],
        fence: Option<FencingToken>,
    ) -> Result<bool>;

    /// All that was ever recorded, when the workers have ended.
    async fn trades(&mut self) -> Result<Vec<Trade>>;

    /// Whether nobody keeps it locked at this moment. A frozen process keeps its locks.
    fn is_unlocked(&self) -> bool {
        true
    }
}

/// How a batch was found.
pub enum Found {
    Open,
    Matched,
    /// By the fence: a higher token has been here, so this worker was replaced.
    Refused,
}

#[derive(Clone, Copy)]
pub struct Trade {
    pub buy: usize,
    pub sell: usize,
}

/// The queue: a log of orders, as Kafka or Kinesis keep one. It is read and never changed, so it needs no guard.
pub struct Orders(Vec<Order>);

struct Order {
    id: usize,
    buys: bool,
    price: usize,
}

impl Orders {
    /// Buyers who offer 100 to 106, sellers who ask for 96 to 100.
    pub fn fill(folder: &Path) -> Result<()> {
        let price = |id: usize| if is_buyer(id) { 100 + id % 7 } else { 100 - id % 5 };
        let line = |id| format!("{id},{},{}\n", if is_buyer(id) { "buy" } else { "sell" }, price(id));
        Ok(fs::write(folder.join("orders.csv"), (0..ORDERS).map(line).collect::<String>())?)
    }

    pub fn read(folder: &Path) -> Result<Self> {
        let parsed = |line: &str| {
            let mut fields = line.split(',');
            let (id, side, price) = (fields.next()?, fields.next()?, fields.next()?);
            Some(Order { id: id.parse().ok()?, buys: side == "buy", price: price.parse().ok()? })
        };
        let orders: Option<Vec<_>> = fs::read_to_string(folder.join("orders.csv"))?.lines().map(parsed).collect();
        Ok(Self(orders.ok_or("orders.csv has a line that is no order")?))
    }

    /// The best buyer and the best seller, then the next ones, as long as their prices meet.
    pub fn matched(&self, batch: usize) -> Vec<Trade> {
        let orders = &self.0[batch * BATCH..][..BATCH];
        let (mut buyers, mut sellers): (Vec<_>, Vec<_>) = orders.iter().partition(|order| order.buys);
        buyers.sort_by_key(|order| Reverse(order.price));
        sellers.sort_by_key(|order| order.price);
        let pairs = buyers.iter().zip(sellers).take_while(|(buyer, seller)| buyer.price >= seller.price);
        pairs.map(|(buyer, seller)| Trade { buy: buyer.id, sell: seller.id }).collect()
    }
}

fn is_buyer(id: usize) -> bool {
    id.is_multiple_of(2)
}

/// What the record says in the end.
pub struct Count {
    pub orders: usize,
    pub twice: usize,
    pub never: usize,
}

impl Count {
    pub fn of(trades: &[Trade]) -> Self {
        let mut times = HashMap::new();
        for order in trades.iter().flat_map(|trade| [trade.buy, trade.sell]) {
            *times.entry(order).or_insert(0) += 1;
        }
        let never = (0..ORDERS).filter(|id| !times.contains_key(id)).count();
        Self { orders: ORDERS, twice: times.values().filter(|times| **times > 1).count(), never }
    }
}
