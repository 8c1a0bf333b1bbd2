//! The `redis` table: the functions by which scripts call the server, with Redis's error messages.
//!
//! Source: the behaviour of Redis 8.0, compared for each function with wrong arguments of every kind.

use std::ops::RangeInclusive;

use crate::lua::{Function, Kind, Raise, Scalar, Stack};
use crate::resp::{Protocol, Request, Span, Values};

use super::{ScriptBackend, library, sandbox, values};

/// The constants of the table while a library is loaded.
const LIBRARY_NUMBERS: &[&str] = &["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION_NUM"];
/// The constants of the table.
const NUMBERS: &[(&str, f64)] = &[
    ("LOG_DEBUG", 0.0),
    ("LOG_VERBOSE", 1.0),
    ("LOG_NOTICE", 2.0),
    ("LOG_WARNING", 3.0),
    ("REPL_NONE", 0.0),
    ("REPL_AOF", REPL_AOF as f64),
    ("REPL_SLAVE", 2.0),
    ("REPL_REPLICA", 2.0),
    ("REPL_ALL", 3.0),
    // Major, minor and patch, a byte each.
    ("REDIS_VERSION_NUM", 0x0008_0006 as f64),
];

/// The flag of `redis.set_repl` for the log of changes; the other one is for replicas.
const REPL_AOF: u8 = 1;

/// Pushes the table for scripts.
pub(super) fn open<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<(), Raise> {
    open_for_functions::<S>(stack)?;
    let of_scripts: &[(&str, Function)] =
        &[("replicate_commands", replicate_commands), ("breakpoint", breakpoint), ("debug", debug)];
    set_functions(stack, of_scripts)
}

/// Pushes the table for functions while they are called.
pub(super) fn open_for_functions<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<(), Raise> {
    let functions: &[(&str, Function)] = &[
        ("call", call::<S>),
        ("pcall", pcall::<S>),
        ("log", log::<S>),
        ("setresp", setresp::<S>),
        ("acl_check_cmd", acl_check_cmd::<S>),
        ("error_reply", error_reply),
        ("status_reply", status_reply),
        ("sha1hex", sha1hex),
        ("set_repl", set_repl::<S>),
    ];
    stack.push_table(0, functions.len() + NUMBERS.len() + 1)?;
    set_functions(stack, functions)?;
    set_constants(stack, |_| true)
}

/// Pushes the table for a library while it is loaded.
pub(super) fn open_for_libraries<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, LIBRARY_NUMBERS.len() + 3)?;
    set_functions(stack, &[("register_function", library::register::<S>), ("log", log::<S>)])?;
    set_constants(stack, |name| LIBRARY_NUMBERS.contains(&name))
}

fn set_functions(stack: &mut Stack<'_>, functions: &[(&str, Function)]) -> Result<(), Raise> {
    for (name, function) in functions {
        stack.push_function(*function);
        stack.set_field(-2, name)?;
    }
    Ok(())
}

fn set_constants(stack: &mut Stack<'_>, is_wanted: impl Fn(&str) -> bool) -> Result<(), Raise> {
    for (name, number) in NUMBERS.iter().filter(|(name, _)| is_wanted(name)) {
        stack.push_number(*number);
        stack.set_field(-2, name)?;
    }
    stack.push_plain(b"8.0.6");
    stack.set_field(-2, "REDIS_VERSION")
}

/// Raises the error of a wrong call of Redis's API.
pub(super) fn refuse(stack: &mut Stack<'_>, line: &str) -> Raise {
    push_refusal(stack, line).map_or_else(|raised| raised, |()| Raise::Top)
}

/// Pushes an error that has not been counted: it counts only if the script ends with it.
fn push_refusal(stack: &mut Stack<'_>, line: &str) -> Result<(), Raise> {
    values::push_pair(stack, "err", line.as_bytes())
}

/// Pushes the error for which a command was not run, and which was counted.
fn push_rejection(stack: &mut Stack<'_>, line: &str) -> Result<(), Raise> {
    let bytes: Vec<u8> = line.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect();
    values::push_error(stack, &bytes)
}

fn call<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    match run::<S>(stack)? {
        Reached::Reply => Ok(1),
        Reached::Error => Err(Raise::Top),
    }
}

fn pcall<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    run::<S>(stack).map(|_| 1)
}

/// The result of calling a command.
enum Reached {
    Reply,
    Error,
}

/// The buffers for the words of a command and for its reply: kept from one call to the next.
#[derive(Debug, Default)]
pub struct Words {
    text: Vec<u8>,
    spans: Vec<Span>,
    reply: Vec<u8>,
}

/// The size above which the buffers are not kept after a large call.
const KEPT_BYTES: usize = 64 << 10;

impl Words {
    /// Removes the words and the reply of a call.
    fn clear(&mut self) {
        if self.text.capacity() + self.reply.capacity() > KEPT_BYTES {
            *self = Words::default();
        }
        self.text.clear();
        self.spans.clear();
        self.reply.clear();
    }

    /// Takes all arguments, as far as memory allows.
    fn take(&mut self, stack: &mut Stack<'_>) -> Result<(), &'static str> {
        let count = stack.top();
        if count == 0 {
            return Err("ERR Please specify at least one argument for this redis lib call");
        }
        for number in 1..=count {
            let start = self.text.len();
            let argument = stack.scalar(number as i32);
            let bytes = if let Scalar::Text(text) = argument { text.len() } else { NUMBER_BYTES };
            if bytes > self.text.capacity() - start {
                self.make_room(stack, number..=count).map_err(|_| "ERR not enough memory")?;
            }
            match argument {
                Scalar::Text(text) => self.text.extend_from_slice(text),
                Scalar::Number(number) => write_number(number, &mut self.text),
                Scalar::Other(_) => return Err("ERR Lua redis lib command arguments must be strings or integers"),
            }
            self.spans.push(Span { start, end: self.text.len() });
        }
        Ok(())
    }

    /// Makes room for the arguments with these numbers, of which each may be one large string.
    #[cold]
    fn make_room(&mut self, stack: &Stack<'_>, numbers: RangeInclusive<usize>) -> Result<(), Raise> {
        let bytes: usize = numbers.map(|number| stack.bytes(number as i32).map_or(NUMBER_BYTES, <[u8]>::len)).sum();
        let mut text = stack.buffer(self.text.len() + bytes)?;
        text.extend_from_slice(&self.text);
        self.text = text;
        Ok(())
    }

    fn request(&self) -> Request<'_> {
        Request::new(&self.text, &self.spans)
    }
}

/// Room for the text of any number.
const NUMBER_BYTES: usize = 32;

/// A number as an argument of a command, with as many digits as it needs: up to 17, where Lua itself shows 14.
fn write_number(number: f64, out: &mut Vec<u8>) {
    let whole = number as i64;
    if whole as f64 == number && number.abs() < 1e18 {
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    } else if number.is_nan() {
        out.extend_from_slice(if number.is_sign_negative() { b"-nan" } else { b"nan" });
    } else {
        crate::value::number::write_f64(out, number);
    }
}

/// The work that a command counts as, since it may take long: the interrupt check runs after some dozens of commands.
const CALL_WORK: usize = 8 << 10;

/// Runs a command and pushes its reply, or the error for which it was not run.
fn run<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<Reached, Raise> {
    stack.work(CALL_WORK)?;
    let reached = stack.host(|server: &mut S, stack| {
        let mut words = server.words().take().unwrap_or_default();
        let reached = run_on(server, stack, &mut words);
        words.clear();
        *server.words() = Some(words);
        reached
    });
    reached.unwrap_or_else(|| Err(Raise::text("redis.call/pcall can only be called inside a script invocation")))
}

fn run_on<S: ScriptBackend>(server: &mut S, stack: &mut Stack<'_>, words: &mut Words) -> Result<Reached, Raise> {
    if let Err(line) = words.take(stack) {
        push_refusal(stack, line)?;
        return Ok(Reached::Error);
    }
    let Words { text, spans, reply } = words;
    match server.run_command(Request::new(text, spans), reply) {
        Ok(()) => {
            values::push(stack, &mut Values::new(reply), server.protocol())?;
            Ok(if reply.first() == Some(&b'-') { Reached::Error } else { Reached::Reply })
        }
        Err(line) => {
            push_rejection(stack, &line)?;
            Ok(Reached::Error)
        }
    }
}

fn log<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let count = stack.top();
    if count < 2 {
        return Err(refuse(stack, "ERR redis.log() requires two arguments or more."));
    }
    let Some(level) = stack.number(1) else {
        return Err(refuse(stack, "ERR First argument must be a number (log level)."));
    };
    if !(0.0..4.0).contains(&level) {
        return Err(refuse(stack, "ERR Invalid log level."));
    }
    let room = |number: usize| stack.bytes(number as i32).map_or(NUMBER_BYTES, <[u8]>::len) + 1;
    let bytes = (2..=count).map(room).sum();
    stack.work(bytes)?;
    let mut line = stack.buffer(bytes)?;
    for number in 2..=count {
        let start = line.len();
        if number > 2 {
            line.push(b' ');
        }
        if !stack.write_text(number as i32, &mut line) {
            line.truncate(start);
        }
    }
    stack.host(|server: &mut S, _| server.log(level as u8, &line));
    Ok(0)
}

fn setresp<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.top() != 1 {
        return Err(refuse(stack, "ERR redis.setresp() requires one argument."));
    }
    let protocol = match stack.number(1).map(f64::trunc) {
        Some(2.0) => Protocol::Resp2,
        Some(3.0) => Protocol::Resp3,
        _ => return Err(refuse(stack, "ERR RESP version must be 2 or 3.")),
    };
    stack.host(|server: &mut S, _| server.set_protocol(protocol));
    Ok(0)
}

fn acl_check_cmd<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let mut words = Words::default();
    if let Err(line) = words.take(stack) {
        return Err(refuse(stack, line));
    }
    match stack.host(|server: &mut S, _| server.may_run(words.request())) {
        Some(Some(may)) => {
            stack.push_boolean(may);
            Ok(1)
        }
        _ => Err(refuse(stack, "ERR Invalid command passed to redis.acl_check_cmd()")),
    }
}

fn error_reply(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let Some(text) = only_string(stack) else { return wrong_reply(stack) };
    let text = super::up_to_nul(text);
    let text = super::without_line_ends(text.strip_prefix(b"-").unwrap_or(text));
    if text.contains(&b' ') {
        values::push_pair(stack, "err", text)?;
    } else {
        // An error without a code gets the common one.
        let start = text.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(text.len());
        values::push_pair(stack, "err", &[b"ERR ", &text[start..]].concat())?;
    }
    Ok(1)
}

fn status_reply(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let Some(text) = only_string(stack) else { return wrong_reply(stack) };
    values::push_pair(stack, "ok", text)?;
    Ok(1)
}

fn only_string<'c>(stack: &Stack<'c>) -> Option<&'c [u8]> {
    if stack.top() == 1 { stack.argument(1) } else { None }
}

fn wrong_reply(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    push_refusal(stack, "ERR wrong number or type of arguments")?;
    Ok(1)
}

/// The work of hashing a byte, in allocated bytes.
const HASHING_WORK: usize = 8;

fn sha1hex(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.top() != 1 {
        return Err(refuse(stack, "ERR wrong number of arguments"));
    }
    // A value that is neither a string nor a number counts as empty.
    let text = stack.text_argument(1).unwrap_or_default();
    stack.work(text.len().saturating_mul(HASHING_WORK))?;
    stack.push_plain(&super::sha1_hex(&text));
    Ok(1)
}

fn replicate_commands(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    // Commands are always replicated one by one since Redis 7.
    stack.push_boolean(true);
    Ok(1)
}

fn set_repl<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.top() != 1 {
        return Err(refuse(stack, "ERR redis.set_repl() requires one argument."));
    }
    let flags = stack.number(1).unwrap_or_default();
    if !(0.0..4.0).contains(&flags) {
        let line = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(refuse(stack, line));
    }
    stack.host(|server: &mut S, _| server.set_propagates(flags as u8 & REPL_AOF != 0));
    Ok(0)
}

fn breakpoint(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    // Without a debugger nothing stops.
    stack.push_boolean(false);
    Ok(1)
}

fn debug(_: &mut Stack<'_>) -> Result<usize, Raise> {
    // This function is for the debugger, and there is none.
    Ok(0)
}

/// The error handler of scripts: errors become tables with `err`, and get the position where they were raised.
pub(super) fn explain(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let place = match stack.caller(1) {
        Some(place) if place.line.is_none() => stack.caller(2),
        place => place,
    };
    if sandbox::is_proxy(stack, 1) {
        return explain_read_only(stack);
    }
    if stack.kind(1) == Kind::Table {
        stack.push_copy(1);
    } else {
        let mut text = b"ERR ".to_vec();
        stack.write_tostring(1, &mut text);
        values::push_pair(stack, "err", &text)?;
    }
    if let Some(place) = place {
        set_place(stack, place.source.as_bytes(), place.line.unwrap_or(-1))?;
    }
    Ok(1)
}

fn set_place(stack: &mut Stack<'_>, source: &[u8], line: i64) -> Result<(), Raise> {
    stack.push_plain(source);
    stack.set_field(-2, "source")?;
    stack.push_number(line as f64);
    stack.set_field(-2, "line")
}

/// Raises a shared table as an error. Redis's handler is a script, which fails to store the position in it.
fn explain_read_only(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = format!("ERR err_handler_def:10: {}", sandbox::READ_ONLY);
    values::push_pair(stack, "err", text.as_bytes())?;
    set_place(stack, b"@err_handler_def", 10)?;
    Ok(1)
}
