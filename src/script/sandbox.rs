//! The world that scripts see: Lua's libraries and Redis's, none of which a script can change.
//!
//! Lua 5.1 has no read-only tables. So what a script holds of a shared table is an empty one in front of it: reads fall
//! through to the target table, by its metatable, and an assignment always finds no such key and is refused.
//!
//! ```text
//!   script -> proxy {} -> metatable { __index = target, __newindex = refuse } -> target { find = ..., ... }
//! ```
//!
//! Functions of Lua that look past metatables are guarded: those that only look are given the target table, those that
//! would change it are refused. Global names go the same way, one step further: what is not there is an error. A script
//! whose code never assigns a global name is spared the way: it has the target table for its environment, which it can
//! read by names and has no means to take in hand.
//!
//! Invariant: no script can reach a target table, or change a proxy; so scripts share nothing that changes.

use super::arguments::{Open, lower_half, to_i64};
use super::{ScriptBackend, api, bit, cjson, cmsgpack, code, patterns, structure};
use crate::lua::{Function, GlobalUse, Kind, Raise, Reference, Stack};
use crate::value::number::parse_digits;

/// What a script is told that tries to change what all share.
pub(super) const READ_ONLY: &str = "Attempt to modify a readonly table";
/// The field of a proxy's metatable that tells what it is.
const MARK: &str = "__front";

/// Global names of Lua that scripts do not get: they reach files, other threads' worlds, or the machine.
const WITHHELD: &[&str] = &["dofile", "loadfile", "print", "require", "module", "newproxy", "setfenv", "getfenv"];

/// Of `os` there is only this.
const OF_OS: &str = "clock";

/// Functions of Lua that look past metatables without changing anything.
const LOOKING: &[(&str, &[&str])] =
    &[("", &["next", "rawget"]), ("table", &["foreach", "foreachi", "concat", "maxn", "getn"])];
/// Functions of Lua that change a table past its metatable.
const CHANGING: &[(&str, &[&str])] = &[("", &["rawset", "setmetatable"])];
/// Functions of Lua that go through a text byte by byte.
const REWRITING: &[(&str, &[&str])] = &[("string", &["format", "lower", "reverse", "upper"])];
/// To rewrite a byte takes as long as to make so many.
const REWRITING_WORK: usize = 8;
/// Of how many elements below the first `table.insert` may make room, in C and without anybody being able to stop it.
const LOWEST_POSITION: i32 = -1_000_000;

/// Who lives in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptKind {
    /// Scripts, each of which finds `KEYS` and `ARGV`.
    Scripts,
    /// Functions. While their library is loaded, it finds nothing but a small `redis`.
    Functions,
}

/// The globals of scripts.
#[derive(Debug)]
pub(super) struct Globals {
    /// What a script takes for the table of globals.
    proxy: Reference,
    /// What it really reads.
    target: Reference,
    /// The metatable of the proxy, and what a library reads through it while it is loaded.
    load_env: Option<(Reference, Reference)>,
    /// What errors pass through on their way out of a script.
    pub(super) explain: Reference,
}

/// The places of values during the building.
struct StackSlots {
    /// Of each proxy, its target table.
    target_of: i32,
    globals: i32,
}

/// Makes the world of scripts.
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
    guard_all(stack, &slots, LOOKING, pass_target)?;
    guard_all(stack, &slots, CHANGING, refuse_shared)?;
    guard_all(stack, &slots, &[("table", &["insert"])], insert_nearby)?;
    guard_all(stack, &slots, &[("", &["unpack"])], unpack_some)?;
    guard_all(stack, &slots, &[("", &["tonumber"])], read_digits)?;
    guard_all(stack, &slots, REWRITING, count_text)?;
    replace_with_proxies(stack, &slots)?;
    proxy_globals::<S>(stack, &slots, kind)
}

fn narrow_os<S: ScriptBackend>(stack: &mut Stack<'_>, slots: &StackSlots) -> Result<(), Raise> {
    stack.push_table(0, 1)?;
    stack.push_function(code::clock::<S>);
    stack.set_field(-2, OF_OS)?;
    stack.set_field(slots.globals, "os")
}

fn add_libraries<S: ScriptBackend>(stack: &mut Stack<'_>, slots: &StackSlots, kind: ScriptKind) -> Result<(), Raise> {
    let libraries: [(&str, Open); 5] = [
        ("redis", if kind == ScriptKind::Scripts { api::open::<S> } else { api::open_for_functions::<S> }),
        ("bit", bit::open),
        ("struct", structure::open),
        ("cjson", cjson::open),
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

/// Gives a function that only looks the target table of a proxy.
fn pass_target(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if push_target(stack) {
        stack.replace(1);
    }
    Ok(0)
}

/// Refuses a function that changes what it is given, if that is shared.
fn refuse_shared(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if push_target(stack) { Err(Raise::text(READ_ONLY)) } else { Ok(0) }
}

/// Refuses to insert where all elements down to there would be moved.
fn insert_nearby(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    refuse_shared(stack)?;
    if stack.top() == 3 && int_of(stack, 2) < LOWEST_POSITION {
        return Err(Raise::argument(2, "position out of bounds"));
    }
    Ok(0)
}

/// Counts the bytes of texts that are gone through.
fn count_text(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let bytes = |number: usize| stack.bytes(number as i32).map_or(0, <[u8]>::len);
    let work = (1..=stack.top()).map(bytes).sum::<usize>();
    stack.work(work.saturating_mul(REWRITING_WORK))?;
    Ok(0)
}

/// Refuses a range whose length is more than an `int` of C holds, which Lua takes for a small one (CVE-2025-46817).
fn unpack_some(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let end = if stack.lacks(3) { stack.length(1) as i64 } else { int_of(stack, 3).into() };
    let is_whole = end - i64::from(int_of(stack, 2)) < i64::from(i32::MAX);
    if is_whole { Ok(0) } else { Err(Raise::here("too many results to unpack")) }
}

/// Answers for `tonumber` what is written in digits alone, as most numbers are that scripts are given: C reads them
/// digit by digit, and Lua has it do so twice.
fn read_digits(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    stack.work(stack.bytes(1).map_or(0, <[u8]>::len))?;
    let text = if stack.top() == 1 { stack.argument(1).unwrap_or_default() } else { &[] };
    let Some(number) = parse_digits(text) else { return Ok(0) };
    stack.push_number(number);
    Ok(1)
}

/// A number as Lua makes an `int` of C of it; 0 of what is none.
fn int_of(stack: &Stack<'_>, at: i32) -> i32 {
    stack.number(at).map_or(0, |number| lower_half(to_i64(number)))
}

/// Whether the value at `at` is a proxy, as far as its metatable tells. A script can only make its own tables look so.
pub(super) fn is_proxy(stack: &mut Stack<'_>, at: i32) -> bool {
    if stack.kind(at) != Kind::Table || !stack.get_metatable(at) {
        return false;
    }
    stack.get_field(-1, MARK);
    let is_marked = stack.truth(-1);
    stack.pop(2);
    is_marked
}

/// Pushes the target table of the first argument, if that is a proxy. The function keeps the table of them.
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

/// Puts a proxy before each table among the globals, but the globals themselves.
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

/// Puts a proxy before the globals, makes what is missing there an error, and hides strings' metatable.
fn proxy_globals<S: ScriptBackend>(
    stack: &mut Stack<'_>,
    slots: &StackSlots,
    kind: ScriptKind,
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
    Ok(Globals { proxy, target, load_env, explain })
}

/// Pushes a metatable for which a missing name is an error.
fn push_strict(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, 1)?;
    stack.push_function(no_such_global);
    stack.set_field(-2, "__index")
}

/// Makes what a library finds while it is loaded; the proxy of the globals is on top. Answers that one's metatable, and
/// what was made.
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

/// `getmetatable` shows no metatable of a library, a proxy of that of strings, and of that
/// of the globals, which is on top.
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

/// Keeps the table of proxies, the proxy of strings' metatable, the globals, and the proxy of their metatable.
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
    /// Makes the function on top, which was just compiled and does this with global names, see these globals.
    ///
    /// Who never assigns a global name needs no proxy: he has nothing to change the globals by, as nothing gives him
    /// his environment as a table. So he reads them from the target table.
    pub(super) fn set_env(&self, stack: &mut Stack<'_>, global_use: Option<&GlobalUse>) {
        let only_reads = self.load_env.is_none() && global_use.is_some_and(|found| !found.assigns);
        stack.push_ref(if only_reads { &self.target } else { &self.proxy });
        stack.set_environment(-2);
    }

    /// Has all code see what a library finds while it is loaded, or the globals again.
    ///
    /// # Errors
    /// When memory has run out.
    pub(super) fn use_load_env(&self, stack: &mut Stack<'_>, is_loading: bool) -> Result<(), Raise> {
        let Some((switch, load_env)) = &self.load_env else { return Ok(()) };
        stack.push_ref(switch);
        stack.push_ref(if is_loading { load_env } else { &self.target });
        stack.set_field(-2, "__index")?;
        stack.pop(1);
        Ok(())
    }

    /// Pushes the table that holds the globals.
    pub(super) fn push_target(&self, stack: &mut Stack<'_>) {
        stack.push_ref(&self.target);
    }
}
