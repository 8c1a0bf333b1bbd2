//! The interpreter by itself: results, errors, rests and ends.

use super::*;

/// Says at each pulse what comes next, and `GoOn` when nothing is left to say.
#[derive(Default)]
struct Script {
    pulses: Vec<Pulse>,
    calls: usize,
}

impl Host for Script {
    fn pulse(&mut self) -> Pulse {
        if self.pulses.is_empty() { Pulse::GoOn } else { self.pulses.remove(0) }
    }
}

fn keep_error(_: &mut Stack<'_>) -> Result<usize, Raise> {
    Ok(1)
}

fn keep_handler(lua: &mut Lua) -> Reference {
    lua.with(|stack| {
        stack.push_function(keep_error);
        stack.keep()
    })
}

fn machine() -> Lua {
    let mut lua = Lua::new(10 << 20);
    lua.with(|stack| {
        stack.open_standard();
        stack.push_globals();
        for (name, function) in [("count", count as Function), ("fail", fail), ("panic", panic), ("wait", wait)] {
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
    stack.pulse()?;
    Ok(0)
}

fn panic(_: &mut Stack<'_>) -> Result<usize, Raise> {
    panic!("on purpose");
}

fn told(_: &mut Script, progress: Progress, stack: &mut Stack<'_>) -> (Progress, String) {
    let mut text = Vec::new();
    if progress != Progress::Resting && !stack.write_text(-1, &mut text) {
        text.extend_from_slice(stack.type_name(-1).as_bytes());
    }
    (progress, String::from_utf8_lossy(&text).into_owned())
}

fn start(lua: &mut Lua, script: &mut Script, source: &str) -> (Progress, String) {
    let push = |stack: &mut Stack<'_>| {
        assert!(stack.compile(source.as_bytes(), c"@test"), "the source is right");
        0
    };
    let handler = keep_handler(lua);
    lua.start(script, &handler, push, told)
}

fn result(source: &str) -> String {
    start(&mut machine(), &mut Script::default(), source).1
}

#[test]
fn a_run_gives_its_first_result() {
    assert_eq!(result("return 1 + 1, 'more'"), "2");
    assert_eq!(result("return 'a' .. 1e15"), "a1e+15");
    assert_eq!(result(""), "nil");
}

#[test]
fn errors_say_where_they_were_raised() {
    assert_eq!(result("\nerror('boom')"), "test:2: boom");
    assert_eq!(result("local function f() fail('of ours') end\nf()"), "test:1: of ours");
    assert_eq!(result("fail({})"), "test:1: bad argument #1 to 'fail' (string expected, got table)");
    assert_eq!(result("return select(2, pcall(fail, 'caught'))"), "caught");
}

#[test]
fn a_function_reaches_the_host_of_the_run() {
    let (mut lua, mut script) = (machine(), Script::default());
    assert_eq!(start(&mut lua, &mut script, "count() return count()").1, "2");
    assert_eq!(script.calls, 2);
}

#[test]
fn a_run_rests_and_goes_on_where_it_was() {
    let (mut lua, mut script) = (machine(), Script::default());
    script.pulses = vec![Pulse::GoOn, Pulse::Rest, Pulse::Rest];
    let source = "local sum = 0 for i = 1, 100000 do sum = sum + i end return sum";
    assert_eq!(start(&mut lua, &mut script, source).0, Progress::Resting);
    assert!(lua.is_resting());
    assert_eq!(lua.go_on(&mut script, told).0, Progress::Resting);
    assert_eq!(lua.go_on(&mut script, told), (Progress::Done, "5000050000".into()));
    assert!(!lua.is_resting());
}

#[test]
fn a_run_that_rests_can_be_given_up() {
    let (mut lua, mut script) = (machine(), Script { pulses: vec![Pulse::Rest], calls: 0 });
    assert_eq!(start(&mut lua, &mut script, "while true do end").0, Progress::Resting);
    drop(lua);
}

#[test]
fn a_function_of_ours_rests_and_ends_too() {
    let (mut lua, mut script) = (machine(), Script::default());
    script.pulses = vec![Pulse::Rest, Pulse::GoOn, Pulse::End];
    assert_eq!(start(&mut lua, &mut script, "wait() wait() return 1").0, Progress::Resting);
    let (progress, _) = lua.go_on(&mut script, told);
    assert!(matches!(progress, Progress::Ended(Some(Place { line: Some(1), .. }))), "{progress:?}");
    script.pulses = vec![Pulse::Rest];
    assert_eq!(start(&mut lua, &mut script, "wait()").0, Progress::Resting);
    drop(lua);
}

#[test]
fn a_script_that_catches_its_end_ends_all_the_same() {
    for source in [
        "while true do pcall(function() while true do end end) end",
        "local function f() pcall(f) f() end while true do pcall(f) end",
        "while true do xpcall(error, function() while true do end end) end",
        "while true do coroutine.wrap(function() while true do end end)() end",
    ] {
        let mut script = Script { pulses: vec![Pulse::End; 1_000_000], calls: 0 };
        let (progress, text) = start(&mut machine(), &mut script, source);
        assert!(matches!(progress, Progress::Ended(Some(_))), "{progress:?} {text}");
    }
}

#[test]
fn a_panic_in_a_function_comes_out_where_the_run_was_started_even_if_the_script_catches_errors() {
    let caught = std::panic::catch_unwind(|| result("pcall(panic) return 1"));
    assert_eq!(caught.expect_err("it panicked").downcast_ref(), Some(&"on purpose"));
}

#[test]
fn memory_has_an_end() {
    let text = result("local s = 'x' while true do s = s .. s end");
    assert_eq!(text, "not enough memory");
}

#[test]
fn what_is_no_source_is_refused() {
    machine().with(|stack| {
        for source in [&b"\x1bLuaQ"[..], b"return", b"x =", b"[==", b"\0"] {
            let is_right = stack.compile(source, c"@test");
            assert_eq!(is_right, source == b"return", "{source:?}");
        }
        stack.compile(b"\x1bLuaQ", c"@test");
        assert_eq!(stack.bytes(-1), Some(&b"test:1: unexpected symbol near 'char(27)'"[..]));
    });
}

#[test]
fn a_table_is_walked_and_may_not_change_meanwhile() {
    machine().with(|stack| {
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
fn tables_within_a_table_are_walked() {
    machine().with(|stack| {
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
fn a_metatable_is_asked_or_fails() {
    machine().with(|stack| {
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
