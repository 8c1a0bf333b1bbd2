//! ZSCAN: iterates over the members of a sorted set.

use crate::commands::scanning::{self, Options, Scanned};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::number;
use crate::value::zset::Zset;

pub(super) const ZSCAN: Command = Command {
    name: "ZSCAN",
    syntax: "key cursor [MATCH pattern] [COUNT count]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.8.0",
    cost: "O(1) for each step, O(N) for the whole walk, N being the members of the sorted set.",
    about: "Iterates over the members and scores of a sorted set, with a cursor.",
    tips: &["nondeterministic_output"],
    run: zscan,
    ..Command::ROW
};

/// Redis checks the options only if the sorted set exists, and so do we.
fn zscan(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let cursor = scanning::cursor(&mut args)?;
    let (zset, reply) = cx.read::<Zset>(key)?;
    let mut found = Vec::new();
    let mut next = 0;
    if let Some(zset) = zset {
        let options = Options::parse(&mut args, Scanned::Members)?;
        next = zset.scan(cursor, options.count, |entry| {
            if options.admits(entry.member) {
                found.push(entry);
            }
        });
    }
    reply.array(2);
    scanning::write_cursor(reply, next);
    reply.array(found.len() * 2);
    let is_listpack = zset.is_some_and(Zset::is_listpack);
    let mut digits = Vec::new();
    for entry in found {
        digits.clear();
        if is_listpack {
            number::write_f64(&mut digits, entry.score);
        } else {
            write_in_17_digits(&mut digits, entry.score);
        }
        reply.bulk(entry.member);
        reply.bulk(&digits);
    }
    Ok(())
}

/// Integers below this have at most 16 digits, and each is a double.
const MIN_INEXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a score with 17 significant digits, without trailing zeros: Redis replies so here for a set that is not
/// packed, as a string in RESP3 too, and nowhere else. In C this is `%.17g`.
fn write_in_17_digits(out: &mut Vec<u8>, score: f64) {
    if !score.is_finite() || score == 0.0 {
        return number::write_f64(out, score);
    }
    if score.fract() == 0.0 && score.abs() < MIN_INEXACT {
        return out.extend_from_slice(itoa::Buffer::new().format(score as i64).as_bytes());
    }
    let scientific = format!("{:.16e}", score.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("the format puts an exponent");
    let exponent: i32 = exponent.parse().expect("the format's exponent is a number");
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    if score < 0.0 {
        out.push(b'-');
    }
    let text = match usize::try_from(exponent) {
        Ok(whole @ 0..17) if digits.len() <= whole + 1 => format!("{digits:0<width$}", width = whole + 1),
        Ok(whole @ 0..17) => format!("{}.{}", &digits[..=whole], &digits[whole + 1..]),
        Err(_) if exponent >= -4 => {
            format!("0.{:0>width$}", digits, width = digits.len() + exponent.unsigned_abs() as usize - 1)
        }
        _ => {
            let point = if digits.len() > 1 { "." } else { "" };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}{point}{}e{sign}{:02}", &digits[..1], &digits[1..], exponent.unsigned_abs())
        }
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn an_integer_is_written_in_all_its_digits(score in -9_007_199_254_740_991_i64..=9_007_199_254_740_991) {
            proptest::prop_assert_eq!(written(score as f64), score.to_string());
        }
    }

    fn written(score: f64) -> String {
        let mut out = Vec::new();
        write_in_17_digits(&mut out, score);
        String::from_utf8(out).expect("digits are text")
    }

    #[test]
    fn seventeen_digits_are_written_as_redis_writes_them() {
        assert_eq!(written(2.3), "2.2999999999999998");
        assert_eq!(written(-0.1), "-0.10000000000000001");
        assert_eq!(written(0.001), "0.001");
        assert_eq!(written(0.0001), "0.0001");
        assert_eq!(written(1e-5), "1.0000000000000001e-05");
        assert_eq!(written(1e-9), "1.0000000000000001e-09");
        assert_eq!(written(17_179_869_184.0), "17179869184");
        assert_eq!(written(1_000.0), "1000");
        assert_eq!(written(9_007_199_254_740_992.0), "9007199254740992");
        assert_eq!(written(123_456_789_012_345_680.0), "1.2345678901234568e+17");
        assert_eq!(written(1e16), "10000000000000000");
        assert_eq!(written(1e20), "1e+20");
        assert_eq!(written(1e300), "1.0000000000000001e+300");
        assert_eq!(written(5e-324), "4.9406564584124654e-324");
        assert_eq!(written(f64::NEG_INFINITY), "-inf");
        assert_eq!(written(-0.0), "-0");
    }
}
