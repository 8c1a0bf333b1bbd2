//! Replies of commands as Lua values.
//!
//! | reply | in RESP2 | in RESP3 |
//! |---|---|---|
//! | integer | number | number |
//! | bulk string | string | string |
//! | simple string | `{ok = text}` | `{ok = text}` |
//! | error | `{err = text}` | `{err = text}` |
//! | null | `false` | `nil` |
//! | array | table | table |
//! | map | table | `{map = {key = value}}` |
//! | set | table | `{set = {member = true}}` |
//! | double, boolean, big number, verbatim text | string or number | `{double = ...}` and so on, booleans as they are |

use crate::lua::{Raise, Stack};
use crate::resp::{Protocol, ReplyValue, Values};

/// Reads one reply and pushes its Lua value.
pub(super) fn push(stack: &mut Stack<'_>, values: &mut Values<'_>, protocol: Protocol) -> Result<(), Raise> {
    stack.reserve(6)?;
    match values.next() {
        Some(ReplyValue::Integer(number)) => stack.push_number(number as f64),
        Some(ReplyValue::Bulk(bytes)) => stack.push_bytes(bytes)?,
        Some(ReplyValue::Simple(text)) => push_pair(stack, "ok", text)?,
        Some(ReplyValue::Error(text)) => push_error(stack, text)?,
        Some(ReplyValue::Null) | None if protocol == Protocol::Resp2 => stack.push_boolean(false),
        Some(ReplyValue::Null) | None => stack.push_nil(),
        Some(ReplyValue::Double(number)) => {
            stack.push_table(0, 1)?;
            stack.push_number(number);
            stack.set_field(-2, "double")?;
        }
        Some(ReplyValue::Boolean(value)) => stack.push_boolean(value),
        Some(ReplyValue::Verbatim(text)) => push_verbatim(stack, text)?,
        Some(ReplyValue::BigNumber(digits)) => push_pair(stack, "big_number", digits)?,
        Some(ReplyValue::Array(length)) => {
            stack.push_table(length, 0)?;
            for number in 1..=length {
                push(stack, values, protocol)?;
                stack.set_element(-2, number)?;
            }
        }
        Some(ReplyValue::Map(pairs)) => push_entries(stack, values, protocol, "map", pairs, true)?,
        Some(ReplyValue::Set(length)) => push_entries(stack, values, protocol, "set", length, false)?,
        Some(ReplyValue::Attribute(pairs)) => {
            for _ in 0..pairs * 2 {
                push(stack, values, protocol)?;
                stack.pop(1);
            }
            push(stack, values, protocol)?;
        }
    }
    Ok(())
}

/// Pushes an error for a script. The command that made it was counted.
pub(super) fn push_error(stack: &mut Stack<'_>, text: &[u8]) -> Result<(), Raise> {
    push_pair(stack, "err", text)?;
    stack.push_boolean(true);
    stack.set_field(-2, "ignore_error_stats_update")
}

/// Pushes a table with one field.
pub(super) fn push_pair(stack: &mut Stack<'_>, name: &str, text: &[u8]) -> Result<(), Raise> {
    stack.push_record(name, text)
}

fn push_verbatim(stack: &mut Stack<'_>, text: &[u8]) -> Result<(), Raise> {
    let (form, text) = text.split_at_checked(4).unwrap_or_default();
    stack.push_table(0, 1)?;
    stack.push_table(0, 2)?;
    stack.push_bytes(text)?;
    stack.set_field(-2, "string")?;
    stack.push_plain(form.strip_suffix(b":").unwrap_or(form));
    stack.set_field(-2, "format")?;
    stack.set_field(-2, "verbatim_string")
}

/// Adds a table to a table: of a map with its values, of a set with `true` for each member.
fn push_entries(
    stack: &mut Stack<'_>,
    values: &mut Values<'_>,
    protocol: Protocol,
    name: &str,
    length: usize,
    has_values: bool,
) -> Result<(), Raise> {
    stack.push_table(0, 1)?;
    stack.push_table(0, length)?;
    for _ in 0..length {
        push(stack, values, protocol)?;
        if has_values {
            push(stack, values, protocol)?;
        } else {
            stack.push_boolean(true);
        }
        stack.set(-3)?;
    }
    stack.set_field(-2, name)
}
