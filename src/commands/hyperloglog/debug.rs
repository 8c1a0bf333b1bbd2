//! PFDEBUG and PFSELFTEST: the internals of HyperLogLogs.

use super::{open, sketch_of};
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Family, Flags, HyperLogLogError, KeyFlags, KeySpec, Lookup, Peek, says,
    shown,
};
use crate::value::hyperloglog::{REGISTERS, self_test};

pub(super) const PFDEBUG: Command = Command {
    name: "PFDEBUG",
    syntax: "subcommand key",
    family: Family::HyperLogLog,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::ADMIN).and(Flags::SYSTEM),
    keys: &[KeySpec::at(2, KeyFlags::RW.and(KeyFlags::ACCESS))],
    since: "2.8.9",
    cost: "N/A",
    about: "Reports the internals of a HyperLogLog: its registers, its runs, its encoding.",
    run: pfdebug,
    ..Command::ROW
};

fn pfdebug(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (subcommand, key) = (args.word()?, args.key()?);
    if says(subcommand, "SIMD") {
        return simd(cx, key);
    }
    let text = cx.lookup(key, Lookup::NO_TRACE).map(Peek::text).transpose()?.ok_or(HyperLogLogError::Missing)?;
    let form = sketch_of(text)?.form();
    // The text is raw from then on, whichever subcommand was called.
    cx.update_text(key, None, |_| Ok(Changed::by(0, ())))?;
    if says(subcommand, "GETREG") {
        getreg(cx, key)
    } else if says(subcommand, "DECODE") {
        decode(cx, key)
    } else if says(subcommand, "ENCODING") {
        cx.reply().simple(form.name());
        Ok(())
    } else if says(subcommand, "TODENSE") {
        let changed = make_dense(cx, key)?;
        cx.reply().integer(changed.into());
        Ok(())
    } else {
        Err(HyperLogLogError::UnknownSubcommand(shown(subcommand)).into())
    }
}

/// There are no SIMD instructions to switch on or off: the compiler's choice stays.
fn simd(cx: &mut Ctx<'_>, switch: &[u8]) -> Result<(), Error> {
    if !says(switch, "ON") && !says(switch, "OFF") {
        return Err(HyperLogLogError::Simd.into());
    }
    cx.reply().simple("disabled");
    Ok(())
}

fn getreg(cx: &mut Ctx<'_>, key: &[u8]) -> Result<(), Error> {
    make_dense(cx, key)?;
    let mut registers = [0; REGISTERS];
    if let Some(text) = cx.lookup(key, Lookup::NO_TRACE).map(Peek::text).transpose()? {
        sketch_of(text)?.merge_into(&mut registers)?;
    }
    let reply = cx.reply();
    reply.array(REGISTERS);
    registers.into_iter().for_each(|register| reply.integer(register.into()));
    Ok(())
}

fn decode(cx: &mut Ctx<'_>, key: &[u8]) -> Result<(), Error> {
    let text = cx.lookup(key, Lookup::NO_TRACE).map(Peek::text).transpose()?.ok_or(HyperLogLogError::Missing)?;
    let runs = sketch_of(text)?.runs().ok_or(HyperLogLogError::NotSparse)?;
    cx.reply().bulk(runs.as_bytes());
    Ok(())
}

/// This counts as a change without a notification.
fn make_dense(cx: &mut Ctx<'_>, key: &[u8]) -> Result<bool, Error> {
    let changed = cx.update_text(key, None, |bytes| Ok(Changed::by(0, open(bytes, 0)?.make_dense()?)))?;
    cx.stats_mut().changes += u64::from(changed);
    Ok(changed)
}

pub(super) const PFSELFTEST: Command = Command {
    name: "PFSELFTEST",
    family: Family::HyperLogLog,
    flags: Flags::ADMIN.and(Flags::SYSTEM),
    since: "2.8.9",
    cost: "N/A",
    about: "Tests HyperLogLogs with random elements.",
    run: pfselftest,
    ..Command::ROW
};

fn pfselftest(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    self_test(|| cx.random()).map_err(HyperLogLogError::TestFailed)?;
    cx.reply().ok();
    Ok(())
}
