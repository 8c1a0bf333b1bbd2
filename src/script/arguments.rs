//! Integer arguments of library functions, and helpers to build libraries.
//!
//! Lua 5.1 has no whole numbers: C converts its doubles to integers. A number out of range, which C leaves undefined,
//! becomes the smallest integer, as on the processors of today's servers.

use crate::lua::{Function, Raise, Stack};

/// A function that pushes the table of a library.
pub(crate) type Open = fn(&mut Stack<'_>) -> Result<(), Raise>;

/// Converts a double to an integer of 64 bits.
pub(crate) fn to_i64(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Converts a double to an integer of 32 bits.
pub(crate) fn to_i32(number: f64) -> i32 {
    if number > -2_147_483_649.0 && number < 2_147_483_648.0 { number as i32 } else { i32::MIN }
}

/// A required number argument, as an integer.
///
/// # Errors
/// If it is something else.
pub(crate) fn integer(stack: &Stack<'_>, number: usize) -> Result<i64, Raise> {
    stack.number_argument(number).map(to_i64)
}

/// An optional number argument, as an integer.
///
/// # Errors
/// If it is something else than a number.
pub(crate) fn integer_or(stack: &Stack<'_>, number: usize, default: i64) -> Result<i64, Raise> {
    if stack.lacks(number) { Ok(default) } else { integer(stack, number) }
}

/// The lower half of an integer, which C keeps.
pub(crate) fn lower_half(number: i64) -> i32 {
    number as i32
}

/// Adds functions to the table on top.
///
/// # Errors
/// If memory has run out.
pub(crate) fn register(stack: &mut Stack<'_>, functions: &[(&str, Function)]) -> Result<(), Raise> {
    for (name, function) in functions {
        stack.push_function(*function);
        stack.set_field(-2, name)?;
    }
    Ok(())
}

/// Adds texts to the table on top.
///
/// # Errors
/// If memory has run out.
pub(crate) fn describe(stack: &mut Stack<'_>, texts: &[(&str, &str)]) -> Result<(), Raise> {
    for (name, text) in texts {
        stack.push_plain(text.as_bytes());
        stack.set_field(-2, name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_become_the_smallest_integer() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert_eq!((to_i64(number), to_i32(number)), (i64::MIN, i32::MIN));
        }
        assert_eq!((to_i64(-1.9), to_i32(-1.9)), (-1, -1));
        assert_eq!((to_i64(2f64.powi(63)), to_i32(2f64.powi(31))), (i64::MIN, i32::MIN));
        assert_eq!((to_i64(2f64.powi(62)), to_i32(2_147_483_647.5)), (1 << 62, i32::MAX));
        assert_eq!(lower_half(i64::MIN), 0);
    }
}
