//! DUNLIN's clock commands: they control the one clock of deadlines, TIME, stream ids, timeouts, idle times, the slow
//! log, and the time that scripts see.
//!
//! The engine receives the time and cannot change it, so these commands are requests to its host ([`Effect::Clock`]).
//! The host carries them out before the next request of any client.

use std::time::Duration;

use super::ROW;
use crate::engine::{Advance, Args, Arity, ClockOrder, Command, Ctx, Effect, Error, HostCall, HostReply, Now};

pub(super) const ADVANCE: Command = Command {
    name: "ADVANCE",
    syntax: "milliseconds",
    arity: Arity::Exactly(3),
    cost: "O(N), N being what falls due on the way",
    about: "Moves the clock forward. Whatever is due on the way happens first, in order. Returns the time, in unix \
            milliseconds.",
    run: advance,
    ..ROW
};

fn advance(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let by_us = args.integer()?.checked_mul(1000).ok_or(Error::NotAnInteger)?;
    cx.now().unix_us.checked_add(by_us).ok_or(Error::NotAnInteger)?;
    let by = Duration::from_micros(u64::try_from(by_us).map_err(|_| Error::NotAnInteger)?);
    go_to(cx, Advance::By(by))
}

pub(super) const ADVANCE_TO_NEXT: Command = Command {
    name: "ADVANCE-TO-NEXT",
    arity: Arity::Exactly(2),
    cost: "O(N), N being what falls due then",
    about: "Moves the clock to the next moment when something is due. Returns the time, or nil if nothing is.",
    run: advance_to_next,
    ..ROW
};

fn advance_to_next(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    go_to(cx, Advance::ToNext)
}

/// Moves the clock on. All nodes of a cluster share one clock, and this node is locked now, so the host moves it once
/// the lock is released.
fn go_to(cx: &mut Ctx<'_>, advance: Advance) -> Result<(), Error> {
    let target = if cx.engine().peers.cluster.is_some() && !cx.is_nested() {
        let Some(HostReply::Moment(moment)) = cx.call_host(HostCall::Advance(advance))? else { return Ok(()) };
        moment
    } else {
        let target = target_of(cx, advance);
        target.into_iter().for_each(|moment| order(cx, ClockOrder::Reach(moment)));
        target
    };
    match target {
        Some(moment) => cx.reply().integer(moment.unix_ms()),
        None => cx.reply().null(),
    }
    Ok(())
}

/// The moment to move the clock to; `None` if nothing falls due (ADVANCE-TO-NEXT).
fn target_of(cx: &Ctx<'_>, advance: Advance) -> Option<Now> {
    let now = cx.now();
    match advance {
        Advance::By(by) => Some(Now::from_us(now.unix_us.saturating_add_unsigned(by.as_micros() as u64))),
        Advance::To(moment) => Some(moment),
        Advance::ToNext => cx.engine().next_moment().map(|moment| moment.max(now)),
    }
}

pub(super) const SET_TIME: Command = Command {
    name: "SET-TIME",
    syntax: "unix-time-milliseconds",
    arity: Arity::Exactly(3),
    cost: "O(N), N being what falls due on the way",
    about: "Sets the clock, forward as by ADVANCE, or back. Returns the time, in unix milliseconds.",
    run: set_time,
    ..ROW
};

fn set_time(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let moment_us = args.integer()?.checked_mul(1000).filter(|moment_us| *moment_us >= 0);
    let moment = Now::from_us(moment_us.ok_or(Error::NotAnInteger)?);
    if moment >= cx.now() {
        return go_to(cx, Advance::To(moment));
    }
    order(cx, ClockOrder::Set(moment));
    cx.reply().integer(moment.unix_ms());
    Ok(())
}

pub(super) const FREEZE: Command = Command {
    name: "FREEZE",
    arity: Arity::Exactly(2),
    about: "Freezes the clock. Returns the time, in unix milliseconds.",
    run: freeze,
    ..ROW
};

fn freeze(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let now = cx.now();
    order(cx, ClockOrder::Speed(0.0));
    order(cx, ClockOrder::Set(now));
    cx.reply().integer(now.unix_ms());
    Ok(())
}

pub(super) const RESUME: Command = Command {
    name: "RESUME",
    arity: Arity::Exactly(2),
    about: "Lets the clock run from its present time, as fast as real time.",
    run: |cx, _| {
        run_at(cx, 1.0);
        Ok(())
    },
    ..ROW
};

/// The maximum speed of the clock: a year in half a minute.
const FASTEST: f64 = 1_000_000.0;

pub(super) const SPEED: Command = Command {
    name: "SPEED",
    syntax: "factor",
    arity: Arity::Exactly(3),
    about: "Lets the clock run factor times as fast as real time: above 0, up to a million.",
    run: speed,
    ..ROW
};

fn speed(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let factor = args.float()?;
    if !(factor > 0.0 && factor <= FASTEST) {
        return Err(Error::NotAFloat);
    }
    run_at(cx, factor);
    Ok(())
}

fn run_at(cx: &mut Ctx<'_>, factor: f64) {
    order(cx, ClockOrder::Speed(factor));
    cx.reply().ok();
}

fn order(cx: &mut Ctx<'_>, order: ClockOrder) {
    cx.effects().push(Effect::Clock(order));
}
