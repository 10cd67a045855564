//! A machine's clocks, for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::time::{Clock, RuntimeMoment, Sleep, SystemClock};
use crate::types::Stamp;

/// 2026-09-21, as nanoseconds since 1970: where the wall clock of every test begins.
const BEGIN: i128 = 1_790_000_000 * 1_000_000_000;
/// The other clocks begin an hour after the machine's start.
const UP: i128 = 3600 * 1_000_000_000;

/// The clocks of one machine, following tokio's clock: use it in a runtime with paused time.
///
/// Clones are the same machine. [`TestClock::another`] is a second machine in the same world.
#[derive(Clone, Debug)]
pub struct TestClock {
    world: RuntimeMoment,
    machine: Arc<Mutex<Machine>>,
}

#[derive(Debug)]
struct Machine {
    chance: u64,
    /// What each clock is ahead of true time, in nanoseconds: boot, mono, raw, real.
    ahead: [i128; 4],
    /// The true time at which all clocks stopped.
    stopped: Option<i128>,
    /// By how many millionths all clocks are fast.
    rate_ppm: i128,
    rated_from: i128,
}

impl TestClock {
    /// The clocks of a machine. Call it inside the runtime.
    pub fn new() -> Self {
        Self::seeded(1)
    }

    /// The clocks of a machine whose chance begins at `seed`. Machines of one test need different seeds.
    pub fn seeded(seed: u64) -> Self {
        Self { world: RuntimeMoment::now(), machine: Arc::new(Mutex::new(Machine::new(seed))) }
    }

    /// A second machine in the same world, with clocks and chance of its own.
    pub fn another(&self, seed: u64) -> Self {
        Self { world: self.world, machine: Arc::new(Mutex::new(Machine::new(seed))) }
    }

    /// All clocks of this machine stop, as those of a frozen virtual machine do, until [`TestClock::thaw`].
    pub fn freeze(&self) {
        let now = self.true_time();
        self.lock().stopped.get_or_insert(now);
    }

    /// The clocks go on from where they stopped: this machine does not know how long it was frozen.
    pub fn thaw(&self) {
        let now = self.true_time();
        let mut machine = self.lock();
        if let Some(stopped) = machine.stopped.take() {
            machine.ahead.iter_mut().for_each(|ahead| *ahead -= now - stopped);
        }
    }

    /// The machine has slept for `slept`: the boot and wall clocks have gone on, the others have not.
    pub fn suspend(&self, slept: Duration) {
        let slept = slept.as_nanos() as i128;
        let mut machine = self.lock();
        machine.ahead[0] += slept;
        machine.ahead[3] += slept;
    }

    /// The wall clock is set forward.
    pub fn set_wall_forward(&self, by: Duration) {
        self.lock().ahead[3] += by.as_nanos() as i128;
    }

    /// The wall clock is set back.
    pub fn set_wall_back(&self, by: Duration) {
        self.lock().ahead[3] -= by.as_nanos() as i128;
    }

    /// From now on all clocks of this machine run fast by so many millionths; slow if negative. Within 1 % is what
    /// the library assumes.
    pub fn set_rate(&self, ppm: i32) {
        let now = self.true_time();
        let mut machine = self.lock();
        let gained = (now - machine.rated_from) * machine.rate_ppm / 1_000_000;
        machine.ahead.iter_mut().for_each(|ahead| *ahead += gained);
        (machine.rate_ppm, machine.rated_from) = (i128::from(ppm), now);
    }

    fn true_time(&self) -> i128 {
        self.world.elapsed().as_nanos() as i128
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for TestClock {
    fn stamp(&self) -> Stamp {
        let now = self.true_time();
        let machine = self.lock();
        let now = machine.stopped.unwrap_or(now);
        let gained = (now - machine.rated_from) * machine.rate_ppm / 1_000_000;
        let at = |begin: i128, ahead: i128| u64::try_from(begin + now + gained + ahead).unwrap_or(0);
        let [boot, mono, raw, real] = machine.ahead;
        Stamp { boot: at(UP, boot), mono: at(UP, mono), raw: at(UP, raw), real: at(BEGIN, real) }
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        SystemClock.sleep(duration)
    }

    fn random(&self) -> u128 {
        let mut machine = self.lock();
        u128::from(machine.draw()) << 64 | u128::from(machine.draw())
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self { chance: seed, ahead: [0; 4], stopped: None, rate_ppm: 0, rated_from: 0 }
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
