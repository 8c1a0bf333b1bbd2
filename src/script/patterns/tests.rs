//! Tests of patterns; expected are the replies of Redis 8.0.6.

use crate::script::testing::{expect, interpreter, run, shown};

#[test]
fn find_returns_the_position_and_the_captures() {
    expect(&[
        ("('hello world'):find('o w')", "5 7"),
        ("('hello'):find('l+')", "3 4"),
        ("('hello'):find('(h)(.)')", "1 2 h e"),
        ("('hello'):find('xyz'), ('a.b'):find('.', 1, true)", "nil 2 2"),
        ("('hello'):find(''), ('hello'):find('', 10)", "1 6 5"),
        ("('hello'):find('l', -2), ('hello'):find('h', -100)", "4 1 1"),
        ("string.find(1234, 23)", "2 3"),
        ("('a\\0b'):find('\\0'), ('a\\0b%'):find('b\\0%')", "2 nil"),
    ]);
}

#[test]
fn pattern_items_match_as_in_lua() {
    expect(&[
        ("('key = value'):match('^(%w+)%s*=%s*(%w+)$')", "key value"),
        ("('THE (quick) fox'):find('%((%a+)%)')", "5 11 quick"),
        ("('f(a(b)c)d'):match('%b()')", "(a(b)c)"),
        ("('THE (quick) fox'):find('%f[%a]%a+%f[%A]', 2)", "6 10"),
        ("('hello'):match('()ll()')", "3 5"),
        ("('\"it\\'s\" x'):match('([\"\\'])(.-)%1')", "\" it's"),
        ("('x^2'):match('[%^]'), (']'):match('[]]'), ('a-b'):match('[a%-]+')", "^ ] a-"),
        ("('abc'):match('a*?b'), ('aaa'):match('a-$'), ('$'):match('$$')", "nil aaa $"),
        ("('%]'):match('[y-%%]')", "]"),
        ("('0x1F'):match('^0[xX](%x+)$'), ('a\\0b'):match('%z')", "1F \0"),
    ]);
}

#[test]
fn gmatch_returns_one_match_after_another() {
    let source =
        "local r = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do r[#r + 1] = k .. v end return table.concat(r)";
    assert_eq!(run(&mut interpreter(), usize::MAX, source), "a1b2");
    let source = "local n = 0 for _ in string.gfind('abc', '') do n = n + 1 end return n";
    assert_eq!(run(&mut interpreter(), usize::MAX, source), "4");
}

#[test]
fn gsub_replaces_matches() {
    expect(&[
        ("('hello world'):gsub('o', '0')", "hell0 w0rld 2"),
        ("('hello world'):gsub('(%w+)', '<%1>', 1)", "<hello> world 1"),
        ("('abc'):gsub('', '-')", "-a-b-c- 4"),
        ("('abc'):gsub('%w', '%0%0%%')", "aa%bb%cc% 3"),
        ("('$x $y'):gsub('%$(%w)', {x = 1, y = false})", "1 $y 2"),
        ("('abc'):gsub('()', function(at) return at end)", "1a2b3c4 4"),
        ("('abc'):gsub('b', setmetatable({}, {__index = function(_, key) return key .. '!' end}))", "ab!c 1"),
        ("('aaa'):gsub('^a', 'b')", "baa 1"),
        ("('a'):gsub('a', 'x%')", "x\0 1"),
    ]);
}

#[test]
fn errors_have_the_texts_of_lua() {
    for (call, message) in [
        ("find, 'a', '%'", "malformed pattern (ends with '%')"),
        ("find, 'a', '[a'", "malformed pattern (missing ']')"),
        ("find, 'a', '%f'", "missing '[' after '%f' in pattern"),
        ("find, 'a', '(a'", "unfinished capture"),
        ("match, 'a', 'a)'", "invalid pattern capture"),
        ("find, 'a', '%1'", "invalid capture index"),
        ("find, 'a', '%b('", "unbalanced pattern"),
        ("find, 'a', ('()'):rep(33)", "too many captures"),
        ("gsub, 'a', 'a', '%2'", "invalid capture index"),
        ("gsub, 'a', 'a', function() return {} end", "invalid replacement value (a table)"),
        ("gsub, 'a', 'a', true", "bad argument #3 to '?' (string/function/table expected)"),
        ("gsub, 'a', 'a', function() error('mine', 0) end", "mine"),
        ("match, {}, 'a'", "bad argument #1 to '?' (string expected, got table)"),
        ("rep, 'a', 'b'", "bad argument #2 to '?' (number expected, got string)"),
    ] {
        assert_eq!(shown(&format!("fails(string.{call})")), message, "{call}");
    }
}

#[test]
fn rep_repeats_a_text_within_the_memory_limit() {
    expect(&[
        ("('ab'):rep(3), ('ab'):rep(0), ('ab'):rep(-1), ('ab'):rep(1e300)", "ababab   "),
        ("fails(string.rep, 'abcdef', 2147483647)", "not enough memory"),
        // It would be there twice while it becomes a text.
        ("fails(string.rep, 'abcdef', 1e8)", "not enough memory"),
        ("fails(string.gsub, ('x'):rep(1e6), 'x', ('y'):rep(1e6))", "not enough memory"),
    ]);
}

/// Lua's own matcher nests a native call for each of these items.
#[test]
fn a_long_pattern_uses_no_deep_recursion() {
    expect(&[
        ("#('a'):rep(3e5):match(('a?'):rep(3e5))", "300000"),
        ("('a'):find(('x-'):rep(3e5))", "1 0"),
        ("('a'):rep(1e4):gsub(('a*'):rep(1e4), '')", " 2"),
    ]);
}

#[test]
fn a_match_that_takes_too_long_is_interrupted() {
    for source in [
        "return ('a'):rep(64):find(('a-'):rep(32) .. 'b')",
        "return ('a'):rep(1e5):find('.-.-.-b')",
        "return ('('):rep(1e6):gsub('%b()', '')",
        "for a in ('a'):rep(64):gmatch(('a*'):rep(32) .. 'b') do end",
    ] {
        assert_eq!(run(&mut interpreter(), 3, source), "ended", "{source}");
    }
}

/// A search skips positions at which no match can begin; one with `^` tries a single position.
#[test]
fn a_search_finds_what_trying_each_position_finds() {
    let source = "
        local items = {'a', 'b+', 'a*', 'b-', 'a?', '%d', '%D+', '.', '[ab]', '[^a]', '(', '()', '(a)', ')', '$', '%$', \
        '%bab', '%f[%d]', '%1', '%', '[', ''}
        local subjects = {'', 'a', 'ba', 'xxab1', '12$ab', 'b\\0a', '(a)b$', 'bbbbbbaab12'}
        local function tried(s, p, from)
            for at = from, #s + 1 do
                local first, last = s:find('^' .. p, at)
                if first then return first, last end
            end
            return nil, nil
        end
        local function replaced(s, p)
            local out, at, count = {}, 1, 0
            while true do
                local first, last = s:find('^' .. p, at)
                if first then
                    count = count + 1
                    out[#out + 1] = '<' .. s:sub(first, last) .. '>'
                end
                if first and last >= at then
                    at = last + 1
                elseif at <= #s then
                    out[#out + 1] = s:sub(at, at)
                    at = at + 1
                else
                    return table.concat(out), count
                end
            end
        end
        for _, one in ipairs(items) do for _, two in ipairs(items) do for _, s in ipairs(subjects) do
            local p = one .. two
            for from = 1, #s + 1 do
                local expected = show(pcall(tried, s, p, from))
                local found = show(pcall(function() local a, b = s:find(p, from) return a, b end))
                local is_pattern = p:find('[%$%*%+%?%.%(%[%%%-]')
                if is_pattern and found:gsub('.*: ', '') ~= expected:gsub('.*: ', '') then
                    return p .. ' in ' .. s .. ': ' .. found .. ' not ' .. expected
                end
            end
            local is_right, expected = pcall(function() return show(replaced(s, p)) end)
            local found = is_right and show(s:gsub(p, '<%0>'))
            if is_right and found ~= expected then
                return p .. ' in ' .. s .. ': ' .. found .. ' not ' .. expected
            end
        end end end
        return 'the same'";
    assert_eq!(run(&mut interpreter(), usize::MAX, source), "the same");
}
