//! Carrying out the engine's effects ([`Effect`]), at once and under its lock: none takes long except a stall, which is
//! meant to hold everyone up, and the end of the append-only file, which waits for the disk.

use std::mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Shared, saves_at_end};
use crate::engine::exec::{aof, delivery};
use crate::engine::{Effect, Engine, LogLevel, SessionId, Transport};
use crate::server::aof_rewrite;
use crate::server::deliveries::AT_ONCE;
use crate::server::dump_file;
use crate::server::log;
use crate::server::nodes::BusMessage;
use crate::server::wake_flags::WakeFlag;

impl Shared {
    /// Carries out the effects of the request that `caller` has run, and what follows from them. A caller that closes
    /// itself ends when its replies are sent: its connection gets [`Flow::Close`](crate::engine::Flow::Close).
    pub(crate) fn carry_out(&self, engine: &mut Engine, caller: Option<SessionId>) {
        let mut woken = 0;
        while !engine.effects.is_empty() {
            let effects = engine.effects.take();
            effects.into_iter().for_each(|effect| self.carry_out_one(engine, caller, effect, &mut woken));
        }
    }

    fn carry_out_one(&self, engine: &mut Engine, caller: Option<SessionId>, effect: Effect, woken: &mut usize) {
        match effect {
            Effect::Close(session) if caller == Some(session) => {}
            Effect::Close(session) => self.close(engine, session),
            Effect::CutOff(session) => {
                if let Some(line) = delivery::close_log_line(engine, session) {
                    log::write(LogLevel::Warning, &line);
                }
                if caller != Some(session) {
                    self.close(engine, session);
                }
            }
            // The caller takes its pushes together with its reply.
            Effect::Wake(session) if caller == Some(session) => {}
            Effect::Wake(session) => {
                *woken += 1;
                self.wake(engine, session, *woken);
            }
            Effect::Resume => self.resume(engine),
            Effect::Clock(order) => {
                self.set_clock(engine, order);
                self.send_to_nodes(BusMessage::Clock(order));
            }
            Effect::Sleep => self.fall_asleep(engine),
            Effect::Stall(stall_us) => self.stall(engine, Duration::from_micros(stall_us)),
            Effect::Shutdown => self.shut_down(engine),
            Effect::Save(checkpoint) => dump_file::start(self, engine, checkpoint),
            Effect::StopSave(save) => self.worlds.saver().stop(save),
            Effect::Rewrite(id) => aof_rewrite::start(self, engine, id),
            Effect::TakeBase => aof_rewrite::take_awaited_base(self, engine),
            Effect::SyncAof => self.worlds.aof().sync_soon(),
            Effect::EndAof => self.end_aof(engine),
            Effect::Setting(name) => self.apply(engine, name),
            Effect::Free(lazy_free) => self.worlds.lazy_free_thread().free(lazy_free),
            Effect::Template(template) => self.worlds.set_template(template.map(|template| *template)),
            Effect::Log(level, line) => log::write(level, &line),
            Effect::SendToNodes(message) => self.send_to_nodes(BusMessage::Node(*message)),
            Effect::KeyEvent { .. } => {}
        }
    }

    /// Wakes a session to send its pushes, as number `woken` of those that one request wakes: the first [`AT_ONCE`] at
    /// once, the others paced by [`Deliveries`](crate::server::deliveries::Deliveries).
    fn wake(&self, engine: &mut Engine, session: SessionId, woken: usize) {
        let Some(client) = engine.sessions.get_mut(session) else { return };
        if woken <= AT_ONCE && self.deliveries.is_empty() {
            self.notify(session, WakeFlag::Pushed);
        } else if !mem::replace(&mut client.is_to_be_woken, true) {
            self.deliveries.add(session);
        }
    }

    /// Resumes the clients that a pause held back, in the order in which they came, and the timer.
    pub(in crate::server) fn resume(&self, engine: &Engine) {
        engine.sessions.held_back().into_iter().for_each(|session| self.notify(session, WakeFlag::Resume));
        self.wakeup.no_later_than(engine.now());
    }

    /// Ends a session: through its connection, or here if it is an in-process client, which has none.
    fn close(&self, engine: &mut Engine, session: SessionId) {
        self.notify(session, WakeFlag::Close);
        if engine.sessions.get(session).is_some_and(|session| session.origin.transport == Transport::Direct) {
            engine.disconnect(session);
        }
    }

    /// Ends the server, or only this world, or this node, if it is not the first.
    fn shut_down(&self, engine: &mut Engine) {
        match self.world {
            None => self.stop(),
            Some(_) if self.membership.get().is_some() => self.kill(engine),
            Some(_) => self.end_world(engine),
        }
    }

    /// Closes the append-only file.
    fn end_aof(&self, engine: &mut Engine) {
        // A base that is wanted is not, as the file ends.
        let _ = self.worlds.aof().append(engine);
        aof::end(engine);
        self.worlds.aof().close(engine.effects.propagation.commands());
    }

    /// Closes the append-only file when the server ends.
    pub(crate) fn end_aof_with_server(&self) {
        let writer = self.worlds.aof();
        let commands = self.act(|engine| {
            // A base that is wanted comes too late.
            let _ = writer.append(engine);
            engine.effects.propagation.commands()
        });
        writer.end();
        writer.close(commands);
    }

    /// Passes the new bytes of the engine's stream to the append-only file, which begins anew if they do not tell how
    /// the data came about.
    pub(in crate::server) fn append_to_aof(&self, engine: &mut Engine) {
        if self.worlds.aof().append(engine) {
            aof::restart(engine);
            self.carry_out(engine, None);
        }
    }

    /// Applies a setting that has changed.
    fn apply(&self, engine: &Engine, name: &str) {
        match name {
            "timeout" => self.wakeup.no_later_than(engine.now()),
            "save" | "appendonly" | "shutdown-on-sigint" | "shutdown-on-sigterm" => {
                self.saves_at_end.store(saves_at_end(&engine.settings), Ordering::Relaxed);
            }
            "aof-disable-auto-gc" if !engine.settings.files.keeps_history => self.worlds.aof().remove_history(),
            "appendfsync" => self.worlds.aof().set_policy(engine.settings.files.syncs),
            "loglevel" if self.world.is_none() => log::set_level(engine.settings.log_level),
            _ => {}
        }
    }
}
