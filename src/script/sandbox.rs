//! The sandbox of scripts: Lua's libraries and Redis's, none of which a script can change.
//!
//! Lua 5.1 has no read-only tables. So a script gets an empty proxy in place of a shared table: by its metatable,
//! reads go to the target table, and an assignment, which never finds its key in the proxy, is refused.
//!
//! ```text
//!   script -> proxy {} -> metatable { __index = target, __newindex = refuse } -> target { find = ..., ... }
//! ```
//!
//! Functions of Lua that bypass metatables are guarded: those that only read get the target table, those that would
//! change it are refused. The table of globals has a proxy too, and a missing name is an error. A script that never
//! assigns a global gets the real table as its environment: it can read it by names, and has no means to get a
//! reference to it.
//!
//! Invariant: no script can reach a target table, or change a proxy; so scripts share nothing that changes.

use super::arguments::{Open, lower_half, to_i64};
use super::{ScriptBackend, api, bit, cjson, cmsgpack, code, patterns, structure};
use crate::lua::{Function, GlobalUse, Kind, Raise, Reference, Stack};
use crate::value::number::parse_short_decimal;

/// The error of a script that tries to change a shared table.
pub(super) const READ_ONLY: &str = "Attempt to modify a readonly table";
/// The field of a proxy's metatable that marks it as a proxy.
const MARK: &str = "__front";

/// Global names of Lua that scripts do not get: they reach files, other scripts' data, or the machine.
const WITHHELD: &[&str] = &["dofile", "loadfile", "print", "require", "module", "newproxy", "setfenv", "getfenv"];

/// The only function of `os`.
const OF_OS: &str = "clock";

/// Functions of Lua that read past metatables without changing anything.
const LOOKING: &[(&str, &[&str])] =
    &[("", &["next", "rawget"]), ("table", &["foreach", "foreachi", "concat", "maxn", "getn"])];
/// Functions of Lua that change a table past its metatable.
const CHANGING: &[(&str, &[&str])] = &[("", &["rawset", "setmetatable"])];
/// Functions of Lua that go through a text byte by byte.
const REWRITING: &[(&str, &[&str])] = &[("string", &["format", "lower", "reverse", "upper"])];
/// The work of rewriting a byte, in allocated bytes.
const REWRITING_WORK: usize = 8;
/// The lowest position at which `table.insert` may insert; it moves all elements from there on, in C and without a
/// way to stop it.
const LOWEST_POSITION: i32 = -1_000_000;

/// The kind of code for which a sandbox is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptKind {
    /// Scripts, each of which finds `KEYS` and `ARGV`.
    Scripts,
    /// Functions. While their library is loaded, it has only a small `redis`.
    Functions,
}

/// The globals of scripts.
#[derive(Debug)]
pub(super) struct Globals {
    /// The table that a script sees as the table of globals.
    proxy: Reference,
    /// The table that it really reads.
    target: Reference,
    /// The metatable of the proxy, and the table that a library reads through it while it is loaded.
    load_env: Option<(Reference, Reference)>,
    /// The error handler of scripts.
    pub(super) explain: Reference,
    /// The settings of `cjson`, the one thing that scripts can change.
    json_settings: Reference,
}

/// The stack indices of values during the building.
struct StackSlots {
    /// The table from each proxy to its target table.
    target_of: i32,
    globals: i32,
}

/// Builds the sandbox.
pub(super) fn build<S: ScriptBackend>(stack: &mut Stack<'_>, kind: ScriptKind) -> Result<Globals, Raise> {
    stack.open_standard();
    stack.push_table(0, 32)?;
    let target_of = stack.absolute(-1);
    stack.push_globals();
    let slots = StackSlots { target_of, globals: stack.absolute(-1) };
    for name in WITHHELD {
        stack.push_nil();
        stack.set_field(slots.globals, name)?;
    }
    narrow_os::<S>(stack, &slots)?;
    code::replace::<S>(stack, slots.globals)?;
    add_libraries::<S>(stack, &slots, kind)?;
    let json_settings = cjson::open_with_settings(stack)?;
    stack.set_field(slots.globals, "cjson")?;
    guard_all(stack, &slots, LOOKING, pass_target)?;
    guard_all(stack, &slots, CHANGING, refuse_shared)?;
    guard_all(stack, &slots, &[("table", &["insert"])], insert_nearby)?;
    guard_all(stack, &slots, &[("", &["unpack"])], unpack_some)?;
    guard_all(stack, &slots, &[("", &["tonumber"])], read_short_decimal)?;
    guard_all(stack, &slots, REWRITING, count_text)?;
    replace_with_proxies(stack, &slots)?;
    proxy_globals::<S>(stack, &slots, kind, json_settings)
}

fn narrow_os<S: ScriptBackend>(stack: &mut Stack<'_>, slots: &StackSlots) -> Result<(), Raise> {
    stack.push_table(0, 1)?;
    stack.push_function(code::clock::<S>);
    stack.set_field(-2, OF_OS)?;
    stack.set_field(slots.globals, "os")
}

fn add_libraries<S: ScriptBackend>(stack: &mut Stack<'_>, slots: &StackSlots, kind: ScriptKind) -> Result<(), Raise> {
    let libraries: [(&str, Open); 4] = [
        ("redis", if kind == ScriptKind::Scripts { api::open::<S> } else { api::open_for_functions::<S> }),
        ("bit", bit::open),
        ("struct", structure::open),
        ("cmsgpack", cmsgpack::open),
    ];
    for (name, open) in libraries {
        open(stack)?;
        stack.set_field(slots.globals, name)?;
    }
    stack.get_field(slots.globals, "string");
    patterns::replace(stack, -1)?;
    stack.pop(1);
    if kind == ScriptKind::Functions {
        return Ok(());
    }
    stack.push_function(api::explain);
    stack.set_field(slots.globals, "__redis__err__handler")
}

/// Puts `guard` before functions of the global table (named "") or of libraries.
fn guard_all(
    stack: &mut Stack<'_>,
    slots: &StackSlots,
    functions: &[(&str, &[&str])],
    guard: Function,
) -> Result<(), Raise> {
    for (library, names) in functions {
        if library.is_empty() {
            stack.push_copy(slots.globals);
        } else {
            stack.get_field(slots.globals, library);
        }
        for name in *names {
            stack.push_copy(slots.target_of);
            stack.get_field(-2, name);
            stack.guard(guard);
            stack.set_field(-2, name)?;
        }
        stack.pop(1);
    }
    Ok(())
}

/// Passes the target table of a proxy to a function that only reads.
fn pass_target(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if push_target(stack) {
        stack.replace(1);
    }
    Ok(0)
}

/// Refuses a function that changes its argument, if that is shared.
fn refuse_shared(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if push_target(stack) { Err(Raise::text(READ_ONLY)) } else { Ok(0) }
}

/// Refuses an insertion at a very low position, for which all elements from there on would be moved.
fn insert_nearby(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    refuse_shared(stack)?;
    if stack.kind(1) == Kind::Table && stack.top() == 3 && int_of(stack, 2) < LOWEST_POSITION {
        return Err(Raise::argument(2, "position out of bounds"));
    }
    Ok(0)
}

/// Counts the bytes of the texts that the function goes through.
fn count_text(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let bytes = |number: usize| stack.bytes(number as i32).map_or(0, <[u8]>::len);
    let work = (1..=stack.top()).map(bytes).sum::<usize>();
    stack.work(work.saturating_mul(REWRITING_WORK))?;
    Ok(0)
}

/// Refuses a range whose length is more than an `int` of C holds, which Lua would read as a small one (CVE-2025-46817).
/// Other arguments than it takes are left to it: it has the errors for them.
fn unpack_some(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let is_number = |at| stack.lacks(at as usize) || stack.number(at).is_some();
    if stack.kind(1) != Kind::Table || !is_number(2) || !is_number(3) {
        return Ok(0);
    }
    let end = if stack.lacks(3) { stack.length(1) as i64 } else { int_of(stack, 3).into() };
    let is_whole = end - i64::from(int_of(stack, 2)) < i64::from(i32::MAX);
    if is_whole { Ok(0) } else { Err(Raise::here("too many results to unpack")) }
}

/// `tonumber` for decimal numbers of few digits, as most are that scripts get: C reads them digit by digit, and Lua
/// lets it do so twice.
fn read_short_decimal(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.argument(1).unwrap_or_default();
    stack.work(text.len())?;
    let Some(number) = parse_short_decimal(text).filter(|_| stack.top() == 1) else { return Ok(0) };
    stack.push_number(number);
    Ok(1)
}

/// The `int` of C that Lua makes of a number; 0 for other values.
fn int_of(stack: &Stack<'_>, at: i32) -> i32 {
    stack.number(at).map_or(0, |number| lower_half(to_i64(number)))
}

/// Whether the value at `at` is a proxy, judged by its metatable. A script can only make its own tables look so.
pub(super) fn is_proxy(stack: &mut Stack<'_>, at: i32) -> bool {
    if stack.kind(at) != Kind::Table || !stack.get_metatable(at) {
        return false;
    }
    stack.get_field(-1, MARK);
    let is_marked = stack.truth(-1);
    stack.pop(2);
    is_marked
}

/// Pushes the target table of the first argument, if that is a proxy. The table of targets is an upvalue of the
/// function.
fn push_target(stack: &mut Stack<'_>) -> bool {
    if stack.kind(1) != Kind::Table {
        return false;
    }
    stack.push_copy(1);
    stack.get(Stack::upvalue(1));
    let is_proxy = stack.kind(-1) == Kind::Table;
    if !is_proxy {
        stack.pop(1);
    }
    is_proxy
}

/// Replaces each table among the globals by a proxy, except the globals themselves.
fn replace_with_proxies(stack: &mut Stack<'_>, slots: &StackSlots) -> Result<(), Raise> {
    let mut names = Vec::new();
    stack.each(slots.globals, |stack| {
        if stack.kind(-1) == Kind::Table && stack.bytes(-2) != Some(b"_G") {
            names.push(String::from_utf8_lossy(stack.bytes(-2).unwrap_or_default()).into_owned());
        }
        Ok(())
    })?;
    for name in names {
        stack.get_field(slots.globals, &name);
        push_proxy(stack, slots)?;
        stack.set_field(slots.globals, &name)?;
    }
    Ok(())
}

/// Replaces the table on top by a proxy for it.
fn push_proxy(stack: &mut Stack<'_>, slots: &StackSlots) -> Result<(), Raise> {
    let target = stack.absolute(-1);
    stack.push_table(0, 0)?;
    stack.push_table(0, 3)?;
    stack.push_boolean(true);
    stack.set_field(-2, MARK)?;
    stack.push_copy(target);
    stack.set_field(-2, "__index")?;
    stack.push_function(refuse_to_change);
    stack.set_field(-2, "__newindex")?;
    stack.set_metatable(-2);
    stack.push_copy(-1);
    stack.push_copy(target);
    stack.set(slots.target_of)?;
    stack.remove_below();
    Ok(())
}

fn refuse_to_change(_: &mut Stack<'_>) -> Result<usize, Raise> {
    Err(Raise::here(READ_ONLY))
}

fn no_such_global(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let mut text = b"Script attempted to access nonexistent global variable '".to_vec();
    stack.write_text(2, &mut text);
    text.push(b'\'');
    Err(Raise::Here(text))
}

/// Makes a proxy for the globals, makes reading a missing name an error, and hides strings' metatable.
fn proxy_globals<S: ScriptBackend>(
    stack: &mut Stack<'_>,
    slots: &StackSlots,
    kind: ScriptKind,
    json_settings: Reference,
) -> Result<Globals, Raise> {
    stack.push_copy(slots.globals);
    push_proxy(stack, slots)?;
    let load_env = if kind == ScriptKind::Functions { Some(build_load_env::<S>(stack, slots)?) } else { None };
    stack.push_copy(-1);
    stack.set_field(slots.globals, "_G")?;
    code::set_env_of_compiled(stack, slots.globals)?;
    let proxy = stack.make_ref();
    push_strict(stack)?;
    hide_metatables(stack, slots)?;
    stack.set_metatable(slots.globals);
    stack.push_copy(slots.globals);
    let target = stack.make_ref();
    stack.push_function(api::explain);
    let explain = stack.make_ref();
    Ok(Globals { proxy, target, load_env, explain, json_settings })
}

/// Pushes a metatable for which a missing name is an error.
fn push_strict(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, 1)?;
    stack.push_function(no_such_global);
    stack.set_field(-2, "__index")
}

/// Builds the globals of a library while it is loaded; the proxy of the globals is on top. Returns the proxy's
/// metatable, and the table built.
fn build_load_env<S: ScriptBackend>(
    stack: &mut Stack<'_>,
    slots: &StackSlots,
) -> Result<(Reference, Reference), Raise> {
    assert!(stack.get_metatable(-1), "a proxy has a metatable");
    let switch = stack.make_ref();
    stack.push_table(0, 1)?;
    api::open_for_libraries::<S>(stack)?;
    push_strict(stack)?;
    stack.set_metatable(-2);
    push_proxy(stack, slots)?;
    stack.set_field(-2, "redis")?;
    push_strict(stack)?;
    stack.set_metatable(-2);
    Ok((switch, stack.make_ref()))
}

/// Changes `getmetatable` to show no metatable of a library, a proxy of that of strings, and a proxy of that of the
/// globals, which is on top.
fn hide_metatables(stack: &mut Stack<'_>, slots: &StackSlots) -> Result<(), Raise> {
    let metatable = stack.absolute(-1);
    stack.push_copy(slots.target_of);
    stack.push_table(0, 1)?;
    stack.get_field(slots.globals, "string");
    stack.set_field(-2, "__index")?;
    push_proxy(stack, slots)?;
    stack.push_copy(slots.globals);
    stack.push_copy(metatable);
    push_proxy(stack, slots)?;
    stack.push_closure(getmetatable, 4);
    stack.set_field(slots.globals, "getmetatable")
}

/// `getmetatable`; its upvalues are the table of proxies, the proxy of strings' metatable, the globals, and the proxy
/// of their metatable.
fn getmetatable(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.kind(1) == Kind::String {
        stack.push_copy(Stack::upvalue(2));
        return Ok(1);
    }
    if push_target(stack) {
        if stack.is_same(-1, Stack::upvalue(3)) {
            stack.push_copy(Stack::upvalue(4));
        } else {
            stack.push_nil();
        }
        return Ok(1);
    }
    if stack.kind(1) == Kind::None {
        return Err(Raise::argument(1, "value expected"));
    }
    if !stack.get_metatable(1) {
        stack.push_nil();
        return Ok(1);
    }
    stack.get_field(-1, "__metatable");
    if stack.kind(-1) == Kind::Nil {
        stack.pop(1);
    }
    Ok(1)
}

impl Globals {
    /// Sets the environment of the function on top, which was just compiled, to these globals.
    ///
    /// A script that never assigns a global needs no proxy: it has no means to change the globals, as nothing gives
    /// it its environment as a table. So it reads them from the target table.
    pub(super) fn set_env(&self, stack: &mut Stack<'_>, global_use: Option<&GlobalUse>) {
        let only_reads = self.load_env.is_none() && global_use.is_some_and(|found| !found.assigns);
        stack.push_ref(if only_reads { &self.target } else { &self.proxy });
        stack.set_environment(-2);
    }

    /// Switches all code to the globals of a library that is being loaded, or back to the usual ones.
    ///
    /// # Errors
    /// If memory has run out.
    pub(super) fn use_load_env(&self, stack: &mut Stack<'_>, is_loading: bool) -> Result<(), Raise> {
        let Some((switch, load_env)) = &self.load_env else { return Ok(()) };
        stack.push_ref(switch);
        stack.push_ref(if is_loading { load_env } else { &self.target });
        stack.set_field(-2, "__index")?;
        stack.pop(1);
        Ok(())
    }

    /// Undoes what scripts have changed.
    ///
    /// # Errors
    /// If memory has run out.
    pub(super) fn reset(&self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        cjson::reset(stack, &self.json_settings)
    }

    /// Pushes the target table of the globals.
    pub(super) fn push_target(&self, stack: &mut Stack<'_>) {
        stack.push_ref(&self.target);
    }
}
