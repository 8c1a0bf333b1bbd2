//! The library `bit`: operations on integers of 32 bits, as in Lua BitOp 1.0.
//!
//! A number is taken modulo 2^32 and rounded to the nearest integer, halves to the even one, by adding a large number
//! to it: that moves its lower bits to where they can be read. A number beyond 2^51 keeps some of its bits, as in
//! BitOp.

use super::arguments::register;
use crate::lua::{Raise, Stack};

/// 2^52 + 2^51: the sum with it has the last 32 bits of a whole number at its end.
const SHIFTER: f64 = 6_755_399_441_055_744.0;

/// Pushes the library.
///
/// # Errors
/// When memory has run out.
pub(crate) fn open(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, 12)?;
    register(
        stack,
        &[
            ("tobit", |stack| answer(stack, |bits| bits)),
            ("bnot", |stack| answer(stack, |bits| !bits)),
            ("bswap", |stack| answer(stack, u32::swap_bytes)),
            ("band", |stack| fold(stack, |one, other| one & other)),
            ("bor", |stack| fold(stack, |one, other| one | other)),
            ("bxor", |stack| fold(stack, |one, other| one ^ other)),
            ("lshift", |stack| shift(stack, u32::wrapping_shl)),
            ("rshift", |stack| shift(stack, u32::wrapping_shr)),
            ("arshift", |stack| shift(stack, |bits, count| (bits as i32).wrapping_shr(count) as u32)),
            ("rol", |stack| shift(stack, u32::rotate_left)),
            ("ror", |stack| shift(stack, u32::rotate_right)),
            ("tohex", tohex),
        ],
    )
}

fn bits(stack: &Stack<'_>, argument: usize) -> Result<u32, Raise> {
    Ok((stack.number_argument(argument)? + SHIFTER).to_bits() as u32)
}

fn push(stack: &mut Stack<'_>, bits: u32) -> usize {
    stack.push_number(f64::from(bits as i32));
    1
}

fn answer(stack: &mut Stack<'_>, operate: fn(u32) -> u32) -> Result<usize, Raise> {
    let bits = bits(stack, 1)?;
    Ok(push(stack, operate(bits)))
}

fn fold(stack: &mut Stack<'_>, operate: fn(u32, u32) -> u32) -> Result<usize, Raise> {
    let mut result = bits(stack, 1)?;
    for argument in (2..=stack.top()).rev() {
        result = operate(result, bits(stack, argument)?);
    }
    Ok(push(stack, result))
}

/// Only five bits of the count matter.
fn shift(stack: &mut Stack<'_>, operate: fn(u32, u32) -> u32) -> Result<usize, Raise> {
    let (value, count) = (bits(stack, 1)?, bits(stack, 2)?);
    Ok(push(stack, operate(value, count % 32)))
}

/// The last hexadecimal digits, as many as the count says, at most eight; in capitals for a negative count.
fn tohex(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let value = bits(stack, 1)?;
    let count = if stack.top() < 2 { 8 } else { bits(stack, 2)? as i32 };
    let text = if count < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(text.len());
    stack.push_plain(&text.as_bytes()[text.len() - length..]);
    Ok(1)
}

#[cfg(test)]
mod tests {
    use crate::script::testing::expect;

    #[test]
    fn numbers_are_rounded_and_reduced_modulo_2_to_the_32() {
        expect(&[
            (
                "bit.tobit(0xffffffff), bit.tobit(2^32 + 1), bit.tobit(-2^31), bit.tobit(2^31)",
                "-1 1 -2147483648 -2147483648",
            ),
            ("bit.tobit(0.5), bit.tobit(1.5), bit.tobit(2.5), bit.tobit(-1.5), bit.tobit('7')", "0 2 2 -2 7"),
            (
                "bit.bnot(0), bit.bswap(0x12345678), bit.band(7, 14, 28), bit.bor(1, 2, 4), bit.bxor(5, 1)",
                "-1 2018915346 4 7 4",
            ),
            (
                "bit.lshift(1, 33), bit.rshift(-1, 28), bit.arshift(-256, 4), bit.rol(1, 31), bit.ror(1, 0)",
                "2 15 -16 -2147483648 1",
            ),
        ]);
    }

    #[test]
    fn every_number_converts_to_32_bits() {
        expect(&[
            ("bit.tobit(0/0), bit.tobit(1/0), bit.tobit(-1/0), bit.bnot(0/0)", "0 0 0 -1"),
            ("bit.lshift(1, -2^31), bit.rol(3, 2^31 - 1), bit.arshift(-2^31, 2^53)", "1 -2147483647 -2147483648"),
        ]);
    }

    /// CVE-2024-31449.
    #[test]
    fn the_most_negative_count_of_tohex_is_just_a_large_one() {
        expect(&[
            (
                "bit.tohex(0, -2147483648), bit.tohex(-1, -2147483648), bit.tohex(255, 2147483647)",
                "00000000 FFFFFFFF 000000ff",
            ),
            (
                "bit.tohex(0xabc), bit.tohex(0xabc, 2), bit.tohex(0xabc, -2), '<' .. bit.tohex(1, 0) .. '>'",
                "00000abc bc BC <>",
            ),
        ]);
    }

    #[test]
    fn the_functions_accept_any_number_of_arguments() {
        expect(&[
            ("(function() return bit.tobit(1, 2, 3, 4, unpack({}, 1, 7990)) end)()", "1"),
            (
                "fails(function() bit.bor(1, 2, 3, 4, unpack({}, 1, 7990)) end)",
                "user_script:1: bad argument #7994 to 'bor' (number expected, got nil)",
            ),
        ]);
    }

    #[test]
    fn arguments_that_are_not_numbers_are_refused() {
        expect(&[
            (
                "fails(function() bit.tobit() end)",
                "user_script:1: bad argument #1 to 'tobit' (number expected, got no value)",
            ),
            (
                "fails(function() bit.band(1, {}, 'x') end)",
                "user_script:1: bad argument #3 to 'band' (number expected, got string)",
            ),
        ]);
    }
}
