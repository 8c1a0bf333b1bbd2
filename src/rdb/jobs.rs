//! Jobs for several threads, whose results one thread takes in the order in which it added the jobs.
//!
//! The thread that takes the results waits only while other threads work on all jobs that are left; otherwise it does
//! one itself. So it also works alone, and no other thread has to be started for that.
//!
//! The function that does a job must not panic: its result would be waited for for ever.

use std::collections::VecDeque;
use std::thread;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The most jobs that there should be at a time: enough for the threads, and few enough for the memory.
pub(super) const MAX_JOBS: usize = 8;
/// The most threads that help. With more, the thread that takes the results is the bottleneck.
const MAX_HELPERS: usize = 4;

/// The number of threads that can help, which is that of the other processors; 0 where there is one only.
pub(super) fn helpers() -> usize {
    thread::available_parallelism().map_or(0, |processors| (processors.get() - 1).min(MAX_HELPERS))
}

/// Jobs of type `J`, in their order, with results of type `R`.
#[derive(Debug)]
pub(super) struct Jobs<J, R> {
    queue: Mutex<Queue<J, R>>,
    is_pushed: Condvar,
    is_done: Condvar,
}

#[derive(Debug)]
struct Queue<J, R> {
    jobs: VecDeque<Job<J, R>>,
    /// The number of the first job.
    first: u64,
    is_closed: bool,
}

#[derive(Debug)]
enum Job<J, R> {
    Waiting(J),
    /// A thread has it.
    InWork,
    Done(R),
}

impl<J, R> Queue<J, R> {
    /// Takes the first job that waits, with its number.
    fn claim(&mut self) -> Option<(u64, J)> {
        let place = self.jobs.iter().position(|job| matches!(job, Job::Waiting(_)))?;
        let Job::Waiting(job) = std::mem::replace(&mut self.jobs[place], Job::InWork) else { return None };
        Some((self.first + place as u64, job))
    }
}

impl<J, R> Jobs<J, R> {
    pub(super) fn new() -> Jobs<J, R> {
        let queue = Queue { jobs: VecDeque::new(), first: 0, is_closed: false };
        Jobs { queue: Mutex::new(queue), is_pushed: Condvar::new(), is_done: Condvar::new() }
    }

    /// The number of jobs whose results have not been taken.
    pub(super) fn len(&self) -> usize {
        self.queue.lock().jobs.len()
    }

    /// Adds a job.
    pub(super) fn push(&self, job: J) {
        self.queue.lock().jobs.push_back(Job::Waiting(job));
        self.is_pushed.notify_one();
    }

    /// Takes the result of the first job.
    pub(super) fn next(&self, work: impl Fn(J) -> R) -> Option<R> {
        let mut queue = self.queue.lock();
        while !matches!(queue.jobs.front()?, Job::Done(_)) {
            match queue.claim() {
                Some((number, job)) => MutexGuard::unlocked(&mut queue, || self.end(number, work(job))),
                None => self.is_done.wait(&mut queue),
            }
        }
        queue.first += 1;
        match queue.jobs.pop_front()? {
            Job::Done(result) => Some(result),
            Job::Waiting(_) | Job::InWork => None,
        }
    }

    /// Does jobs until there will be no more.
    pub(super) fn help(&self, work: impl Fn(J) -> R) {
        let mut queue = self.queue.lock();
        while !queue.is_closed {
            match queue.claim() {
                Some((number, job)) => MutexGuard::unlocked(&mut queue, || self.end(number, work(job))),
                None => self.is_pushed.wait(&mut queue),
            }
        }
    }

    /// Makes the threads that help end.
    pub(super) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.is_pushed.notify_all();
    }

    fn end(&self, number: u64, result: R) {
        let mut queue = self.queue.lock();
        let place = (number - queue.first) as usize;
        queue.jobs[place] = Job::Done(result);
        drop(queue);
        self.is_done.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of some jobs that so many threads help with, each job a number whose result is its square.
    fn squares(helpers: usize) -> Vec<u64> {
        let (jobs, work) = (Jobs::new(), |number: u64| number * number);
        thread::scope(|scope| {
            (0..helpers).for_each(|_| _ = scope.spawn(|| jobs.help(work)));
            let mut results = Vec::new();
            for number in 0..1000 {
                jobs.push(number);
                if jobs.len() >= MAX_JOBS {
                    results.extend(jobs.next(work));
                }
            }
            results.extend(std::iter::from_fn(|| jobs.next(work)));
            jobs.close();
            results
        })
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs_with_any_number_of_threads() {
        let expected: Vec<u64> = (0..1000).map(|number| number * number).collect();
        for helpers in [0, 1, 3] {
            assert!(squares(helpers) == expected, "{helpers} threads help");
        }
    }
}
