//! The script engine: Lua with Redis's API, its libraries and its rules.
//!
//! It knows neither commands nor data. The calls of a script go to a [`ScriptBackend`]; its result is written to a
//! [`Reply`].
//!
//! Invariant: a script leaves no trace for the next one. All tables that scripts share are read-only ([`sandbox`]),
//! and `KEYS` and `ARGV` are created for each run that could change them ([`keys_argv`]). The one exception is
//! Redis's own: the settings of `cjson` stay as a script left them, until the scripts are flushed.
//!
//! Costs: an idle interpreter takes about 60 KiB, and is created for the first script. A script is compiled once and
//! kept as a function; running it costs a switch to a stack of its own, a string for each key and argument, and its
//! own work.

mod api;
mod arguments;
mod bit;
mod cjson;
mod cmsgpack;
mod code;
mod interrupt_check;
mod keys_argv;
mod library;
mod patterns;
mod random;
mod reply;
mod sandbox;
mod shebang;
mod structure;
#[cfg(test)]
mod testing;
mod values;

use std::ffi::CStr;

use sha1::{Digest, Sha1};

use crate::lua::{Lua, OUT_OF_MEMORY, Progress, Raise, Reference, ScriptHost, SourceLine, Stack};
use crate::resp::{Protocol, Reply, Request};
use crate::value::hexadecimal;
use keys_argv::{KeysArgv, TableUse};
use sandbox::ScriptKind;

pub use api::Words;
pub(crate) use cjson::read_number;
pub use library::{Function, LibraryError, RegisteredFunctions, read_title};
pub use random::Drand48;
pub use reply::{ConvertedReply, ReturnedErrors};
pub use shebang::{Header, ShebangError};

/// The server's side of scripts: the calls that they can make.
pub trait ScriptBackend: ScriptHost {
    /// Runs a command and writes its reply for [`crate::resp::Values`].
    ///
    /// # Errors
    /// The reason why the command was not run: the line that a client would read.
    fn run_command(&mut self, request: Request<'_>, out: &mut Vec<u8>) -> Result<(), String>;
    /// Whether the client that runs the script may run a command (`redis.acl_check_cmd`); `None` if there is no such
    /// command.
    fn may_run(&mut self, request: Request<'_>) -> Option<bool>;
    /// Writes a line to the log, at a level from 0 (debug) to 3 (warning).
    fn log(&mut self, level: u8, line: &[u8]);
    /// The protocol in which scripts read the replies of commands.
    fn protocol(&self) -> Protocol;
    /// Sets the protocol in which scripts read the replies of commands (`redis.setresp`).
    fn set_protocol(&mut self, protocol: Protocol);
    /// Sets whether the commands of this run go into the log of changes (`redis.set_repl`).
    fn set_propagates(&mut self, propagates: bool);
    /// The buffers for calls of scripts, kept from one to the next.
    fn words(&mut self) -> &mut Option<Box<Words>>;
    /// The reply of a script that returned a large value, once it is written.
    fn converted_reply(&mut self) -> &mut Option<Box<ConvertedReply>>;
    /// The random number generator of this run.
    fn random(&mut self) -> &mut Drand48;
    /// Processor time of the process in seconds (`os.clock`).
    fn processor_s(&mut self) -> f64;
    /// The functions registered by the library that is being loaded; `None` if none is. While one is,
    /// [`ScriptHost::check_interrupt`] never suspends it.
    fn registered(&mut self) -> Option<&mut RegisteredFunctions>;
}

/// The outcome of a run of a script.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The script has ended, and its reply is written, with these errors in it.
    Done(ReturnedErrors),
    /// The script has failed; nothing is written.
    Failed(Failure),
    /// The script is suspended.
    Suspended,
}

/// An error that ended a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error line, its code first.
    pub message: String,
    /// The position of the error, if it is known.
    pub place: Option<SourceLine>,
    /// Whether the command that failed was counted already.
    pub is_counted: bool,
}

/// A compiled script.
#[derive(Debug)]
pub struct Compiled {
    function: Reference,
    table_use: TableUse,
}

/// The most bytes of scripts and their values together. Redis has no such limit; but a script that fills the memory of
/// a developer's machine does only harm.
const MEMORY_BYTES: usize = 1 << 30;
const _: () = assert!(MEMORY_BYTES < i32::MAX as usize, "Lua counts the signs of a bracket in an int");

/// The size up to which a virtual machine is renewed when its scripts are flushed: some times that of a new one.
const MAX_RENEWED_BYTES: usize = 256 << 10;

/// The error of a script that a user ended.
const ENDED: &str = "Script killed by user with SCRIPT KILL...";
/// The name of scripts in error messages.
const SCRIPT_NAME: &CStr = c"@user_script";
/// The name of libraries in error messages.
const LIBRARY_NAME: &CStr = c"@user_function";
/// The error of a library that takes too long to load.
const TOO_SLOW: &str = "FUNCTION LOAD timeout";

/// An interpreter that is ready for scripts, or for functions.
#[derive(Debug)]
pub struct LuaVm {
    lua: Lua,
    globals: sandbox::Globals,
    keys_argv: KeysArgv,
    names: reply::FieldNames,
    /// Whether the suspended run writes the result of a script.
    is_converting: bool,
}

/// The ending of a run.
enum Ending {
    Over(Outcome),
    /// The script has returned a value too large to be written at once.
    Returned(Reference),
}

impl LuaVm {
    /// A virtual machine for scripts that run on an `S`.
    ///
    /// # Panics
    /// If memory for the libraries is missing.
    pub fn new<S: ScriptBackend>() -> LuaVm {
        LuaVm::with::<S>(ScriptKind::Scripts)
    }

    /// A virtual machine for functions that run on an `S`.
    ///
    /// # Panics
    /// If memory for the libraries is missing.
    pub fn for_functions<S: ScriptBackend>() -> LuaVm {
        LuaVm::with::<S>(ScriptKind::Functions)
    }

    fn with<S: ScriptBackend>(kind: ScriptKind) -> LuaVm {
        let mut lua = Lua::new(MEMORY_BYTES);
        let built = lua.with(|stack| sandbox::build::<S>(stack, kind));
        let keys_argv = lua.with(KeysArgv::new).expect("there is memory for two tables");
        let names = lua.with(reply::FieldNames::new);
        let globals = built.expect("there is memory for the libraries");
        LuaVm { lua, globals, keys_argv, names, is_converting: false }
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// The error message of the compiler.
    pub fn compile(&mut self, source: &[u8]) -> Result<Compiled, String> {
        self.compile_as(source, SCRIPT_NAME)
    }

    fn compile_as(&mut self, source: &[u8], name: &CStr) -> Result<Compiled, String> {
        self.lua.with(|stack| {
            if !stack.compile(source, name) {
                let mut text = Vec::new();
                stack.write_text(-1, &mut text);
                return Err(latin(&text));
            }
            let global_use = stack.global_use();
            self.globals.set_env(stack, global_use.as_ref());
            Ok(Compiled { function: stack.make_ref(), table_use: TableUse::of(global_use.as_ref()) })
        })
    }

    /// Runs the source of a library, so that it registers its functions with the server.
    ///
    /// # Errors
    /// The fault of the library.
    pub fn load<S: ScriptBackend>(&mut self, server: &mut S, source: &[u8]) -> Result<(), LibraryError> {
        let compiled = self.compile_as(source, LIBRARY_NAME).map_err(LibraryError::DoesNotCompile)?;
        let globals = &self.globals;
        let shown = self.lua.with(|stack| globals.use_load_env(stack, true));
        let result = shown.map_err(|_| LibraryError::Failed(OUT_OF_MEMORY.to_owned())).and_then(|()| {
            let push = |stack: &mut Stack<'_>| {
                stack.push_ref(&compiled.function);
                Ok(0)
            };
            let loaded = self.lua.start(server, &self.globals.explain, push, |_, progress, stack| match progress {
                Progress::Done => Ok(()),
                Progress::Failed => Err(LibraryError::Failed(Failure::from_top(stack).message)),
                Progress::Ended(_) | Progress::Suspended => Err(LibraryError::Failed(format!("ERR {TOO_SLOW}"))),
            });
            loaded.unwrap_or_else(|raised| Err(LibraryError::Failed(Failure::of(raised).message)))
        });
        self.forget(compiled);
        let globals = &self.globals;
        // Memory may have run out, but the name exists already.
        let hidden = self.lua.with(|stack| globals.use_load_env(stack, false));
        result.and(hidden.map_err(|_| LibraryError::Failed(OUT_OF_MEMORY.to_owned())))
    }

    /// Forgets a script.
    pub fn forget(&mut self, script: Compiled) {
        self.lua.with(|stack| stack.release(script.function));
    }

    /// Runs a script until it ends or is suspended; [`LuaVm::resume`] then continues it.
    pub fn run<S: ScriptBackend>(
        &mut self,
        server: &mut S,
        script: &Compiled,
        keys: Request<'_>,
        arguments: Request<'_>,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        let (globals, keys_argv, names) = (&self.globals, &mut self.keys_argv, &self.names);
        let push = |stack: &mut Stack<'_>| {
            let top = stack.top();
            keys_argv.set(stack, globals, script.table_use, keys, arguments)?;
            stack.truncate(top);
            stack.push_ref(&script.function);
            Ok(0)
        };
        let ending = self.lua.start(server, &globals.explain, push, |server, progress, stack| {
            conclude(server, names, progress, stack, reply)
        });
        self.convert(server, ending, reply)
    }

    /// Writes the result of a script that has ended, in a run of its own if that takes long. An error is one for which
    /// the script has not begun.
    fn convert<S: ScriptBackend>(
        &mut self,
        server: &mut S,
        ending: Result<Ending, Raise>,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        let value = match ending {
            Ok(Ending::Over(outcome)) => return outcome,
            Ok(Ending::Returned(value)) => value,
            Err(raised) => return Outcome::Failed(Failure::of(raised)),
        };
        let (protocols, most_of_string) = ([reply.protocol(), server.protocol()], reply.most_of_string());
        let push = |stack: &mut Stack<'_>| {
            stack.push_function(reply::convert_slowly::<S>);
            stack.push_ref(&value);
            stack.release(value);
            protocols.into_iter().for_each(|protocol| stack.push_boolean(protocol == Protocol::Resp3));
            match most_of_string {
                Some(most) => stack.push_number(most.get().into()),
                None => stack.push_nil(),
            }
            Ok(1 + protocols.len() + 1)
        };
        let outcome = self.lua.start(server, &self.globals.explain, push, |server, progress, stack| {
            conclude_conversion(server, progress, stack, reply)
        });
        let outcome = outcome.unwrap_or_else(|raised| Outcome::Failed(Failure::of(raised)));
        self.is_converting = outcome == Outcome::Suspended;
        outcome
    }

    /// Calls a function until it ends or is suspended; [`LuaVm::resume`] then continues it.
    pub fn call<S: ScriptBackend>(
        &mut self,
        server: &mut S,
        function: &Function,
        keys: Request<'_>,
        arguments: Request<'_>,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        let push = |stack: &mut Stack<'_>| {
            let Some(callback) = &function.callback else { return Err(Raise::text("Function not found")) };
            stack.push_ref(&callback.function);
            stack.push_list(keys.iter())?;
            stack.push_list(arguments.iter())?;
            Ok(2)
        };
        let names = &self.names;
        let ending = self.lua.start(server, &self.globals.explain, push, |server, progress, stack| {
            conclude(server, names, progress, stack, reply)
        });
        self.convert(server, ending, reply)
    }

    /// Continues a suspended script.
    pub fn resume<S: ScriptBackend>(&mut self, server: &mut S, reply: &mut Reply<'_>) -> Outcome {
        if self.is_converting {
            let resume =
                |server: &mut S, progress, stack: &mut Stack<'_>| conclude_conversion(server, progress, stack, reply);
            let outcome = self.lua.resume(server, resume);
            self.is_converting = outcome == Outcome::Suspended;
            return outcome;
        }
        let names = &self.names;
        let ending = self.lua.resume(server, |server, progress, stack| conclude(server, names, progress, stack, reply));
        self.convert(server, Ok(ending), reply)
    }

    /// Makes the virtual machine as good as new, but for its scripts, which the caller then forgets. False if it has
    /// grown so much that it is to be replaced instead.
    pub fn renew(&mut self) -> bool {
        let globals = &self.globals;
        self.memory_bytes() <= MAX_RENEWED_BYTES && self.lua.with(|stack| globals.reset(stack)).is_ok()
    }

    /// The bytes that the virtual machine takes.
    pub fn memory_bytes(&self) -> usize {
        self.lua.memory_bytes()
    }
}

fn conclude<S: ScriptBackend>(
    server: &S,
    names: &reply::FieldNames,
    progress: Progress,
    stack: &mut Stack<'_>,
    reply: &mut Reply<'_>,
) -> Ending {
    if progress != Progress::Done {
        return Ending::Over(failed(progress, stack));
    }
    match reply::write(stack, names, reply, server.protocol()) {
        Some(faults) => Ending::Over(Outcome::Done(faults)),
        None => Ending::Returned(stack.make_ref()),
    }
}

/// Concludes a run that wrote the result of a script.
fn conclude_conversion<S: ScriptBackend>(
    server: &mut S,
    progress: Progress,
    stack: &mut Stack<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    match server.converted_reply().take() {
        Some(answer) if progress == Progress::Done => {
            reply.whole(&answer.bytes);
            Outcome::Done(answer.faults)
        }
        _ => failed(progress, stack),
    }
}

/// The outcome of a run that failed, was ended, or is suspended.
fn failed(progress: Progress, stack: &mut Stack<'_>) -> Outcome {
    match progress {
        Progress::Suspended => Outcome::Suspended,
        Progress::Ended(place) => {
            Outcome::Failed(Failure { message: format!("ERR {ENDED}"), place, is_counted: false })
        }
        Progress::Done | Progress::Failed => Outcome::Failed(Failure::from_top(stack)),
    }
}

impl Failure {
    fn of(raised: Raise) -> Failure {
        let text = match raised {
            Raise::Here(text) | Raise::Text(text) | Raise::Argument(_, text) => latin(&text),
            Raise::Top => String::new(),
        };
        Failure { message: format!("ERR {text}"), place: None, is_counted: false }
    }

    /// The error on top of the stack, as [`api::explain`] left it.
    fn from_top(stack: &mut Stack<'_>) -> Failure {
        let mut failure = Failure { message: String::new(), place: None, is_counted: false };
        if stack.kind(-1) != crate::lua::Kind::Table {
            let mut text = Vec::new();
            stack.write_text(-1, &mut text);
            failure.message = format!("ERR {}", latin(&text));
            return failure;
        }
        failure.message = text_field(stack, "err").map_or("ERR unknown error".into(), |text| latin(up_to_nul(&text)));
        if let (Some(source), Some(line)) = (text_field(stack, "source"), text_field(stack, "line")) {
            let line = latin(&line).parse().ok();
            failure.place = Some(SourceLine { source: latin(&source), line });
        }
        failure.is_counted = reply::is_counted(stack);
        failure
    }
}

/// A field of the table on top that is text or a number.
fn text_field(stack: &mut Stack<'_>, name: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    stack.get_field(-1, name);
    let is_text = stack.write_text(-1, &mut text);
    stack.pop(1);
    is_text.then_some(text)
}

/// Bytes as characters, one for one, as [`Reply::error`] expects them.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The part of a text that C sees.
fn up_to_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

/// A text without trailing line ends.
fn without_line_ends(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    &text[..end]
}

/// The SHA-1 of bytes, in hexadecimal digits: the name of a script.
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    let mut hex = [0; 40];
    hexadecimal::write(&Sha1::digest(bytes), &mut hex);
    hex
}
