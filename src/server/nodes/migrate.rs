//! MIGRATE between two nodes of this process: the keys are restored without a connection, since the event loop that
//! would serve it may be the one that waits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::Cluster;
use crate::engine::exec::sleep;
use crate::engine::{Engine, Flow, Origin, RemoteFault, RemoteRequest, RemoteResult, SessionId, Transport};
use crate::resp::{Limits, Parser, ReplyBuffer};
use crate::server::shared::Shared;

/// The time between two checks whether the server is ending, while a thread waits for a node's lock.
const LOCK_PART_MS: u64 = 50;

impl Cluster {
    /// The node that listens there for clients, if it runs.
    pub(in crate::server) fn node_at(&self, host: &str, port: u16) -> Option<Arc<Shared>> {
        let node = self.nodes().into_iter().find(|node| node.port() == port && !node.is_down())?;
        let is_here = is_this_machine(host) || is_bound(&node.worlds().settings_at_start().bind, host);
        is_here.then_some(node)
    }
}

/// Whether a host is this machine, as nodes of one process are reached.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback() || ip.is_unspecified())
}

/// Whether a server with these names in `bind` listens at a host. A name with `-` is one that may be missing.
fn is_bound(bind: &[String], host: &str) -> bool {
    bind.iter().any(|name| name.strip_prefix('-').unwrap_or(name) == host)
}

impl Shared {
    /// Locks the engine within that many milliseconds, unless the server ends meanwhile.
    fn lock_within(&self, mut left_ms: u64) -> Option<MutexGuard<'_, Engine>> {
        while left_ms > 0 && !self.is_ending() {
            let part_ms = left_ms.min(LOCK_PART_MS);
            if let Some(engine) = self.engine.try_lock_for(Duration::from_millis(part_ms)) {
                return Some(engine);
            }
            left_ms -= part_ms;
        }
        None
    }

    /// Runs the requests of MIGRATE at this node, for a thread that holds the lock of another one.
    pub(in crate::server) fn restore(&self, remote: &RemoteRequest) -> RemoteResult {
        let Some(mut engine) =
            self.lock_within(remote.timeout_ms).filter(|engine| !self.is_down() && sleep::ends(engine).is_none())
        else {
            return RemoteResult::of(RemoteFault::Reading);
        };
        let origin = Origin {
            transport: Transport::Tcp,
            address: "127.0.0.1:0".to_owned(),
            local_address: "127.0.0.1:0".to_owned(),
            descriptor: -1,
            is_local: true,
            ..Origin::default()
        };
        let Some(session) = engine.connect(self.clock().now(), origin) else {
            return RemoteResult::of(RemoteFault::Reading);
        };
        let before = self.begin_batch(&mut engine);
        let limits = Limits { max_bulk_bytes: engine.settings.max_bulk_bytes, authenticated: true };
        let mut result = RemoteResult::default();
        let RemoteResult { replies, refusal, fault } = &mut result;
        let greeted = self.run_all(&mut engine, session, &remote.greeting(), &limits, |line| {
            if line.starts_with(b"-") && refusal.is_none() {
                *refusal = Some(line.to_vec());
            }
        });
        let restored = greeted.and_then(|()| {
            self.run_all(&mut engine, session, &remote.requests, &limits, |line| replies.push(line.to_vec()))
        });
        *fault = restored.err();
        engine.disconnect(session);
        self.end_batch(&mut engine, before);
        result
    }

    /// Runs the requests in `bytes` one by one, and passes each reply, without its line end, to `take`.
    fn run_all(
        &self,
        engine: &mut Engine,
        session: SessionId,
        bytes: &[u8],
        limits: &Limits,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), RemoteFault> {
        let (mut parser, mut start) = (Parser::new(), 0);
        while let Ok(Some(request)) = parser.next(&bytes[start..], limits) {
            let mut output = ReplyBuffer::default();
            let flow = self.run_in(engine, session, request, &mut output);
            start += parser.consumed();
            let reply = output.into_bytes();
            // A node that makes clients wait does not answer in time.
            let line = reply.strip_suffix(b"\r\n").filter(|_| flow == Flow::Next).ok_or(RemoteFault::Reading)?;
            take(line);
        }
        // The node takes no words of that length, and would close a connection.
        if start < bytes.len() { Err(RemoteFault::Reading) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_at_each_address_that_the_server_is_bound_to_also_at_one_that_may_be_missing() {
        let bind = ["192.0.2.1", "-192.0.2.2", "-2001:db8::1"].map(str::to_owned);
        for host in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
            assert!(is_bound(&bind, host), "{host}");
        }
        assert!(!is_bound(&bind, "192.0.2.3"));
    }
}
