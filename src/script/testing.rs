//! A small interpreter for the tests of the libraries: it runs a source and returns its result as text.

use super::arguments::Open;
use crate::lua::{Interrupt, Lua, Progress, Raise, ScriptHost, Stack};

/// A host that ends the script after that many interrupt checks.
pub(crate) struct InterruptBudget(pub(crate) usize);

impl ScriptHost for InterruptBudget {
    fn check_interrupt(&mut self) -> Interrupt {
        match self.0.checked_sub(1) {
            Some(rest) => {
                self.0 = rest;
                Interrupt::Continue
            }
            None => Interrupt::Abort,
        }
    }
}

fn keep_error(_: &mut Stack<'_>) -> Result<usize, Raise> {
    Ok(1)
}

/// An interpreter with the libraries of Lua and of this module.
pub(crate) fn interpreter() -> Lua {
    let mut lua = Lua::new(64 << 20);
    lua.with(|stack| {
        stack.open_standard();
        install(stack).expect("there is memory");
        let helpers = b"function show(...) local r = {} for i = 1, select('#', ...) do
            local v = select(i, ...) r[i] = v == cjson.null and 'null' or tostring(v) end return table.concat(r, ' ') end
            function fails(...) return tostring(select(2, pcall(...))) end
            function hex(s) return (s:gsub('.', function(c) return ('%02x'):format(c:byte()) end)) end";
        assert!(stack.compile(helpers, c"@helpers") && stack.call(0, Some(0)), "the helpers are right");
    });
    lua
}

fn install(stack: &mut Stack<'_>) -> Result<(), Raise> {
    let libraries: [(&str, Open); 4] = [
        ("bit", super::bit::open),
        ("struct", super::structure::open),
        ("cjson", super::cjson::open),
        ("cmsgpack", super::cmsgpack::open),
    ];
    stack.push_globals();
    for (name, open) in libraries {
        open(stack)?;
        stack.set_field(-2, name)?;
    }
    stack.get_field(-1, "string");
    super::patterns::replace(stack, -1)
}

/// Runs a source, which is ended after `interrupts` interrupt checks.
pub(crate) fn run(lua: &mut Lua, interrupts: usize, source: &str) -> String {
    let push = |stack: &mut Stack<'_>| {
        assert!(stack.compile(source.as_bytes(), c"@user_script"), "the source is right: {source}");
        Ok(0)
    };
    let handler = lua.with(|stack| {
        stack.push_function(keep_error);
        stack.make_ref()
    });
    let result = lua.start(&mut InterruptBudget(interrupts), &handler, push, |_, progress, stack| {
        if matches!(progress, Progress::Ended(_)) {
            return "ended".into();
        }
        let mut text = Vec::new();
        if !stack.write_text(-1, &mut text) {
            text.extend_from_slice(stack.type_name(-1).as_bytes());
        }
        text.iter().map(|&byte| char::from(byte)).collect()
    });
    result.expect("there is memory for no arguments")
}

/// The result of `return show(...)` of an expression.
pub(crate) fn shown(expressions: &str) -> String {
    run(&mut interpreter(), usize::MAX, &format!("return show({expressions})"))
}

/// Asserts the result that is shown for each expression.
pub(crate) fn expect(cases: &[(&str, &str)]) {
    for (expressions, expected) in cases {
        assert_eq!(shown(expressions), *expected, "{expressions}");
    }
}
