//! Function libraries: the first line that names one, and `redis.register_function`, by which it registers functions.
//!
//! Source: the behaviour of Redis 8.0, compared for every kind of wrong line and argument.

use std::collections::BTreeSet;

use thiserror::Error;

use super::keys_argv::TableUse;
use super::{Compiled, Header, ScriptBackend, api};
use crate::lua::{Kind, Raise, Stack};
use crate::resp::{Request, split_words};

/// The faults of a library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each is its text")]
pub enum LibraryError {
    #[error("Missing library metadata")]
    NoFirstLine,
    #[error("Invalid library metadata")]
    FirstLine,
    #[error("Invalid metadata value given: {0}")]
    Option(String),
    #[error("Invalid metadata value, name argument was given multiple times")]
    NamedTwice,
    #[error("Library name was not given")]
    Nameless,
    #[error(
        "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    )]
    Name,
    #[error("Engine '{0}' not found")]
    Engine(String),
    #[error("Library '{0}' already exists")]
    Exists(String),
    #[error("Error compiling function: {0}")]
    DoesNotCompile(String),
    #[error("Error registering functions: {0}")]
    Failed(String),
    #[error("No functions registered")]
    Empty,
    #[error("Function {0} already exists")]
    FunctionExists(String),
    #[error("Library {0} already exists")]
    RestoredExists(String),
    #[error("given type is not a function")]
    NotAFunction,
    #[error("Pre-GA function format not supported")]
    EarlyFormat,
    #[error("Failed loading library payload")]
    Damaged,
}

/// A function that a library registers.
#[derive(Debug)]
pub struct Function {
    /// The name by which it is called, in any case.
    pub name: String,
    /// The description of its purpose.
    pub description: Option<Vec<u8>>,
    /// The flags of the function.
    pub header: Header,
    /// The compiled function, if its library is loaded in an interpreter.
    pub(super) callback: Option<Compiled>,
}

/// The functions that a library has registered so far.
#[derive(Debug, Default)]
pub struct RegisteredFunctions {
    functions: Vec<Function>,
    names: BTreeSet<String>,
}

impl RegisteredFunctions {
    fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn push(&mut self, function: Function) {
        self.names.insert(function.name.clone());
        self.functions.push(function);
    }

    /// The functions, in the order of registration.
    pub fn into_functions(self) -> Vec<Function> {
        self.functions
    }
}

impl Function {
    /// The function's data without the compiled function.
    pub fn described(&self) -> Function {
        let (name, description, header) = (self.name.clone(), self.description.clone(), self.header.clone());
        Function { name, description, header, callback: None }
    }

    /// Gives up the compiled function.
    pub fn into_callback(self) -> Option<Compiled> {
        self.callback
    }
}

/// Reads the first line of a library, and returns its name and how many bytes of the source are not Lua.
///
/// # Errors
/// The fault of the line.
pub fn read_title(source: &[u8]) -> Result<(String, usize), LibraryError> {
    if !source.starts_with(b"#!") {
        return Err(LibraryError::NoFirstLine);
    }
    let end = source.iter().position(|byte| matches!(byte, b'\n' | 0)).filter(|&end| source[end] == b'\n');
    let end = end.ok_or(LibraryError::FirstLine)?;
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    split_words(&source[..end], &mut text, &mut spans).map_err(|_| LibraryError::FirstLine)?;
    let words: Vec<&[u8]> = Request::new(&text, &spans).iter().collect();
    let (engine, options) = words.split_first().ok_or(LibraryError::FirstLine)?;
    let mut name = None;
    for option in options {
        match option.split_at_checked(b"name=".len()) {
            Some((label, value)) if label.eq_ignore_ascii_case(b"name=") => {
                if name.replace(value).is_some() {
                    return Err(LibraryError::NamedTwice);
                }
            }
            _ => return Err(LibraryError::Option(super::latin(option))),
        }
    }
    let name = checked_name(name.ok_or(LibraryError::Nameless)?)?;
    let engine = engine.strip_prefix(b"#!").unwrap_or(engine);
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(LibraryError::Engine(super::latin(engine)));
    }
    Ok((name, end))
}

/// Checks the name of a library or function.
fn checked_name(name: &[u8]) -> Result<String, LibraryError> {
    let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if name.is_empty() || !name.iter().all(is_right) {
        return Err(LibraryError::Name);
    }
    Ok(super::latin(name))
}

/// The arguments of a registration, as far as they have been read.
#[derive(Default)]
struct Registration {
    name: Option<Vec<u8>>,
    description: Option<Vec<u8>>,
    header: Header,
    /// The index of the function on the stack.
    callback: Option<i32>,
}

/// `redis.register_function(name, callback)`, or of a table with `function_name`, `callback`, and optionally `flags`
/// and `description`.
pub(super) fn register<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if !stack.host(|server: &mut S, _| server.registered().is_some()).unwrap_or_default() {
        return Err(refuse(stack, "redis.register_function can only be called on FUNCTION LOAD command"));
    }
    let registration = match stack.top() {
        1 => named(stack),
        2 => positional(stack),
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let registration = registration.map_err(|text| refuse(stack, text))?;
    let name =
        checked_name(&registration.name.unwrap_or_default()).map_err(|error| refuse(stack, &error.to_string()))?;
    let is_there = |registered: &mut RegisteredFunctions| registered.contains(&name);
    if stack.host(|server: &mut S, _| server.registered().is_some_and(is_there)) == Some(true) {
        return Err(refuse(stack, "Function already exists in the library"));
    }
    stack.push_copy(registration.callback.unwrap_or_default());
    let callback = Some(Compiled { function: stack.make_ref(), table_use: TableUse::Escapes });
    let function = Function { name, description: registration.description, header: registration.header, callback };
    stack.host(|server: &mut S, _| server.registered().map(|registered| registered.push(function)));
    Ok(0)
}

fn refuse(stack: &mut Stack<'_>, text: &str) -> Raise {
    api::refuse(stack, &format!("ERR {text}"))
}

fn text_at(stack: &mut Stack<'_>, at: i32) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    stack.write_text(at, &mut text).then_some(text)
}

fn positional(stack: &mut Stack<'_>) -> Result<Registration, &'static str> {
    let name = text_at(stack, 1).ok_or("first argument to redis.register_function must be a string")?;
    if stack.kind(2) != Kind::Function {
        return Err("second argument to redis.register_function must be a function");
    }
    Ok(Registration { name: Some(name), callback: Some(2), header: of_function(), ..Registration::default() })
}

/// The flags of a function before any is set: it promises nothing.
fn of_function() -> Header {
    Header { is_there: true, ..Header::default() }
}

fn named(stack: &mut Stack<'_>) -> Result<Registration, &'static str> {
    if stack.kind(1) != Kind::Table {
        return Err("calling redis.register_function with a single argument is only applicable to Lua table \
                    (representing named arguments).");
    }
    let mut registration = Registration { header: of_function(), ..Registration::default() };
    let count = stack.push_entries(1).map_err(|_| crate::lua::OUT_OF_MEMORY)?;
    let entries = stack.absolute(-1);
    for number in 1..=count {
        stack.get_element(entries, number * 2 - 1);
        let key = text_at(stack, -1);
        stack.pop(1);
        let key = key.ok_or("named argument key given to redis.register_function is not a string")?;
        stack.get_element(entries, number * 2);
        if read_entry(stack, &key.to_ascii_lowercase(), &mut registration)? {
            stack.pop(1);
        }
    }
    if registration.name.is_none() {
        return Err("redis.register_function must get a function name argument");
    }
    if registration.callback.is_none() {
        return Err("redis.register_function must get a callback argument");
    }
    Ok(registration)
}

/// Reads the value on top, whose name is `key`; false if it is to stay on the stack.
fn read_entry(stack: &mut Stack<'_>, key: &[u8], registration: &mut Registration) -> Result<bool, &'static str> {
    match key {
        b"function_name" => {
            let name = text_at(stack, -1);
            registration.name =
                Some(name.ok_or("function_name argument given to redis.register_function must be a string")?);
        }
        b"description" => {
            let description = text_at(stack, -1);
            let description =
                description.ok_or("description argument given to redis.register_function must be a string")?;
            registration.description = Some(description);
        }
        b"callback" => {
            if stack.kind(-1) != Kind::Function {
                return Err("callback argument given to redis.register_function must be a function");
            }
            registration.callback = Some(stack.absolute(-1));
            return Ok(false);
        }
        b"flags" => read_flags(stack, &mut registration.header)?,
        _ => return Err("unknown argument given to redis.register_function"),
    }
    Ok(true)
}

/// Reads the list of flags on top, up to its first nil.
fn read_flags(stack: &mut Stack<'_>, header: &mut Header) -> Result<(), &'static str> {
    if stack.kind(-1) != Kind::Table {
        return Err("flags argument to redis.register_function must be a table representing function flags");
    }
    for number in 1.. {
        stack.get_element(-1, number);
        if stack.kind(-1) == Kind::Nil {
            break;
        }
        let flag = text_at(stack, -1);
        stack.pop(1);
        if !flag.is_some_and(|flag| header.set(&flag.to_ascii_lowercase())) {
            return Err("unknown flag given");
        }
    }
    stack.pop(1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shebang_names_the_library_and_the_code_keeps_its_line_numbers() {
        assert_eq!(read_title(b"#!LUA  Name=lib_1 \nx"), Ok(("lib_1".to_owned(), 18)));
    }

    #[test]
    fn the_first_error_of_a_shebang_is_reported() {
        let fault = |source: &[u8]| read_title(source).expect_err("it is wrong").to_string();
        assert_eq!(fault(b"return 1"), "Missing library metadata");
        assert_eq!(fault(b"#!lua name=a"), "Invalid library metadata");
        assert_eq!(fault(b"#!lua name=a\0\n"), "Invalid library metadata");
        assert_eq!(fault(b"#!lua name=\"a\n"), "Invalid library metadata");
        assert_eq!(fault(b"#!\n"), "Library name was not given");
        assert_eq!(fault(b"#!js name=a-b\n"), LibraryError::Name.to_string());
        assert_eq!(fault(b"#!js name=a\n"), "Engine 'js' not found");
        assert_eq!(fault(b"#!lua name=a b\n"), "Invalid metadata value given: b");
        assert_eq!(fault(b"#!lua name=a name=b\n"), LibraryError::NamedTwice.to_string());
    }
}
