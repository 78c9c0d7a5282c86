//! How many threads compute. llama.cpp's wait for each other a hundred times per token, awake: where one of them has to share its
//! core with somebody else, all of them are slowed down, and fewer are faster.

use std::time::Duration;

/// Time that is looked at before the number is changed.
const WINDOW: Duration = Duration::from_millis(200);

/// Share of the time that threads must have had a core for their number to be kept.
const ENOUGH: f64 = 0.9;

/// The number of threads, by what those before it got.
#[derive(Debug)]
pub struct Threads {
    most: u32,
    now: u32,
    wall: Duration,
    cpu: Duration,
}

impl Threads {
    /// At most so many, at least one.
    pub fn new(most: u32) -> Self {
        let most = most.max(1);
        Self { most, now: most, wall: Duration::ZERO, cpu: Duration::ZERO }
    }

    /// The number to begin an answer with: all.
    pub fn begin(&mut self) -> u32 {
        *self = Self::new(self.most);
        self.now
    }

    /// Takes in how long was computed, and how much time of cores that took. The new number, if it changes.
    pub fn computed(&mut self, wall: Duration, cpu: Duration) -> Option<u32> {
        self.wall += wall;
        self.cpu += cpu;
        if self.wall < WINDOW || self.now == 1 {
            return None;
        }
        let cores = self.cpu.as_secs_f64() / self.wall.as_secs_f64();
        (self.wall, self.cpu) = (Duration::ZERO, Duration::ZERO);
        if cores >= f64::from(self.now) * ENOUGH {
            return None;
        }
        // What is less than all of them is at least one less.
        self.now = (cores as u32).clamp(1, self.now - 1);
        Some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn threads_that_wait_for_a_core_become_fewer() {
        let mut threads = Threads::new(8);
        assert_eq!(threads.begin(), 8);
        assert_eq!(threads.computed(ms(150), ms(600)), None, "too early to tell");
        assert_eq!(threads.computed(ms(50), ms(200)), Some(4));
        assert_eq!(threads.computed(ms(200), ms(760)), None, "nearly all of the time");
        assert_eq!(threads.computed(ms(200), ms(700)), Some(3));
        assert_eq!(threads.computed(ms(200), ms(10)), Some(1));
        assert_eq!(threads.computed(ms(200), ms(10)), None);
        assert_eq!(threads.begin(), 8);
        assert_eq!(Threads::new(0).begin(), 1);
    }
}
