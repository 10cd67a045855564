//! Trades as a text, for stores without columns: `0:3 2:1`.

use crate::book::{Result, Trade};

pub fn to_text(trades: &[Trade]) -> String {
    trades.iter().map(|trade| format!("{}:{}", trade.buy, trade.sell)).collect::<Vec<_>>().join(" ")
}

pub fn from_text(text: &str) -> Result<Vec<Trade>> {
    text.split(' ').map(trade).collect()
}

fn trade(text: &str) -> Result<Trade> {
    let (buy, sell) = text.split_once(':').ok_or_else(|| format!("{text:?} is no trade"))?;
    Ok(Trade { buy: buy.parse()?, sell: sell.parse()? })
}
