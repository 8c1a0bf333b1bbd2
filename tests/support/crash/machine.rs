//! A server with an append-only file on a simulated disk, which does one thing at a time.
//!
//! It does what the threads of a server do, in any order that they could: a client changes data, the log is written, a
//! sync begins, a sync ends, a rewrite makes its next step. All data and files are the project's own code; only the
//! order is the test's.
//!
//! The oracle is a hash of all data after every change. After a restart, the data must be those after some change: not
//! before the last one that is durable, and not an invented one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use dunlin::aof::decisions::{NextFile, check_tail};
use dunlin::aof::files::{AofFiles, Place, VerifiedBase};
use dunlin::aof::log::{Log, SyncOrder};
use dunlin::aof::scan::Tail;
use dunlin::engine::exec::aof_load::AofLoad;
use dunlin::engine::exec::{aof, persistence};
use dunlin::engine::state::BackgroundSave;
use dunlin::engine::state::host::AofSource;
use dunlin::engine::{Checkpoint, Effect, SessionId, Settings, SyncPolicy};
use dunlin::storage::simulated::SimulatedDisk;
use dunlin::storage::{Storage, StorageFile, replace};

use crate::support::world::World;

/// The reply of WAITAOF when the files have what the client wrote.
const SYNCED: &str = "*2\r\n:1\r\n:0\r\n";

/// A change of the data.
#[derive(Debug)]
struct Change {
    /// The offset of the stream behind it; the greatest one if it is not in the stream, but in the next base.
    offset: u64,
    /// The hash of all data after it.
    digest: String,
}

/// A rewrite, and its next step.
#[derive(Debug)]
enum Rewrite {
    Prepare,
    TakeBase { next: Option<(Arc<dyn StorageFile>, NextFile)> },
    WriteBase { base: Box<Checkpoint>, changes: usize },
    Publish { changes: usize },
}

/// The changes of the data that a disk has seen.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: Vec<Change>,
    /// The number of changes that are durable.
    durable: usize,
    /// The number of changes that the next start finds if the disk keeps its power.
    written: usize,
}

/// A server that runs.
pub(crate) struct Machine {
    disk: SimulatedDisk,
    world: World,
    files: AofFiles,
    log: Log,
    sync: Option<SyncOrder>,
    rewrite: Option<(u64, Rewrite)>,
    /// The clients that wait until the files have so many changes (WAITAOF).
    waiting: Vec<(SessionId, usize)>,
    has_checksums: bool,
    policy: SyncPolicy,
    /// Whether the last write failed.
    has_failed: bool,
    /// The offset up to which clients may have seen the stream.
    released: u64,
    pub(crate) sites: Sites,
    pub(crate) history: History,
}

/// The part of the code that is running, and how often each thing was synced in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sites(pub(crate) Arc<Mutex<(&'static str, BTreeMap<String, usize>)>>);

impl Sites {
    /// Begins a part of the code.
    fn begin(&self, part: &'static str) {
        *self.0.lock().expect("nothing panics") = (part, BTreeMap::new());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A base that is shared with the databases ends before them.
        self.rewrite = None;
    }
}

/// How a server writes its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) policy: SyncPolicy,
    /// Whether what is written has checksums, which a start looks at.
    pub(crate) has_checksums: bool,
}

fn settings(settings: &mut Settings, setup: Setup) {
    let files = Arc::make_mut(&mut settings.files);
    (files.appends, files.syncs, files.has_log_checksums) = (true, setup.policy, setup.has_checksums);
}

fn place() -> Place {
    Place { folder: PathBuf::from("data/appendonlydir"), name: "appendonly.aof".to_owned() }
}

impl History {
    /// The number of changes up to an offset of the stream.
    fn up_to(&self, offset: u64) -> usize {
        self.changes.iter().rposition(|change| change.offset <= offset).map_or(0, |last| last + 1)
    }

    /// A history of one request, which is written, and may be durable.
    pub(crate) fn of(request: &str, is_durable: bool) -> History {
        let mut world = World::fresh();
        let before = Change { offset: 0, digest: world.ask("DEBUG DIGEST") };
        world.ask(request);
        let after = Change { offset: 0, digest: world.ask("DEBUG DIGEST") };
        History { changes: vec![before, after], durable: if is_durable { 2 } else { 0 }, written: 2 }
    }

    /// Notes that the disk has lost its power.
    pub(crate) fn lose_power(&mut self) {
        self.written = 0;
    }

    fn make_durable(&mut self, changes: usize) {
        self.durable = self.durable.max(changes);
    }

    /// Checks the data that a restart has found, with which the history begins anew.
    fn begin_with(&mut self, digest: String, offset: u64) -> Result<(), String> {
        let is_known = |change: &Change| change.digest == digest;
        let least = self.durable.max(self.written);
        let first = least.saturating_sub(1);
        let later = self.changes.get(first..).unwrap_or_default();
        if !self.changes.is_empty() && !later.iter().any(is_known) {
            let lost = self.changes.iter().position(is_known);
            let all = self.changes.len();
            return Err(match lost {
                Some(found) => format!("{} of {least} durable changes are there, of {all}", found + 1),
                None => format!("the data are none that there were after any of {all} changes"),
            });
        }
        *self = History { changes: vec![Change { offset, digest }], durable: 1, written: 0 };
        Ok(())
    }
}

impl Machine {
    /// Starts a server on what a disk has.
    pub(crate) fn start(
        disk: &SimulatedDisk,
        setup: Setup,
        sites: &Sites,
        history: &mut History,
    ) -> Result<Machine, String> {
        sites.begin("open");
        let mut world = World::with(|all| settings(all, setup));
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let mut files = AofFiles::open(storage, place()).map_err(|fault| fault.to_string())?;
        if files.is_empty() {
            sites.begin("first base");
            let base = aof::first_base(&mut world.engine);
            let created = files.create_base(|out| base.write(out, || Ok(())));
            drop(base);
            persistence::reclaim(&mut world.engine);
            created.map_err(|error| error.to_string())?;
        } else {
            sites.begin("cut");
            load(disk, &files, &mut world)?;
        }
        sites.begin("go on");
        let file = files.continue_last().map_err(|error| error.to_string())?;
        aof::begin(&mut world.engine);
        let last_bytes = files.to_load().last().map_or(0, |file| file.bytes);
        world.engine.effects.propagation.continue_file(last_bytes);
        world.engine.effects.take();
        let offset = world.engine.effects.propagation.offset();
        history.begin_with(world.ask("DEBUG DIGEST"), offset)?;
        Ok(Machine {
            disk: disk.clone(),
            world,
            files,
            log: Log::new(file, offset, true),
            sync: None,
            rewrite: None,
            waiting: Vec::new(),
            has_checksums: setup.has_checksums,
            policy: setup.policy,
            has_failed: false,
            released: offset,
            sites: sites.clone(),
            history: std::mem::take(history),
        })
    }

    /// Sends the requests of a client, and hands what they have changed over to the log.
    pub(crate) fn run(&mut self, requests: &[String]) {
        for request in requests {
            self.world.ask(request);
        }
        self.note_change();
    }

    /// Sends the request of a client that then waits until what it has changed is durable.
    pub(crate) fn run_and_wait(&mut self, request: &str) {
        let (client, before) = (self.world.join(), self.history.changes.len());
        self.world.ask_as(client, request);
        self.note_change();
        let after = self.history.changes.len();
        self.waiting.push((client, if after > before { after } else { 0 }));
        let (reply, _) = self.world.ask_as(client, "WAITAOF 1 0 0");
        self.end_wait(client, &reply);
        self.follow_effects();
    }

    /// Tells the clients that wait what is durable by now.
    fn end_waits(&mut self) {
        aof::end_synced_waits(&mut self.world.engine);
        for client in self.waiting.iter().map(|(client, _)| *client).collect::<Vec<_>>() {
            let reply = self.world.take_pushes(client);
            self.end_wait(client, &reply);
        }
    }

    /// Ends a client's wait if that is its reply: what it was told to be durable has to be.
    fn end_wait(&mut self, client: SessionId, reply: &str) {
        if reply.is_empty() {
            return;
        }
        for (_, changes) in self.waiting.extract_if(.., |(waiting, _)| *waiting == client) {
            if reply == SYNCED {
                self.history.make_durable(changes);
            }
        }
        self.world.engine.disconnect(client);
    }

    /// Lets time pass, a millisecond after the other, in which keys expire.
    pub(crate) fn pass_ms(&mut self, milliseconds: usize) {
        for _ in 0..milliseconds {
            self.world.pass_ms(1);
            if self.world.expire() > 0 {
                self.note_change();
            }
        }
    }

    /// Hands over what has changed, and notes the data that there are now.
    fn note_change(&mut self) {
        let needs_base = self.append();
        assert!(!needs_base, "commands of Redis do not need a new base");
        let stream = &self.world.engine.effects.propagation;
        let offset = if stream.is_on() { stream.offset() } else { u64::MAX };
        let digest = self.world.ask("DEBUG DIGEST");
        // Without a change of the data, what the base has to have stays only in the base.
        let is_same = |last: &Change| last.digest == digest && (last.offset == offset || last.offset == u64::MAX);
        if !self.history.changes.last().is_some_and(is_same) {
            self.history.changes.push(Change { offset, digest });
        }
        self.follow_effects();
    }

    /// Hands the new bytes of the stream over to the log; returns whether the data after them need a new base.
    fn append(&mut self) -> bool {
        let stream = &mut self.world.engine.effects.propagation;
        if self.has_checksums {
            stream.add_checksum();
        }
        self.log.append(|out| stream.take_into(out))
    }

    fn follow_effects(&mut self) {
        for effect in self.world.engine.effects.take() {
            match effect {
                Effect::Rewrite(id) => {
                    self.stop_rewrite();
                    self.rewrite = Some((id, Rewrite::Prepare));
                }
                Effect::StopSave(BackgroundSave::Rewrite(_)) => self.stop_rewrite(),
                _ => {}
            }
        }
    }

    fn stop_rewrite(&mut self) {
        if let Some((id, step)) = self.rewrite.take() {
            drop(step);
            aof::end_rewrite(&mut self.world.engine, id, Err("it was stopped".to_owned()));
        }
    }

    /// Writes what the log has.
    pub(crate) fn write(&mut self) {
        self.sites.begin("write");
        let written = self.log.write();
        if self.disk.is_stopped() {
            // The process ended within the write, which never returned.
            return;
        }
        if let Some(offset) = self.policy.released_by_write(&self.log, written.is_ok()) {
            self.release(offset);
        }
        self.report(written.err().map(|error| error.to_string()));
    }

    /// Begins a sync, or ends the one that has begun.
    pub(crate) fn sync(&mut self) {
        self.sites.begin("sync");
        let Some(order) = self.sync.take() else {
            self.sync = self.log.sync_order();
            return;
        };
        let result = order.file.sync();
        if let Some(offset) = self.log.note_sync(&order, &result) {
            self.world.engine.persistence.aof.progress.synced.fetch_max(offset, Ordering::SeqCst);
            self.history.make_durable(self.history.up_to(offset));
            self.release(offset);
        }
        self.report(result.err().map(|error| error.to_string()));
        self.end_waits();
    }

    /// Lets clients see what the stream has up to an offset. With `always` no power loss may take that back.
    fn release(&mut self, offset: u64) {
        self.released = self.released.max(offset);
        if self.policy == SyncPolicy::Always {
            self.history.make_durable(self.history.up_to(offset));
        }
    }

    /// Tells the engine how a write or a sync has ended.
    fn report(&mut self, failure: Option<String>) {
        let needs_base = self.log.sync_error().is_some();
        let after = self.policy.after_write(failure.as_deref(), needs_base, self.has_failed);
        self.has_failed = after.has_failed;
        if after.tells_engine {
            aof::end_write(&mut self.world.engine, failure, needs_base);
        }
        self.follow_effects();
    }

    /// Begins the append-only file anew with the present data.
    pub(crate) fn begin_anew(&mut self) {
        self.append();
        aof::restart(&mut self.world.engine);
        self.follow_effects();
    }

    /// Makes the next step of a rewrite, or begins one.
    pub(crate) fn rewrite(&mut self) {
        let Some((id, step)) = self.rewrite.take() else { return self.run(&["BGREWRITEAOF".to_owned()]) };
        match self.rewrite_step(id, step) {
            Ok(Some(next)) => self.rewrite = Some((id, next)),
            Ok(None) => aof::end_rewrite(&mut self.world.engine, id, Ok(())),
            Err(error) => aof::end_rewrite(&mut self.world.engine, id, Err(error)),
        }
        self.follow_effects();
        self.end_waits();
    }

    fn rewrite_step(&mut self, id: u64, step: Rewrite) -> Result<Option<Rewrite>, String> {
        let text = |error: std::io::Error| error.to_string();
        let temporary = self.files.temporary_base(1);
        match step {
            Rewrite::Prepare => {
                self.sites.begin("next file");
                let next = self.world.engine.persistence.aof.state.next_file();
                let create = |next: NextFile| Ok((next.create(&mut self.files, self.log.appended())?, next));
                Ok(Some(Rewrite::TakeBase { next: next.map(create).transpose().map_err(text)? }))
            }
            Rewrite::TakeBase { next } => {
                self.sites.begin("switch");
                self.append();
                let Some(base) = aof::take_base(&mut self.world.engine, id) else {
                    return Err("it was stopped".to_owned());
                };
                if let Some((file, next)) = next {
                    next.direct(file, &mut self.log);
                }
                Ok(Some(Rewrite::WriteBase { base: Box::new(base), changes: self.history.changes.len() }))
            }
            Rewrite::WriteBase { base, changes } => {
                self.sites.begin("base");
                replace::create(&self.disk, &temporary, |out| base.write(out, || Ok(()))).map_err(text)?;
                Ok(Some(Rewrite::Publish { changes }))
            }
            Rewrite::Publish { changes } => {
                self.sites.begin("publish");
                let base = VerifiedBase::read(&self.disk, temporary, true).map_err(text)?;
                self.files.publish_base(&base, false).map_err(text)?;
                self.log.relist();
                self.history.make_durable(changes);
                Ok(None)
            }
        }
    }

    /// Ends the server in order.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.stop_rewrite();
        self.sites.begin("end");
        self.log.write().map_err(|error| error.to_string())?;
        if let Some(order) = self.log.sync_order() {
            order.file.sync().map_err(|error| error.to_string())?;
            if let Some(offset) = order.offset {
                self.history.make_durable(self.history.up_to(offset));
            }
        }
        self.files.end(self.log.written()).map_err(|error| error.to_string())
    }

    /// Notes what has to be there after the end of the process: what clients have seen, if the log is listed.
    pub(crate) fn outlive_process(&mut self) {
        if self.log.is_listed() {
            self.history.written = self.history.up_to(self.released);
        }
    }
}

/// Loads all files, and cuts off a torn end, as a server does.
fn load(disk: &SimulatedDisk, files: &AofFiles, world: &mut World) -> Result<(), String> {
    let engine = &mut world.engine;
    let mut load = AofLoad::begin(engine);
    for file in files.to_load() {
        let name = file.path.display().to_string();
        let bytes = disk.open(&file.path).map_err(|error| error.to_string())?;
        load.open(engine, AofSource { name: name.clone(), is_base: file.is_base, bytes })?;
        while load.step(engine)? {}
        let (valid_bytes, tail) = load.tail();
        check_tail(tail, &file, true).map_err(|why| format!("{name} is torn ({tail:?}): {why:?}"))?;
        if tail != Tail::Clean {
            files.cut(&file.path, valid_bytes).map_err(|error| error.to_string())?;
        }
    }
    let counts = load.end(engine);
    engine.end_load(counts);
    Ok(())
}
