//! Calls and waits for async tests: other tasks run while they wait.
//!
//! They need no particular runtime: the server wakes the task that polls them. Functions that do not wait (the clock,
//! snapshots, faults, assertions) are called as in any test, and do not block the runtime.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::client::CallBuffers;
use super::{CallError, Client, Journal, Reply, World, wait};
use crate::engine::Flow;
use crate::resp::{ReplyBuffer, Request};
use crate::server::wake_flags::WakeFlag;

impl Client {
    /// [`Client::call`], for async tests. Dropping the future before it has its reply closes this client.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let redis = dunlin::test();
    /// let (mut worker, mut producer) = (redis.client()?, redis.client()?);
    /// let (job, _) = tokio::join!(
    ///     worker.call_async(["BLPOP", "queue", "5"]),
    ///     producer.call_async(["RPUSH", "queue", "job-1"]),
    /// );
    /// assert_eq!(job?.to_string(), "1) \"queue\"\n2) \"job-1\"");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`Client::call`].
    pub async fn call_async<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) -> Result<Reply, CallError> {
        let mut buffers = CallBuffers::default();
        buffers.gather(words);
        let (request, output) = buffers.parts();
        let mut call = Call { client: self, is_open: true };
        if !request.is_empty() {
            call.run(request, output).await?;
        }
        let is_closed = !std::mem::take(&mut call.is_open);
        call.client.sort(output.flatten(0), if is_closed { Err(CallError::Closed) } else { Ok(Reply::Null) })
    }

    /// Waits until one of these wake flags is set.
    async fn flag(&self, flag: WakeFlag) -> Result<(), CallError> {
        poll_fn(|context| {
            self.wake_flags.attach(context.waker());
            let flags = self.wake_flags.take();
            match () {
                () if flags.has(WakeFlag::Close) => Poll::Ready(Err(CallError::Closed)),
                () if flags.has(flag) => Poll::Ready(Ok(())),
                () => Poll::Pending,
            }
        })
        .await
    }
}

/// A call in progress; dropping it closes its client.
struct Call<'c> {
    client: &'c mut Client,
    is_open: bool,
}

impl Call<'_> {
    async fn run(&mut self, request: Request<'_>, output: &mut ReplyBuffer) -> Result<(), CallError> {
        loop {
            match self.client.shared.call(self.client.session, request, output).ok_or(CallError::Closed)? {
                Flow::Next => return Ok(()),
                Flow::HeldBack(_) => self.client.flag(WakeFlag::Resume).await?,
                Flow::CallHost if self.client.suspend_for_host(output.written_mut()) => {}
                Flow::CallHost => self.client.flag(WakeFlag::Resume).await?,
                Flow::Block => return self.answer(output).await,
                Flow::Close | Flow::Abort => {
                    self.close();
                    return Ok(());
                }
            }
        }
    }

    /// Waits until the blocked command has its reply.
    async fn answer(&self, output: &mut ReplyBuffer) -> Result<(), CallError> {
        loop {
            self.client.flag(WakeFlag::Pushed).await?;
            self.client.fetch(output)?;
            if !self.client.shared.engine().is_blocked(self.client.session) {
                return self.client.fetch(output);
            }
        }
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.client.shared.disconnect(self.client.session);
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

impl World {
    /// [`World::wait_until_blocked`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`].
    pub async fn wait_until_blocked_async(&self, key: impl AsRef<[u8]>, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::blocked(key), timeout).await
    }

    /// [`World::wait_for_blocked`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_for_blocked`].
    pub async fn wait_for_blocked_async(
        &self,
        key: impl AsRef<[u8]>,
        count: u64,
        timeout: Duration,
    ) -> Result<(), CallError> {
        self.wait_until_async(wait::blocked_clients(key, count), timeout).await
    }

    /// [`World::wait_for_subscribers`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_for_subscribers`].
    pub async fn wait_for_subscribers_async(
        &self,
        channel: impl AsRef<[u8]>,
        count: u64,
        timeout: Duration,
    ) -> Result<(), CallError> {
        self.wait_until_async(wait::subscribers(channel, count), timeout).await
    }

    /// [`World::wait_until_fired`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_until_fired`].
    pub async fn wait_until_fired_async(&self, rule: &str, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::fired(rule, count), timeout).await
    }

    /// [`World::wait_for_clients`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_for_clients`].
    pub async fn wait_for_clients_async(&self, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::clients(count), timeout).await
    }

    /// [`World::wait_until_cluster_is_ok`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_until_cluster_is_ok`].
    pub async fn wait_until_cluster_is_ok_async(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::cluster_is_ok(), timeout).await
    }

    /// [`World::wait_until_cluster_fails`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_until_cluster_fails`].
    pub async fn wait_until_cluster_fails_async(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::cluster_fails(), timeout).await
    }

    /// [`World::wait_until_cluster_agrees`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_until_cluster_agrees`].
    pub async fn wait_until_cluster_agrees_async(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::cluster_agrees(), timeout).await
    }

    /// [`World::wait_until_synced`], for async tests.
    ///
    /// # Errors
    /// Those of [`World::wait_until_synced`].
    pub async fn wait_until_synced_async(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until_async(wait::synced(), timeout).await
    }

    async fn wait_until_async(&self, condition: wait::Words, timeout: Duration) -> Result<(), CallError> {
        self.test_client()?.call_async(wait::command(condition, timeout)).await.map(drop)
    }
}

impl<const OF_ALL_NODES: bool> Journal<'_, OF_ALL_NODES> {
    /// [`Journal::wait_for`], for async tests.
    ///
    /// # Errors
    /// Those of [`Journal::wait_for`].
    pub async fn wait_for_async(&self, count: u64, timeout: Duration) -> Result<(), CallError> {
        let words = self.words_of_wait(count, timeout);
        self.world.test_client()?.call_async(words).await.map(drop)
    }
}
