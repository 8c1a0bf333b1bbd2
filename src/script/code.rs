//! Replacements for Lua functions that would let a script escape from its sandbox or leave a trace: the compilers,
//! `pcall` as Redis changes it, the collector's switches, `pairs`, random numbers, and the clock.

use std::ffi::CString;

use super::ScriptBackend;
use super::arguments::{integer, lower_half};
use crate::lua::{Function, Kind, Raise, Stack};

/// Replaces Lua's functions.
pub(super) fn replace<S: ScriptBackend>(stack: &mut Stack<'_>, globals: i32) -> Result<(), Raise> {
    let functions: &[(&str, Function)] = &[("pcall", pcall), ("collectgarbage", collectgarbage)];
    for (name, function) in functions {
        stack.push_function(*function);
        stack.set_field(globals, name)?;
    }
    stack.get_field(globals, "math");
    for (name, function) in [("random", random::<S> as Function), ("randomseed", randomseed::<S>)] {
        stack.push_function(function);
        stack.set_field(-2, name)?;
    }
    stack.pop(1);
    Ok(())
}

/// Makes the globals on top the environment of all code that the compilers compile, and gives `pairs` the guarded
/// `next`.
pub(super) fn set_env_of_compiled(stack: &mut Stack<'_>, globals: i32) -> Result<(), Raise> {
    for (name, function) in [("loadstring", loadstring as Function), ("load", load)] {
        stack.push_copy(-1);
        stack.push_closure(function, 1);
        stack.set_field(globals, name)?;
    }
    stack.get_field(globals, "next");
    stack.push_closure(pairs, 1);
    stack.set_field(globals, "pairs")
}

/// A chunk's name for Lua, which ends at a NUL.
fn chunk_name(stack: &Stack<'_>, name: &[u8]) -> Result<CString, Raise> {
    let name = super::up_to_nul(name);
    let mut text = stack.buffer(name.len() + 1)?;
    text.extend_from_slice(name);
    Ok(CString::new(text).unwrap_or_default())
}

fn loadstring(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let source = stack.text_argument(1)?;
    let name = if stack.lacks(2) { source.clone() } else { stack.text_argument(2)? };
    compile(stack, &source, &name)
}

fn load(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let name = if stack.lacks(2) { b"=(load)".into() } else { stack.text_argument(2)? };
    if stack.kind(1) != Kind::Function {
        let got = stack.type_name(1);
        return Err(Raise::argument(1, format!("function expected, got {got}")));
    }
    let mut source = Vec::new();
    loop {
        stack.check_interrupt()?;
        stack.push_copy(1);
        if !stack.call(0, Some(1)) {
            return Ok(refused(stack));
        }
        let before = source.len();
        if stack.kind(-1) != Kind::Nil && !stack.write_text(-1, &mut source) {
            stack.push_plain(b"reader function must return a string");
            return Ok(refused(stack));
        }
        if source.len() == before {
            break;
        }
        stack.check_memory(source.len())?;
        stack.pop(1);
    }
    compile(stack, &source, &name)
}

/// Inserts nil below the error on top: the two results of a compiler that fails.
fn refused(stack: &mut Stack<'_>) -> usize {
    stack.push_nil();
    stack.insert(-2);
    2
}

/// Compiles and pushes the function, or nil and the error.
fn compile(stack: &mut Stack<'_>, source: &[u8], name: &[u8]) -> Result<usize, Raise> {
    let name = chunk_name(stack, name)?;
    if stack.compile(source, &name) {
        stack.push_copy(Stack::upvalue(1));
        stack.set_environment(-2);
        return Ok(1);
    }
    Ok(refused(stack))
}

/// `pcall`, except that of an error that is a table with `err` only that text is returned; any other table is
/// followed by an `err` that is not a text.
fn pcall(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let count = stack.top();
    if count == 0 {
        // Without arguments, Redis's version calls the value that it finds.
        stack.push_boolean(false);
        stack.push_plain(b"attempt to call a boolean value");
        return Ok(2);
    }
    stack.reserve(count + 1)?;
    for number in 1..=count {
        stack.push_copy(number as i32);
    }
    let is_right = stack.call(count - 1, None);
    if !is_right && stack.kind(-1) == Kind::Table {
        stack.get_field(-1, "err");
        if matches!(stack.kind(-1), Kind::String | Kind::Number) {
            stack.remove_below();
        }
    }
    stack.push_boolean(is_right);
    stack.insert(count as i32 + 1);
    Ok(stack.top() - count)
}

/// `collectgarbage`: the collector is not under the control of scripts; its switches reply and do nothing.
fn collectgarbage(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    const DEFAULT_PERCENT: f64 = 200.0;
    let option = if stack.lacks(1) { b"collect".into() } else { stack.text_argument(1)? };
    match &*option {
        b"collect" => {
            stack.work(stack.memory_bytes())?;
            stack.collect();
            stack.push_number(0.0);
        }
        b"count" => {
            let bytes = stack.memory_bytes();
            stack.push_number(bytes as f64 / 1024.0);
        }
        b"step" => stack.push_boolean(true),
        b"stop" | b"restart" => stack.push_number(0.0),
        b"setpause" | b"setstepmul" => stack.push_number(DEFAULT_PERCENT),
        _ => {
            let text = format!("invalid option '{}'", super::latin(&option));
            return Err(Raise::argument(1, text));
        }
    }
    Ok(1)
}

/// `pairs`, with the guarded `next` as its upvalue.
fn pairs(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let table = stack.table_argument(1)?;
    stack.push_copy(Stack::upvalue(1));
    stack.push_copy(table);
    stack.push_nil();
    Ok(3)
}

fn random<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let count = stack.top();
    let part = stack.host(|server: &mut S, _| server.random().next_f64()).unwrap_or_default();
    let number = match count {
        0 => part,
        1 => {
            let last = integer_argument(stack, 1)?;
            if last < 1.0 {
                return Err(Raise::argument(1, "interval is empty"));
            }
            (part * last).floor() + 1.0
        }
        2 => {
            let (first, last) = (integer_argument(stack, 1)?, integer_argument(stack, 2)?);
            if first > last {
                return Err(Raise::argument(2, "interval is empty"));
            }
            (part * (last - first + 1.0)).floor() + first
        }
        _ => return Err(Raise::here("wrong number of arguments")),
    };
    stack.push_number(number);
    Ok(1)
}

/// An argument as C's `int`.
fn integer_argument(stack: &Stack<'_>, number: usize) -> Result<f64, Raise> {
    integer(stack, number).map(|number| f64::from(lower_half(number)))
}

fn randomseed<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let seed = integer_argument(stack, 1)?;
    stack.host(|server: &mut S, _| *server.random() = super::Drand48::of(seed as i64 as u64));
    Ok(0)
}

/// `os.clock`.
pub(super) fn clock<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let seconds = stack.host(|server: &mut S, _| server.processor_s()).unwrap_or_default();
    stack.push_number(seconds);
    Ok(1)
}
