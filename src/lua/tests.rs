//! The interpreter by itself: results, errors, suspended and aborted runs.

use super::*;

/// A host that replies to each interrupt check with the next of a list, and then with `Continue`.
#[derive(Default)]
struct Script {
    interrupts: Vec<Interrupt>,
    calls: usize,
}

impl ScriptHost for Script {
    fn check_interrupt(&mut self) -> Interrupt {
        if self.interrupts.is_empty() { Interrupt::Continue } else { self.interrupts.remove(0) }
    }
}

fn keep_error(_: &mut Stack<'_>) -> Result<usize, Raise> {
    Ok(1)
}

fn keep_handler(lua: &mut Lua) -> Reference {
    lua.with(|stack| {
        stack.push_function(keep_error);
        stack.make_ref()
    })
}

fn interpreter() -> Lua {
    let mut lua = Lua::new(10 << 20);
    lua.with(|stack| {
        stack.open_standard();
        stack.push_globals();
        for (name, function) in [
            ("count", count as Function),
            ("fail", fail),
            ("panic", panic),
            ("wait", wait),
            ("compile", compile),
            ("text", text),
        ] {
            stack.push_function(function);
            stack.set_field(-2, name).expect("there is memory");
        }
    });
    lua
}

fn count(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let calls = stack.host(|script: &mut Script, _| {
        script.calls += 1;
        script.calls
    });
    stack.push_number(calls.unwrap_or(0) as f64);
    Ok(1)
}

fn fail(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text_argument(1)?;
    Err(Raise::Here(text.into_owned()))
}

fn wait(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    stack.check_interrupt()?;
    Ok(0)
}

fn compile(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let source = stack.text_argument(1)?;
    stack.compile(&source, c"@compiled");
    Ok(1)
}

/// Returns a text of that many bytes.
fn text(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let length = stack.number_argument(1)? as usize;
    let mut bytes = stack.buffer(length)?;
    bytes.resize(length, b'x');
    stack.push_bytes(&bytes)?;
    Ok(1)
}

fn panic(_: &mut Stack<'_>) -> Result<usize, Raise> {
    panic!("on purpose");
}

fn result_text(_: &mut Script, progress: Progress, stack: &mut Stack<'_>) -> (Progress, String) {
    let mut text = Vec::new();
    if progress != Progress::Suspended && !stack.write_text(-1, &mut text) {
        text.extend_from_slice(stack.type_name(-1).as_bytes());
    }
    (progress, String::from_utf8_lossy(&text).into_owned())
}

fn start(lua: &mut Lua, script: &mut Script, source: &str) -> (Progress, String) {
    let push = |stack: &mut Stack<'_>| {
        assert!(stack.compile(source.as_bytes(), c"@test"), "the source is right");
        Ok(0)
    };
    let handler = keep_handler(lua);
    lua.start(script, &handler, push, result_text).expect("there is memory for the arguments")
}

fn result(source: &str) -> String {
    start(&mut interpreter(), &mut Script::default(), source).1
}

#[test]
fn a_run_returns_its_first_result() {
    assert_eq!(result("return 1 + 1, 'more'"), "2");
    assert_eq!(result("return 'a' .. 1e15"), "a1e+15");
    assert_eq!(result(""), "nil");
}

#[test]
fn errors_include_the_line_that_raised_them() {
    assert_eq!(result("\nerror('boom')"), "test:2: boom");
    assert_eq!(result("local function f() fail('of ours') end\nf()"), "test:1: of ours");
    assert_eq!(result("fail({})"), "test:1: bad argument #1 to 'fail' (string expected, got table)");
    assert_eq!(result("return select(2, pcall(fail, 'caught'))"), "caught");
}

#[test]
fn a_rust_function_can_use_the_host_of_its_run() {
    let (mut lua, mut script) = (interpreter(), Script::default());
    assert_eq!(start(&mut lua, &mut script, "count() return count()").1, "2");
    assert_eq!(script.calls, 2);
}

#[test]
fn a_suspended_run_resumes_where_it_was() {
    let (mut lua, mut script) = (interpreter(), Script::default());
    script.interrupts = vec![Interrupt::Continue, Interrupt::Suspend, Interrupt::Suspend];
    let source = "local sum = 0 for i = 1, 100000 do sum = sum + i end return sum";
    assert_eq!(start(&mut lua, &mut script, source).0, Progress::Suspended);
    assert!(lua.is_suspended());
    assert_eq!(lua.resume(&mut script, result_text).0, Progress::Suspended);
    assert_eq!(lua.resume(&mut script, result_text), (Progress::Done, "5000050000".into()));
    assert!(!lua.is_suspended());
}

#[test]
fn a_suspended_run_can_be_dropped() {
    let (mut lua, mut script) = (interpreter(), Script { interrupts: vec![Interrupt::Suspend], calls: 0 });
    assert_eq!(start(&mut lua, &mut script, "while true do end").0, Progress::Suspended);
    drop(lua);
}

#[test]
fn a_rust_function_can_be_suspended_and_aborted() {
    let (mut lua, mut script) = (interpreter(), Script::default());
    script.interrupts = vec![Interrupt::Suspend, Interrupt::Continue, Interrupt::Abort];
    assert_eq!(start(&mut lua, &mut script, "wait() wait() return 1").0, Progress::Suspended);
    let (progress, _) = lua.resume(&mut script, result_text);
    assert!(matches!(progress, Progress::Ended(Some(SourceLine { line: Some(1), .. }))), "{progress:?}");
    script.interrupts = vec![Interrupt::Suspend];
    assert_eq!(start(&mut lua, &mut script, "wait()").0, Progress::Suspended);
    drop(lua);
}

#[test]
fn a_script_that_catches_errors_is_aborted_all_the_same() {
    for source in [
        "while true do pcall(function() while true do end end) end",
        "local function f() pcall(f) f() end while true do pcall(f) end",
        "while true do xpcall(error, function() while true do end end) end",
        "while true do coroutine.wrap(function() while true do end end)() end",
    ] {
        let mut script = Script { interrupts: vec![Interrupt::Abort; 1_000_000], calls: 0 };
        let (progress, text) = start(&mut interpreter(), &mut script, source);
        assert!(matches!(progress, Progress::Ended(Some(_))), "{progress:?} {text}");
    }
}

/// No work that a script does between two instructions goes on for long without an interrupt check.
#[test]
fn work_in_c_counts_as_instructions() {
    // A few elements by which Lua takes a table for one of millions.
    let sparse = (0..23).map(|power| format!("[{}] = 1,", 1 << power)).collect::<String>();
    for source in [
        "for n = 1, 40 do local t = s .. n end",
        "coroutine.wrap(function() for n = 1, 40 do local t = s .. n end end)()",
        "local step = coroutine.wrap(function() for n = 1, 40 do coroutine.yield(s .. n) end end) for n = 1, 40 do step() end",
        "for n = 1, 20000 do local is_before = s < s end",
        "local t = {} for n = 1, 1000 do t[n] = 1 end for n = 1, 400 do table.concat(t, s:sub(1, 300)) end",
        "local t = {} for n = 1, 20000 do t[n] = n % 7 end table.sort(t)",
        "local t = {} for n = 1, 99 do t[n] = 'x' end for n = 1, 2000 do table.foreach(t, string.find) end",
        "local t = {} for n = 1, 99 do t[n] = 'x' end for n = 1, 2000 do table.foreachi(t, string.find) end",
        "local t = {} for n = 1, 99 do t[n] = n end for n = 1, 2000 do table.maxn(t) end",
        "local t = {SPARSE} table.remove(t, 1)",
        "local t = {SPARSE} table.insert(t, 1, 1)",
        "compile('local x = 1 ' .. ('x = 1 '):rep(3e4))",
    ] {
        let mut script =
            Script { interrupts: [vec![Interrupt::Continue; 9], vec![Interrupt::Abort; 1_000]].concat(), calls: 0 };
        let source = format!("local s = ('x'):rep(5e5) {source} return 'over'").replace("SPARSE", &sparse);
        let (progress, text) = start(&mut interpreter(), &mut script, &source);
        assert!(matches!(progress, Progress::Ended(Some(_))), "{source}: {progress:?} {text}");
    }
}

/// Seven levels of thirty tables, each of which is a key of all those above: 30^7 calls, and no instruction.
#[test]
fn a_library_function_that_is_its_own_callback_is_aborted() {
    let source = "local level = {} for n = 1, 30 do level[n] = {} end
        for depth = 1, 6 do
            local above = {}
            for n = 1, 30 do local t = {} for _, key in ipairs(level) do t[key] = table.foreach end above[n] = t end
            level = above
        end
        table.foreach(level[1], table.foreach)";
    let mut script =
        Script { interrupts: [vec![Interrupt::Continue; 99], vec![Interrupt::Abort; 1_000]].concat(), calls: 0 };
    let (progress, text) = start(&mut interpreter(), &mut script, source);
    assert!(matches!(progress, Progress::Ended(Some(_))), "{progress:?} {text}");
}

/// Comparisons that contradict each other show in which order `sort` compares; the expected results are those of Redis.
#[test]
fn elements_are_sorted_as_lua_sorts_them() {
    const SHUFFLED: &str = "local t = {} for n = 1, 40 do t[n] = n * 17 % 41 end ";
    let sorted = |comparison: &str| {
        result(&format!(
            "{SHUFFLED} local ok, error = pcall(table.sort, t, {comparison})
            return ok and table.concat(t, ' ') or error"
        ))
    };
    assert_eq!(sorted("nil"), (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
    assert_eq!(
        sorted("function(a, b) return a > b end"),
        (1..=40).rev().map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
    );
    assert_eq!(sorted("function() return true end"), "invalid order function for sorting");
    assert_eq!(
        sorted("function() return false end"),
        "17 32 8 25 1 15 22 39 5 29 18 11 14 31 35 38 4 21 28 7 12 19 20 37 13 3 10 27 34 36 30 23 26 2 6 9 16 33 40 24"
    );
    assert_eq!(
        sorted("function(a, b) return a < b - 9 end"),
        "1 5 2 4 8 7 15 19 17 11 18 14 9 21 12 3 10 6 13 20 33 28 34 27 31 26 25 30 29 22 16 32 23 24 37 35 40 36 38 39"
    );
    assert_eq!(
        sorted("function(a, b) return a % 10 < b % 4 end"),
        "17 8 25 32 29 5 36 1 28 21 14 38 22 4 18 2 12 40 20 31 30 35 11 10 19 27 3 34 37 13 6 33 7 9 26 16 15 39 23 24"
    );
}

/// A coroutine that does not run has no protected call around it. Where its stack could not grow, the run would fail.
#[test]
fn running_out_of_memory_for_the_arguments_of_a_coroutine_is_an_error_of_the_coroutine() {
    // The main stack has room for the arguments before memory runs out, that of the coroutine has not.
    let source = "local function count(...) return select('#', ...) end
        local list
        local function fill()
            pcall(function() while true do list = {list} end end)
        end
        local function resume(is_full, one, ...)
            if is_full then fill() end
            return coroutine.resume(one, ...)
        end
        local function hold(...)
            local one = coroutine.create(count)
            resume(false, coroutine.create(count), ...)
            return select(2, resume(true, one, ...))
        end
        return hold(unpack({}, 1, 2000))";
    let (progress, text) = start(&mut interpreter(), &mut Script::default(), source);
    assert_eq!((progress, text.as_str()), (Progress::Done, OUT_OF_MEMORY));
}

/// The error jumps over the frame that resumed the coroutine; work that is counted afterwards must not interrupt the
/// coroutine.
#[test]
fn a_coroutine_whose_results_do_not_fit_is_not_interrupted_later() {
    let source = "local function results() return unpack({}, 1, 7000) end
        for n = 1, 20 do
            local is_right, error = xpcall(function()
                local one = coroutine.create(results)
                return select('#', unpack({}, 1, 3000), (function(...) return coroutine.resume(one) end)(unpack({}, 1, 3000)))
            end, function(error) return error end)
            collectgarbage()
            local t = ('x'):rep(3e5) .. n
        end
        return 'over'";
    assert_eq!(result(source), "over");
}

#[test]
fn a_panic_in_a_function_ends_the_run_even_if_the_script_goes_on() {
    let endless = "pcall(panic) while true do end";
    let caught = std::panic::catch_unwind(|| result(endless));
    assert_eq!(caught.expect_err("it panicked").downcast_ref(), Some(&"on purpose"));
}

#[test]
fn a_panic_while_the_host_is_in_use_leaves_the_host_in_place() {
    let mut script = Script { interrupts: vec![Interrupt::Continue; 2], calls: usize::MAX };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        start(&mut interpreter(), &mut script, "pcall(count) for n = 1, 1e5 do count() end")
    }));
    assert!(caught.is_err(), "the count overflows");
}

/// The collector does not see the values that the compiler of Lua 5.1 holds (CVE-2025-49844): it must be stopped. It
/// has so many tables to go through that it comes to its end only while much is allocated.
#[test]
fn the_collector_does_not_run_while_source_is_compiled() {
    let source = "local parts = {}
        for n = 1, 8000 do parts[n] = 'x = \"constant number ' .. n .. '\"' end
        local source = table.concat(parts, '\\n')
        parts = nil
        local live = {}
        for n = 1, 5000 do live[n] = {} end
        collectgarbage('setpause', 100)
        collectgarbage()
        local weak = setmetatable({}, {__mode = 'v'})
        weak[1] = {}
        local bytes = collectgarbage('count')
        compile(source)
        local is_there = weak[1] ~= nil
        return tostring(is_there) .. (collectgarbage('count') > bytes + 300 and ' much' or ' little')";
    assert_eq!(result(source), "true much");
}

/// The signs of a bracket are counted in an `int` of C (CVE-2025-46819), and stored in memory that ends before that.
#[test]
fn the_memory_of_a_long_bracket_is_limited() {
    let bracket = [b"return [".as_slice(), &vec![b'='; 20 << 20], b"["].concat();
    interpreter().with(|stack| {
        assert!(!stack.compile(&bracket, c"@test"));
        assert_eq!(stack.bytes(-1), Some(OUT_OF_MEMORY.as_bytes()));
    });
}

#[test]
fn a_source_compiles_within_the_memory_limit() {
    let source = "return compile(('x = 1 '):rep(5e5))";
    assert_eq!(result(source), "not enough memory");
}

#[test]
fn a_panic_in_a_function_reaches_the_caller_of_the_run_even_if_the_script_catches_errors() {
    let caught = std::panic::catch_unwind(|| result("pcall(panic) return 1"));
    assert_eq!(caught.expect_err("it panicked").downcast_ref(), Some(&"on purpose"));
}

#[test]
fn the_memory_of_a_script_is_limited() {
    let text = result("local s = 'x' while true do s = s .. s end");
    assert_eq!(text, "not enough memory");
}

/// The limit is 10 MiB; Lua's own collector would begin its next round at twice the memory that is in use.
#[test]
fn garbage_does_not_count_towards_the_limit() {
    for source in [
        "for n = 1, 12 do local s = text(15e5) .. n end return 'done'",
        "for n = 1, 12 do local s = ('x'):rep(15e5) .. n end return 'done'",
        "local s = text(2e6) s = nil s = text(5e6) return 'done'",
        "local t = {} for n = 1, 60 do t[n] = ('x'):rep(1e5) .. n end t = nil return #text(4e6) == 4e6 and 'done'",
        "coroutine.wrap(function() for n = 1, 30 do local s = text(15e5) .. n end end)() return 'done'",
    ] {
        assert_eq!(result(source), "done", "{source}");
    }
}

#[test]
fn the_garbage_of_a_run_is_gone_for_the_next_one() {
    let (mut lua, mut script) = (interpreter(), Script::default());
    let before = lua.memory_bytes();
    for source in [
        "local t = {} for n = 1, 88 do t[n] = ('x'):rep(1e5) .. n end return 'done'",
        "local list pcall(function() while true do list = {list} end end) return 'done'",
        "local t = {} for n = 1, 88 do t[n] = text(1e5) .. n end return text(3e6)",
    ] {
        start(&mut lua, &mut script, source);
        assert!(lua.memory_bytes() < before + (200 << 10), "{} bytes after {source}", lua.memory_bytes());
    }
}

#[test]
fn text_that_is_not_source_is_refused() {
    interpreter().with(|stack| {
        for source in [&b"\x1bLuaQ"[..], b"return", b"x =", b"[==", b"\0"] {
            let is_right = stack.compile(source, c"@test");
            assert_eq!(is_right, source == b"return", "{source:?}");
        }
        stack.compile(b"\x1bLuaQ", c"@test");
        assert_eq!(stack.bytes(-1), Some(&b"test:1: unexpected symbol near 'char(27)'"[..]));
    });
}

#[test]
fn a_table_can_be_traversed_and_must_not_change_meanwhile() {
    interpreter().with(|stack| {
        assert!(stack.compile(b"return {1, 2, 3, x = 4}", c"@test"));
        assert!(stack.call(0, Some(1)));
        let mut sum = 0.0;
        stack
            .each(-1, |stack| {
                sum += stack.number(-1).unwrap_or(0.0);
                Ok(())
            })
            .expect("nothing fails");
        assert_eq!(sum, 10.0);
    });
}

#[test]
fn nested_tables_can_be_traversed() {
    interpreter().with(|stack| {
        assert!(stack.compile(b"return {{1, 2}, {3, {4}}}", c"@test"));
        assert!(stack.call(0, Some(1)));
        let (mut sum, mut depth) = (0.0, 1);
        stack.walk(-1).expect("there is room");
        while depth > 0 {
            if !stack.next() {
                depth -= 1;
            } else if stack.kind(-1) == Kind::Table {
                stack.walk(-1).expect("there is room");
                depth += 1;
            } else {
                sum += stack.number(-1).unwrap_or(0.0);
            }
        }
        assert_eq!((sum, stack.top()), (10.0, 1));
    });
}

#[test]
fn a_look_up_calls_the_metatable_or_fails() {
    interpreter().with(|stack| {
        for (source, expected) in [
            ("setmetatable({}, {__index = function(_, key) return key .. '!' end})", (true, "key!")),
            ("setmetatable({}, {__index = function() error('no', 0) end})", (false, "no")),
        ] {
            assert!(stack.compile(format!("return {source}").as_bytes(), c"@test"));
            assert!(stack.call(0, Some(1)));
            stack.push_plain(b"key");
            let answer = stack.look_up(-2);
            assert_eq!((answer, stack.bytes(-1)), (expected.0, Some(expected.1.as_bytes())));
        }
    });
}
