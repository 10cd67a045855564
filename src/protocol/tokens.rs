//! Which token to propose.

use super::rules::Clocks;
use crate::types::FencingToken;

/// The next token: above all that is known of the record, and not below the store's early time (I1, I2).
///
/// While the record exists the comparison in the store alone keeps tokens rising. The floor keeps them rising
/// after the record was deleted or restored. `digits` (0 to 999, drawn by chance) make equal proposals of two
/// clients rare. `None` when tokens are used up: there is nothing above 2^53 - 1.
pub fn propose(highest_known: u64, floor: Option<u64>, digits: u16) -> Option<u64> {
    let above = highest_known.checked_add(1)?;
    let floor = floor.map_or(0, |floor| floor.saturating_add(u64::from(digits) % 1000));
    let token = above.max(floor);
    (token <= FencingToken::MAX).then_some(token)
}

/// The floor that the store's early time gives: its seconds, in milliseconds. `None` outside 2025 to 2100.
pub fn floor(early: u64, clocks: &Clocks) -> Option<u64> {
    let ms = early / clocks.date_grain * (clocks.date_grain / clocks.milli);
    (clocks.floor_ms.0..clocks.floor_ms.1).contains(&ms).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_above_what_is_known_and_not_below_the_floor() {
        assert_eq!(propose(0, None, 7), Some(1));
        assert_eq!(propose(41, Some(1000), 7), Some(1007));
        assert_eq!(propose(5000, Some(1000), 7), Some(5001));
    }

    #[test]
    fn tokens_end_at_2_to_the_53() {
        assert_eq!(propose(FencingToken::MAX - 1, None, 0), Some(FencingToken::MAX));
        assert_eq!(propose(FencingToken::MAX, None, 0), None);
        assert_eq!(propose(u64::MAX, None, 0), None);
    }
}
