//! How soon a request that has failed is worth another try.

use super::rules::Rules;
use crate::types::StoreErrorKind;

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Only once somebody has changed something.
    Never,
    /// After the shortest pause, however often it happens: another's write was in the way, and will be over.
    Soon,
    /// Later, each time a little more.
    Later,
    /// As `Later`, a step later.
    MuchLater,
}

impl Retry {
    /// What the kind of a failure asks for.
    pub fn after(kind: StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::Contended => Self::Soon,
            StoreErrorKind::Throttled => Self::MuchLater,
            kind if kind.is_transient() => Self::Later,
            _ => Self::Never,
        }
    }
}

/// How often another's write may be in the way of one call.
const MOST_IN_THE_WAY: u8 = 16;

/// The failures of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tries {
    failed: u8,
    in_the_way: u8,
}

impl Tries {
    /// How long to wait before the next try; `None` if there is to be none. The second try comes at once, later ones
    /// after a pause, and after another's write always.
    pub fn failed(&mut self, retry: Retry, rules: &Rules, jitter: u16) -> Option<u64> {
        match retry {
            Retry::Never => None,
            Retry::Soon => {
                self.in_the_way = self.in_the_way.saturating_add(1);
                (self.in_the_way < MOST_IN_THE_WAY).then(|| rules.pause(1, jitter))
            }
            Retry::Later | Retry::MuchLater => {
                self.failed = self.failed.saturating_add(1);
                let pause = if self.failed > 1 { rules.pause(self.failed, jitter) } else { 0 };
                (self.failed < rules.tries).then_some(pause)
            }
        }
    }
}
