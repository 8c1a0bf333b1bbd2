//! Vulnerabilities of Lua 5.1, of Redis's sandbox and of others like it, each as a script that must not succeed.
//!
//! Each test describes what the vulnerability allowed. A script may fail, but only with an error of Lua, and it leaves
//! no trace.

use fastrand::Rng;

use crate::world::World;

/// Writes the path, the type and the identity of all that a script can reach.
const FINGERPRINT: &str = "
    local seen, found = {}, {}
    local function walk(path, value)
        if type(value) == 'string' or type(value) == 'number' then
            found[#found + 1] = path .. '=' .. value
            return
        end
        found[#found + 1] = path .. ':' .. tostring(value)
        if seen[value] then return end
        seen[value] = true
        local meta = getmetatable(value)
        if meta then walk(path .. '<meta>', meta) end
        if type(value) == 'table' then
            for name, inner in pairs(value) do
                if path ~= '_G' or (name ~= 'KEYS' and name ~= 'ARGV') then
                    walk(path .. '.' .. tostring(name), inner)
                end
            end
        end
    end
    walk('_G', _G)
    walk('text', getmetatable(''))
    table.sort(found)
    return table.concat(found, '\\n')";

/// Ways to change a table, as functions of it.
const CHANGES: &str = "
    local changes = {
        function(t) t.planted = 1 end, function(t) t.format = nil end, function(t) t.call = function() end end,
        function(t) t.__index = function() return 1 end end, function(t) t[1] = 1 end,
        function(t) rawset(t, 'planted', 1) end, function(t) rawset(t, 'format', nil) end,
        function(t) setmetatable(t, {}) end, function(t) setmetatable(t, nil) end,
        function(t) table.insert(t, 1) end, function(t) table.insert(t, 1, 1) end, function(t) table.remove(t) end,
        function(t) table.sort(t) end, function(t) table.foreach(t, function(k) t[k] = nil end) end,
        function(t) for k in pairs(t) do t[k] = nil end end, function(t) for k in next, t do rawset(t, k, nil) end end,
        function(t) error(t) end, function(t) xpcall(function() error(t) end, __redis__err__handler) end,
        function(t) __redis__err__handler(t) end, function(t) coroutine.wrap(error)(t) end,
        function(t) coroutine.wrap(function() error(t) end)() end, function(t) redis.call(t) end,
        function(t) local n = setmetatable({}, {__newindex = t}) n.planted = 1 end,
        function(t) local n = setmetatable({}, t) n.planted = 1 end,
        function(t) loadstring('local t = ... t.planted = 1')(t) end,
        function(t) load(function() return nil end)(t) end,
        function(t) cjson.encode(t) cmsgpack.pack(t) end, function(t) redis.error_reply(t) end,
        function(t) local m = getmetatable(t) m.__newindex = nil t.planted = 1 end,
        function(t) local m = getmetatable(t) m.__index = {} end,
        function(t) rawset(getmetatable(t), '__newindex', nil) t.planted = 1 end,
    }
    local seen = {}
    local function attack(t)
        if type(t) ~= 'table' or seen[t] then return end
        seen[t] = true
        for _, change in ipairs(changes) do pcall(change, t) end
        attack(getmetatable(t))
        for _, inner in pairs(t) do attack(inner) end
    end
    attack(getmetatable(''))
    for _, t in pairs(_G) do attack(t) end
    attack(_G)";

/// The names of all globals, and of the functions in libraries.
const NAMES: &[(&str, &str)] = &[
    (
        "_G",
        "ARGV KEYS _G _VERSION __redis__err__handler assert bit cjson cmsgpack collectgarbage coroutine error gcinfo \
         getmetatable ipairs load loadstring math next os pairs pcall rawequal rawget rawset redis select setmetatable \
         string struct table tonumber tostring type unpack xpcall",
    ),
    ("os", "clock"),
    ("coroutine", "create resume running status wrap yield"),
    ("table", "concat foreach foreachi getn insert maxn remove setn sort"),
    ("string", "byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper"),
];

fn eval(world: &mut World, script: &str) -> String {
    let (reply, _) = world.send(world.client, &[b"EVAL", script.as_bytes(), b"0"]);
    String::from_utf8_lossy(&reply).into_owned()
}

/// Runs a script in a world of its own that must be as before afterwards.
fn attack(script: &str) -> String {
    let mut world = World::fresh();
    let before = eval(&mut world, FINGERPRINT);
    assert!(before.starts_with('$'), "{before}");
    let reply = eval(&mut world, script);
    assert_eq!(eval(&mut world, FINGERPRINT), before, "after {script}");
    assert_eq!(eval(&mut world, "return ('x'):rep(3) .. redis.call('PING').ok"), "$7\r\nxxxPONG\r\n");
    reply
}

/// CVE-2014-5461: the stack was not checked for the parameters of a function that takes more arguments.
#[test]
fn a_function_with_many_parameters_is_called_with_any_number_of_arguments() {
    let reply = attack(
        "for _, parameters in ipairs{0, 1, 50, 150, 190} do
            local names = {}
            for n = 1, parameters do names[n] = 'p' .. n end
            names[#names + 1] = '...'
            local f = loadstring('return function(' .. table.concat(names, ',') .. ') return select(\"#\", ...) end')()
            for _, count in ipairs{0, 1, 100, 1000, 7000, 8000} do pcall(function() return f(unpack({}, 1, count)) end) end
            coroutine.wrap(function() return f(unpack({}, 1, 7000)) end)()
        end
        return 1",
    );
    assert_eq!(reply, ":1\r\n");
}

/// CVE-2021-32626: values were pushed onto a stack that was full.
#[test]
fn a_command_accepts_as_many_words_as_lua_unpacks_and_a_reply_may_nest_deep() {
    let push = "local t = {} for n = 1, tonumber(COUNT) do t[n] = n end return redis.call('LPUSH', 'k', unpack(t))";
    assert_eq!(eval(&mut World::fresh(), &push.replace("COUNT", "7990")), ":7990\r\n");
    let reply = attack(&push.replace("COUNT", "1000000"));
    assert!(reply.contains("too many results to unpack"), "{reply}");
    let reply = attack("local t = {} for n = 1, 100000 do t = {t} end return t");
    assert!(reply.contains("reached lua stack limit"), "{}", &reply[reply.len() - 100..]);
    let mut world = World::fresh();
    eval(&mut world, "local t = {} t[1] = t return t");
    assert!(world.ask("INFO errorstats").contains("errorstat_ERR:count=1\r\n"));
}

/// CVE-2021-32672: the debugger read beyond the end of its input.
#[test]
fn the_lua_debugger_cannot_be_started() {
    let mut world = World::fresh();
    assert!(world.ask("SCRIPT DEBUG YES").starts_with('-'));
    assert!(world.ask("SCRIPT DEBUG SYNC").starts_with('-'));
    assert_eq!(world.ask("SCRIPT DEBUG NO"), "+OK\r\n");
}

/// CVE-2022-0543: `package` was left, which loads libraries of C.
#[test]
fn scripts_see_exactly_the_listed_globals() {
    let mut world = World::fresh();
    for (table, names) in NAMES {
        let list =
            "local r = {} for name in pairs(TABLE) do r[#r + 1] = name end table.sort(r) return table.concat(r, ' ')";
        let reply = eval(&mut world, &list.replace("TABLE", table));
        assert_eq!(reply, format!("${}\r\n{names}\r\n", names.len()));
    }
    for name in ["package", "require", "module", "io", "dofile", "loadfile", "debug", "print", "newproxy", "getfenv"] {
        let reply = eval(&mut world, &format!("return rawget(_G, '{name}') == nil and rawget(os, '{name}') == nil"));
        assert_eq!(reply, ":1\r\n", "{name}");
    }
}

/// CVE-2022-24735 and CVE-2025-46818: a function that one script replaced was run by the next script, with the
/// permissions of another user.
#[test]
fn no_script_changes_what_others_see() {
    attack(CHANGES);
    for change in [
        "string.upper = function() return 'planted' end",
        "getmetatable('').__index = function() return 'planted' end",
        "getmetatable('').__add = function() return 'planted' end",
        "setmetatable('', {})",
        "setmetatable(1, {})",
        "_G.planted = 1",
        "planted = 1",
        "rawset(_G, 'planted', 1)",
        "redis.call = function() return 'planted' end",
        "error(string)",
        "error(_G)",
        "error(getmetatable(''))",
        "return string",
        "return {err = string}",
    ] {
        attack(change);
    }
}

/// CVE-2022-24735: the body of a script was put into the text of a function.
#[test]
fn a_surplus_end_keyword_does_not_escape_the_script() {
    for script in ["return 1 end function x() return 2", "end return 1", "end) (function() return 1"] {
        assert!(attack(script).starts_with("-ERR Error compiling script"), "{script}");
    }
}

#[test]
fn changes_of_keys_and_argv_end_with_their_script() {
    let mut world = World::fresh();
    let plant = b"KEYS.planted = 1 KEYS[2] = 'x' setmetatable(ARGV, {__index = function() return 'planted' end})";
    world.send(world.client, &[b"EVAL", plant, b"1", b"key", b"argument"]);
    assert_eq!(eval(&mut world, "return {#KEYS, #ARGV, tostring(KEYS.planted), tostring(ARGV[1])}"), {
        "*4\r\n:0\r\n:0\r\n$3\r\nnil\r\n$3\r\nnil\r\n"
    });
}

/// Scripts that do no more than this with them share two tables.
#[test]
fn a_script_that_reads_keys_and_arguments_finds_exactly_those_that_were_sent() {
    const READ: &[u8] =
        b"return {#KEYS, #ARGV, tostring(KEYS[1]), tostring(ARGV[1]), tostring(ARGV[17]), tostring(ARGV.x)}";
    const TAKE: &[u8] = b"KEYS.x, ARGV.x, ARGV[1], KEYS[9] = 1, 2, 'taken', 3 setmetatable(ARGV, {__index = KEYS})";
    let mut world = World::fresh();
    let mut read = |source: &[u8], keys: usize, arguments: usize| {
        let words: Vec<String> = (0..keys + arguments).map(|number| format!("word{number}")).collect();
        let count = keys.to_string();
        let mut request = vec![b"EVAL".as_slice(), source, count.as_bytes()];
        request.extend(words.iter().map(|word| word.as_bytes()));
        String::from_utf8_lossy(&world.send(world.client, &request).0).replace("\r\n", " ")
    };
    for _ in 0..3 {
        assert_eq!(read(READ, 2, 1), "*6 :2 :1 $5 word0 $5 word2 $3 nil $3 nil ");
        assert_eq!(read(READ, 0, 3), "*6 :0 :3 $3 nil $5 word0 $3 nil $3 nil ");
        assert_eq!(read(TAKE, 1, 1), "$-1 ");
        assert_eq!(read(READ, 0, 0), "*6 :0 :0 $3 nil $3 nil $3 nil $3 nil ");
        assert_eq!(read(READ, 0, 17), "*6 :0 :17 $3 nil $5 word0 $6 word16 $3 nil ");
        assert_eq!(read(READ, 17, 0), "*6 :17 :0 $5 word0 $3 nil $3 nil $3 nil ");
    }
}

/// Scripts are classified by the names that they use, so these names must be the only ways to the tables.
#[test]
fn keys_and_arguments_are_reachable_only_by_their_names_the_globals_and_the_compilers() {
    let mut world = World::fresh();
    let search = "
        local ways, seen = {KEYS = 1, ARGV = 1, _G = 1, load = 1, loadstring = 1}, {}
        local found, functions = {}, 0
        local function walk(path, value)
            if value == KEYS or value == ARGV or value == _G then found[#found + 1] = path end
            if type(value) ~= 'table' and type(value) ~= 'function' or seen[value] or #path > 24 then return end
            seen[value] = true
            if type(value) == 'table' then
                walk(path .. '<meta>', getmetatable(value))
                for name, inner in pairs(value) do walk(path .. '.' .. tostring(name), inner) end
                return
            end
            functions = functions + 1
            for _, arguments in ipairs({{}, {1}, {'x'}, {'x', 'x'}, {{}}, {{}, 1}, {function() return 1 end}}) do
                for number, result in pairs({pcall(value, unpack(arguments))}) do
                    walk(path .. '()' .. number, result)
                end
            end
        end
        for name, value in pairs(_G) do if not ways[name] then walk(name, value) end end
        walk('text', getmetatable(''))
        return table.concat(found, ' ') .. (functions > 100 and 'none' or functions)";
    assert_eq!(eval(&mut world, search), "$4\r\nnone\r\n");
}

/// CVE-2022-24736: a script that could not be loaded was run nevertheless.
#[test]
fn malformed_source_is_an_error() {
    const PIECES: &[&str] = &[
        "local ",
        "x",
        " = ",
        "function ",
        "(",
        ")",
        "end ",
        "if ",
        "then ",
        "for ",
        "in ",
        "do ",
        "return ",
        "{",
        "}",
        "[[",
        "]]",
        "[=[",
        "'",
        "\"",
        "\\",
        "--",
        "...",
        "..",
        "1e",
        "0x",
        "nil ",
        ",",
        ";",
        "\0",
        "\u{1b}Lua",
        "goto ",
        "while false ",
        "repeat ",
        "until 1 ",
        "redis.call('PING')",
        "KEYS",
        "#",
        "-",
        "^",
        "%",
        "==",
        "~=",
    ];
    let mut world = World::fresh();
    let before = eval(&mut world, FINGERPRINT);
    let mut rng = Rng::with_seed(24736);
    for _ in 0..3000 {
        let script: String = (0..rng.usize(1..12)).map(|_| PIECES[rng.usize(..PIECES.len())]).collect();
        let reply = eval(&mut world, &script);
        assert!(reply.ends_with("\r\n"), "{script}");
    }
    assert_eq!(eval(&mut world, FINGERPRINT), before);
}

/// CVE-2024-46981 and CVE-2025-49844: what was still used was collected, by the collector that scripts
/// steered, or while source was compiled.
#[test]
fn the_collector_frees_no_value_in_use() {
    let reply = attack(
        "for round = 1, 200 do
            local keep = {}
            for n = 1, 20 do
                local name = ('chunk'):rep(n) .. round
                keep[n] = loadstring('local a, b = {}, \"' .. name .. '\" return function() return a, b end', '@' .. name)
                collectgarbage(n % 2 == 0 and 'collect' or 'step')
                keep[n] = coroutine.wrap(keep[n])
            end
            for n = 1, 20 do
                local _, name = keep[n]()()
                assert(name == ('chunk'):rep(n) .. round)
            end
        end
        return collectgarbage('stop')",
    );
    assert_eq!(reply, ":0\r\n");
    let reply = attack(
        "local source = 'return {' .. ('\"text\", {}, function() end, '):rep(50000) .. '}'
        for n = 1, 3 do
            local read = 0
            local f = assert(load(function()
                collectgarbage()
                read = read + 100000
                return source:sub(read - 99999, read)
            end))
            assert(loadstring(source))
            collectgarbage()
        end
        return 1",
    );
    assert_eq!(reply, ":1\r\n");
}

/// CVE-2025-46817: the length of a range overflowed.
#[test]
fn unpack_counts_its_range_correctly() {
    let reply = attack(
        "local bounds = {-2147483648, -2147483647, -1, 0, 1, 2147483646, 2147483647, 2147483648, 4294967295, 4294967296,
            6442450943, 9007199254740992, -9007199254740992, 1e300, -1e300, 0 / 0, 1 / 0}
        for _, first in ipairs(bounds) do
            for _, last in ipairs(bounds) do
                local is_right, more = pcall(function() return select('#', unpack({}, first, last)) end)
                assert(is_right and more < 8000 or more:find('too many results to unpack', 1, true), more)
                pcall(string.byte, 'text', first, last)
                pcall(string.sub, 'text', first, last)
                pcall(table.concat, {}, '', first, last)
                pcall(table.insert, {}, math.max(first, -1000), 1)
                pcall(select, first, 1, 2, 3)
            end
        end
        return 1",
    );
    assert_eq!(reply, ":1\r\n");
}

/// Lua 5.1 would move two thousand million elements, and could not be interrupted.
#[test]
fn an_insert_at_a_very_low_position_is_an_error() {
    assert!(attack("table.insert({}, -2147483648, 1)").contains("position out of bounds"));
    assert_eq!(attack("local t = {1, 2} table.insert(t, -1, 9) return t[-1]"), ":9\r\n");
}

/// CVE-2025-46819: the reader of long brackets ran over the end.
#[test]
fn brackets_that_do_not_close_are_errors() {
    for level in [0, 1, 2, 200, 70_000] {
        let equals = "=".repeat(level);
        for source in [
            format!("return [{equals}"),
            format!("return [{equals}["),
            format!("return [{equals}[ ]{equals}"),
            format!("--[{equals}["),
            format!("--[{equals}[ ]"),
        ] {
            assert!(
                attack(&format!("return assert(loadstring(('%s'):format([==========[{source}]==========])))"))
                    .starts_with('-'),
                "{level}"
            );
            if level > 0 {
                assert!(eval(&mut World::fresh(), &format!("return [{equals}")).starts_with('-'));
            }
        }
    }
}

/// A table without the text of its error ended the server.
#[test]
fn tables_of_all_shapes_are_answered() {
    let mut world = World::fresh();
    let values = ["nil", "1", "'x'", "''", "true", "{}", "{err = 1}", "{'x'}", "function() end", "0/0", "'a\\r\\nb'"];
    for protocol in [2, 3] {
        for name in ["err", "ok", "map", "set", "double", "big_number", "verbatim_string", "format", "source", "line"] {
            for value in values {
                for act in ["return", "error"] {
                    let reply = eval(&mut world, &format!("redis.setresp({protocol}) {act} ({{{name} = {value}}})"));
                    assert!(reply.ends_with("\r\n") && reply.len() > 2, "{act} {name} = {value}: {reply}");
                }
            }
        }
    }
}

/// Libraries that were rewritten had the old faults again, such as CVE-2024-31449 in Dragonfly.
#[test]
fn library_functions_survive_any_arguments() {
    let reply = attack(
        "local odd = {-2147483648, 2147483647, 0 / 0, 1 / 0, -1, 1e15, '', ('x'):rep(300), '%', '%1', '[', '>i16', {}, {1},
            true, function() return 1 end, coroutine.create(function() end), string}
        -- Those that take long with some of them, or put tables into themselves.
        local left_out = {rep = true, load = true, log = true, insert = true, rawset = true}
        local calls = 0
        for _, library in ipairs{string, table, math, bit, struct, cjson, cmsgpack, coroutine, redis, _G} do
            for name, f in pairs(library) do
                if type(f) == 'function' and not left_out[name] then
                    pcall(f)
                    for _, a in ipairs(odd) do
                        pcall(f, a)
                        for _, b in ipairs(odd) do
                            pcall(f, a, b)
                            pcall(f, a, b, odd[calls % #odd + 1])
                            calls = calls + 1
                        end
                    end
                end
            end
        end
        return calls > 10000",
    );
    assert_eq!(reply, ":1\r\n");
}

/// A script that assigns no global name has the globals themselves for its environment, which it must not notice.
#[test]
fn globals_are_protected_in_scripts_that_assign_none() {
    let mut world = World::fresh();
    let cases = [
        ("return nope", "nonexistent global variable 'nope'"),
        ("_G.x = 1", "readonly table"),
        ("rawset(_G, 'x', 1)", "readonly table"),
        ("_G.KEYS = 1", "readonly table"),
        ("redis.x = 1", "readonly table"),
        ("getmetatable(_G).__index = nil", "readonly table"),
        ("return loadstring('x = 1')()", "readonly table"),
        ("return tostring(rawget(_G, 'x'))", "$3\r\nnil"),
        ("return tostring(_G.redis == redis and _G.KEYS == KEYS and _G._G == _G)", "$4\r\ntrue"),
        ("local names = 0 for _ in pairs(_G) do names = names + 1 end return tostring(names > 30)", "$4\r\ntrue"),
    ];
    for (script, expected) in cases {
        for script in [script.to_owned(), format!("if false then planted = 1 end {script}")] {
            let answer = eval(&mut world, &script);
            assert!(answer.contains(expected), "{script}: {answer}");
        }
    }
}

/// Some texts are read without C's help; the interpreter itself always has it.
#[test]
fn a_string_converts_to_the_same_number_everywhere() {
    let script = b"
        for text in string.gmatch(ARGV[1], '[^,]+') do
            if tonumber(text) ~= text * 1 or tostring(tonumber(text)) ~= tostring(text * 1) then return text end
        end
        for text in string.gmatch('x,1x,1 1,--1,1e,0x,1.2.3,.,-.,', '([^,]*),') do
            if tonumber(text) then return text end
        end
        local _, complaint = pcall(function() local number = tonumber() end)
        return {tonumber('11', 2), tonumber('z', 36), tonumber(7), tonumber('5', 10), tostring(tonumber('')), complaint}";
    let texts = b"0,00,7,007,-0,-5,+5,1.5,-1.5,.5,-5.,-0.0,1700000000.123456,1e3,0x10, 12 ,\
                 999999999999999,9007199254740991,9007199254740992,9007199254740993,9999999999999999,99999999999999999,123456789012345678901234567890";
    let mut world = World::fresh();
    let (reply, _) = world.send(world.client, &[b"EVAL", script, b"0", texts]);
    let expected = "*6\r\n:3\r\n:35\r\n:7\r\n:5\r\n$3\r\nnil\r\n\
                    $61\r\nuser_script:8: bad argument #1 to 'tonumber' (value expected)\r\n";
    assert_eq!(String::from_utf8_lossy(&reply), expected);
}
