//! Tests of `cmsgpack`; expected are the replies of Redis 8.0.6.

use crate::script::testing::{expect, interpreter, run, shown};

#[test]
fn values_have_the_shortest_form() {
    for (values, bytes) in [
        ("0, 127, 128, 255, 256, 65535, 65536", "007fcc80ccffcd0100cdffffce00010000"),
        ("2^32 - 1, 2^32, 2^63", "ceffffffffcf0000000100000000ca5f000000"),
        ("-1, -32, -33, -128, -129, -32768, -32769", "ffe0d0dfd080d1ff7fd18000d2ffff7fff"),
        ("-2^31, -2^31 - 1, -2^63", "d280000000d3ffffffff7fffffffd38000000000000000"),
        ("0.5, 0.1, 1/0, nil, true, false", "ca3f000000cb3fb999999999999aca7f800000c0c3c2"),
        ("'', 'a', {}, {1, {2}}, {a = 1}, {[1.5] = 2}", "a0a161909201910281a1610181ca3fc0000002"),
        ("{[2] = 1}, {1, nil, 3}, tostring", "810201820101030 3c0"),
    ] {
        assert_eq!(shown(&format!("hex(cmsgpack.pack({values}))")), bytes.replace(' ', ""), "{values}");
    }
    expect(&[
        (
            "hex(cmsgpack.pack(('a'):rep(32))):sub(1, 6), hex(cmsgpack.pack(('a'):rep(256))):sub(1, 8)",
            "d92061 da010061",
        ),
        ("hex(cmsgpack.pack(('a'):rep(65536))):sub(1, 12)", "db0001000061"),
    ]);
}

#[test]
fn unpacking_returns_the_values_and_the_next_offset() {
    expect(&[
        ("cmsgpack.unpack(cmsgpack.pack(1, -2, 0.1, 'x', true, nil, 2^40))", "1 -2 0.1 x true nil 1099511627776"),
        ("#cmsgpack.unpack('\\147\\1\\2\\3'), cmsgpack.unpack('\\129\\161a\\7').a", "3 7"),
        ("cmsgpack.unpack_one('\\1\\2\\3')", "1 1"),
        ("cmsgpack.unpack_one('\\1\\2\\3', 2)", "-1 3"),
        ("cmsgpack.unpack_limit('\\1\\2\\3', 2, 1)", "-1 2 3"),
        ("cmsgpack.unpack_limit('\\1\\2\\3', 0)", "1 2 3"),
        ("cmsgpack.unpack('\\207\\255\\255\\255\\255\\255\\255\\255\\255')", "-1"),
        ("cmsgpack._VERSION, cmsgpack._NAME, cmsgpack.safe", "lua-cmsgpack 0.4.0 cmsgpack nil"),
    ]);
}

#[test]
fn invalid_messagepack_is_refused() {
    for (call, message) in [
        ("unpack, '\\193'", "Bad data format in input."),
        ("unpack, '\\204'", "Missing bytes in input."),
        ("unpack, '\\223\\255\\255\\255\\255'", "Missing bytes in input."),
        ("unpack, '\\129\\192\\1'", "table index is nil"),
        ("unpack_one, 'a', 2", "Start offset 2 greater than input length 1."),
        ("unpack_limit, 'a', -2", "Invalid request to unpack with offset of 0 and limit of 1."),
        ("pack", "bad argument #0 to '?' (MessagePack pack needs input.)"),
    ] {
        assert_eq!(shown(&format!("fails(cmsgpack.{call})")), message, "{call}");
    }
}

/// Cases of CVE-2018-11218 and CVE-2022-24834.
#[test]
fn the_number_of_arguments_and_the_nesting_are_limited() {
    expect(&[
        ("#cmsgpack.pack(unpack({}, 1, 10)), #cmsgpack.pack(unpack({}, 1, 3900))", "10 3900"),
        (
            "fails(function() return cmsgpack.pack(unpack({}, 1, 7900)) end)",
            "user_script:1: bad argument #0 to 'pack' (Too many arguments for MessagePack pack.)",
        ),
        (
            "fails(cmsgpack.unpack, ('\\1'):rep(9000))",
            "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
        ),
        ("fails(cmsgpack.unpack, ('\\145'):rep(1e5))", "stack overflow (in function mp_decode_to_lua_array)"),
    ]);
    let source = "local t = {} for _ = 1, 1e5 do t = {t} end return hex(cmsgpack.pack(t))";
    assert_eq!(run(&mut interpreter(), usize::MAX, source), format!("{}c0", "91".repeat(16)));
    let source =
        "local t = {} t[1] = t t[2] = t return fails(function() for i = 3, 100 do t[i] = t end cmsgpack.pack(t) end)";
    assert_eq!(run(&mut interpreter(), usize::MAX, source), "not enough memory");
    assert_eq!(run(&mut interpreter(), 3, source), "ended");
}
