//! The library `cjson`: values as JSON and back, as the one of Redis 8.0 does it (lua-cjson 2.1.0).
//!
//! The dialect of JSON is that library's: `/` is escaped, bytes that are not UTF-8 pass, numbers have 14 digits,
//! `nan` and hexadecimal numbers are read unless a setting forbids it. Settings belong to one table of functions, and
//! last until the scripts are flushed: a script that changes them changes them for the next one, too, as it does in
//! Redis.
//!
//! Neither direction nests native calls, and the output is limited by the interpreter's memory.

mod decode;
mod encode;
mod number;
mod settings;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use number::read as read_number;

use self::settings::{Setting, Values};
use super::arguments::describe;
use crate::lua::{Function, Raise, Reference, Stack};

/// The upvalue of each function that is the table of settings.
const SETTINGS: i32 = 1;

/// The functions, except `new`.
const FUNCTIONS: &[(&str, Function)] = &[
    ("encode", encode::encode),
    ("decode", decode::decode),
    ("encode_sparse_array", encode_sparse_array),
    ("encode_max_depth", |stack| number_setting(stack, Setting::EncodeDepth, 1..=i32::MAX)),
    ("decode_max_depth", |stack| number_setting(stack, Setting::DecodeDepth, 1..=i32::MAX)),
    ("encode_number_precision", |stack| number_setting(stack, Setting::Precision, 1..=14)),
    ("encode_keep_buffer", |stack| word_setting(stack, Setting::KeepBuffer, settings::SWITCH)),
    ("encode_invalid_numbers", |stack| word_setting(stack, Setting::EncodeInvalid, settings::INVALID_NUMBERS)),
    ("decode_invalid_numbers", |stack| word_setting(stack, Setting::DecodeInvalid, settings::SWITCH)),
];

/// Pushes the library.
///
/// # Errors
/// If memory has run out.
pub(crate) fn open(stack: &mut Stack<'_>) -> Result<(), Raise> {
    settings::push_defaults(stack)?;
    push_functions(stack)
}

/// Pushes the library, and returns its settings, for [`reset`].
///
/// # Errors
/// If memory has run out.
pub(crate) fn open_with_settings(stack: &mut Stack<'_>) -> Result<Reference, Raise> {
    settings::push_defaults(stack)?;
    stack.push_copy(-1);
    let settings = stack.make_ref();
    push_functions(stack).map(|()| settings)
}

/// Sets settings back to the initial ones.
///
/// # Errors
/// If memory has run out.
pub(crate) fn reset(stack: &mut Stack<'_>, settings: &Reference) -> Result<(), Raise> {
    stack.push_ref(settings);
    settings::set_defaults(stack)
}

/// Replaces the settings on top by the functions that share them.
fn push_functions(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, FUNCTIONS.len() + 4)?;
    for (name, function) in FUNCTIONS {
        stack.push_copy(-2);
        stack.push_closure(*function, 1);
        stack.set_field(-2, name)?;
    }
    stack.remove_below();
    stack.push_function(|stack| open(stack).map(|()| 1));
    stack.set_field(-2, "new")?;
    stack.push_null();
    stack.set_field(-2, "null")?;
    describe(stack, &[("_NAME", "cjson"), ("_VERSION", "2.1.0")])
}

fn accept_arguments(stack: &Stack<'_>, most: usize) -> Result<(), Raise> {
    let is_accepted = stack.top() <= most;
    if is_accepted { Ok(()) } else { Err(Raise::argument(most + 1, "found too many arguments")) }
}

fn accept_one_argument(stack: &Stack<'_>) -> Result<(), Raise> {
    if stack.top() == 1 { Ok(()) } else { Err(Raise::argument(1, "expected 1 argument")) }
}

fn number_setting(
    stack: &mut Stack<'_>,
    setting: Setting,
    allowed: std::ops::RangeInclusive<i32>,
) -> Result<usize, Raise> {
    accept_arguments(stack, 1)?;
    Values::of(stack).change_number(1, setting, &allowed)?;
    Ok(1)
}

fn word_setting(stack: &mut Stack<'_>, setting: Setting, words: &[&str]) -> Result<usize, Raise> {
    accept_arguments(stack, 1)?;
    Values::of(stack).change_word(1, setting, words)?;
    Ok(1)
}

fn encode_sparse_array(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    accept_arguments(stack, 3)?;
    let mut values = Values::of(stack);
    values.change_word(1, Setting::SparseConvert, settings::SWITCH)?;
    values.change_number(2, Setting::SparseRatio, &(0..=i32::MAX))?;
    values.change_number(3, Setting::SparseSafe, &(0..=i32::MAX))?;
    Ok(3)
}
