//! A host that is linked to another server, an engine in the same process, for the requests of MIGRATE.

use std::fmt;
use std::sync::Mutex;

use dunlin::engine::state::host::{Facts, Host, LoopCycles, NoHost, ProcessorTimes, Usage};
use dunlin::engine::{Now, Process, RemoteRequest, RemoteResult, Settings};
use dunlin::resp::{Limits, Parser};

use crate::world::World;

/// The host; what is not for another server has the results of [`NoHost`].
#[derive(Default)]
pub struct LinkedHost {
    machine: NoHost,
    /// The other server, from the first request on.
    other: Mutex<Option<World>>,
}

impl fmt::Debug for LinkedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LinkedHost").finish_non_exhaustive()
    }
}

/// Runs the requests one after the other; returns their replies without the line ends.
fn replies(world: &mut World, requests: &[u8]) -> Vec<Vec<u8>> {
    let limits = Limits { max_bulk_bytes: 512 << 20, authenticated: true };
    let (mut parser, mut replies, mut rest) = (Parser::new(), Vec::new(), requests);
    while let Some(request) = parser.next(rest, &limits).expect("MIGRATE sends whole requests") {
        let mut reply = Vec::new();
        world.engine.run(world.now(), world.client, request, &mut reply);
        world.engine.finish(world.now(), request);
        reply.truncate(reply.len() - "\r\n".len());
        replies.push(reply);
        rest = &rest[parser.consumed()..];
    }
    replies
}

impl Host for LinkedHost {
    fn send_remote(&self, remote: RemoteRequest) -> RemoteResult {
        let mut other = self.other.lock().expect("no test has failed within it");
        let replies = replies(other.get_or_insert_with(World::fresh), &remote.requests);
        assert_eq!(replies.len(), remote.count, "each request gets a reply");
        RemoteResult { replies, ..RemoteResult::default() }
    }

    fn facts(&self) -> &Facts {
        self.machine.facts()
    }

    fn usage(&self) -> Usage {
        self.machine.usage()
    }

    fn processor_time(&self) -> ProcessorTimes {
        self.machine.processor_time()
    }

    fn loop_cycles(&self) -> LoopCycles {
        self.machine.loop_cycles()
    }

    fn elapsed_us(&self) -> u64 {
        self.machine.elapsed_us()
    }

    fn now(&self) -> Option<Now> {
        self.machine.now()
    }

    fn clock_speed(&self) -> f64 {
        self.machine.clock_speed()
    }

    fn read_config(&self) -> Result<Vec<u8>, String> {
        self.machine.read_config()
    }

    fn write_config(&self, text: &[u8]) -> Result<(), String> {
        self.machine.write_config(text)
    }

    fn make_room_for(&self, clients: usize) -> usize {
        self.machine.make_room_for(clients)
    }

    fn listen(&self, before: &Settings, after: &Settings) -> bool {
        self.machine.listen(before, after)
    }

    fn set_oom_score(&self, process: &Process) -> bool {
        self.machine.set_oom_score(process)
    }

    fn read_users(&self, path: &str) -> Result<Vec<u8>, String> {
        self.machine.read_users(path)
    }

    fn write_users(&self, path: &str, text: &[u8]) -> Result<(), String> {
        self.machine.write_users(path, text)
    }

    fn secret(&self) -> Option<[u8; 32]> {
        self.machine.secret()
    }
}
