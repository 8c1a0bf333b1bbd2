//! DUNLIN's clock commands: they control the one clock of deadlines, TIME, stream ids, timeouts, idle times, the slow
//! log, and the time that scripts see.
//!
//! The engine receives the time and cannot change it, so these commands are requests to its host ([`Effect::Clock`]).
//! The host carries them out before the next request of any client.

use super::ROW;
use crate::engine::{Args, Arity, ClockOrder, Command, Ctx, Effect, Error, Now};

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
    let by_us = args.integer()?.checked_mul(1000).filter(|by_us| *by_us >= 0).ok_or(Error::NotAnInteger)?;
    let target = cx.now().unix_us.checked_add(by_us).ok_or(Error::NotAnInteger)?;
    go_to(cx, Now::from_us(target));
    Ok(())
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
    match cx.engine().next_moment() {
        Some(moment) => go_to(cx, moment.max(cx.now())),
        None => cx.reply().null(),
    }
    Ok(())
}

fn go_to(cx: &mut Ctx<'_>, moment: Now) {
    order(cx, ClockOrder::Reach(moment));
    cx.reply().integer(moment.unix_ms());
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
        go_to(cx, moment);
    } else {
        order(cx, ClockOrder::Set(moment));
        cx.reply().integer(moment.unix_ms());
    }
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
